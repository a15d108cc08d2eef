package Driver::Store::Ideal;

# An ideal for comparison, which no store can reach: an LRU whose cap counts only the bytes of keys and values. It lives
# in this process.
use v5.26;
use warnings;

our @STORES = ({
    name => 'LRU (Perl)', kind => 'reference', is_capped => 1, is_simulated => 1,
    open => sub {
        my ($request) = @_;
        my $lru = Driver::Store::Ideal->new($request->{configuration}{bytes});
        return { set => sub { $lru->set($_[0], $_[1]) }, get => sub { $lru->get($_[0]) } };
    },
});

# Entries form a ring. The entry used last follows the head, and the next one to evict is before it. Each is a list:
use constant { KEY => 0, VALUE => 1, BEFORE => 2, BEHIND => 3 };

sub new {
    my ($class, $cap) = @_;
    my $head = [''];
    @$head[BEFORE, BEHIND] = ($head, $head);
    return bless { cap => $cap, bytes => 0, entries => {}, head => $head }, $class;
}

sub get {
    my ($self, $key) = @_;
    my $entry = $self->{entries}{$key} // return undef;
    $self->renew($entry);
    return $entry->[VALUE];
}

sub set {
    my ($self, $key, $value) = @_;
    my $entry = $self->{entries}{$key};
    $self->drop($entry) if $entry;
    $entry = $self->{entries}{$key} = [$key, $value];
    @$entry[BEFORE, BEHIND] = ($entry, $entry);
    $self->{bytes} += bytes_of($entry);
    $self->renew($entry);
    $self->drop($self->{head}[BEFORE]) while $self->{bytes} > $self->{cap};
}

sub bytes_of { return length($_[0][KEY]) + length $_[0][VALUE] }

# Moves an entry to the place after the head.
sub renew {
    my ($self, $entry) = @_;
    unlink_entry($entry);
    my $head = $self->{head};
    my $first = $head->[BEHIND];
    @$entry[BEFORE, BEHIND] = ($head, $first);
    $head->[BEHIND] = $first->[BEFORE] = $entry;
}

sub drop {
    my ($self, $entry) = @_;
    unlink_entry($entry);
    $self->{bytes} -= bytes_of($entry);
    delete $self->{entries}{ $entry->[KEY] };
    # Perl doesn't free objects that form a ring.
    @$entry[BEFORE, BEHIND] = ();
}

sub unlink_entry {
    my ($entry) = @_;
    my ($before, $behind) = @$entry[BEFORE, BEHIND];
    ($before->[BEHIND], $behind->[BEFORE]) = ($behind, $before);
}

sub DESTROY {
    my ($self) = @_;
    @$_[BEFORE, BEHIND] = () for values %{ $self->{entries} }, $self->{head};
}

1;
