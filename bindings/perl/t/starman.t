# Starman: the application opens the cache before the fork, and all workers share it, while they are replaced.
use v5.16;
use warnings;
use Test::More;
BEGIN { plan skip_all => 'Starman is not installed' unless eval { require Starman; require Plack::Loader; 1 } }
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use IO::Socket::UNIX;

my $path = path();
my $socket = path();
my $cache = Cache::Eyewall->open(path => $path, size => 4 << 20);

# Counts requests, puts values on request, and returns its process.
my $application = sub {
    my ($environment) = @_;
    my ($what, $key, $value) = $environment->{PATH_INFO} =~ m{\A/(\w+)/?(\w*)/?(\w*)} or return [404, [], []];
    $cache->increment('requests');
    my $answer = $what eq 'put' ? $cache->put($key, $value) : $what eq 'get' ? $cache->get($key) // '' : $$;
    kill KILL => $$ if $what eq 'die';
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $answer], [$answer]];
};

my $server = child(sub {
    open STDERR, '>', '/dev/null' or die $!;
    Plack::Loader->load('Starman', listen => [$socket], workers => 3, max_requests => 5, argv => [])->run($application);
    1;
});

# Runs however the test ends.
END { kill TERM => $server if $server }

# The body of a response, over a connection of its own; undef if it broke off.
sub ask {
    my ($address) = @_;
    my $connection = IO::Socket::UNIX->new(Peer => $socket) or return;
    print {$connection} "GET $address HTTP/1.0\r\n\r\n";
    local $/;
    my $answer = <$connection> // '';
    return $answer =~ /\AHTTP\/1.. 200 .*?\r\n\r\n(.*)\z/s ? $1 : undef;
}

# The server's socket shows that it runs; a server that ends instead is noticed.
select undef, undef, undef, 0.02 until -S $socket && defined ask('/who') || waitpid($server, 1) == $server;

my %workers;
for my $i (1 .. 40) {
    is(defined ask("/put/key$i/value$i") ? 1 : 0, 1, "put $i") if $i % 10 == 1;
    ask("/put/key$i/value$i") if $i % 10 != 1;
    $workers{ ask('/who') // '' } = 1;
}
cmp_ok(scalar(keys %workers), '>', 3, 'workers come and go');
is(scalar(grep { (ask("/get/key$_") // '') eq "value$_" } 1 .. 40), 40, 'what one has put, all get');
is(scalar(grep { ($cache->get("key$_") // '') eq "value$_" } 1 .. 40), 40, 'this process, too');
ask('/die') for 1 .. 3;
is(ask('/get/key7'), 'value7', 'workers that are killed leave all in order');
cmp_ok($cache->increment('requests', 0), '>=', 124, 'all have counted together');

kill TERM => $server;
waitpid $server, 0;
undef $server;
is($cache->get('key7'), 'value7', 'the cache outlives the server');

done_testing;
