# Changes under a claim, and fills.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;

my $path = path();
my $cache = Cache::Eyewall->open(path => $path, size => 4 << 20, lock_deadline => 30);
# Without a wait, for keys that are claimed.
my $hasty = Cache::Eyewall->anonymous(size => 1 << 20, lock_deadline => 0.05);

subtest 'claims' => sub {
    my $claim = $cache->claim('log');
    is($claim->value, undef, 'there is nothing');
    ok($claim->put('one', ttl => 60), 'put');
    $claim = $cache->claim('log');
    is($claim->value, 'one', 'there is something');
    $cache->put(log => 'meanwhile');
    is($claim->put('two'), undef, 'a put beside it supersedes it');
    is($cache->get('log'), 'meanwhile', 'and stays');
    ok($cache->claim('log')->remove, 'remove');
    is($cache->get('log'), undef, 'is one');
    is($claim->value, 'one', 'what it found can still be read');
};

subtest 'a claim ends with its object' => sub {
    { my $claim = $hasty->claim('k') }
    ok($hasty->claim('k')->put(1), 'when it goes out of scope');
    eval { my $claim = $hasty->claim('k'); die "in the middle\n" };
    ok($hasty->claim('k')->put(2), 'when code dies that holds it');
    my $claim = $hasty->claim('k');
    $claim->end;
    $claim->end;
    ok($hasty->claim('k')->put(3), 'when it is ended');
};

subtest 'no update is lost' => sub {
    my @children = map {
        child(sub {
            for (1 .. 200) {
                my $claim = $cache->claim('sum');
                $claim->put(($claim->value // 0) + 1);
            }
            1;
        })
    } 1 .. 3;
    ok(reap(@children), 'three processes count');
    is($cache->get('sum'), 600, 'and none loses a count of another');
};

subtest 'fill' => sub {
    my $made = 0;
    my $make = sub { $made++; return "made of $_[0]", ttl => 60, tags => ['t'] };
    is($cache->fill(page => $make), 'made of page', 'made');
    is($cache->fill(page => $make), 'made of page', 'found');
    is($made, 1, 'made once');
    is_deeply($cache->lookup('page')->{tags}, ['t'], 'with its options');
    is($cache->fill(none => sub { return }), undef, 'nothing');
    is($cache->get('none'), undef, 'is not kept');
    is(eval { $cache->fill(fails => sub { die "no\n" }) }, undef, 'one that dies');
    is($@, "no\n", 'says so');
    is($cache->fill(fails => sub { 'yes' }), 'yes', 'and the next one makes it');
    $cache->put_negative(known => 404, ttl => 60);
    is($cache->fill(known => sub { fail('not asked') }), undef, 'what is known not to be there');
    my $value = $cache->fill(raced => sub { $cache->put(raced => 'of another'); 'mine' });
    is("$value, " . $cache->get('raced'), 'mine, of another', 'a put meanwhile stays');
    $cache->put(old => 'old', ttl => 60, stale => 60);
    $cache->purge_prefix('old', soft => 1);
    my ($state, $flight) = $cache->fill_begin('old', 0, 1);
    is($state, 'ours', 'what is stale is ours to make');
    is_deeply([$cache->fill_begin('old', 0, 1)], ['stale', 'old'], 'while others may have the stale one');
    is($cache->fill(old => sub { fail('not asked') }, use_stale => 1, deadline => 0), 'old', 'by fill, too');
    $flight->remember(503, 60);
    is_deeply([$cache->fill_begin('old', 0)], ['negative', 503], 'remembered');
};

subtest 'request collapsing' => sub {
    my @children = map {
        child(sub {
            my $value = $cache->fill(shared => sub { $cache->increment('times'); 'made' }, deadline => 60);
            $value eq 'made';
        })
    } 1 .. 4;
    ok(reap(@children), 'four processes have it');
    is($cache->increment('times', 0), 1, 'one has made it');
};

subtest 'a fill that reaches its deadline' => sub {
    my (undef, $flight) = $hasty->fill_begin('slow');
    is_error(sub { $hasty->fill(slow => sub { 1 }, deadline => 0.02) }, 'busy', 'says so');
    ok(reap(child(sub {
        local $SIG{ALRM} = sub { die "woken\n" };
        alarm 1;
        my (undef, $other) = $cache->fill_begin('long');
        # This process holds the key itself, so only the signal ends the wait.
        return !eval { $cache->fill(long => sub { 1 }, deadline => 600); 1 } && $@ eq "woken\n";
    })), 'and one that would wait long can be woken by a signal');
};

subtest 'the death of a process ends its claim' => sub {
    pipe my $from, my $to or die $!;
    my $pid = child(sub {
        my $claim = $cache->claim('held');
        my (undef, $flight) = $cache->fill_begin('made');
        syswrite $to, "holds\n";
        sleep 600;
    });
    close $to;
    is(scalar <$from>, "holds\n", 'a child holds both');
    kill KILL => $pid;
    waitpid $pid, 0;
    ok($cache->claim('held')->put(1), 'the claim passes on');
    is($cache->fill(made => sub { 'by another' }, deadline => 60), 'by another', 'and so does the fill');
};

done_testing;
