package Driver::Store::Pages;

# Stores in one mapped file of pages of a fixed size.
use v5.26;
use warnings;

our @STORES = (
    {
        name => 'Cache::FastMmap', modules => ['Cache::FastMmap'], package => 'libcache-fastmmap-perl', is_capped => 1,
        open => sub {
            my ($request, $folder) = @_;
            my $configuration = $request->{configuration};
            my $cache = Cache::FastMmap->new(
                share_file => "$folder/share", unlink_on_exit => 0,
                num_pages => $configuration->{pages}, page_size => $configuration->{page_bytes},
                expire_time => $configuration->{expiry_seconds} // 0,
                # Bytes are stored unchanged; the default, Storable, serialises all other values.
                serializer => $request->{is_structured} ? 'storable' : '',
            );
            return { set => sub { $cache->set($_[0], $_[1]) }, get => sub { $cache->get($_[0]) } };
        },
    },
    {
        name => 'Cache::Mmap', modules => ['Cache::Mmap'], package => 'libcache-mmap-perl', is_capped => 1,
        open => sub {
            my ($request, $folder) = @_;
            my $configuration = $request->{configuration};
            my $cache = Cache::Mmap->new("$folder/share", {
                buckets => $configuration->{buckets} // $configuration->{pages},
                bucketsize => $configuration->{bucket_bytes} // $configuration->{page_bytes}, pagesize => 4096,
                strings => $request->{is_structured} ? 0 : 1, expiry => $configuration->{expiry_seconds} // 0,
            });
            return { set => sub { $cache->write($_[0], $_[1]) }, get => sub { scalar $cache->read($_[0]) } };
        },
    },
    {
        name => 'IPC::MM',
        absent => "it wants the library OSSP mm, which distributions don't carry any more; there is nothing to install",
    },
);

1;
