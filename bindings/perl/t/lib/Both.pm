package Both;
# Runs a test with this class and, if it is installed, with Cache::FastMmap, which shows that the expectations are its own.
use v5.16;
use warnings;
use Exporter 'import';
use EyewallTest;
use Cache::Eyewall::FastMmap ();
use Test::More;

our @EXPORT = qw(both ours);

# 1.57 is the first version with today's interface, except where a test names a later one.
my $original = eval { require Cache::FastMmap; Cache::FastMmap->VERSION('1.57'); $Cache::FastMmap::VERSION };
diag($original ? "held against Cache::FastMmap $original" : 'Cache::FastMmap 1.57 is not installed: nothing to hold our results against');

# Calls code with a new cache of these options (pages of 64 KiB), and expects the same result of both classes.
sub both {
    my ($name, $options, $code, $expected, $since) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for my $class ('Cache::Eyewall::FastMmap', $original && $original >= ($since // 0) ? 'Cache::FastMmap' : ()) {
        my $cache = $class->new(share_file => path(), init_file => 1, unlink_on_exit => 1, num_pages => 17, %$options);
        is_deeply([$code->($cache)], $expected, "$name ($class)");
    }
    return;
}

# A cache of this class.
sub ours { return Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '2m', @_) }

1;
