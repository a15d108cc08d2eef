package Driver::Protocol;

# Lines of JSON to the suite, and words to the person (bench/drivers/README.md).
use v5.26;
use warnings;
use Exporter 'import';
use FindBin;
use JSON::PP ();

our @EXPORT = qw(answer one_line parsed refuse);

my $json = JSON::PP->new->canonical->ascii;

# The unit of a run's answer: one object on a line, seen at once.
sub answer {
    my ($object) = @_;
    local $| = 1;
    print $json->encode($object), "\n";
}

# The object that a request is.
sub parsed {
    my ($text) = @_;
    my $request = eval { $json->decode($text) };
    refuse('standard input is no JSON: ' . one_line($@)) if !defined $request;
    refuse('standard input is no object of JSON') if ref $request ne 'HASH';
    return $request;
}

# Ends the driver: the request itself was wrong.
sub refuse {
    my ($words) = @_;
    print STDERR "$FindBin::Script: $words\n";
    exit 2;
}

sub one_line {
    my ($words) = @_;
    $words =~ s/\s+/ /g;
    $words =~ s/(?: at \S+ line \d+\.?)? ?$//;
    return $words;
}

1;
