package Driver::Values;

# Keys, values and the order of operations: the same in every language, as bench/drivers/README.md defines them.
use v5.26;
use warnings;
use Digest::SHA qw(sha256_hex);
use Driver::Zipf;

use constant WORD => 0xffff_ffff;
use constant POOL_BYTES => 16_384;
use constant DISTINCT => 256;
my @LETTERS = ('A' .. 'Z', 'a' .. 'z', 0 .. 9, '-', '_');

# Streams of random numbers, each with a number of its own. Each process has its own stream for orders.
use constant { POOL => 1, VALUES => 2, GETS => 3, MIX => 4, OBJECTS => 5, ZIPF => 6, ORDER => 16 };

sub new {
    my ($class, $request) = @_;
    my $self = bless { %{ $request->{settings} }, seed => $request->{seed} & WORD }, $class;
    @$self{qw(is_structured size)} = @$request{qw(is_structured size)};
    return $self;
}

# The finaliser of MurmurHash3: a bijection on 32 bits.
sub mixed {
    my ($x) = @_;
    $x ^= $x >> 16;
    $x = product($x, 0x85eb_ca6b);
    $x ^= $x >> 13;
    $x = product($x, 0xc2b2_ae35);
    return $x ^ ($x >> 16);
}

# A product modulo 2^32, from halves, since the whole product is too large for an integer.
sub product {
    my ($left, $right) = @_;
    return ((((($left >> 16) * $right) & 0xffff) << 16) + ($left & 0xffff) * $right) & WORD;
}

# A stream: returns a number of 32 bits at each call (xorshift32).
sub stream {
    my ($self, $number) = @_;
    my $state = mixed(($self->{seed} + $number) & WORD) || 1;
    return sub {
        $state ^= ($state << 13) & WORD;
        $state ^= $state >> 17;
        $state ^= ($state << 5) & WORD;
        return $state;
    };
}

sub below {
    my ($stream, $limit) = @_;
    return ($stream->() * $limit) >> 32;
}

# Twice as many keys as stored objects: those of the second half are never stored.
sub keys {
    my ($self) = @_;
    my $base = mixed($self->{seed});
    return [map { sprintf 'key:%08x', mixed($_ ^ $base) } 0 .. 2 * $self->{keys} - 1];
}

sub pool {
    my ($self) = @_;
    my $stream = $self->stream(POOL);
    return pack 'V*', map { $stream->() } 1 .. POOL_BYTES / 4;
}

# The values. Key i has the value i modulo their number.
sub values {
    my ($self) = @_;
    my $stream = $self->stream(VALUES);
    return $self->{is_structured} ? structured($self->pool, $stream, $self->{size}) : binary($self->pool, $stream, $self->{size});
}

sub binary {
    my ($pool, $stream, $mean) = @_;
    my @values;
    for (1 .. DISTINCT / 2) {
        my $distance = below($stream, int($mean / 2) + 1);
        for my $length ($mean + $distance, $mean - $distance) {
            push @values, substr $pool, below($stream, POOL_BYTES - $length), $length;
        }
    }
    return \@values;
}

sub structured {
    my ($pool, $stream, $fields) = @_;
    my $letters = join '', map { $LETTERS[$_ & 63] } unpack 'C*', $pool;
    return [map { record($letters, $stream, $fields) } 1 .. DISTINCT];
}

sub record {
    my ($letters, $stream, $fields) = @_;
    my %record;
    for my $field (0 .. $fields - 1) {
        if ($field % 4 == 3) {
            $record{ sprintf 'field_%02d', $field } = $stream->() >> 1;
            next;
        }
        my $length = 8 + below($stream, 17);
        $record{ sprintf 'field_%02d', $field } = substr $letters, below($stream, POOL_BYTES - $length), $length;
    }
    return \%record;
}

# The key of each get, by index.
sub gets {
    my ($self, $stored) = @_;
    my $stream = $self->stream(GETS);
    my ($share, $keys) = @$self{qw(stored_percent keys)};
    return [map { below($stream, 100) < $share ? below($stream, $stored) : $keys + below($stream, $keys) } 1 .. $self->{operations}];
}

# The same for gets and sets; a set of key i is -1 - i.
sub mix {
    my ($self, $stored) = @_;
    my $stream = $self->stream(MIX);
    my $share = $self->{set_percent};
    return [map { below($stream, 100) < $share ? -1 - below($stream, $stored) : below($stream, $stored) } 1 .. $self->{operations}];
}

# The objects of the stream, as many as stored keys. Each has a value of its own.
sub objects {
    my ($self) = @_;
    my ($pool, $stream) = ($self->pool, $self->stream(OBJECTS));
    my ($smallest, $largest) = @$self{qw(smallest largest)};
    return [map {
        my $length = $smallest + below($stream, $largest - $smallest + 1);
        substr $pool, below($stream, POOL_BYTES - $length), $length;
    } 1 .. $self->{keys}];
}

# The object of each operation of the stream.
sub zipf {
    my ($self) = @_;
    return Driver::Zipf->new($self->{keys}, $self->{skew}, $self->stream(ZIPF));
}

# The order in which a process requests so many keys, by index.
sub order {
    my ($self, $process, $count) = @_;
    my $stream = $self->stream(ORDER + $process);
    my @order = 0 .. $count - 1;
    for my $last (reverse 1 .. $count - 1) {
        my $chosen = below($stream, $last + 1);
        @order[$chosen, $last] = @order[$last, $chosen];
    }
    return @order;
}

# A value as text, the same in every language.
sub text_of {
    my ($value) = @_;
    return $value unless ref $value;
    return join '', map { "$_=$value->{$_};" } sort CORE::keys %$value;
}

# A summary of all this, for the test that compares the languages.
sub vectors {
    my ($self) = @_;
    my $keys = $self->keys;
    my %vectors = (
        keys => { count => scalar @$keys, first => [@$keys[0 .. 3]], sha256 => sha256_hex(join "\n", @$keys) },
        gets => summary($self->gets($self->{keys})),
        mix => summary($self->mix($self->{keys})),
    );
    for my $size (CORE::values %{ $self->{binary_bytes} }) {
        $vectors{binary}{$size} = of_values(binary($self->pool, $self->stream(VALUES), $size));
    }
    for my $size (CORE::values %{ $self->{structured_fields} }) {
        $vectors{structured}{$size} = of_values(structured($self->pool, $self->stream(VALUES), $size));
    }
    return \%vectors;
}

sub summary {
    my ($sequence) = @_;
    return { count => scalar @$sequence, first => [@$sequence[0 .. 7]], sha256 => sha256_hex(join "\n", @$sequence) };
}

sub of_values {
    my @texts = map { text_of($_) } @{ $_[0] };
    my $bytes = 0;
    $bytes += length for @texts;
    return { lengths => [map { length } @texts[0 .. 3]], bytes => $bytes, sha256 => sha256_hex(join '', @texts) };
}

1;
