# Repeated operations need no more memory than one.
use v5.16;
use warnings;
use Test::More;
BEGIN { plan skip_all => 'this system has no /proc/self/statm' unless -r '/proc/self/statm' }
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();
use POSIX ();
use constant { TIMES => 10_000, PAGE => POSIX::sysconf(POSIX::_SC_PAGESIZE()), LEAST => 40 };

my $cache = Cache::Eyewall->anonymous(size => 1 << 20, lock_deadline => 0.001);
my $shared = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '1m');
my $raw = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '1m', serializer => '');
my $wide = "caf\xe9" x 20;
utf8::upgrade($wide);

# The private memory of this process.
sub private_bytes {
    open my $file, '<', '/proc/self/statm' or die $!;
    my (undef, $resident, $mapped) = split ' ', <$file>;
    return ($resident - $mapped) * PAGE;
}

sub keeps_nothing {
    my ($name, $work) = @_;
    # First come one-time allocations and fragmentation.
    $work->() for 1 .. TIMES / 4;
    my $before = private_bytes();
    $work->() for 1 .. TIMES;
    my $grown = private_bytes() - $before;
    cmp_ok($grown, '<', LEAST * TIMES, "$name: less than @{[LEAST]} bytes each time");
}

sub dies(&) { my ($code) = @_; eval { $code->(); 1 } and die 'it did not die' }

$cache->put(k => 'value ' x 20, ttl => 3600, metadata => 'm', tags => ['a', 'b']);
keeps_nothing(get            => sub { my $value = $cache->get('k'); $cache->get('absent'); $cache->peek('k') });
keeps_nothing('many'         => sub { my @values = $cache->get_many('k', 'absent', 'k') });
keeps_nothing(lookup         => sub { $cache->lookup('k') });
keeps_nothing(pinned         => sub { my $page = $cache->get_pinned('k'); length $$page });
keeps_nothing(put            => sub { $cache->put($wide => $wide, ttl => 60, metadata => $wide, tags => ['t', 'u']) });
keeps_nothing(claim          => sub { my $claim = $cache->claim('c'); $claim->value; $claim->put('v' x 200); });
keeps_nothing('left claim'   => sub { $cache->claim('c') });
keeps_nothing(fill           => sub { $cache->fill(k => sub { die }); $cache->fill(none => sub { return }) });
keeps_nothing(writer         => sub { my $writer = $cache->writer('w'); $writer->write('piece'); $cache->follow('w')->read; $writer->commit });
keeps_nothing(walk           => sub { my $walk = $cache->walk; $walk->next });
keeps_nothing('a tied value' => sub { tie my $tied, 'Tied'; $cache->put($tied => $tied) });
keeps_nothing('wide keys'    => sub { dies { $cache->get("\x{263a}") } });
keeps_nothing('refusals'     => sub { dies { $cache->put(k => 'x' x 500_000) } });
keeps_nothing('wrong options' => sub { dies { $cache->put($wide => 1, tags => ['t'], metadata => $wide, none => 1) } });
keeps_nothing('fills that die' => sub { dies { $cache->fill(dying => sub { die "no\n" }) } });
keeps_nothing('set and get'  => sub { $raw->set($wide => $wide, '1h'); $raw->get($wide); $raw->get('absent') });
keeps_nothing('structures'   => sub { $shared->set(k => { list => [1 .. 5] }); $shared->get('k') });
keeps_nothing('get_and_set'  => sub { $shared->get_and_set(n => sub { ($_[1] // 0) + 1 }) });
keeps_nothing('changes that die' => sub { dies { $shared->get_and_set(n => sub { die "no\n" }) } });
keeps_nothing('get_keys'     => sub { my @entries = $raw->get_keys(2) });
keeps_nothing('pages'        => sub { $raw->multi_set(page => { a => 1, b => 2 }); $raw->multi_get(page => ['a', 'b', 'c']) });
is($cache->stats->{pins}, 0, 'no entry is held');

package Tied { sub TIESCALAR { bless [] } sub FETCH { 'x' x 200 } }

package main;
done_testing;
