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
    # Below 2 GiB, in whole pages of memory.
    ENTRY_MAX => (1 << 31) - 4096,
    # One second, as in Cache::FastMmap: a value that is set for `now` can be got at once.
    NOW => 1,
};

my %bytes   = ('' => 1, k => 1 << 10, m => 1 << 20, g => 1 << 30);
my %seconds = ('' => 1, s => 1, m => 60, h => 3600, d => 86_400, w => 7 * 86_400);

# Bytes, of 5000, '64k', '10m', '1g'.
sub bytes {
    my ($given, $name) = @_;
    my ($number, $unit) = $given =~ /^\s*([0-9]+(?:\.[0-9]+)?)\s*([kmg]?)b?\s*\z/i
        or Cache::Eyewall::Error->argument("$name is no size: $given; give bytes, or as in 512k, 10m, 1g");
    return int $number * $bytes{ lc $unit };
}

# Seconds, of 600, '10m', '10 minutes', 'now', 'never'; 0 is never.
sub seconds {
    my ($given, $name) = @_;
    return 0 if !defined $given || $given eq '' || $given eq 'never';
    return NOW if $given eq 'now';
    my ($number, $unit) = $given =~ /^\s*([0-9]+)(?:\.[0-9]*)?\s*([smhdw]?)[a-z]*\s*\z/i
        or Cache::Eyewall::Error->argument("$name is no time: $given; give seconds, or as in 30s, 10m, 2h, 1d, 1w, now, never");
    return $number * $seconds{ lc $unit };
}

# When a value expires that is kept for this time, in seconds since 1970. A text that says no time is taken for `now`, with a warning: it
# is no error of Cache::FastMmap, either.
sub expiry {
    my ($given) = @_;
    return time if $given eq 'now';
    local $@;
    my $seconds = eval { seconds($given, 'the expiry time') };
    return $seconds && time + $seconds if defined $seconds;
    require Carp;
    Carp::carp("the value expires at once, since $given is no time: give seconds, or as in 30s, 10m, 2h, 1d, 1w, now, never");
    return time;
}

# A second since 1970, of a number; 0, and what says nothing, is never.
sub second {
    my ($given) = @_;
    return 0 if $given eq '';
    return $given if looks_like_number($given) && $given == $given;
    return Cache::Eyewall::Error->argument("expire_on is no number of seconds since 1970: $given");
}

# The volume's bytes, of what the options say about them.
sub volume_bytes {
    my ($options) = @_;
    my $size = $options->{cache_size}
        ? bytes($options->{cache_size}, 'cache_size')
        : bytes($options->{page_size} || PAGE_SIZE, 'page_size') * bytes($options->{num_pages} || NUM_PAGES, 'num_pages');
    return $size < SIZE_MIN ? SIZE_MIN : $size;
}

# The most that a volume of so many bytes allows: a quarter, of whole pages of memory, and less than 2 GiB.
sub entry_bytes_max {
    my ($size) = @_;
    my $quarter = int($size / 4 / 4096) * 4096;
    return $quarter < ENTRY_MAX ? $quarter : ENTRY_MAX;
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap::Options - sizes and times as Cache::FastMmap has them

=head1 DESCRIPTION

Used by L<Cache::Eyewall::FastMmap>.

=head1 FUNCTIONS

=over 4

=item bytes(TEXT, NAME)

The bytes that a text like C<10m> says; NAME is the option's, for the error.

=item seconds(TEXT, NAME)

The seconds that a text like C<10m>, C<now> or C<never> says; 0 is never.

=item expiry(TEXT)

When a value expires, by such a text: a second since 1970; 0 is never. A text that says no time is taken for C<now>, with a warning.

=item second(NUMBER)

A second since 1970, for C<expire_on>; 0 is never.

=item volume_bytes(OPTIONS)

How large the volume is, by C<cache_size>, or C<page_size> and C<num_pages>.

=item entry_bytes_max(BYTES)

The largest entry that a volume of so many bytes allows.

=back

=cut
