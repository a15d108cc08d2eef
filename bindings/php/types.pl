# Filters PHP for Doxygen, which doesn't know the types that comments give beside those of the language, as list<string>: they become text.
use strict;
use warnings;

sub words {
    my ($type) = @_;
    $type =~ s/\\/\\\\/g;
    $type =~ s/</&lt;/g;
    $type =~ s/>/&gt;/g;
    return "($type)";
}

local $/;
my $source = <>;
my $type = qr/(?:array\{.*?\}|[\w\\|?]+(?:<[^>]*>)?)(?:\|null)?/s;
$source =~ s/\@param\s+($type)\s+(\$\w+)/"\@param $2 " . words($1)/ge;
$source =~ s/\@return\s+($type)(?=\s)/'@return ' . words($1)/ge;
$source =~ s/\@var\s+$type *//g;
# A class in its namespace would be a command.
$source =~ s/^( *\/?\*.*?\w)\\(\w)/$1\\\\$2/gm;
print $source;
