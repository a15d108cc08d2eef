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
    Cache::Eyewall::Error->argument('a cache is open already, and takes no options: ' . join ', ', sort keys %options) if $cache && %options;
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

# The value, since that is what Perl's delete gives; by a claim, so that nobody else deletes the same.
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

Ties a hash to a volume of L<Cache::Eyewall>. Keys and values are bytes; a reference is refused. It is a cache: what was stored may be gone.

=head1 OPTIONS

Those of C<< Cache::Eyewall->open >>; or C<cache>, one that is open. And C<ttl> and C<tags>, for all that is stored.

=head1 WHAT PERL'S WORDS DO

C<exists> doesn't count as use. C<delete> gives the value. C<keys> and C<each> walk over all entries; what is stored meanwhile may be met or not. C<%hash = ()>
clears the volume, whoever has put what is in it. C<scalar %hash> is about how many entries there are.

=cut
