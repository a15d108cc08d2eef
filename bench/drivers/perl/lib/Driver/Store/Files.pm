package Driver::Store::Files;

# The file caches of Cache::Cache: a file for each entry, named by a hash of the key, three directories deep. They wrap
# values of all kinds into an object, and serialise it by Storable.
use v5.26;
use warnings;

our @STORES = (
    {
        name => 'Cache::FileCache', modules => ['Cache::FileCache'], package => 'libcache-cache-perl',
        version => sub { "Cache::Cache $Cache::Cache::VERSION" },
        open => sub { opened('Cache::FileCache', @_) },
    },
    {
        name => 'Cache::SizeAwareFileCache', modules => ['Cache::SizeAwareFileCache'], package => 'libcache-cache-perl', is_capped => 1,
        version => sub { "Cache::Cache $Cache::Cache::VERSION" },
        open => sub {
            my ($request) = @_;
            return opened('Cache::SizeAwareFileCache', @_, max_size => $request->{configuration}{bytes});
        },
    },
);

sub opened {
    my ($class, $request, $folder, %more) = @_;
    my $expiry = $request->{configuration}{expiry_seconds};
    my $cache = $class->new({
        cache_root => $folder, namespace => 'modules', ($expiry ? (default_expires_in => $expiry) : ()), %more,
    });
    return { set => sub { $cache->set($_[0], $_[1]) }, get => sub { $cache->get($_[0]) } };
}

1;
