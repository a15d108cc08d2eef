package Driver::Main;

# The common part of all drivers in Perl: it ends cleanly, lists the stores, and measures them.
#
# A procedure is a class. `name` is its name in requests. `check_settings` and `check_case` refuse a request that can't
# be met, and add what stores read: `configuration`, and `is_structured` if values aren't bytes. `new` of the request
# makes what all stores get. `figures` of a store, the request and an empty folder returns those of one repetition, each
# with its `measure`, `value` and, if it adds to the request's case, `case`. `vectors` is optional, for drivers that
# support it.
use v5.26;
use warnings;
use File::Temp ();
use Driver::Protocol;
use Driver::Request;
use Driver::Stores;

sub run {
    my ($procedure) = @_;
    end_tidily();
    my %work = (list => \&list, measure => sub { measure($procedure, @_) });
    $work{vectors} = sub { answer({ vectors => $procedure->vectors(@_) }) } if $procedure->can('vectors');
    my $request = Driver::Request::read($procedure, sort keys %work);
    $work{ $request->{do} }->($request);
}

# A signal ends the driver by an exit, so that destructors remove what was made. A second signal doesn't interrupt them.
sub end_tidily {
    my %number = (HUP => 1, INT => 2, TERM => 15);
    for my $signal (keys %number) {
        $SIG{$signal} = sub {
            @SIG{ keys %number } = ('IGNORE') x keys %number;
            exit 128 + $number{$signal};
        };
    }
}

sub list {
    for my $store (Driver::Stores::all()) {
        my $absent = Driver::Stores::absent($store);
        answer(defined $absent
            ? { store => $store->{name}, absent => $absent }
            : { store => $store->{name}, kind => $store->{kind} // 'other', version => Driver::Stores::version($store) });
    }
}

# If the request leaves the turns to the driver, stores take turns in alternating order. A store that fails takes no
# further part.
sub measure {
    my ($procedure, $request) = @_;
    my @stores = grep { is_there($_) && Driver::Stores::fits($_, $request) } map { Driver::Stores::named($_) } @{ $request->{stores} };
    return unless @stores;
    my $measured = $procedure->new($request);
    my %is_out;
    for my $repetition (@{ $request->{repetitions} }) {
        for my $store ($repetition % 2 ? @stores : reverse @stores) {
            next if $is_out{ $store->{name} } || $store->{is_simulated} && $repetition != $request->{repetitions}[0];
            answer({ progress => "$store->{name}, repetition $repetition" });
            $is_out{ $store->{name} } = !measure_once($measured, $store, $request, $repetition);
        }
    }
}

sub is_there {
    my ($store) = @_;
    my $absent = Driver::Stores::absent($store) // return 1;
    answer({ store => $store->{name}, absent => $absent });
    return 0;
}

# Whether it could be measured.
sub measure_once {
    my ($measured, $store, $request, $repetition) = @_;
    my $folder = File::Temp->newdir('stores-XXXXXXXX', DIR => $request->{folder});
    my @figures = eval {
        my $server = $store->{serve} && $store->{serve}->($request, "$folder");
        $measured->figures($store, $request, "$folder");
    };
    if (!@figures) {
        answer({ note => "$store->{name}: " . one_line($@) });
        return 0;
    }
    for my $figure (@figures) {
        answer({ sample => { %$figure, store => $store->{name}, repetition => $repetition + 0, value => $figure->{value} + 0 } });
    }
    return 1;
}

1;
