package Driver::Protocol;

# Lines of JSON for the suite, and messages for people (bench/drivers/README.md).
use v5.26;
use warnings;
use Exporter 'import';
use FindBin;
use JSON::PP ();

our @EXPORT = qw(answer one_line parsed refuse);

my $json = JSON::PP->new->canonical->ascii;

# Writes one object on a line, and flushes it.
sub answer {
    my ($object) = @_;
    local $| = 1;
    print $json->encode($object), "\n";
}

# The request, an object.
sub parsed {
    my ($text) = @_;
    my $request = eval { $json->decode($text) };
    refuse('standard input is no JSON: ' . one_line($@)) if !defined $request;
    refuse('standard input is no object of JSON') if ref $request ne 'HASH';
    return $request;
}

# Ends the driver, since the request is wrong.
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
