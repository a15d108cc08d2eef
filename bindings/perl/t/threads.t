# Under ithreads, objects stay in their thread, and pinned scalars are shared.
use v5.16;
use warnings;
use Config;
BEGIN {
    if (!$Config{useithreads}) {
        print "1..0 # SKIP this Perl has no threads\n";
        exit 0;
    }
}
use threads;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();

my $path = path();
my $cache = Cache::Eyewall->open(path => $path, size => 1 << 20);
my $other = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '1m');
$cache->put(page => 'value ' x 100);
my $page = $cache->get_pinned('page');
my $claim = $cache->claim('claimed');
my $writer = $cache->writer('written');
my $follower = $cache->follow('written');

my @said = threads->create({ context => 'list' }, sub {
    my $own = Cache::Eyewall->open(path => $path);
    $own->put(thread => threads->tid);
    return (ref $cache, ref $claim, ref $other, ref $writer, ref $follower, $$page, $own->get('page'));
})->join;
is_deeply(\@said, [('SCALAR') x 5, ('value ' x 100) x 2], 'a thread has the pinned scalar, and opens the volume itself');
is($cache->get('thread'), 1, 'what it put is there');
is($$page, 'value ' x 100, 'the pin is still held');
ok($claim->put(1), 'and so is the claim');
$writer->write('piece');
ok($writer->commit && $follower->read eq 'piece', 'and the writer goes on');
undef $_ for $follower, $page;
is($cache->stats->{pins}, 0, 'until both have freed it');

done_testing;
