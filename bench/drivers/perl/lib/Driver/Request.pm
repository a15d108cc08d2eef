package Driver::Request;

# The suite's request: read, and refused where it can't be followed.
use v5.26;
use warnings;
use Driver::Protocol;
use Driver::Stores;

my %NUMBERS = map { $_ => 1 } qw(keys operations seconds stored_percent set_percent);

sub read {
    my $request = parsed(do { local $/; <STDIN> } // '');
    my $do = $request->{do} // '';
    refuse("\"do\" is '$do'; it may be list, measure or vectors") unless $do =~ /^(?:list|measure|vectors)$/;
    return $request if $do eq 'list';
    settings($request);
    measure($request) if $do eq 'measure';
    return $request;
}

sub settings {
    my ($request) = @_;
    refuse('"seed" has to be a whole number') unless ($request->{seed} // '') =~ /^\d+$/;
    my $settings = $request->{settings};
    refuse('"settings" are missing; bench/workloads/modules.toml has them') if ref $settings ne 'HASH';
    for my $name (sort keys %NUMBERS) {
        refuse("settings: $name has to be a number above 0") unless ($settings->{$name} // '') =~ /^[\d.e+-]+$/ && $settings->{$name} > 0;
    }
    for my $name (qw(binary_bytes structured_fields configurations)) {
        refuse("settings: $name has to be an object") if ref $settings->{$name} ne 'HASH';
    }
}

sub measure {
    my ($request) = @_;
    my ($case, $settings) = @$request{qw(case settings)};
    refuse('"procedure" has to be modules') unless ($request->{procedure} // '') eq 'modules';
    refuse('"case" has to be an object') if ref $case ne 'HASH';
    my $values = $case->{values} // '';
    refuse("case: values is '$values'; it may be binary or structured") unless $values =~ /^(?:binary|structured)$/;
    my $of_size = $settings->{ $values eq 'binary' ? 'binary_bytes' : 'structured_fields' };
    $request->{size} = $of_size->{ $case->{size} // '' } // refuse('case: size is none of ' . join ', ', sort keys %$of_size);
    my $configurations = $settings->{configurations};
    $request->{configuration} = $configurations->{ $case->{configuration} // '' }
        // refuse('case: configuration is none of ' . join ', ', sort keys %$configurations);
    for my $list (qw(stores repetitions)) {
        refuse("\"$list\" has to be a list, and not empty") unless ref $request->{$list} eq 'ARRAY' && @{ $request->{$list} };
    }
    for my $name (@{ $request->{stores} }) {
        Driver::Stores::named($name) // refuse("there is no store '$name' here; {\"do\":\"list\"} says which there are");
    }
    refuse('repetitions count from 1') if grep { !/^[1-9]\d*$/ } @{ $request->{repetitions} };
    my $storage = $settings->{storage} // '';
    $request->{folder} = (ref $request->{scratch} eq 'HASH' ? $request->{scratch}{$storage} : undef) // '';
    refuse("\"scratch\" names no directory for the storage '$storage'") unless -d $request->{folder};
}

1;
