# Put, get, change, count, purge and iterate.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;

my $path = path();
my $cache = Cache::Eyewall->open(path => $path, size => 4 << 20);
isa_ok($cache, 'Cache::Eyewall');
like($cache->library_version, qr/^\d+\.\d+\.\d+/, 'the library has a version');
cmp_ok($cache->size, '<=', 4 << 20, 'the size is a cap');
cmp_ok($cache->entry_bytes_max, '>', 1000, 'there is a largest entry');

subtest 'values' => sub {
    is($cache->get('page'), undef, 'nothing is there');
    is_deeply([$cache->get('page')], [undef], 'in list context, too');
    cmp_ok($cache->put('page', '<h1>Hello</h1>'), '>', 0, 'put gives a serial');
    is($cache->get('page'), '<h1>Hello</h1>', 'what was put is got');
    ok($cache->contains('page') && !$cache->contains('other'), 'contains');
    $cache->put("\0\xff\n", "\0\1\xfe\xff");
    is($cache->get("\0\xff\n"), "\0\1\xfe\xff", 'keys and values are bytes');
    $cache->put('empty', '');
    is($cache->get('empty'), '', 'an empty value is a value');
    $cache->put(number => 42);
    is($cache->get('number'), '42', 'numbers are stored as they are written');
    my $large = '0123456789' x 20_000;
    $cache->put(large => $large);
    is($cache->get('large'), $large, 'large values');
    my ($e, $upgraded) = ("caf\xe9") x 2;
    utf8::upgrade($upgraded);
    $cache->put($upgraded => $upgraded);
    is($cache->get($e), $e, "Perl's UTF-8 flag makes no difference");
    is(length $cache->get($upgraded), 4, 'a character up to 255 is a byte');
    is($cache->peek('page') . ($cache->peek('other') // '!'), '<h1>Hello</h1>!', 'peek');
    is_deeply([$cache->get_many('page', 'other', 'empty')], ['<h1>Hello</h1>', undef, ''], 'many at once');
    is_deeply([$cache->get_many], [], 'none at once');
    $cache->put("many $_" => $_) for 1 .. 200;
    is_deeply([$cache->get_many(map { "many $_" } 0 .. 200)], [undef, 1 .. 200], 'hundreds at once');
    ok($cache->remove('page') && !$cache->remove('page'), 'remove says whether there was one');
    is($cache->get('page'), undef, 'it is gone');
};

subtest 'conditions' => sub {
    my $first = $cache->add(once => 1);
    ok($first, 'add');
    is($cache->add(once => 2), undef, 'only one adds');
    my $second = $cache->replace(once => $first, 3);
    ok($second, 'replace');
    is($cache->replace(once => $first, 4), undef, 'only the one that was seen');
    ok(!$cache->remove_if(once => $first) && $cache->remove_if(once => $second), 'remove_if');
};

subtest 'all properties' => sub {
    is($cache->lookup('known'), undef, 'nothing');
    my $serial = $cache->put(known => 'v', ttl => 3600.5, stale => 60, metadata => 'text/html', tags => ['a', 'b']);
    my $known = $cache->lookup('known');
    is($known->{serial}, $serial, 'serial');
    is_deeply([@$known{qw(key value metadata state reason)}, $known->{tags}], ['known', 'v', 'text/html', 'fresh', undef, ['a', 'b']],
        'what was put');
    ok($known->{ttl_left} > 3000 && $known->{ttl_left} <= 3600.5, 'times are in seconds');
    ok($known->{usable_left} > $known->{ttl_left}, 'and the stale ones come after');
    cmp_ok(abs($known->{created} - time), '<', 1000, 'created is a time of day');
    ok($cache->touch('known', ttl => 7200, metadata => 'm'), 'touch');
    is($cache->lookup('known')->{metadata}, 'm', 'new metadata');
    cmp_ok($cache->lookup('known')->{ttl_left}, '>', 3601, 'new times');
    ok(!$cache->touch('known', if_serial => $serial + 1_000_000, ttl => 1), 'of another serial');
    ok(!$cache->touch('absent', ttl => 1), 'of none');
    $cache->put(for_ever => 1);
    is($cache->lookup('for_ever')->{ttl_left}, undef, 'forever is undef');
    $cache->put_negative(nothing => 404, ttl => 60);
    is($cache->get('nothing'), undef, 'a negative entry misses');
    is_deeply([@{ $cache->lookup('nothing') }{qw(state reason)}], ['negative', 404], 'and says why');
};

subtest 'counters' => sub {
    is($cache->increment('n'), 1, 'from nothing');
    is($cache->increment('n', 5), 6, 'by five');
    is($cache->increment('n', -10, min => 0), 0, 'not below');
    is($cache->increment('n', 10, max => 3), 3, 'not above');
    is($cache->increment('other', 1, start => 100, ttl => 60, tags => ['t']), 101, 'from a start');
    is(unpack('q<', $cache->get('other')), 101, 'eight bytes');
};

subtest 'purges' => sub {
    $cache->put("/shop/$_" => $_, tags => ['shop', $_ % 2 ? 'odd' : 'even'], ttl => 60, stale => 60) for 1 .. 4;
    my $moment = $cache->now;
    $cache->purge_tag('odd');
    is_deeply([map { defined $cache->get("/shop/$_") ? 1 : 0 } 1 .. 4], [0, 1, 0, 1], 'by tag');
    $cache->put('/shop/1' => 'late', tags => ['odd'], begun_in => $moment);
    is($cache->get('/shop/1'), undef, 'what was begun before a purge is purged');
    $cache->purge_prefix('/shop/2', soft => 1);
    is($cache->lookup('/shop/2')->{state}, 'stale', 'softly');
    $cache->purge_prefix('/shop/');
    is($cache->get('/shop/4'), undef, 'by prefix');
    $cache->purge_all;
    is($cache->get('n'), undef, 'everything');
    $cache->sweep;
    $cache->sync;
};

subtest 'iteration' => sub {
    $cache->put("key $_" => "value $_") for 1 .. 10;
    is_deeply([sort $cache->keys], [sort map { "key $_" } 1 .. 10], 'keys');
    my $walk = $cache->walk;
    my %met;
    while (my $entry = $walk->next) {
        $met{ $entry->{key} } = $entry->{value};
    }
    is_deeply(\%met, { map { ("key $_" => "value $_") } 1 .. 10 }, 'entries');
    is($walk->next, undef, 'the end stays the end');
    $cache->put_negative(nothing => 1);
    my $all = $cache->walk(all => 1);
    my $count = 0;
    $count++ while $all->next;
    is($count, 11, 'negative ones, too');
    is($cache->clear, 11, 'clear says how many');
    is($cache->stats->{entries}, 0, 'numbers');
};

subtest 'reopening finds all entries' => sub {
    $cache->put(kept => 'yes');
    my $second = Cache::Eyewall->open(path => $path);
    is($second->get('kept'), 'yes', 'by another object');
    $_->close for $cache, $second, $second;
    is_error(sub { $cache->get('kept') }, 'argument', 'closed is closed');
    my $third = Cache::Eyewall->open(path => $path, must_exist => 1);
    is($third->get('kept'), 'yes', 'after all have left it');
    my $reader = Cache::Eyewall->open(path => $path, read_only => 1);
    is($reader->get('kept'), 'yes', 'for reading only');
    my $anonymous = Cache::Eyewall->anonymous(size => 1 << 20);
    $anonymous->put(a => 1);
    is($anonymous->get('a'), 1, 'without a name');
};

subtest 'permissions' => sub {
    my $shared = path();
    my $mode = umask 077;
    Cache::Eyewall->open(path => $shared, size => 1 << 20, mode => 0660, group => (split ' ', $()[0]);
    umask $mode;
    is((stat $shared)[2] & 0777, 0660, 'permission bits, whatever the umask');
    my $private = path();
    Cache::Eyewall->open(path => $private, size => 1 << 20);
    is((stat $private)[2] & 0777, 0600, 'nobody else, where nothing is said');
};

done_testing;
