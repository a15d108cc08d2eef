package Cache::Eyewall::FastMmap::Options;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;

# Warnings name the caller's line.
our @CARP_NOT = ('Cache::Eyewall::FastMmap');
use Scalar::Util 'looks_like_number';

use constant {
    PAGE_SIZE => 65536,
    NUM_PAGES => 89,
    SIZE_MIN  => 512 * 1024,
    # Below 2 GiB, in whole memory pages.
    ENTRY_MAX => (1 << 31) - 4096,
    # One second, as in Cache::FastMmap: a value that is set for `now` can be read at once.
    NOW => 1,
};

my %bytes   = ('' => 1, k => 1 << 10, m => 1 << 20, g => 1 << 30);
my %seconds = ('' => 1, s => 1, m => 60, h => 3600, d => 86_400, w => 7 * 86_400);

# Parses a size: 5000, '64k', '10m', '1g'.
sub bytes {
    my ($given, $name) = @_;
    my ($number, $unit) = $given =~ /^\s*([0-9]+(?:\.[0-9]+)?)\s*([kmg]?)b?\s*\z/i
        or Cache::Eyewall::Error->argument("$name is not a size: $given; give bytes, or for instance 512k, 10m, 1g");
    return int $number * $bytes{ lc $unit };
}

# Parses a time: 600, '10m', '10 minutes', 'now', 'never'. 0 means never.
sub seconds {
    my ($given, $name) = @_;
    return 0 if !defined $given || $given eq '' || $given eq 'never';
    return NOW if $given eq 'now';
    my ($number, $unit) = $given =~ /^\s*([0-9]+)(?:\.[0-9]*)?\s*([smhdw]?)[a-z]*\s*\z/i
        or Cache::Eyewall::Error->argument("$name is not a time: $given; give seconds, or for instance 30s, 10m, 2h, 1d, 1w, now, never");
    return $number * $seconds{ lc $unit };
}

# The expiry time, in seconds since 1970, of a value that is kept this long. An invalid time counts as `now`, with a
# warning: in Cache::FastMmap it isn't an error, either.
sub expiry {
    my ($given) = @_;
    return time if $given eq 'now';
    local $@;
    my $seconds = eval { seconds($given, 'the expiry time') };
    return $seconds && time + $seconds if defined $seconds;
    require Carp;
    Carp::carp("the value expires at once, since $given is not a time: give seconds, or for instance 30s, 10m, 2h, 1d, 1w, now, never");
    return time;
}

# Parses expire_on, a second since 1970. 0 and '' mean never.
sub second {
    my ($given) = @_;
    return 0 if $given eq '';
    return $given if looks_like_number($given) && $given == $given;
    return Cache::Eyewall::Error->argument("expire_on is not a number of seconds since 1970: $given");
}

# The volume's size in bytes from the options.
sub volume_bytes {
    my ($options) = @_;
    my $size = $options->{cache_size}
        ? bytes($options->{cache_size}, 'cache_size')
        : bytes($options->{page_size} || PAGE_SIZE, 'page_size') * bytes($options->{num_pages} || NUM_PAGES, 'num_pages');
    return $size < SIZE_MIN ? SIZE_MIN : $size;
}

# The largest entry that a volume of this many bytes allows: a quarter, in whole memory pages, and less than 2 GiB.
sub entry_bytes_max {
    my ($size) = @_;
    my $quarter = int($size / 4 / 4096) * 4096;
    return $quarter < ENTRY_MAX ? $quarter : ENTRY_MAX;
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap::Options - parses sizes and times of Cache::FastMmap

=head1 DESCRIPTION

L<Cache::Eyewall::FastMmap> uses these functions.

=head1 FUNCTIONS

=over 4

=item bytes(TEXT, NAME)

Returns the bytes of a text such as C<10m>. NAME is the name of the option, for the error.

=item seconds(TEXT, NAME)

Returns the seconds of a text such as C<10m>, C<now> or C<never>. 0 means never.

=item expiry(TEXT)

Returns the expiry time, a second since 1970, for such a text. 0 means never. An invalid text counts as C<now>, with a warning.

=item second(NUMBER)

Returns C<expire_on> as a second since 1970. 0 means never.

=item volume_bytes(OPTIONS)

Returns the volume's size in bytes, from C<cache_size>, or from C<page_size> and C<num_pages>.

=item entry_bytes_max(BYTES)

Returns the size of the largest entry that a volume of this many bytes allows.

=back

=cut
