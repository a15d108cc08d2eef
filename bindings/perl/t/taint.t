#!perl -T
# Under -T, data from a volume is tainted.
use v5.16;
use warnings;
use Test::More;
use Scalar::Util 'tainted';
use Cache::Eyewall;

plan skip_all => 'this Perl knows no taint' unless ${^TAINT};

my $cache = Cache::Eyewall->anonymous(size => 1 << 20);
$cache->put(k => 'v', metadata => 'm', tags => ['t'], ttl => 60);
ok(tainted($cache->get('k')), 'get');
ok(tainted(($cache->get_many('k'))[0]), 'get_many');
ok(tainted(${ $cache->get_pinned('k') }), 'get_pinned');
my $known = $cache->lookup('k');
ok(tainted($known->{$_}), "lookup: $_") for qw(value metadata key);
ok(tainted($known->{tags}[0]), 'lookup: tags');
ok(!tainted($known->{serial}), 'numbers are not');
ok(tainted($cache->claim('k')->value), 'claim');
my $writer = $cache->writer('w');
$writer->write('piece');
ok(tainted($cache->follow('w')->read), 'follow');

done_testing;
