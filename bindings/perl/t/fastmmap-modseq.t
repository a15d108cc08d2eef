# Tombstones and modseqs: an old value never replaces a newer change.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

my @raw = (serializer => '', tombstone_expire_time => 60);

# The value and its number.
sub known { my ($cache, $key) = @_; my $value = $cache->get($key, { modseq => \my $modseq }); return ($value, $modseq) }

both('a value has its number', {@raw}, sub { my $s = $_[0]->set(k => 'v', { modseq => 5 }); ($s, known($_[0], 'k')) }, [1, 'v', 5], 1.63);
both('an older one is refused', {@raw}, sub { $_[0]->set(k => 'v', { modseq => 5 }); (!!$_[0]->set(k => 'old', { modseq => 4 }), known($_[0], 'k')) }, [!!0, 'v', 5], 1.63);
both('one as old is stored', {@raw}, sub { $_[0]->set(k => 'v', { modseq => 5 }); (!!$_[0]->set(k => 'w', { modseq => 5 }), known($_[0], 'k')) }, [!!1, 'w', 5], 1.63);
both('a newer one, too', {@raw}, sub { $_[0]->set(k => 'v', { modseq => 5 }); (!!$_[0]->set(k => 'w', { modseq => 7 }), known($_[0], 'k')) }, [!!1, 'w', 7], 1.63);
both('one without a number, too', {@raw}, sub { $_[0]->set(k => 'v', { modseq => 5 }); (!!$_[0]->set(k => 'w'), known($_[0], 'k')) }, [!!1, 'w', undef], 1.63);
both('a tombstone refuses what is older', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 'v', { modseq => 5 });
    $cache->remove('k', { modseq => 8 });
    return (known($cache, 'k'), !!$cache->set(k => 'old', { modseq => 7 }), !!$cache->set(k => 'plain'), $cache->get('k'), [$cache->get_keys(0)]);
}, [undef, undef, !!0, !!0, undef, []], 1.63);
both('and lets pass what is newer', {@raw}, sub { $_[0]->remove(k => { modseq => 8 }); (!!$_[0]->set(k => 'new', { modseq => 9 }), known($_[0], 'k')) }, [!!1, 'new', 9], 1.63);
both('numbers are in get_keys', {@raw}, sub { $_[0]->set(k => 'v', { modseq => 5 }); $_[0]->set(l => 'v'); my %of = map { ($_->{key} => $_->{modseq}) } $_[0]->get_keys(1); \%of },
    [{ k => 5, l => undef }], 1.63);

subtest 'only ours' => sub {
    my $cache = ours(@raw);
    $cache->set(k => 'v', { modseq => 18_446_744_073_709_551_000 });
    is((known($cache, 'k'))[1], 18_446_744_073_709_551_000, 'numbers of 64 bits');
    $cache->remove('t', { modseq => 8 });
    $cache->remove('t', { modseq => 3 });
    ok(!$cache->set(t => 'old', { modseq => 7 }), 'a tombstone keeps the highest number');
    ok($cache->set(t => 'new', { modseq => 8 }), 'what has the same number is not older');
    is_deeply([$cache->remove('k', { modseq => 1 }), $cache->remove('k', { modseq => 2 })], [1, 0], 'remove says whether there was one');
    $cache->remove('r', { modseq => 4 });
    is_deeply([$cache->get_and_set(r => sub { 'plain' })], ['plain', 0], 'get_and_set is refused, too');
    ok($cache->get_and_set(r => sub { ('numbered', { modseq => 4 }) }), 'unless it has a number');
    is((known($cache, 'r'))[1], 4, 'which it keeps');
    $cache->expire('r');
    ok($cache->set(r => 'plain'), 'expire leaves no tombstone');

    my $simple = ours(serializer => '', read_cb => sub { 'read' });
    $simple->remove('k', { modseq => 4 });
    ok(!$simple->set(k => 'v'), 'a cache that has used a number takes notice');
    is($simple->get('k'), 'read', 'what is read under a tombstone is given');
    is_deeply([$simple->get_keys(0)], [], 'and not kept');

    my $short = ours(serializer => '', tombstone_expire_time => '1h');
    $short->remove('k', { modseq => 4 });
    my ($left) = map { $_->{ttl_left} } $short->{cache}->lookup('k');
    ok($left > 3000 && $left < 4000, 'a tombstone has its time');
};

done_testing;
