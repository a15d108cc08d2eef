# Filters PHP for Doxygen, which knows only the language's own types: turns others, such as list<string>, into text.
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
# Doxygen would take a namespaced class for a command.
$source =~ s/^( *\/?\*.*?\w)\\(\w)/$1\\\\$2/gm;
print $source;
