package Both;
# Runs a test with our class; and, where it is installed, with Cache::FastMmap, which shows that what is expected is what that does.
use v5.16;
use warnings;
use Exporter 'import';
use EyewallTest;
use Cache::Eyewall::FastMmap ();
use Test::More;

our @EXPORT = qw(both ours);

# 1.57 is the first whose interface is that of today, but for what tests say that they want a later one for.
my $original = eval { require Cache::FastMmap; Cache::FastMmap->VERSION('1.57'); $Cache::FastMmap::VERSION };
diag($original ? "held against Cache::FastMmap $original" : 'Cache::FastMmap 1.57 is not installed: nothing to hold our results against');

# What code gives, that is called with a new cache of these options (pages of 64 KiB), is what is expected, of both.
sub both {
    my ($name, $options, $code, $expected, $since) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for my $class ('Cache::Eyewall::FastMmap', $original && $original >= ($since // 0) ? 'Cache::FastMmap' : ()) {
        my $cache = $class->new(share_file => path(), init_file => 1, unlink_on_exit => 1, num_pages => 17, %$options);
        is_deeply([$code->($cache)], $expected, "$name ($class)");
    }
    return;
}

# A cache of ours.
sub ours { return Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '2m', @_) }

1;
