# Scalars whose bytes lie in the volume.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use B ();
use Cache::Eyewall;

my $cache = Cache::Eyewall->open(path => path(), size => 1 << 20);
my $value = 'pinned value ' x 100;
$cache->put(page => $value);

is($cache->get_pinned('other'), undef, 'nothing is there');
my $page = $cache->get_pinned('page');
is(ref $page, 'SCALAR', 'a reference to a scalar');
is($$page, $value, 'has the value');
is(B::svref_2object($page)->LEN, 0, 'the bytes are not Perl\'s');
ok(!eval { $$page = 'new'; 1 }, 'it can only be read');
like($@, qr/read-only/, 'as Perl says');
ok(!eval { substr($$page, 0, 1) = 'x'; 1 }, 'in any part');
is($cache->stats->{pins}, 1, 'a pin is held');

my $copy = $$page;
$copy .= ' changed';
is($$page, $value, 'a copy is a copy');
like($$page, qr/value \z/, 'it can be matched');
is(length(join '', $$page, $$page), 2 * length $value, 'and joined');

$cache->put(page => 'another');
$cache->put("filler $_" => 'x' x 1000) for 1 .. 3000;
is($$page, $value, 'the bytes stay, whatever is put and evicted');
my $second = $page;
undef $page;
is($$second, $value, 'as long as there is a reference');
undef $second;
is($cache->stats->{pins}, 0, 'and then the pin is given up');

$cache->put(page => $value);
$page = $cache->get_pinned('page');
$cache->close;
is($$page, $value, 'it outlives the closing of its cache');
undef $page;

# Global destruction frees these in any order.
our $last_cache = Cache::Eyewall->anonymous(size => 1 << 20);
$last_cache->put(page => $value);
our $last_page = $last_cache->get_pinned('page');
our ($last_claim, $last_walk) = ($last_cache->claim('page'), $last_cache->walk);

done_testing;
