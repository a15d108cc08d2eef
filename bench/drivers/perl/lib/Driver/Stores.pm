package Driver::Stores;

# The stores of Perl: the name of each, its source, its configurations, and how to open it. `open` gets the request and
# a folder, which is empty for the first caller, and returns closures: `set` of a key and a value, `get` of a key, which
# is undef for a miss. They own the store. If processes can share it, another process that opens it in the same folder
# has the same store. `serve`, if there is one, gets the same arguments before that, and returns the server for all that
# open the store. A store that `is_simulated` is measured once, and its time means nothing.
use v5.26;
use warnings;
use Driver::Store::Databases;
use Driver::Store::Eyewall;
use Driver::Store::Files;
use Driver::Store::Ideal;
use Driver::Store::Memory;
use Driver::Store::Pages;

my @STORES = (@Driver::Store::Eyewall::STORES, @Driver::Store::Pages::STORES, @Driver::Store::Files::STORES, @Driver::Store::Databases::STORES,
    @Driver::Store::Memory::STORES, @Driver::Store::Ideal::STORES);

sub all { return @STORES }

sub named {
    my ($name) = @_;
    my ($store) = grep { $_->{name} eq $name } @STORES;
    return $store;
}

# Why a store isn't available here, and what to do; undef if it is.
sub absent {
    my ($store) = @_;
    return $store->{absent} if defined $store->{absent};
    for my $module (@{ $store->{modules} // [] }) {
        next if eval "require $module; 1";
        return $store->{how} // "$module is missing (apt install $store->{package})";
    }
    my $program = $store->{program};
    return undef if !defined $program || grep { -x "$_/$program" } split(/:/, $ENV{PATH} // ''), '/usr/sbin';
    return "the program $program is missing (apt install $program; no service of it is wanted)";
}

sub version {
    my ($store) = @_;
    return "Perl $^V" unless $store->{modules};
    my $module = $store->{modules}[0];
    return $store->{version}->($module->VERSION) if $store->{version};
    return $module->VERSION;
}

# Whether a store can be measured in the request's case. A store without a cap can only be measured if all objects fit.
sub fits {
    my ($store, $request) = @_;
    return 0 if $store->{is_for_structured_only} && !$request->{is_structured};
    return $store->{is_capped} || $request->{configuration}{is_roomy};
}

1;
