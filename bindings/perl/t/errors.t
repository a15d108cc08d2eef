# Errors have a name, a message and a place.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;

my $path = path();
my $cache = Cache::Eyewall->open(path => $path, size => 1 << 20, lock_deadline => 0.05);

subtest 'an error' => sub {
    ok(!eval { $cache->put('', 1); 1 }, 'is thrown');
    my ($error, $line) = ($@, __LINE__ - 1);
    isa_ok($error, 'Cache::Eyewall::Error');
    is($error->name, 'key_empty', 'has a name');
    cmp_ok($error->code, '<', 0, 'has a code');
    ok(length $error->message, 'has a sentence');
    is($error->file, __FILE__, 'has the file');
    is($error->line, $line, 'and the line that called');
    eval { $cache->fill('', sub { 1 }) };
    is($@->line, __LINE__ - 1, 'also where there is Perl between');
    like("$error", qr/^\Q${\$error->message}\E at \Q${\__FILE__}\E line $line\.$/, 'is all of it as a string');
    ok($error, 'is true');
};

subtest 'opening' => sub {
    is_error(sub { Cache::Eyewall->open(path => path(), must_exist => 1) }, 'not_found', 'there is none');
    is_error(sub { Cache::Eyewall->open(path => path(), size => 1000) }, 'out_of_range', 'too small');
    is_error(sub { Cache::Eyewall->open(path => $path, size => 2 << 20) }, 'options_differ', 'of another size');
    my $text = path();
    open my $file, '>', $text or die $!;
    print {$file} 'not a volume ' x 1000;
    close $file or die $!;
    is_error(sub { Cache::Eyewall->open(path => $text) }, 'foreign', 'of something else');
    is_error(sub { Cache::Eyewall->open }, 'argument', 'without a path');
    is_error(sub { Cache::Eyewall->open(path => "a\0b") }, 'argument', 'a path with a zero byte');
    is_error(sub { Cache::Eyewall->open(path => path(), sise => 1 << 20) }, 'argument', 'an option that there is not');
    is_error(sub { Cache::Eyewall->open(path => path(), size => 'large') }, 'argument', 'a size that is no number');
    is_error(sub { Cache::Eyewall->open(path => path(), group => 'no such group') }, 'argument', 'a group that there is not');
    is_error(sub { Cache::Eyewall->anonymous(path => path()) }, 'argument', 'an anonymous one with a path');
    my $broken = path();
    open $file, '>', $broken or die $!;
    close $file or die $!;
    is_error(sub { Cache::Eyewall->open(path => $broken) }, 'corrupt', 'of an empty file');
    like($@->message, qr/put_aside_broken/, 'which names the option');
    ok(Cache::Eyewall->open(path => $broken, size => 1 << 20, put_aside_broken => 1)->put(a => 1), 'a broken file is put aside');
    is(scalar(my @aside = glob "$broken.broken-*"), 1, 'and kept');
    unlink @aside or die $!;
    Cache::Eyewall->open(path => $broken, fleet => 1)->purge_tag('post-7');
    ok(-s "$broken.purges", 'purges wait for the node of a fleet');
    unlink "$broken.purges" or die $!;
    my $careful = Cache::Eyewall->open(path => $broken, size => 1 << 20, verify_hits => 1);
    $careful->put(b => 'a value that is damaged later');
    is($careful->get('b'), 'a value that is damaged later', 'a value that is verified');
    open $file, '+<:raw', $broken or die $!;
    my $bytes = do { local $/; readline $file };
    seek $file, index($bytes, 'a value that is damaged later'), 0 or die $!;
    print {$file} '#';
    close $file or die $!;
    is($careful->get('b'), undef, 'and is a miss when it was damaged');
    my $reader = Cache::Eyewall->open(path => $path, read_only => 1);
    is_error(sub { $reader->put(a => 1) }, 'read_only', 'a put by who may only read');
};

subtest 'keys, values and options' => sub {
    is_error(sub { $cache->get('k' x 70_000) }, 'key_too_long', 'a long key');
    is_error(sub { $cache->get(undef) }, 'argument', 'an undefined key');
    is_error(sub { $cache->get("\x{263a}") }, 'argument', 'a key of characters');
    is_error(sub { $cache->put(a => "\x{263a}") }, 'argument', 'a value of characters');
    is_error(sub { $cache->put(a => undef) }, 'argument', 'an undefined value');
    is_error(sub { $cache->put(a => [1]) }, 'argument', 'a reference');
    is_error(sub { $cache->put(a => 'x' x 1_000_000) }, 'entry_too_large', 'a large value');
    is_error(sub { $cache->put(a => 1, 'ttl') }, 'argument', 'half a pair');
    is_error(sub { $cache->put(a => 1, tll => 5) }, 'argument', 'an option that there is not');
    is_error(sub { $cache->put(a => 1, ttl => 0) }, 'argument', 'no time at all');
    is_error(sub { $cache->put(a => 1, ttl => 'soon') }, 'argument', 'no number');
    is_error(sub { $cache->put(a => 1, tags => 'news') }, 'argument', 'tags that are no array');
    is_error(sub { $cache->put(a => 1, tags => [1 .. 33]) }, 'too_many_tags', 'many tags');
    is_error(sub { $cache->put(a => 1, tags => ['x' x 256]) }, 'tag_length', 'a long tag');
    is_error(sub { $cache->put(a => 1, tags => ["\xff"]) }, 'argument', 'a tag that is no UTF-8');
    is_error(sub { $cache->put(a => 1, metadata => 'x' x 70_000) }, 'metadata_too_long', 'much metadata');
    is_error(sub { $cache->put(a => 1, begun_in => 'today') }, 'argument', 'a moment that is none');
    is_error(sub { $cache->touch('a', tags => []) }, 'argument', 'a touch of tags');
    is_error(sub { $cache->touch('a', 'ttl') }, 'argument', 'half a pair for a touch');
    is_error(sub { $cache->purge_tag('a', hard => 1) }, 'argument', 'a kind of purge that there is not');
    is_error(sub { $cache->purge_all('soft') }, 'argument', 'half a pair for a purge');
    is_error(sub { $cache->put_negative(a => 70_000) }, 'argument', 'a large reason');
    is_error(sub { $cache->fill('a') }, 'argument', 'a fill without a sub');
    is_error(sub { $cache->fill(a => sub { 1 }, dead_line => 1) }, 'argument', 'an option of fill that there is not');
    is_error(sub { $cache->fill_begin('a', -1) }, 'argument', 'a deadline that is over');
    is($cache->get('a'), undef, 'nothing of it was stored');
    $cache->put(text => 'words');
    is_error(sub { $cache->increment('text') }, 'not_a_counter', 'no counter');
    is($cache->get('text'), 'words', 'which stays');
};

subtest 'objects' => sub {
    is_error(sub { Cache::Eyewall::get('Cache::Eyewall', 'a') }, 'argument', 'a class is no object');
    is_error(sub { Cache::Eyewall::get(\my $number, 'a') }, 'argument', 'nor is a reference');
    is_error(sub { Cache::Eyewall::get(bless({}, 'Cache::Eyewall'), 'a') }, 'argument', 'nor is one that was blessed by hand');
    is_error(sub { Cache::Eyewall::Claim::end($cache) }, 'argument', 'a cache is no claim');
    is_error(sub { Cache::Eyewall::Flight::end($cache) }, 'argument', 'nor a flight');
    is_error(sub { Cache::Eyewall::Walk::next($cache) }, 'argument', 'nor a walk');
};

subtest 'claims' => sub {
    my $claim = $cache->claim('c');
    is_error(sub { $cache->claim('c') }, 'busy', 'another has it');
    is_error(sub { $cache->fill_begin('c', 0.01) }, 'busy', 'and so has a fill to wait');
    is_error(sub { $claim->put("\x{263a}") }, 'argument', 'a value of characters');
    ok($claim->put('still mine'), 'after which the claim goes on');
    is_error(sub { $claim->put(1) }, 'argument', 'one claim, one change');
    is_error(sub { $claim->remove }, 'argument', 'of whatever kind');
    $claim->end;
    my (undef, $flight) = $cache->fill_begin('f');
    is_error(sub { $flight->remember(70_000) }, 'argument', 'a large reason');
    $flight->end;
    is_error(sub { $flight->store(1) }, 'argument', 'one flight, one entry');
};

done_testing;
