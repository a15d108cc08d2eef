# Promises of release 1.63 of Cache::FastMmap: write_back loses no value, keys that are too long, permissions,
# tombstones, and subs that die.
use v5.16;
use warnings;

# A test may stop the clock, so that no second passes between two steps.
our $second;
BEGIN { *CORE::GLOBAL::time = sub () { $second // CORE::time } }
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

my @raw = (serializer => '');

# A store behind the cache, which all processes share.
sub store { return Cache::Eyewall->anonymous(size => 64 << 20, entry_size_hint => 256) }

sub behind {
    my ($store, @more) = @_;
    return (@raw, write_action => 'write_back', context => $store, cache_size => '512k',
        read_cb => sub { $_[0]->get($_[1]) }, write_cb => sub { $_[0]->put($_[1], $_[2]) }, delete_cb => sub { $_[0]->remove($_[1]) }, @more);
}

# The lost keys, of those whose value is the key and padding: neither the cache nor the store has them.
sub lost {
    my ($cache, $store, $length, @keys) = @_;
    my %kept = map { $_->{key} => $_->{value} } $cache->get_keys(2);
    return grep { my $key = $_; my $value = $kept{$key} // $store->get($key); !defined $value || $value ne $key . 'x' x $length } @keys;
}

subtest 'write_back: its own writer sees what it has set' => sub {
    for my $length (10, 400, 3000, 20_000) {
        my $store = store();
        my $cache = ours(behind($store));
        my ($wrong, @keys) = (0);
        for my $number (1 .. 3000) {
            my $key = "key $number of $length";
            $cache->set($key => $key . 'x' x $length);
            push @keys, $key;
            my $other = $keys[rand @keys];
            $wrong++ if ($cache->get($other) // '') ne $other . 'x' x $length;
            last if $length * $number > 4_000_000;
        }
        is($wrong, 0, "values of $length bytes are read as they were set");
        is_deeply([lost($cache, $store, $length, @keys)], [], 'cache and store together have all');
    }
};

subtest 'write_back: another process evicts what one has set' => sub {
    my ($store, $file) = (store(), path());
    my $cache = ours(behind($store, share_file => $file));
    my @own = map { "own $_" } 1 .. 60;
    $cache->set($_ => $_ . 'x' x 100) for @own;
    is($store->get($own[0]), undef, 'nothing is written while there is room');
    ok(reap(child(sub {
        my $other = ours(behind($store, share_file => $file, unlink_on_exit => 0));
        $other->set("other $_" => "other $_" . 'x' x 100) for 1 .. 5000;
        return !lost($other, $store, 100, @own);
    })), 'it finds all values of the first');
    is_deeply([lost($cache, $store, 100, @own, map { "other $_" } 1 .. 5000)], [], 'and all are there at the end');
    $cache->set(late => 'late' . 'x' x 100);
    ok(!lost($cache, $store, 100, 'late'), 'the first goes on');
    $cache->clear;
    local $second = time + 2;
    $cache->set(early => 'early');
    is($store->get('early'), undef, 'and defers when there is room again');
};

# Fills a cache in another process until it no longer has a key.
sub fill_until_gone {
    my ($store, $file, $key) = @_;
    return reap(child(sub {
        my $other = ours(behind($store, share_file => $file, unlink_on_exit => 0));
        for my $number (1 .. 100_000) {
            $other->set("filler $number" => 'x' x 100);
            # Requested values replace others.
            $other->get("filler $number") for 1 .. 2;
            # A look-up that doesn't count, since requested values stay.
            return 1 unless defined $other->{cache}->peek($key);
        }
        return 0;
    }));
}

subtest 'write_back: room is used up within a second, and no note of that is left' => sub {
    my ($store, $file) = (store(), path());
    local $second = time;
    my $cache = ours(behind($store, share_file => $file));
    $cache->set(early => 'early');
    is($store->get('early'), undef, 'the first process defers');
    ok(fill_until_gone($store, $file, 'early'), 'another fills the cache');
    is($store->get('early'), 'early', 'and writes what it evicts');
    # A note in the cache could have been evicted, too.
    $cache->{cache}->remove("\0\2room is short");
    $cache->set(late => 'late');
    is($store->get('late'), 'late', 'the first notices by itself');
};

subtest 'write_back: a value is evicted before the set that stores it returns' => sub {
    my ($store, $file) = (store(), path());
    local $second = time;
    my $cache = ours(behind($store, share_file => $file));
    $cache->set(before => 'before');
    my $stores = \&Cache::Eyewall::FastMmap::_store;
    my $is_gone;
    no warnings 'redefine';
    local *Cache::Eyewall::FastMmap::_store = sub {
        my $is_stored = $stores->(@_);
        return $is_stored if defined $is_gone;
        $is_gone = 0;
        # Simulates that another process wrote back all values just before this put, and then evicted it.
        $cache->{cache}->remove('torn');
        $is_gone = fill_until_gone($store, $file, 'before');
        return $is_stored;
    };
    ok($cache->set(torn => 'torn'), 'it is stored');
    ok($is_gone, 'and evicted by another process');
    is($store->get('torn'), 'torn', 'but written');
};

subtest 'write_back: a write_cb that sets finds that room is short' => sub {
    my ($store, $file) = (store(), path());
    local $second = time;
    my $is_nested;
    local our $nested;
    my $cache = ours(behind($store, share_file => $file, write_cb => sub {
        $_[0]->put($_[1], $_[2]);
        return if $is_nested++;
        $nested->{cache}->put("filler $_" => 'x' x 4000) for 1 .. 36;
        $nested->set(nested => 'nested');
    }));
    $nested = $cache;
    my $other = ours(behind($store, share_file => $file, unlink_on_exit => 0));
    $other->set(others => 'others');
    $cache->set(own => 'own');
    is($store->get('others'), undef, 'others wait');
    $cache->_write_back_own;
    is($store->get('nested'), 'nested', 'what it sets is written at once');
    is($store->get('others'), 'others', 'and so is what others have set');
};

subtest 'write_back: empty writes what waits and leaves nothing' => sub {
    my $store = store();
    my $cache = ours(behind($store));
    my @keys = map { "key $_" } 1 .. 100;
    $cache->set($_ => $_ . 'x' x 100) for @keys;
    is_deeply([grep { defined $store->get($_) } @keys], [], 'a hundred small values wait in the smallest cache');
    $cache->expire($keys[0]);
    $cache->get($keys[0]);
    $cache->empty;
    is_deeply([$cache->get_keys], [], 'nothing is left after empty, neither what was written before nor now');
    is_deeply([lost($cache, $store, 100, @keys)], [], 'and all is written');
};

subtest 'write_back: the numbers of the volume are asked for seldom' => sub {
    my $store = store();
    local $second = time;
    my ($asked, $stats) = (0, \&Cache::Eyewall::stats);
    no warnings 'redefine';
    local *Cache::Eyewall::stats = sub { $asked++; $stats->(@_) };
    my $cache = ours(behind($store, cache_size => '64m'));
    $cache->set("key $_" => 'v') for 1 .. 2000;
    cmp_ok($asked, '<=', 3, 'not for each put, nor each 64th');
    $asked = 0;
    $cache = ours(behind($store));
    $cache->set("key $_" => 'x' x 100) for 1 .. 5000;
    cmp_ok($asked, '<=', 60, 'nor while room is short');
};

subtest 'write_back: another process puts values of nearly a 64th of the cache' => sub {
    my ($store, $file) = (store(), path());
    my $cache = ours(behind($store, share_file => $file));
    my @own = map { "own $_" } 1 .. 60;
    $cache->set($_ => $_ . 'x' x 100) for @own;
    ok(reap(child(sub {
        my $other = ours(behind($store, share_file => $file, unlink_on_exit => 0));
        $other->multi_set(page => { "other $_" => 'y' x 7900 }) for 1 .. 200;
        return !lost($other, $store, 100, @own);
    })), 'nothing of the first is lost');
};

subtest 'write_back: a writer is killed' => sub {
    my ($store, $file) = (store(), path());
    my $cache = ours(behind($store, share_file => $file));
    my $child = child(sub { $cache->set("own $_" => "own $_" . 'x' x 100) for 1 .. 60; kill KILL => $$ });
    waitpid $child, 0;
    $cache->set("other $_" => 'y' x 100) for 1 .. 5000;
    is_deeply([lost($cache, $store, 100, map { "own $_" } 1 .. 60)], [], 'what it had set is written before it is evicted');
};

subtest 'write_back: one large value, and values that are read, evict nothing unwritten' => sub {
    my $store = store();
    my $cache = ours(behind($store));
    my @own = map { "own $_" } 1 .. 60;
    for my $length (100, 2000, 7000) {
        $cache->clear;
        $cache->set($_ => $_ . 'x' x 100) for @own;
        $cache->multi_set(page => { k => 'y' x $length }) for 1 .. 4000;
        is_deeply([lost($cache, $store, 100, @own)], [], "one of $length bytes that is set again and again");
    }
    $cache->clear;
    $cache->set($_ => $_ . 'x' x 100) for @own;
    $cache->set(large => 'large' . 'x' x 100_000);
    is_deeply([lost($cache, $store, 100, @own)], [], 'a large one');
    $cache = ours(behind($store, read_cb => sub { $_[0]->get($_[1]) // "read $_[1]" }));
    @own = map { "mine $_" } 1 .. 60;
    $cache->set($_ => $_ . 'x' x 100) for @own;
    $cache->get("other $_") for 1 .. 3000;
    is_deeply([lost($cache, $store, 100, @own)], [], 'those that are read');
    @own = map { "many $_" } 1 .. 60;
    $cache->clear;
    $cache->set($_ => $_ . 'x' x 100) for @own;
    $cache->multi_set(page => { map { ("multi $_" => 'y') } 1 .. 3000 });
    is_deeply([lost($cache, $store, 100, @own)], [], 'those of multi_set');
    local $SIG{__WARN__} = sub { };
    $cache->set(refused => 'old');
    ok(!$cache->set(refused => 'z' x 400_000), 'one that the cache refuses');
    is(length($store->get('refused')), 400_000, 'is written at once');
};

subtest 'write_back: a write_cb that dies while room is short is tried again' => sub {
    my ($store, $fails, $warnings) = (store(), 0, '');
    local $SIG{__WARN__} = sub { $warnings .= $_[0] };
    my $cache = ours(behind($store, write_cb => sub { die "no\n" if $fails; $_[0]->put($_[1], $_[2]) }));
    $cache->set("filler $_" => 'x' x 100) for 1 .. 1000;
    $fails = 1;
    ok($cache->set(k => 'v'), 'it is stored');
    like($warnings, qr/^write_cb: no$/m, 'with a warning');
    $fails = 0;
    $cache->empty;
    is($store->get('k'), 'v', 'empty writes it');
};

subtest 'write_back: several caches live at the end of a process' => sub {
    my @stores = map { store() } 1 .. 3;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        our @caches = map { ours(behind($_, empty_on_exit => 1)) } @stores;
        $_->set(k => 'v') for @caches;
        Test::More->builder->no_ending(1);
        exit 0;
    }
    waitpid $pid, 0;
    is($?, 0, 'it ends');
    is_deeply([map { $_->get('k') } @stores], [('v') x 3], 'all are emptied');
};

subtest 'keys that are too long' => sub {
    my $long = 'k' x 3_000_000;
    my $is_told = 0;
    local $SIG{__WARN__} = sub { $is_told++ };
    for my $more ([], [tombstone_expire_time => 60], [write_cb => sub { }], [write_cb => sub { }, write_action => 'write_back']) {
        my $cache = ours(@raw, @$more);
        my @results = eval { (scalar $cache->get($long), $cache->exists($long), $cache->remove($long), $cache->remove($long, { modseq => 3 }),
                $cache->expire($long), scalar $cache->get_and_remove($long), $cache->multi_get($long, ['a'])) };
        is($@, '', "none dies (@$more[0 .. 0])") if @$more;
        is_deeply(\@results, [undef, 0, 0, 0, 0, undef, {}], 'it is a miss');
        is(eval { $cache->set($long => 'v') }, 0, 'it is not set');
        is_deeply([eval { $cache->get_and_set($long => sub { 'v' }) }], ['v', 0], 'nor changed');
        is_deeply([eval { $cache->get_and_set($long => sub { return }) }], [undef, 0], 'nor left');
    }
    ok($is_told, 'and that is told');
    is(ours(@raw, read_cb => sub { 'read' })->get($long), 'read', 'what is read for it is given');
};

subtest 'the file' => sub {
    my $before = umask 0077;
    my $cache = ours(@raw);
    is((stat $cache->{share_file})[2] & 07777, 0640, '0640, whatever the umask');
    umask 0;
    $cache = ours(@raw, permissions => 0600);
    is((stat $cache->{share_file})[2] & 07777, 0600, 'permissions count');
    umask 0777;
    $cache = ours(@raw, permissions => 0666);
    is((stat $cache->{share_file})[2] & 07777, 0666, 'in spite of any umask');
    umask $before;
    $cache = Cache::Eyewall::FastMmap->new(@raw);
    ok(-f $cache->{share_file}, 'a path that was not given is told');
};

subtest 'a plain remove deletes a tombstone' => sub {
    my $cache = ours(@raw);
    $cache->remove(k => { modseq => 8 });
    ok(!$cache->set(k => 'v'), 'it is there');
    is($cache->remove('k'), 1, 'it is removed');
    is($cache->remove('k'), 0, 'once');
    ok($cache->set(k => 'v'), 'and refuses nothing more');
};

subtest 'how long a tombstone is kept' => sub {
    my $left = sub { my ($cache) = @_; return (map { $_->{ttl_left} } $cache->{cache}->lookup('k'))[0] };
    my $cache = ours(@raw, expire_time => '1h');
    $cache->remove(k => { modseq => 8 });
    my $seconds = $left->($cache);
    ok($seconds > 3000 && $seconds < 4000, 'as values are');
    $cache->remove(k => { modseq => 8, expire_time => '1d' });
    ok($left->($cache) > 80_000, 'or as remove says');
};

subtest 'subs that die leave no lock' => sub {
    my $dies = sub { die "no\n" };
    my $file = path();
    my $is_free = sub {
        my ($what) = @_;
        ok(reap(child(sub { Cache::Eyewall::FastMmap->new(share_file => $file, cache_size => '2m', unlink_on_exit => 0, @raw)->get_and_set(k => sub { 'free' }) })), $what);
    };
    my @with = (share_file => $file, unlink_on_exit => 0);
    for my $options ('text', 5, ['expire_time', 3]) {
        my $cache = ours(@raw, @with);
        ok(!eval { $cache->get_and_set(k => sub { ('v', $options) }); 1 }, 'options that are no hash reference');
        like($@, qr/options must be a hash reference/, 'are told');
        $is_free->('and leave no lock');
        ok($cache->get_and_set(k => sub { 'v' }), 'nor in this process');
    }
    my %dying = (
        'the sub of get_and_set' => [[@raw], sub { $_[0]->get_and_set(k => $dies) }],
        'read_cb in get'         => [[@raw, read_cb => $dies], sub { $_[0]->expire('k'); $_[0]->get('k') }],
        'read_cb in get_and_set' => [[@raw, read_cb => $dies], sub { $_[0]->expire('k'); $_[0]->get_and_set(k => sub { 1 }) }],
        'read_cb in get_and_remove' => [[@raw, read_cb => $dies], sub { $_[0]->expire('k'); $_[0]->get_and_remove('k') }],
        'a serializer in set'    => [[serializer => [$dies, sub { \1 }], write_cb => sub { }], sub { $_[0]->set(k => [1]) }],
        'a serializer in get_and_set' => [[serializer => [$dies, sub { \1 }]], sub { $_[0]->get_and_set(k => sub { [1] }) }],
        'an expiry second'       => [[@raw, write_cb => sub { }], sub { $_[0]->set(k => 'v', { expire_on => 'no time' }) }],
    );
    for my $what (sort keys %dying) {
        my ($options, $code) = @{ $dying{$what} };
        my $cache = ours(@with, @$options);
        ok(!eval { $code->($cache); 1 }, "$what dies");
        $is_free->('and leaves no lock');
    }
};

done_testing;
