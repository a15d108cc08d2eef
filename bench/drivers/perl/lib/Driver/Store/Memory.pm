package Driver::Store::Memory;

# Stores in memory: in System V shared memory, in another process, in this one.
use v5.26;
use warnings;
use Driver::Store::Memcached;
use Storable qw(freeze thaw);

our @STORES = (
    {
        name => 'Cache::SharedMemoryCache', modules => ['Cache::SharedMemoryCache'], package => 'libcache-cache-perl libipc-sharelite-perl',
        version => sub { "Cache::Cache $Cache::Cache::VERSION" },
        open => \&shared_memory,
    },
    {
        name => 'Cache::MemoryCache', modules => ['Cache::MemoryCache'], package => 'libcache-cache-perl',
        version => sub { "Cache::Cache $Cache::Cache::VERSION" },
        open => sub {
            my $cache = Cache::MemoryCache->new({ namespace => 'modules' });
            return { set => sub { $cache->set($_[0], $_[1]) }, get => sub { $cache->get($_[0]) } };
        },
    },
    {
        name => 'memcached (Cache::Memcached::Fast)', modules => ['Cache::Memcached::Fast'],
        package => 'libcache-memcached-fast-perl', program => 'memcached',
        version => sub { Driver::Store::Memcached::version() . ", Cache::Memcached::Fast $_[0]" },
        serve => sub {
            my ($request, $folder) = @_;
            return Driver::Store::Memcached->start($folder, $request->{configuration}{bytes});
        },
        open => sub {
            my ($request, $folder) = @_;
            my $socket = Driver::Store::Memcached::socket_in($folder);
            my $client = Cache::Memcached::Fast->new({ servers => [$socket], compress_threshold => -1 });
            return { set => sub { $client->set($_[0], $_[1]) or die "memcached refused a value\n" }, get => sub { $client->get($_[0]) } };
        },
    },
    {
        name => 'hash (Perl)', kind => 'reference',
        open => sub {
            my %entries;
            return { set => sub { $entries{ $_[0] } = $_[1] }, get => sub { $entries{ $_[0] } } };
        },
    },
    {
        # The cost of serialising alone; bytes need none.
        name => 'Storable (Perl)', kind => 'reference', modules => ['Storable'], package => 'perl', is_for_structured_only => 1,
        open => sub {
            my %entries;
            return {
                set => sub { $entries{ $_[0] } = freeze($_[1]) },
                get => sub { my $frozen = $entries{ $_[0] }; return defined $frozen ? thaw($frozen) : undef },
            };
        },
    },
);

# All users of Cache::SharedMemoryCache on a machine share one segment, under a fixed key, and nothing removes it. To
# leave their data alone, and to leave none of ours behind, this driver uses a key of its own, and removes the segment
# at the end.
sub shared_memory {
    my ($request) = @_;
    my $key = $$;
    no warnings 'redefine';
    *Cache::SharedMemoryBackend::_Instantiate_Share = sub { IPC::ShareLite->new(-key => $key, -create => 'yes', -destroy => 'no') };
    my $cache = Cache::SharedMemoryCache->new({ namespace => 'modules' });
    return {
        set => sub { $cache->set($_[0], $_[1]) }, get => sub { $cache->get($_[0]) },
        segment => bless({ key => $key }, 'Driver::Store::Memory::Segment'),
    };
}

package Driver::Store::Memory::Segment {
    sub DESTROY {
        my ($self) = @_;
        IPC::ShareLite->new(-key => $self->{key}, -create => 'no', -destroy => 'yes');
    }
}

1;
