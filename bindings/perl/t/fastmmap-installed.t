# Code that uses the name Cache::FastMmap gets this class.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall::FastMmap;

# As in code that can't be edited.
ok(eval "use Cache::FastMmap 1.50; 1", 'it is loaded') or diag $@;
my $cache = Cache::FastMmap->new(share_file => path(), cache_size => '1m');
isa_ok($cache, 'Cache::FastMmap');
isa_ok($cache, 'Cache::Eyewall::FastMmap');
$cache->set(k => [1]);
is_deeply($cache->get('k'), [1], 'and works');

my @perl = ($^X, map { "-I$_" } @INC);
my $late = qx{@perl -e 'BEGIN { \$INC{"Cache/FastMmap.pm"} = "its own" } eval "use Cache::Eyewall::FastMmap; 1" or print \$\@->message' 2>&1};
like($late, qr/loaded already/, 'who comes late is told');
my $by_hand = qx{@perl -e 'use Cache::Eyewall::FastMmap (); print exists \$INC{"Cache/FastMmap.pm"} ? "taken" : "left alone"' 2>&1};
is($by_hand, 'left alone', 'the name can be left alone');

done_testing;
