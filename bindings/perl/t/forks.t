# A server that forks workers: all share one cache, whichever process opened it, and whichever dies.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();

my $path = path();
my $cache = Cache::Eyewall->open(path => $path, size => 4 << 20);
$cache->put(from => 'parent');

subtest 'workers of an opened cache' => sub {
    my @workers = map {
        my $worker = $_;
        child(sub {
            die 'not what the parent put' unless $cache->get('from') eq 'parent';
            for my $i (1 .. 500) {
                $cache->put("$worker $i" => "$worker $i " x 10);
                $cache->increment('requests');
                die 'not what was put' unless $cache->get("$worker $i") eq "$worker $i " x 10;
            }
            1;
        })
    } 1 .. 4;
    ok(reap(@workers), 'all read and write');
    is($cache->increment('requests', 0), 2000, 'and count together');
    is($cache->get('3 500'), '3 500 ' x 10, 'the parent has it, too');
};

subtest 'workers that open it themselves' => sub {
    my @workers = map {
        my $worker = $_;
        child(sub {
            my $own = Cache::Eyewall->open(path => $path);
            $own->put("own $worker" => $own->get('from'));
            $own->close;
            1;
        })
    } 1 .. 4;
    ok(reap(@workers), 'all');
    is_deeply([$cache->get_many(map { "own $_" } 1 .. 4)], [('parent') x 4], 'what they put is there');
};

subtest 'what the parent holds is not the child\'s' => sub {
    my ($claim, $page) = ($cache->claim('held'), $cache->get_pinned('from'));
    ok(reap(child(sub { undef $claim; undef $page; 1 })), 'a child frees its copies');
    is($$page, 'parent', 'the parent\'s pin holds on');
    ok($claim->put('by the parent'), 'and so does its claim');
};

subtest 'workers that are killed' => sub {
    pipe my $from, my $to or die $!;
    my @workers = map {
        my $worker = $_;
        child(sub {
            syswrite $to, "works\n";
            for (my $i = 0; ; $i++) {
                $cache->put('busy ' . $i % 50 => 'x' x 5000);
            }
        })
    } 1 .. 3;
    close $to;
    <$from> for @workers;
    kill KILL => @workers;
    waitpid $_, 0 for @workers;
    ok($cache->put(after => 1) && $cache->get('from') eq 'parent', 'the parent goes on');
    is(Cache::Eyewall->open(path => $path)->get('after'), 1, 'and so does whoever comes');
};

subtest 'a prefork family with the interface of Cache::FastMmap' => sub {
    my $shared = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '4m');
    $shared->set(config => { name => 'value' });
    my @workers = map {
        child(sub {
            die 'not what the parent set' unless $shared->get('config')->{name} eq 'value';
            $shared->get_and_set(visits => sub { ($_[1] // 0) + 1 }) for 1 .. 100;
            1;
        })
    } 1 .. 4;
    ok(reap(@workers), 'all');
    is($shared->get('visits'), 400, 'no update is lost');
    # A child that ends by exit runs destructors.
    my $pid = fork // die $!;
    if (!$pid) { Test::More->builder->no_ending(1); exit 0 }
    ok(reap($pid), 'a child ends by exit');
    ok(-e $shared->{share_file}, 'and leaves the parent its file');
};

done_testing;
