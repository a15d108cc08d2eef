# Entries that are written piece by piece, while followers read them.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;

my $cache = Cache::Eyewall->open(path => path(), size => 4 << 20, lock_deadline => 0.05);

subtest 'a writer' => sub {
    $cache->put(feed => 'former');
    my $writer = $cache->writer('feed', ttl => 3600, stale => 60, tags => ['feeds'], metadata => 'text/xml');
    $writer->write('<item>');
    $writer->write('');
    $writer->write("caf\xe9");
    is($cache->get('feed'), 'former', 'nobody finds it before it is committed');
    my $serial = $writer->commit;
    cmp_ok($serial, '>', 0, 'commit gives a serial');
    my $known = $cache->lookup('feed');
    is_deeply([@$known{qw(value serial metadata)}, $known->{tags}], ["<item>caf\xe9", $serial, 'text/xml', ['feeds']], 'it is the entry');
    ok($known->{ttl_left} > 3000 && $known->{usable_left} > 3600, 'with its times');
    is_error(sub { $writer->write('more') }, 'argument', 'no piece comes after that');
    is_error(sub { $writer->commit }, 'argument', 'nor another commit');
    $writer->abort;
    is($cache->get('feed'), "<item>caf\xe9", 'and nothing is undone');
    $writer = $cache->writer('empty', length => 0);
    ok($writer->commit, 'of nothing');
    is($cache->get('empty'), '', 'is an empty value');
};

subtest 'a writer with a known length' => sub {
    my $value = 'x' x 100_000;
    my $writer = $cache->writer('large', length => length $value);
    $writer->write(substr $value, $_ * 10_000, 10_000) for 0 .. 9;
    ok($writer->commit, 'as many as were said');
    ok($cache->get('large') eq $value, 'all of them');
    for my $length (3, 10) {
        $writer = $cache->writer('other', length => $length);
        $writer->write('12345');
        $writer->commit;
        is($cache->get('other'), '12345', "what is written counts, and not that $length bytes were said");
    }
};

subtest 'the end of a writer' => sub {
    $cache->put(k => 'former');
    my $writer = $cache->writer('k');
    $writer->write('new');
    $writer->abort;
    is($cache->get('k'), 'former', 'abort');
    is_error(sub { $writer->commit }, 'argument', 'after which there is no commit');
    eval { my $begun = $cache->writer('k'); $begun->write('new'); die "in the middle\n" };
    is($@, "in the middle\n", 'code that dies');
    is($cache->get('k'), 'former', 'gives it up');
    ok($cache->claim('k')->put('by a claim'), 'and the key is free');
    $writer = $cache->writer('k');
    is_error(sub { $cache->claim('k') }, 'busy', 'while it is written it is not');
    is_error(sub { $cache->writer('k') }, 'busy', 'for another writer neither');
    $cache->put(k => 'meanwhile');
    $writer->write('late');
    is($writer->commit, undef, 'a put beside it supersedes it');
    is($cache->get('k'), 'meanwhile', 'and stays');
    $writer = $cache->writer('k', tags => ['t']);
    $cache->purge_tag('t');
    $writer->write('purged');
    is($writer->commit, undef, 'and so does a purge that means it');
    isnt($cache->get('k') // '', 'purged', 'after which it is not found');
};

subtest 'invalid calls' => sub {
    is_error(sub { $cache->writer('') }, 'key_empty', 'an empty key');
    is_error(sub { $cache->writer('k', length => -1) }, 'argument', 'a length below 0');
    is_error(sub { $cache->writer('k', length => 1.5) }, 'argument', 'half a byte');
    is_error(sub { $cache->writer('k', length => 'long') }, 'argument', 'a length that is no number');
    is_error(sub { $cache->writer('k', start => 1) }, 'argument', 'an option that is not one of a writer');
    is_error(sub { $cache->put(k => 1, length => 1) }, 'argument', 'nor is its of a put');
    is_error(sub { $cache->writer('k', length => 3_000_000) }, 'entry_too_large', 'a large one');
    my $writer = $cache->writer('k');
    is_error(sub { $writer->write("\x{263a}") }, 'argument', 'characters');
    is_error(sub { $writer->write(undef) }, 'argument', 'nothing');
    is_error(sub { $writer->write(['piece']) }, 'argument', 'a reference');
    $writer->write('whole');
    ok($writer->commit, 'after which it goes on');
    is($cache->get('k'), 'whole', 'without what was refused');
    $writer = $cache->writer('k');
    is_error(sub { $writer->write('x' x 3_000_000) }, 'entry_too_large', 'what becomes large');
    is_error(sub { $writer->commit }, 'interrupted', 'of which nothing comes');
    is($cache->get('k'), 'whole', 'the former entry stays');
    is_error(sub { Cache::Eyewall::Writer::write($cache, 'x') }, 'argument', 'a cache is no writer');
    is_error(sub { Cache::Eyewall::Follower::read($cache) }, 'argument', 'nor a follower');
};

subtest 'a follower' => sub {
    is($cache->follow('live'), undef, 'nobody writes');
    my $writer = $cache->writer('live', metadata => 'text/plain');
    $writer->write('one ');
    my $follower = $cache->follow('live');
    is($follower->metadata, 'text/plain', 'metadata');
    is($follower->read, 'one ', 'what was written is read');
    is_error(sub { $follower->read(deadline => 0) }, 'busy', 'there is no more yet');
    is_error(sub { $follower->read(deadline => -1) }, 'argument', 'a deadline that is over');
    is_error(sub { $follower->read(until => 1) }, 'argument', 'an option that there is not');
    $writer->write('two');
    is($follower->read(deadline => 0), 'two', 'now there is');
    $writer->write('x' x 70_000);
    is(length $follower->read, 65_536, 'up to so many at once');
    is(length $follower->read, 70_000 - 65_536, 'and then the others');
    $writer->commit;
    is($follower->read, undef, 'that was all');
    is($follower->read, undef, 'which it stays');
    $follower->end;
    $follower->end;
    is_error(sub { $follower->read }, 'argument', 'it has ended');
    is_error(sub { $follower->metadata }, 'argument', 'in all');
    $writer = $cache->writer('live');
    $writer->write('one');
    $follower = $cache->follow('live');
    $writer->abort;
    is_error(sub { 1 while defined $follower->read }, 'interrupted', 'a writer that gives up');
};

subtest 'a process follows another' => sub {
    pipe my $from, my $to or die $!;
    pipe my $committed, my $commits or die $!;
    my $writer = $cache->writer('across');
    $writer->write('one, ');
    my $reader = child(sub {
        close $commits;
        my $follower = $cache->follow('across') or die 'nobody writes';
        syswrite $to, $follower->read . "\n";
        # This waits for the writer.
        syswrite $to, $follower->read(deadline => 60) . "\n";
        sysread $committed, my $end, 1;
        return !defined $follower->read;
    });
    close $_ for $to, $committed;
    is(scalar <$from>, "one, \n", 'from the first byte on');
    $writer->write('two');
    is(scalar <$from>, "two\n", 'as it comes');
    ok($writer->commit, 'the writer goes on');
    close $commits;
    ok(reap($reader), 'and the other one knows that it was all');
};

subtest 'a wait can be woken by a signal' => sub {
    my $writer = $cache->writer('slow');
    my $follower = $cache->follow('slow');
    local $SIG{ALRM} = sub { die "woken\n" };
    alarm 1;
    ok(!eval { $follower->read(deadline => 600); 1 }, 'it ends');
    is($@, "woken\n", 'by its handler');
    is_error(sub { $follower->read(deadline => 0) }, 'busy', 'and may be called again');
};

subtest 'a forked child' => sub {
    my $writer = $cache->writer('forked', length => 3);
    my $follower = $cache->follow('forked');
    ok(reap(child(sub {
        return error_name(sub { $writer->write('abc') }) eq 'interrupted' && error_name(sub { $follower->read(deadline => 0) }) eq 'interrupted'
            && error_name(sub { $writer->commit }) eq 'interrupted';
    })), 'can neither write nor read');
    ok(reap(child(sub { $writer->abort; undef $writer; undef $follower; 1 })), 'nor end it');
    $writer->write('abc');
    ok($writer->commit, 'for its parent');
    is($cache->get('forked'), 'abc', 'who has it');
};

subtest 'a writer that is killed' => sub {
    pipe my $from, my $to or die $!;
    my $pid = child(sub {
        my $writer = $cache->writer('dies');
        $writer->write('half');
        syswrite $to, "writes\n";
        sleep 600;
    });
    close $to;
    is(scalar <$from>, "writes\n", 'a child writes');
    my $follower = $cache->follow('dies');
    is($follower->read, 'half', 'and is followed');
    kill KILL => $pid;
    waitpid $pid, 0;
    is_error(sub { $follower->read(deadline => 60) }, 'interrupted', 'who follows is told');
    is($cache->get('dies'), undef, 'there is no half entry');
    my $writer = $cache->writer('dies');
    $writer->write('whole');
    ok($writer->commit, 'and another one writes it');
};

# They outlive their cache, and global destruction frees them in any order.
my $last = Cache::Eyewall->anonymous(size => 1 << 20);
our ($last_writer, $last_follower) = ($last->writer('k'), $last->follow('k'));
$last->close;
$last_writer->write('v');
is($last_follower->read, 'v', 'they outlive the closing of their cache');

done_testing;
