package Driver::Procedure::Stream;

# Gets with a Zipf distribution, of objects that don't all fit. After a miss comes a set.
use v5.26;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use Driver::Protocol;
use Driver::Request;
use Driver::Values;

use constant CHECKED => 64;

sub name { return 'stream' }

sub check_settings {
    my ($class, $request) = @_;
    Driver::Request::numbers($request, qw(keys smallest largest skew operations));
    Driver::Request::objects($request, 'configurations');
    my ($smallest, $largest) = @{ $request->{settings} }{qw(smallest largest)};
    refuse("settings: largest has to be from smallest to @{[Driver::Values::POOL_BYTES]}") if $largest < $smallest || $largest > Driver::Values::POOL_BYTES;
}

sub check_case {
    my ($class, $request) = @_;
    $request->{configuration} = Driver::Request::chosen($request, cap => $request->{settings}{configurations});
}

sub new {
    my ($class, $request) = @_;
    my $data = Driver::Values->new($request);
    my ($count, $operations) = @{ $request->{settings} }{qw(keys operations)};
    my @keys = @{ $data->keys }[0 .. $count - 1];
    my $zipf = $data->zipf;
    my ($warm_up, $counted) = map { [map { $zipf->next } 1 .. $operations] } 1 .. 2;
    return bless { keys => \@keys, objects => $data->objects, warm_up => $warm_up, counted => $counted }, $class;
}

sub figures {
    my ($self, $store, $request, $folder) = @_;
    my $opened = $store->{open}->($request, $folder);
    $self->passed($opened, $self->{warm_up});
    my $start = clock_gettime(CLOCK_MONOTONIC);
    my $hits = $self->passed($opened, $self->{counted});
    my $seconds = clock_gettime(CLOCK_MONOTONIC) - $start;
    $self->check($opened);
    my $operations = @{ $self->{counted} };
    my @figures = { measure => 'hits', value => 100 * $hits / $operations };
    push @figures, { measure => 'operations', value => $operations / $seconds } unless $store->{is_simulated};
    return @figures;
}

# The number of hits.
sub passed {
    my ($self, $opened, $sequence) = @_;
    my ($keys, $objects) = @$self{qw(keys objects)};
    my ($get, $set, $hits) = (@$opened{qw(get set)}, 0);
    for my $object (@$sequence) {
        if (defined $get->($keys->[$object])) {
            $hits++;
            next;
        }
        $set->($keys->[$object], $objects->[$object]);
    }
    return $hits;
}

sub check {
    my ($self, $opened) = @_;
    my ($keys, $objects, $counted) = @$self{qw(keys objects counted)};
    my $first = @$counted < CHECKED ? 0 : @$counted - CHECKED;
    for my $object (@$counted[$first .. $#$counted]) {
        my $found = $opened->{get}->($keys->[$object]);
        die "it gave another value than the one that was stored\n" if defined $found && $found ne $objects->[$object];
    }
}

1;
