package Driver::Zipf;

# Objects with a Zipf distribution, as bench/drivers/README.md defines it: the same sequence in every language.
use v5.26;
use warnings;

use constant RANGE => 1 << 32;
# A table gives the start of the search, by the upper bits of a number.
use constant { TABLE => 1 << 16, SHIFT => 16 };

# Draws from so many objects, by the numbers of a stream.
sub new {
    my ($class, $objects, $skew, $stream) = @_;
    my ($sum, @sums) = 0;
    push @sums, $sum += $_**-$skew for 1 .. $objects;
    my @limits = map { int($_ / $sum * RANGE) } @sums;
    my ($object, @first) = 0;
    for my $entry (0 .. TABLE - 1) {
        $object++ while $limits[$object] <= $entry << SHIFT;
        push @first, $object;
    }
    return bless { limits => \@limits, first => \@first, stream => $stream }, $class;
}

sub next {
    my ($self) = @_;
    my ($limits, $number) = ($self->{limits}, $self->{stream}->());
    my $object = $self->{first}[$number >> SHIFT];
    $object++ while $limits->[$object] <= $number;
    return $object;
}

1;
