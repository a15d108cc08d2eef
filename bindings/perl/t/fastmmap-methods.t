# Every method of Cache::FastMmap, in list and in scalar context.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

my @raw = (serializer => '');

both('get of nothing', {@raw}, sub { my $s = $_[0]->get('k'); ($s, [$_[0]->get('k')]) }, [undef, [undef]]);
both('set and get', {@raw}, sub { my $s = $_[0]->set(k => 'v'); my @l = $_[0]->set(k => 'w'); ($s, \@l, scalar $_[0]->get('k'), [$_[0]->get('k')]) },
    [1, [1], 'w', ['w']]);
both('an empty key', {@raw}, sub { $_[0]->set('' => 'v'); ($_[0]->get(''), [$_[0]->get_keys(0)], $_[0]->get("\0")) }, ['v', [''], undef]);
both('a key of zeros', {@raw}, sub { $_[0]->set("\0" => 'v'); ($_[0]->get("\0"), [$_[0]->get_keys(0)]) }, ['v', ["\0"]]);
both('an undefined value', {@raw}, sub { my $s = $_[0]->set(k => undef); ($s, $_[0]->get('k'), [$_[0]->get_keys(0)]) }, [1, undef, ['k']]);
both('an empty value', {@raw}, sub { $_[0]->set(k => ''); $_[0]->get('k') }, ['']);

both('exists', {@raw}, sub { $_[0]->set(k => undef); (!!$_[0]->exists('k'), !!$_[0]->exists('other')) }, [!!1, !!0], 1.59);

both('remove', {@raw}, sub { $_[0]->set(k => 1); (scalar $_[0]->remove('k'), scalar $_[0]->remove('k'), $_[0]->get('k')) }, [1, 0, undef]);
both('remove, in list context', {@raw}, sub { $_[0]->set(k => 1); ([$_[0]->remove('k')], [$_[0]->remove('k')]) }, [[1], [0]]);
both('expire', {@raw}, sub { $_[0]->set(k => 1); $_[0]->expire('k'); $_[0]->get('k') }, [undef]);

both('get_and_set', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    my $s = $cache->get_and_set(k => sub { $_[1] + 1 });
    my @l = $cache->get_and_set(k => sub { $_[1] + 1 });
    return ($s, \@l, $cache->get('k'));
}, [2, [3, 1], 3]);
both('get_and_set of nothing', {@raw}, sub {
    my ($cache) = @_;
    my @given;
    my $s = $cache->get_and_set(k => sub { @given = @_; 'new' });
    return ($s, @given[0, 1], ref $given[2], $given[2]{expire_on}, $cache->get('k'));
}, ['new', 'k', undef, 'HASH', undef, 'new']);
both('get_and_set that changes nothing', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    my $s = $cache->get_and_set(k => sub { return });
    my @l = $cache->get_and_set(k => sub { return });
    return ($s, \@l, $cache->get('k'));
}, [1, [1, 0], 1]);
both('get_and_set to undef', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    my @l = $cache->get_and_set(k => sub { undef });
    return (\@l, $cache->get('k'));
}, [[undef, 1], undef]);
both('get_and_set that dies', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    eval { $cache->get_and_set(k => sub { die "no\n" }) };
    return ($@, $cache->get('k'), $cache->get_and_set(k => sub { 2 }));
}, ["no\n", 1, 2, 1]);
both('get_and_set of a structure', {}, sub {
    my ($cache) = @_;
    $cache->get_and_set(list => sub { my ($key, $list) = @_; push @$list, 'a'; $list }) for 1 .. 3;
    return $cache->get('list');
}, [['a', 'a', 'a']]);

both('get_and_remove', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    my $s = $cache->get_and_remove('k');
    my $none = $cache->get_and_remove('k');
    return ($s, $none, $cache->get('k'));
}, [1, undef, undef]);
both('get_and_remove, in list context', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    return ([$cache->get_and_remove('k')], [$cache->get_and_remove('k')]);
}, [[1, 1], [undef, 0]]);

both('get_keys', {@raw}, sub { $_[0]->set($_ => 1) for 'a' .. 'e'; my @k = $_[0]->get_keys(0); my @same = $_[0]->get_keys; ([sort @k], [sort @same]) },
    [['a' .. 'e'], ['a' .. 'e']]);
both('get_keys with mode 1', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 'v');
    my ($entry) = $cache->get_keys(1);
    return ([sort keys %$entry], @$entry{qw(key expire_on flags)}, abs($entry->{last_access} - time) < 1000);
}, [['expire_on', 'flags', 'key', 'last_access'], 'k', 0, 0, !!1]);
both('get_keys with mode 2', {}, sub {
    my ($cache) = @_;
    $cache->set(k => [1]);
    $cache->set(u => undef);
    return map { [$_->{key}, $_->{value}, join ' ', sort keys %$_] } sort { $a->{key} cmp $b->{key} } $cache->get_keys(2);
}, [map { [@$_, 'expire_on flags key last_access value'] } ['k', [1]], ['u', undef]]);
both('get_keys of nothing', {@raw}, sub { ([$_[0]->get_keys(0)], [$_[0]->get_keys(2)]) }, [[], []]);
both('get_and_remove of what is read', { @raw, read_cb => sub { "read $_[1]" } }, sub { [$_[0]->get_and_remove('k')] }, [['read k', 1]]);
both('get_and_set of what is read, and not changed', { @raw, read_cb => sub { "read $_[1]" } },
    sub { my $s = $_[0]->get_and_set(k => sub { return }); ($s, $_[0]->get_keys(0)) }, ['read k', 'k']);

both('get_statistics', { @raw, enable_stats => 1 }, sub {
    my ($cache) = @_;
    $cache->set(k => 1);
    $cache->get($_) for qw(k k other);
    my @first = $cache->get_statistics;
    my @cleared = $cache->get_statistics(1);
    $cache->get('k');
    return (\@first, \@cleared, [$cache->get_statistics]);
}, [[3, 2], [3, 2], [1, 1]]);
both('get_statistics with read_cb', { @raw, enable_stats => 1, read_cb => sub { 'read' } }, sub {
    my ($cache) = @_;
    $cache->get('k') for 1 .. 3;
    return $cache->get_statistics;
}, [3, 2]);
both('get_statistics that are not kept', {@raw}, sub { $_[0]->get('k'); $_[0]->get_statistics }, [0, 0]);

both('multi_set and multi_get', {@raw}, sub {
    my ($cache) = @_;
    $cache->multi_set(page => { a => 1, b => 2 });
    return (scalar $cache->multi_get(page => ['a', 'b', 'c']), [$cache->multi_get(page => ['c'])]);
}, [{ a => 1, b => 2 }, [{}]]);
both('keys of multi_set', {@raw}, sub { $_[0]->multi_set(page => { a => 1, '' => 2 }); sort $_[0]->get_keys(0) }, ['page-', 'page-a']);
both('multi_set of structures', {}, sub { $_[0]->multi_set(page => { a => [1] }, { expire_time => '1h' }); $_[0]->multi_get(page => ['a']) }, [{ a => [1] }]);

both('clear', {@raw}, sub { $_[0]->set(k => 1); $_[0]->clear; ($_[0]->get('k'), [$_[0]->get_keys(0)]) }, [undef, []]);
both('purge', {@raw}, sub { $_[0]->set(k => 1); $_[0]->purge; $_[0]->get('k') }, [1]);
both('empty', {@raw}, sub { $_[0]->set(k => 1); $_[0]->empty(1); my $after = $_[0]->get('k'); $_[0]->empty; ($after, $_[0]->get('k')) }, [1, undef]);

subtest 'only ours' => sub {
    my $cache = ours(@raw);
    $cache->multi_set($_ => { a => $_ }) for 1 .. 20;
    is_deeply([map { $cache->multi_get($_ => ['a'])->{a} } 1 .. 20], [1 .. 20], 'page keys never collide');
    is($cache->get('a'), undef, 'nor do they with keys');
    ok($cache->exists('a') eq '0' && $cache->set(a => 1) && $cache->exists('a') eq '1', 'exists');
    $cache->set("\0\0" => 'z');
    $cache->set("\0" => 'y');
    is($cache->get("\0\0") . $cache->get("\0"), 'zy', 'keys of zeros differ');

    ok(Cache::Eyewall::FastMmap->new({ share_file => path(), serializer => '' })->set(a => 1), 'options by reference');
};

done_testing;
