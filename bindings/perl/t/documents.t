# The documentation is well formed and names every method, and its code runs.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();
use Pod::Checker ();

my @modules = sort map { s{^lib/}{}r =~ s{/}{::}gr =~ s{\.pm$}{}r } grep { /^lib/ } split /\n/, read_file('MANIFEST');
cmp_ok(scalar @modules, '>=', 5, 'modules');

sub read_file {
    my ($name) = @_;
    open my $file, '<:encoding(UTF-8)', $name or die "$name: $!";
    local $/;
    return <$file>;
}

# Runs code of the documentation with a volume of the test.
sub runs {
    my ($code, $name) = @_;
    state $count = 0;
    my $folder = path();
    mkdir $folder or die $!;
    $code =~ s{/(?:dev/shm|run|var/cache)/}{$folder/}g;
    my $printed = '';
    open my $out, '>', \$printed or die $!;
    my $old = select $out;
    my $is_well = eval 'package Shown' . $count++ . "; use strict; use warnings; no warnings 'redefine';\n$code\n;1";
    select $old;
    ok($is_well, $name) or diag "$@\n$code";
}

for my $module (@modules) {
    my $file = 'lib/' . $module =~ s{::}{/}gr . '.pm';
    my $pod = read_file($file);
    my $checker = Pod::Checker->new(-warnings => 1);
    open my $nowhere, '>', \my $said or die $!;
    $checker->parse_from_file($file, $nowhere);
    is($checker->num_errors + $checker->num_warnings, 0, "$module: the POD is well formed") or diag $said;
    my ($text) = $pod =~ /^__END__\n(.*)/ms;
    # Methods aren't indented. They are public unless the name begins with an underscore or another method uses
    # them.
    my %inner = map { $_ => 1 } qw(import new opened number milliseconds group begun pair needed);
    my @methods = grep { !$inner{$_} } $pod =~ /^sub ([a-z]\w*)/mg;
    my @missing = grep { $text !~ /^=(?:item|head2) [^\n]*\b\Q$_\E\b/m } @methods;
    is("@missing", '', "$module: all methods are there");
}
my $reference = read_file('lib/Cache/Eyewall.pm');

# The public methods in C: by package, their names.
sub methods_in_c {
    my ($package, %methods);
    for my $line (map { split /\n/, read_file($_) } qw(Eyewall.xs Streams.xsh FastMmap.xsh)) {
        $package = $1 if $line =~ /^MODULE = \S+\s+PACKAGE = (\S+)/;
        push @{ $methods{$package} }, $1 if $line =~ /^([a-z]\w*)\((?:SV \*self|\.\.\.)/ || $line =~ /^    ([a-z]\w*) = \d+$/;
    }
    return %methods;
}

# The names that are missing in the documentation: as a heading or an item; or, for methods of returned objects, in
# a sentence.
sub undocumented {
    my ($form, $text, @names) = @_;
    return join ' ', grep { my $name = qr/\b\Q$_\E\b/; $text !~ ($form eq 'heading' ? qr/^=(?:head2|item) [^\n]*$name/m : qr/C<+ ?$name[(>]/) } @names;
}

my %of_c = methods_in_c();
is_deeply([sort keys %of_c], [map { "Cache::Eyewall$_" } '', qw(::Claim ::FastMmap ::Flight ::Follower ::Walk ::Writer)], 'packages in C');
for my $package (sort keys %of_c) {
    my $is_module = grep { $_ eq $package } @modules;
    my $text = $is_module ? read_file('lib/' . $package =~ s{::}{/}gr . '.pm') : $reference;
    cmp_ok(scalar @{ $of_c{$package} }, '>', 0, "$package: methods in C");
    is(undocumented($is_module ? 'heading' : 'sentence', $text, @{ $of_c{$package} }), '', "$package: all of them are there");
}
is(undocumented('heading', $reference, 'get', 'frobnicate'), 'frobnicate', 'a method that is not there would be missed');
is(undocumented('sentence', $reference, 'commit', 'commits'), 'commits', 'in a sentence, too');

# The reverse: every heading is a method.
my @headings = map { /\b([a-z_]+)(?=\(|,|$)/g } grep { /^[a-z]/ } map { s/\([^)]*\)/(/gr } $reference =~ /^=head2 (.+)$/mg;
cmp_ok(scalar @headings, '>', 30, 'headings are methods');
is(join(' ', grep { !Cache::Eyewall->can($_) } @headings), '', 'which there are');

my @errors = read_file('objects.h') =~ /case EYEWALL_ERROR_\w+: return "(\w+)"/g;
cmp_ok(scalar @errors, '>', 20, 'errors');
my $of_errors = read_file('lib/Cache/Eyewall/Error.pm');
is(join(' ', grep { $of_errors !~ /C<$_>/ } @errors, 'internal'), '', 'all of them are named');

for my $name (@modules) {
    my $pod = read_file('lib/' . $name =~ s{::}{/}gr . '.pm') =~ s/.*^__END__\n//msr;
    my ($synopsis) = $pod =~ /^=head1 SYNOPSIS\n+((?:    [^\n]*\n|\n)+)/m or next;
    if ($name eq 'CHI::Driver::Eyewall' && !eval { require CHI; 1 }) {
        diag('CHI is not installed: its synopsis is not run');
        next;
    }
    runs($synopsis, "$name: the synopsis runs");
}

my $shown = 0;
my $before = q{use Cache::Eyewall; my $cache = Cache::Eyewall->anonymous(size => 1 << 20); $cache->put('/about', 'about');};
my $body = $reference =~ s/.*^=head1 DESCRIPTION//msr;
runs("$before\n$_", 'Cache::Eyewall: what is shown, ' . ++$shown) for $body =~ /\n\n((?:    [^\n]*\n)+)/g;
cmp_ok($shown, '>', 2, 'several things are shown');

$shown = 0;
runs($_, 'README.md: what is shown, ' . ++$shown) for read_file('README.md') =~ /^```perl\n(.*?)^```$/msg;
cmp_ok($shown, '>', 1, 'several things are shown');

done_testing;
