package Driver::Store::Eyewall;

# Our own binding: bindings/perl.
use v5.26;
use warnings;
use Storable qw(freeze thaw);

use constant HOW => 'Cache::Eyewall is missing: install it as bindings/perl/README.md says';

our @STORES = (
    {
        name => 'Cache::Eyewall', modules => ['Cache::Eyewall'], how => HOW, is_capped => 1,
        open => sub {
            my ($request, $folder) = @_;
            my $configuration = $request->{configuration};
            my $cache = Cache::Eyewall->open(path => "$folder/volume", size => $configuration->{bytes});
            my @options = $configuration->{expiry_seconds} ? (ttl => $configuration->{expiry_seconds}) : ();
            return { set => sub { $cache->put($_[0], $_[1], @options) }, get => sub { $cache->get($_[0]) } }
                unless $request->{is_structured};
            return {
                set => sub { $cache->put($_[0], freeze($_[1]), @options) },
                get => sub { my $frozen = $cache->get($_[0]); return defined $frozen ? thaw($frozen) : undef },
            };
        },
    },
    {
        name => 'Cache::Eyewall::FastMmap', modules => ['Cache::Eyewall::FastMmap'], how => HOW, is_capped => 1,
        open => sub {
            my ($request, $folder) = @_;
            my $configuration = $request->{configuration};
            my $cache = Cache::Eyewall::FastMmap->new(
                share_file => "$folder/share", cache_size => $configuration->{bytes},
                expire_time => $configuration->{expiry_seconds} // 0,
                serializer => $request->{is_structured} ? 'storable' : '',
            );
            return { set => sub { $cache->set($_[0], $_[1]) }, get => sub { $cache->get($_[0]) } };
        },
    },
);

1;
