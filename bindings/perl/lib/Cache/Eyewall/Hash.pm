package Cache::Eyewall::Hash;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall;
use Scalar::Util ();

sub CLONE_SKIP { 1 }

sub TIEHASH {
    my ($class, %options) = @_;
    my $self = { put => [map { exists $options{$_} ? ($_ => delete $options{$_}) : () } qw(ttl tags)] };
    my $cache = delete $options{cache};
    Cache::Eyewall::Error->argument('the option cache excludes the options of open: remove cache, or ' . join ', ', sort keys %options) if $cache && %options;
    $self->{cache} = $cache // Cache::Eyewall->open(%options);
    return bless $self, $class;
}

sub FETCH  { $_[0]{cache}->get($_[1]) }
sub EXISTS { $_[0]{cache}->contains($_[1]) }
sub CLEAR  { $_[0]{cache}->clear; return }
sub SCALAR { $_[0]{cache}->stats->{entries} }

sub STORE {
    my ($self, $key, $value) = @_;
    $self->{cache}->put($key, $value, @{ $self->{put} });
    return;
}

# Returns the value, as Perl's delete does. The claim keeps others from deleting the same value.
sub DELETE {
    my ($self, $key) = @_;
    my $claim = $self->{cache}->claim($key);
    my $value = $claim->value;
    $claim->remove;
    return $value;
}

sub FIRSTKEY {
    my ($self) = @_;
    $self->{walk} = $self->{cache}->walk;
    return $self->NEXTKEY;
}

sub NEXTKEY {
    my ($self) = @_;
    my $entry = $self->{walk} && $self->{walk}->next;
    return $entry->{key} if $entry;
    delete $self->{walk};
    return undef;
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::Hash - a cache as a hash

=head1 SYNOPSIS

    use Cache::Eyewall::Hash;

    tie my %pages, 'Cache::Eyewall::Hash', path => '/dev/shm/pages', size => 64 << 20, ttl => 3600;
    $pages{'/about'} = '<h1>About</h1>';
    print $pages{'/about'} // 'evicted';

=head1 DESCRIPTION

Ties a hash to a volume of L<Cache::Eyewall>. Keys and values are bytes; a reference is an error. The hash is a cache, so an entry
may be gone when you read it.

=head1 OPTIONS

The options of C<< Cache::Eyewall->open >>; or C<cache>, an open cache. The options C<ttl> and C<tags> apply to all entries that
are stored.

=head1 OPERATIONS ON THE HASH

C<exists> doesn't keep an entry from eviction. C<delete> returns the value. C<keys> and C<each> iterate over all entries, and may
or may not meet those that are stored meanwhile. C<%hash = ()> clears the volume, including entries of other programs. C<scalar
%hash> is the approximate number of entries.

=cut
