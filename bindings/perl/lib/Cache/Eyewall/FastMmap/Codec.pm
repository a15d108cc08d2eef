package Cache::Eyewall::FastMmap::Codec;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;

# As in flagged.h.
use constant { SERIALIZED => 4, COMPRESSED => 8, TEXT => 128 };

# Each gives two subs: of a reference to a scalar to bytes, and back.
my %serializers = (
    storable => sub {
        require Storable;
        return (\&Storable::freeze, \&Storable::thaw);
    },
    json => sub {
        require JSON;
        # Bytes, of any value: also of one that is no object and no array.
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

# Each gives two subs: of bytes to fewer bytes, and back.
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

# The codec of a constructor's options; undef: values are strings, stored as they are.
sub new {
    my ($class, $options) = @_;
    my $serializer = $options->{serializer} // ($options->{raw_values} ? '' : 'storable');
    my $compressor = $options->{compressor} // ($options->{compress} ? 'zlib' : '');
    return undef unless $serializer || $compressor;
    my %self;
    @self{qw(serialize deserialize)} = pair('serializer', $serializer, \%serializers) if $serializer;
    @self{qw(compress uncompress)}   = pair('compressor', $compressor, \%compressors) if $compressor;
    # Who gives subs of their own may want every value to go through them, for instance to encrypt it.
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
            "no $what $given; there are " . join(', ', sort keys %$known) . ', and a reference to an array of two subs');
    local $@;
    my @subs = eval { $load->() };
    Cache::Eyewall::Error->argument("the $what $given can't be loaded: $@") unless @subs;
    return @subs;
}

# Both subs of the serializer, where nothing else is done with a value; else undef twice.
sub serializer_alone {
    my ($self) = @_;
    return $self->{compress} ? (undef, undef) : @$self{qw(serialize deserialize)};
}

# Bytes and flags of a value.
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

# The value, of bytes and flags.
sub decode {
    my ($self, $value, $flags) = @_;
    if ($flags & COMPRESSED) {
        $value = needed($self, 'uncompress', 'compressor')->($value)
            // Cache::Eyewall::Error->argument("the compressor gave nothing: was the value stored with the same one?");
        utf8::decode($value) if $flags & TEXT;
    }
    return $value unless $flags & SERIALIZED;
    my $reference = needed($self, 'deserialize', 'serializer')->($value);
    Cache::Eyewall::Error->argument("the deserializer gave no reference: was the value stored with the same serializer?") unless ref $reference;
    return $$reference;
}

# `self` may be undef: of a cache whose values are strings.
sub needed {
    my ($self, $work, $option) = @_;
    return $self->{$work} if $self && $self->{$work};
    Cache::Eyewall::Error->argument("the value was stored with a $option: open the cache with the same one");
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap::Codec - values as bytes, and back

=head1 DESCRIPTION

Used by L<Cache::Eyewall::FastMmap>: its options C<serializer>, C<raw_values>, C<compressor> and C<compress>.

=head1 METHODS

=over 4

=item new(OPTIONS)

The codec of a constructor's options; undef where values are strings that are stored as they are.

=item keeps_strings

Whether a string is stored as it is.

=item serializer_alone

Both subs of the serializer, where there is no compressor; else undef twice.

=item encode(VALUE)

Bytes and flags. With one of the serializers that are known by name, a string is stored as it is, since that's all that comes of it.

=item decode(BYTES, FLAGS)

The value.

=back

=cut
