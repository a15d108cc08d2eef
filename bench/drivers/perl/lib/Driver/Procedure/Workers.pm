package Driver::Procedure::Workers;

# Gets by several processes, from one store that holds all objects.
use v5.26;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use Driver::Crew;
use Driver::Protocol;
use Driver::Request;
use Driver::Values;

# Number of gets between two readings of the clock.
use constant BLOCK => 100;

sub name { return 'workers' }

sub check_settings {
    my ($class, $request) = @_;
    Driver::Request::numbers($request, qw(keys value_bytes seconds rounds));
    Driver::Request::objects($request, 'configuration');
}

sub check_case {
    my ($class, $request) = @_;
    my $keys = $request->{case}{keys} // '';
    refuse("case: keys is '$keys'; it may be all or one") unless $keys =~ /^(?:all|one)$/;
    my $processes = ref $request->{parameters} eq 'HASH' ? $request->{parameters}{processes} : undef;
    refuse('parameters: processes has to be a list of numbers from 1 on')
        unless ref $processes eq 'ARRAY' && @$processes && !grep { !/^[1-9]\d*$/ } @$processes;
    $request->{size} = $request->{settings}{value_bytes};
    $request->{configuration} = $request->{settings}{configuration};
}

sub new {
    my ($class, $request) = @_;
    my $data = Driver::Values->new($request);
    my @counts = sort { $a <=> $b } @{ $request->{parameters}{processes} };
    my @keys = @{ $data->keys }[0 .. $request->{settings}{keys} - 1];
    return bless { data => $data, counts => \@counts, keys => \@keys, values => $data->values }, $class;
}

# The numbers of processes take turns in alternating order.
sub figures {
    my ($self, $store, $request, $folder) = @_;
    my @counts = @{ $self->{counts} };
    my $crew = Driver::Crew->start($counts[-1], sub { $self->orders($_[0], $store, $request, $folder) });
    my $opened = $store->{open}->($request, $folder);
    my ($keys, $values) = @$self{qw(keys values)};
    $opened->{set}->($keys->[$_], $values->[$_ & 255]) for 0 .. $#$keys;
    $crew->told('open', $counts[-1]);
    my @figures;
    for my $round (1 .. $request->{settings}{rounds}) {
        for my $count ($round % 2 ? @counts : reverse @counts) {
            my @done = $crew->told('get', $count);
            push @figures, { measure => 'gets', case => { processes => $count + 0 }, value => rate(@done) };
        }
    }
    return @figures;
}

# All gets, divided by the time from the first start to the last end. Each process returns its number of gets, its start
# and its end.
sub rate {
    my @done = @_;
    my ($gets, $start, $end) = @{ shift @done };
    for (@done) {
        $gets += $_->[0];
        $start = $_->[1] if $_->[1] < $start;
        $end = $_->[2] if $_->[2] > $end;
    }
    return $gets / ($end - $start);
}

# The commands of a process, with an order of keys of its own.
sub orders {
    my ($self, $number, $store, $request, $folder) = @_;
    my ($keys, $values) = @$self{qw(keys values)};
    my @order = $self->{data}->order($number, scalar @$keys);
    my @asked = $request->{case}{keys} eq 'all' ? @$keys[@order] : ($keys->[0]) x @order;
    my @blocks;
    push @blocks, [splice @asked, 0, BLOCK] while @asked;
    my ($opened, $at) = (undef, 0);
    return {
        # Checks that the store has all objects. Each process reads each of them once.
        open => sub {
            $opened = $store->{open}->($request, $folder);
            for my $index (@order) {
                my $found = $opened->{get}->($keys->[$index]) // die "a process did not find what another has stored\n";
                die "a process found another value than the one that was stored\n" if $found ne $values->[$index & 255];
            }
            return;
        },
        get => sub {
            my ($get, $limit, $gets, $hits) = ($opened->{get}, $request->{settings}{seconds}, 0, 0);
            my $start = clock_gettime(CLOCK_MONOTONIC);
            my $now = $start;
            while ($now - $start < $limit) {
                my $block = $blocks[$at];
                $at = ($at + 1) % @blocks;
                for my $key (@$block) { $hits++ if defined $get->($key) }
                $gets += @$block;
                $now = clock_gettime(CLOCK_MONOTONIC);
            }
            die "a process missed what was there before\n" if $hits < $gets;
            return map { sprintf '%.9f', $_ } $gets, $start, $now;
        },
    };
}

1;
