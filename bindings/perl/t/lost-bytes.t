# With survive_sigbus, reading an entry with lost bytes throws an error, and never returns zeros.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();
use constant SIZE => 4 << 20;

my $value = 'value ' x 30_000;

# A volume with one large entry: its path, and the end of the value in the file.
sub volume {
    my ($path, %put) = (path(), @_);
    my $cache = Cache::Eyewall->open(path => $path, size => SIZE, entry_bytes_max => SIZE / 4, survive_sigbus => 1);
    $cache->put(key => $value, %put);
    open my $file, '<:raw', $path or die "$path: $!";
    my $at = index do { local $/; <$file> }, $value;
    die 'the value is not found in the file' if $at < 0;
    return ($cache, $path, $at + length $value);
}

# Truncates the file inside the value. The entry is found, and copying its value misses the lost bytes.
sub cut {
    my ($path, $end) = @_;
    truncate $path, $end - 100_000 or die "$path: $!";
    return;
}

# The error of code that reads the entry; the code may get another object of the same volume.
sub is_told {
    my ($name, $work, $object_of, @put) = @_;
    my ($cache, $path, $end) = volume(@put);
    my $object = $object_of ? $object_of->($path) : $cache;
    cut($path, $end);
    ok(!eval { $work->($object); 1 }, "$name: it fails");
    my $error = $@;
    is(ref $error && $error->name, 'failed', "$name: by a name") or diag $error;
    like($error, qr/\Q$path\E/, "$name: and says which volume");
    is_error(sub { $object->get('other') }, 'failed', "$name: as every later call does");
}

is_told(get        => sub { $_[0]->get('key') });
is_told(peek       => sub { $_[0]->peek('key') });
is_told(get_many   => sub { my @values = $_[0]->get_many('other', 'key', 'key') });
is_told(lookup     => sub { $_[0]->lookup('key') });
is_told(claim      => sub { $_[0]->claim('key') });
is_told(fill       => sub { $_[0]->fill(key => sub { fail('not asked') }) });
is_told(walk       => sub { $_[0]->walk->next });
is_told('a stale one' => sub {
    $_[0]->purge_all(soft => 1);
    my ($state, $flight) = $_[0]->fill_begin('key', 0, 1);
    is($state, 'ours', 'a stale one: is to be made anew');
    $_[0]->fill_begin('key', 0, 1);
}, undef, ttl => 3600, stale => 3600);

my @options = (cache_size => SIZE, serializer => '', survive_sigbus => 1);
my $plain = sub { Cache::Eyewall::FastMmap->new(share_file => $_[0], @options) };
my $reading = sub { Cache::Eyewall::FastMmap->new(share_file => $_[0], @options, read_cb => sub { fail('not asked') }) };
is_told('get, in FastMmap'            => sub { $_[0]->get('key') }, $plain);
is_told('get with read_cb'            => sub { $_[0]->get('key') }, $reading);
is_told('get_and_set'                 => sub { $_[0]->get_and_set(key => sub { fail('not asked') }) }, $plain);
is_told('get_and_remove'              => sub { $_[0]->get_and_remove('key') }, $plain);
is_told('get_keys with values'        => sub { my @entries = $_[0]->get_keys(2) }, $plain);
is_told('a get that asks for modseqs' => sub { $_[0]->get('key', { modseq => \my $modseq }) }, $plain);

subtest 'an iteration ends with an error' => sub {
    my ($cache, $path) = volume();
    my $walk = $cache->walk;
    truncate $path, 0 or die $!;
    is_error(sub { 1 while $walk->next }, 'failed', 'walk');
    is_error(sub { my @keys = $cache->keys }, 'failed', 'keys');
};

subtest 'earlier copies are intact' => sub {
    my ($cache, $path) = volume();
    my $claim = $cache->claim('key');
    truncate $path, 0 or die $!;
    is($claim->value, $value, 'the value of a claim');
    is_error(sub { $claim->put('new') }, 'failed', 'which can store nothing');
};

subtest 'pinned bytes read as zeros' => sub {
    my ($cache, $path, $end) = volume();
    my $pinned = $cache->get_pinned('key');
    cut($path, $end);
    my $copy = $$pinned;
    is(length $copy, length $value, 'as many bytes');
    is(substr($copy, -10), "\0" x 10, 'zeros');
    is_error(sub { $cache->contains('key') }, 'failed', 'which any call says');
};

subtest 'another file opens' => sub {
    my ($cache, $path) = volume();
    truncate $path, 0 or die $!;
    is_error(sub { $cache->get('key') }, 'failed', 'lost');
    $cache->close;
    unlink $path or die $!;
    my $new = Cache::Eyewall->open(path => $path, size => SIZE);
    ok($new->put(key => 1) && $new->get('key') eq '1', 'after it was closed, and the file removed');
};

done_testing;
