# Times to live in the past and in the far future, so that no test waits.
use v5.16;
use warnings;
use Test::More;
use Time::HiRes ();
use lib 't/lib';
use Both;
use EyewallTest;

my @raw = (serializer => '');

# The remaining time of a value, to the nearest of a few seconds that the test may take; undef: never.
sub from_now {
    my ($cache) = @_;
    my ($entry) = $cache->get_keys(1);
    return unless $entry->{expire_on};
    my $left = $entry->{expire_on} - time;
    for my $near (60, 600, 3600, 7200, 86_400, 7 * 86_400) {
        return $near if $left <= $near && $left > $near - 30;
    }
    return $left;
}

for my $case ([60, 60], ['1m', 60], ['10m', 600], ['1h', 3600], ['2h', 7200], ['1d', 86_400], ['60s', 60], ['10 minutes', 600], ['1w', 7 * 86_400], ['never', undef]) {
    my ($given, $seconds) = @$case;
    both("expire_time $given", { @raw, expire_time => $given }, sub { $_[0]->set(k => 1); (scalar from_now($_[0]), $_[0]->get('k')) }, [$seconds, 1]);
    both("a set with $given", { @raw, expire_time => '5d' }, sub { $_[0]->set(k => 1, $given); (scalar from_now($_[0]), $_[0]->get('k')) }, [$seconds, 1]);
    both("a set with expire_time $given", { @raw, expire_time => '5d' },
        sub { $_[0]->set(k => 1, { expire_time => $given }); (scalar from_now($_[0]), $_[0]->get('k')) }, [$seconds, 1]);
}
both('expire_on', {@raw}, sub { $_[0]->set(k => 1, { expire_on => time + 3600 }); (scalar from_now($_[0]), $_[0]->get('k')) }, [3600, 1]);
both('expire_on undef is the default', { @raw, expire_time => '1h' }, sub { $_[0]->set(k => 1, { expire_on => undef }); scalar from_now($_[0]) }, [3600]);
both('expire_on 0 is never', { @raw, expire_time => '1h' }, sub { $_[0]->set(k => 1, { expire_on => 0 }); scalar from_now($_[0]) }, [undef]);
both('expire_on is kept to the second', {@raw}, sub { my $on = time + 5000; $_[0]->set(k => 1, { expire_on => $on }); ($_[0]->get_keys(1))[0]{expire_on} - $on }, [0]);
both('a time that is over', {@raw}, sub { my $s = $_[0]->set(k => 1, { expire_on => time - 10 }); ($s, $_[0]->get('k')) }, [1, undef]);
both('a set over a value with a time that is over', {@raw}, sub { $_[0]->set(k => 1); $_[0]->set(k => 2, { expire_on => time - 10 }); $_[0]->get('k') }, [undef]);
both('get_and_set keeps a time', {@raw}, sub {
    my ($cache) = @_;
    $cache->set(k => 1, '1h');
    $cache->get_and_set(k => sub { ($_[1] + 1, { expire_on => $_[2]{expire_on} }) });
    return ($cache->get('k'), scalar from_now($cache));
}, [2, 3600]);
both('get_and_set gives a time', {@raw}, sub { $_[0]->get_and_set(k => sub { (1, { expire_time => '10m' }) }); scalar from_now($_[0]) }, [600]);
both('get_and_set has the default', { @raw, expire_time => '1d' }, sub { $_[0]->get_and_set(k => sub { 1 }); scalar from_now($_[0]) }, [86_400]);
both('get_and_set of no time', {@raw}, sub { my $on; $_[0]->set(k => 1); $_[0]->get_and_set(k => sub { $on = $_[2]{expire_on}; 2 }); $on }, [0]);
both('multi_set with a time', {@raw}, sub { $_[0]->multi_set(p => { k => 1 }, { expire_time => '1h' }); scalar from_now($_[0]) }, [3600]);
both('a set with now', {@raw}, sub { my $s = $_[0]->set(k => 1, 'now'); ($s, $_[0]->get('k')) }, [1, undef]);
both('expire_time 0 is none', { @raw, expire_time => 0 }, sub { $_[0]->set(k => 1); scalar from_now($_[0]) }, [undef]);

for my $given ('soon', 's', -5, '-1m') {
    both("a time of $given is over at once", { @raw, expire_time => '1h' },
        sub { local $SIG{__WARN__} = sub { }; my $s = $_[0]->set(k => 1, $given); ($s, $_[0]->get('k')) }, [1, undef]);
}

subtest 'only ours' => sub {
    my $cache = ours(@raw);
    my ($before, $on) = (Time::HiRes::time, time + 100);
    $cache->set(timed => 1, { expire_on => $on });
    my $left = $cache->{cache}->lookup('timed')->{ttl_left};
    # Clocks are rounded to the millisecond, and may differ by some.
    cmp_ok($left, '<=', $on - $before + 0.1, 'a value lives no longer than to its second');
    $cache->set(zero => 1, 0);
    is($cache->get('zero'), 1, '0 is none for a set, too, as the documentation has it and 1.57 has not');
    my $warning = '';
    local $SIG{__WARN__} = sub { $warning .= $_[0] };
    ok($cache->set(k => 1, { expire_time => 'soon' }), 'a time that is none');
    like($warning, qr/expires at once, since soon is not a time.* at \S*fastmmap-expiry\.t line /, 'is told, where it was given');
    is_error(sub { ours(@raw, expire_time => 'soon') }, 'argument', 'and an error as an option of new');
    is_error(sub { $cache->set(k => 1, { expire_on => $_ }) }, 'argument', "expire_on of $_") for 'soon', -sin(9**9**9);
    is_error(sub { $cache->get_and_set('k') }, 'argument', 'get_and_set without a sub');
    ok($cache->set(k => 1, { expire_on => '' }) && $cache->set(k => 2, { expire_on => 1e300 }), 'expire_on of nothing, and far away');
    is($cache->get('k'), 2, 'are stored');
};

done_testing;
