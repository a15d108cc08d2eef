# A cache as a hash.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall::Hash;

my $path = path();
tie my %pages, 'Cache::Eyewall::Hash', path => $path, size => 1 << 20, ttl => 3600, tags => ['pages'];
ok(!%pages, 'empty');
$pages{a} = 1;
$pages{b} = '';
is($pages{a}, 1, 'a value');
ok(exists $pages{b} && !exists $pages{c}, 'exists');
is($pages{c}, undef, 'nothing');
ok(%pages, 'not empty');
is_deeply([sort keys %pages], ['a', 'b'], 'keys');
is_deeply({%pages}, { a => 1, b => '' }, 'all');
is(delete $pages{a}, 1, 'delete gives the value');
is(delete $pages{a}, undef, 'once');
is_error(sub { $pages{d} = [1] }, 'argument', 'a reference is refused');
my $cache = Cache::Eyewall->open(path => $path);
my $known = $cache->lookup('b');
ok($known->{ttl_left} > 3000 && $known->{tags}[0] eq 'pages', 'with options');
tie my %same, 'Cache::Eyewall::Hash', cache => $cache;
is_deeply([each %same], ['b', ''], 'another hash of the same volume');
is_error(sub { tie my %other, 'Cache::Eyewall::Hash', cache => $cache, size => 5 }, 'argument', 'which takes no options');
%pages = ();
is_deeply([keys %same], [], 'cleared');

done_testing;
