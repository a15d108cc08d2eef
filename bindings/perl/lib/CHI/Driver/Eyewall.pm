package CHI::Driver::Eyewall;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall;
use Moo;
extends 'CHI::Driver';

# Options of Cache::Eyewall->open.
my @options = qw(path size entry_bytes_max entry_size_hint mode group lock_deadline tier_bytes tier_folder);

has $_ => (is => 'ro') for @options;
# Or an open cache.
has cache => (is => 'lazy');

# Separates the namespace from the key.
use constant SEPARATOR => "\0";

sub _build_cache {
    my ($self) = @_;
    return Cache::Eyewall->open(map { defined $self->$_ ? ($_ => $self->$_) : () } @options);
}

# CHI has turned the key into bytes already, but not the namespace.
sub stored {
    my ($self, $key) = @_;
    my $namespace = $self->namespace;
    utf8::encode($namespace) if utf8::is_utf8($namespace);
    return $namespace . SEPARATOR . $key;
}

sub fetch {
    my ($self, $key) = @_;
    return $self->cache->get($self->stored($key));
}

sub fetch_multi_hashref {
    my ($self, $keys) = @_;
    my %found;
    @found{@$keys} = $self->cache->get_many(map { $self->stored($_) } @$keys);
    return \%found;
}

# CHI stores the expiry time in the value. The volume gets it, too, so that expired entries make room.
sub store {
    my ($self, $key, $data, $expires_in) = @_;
    $self->cache->put($self->stored($key), $data, defined $expires_in && $expires_in > 0 ? (ttl => $expires_in) : ());
    return;
}

sub remove {
    my ($self, $key) = @_;
    $self->cache->remove($self->stored($key));
    return;
}

sub clear {
    my ($self) = @_;
    $self->cache->purge_prefix($self->stored(''));
    return;
}

sub get_keys {
    my ($self) = @_;
    my $prefix = $self->stored('');
    return map { substr $_, length $prefix } grep { index($_, $prefix) == 0 } $self->cache->keys;
}

sub get_namespaces {
    my ($self) = @_;
    # Entries of other programs may have no namespace.
    my %namespaces = map { (split /\0/, $_, 2)[0] => 1 } grep { index($_, SEPARATOR) >= 0 } $self->cache->keys;
    return keys %namespaces;
}

1;

__END__

=encoding utf8

=head1 NAME

CHI::Driver::Eyewall - Cache::Eyewall for CHI

=head1 SYNOPSIS

    use CHI;

    my $chi = CHI->new(driver => 'Eyewall', path => '/dev/shm/pages', size => 64 << 20, namespace => 'pages', expires_in => '10 min');
    $chi->set('/about', { title => 'About' });
    my $about = $chi->get('/about');

=head1 DESCRIPTION

A driver of L<CHI> that stores entries in a volume of L<Cache::Eyewall>. All namespaces share the volume: give all of them the
same C<path>. The volume evicts entries at its cap, so you don't need CHI's C<max_size>.

=head1 OPTIONS

The options of C<< Cache::Eyewall->open >>: C<path>, C<size>, C<entry_bytes_max>, C<entry_size_hint>, C<mode>, C<group>,
C<lock_deadline>, C<tier_bytes>, C<tier_folder>. Or C<cache>, an open cache.

=head1 METHODS

=over 4

=item fetch, fetch_multi_hashref, store, remove, clear, get_keys, get_namespaces

The methods that CHI calls. C<get_keys> and C<get_namespaces> iterate over the whole volume.

=item stored(KEY)

Returns the key in the volume: namespace, zero byte, key.

=back

=cut
