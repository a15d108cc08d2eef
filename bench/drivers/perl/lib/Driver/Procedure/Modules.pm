package Driver::Procedure::Modules;

# Sets, gets and a mix of both, in one process. Measures their time, and the hits.
use v5.26;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
use Driver::Protocol;
use Driver::Request;
use Driver::Values;

use constant CHECKED => 64;

sub name { return 'modules' }

sub check_settings {
    my ($class, $request) = @_;
    Driver::Request::numbers($request, qw(keys operations rounds seconds stored_percent set_percent));
    Driver::Request::objects($request, qw(binary_bytes structured_fields configurations));
}

sub check_case {
    my ($class, $request) = @_;
    my $settings = $request->{settings};
    my $values = $request->{case}{values} // '';
    refuse("case: values is '$values'; it may be binary or structured") unless $values =~ /^(?:binary|structured)$/;
    $request->{is_structured} = $values eq 'structured';
    $request->{size} = Driver::Request::chosen($request, size => $settings->{ $values eq 'binary' ? 'binary_bytes' : 'structured_fields' });
    $request->{configuration} = Driver::Request::chosen($request, configuration => $settings->{configurations});
}

sub vectors {
    my ($class, $request) = @_;
    return Driver::Values->new($request)->vectors;
}

sub new {
    my ($class, $request) = @_;
    my $data = Driver::Values->new($request);
    return bless { data => $data, keys => $data->keys, values => $data->values }, $class;
}

# Dies if the store returns a wrong value.
sub figures {
    my ($self, $store, $request, $folder) = @_;
    my $opened = $store->{open}->($request, $folder);
    my ($data, $keys, $values) = @$self{qw(data keys values)};
    my ($count, $rounds, $limit) = @{ $request->{settings} }{qw(keys rounds seconds)};
    my ($set, $get) = @$opened{qw(set get)};
    my %figures;

    my $sequence = [(0 .. $count - 1) x $rounds];
    my ($done, $seconds) = timed(scalar @$sequence, $limit, sub {
        my ($from, $to) = @_;
        $set->($keys->[$_], $values->[$_ & 255]) for @$sequence[$from .. $to - 1];
    });
    my $stored = $done < $count ? $done : $count;
    @figures{qw(set stored)} = ($done / $seconds, $stored);

    ($sequence, my $hits) = ([(@{ $data->gets($stored) }) x $rounds], 0);
    ($done, $seconds) = timed(scalar @$sequence, $limit, sub {
        my ($from, $to) = @_;
        for (@$sequence[$from .. $to - 1]) { $hits++ if defined $get->($keys->[$_]) }
    });
    @figures{qw(get get_hits)} = ($done / $seconds, 100 * $hits / $done);
    check($get, $keys, $values, $sequence, $stored);

    ($sequence, $hits, my $gets) = ([(@{ $data->mix($stored) }) x $rounds], 0, 0);
    ($done, $seconds) = timed(scalar @$sequence, $limit, sub {
        my ($from, $to) = @_;
        for (@$sequence[$from .. $to - 1]) {
            if ($_ < 0) {
                my $index = -1 - $_;
                $set->($keys->[$index], $values->[$index & 255]);
                next;
            }
            $gets++;
            $hits++ if defined $get->($keys->[$_]);
        }
    });
    $figures{mix} = $done / $seconds;
    $figures{mix_hits} = 100 * $hits / $gets if $gets;
    return map { { measure => $_, value => $figures{$_} } } sort keys %figures;
}

# Does `count` operations by `work`, or fewer if the time is up first. Returns their number and their seconds. It checks
# the clock between blocks of operations, and enlarges short blocks.
sub timed {
    my ($count, $limit, $work) = @_;
    my ($done, $block) = (0, 1);
    my $start = clock_gettime(CLOCK_MONOTONIC);
    my $now = $start;
    while ($done < $count && $now - $start < $limit) {
        my ($from, $before) = ($done, $now);
        $done = $from + $block < $count ? $from + $block : $count;
        $work->($from, $done);
        $now = clock_gettime(CLOCK_MONOTONIC);
        $block *= 2 if $now - $before < $limit / 50;
    }
    return ($done, $now - $start);
}

sub check {
    my ($get, $keys, $values, $sequence, $stored) = @_;
    for my $index (@$sequence[0 .. (@$sequence < CHECKED ? @$sequence : CHECKED) - 1]) {
        my $found = $get->($keys->[$index]);
        next if !defined $found;
        die "it has a value for a key that was never stored\n" if $index >= $stored;
        my $expected = Driver::Values::text_of($values->[$index & 255]);
        die "it gave another value than the one that was stored\n" if Driver::Values::text_of($found) ne $expected;
    }
}

1;
