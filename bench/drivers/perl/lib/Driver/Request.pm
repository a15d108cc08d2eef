package Driver::Request;

# Reads the suite's request, and refuses it if it can't be met. Each procedure checks the parts that only it uses.
use v5.26;
use warnings;
use Driver::Protocol;
use Driver::Stores;

# A request for one of the tasks of a driver, with a procedure.
sub read {
    my ($procedure, @does) = @_;
    my $request = parsed(do { local $/; <STDIN> } // '');
    my $do = $request->{do} // '';
    refuse("\"do\" is '$do'; it may be " . join ', ', @does) unless grep { $_ eq $do } @does;
    return $request if $do eq 'list';
    refuse('"seed" has to be a whole number') unless ($request->{seed} // '') =~ /^\d+$/;
    refuse("\"settings\" are missing; bench/workloads/@{[$procedure->name]}.toml has them") if ref $request->{settings} ne 'HASH';
    $procedure->check_settings($request);
    measure($procedure, $request) if $do eq 'measure';
    return $request;
}

sub measure {
    my ($procedure, $request) = @_;
    my $name = $procedure->name;
    refuse("\"procedure\" has to be $name") unless ($request->{procedure} // '') eq $name;
    refuse('"case" has to be an object') if ref $request->{case} ne 'HASH';
    $procedure->check_case($request);
    for my $list (qw(stores repetitions)) {
        refuse("\"$list\" has to be a list, and not empty") unless ref $request->{$list} eq 'ARRAY' && @{ $request->{$list} };
    }
    for my $name (@{ $request->{stores} }) {
        Driver::Stores::named($name) // refuse("there is no store '$name' here; {\"do\":\"list\"} says which there are");
    }
    refuse('repetitions count from 1') if grep { !/^[1-9]\d*$/ } @{ $request->{repetitions} };
    my $storage = $request->{settings}{storage} // '';
    $request->{folder} = (ref $request->{scratch} eq 'HASH' ? $request->{scratch}{$storage} : undef) // '';
    refuse("\"scratch\" names no directory for the storage '$storage'") unless -d $request->{folder};
}

# For a procedure: checks that these settings are numbers above 0.
sub numbers {
    my ($request, @names) = @_;
    for my $name (@names) {
        my $value = $request->{settings}{$name} // '';
        refuse("settings: $name has to be a number above 0") unless $value =~ /^[\d.e+-]+$/ && $value > 0;
    }
}

# For a procedure: checks that these settings are objects.
sub objects {
    my ($request, @names) = @_;
    for my $name (@names) {
        refuse("settings: $name has to be an object") if ref $request->{settings}{$name} ne 'HASH';
    }
}

# For a procedure: the member of an object that the case names.
sub chosen {
    my ($request, $parameter, $object) = @_;
    return $object->{ $request->{case}{$parameter} // '' } // refuse("case: $parameter is none of " . join ', ', sort keys %$object);
}

1;
