# With write_back, cache and store together always have all values, whichever process fills the cache or dies.
use v5.16;
use warnings;

# The modules' clock is stopped, so that nothing depends on time.
BEGIN {
    my $now = CORE::time;
    *CORE::GLOBAL::time = sub { $now };
}

use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

my ($store, $file);

# A cache of the file and its store. Two of them in one process see each other as two processes would.
sub behind {
    return ours(serializer => '', write_action => 'write_back', cache_size => '512k', share_file => $file, unlink_on_exit => 0,
        read_cb => sub { $store->{ $_[1] } }, write_cb => sub { $store->{ $_[1] } = $_[2] }, @_);
}

sub two { ($store, $file) = ({}, path()); return (behind(), behind()) }

sub fill { my ($cache, $name, $count) = @_; $cache->set("$name $_" => 'x' x 100) for 1 .. $count // 3000; return }

# The keys whose value neither the cache nor the store has.
sub lost {
    my ($cache, $value, @keys) = @_;
    my %kept = map { $_->{key} => $_->{value} } $cache->get_keys(2);
    return grep { ($kept{$_} // $store->{$_} // '') ne $value } @keys;
}

# Simulates that the cache evicted the class's own entries.
sub evict_notes {
    my ($cache) = @_;
    my $volume = $cache->{cache};
    $volume->remove($_) for grep { /^\x00\x02/ } $volume->keys;
    return;
}

subtest 'the class\'s own entries are evicted' => sub {
    my ($first, $second) = two();
    $first->set(early => 'v');
    fill($second, 'second');
    evict_notes($second);
    $first->set(late => 'v');
    fill($second, 'more');
    is_deeply([lost($second, 'v', 'early', 'late')], [], 'nothing is lost');
    is($first->get('late'), 'v', 'the writer reads it');
};

subtest 'another process fills the cache between the look for room and the store' => sub {
    my ($first, $second) = two();
    $first->set(early => 'v');
    my $plain = \&Cache::Eyewall::FastMmap::_store;
    my $is_filled = 0;
    {
        no warnings 'redefine';
        local *Cache::Eyewall::FastMmap::_store = sub { fill($second, 'second') unless $is_filled++; return &$plain };
        $first->set(between => 'v');
    }
    ok($is_filled, 'it does');
    fill($second, 'more');
    is_deeply([lost($second, 'v', 'early', 'between')], [], 'nothing is lost');
    is($first->get('between'), 'v', 'the writer reads it');
};

subtest 'the value that was stored is evicted before its writer looks again' => sub {
    my ($first, $second) = two();
    my $plain = \&Cache::Eyewall::FastMmap::_store;
    my $is_filled = 0;
    {
        no warnings 'redefine';
        local *Cache::Eyewall::FastMmap::_store = sub {
            return &$plain if $is_filled++;
            fill($second, 'second', 1000);
            my $is_stored = &$plain;
            $second->{cache}->remove('gone');
            return $is_stored;
        };
        $first->set(gone => 'v');
    }
    is($store->{gone}, 'v', 'it is written');
};

subtest 'a process is killed while it writes back' => sub {
    my ($first, $second) = two();
    fill($second, 'second');
    $first->clear;
    my @own = map { "own $_" } 1 .. 60;
    $first->set($_ => 'v') for @own;
    my $child = child(sub { fill(behind(write_cb => sub { kill KILL => $$ }), 'child') });
    waitpid $child, 0;
    is($? & 127, 9, 'it dies');
    fill($second, 'more');
    is_deeply([lost($second, 'v', @own)], [], 'what it has not written is written by who goes on');
};

subtest 'tombstones evict nothing that waits' => sub {
    my ($first, $second) = two();
    my @own = map { "own $_" } 1 .. 60;
    $first->set($_ => 'v') for @own;
    $second->remove("second $_", { modseq => $_ }) for 1 .. 3000;
    is_deeply([lost($second, 'v', @own)], [], 'nothing is lost');
};

subtest 'a value that the cache refuses' => sub {
    ($store, $file) = ({}, path());
    my $fails = 0;
    my $cache = behind(write_cb => sub { die "no\n" if $fails; $store->{ $_[1] } = $_[2] });
    local $SIG{__WARN__} = sub { };
    $cache->set(k => 'old');
    ok(!$cache->set(k => 'y' x 400_000), 'is refused');
    is(length($cache->get('k') // ''), 400_000, 'and read as it was set');
    $cache->empty;
    is(length($store->{k} // ''), 400_000, 'the older one is not written over it');
    fill($cache, 'others', 1000);
    $fails = 1;
    $cache->set(k => 'old');
    $fails = 0;
    evict_notes($cache);
    ok(!$cache->set(k => 'y' x 400_000), 'also while room is short');
    $cache->empty;
    is(length($store->{k} // ''), 400_000, 'the older one is not written over it, either');
};

subtest 'what waits and has expired is written before it is read' => sub {
    my ($first) = two();
    Cache::Eyewall::FastMmap::_store($first->{cache}, 'k', 'v', Cache::Eyewall::FastMmap::DIRTY, CORE::time - 10);
    is($first->get_and_set(k => sub { "$_[1]!" }), 'v!', 'by get_and_set');
};

subtest 'empty and expire remove what they have written' => sub {
    my ($first) = two();
    $first->set($_ => 'v') for qw(a b c);
    is($first->expire('a'), 1, 'expire says that there was one');
    is_deeply([sort $first->get_keys], ['b', 'c'], 'it is gone');
    $first->empty;
    is_deeply([$first->get_keys], [], 'and so are those of empty');
    is_deeply($store, { map { ($_ => 'v') } qw(a b c) }, 'the store has all');
};

subtest 'expire leaves what could not be written' => sub {
    my ($first) = two();
    my $is_down = 1;
    my $cache = behind(write_cb => sub { die "down\n" if $is_down; $store->{ $_[1] } = $_[2] });
    $cache->set(key => 'v');
    my @told;
    {
        local $SIG{__WARN__} = sub { push @told, @_ };
        is($cache->expire('key'), 0, 'it is not gone');
    }
    like("@told", qr/^write_cb: down$/, 'which is said');
    is_deeply([lost($cache, 'v', 'key')], [], 'the cache has it');
    $is_down = 0;
    is($cache->expire('key'), 1, 'then it goes');
    is_deeply([$cache->get_keys, $store->{key}], ['v'], 'and the store has it');
    is($cache->expire('key'), 0, 'there is none');
};

subtest 'one value that cannot be read holds up no other' => sub {
    my (undef, $second) = two();
    my $packing = behind(serializer => 'json');
    $packing->set(packed => [1]);
    $packing->{dirty} = [];    # as if its process was killed
    my @told;
    local $SIG{__WARN__} = sub { push @told, @_ };
    $second->set($_ => 'v') for 'a' .. 'z';
    fill($second, 'more');
    is_deeply([grep { ($store->{$_} // '') ne 'v' } 'a' .. 'z'], [], 'the others are written');
    like($told[0], qr/^the value of packed is not written back: .*serializer/, 'it is said why');
};

subtest 'what others are at when a process ends is written all the same' => sub {
    my ($first) = two();
    my ($plain, $busy) = (\&Cache::Eyewall::FastMmap::_claim, 2);
    no warnings 'redefine';
    local *Cache::Eyewall::FastMmap::_claim = sub { return $busy-- > 0 ? () : $plain->(@_) };
    $first->set(key => 'v');
    undef $first;
    is($store->{key}, 'v', 'it is there');
};

subtest 'a small cache lets values wait that take less than a 16th of it' => sub {
    my ($first) = two();
    $first->set("k $_" => 'v' x 100) for 1 .. 100;
    is_deeply($store, {}, 'a hundred of them');
};

done_testing;
