package Cache::Eyewall::FastMmap::Codec;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;

# As in flagged.h.
use constant { SERIALIZED => 4, COMPRESSED => 8, TEXT => 128 };

# Each returns two subs: from a reference to a value to bytes, and back.
my %serializers = (
    storable => sub {
        require Storable;
        return (\&Storable::freeze, \&Storable::thaw);
    },
    json => sub {
        require JSON;
        # Bytes, and any value: not only objects and arrays.
        my $json = JSON->new;
        $json->$_(1) for qw(utf8 allow_nonref);
        return (
            sub { my ($value) = @_; return $json->encode($$value) },
            sub { my ($bytes) = @_; my $value = $json->decode($bytes); return \$value },
        );
    },
    sereal => sub {
        require Sereal::Encoder;
        require Sereal::Decoder;
        my ($encoder, $decoder) = (Sereal::Encoder->new, Sereal::Decoder->new);
        return (sub { $encoder->encode($_[0]) }, sub { $decoder->decode($_[0]) });
    },
);

# Each returns two subs: from bytes to fewer bytes, and back.
my %compressors = (
    zlib => sub {
        require Compress::Zlib;
        return (\&Compress::Zlib::memGzip, sub { my ($bytes) = @_; return Compress::Zlib::memGunzip($bytes) });
    },
    lz4 => sub {
        require Compress::LZ4;
        return (\&Compress::LZ4::compress, \&Compress::LZ4::uncompress);
    },
    snappy => sub {
        require Compress::Snappy;
        return (\&Compress::Snappy::compress, \&Compress::Snappy::uncompress);
    },
);

# The codec for the options of a constructor; undef if values are strings that are stored as they are.
sub new {
    my ($class, $options) = @_;
    my $serializer = $options->{serializer} // ($options->{raw_values} ? '' : 'storable');
    my $compressor = $options->{compressor} // ($options->{compress} ? 'zlib' : '');
    return undef unless $serializer || $compressor;
    my %self;
    @self{qw(serialize deserialize)} = pair('serializer', $serializer, \%serializers) if $serializer;
    @self{qw(compress uncompress)}   = pair('compressor', $compressor, \%compressors) if $compressor;
    # Your own subs get every value: they may encrypt it, for instance.
    $self{bypasses_strings} = !ref $serializer;
    return bless \%self, $class;
}

# Whether a string is stored as it is.
sub keeps_strings {
    my ($self) = @_;
    return $self->{bypasses_strings} && !$self->{compress};
}

sub pair {
    my ($what, $given, $known) = @_;
    return @$given if ref $given eq 'ARRAY' && @$given == 2 && 2 == grep { ref eq 'CODE' } @$given;
    my $load = $known->{$given}
        or Cache::Eyewall::Error->argument(
            "no $what $given; give one of " . join(', ', sort keys %$known) . ', or a reference to an array of two subs');
    local $@;
    my @subs = eval { $load->() };
    Cache::Eyewall::Error->argument("the $what $given can't be loaded: $@") unless @subs;
    return @subs;
}

# Both subs of the serializer if there is no compressor; otherwise undef twice.
sub serializer_alone {
    my ($self) = @_;
    return $self->{compress} ? (undef, undef) : @$self{qw(serialize deserialize)};
}

# Encodes a value as bytes and flags.
sub encode {
    my ($self, $value) = @_;
    return (undef, 0) unless defined $value;
    my $flags = 0;
    if ($self->{serialize} && !($self->{bypasses_strings} && Cache::Eyewall::FastMmap::_is_string($value))) {
        $value = $self->{serialize}->(\$value);
        $flags = SERIALIZED;
    }
    if ($self->{compress}) {
        if (utf8::is_utf8($value)) {
            utf8::encode($value);
            $flags |= TEXT;
        }
        $value = $self->{compress}->($value);
        $flags |= COMPRESSED;
    }
    return ($value, $flags);
}

# Decodes bytes and flags.
sub decode {
    my ($self, $value, $flags) = @_;
    if ($flags & COMPRESSED) {
        $value = needed($self, 'uncompress', 'compressor')->($value)
            // Cache::Eyewall::Error->argument("the compressor returned nothing: was the value stored with the same compressor?");
        utf8::decode($value) if $flags & TEXT;
    }
    return $value unless $flags & SERIALIZED;
    my $reference = needed($self, 'deserialize', 'serializer')->($value);
    Cache::Eyewall::Error->argument("the deserializer returned no reference: was the value stored with the same serializer?") unless ref $reference;
    return $$reference;
}

# `self` is undef for a cache of strings.
sub needed {
    my ($self, $work, $option) = @_;
    return $self->{$work} if $self && $self->{$work};
    Cache::Eyewall::Error->argument("the value was stored with a $option: open the cache with the same one");
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap::Codec - serializes and compresses values

=head1 DESCRIPTION

L<Cache::Eyewall::FastMmap> uses it for its options C<serializer>, C<raw_values>, C<compressor> and C<compress>.

=head1 METHODS

=over 4

=item new(OPTIONS)

Returns the codec for the options of a constructor; undef if values are strings that are stored as they are.

=item keeps_strings

Whether strings are stored as they are.

=item serializer_alone

Returns both subs of the serializer if there is no compressor; otherwise undef twice.

=item encode(VALUE)

Returns bytes and flags. The serializers that have names store a string as it is.

=item decode(BYTES, FLAGS)

Returns the value.

=back

=cut
