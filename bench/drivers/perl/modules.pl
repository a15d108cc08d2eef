#!/usr/bin/env perl
# The procedure `modules` on the stores of Perl; the protocol and the procedure stand in bench/drivers/README.md.
use v5.26;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use File::Temp ();
use Driver::Protocol;
use Driver::Request;
use Driver::Stores;
use Driver::Values;
use Driver::Work;

# A signal ends the driver as an exit does, which runs the destructors that remove what was made. A second one doesn't disturb them.
my %number = (HUP => 1, INT => 2, TERM => 15);
for my $signal (keys %number) {
    $SIG{$signal} = sub {
        @SIG{ keys %number } = ('IGNORE') x keys %number;
        exit 128 + $number{$signal};
    };
}

sub list {
    for my $store (Driver::Stores::all()) {
        my $absent = Driver::Stores::absent($store);
        answer(defined $absent
            ? { store => $store->{name}, absent => $absent }
            : { store => $store->{name}, kind => $store->{kind} // 'other', version => Driver::Stores::version($store) });
    }
}

sub measure {
    my ($request) = @_;
    for my $store (map { Driver::Stores::named($_) } @{ $request->{stores} }) {
        my $absent = Driver::Stores::absent($store);
        if (defined $absent) {
            answer({ store => $store->{name}, absent => $absent });
            next;
        }
        next unless Driver::Stores::fits($store, $request);
        measure_once($store, $request, $_) for @{ $request->{repetitions} };
    }
}

sub measure_once {
    my ($store, $request, $repetition) = @_;
    my $folder = File::Temp->newdir('modules-XXXXXXXX', DIR => $request->{folder});
    my $figures = eval {
        my $data = Driver::Values->new($request);
        my $opened = $store->{open}->($request, "$folder");
        Driver::Work::figures($opened, $data, $request);
    };
    if (!defined $figures) {
        answer({ note => "$store->{name}: " . one_line($@) });
        return;
    }
    for my $measure (sort keys %$figures) {
        answer({ sample => {
            store => $store->{name}, measure => $measure, repetition => $repetition + 0, value => $figures->{$measure} + 0,
        } });
    }
}

my $request = Driver::Request::read();
my %work = (list => \&list, measure => \&measure, vectors => sub { answer({ vectors => Driver::Values->new($_[0])->vectors }) });
$work{ $request->{do} }->($request);
