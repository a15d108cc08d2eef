# Bugs of Cache::FastMmap that this class must not have.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;
use IO::Handle;

my @raw = (serializer => '');

subtest 'a process that attaches after a writer was killed' => sub {
    my $file = path();
    for my $round (1 .. 10) {
        pipe my $from, my $to or die $!;
        my $pid = child(sub {
            my $cache = ours(@raw, share_file => $file, unlink_on_exit => 0);
            syswrite $to, "writes\n";
            for (my $i = 0; ; $i++) {
                $cache->set('key ' . $i % 100 => chr(97 + $i % 26) x 5000);
            }
        });
        close $to;
        <$from>;
        kill KILL => $pid;
        waitpid $pid, 0;
        ok(reap(child(sub {
            my $cache = ours(@raw, share_file => $file);
            for my $key (grep { /^key/ } $cache->get_keys(0)) {
                my $value = $cache->get($key) // next;
                die "torn: $key" unless $value =~ /\A(.)\g1{4999}\z/;
            }
            $cache->set(after => $round) && $cache->get('after') eq $round;
        })), "round $round: it reads whole values, and writes");
    }
};

subtest 'concurrent first opens' => sub {
    for my $round (1 .. 5) {
        my $file = path();
        pipe my $from, my $to or die $!;
        my @children = map {
            my $child = $_;
            child(sub {
                close $to;
                sysread $from, my $byte, 1;
                my $cache = ours(@raw, share_file => $file, unlink_on_exit => 0);
                $cache->set("of $child" => $child);
                $cache->get("of $child") eq $child;
            })
        } 1 .. 8;
        # Closing the pipe starts all processes.
        close $to;
        ok(reap(@children), "round $round: none dies");
        my $cache = ours(@raw, share_file => $file);
        is_deeply([map { $cache->get("of $_") } 1 .. 8], [1 .. 8], "round $round: all have the same");
    }
};

subtest 'updates while the process closes the file' => sub {
    my $file = path();
    my $cache = ours(@raw, share_file => $file);
    my @children = map {
        child(sub {
            for (1 .. 200) {
                $cache->get_and_set(sum => sub {
                    # Libraries close files so. POSIX locks would be lost by it.
                    open my $same, '<', $file or die $!;
                    close $same;
                    return ($_[1] // 0) + 1;
                });
            }
            1;
        })
    } 1 .. 3;
    ok(reap(@children), 'three processes count');
    is($cache->get('sum'), 600, 'none is lost');
};

subtest 'values that fit are kept' => sub {
    my $cache = Cache::Eyewall::FastMmap->new(share_file => path(), @raw, cache_size => '8m');
    my $count = 4000;
    $cache->set("key $_" => 'x' x 1000) for 1 .. $count;
    is(scalar(grep { defined $cache->get("key $_") } 1 .. $count), $count, 'four million bytes in eight');
};

subtest 'large values' => sub {
    my $cache = Cache::Eyewall::FastMmap->new(share_file => path(), @raw, cache_size => '8m', page_size => '64k');
    my $large = 'large ' x 300_000;
    ok($cache->set(large => $large), 'a value of 1.8 million bytes');
    ok($cache->get('large') eq $large, 'is got');
    my $warning = '';
    local $SIG{__WARN__} = sub { $warning .= $_[0] };
    $cache->set(k => 'before');
    ok(!$cache->set(k => 'x' x 3_000_000), 'more than a quarter of the cache is refused');
    like($cache->last_refusal, qr/\d/, 'which says why');
    like($warning, qr/^not stored: .* at \Q${\__FILE__}\E line/, 'and warns');
    is($cache->get('k'), 'before', 'what was there stays');
    $warning = '';
    ok(!$cache->set('k' x 70_000 => 1), 'a key too long');
    is($warning, '', 'without a second warning');
};

subtest 'sizes' => sub {
    for my $size ('1k', 524_289, '5.8m', 5_800_000, 1_000_001, '3m', 7_777_777) {
        my $cache = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => $size);
        ok($cache->set(k => 'v') && $cache->get('k') eq 'v', "a size of $size");
    }
};

subtest 'files' => sub {
    my $file = path();
    open my $handle, '>', $file or die $!;
    print {$handle} 'something else ' x 1000;
    close $handle or die $!;
    is_error(sub { ours(share_file => $file) }, 'foreign', 'a file of something else is refused');
    ok(ours(share_file => $file, init_file => 1, unlink_on_exit => 0)->set(k => 1), 'and made anew with init_file');
    is(ours(share_file => $file)->get('k'), 1, 'without it, all is kept');
    is_error(sub { ours(share_file => $file, cache_size => '4m') }, 'options_differ', 'one of another size is refused');
    my $cache = ours(share_file => $file, init_file => 1);
    is($cache->get('k'), undef, 'init_file removes all');
    undef $cache;
    $cache = ours(share_file => $file, cache_size => '4m', init_file => 1, permissions => 0640, unlink_on_exit => 1);
    is($cache->{cache}->size <= 4 << 20 && (stat $file)[2] & 0777, 0640, 'or makes it of the new size, with permissions');
    undef $cache;
    $cache = Cache::Eyewall::FastMmap->new;
    ok(-e $cache->{share_file} && $cache->{cache}->size > 5_000_000, 'nothing has to be said');
    my $made = $cache->{share_file};
    undef $cache;
    ok(!-e $made, 'and nothing is left');
};

subtest 'a large cache' => sub {
    for my $size (8 << 30, 1 << 40) {
        my $largest = Cache::Eyewall::FastMmap::Options::entry_bytes_max($size);
        cmp_ok($largest, '<', 1 << 31, 'has a largest entry that the engine allows');
        is($largest % 4096, 0, 'of whole pages');
    }
    is(Cache::Eyewall::FastMmap::Options::entry_bytes_max(1 << 20), 1 << 18, 'a quarter of a small one');
};

done_testing;
