# Callbacks to the store behind the cache: read through, write through, write back.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

# A store behind the cache, and the calls to it.
my (%store, @asked);
my @behind = (
    serializer => '',
    context    => 'context',
    read_cb    => sub { push @asked, "read $_[0] $_[1]"; $store{ $_[1] } },
    write_cb   => sub { push @asked, "write $_[0] $_[1] $_[2] " . ($_[3] ? 'until' : 'forever'); $store{ $_[1] } = $_[2] },
    delete_cb  => sub { push @asked, "delete $_[0] $_[1]"; delete $store{ $_[1] } },
);

# The result of code, and after it the calls that it made.
sub asks {
    my ($code, @given) = @_;
    (%store, @asked) = ();
    %store = @given;
    return sub { @asked = (); %store = @given; my @results = $code->(@_); return (@results, [@asked]) };
}

both('get reads through', {@behind}, asks(sub { ($_[0]->get('k'), $_[0]->get('k')) }, k => 'v'), ['v', 'v', ['read context k']]);
both('nothing is not kept', {@behind}, asks(sub { ($_[0]->get('k'), $_[0]->get('k')) }), [undef, undef, ['read context k', 'read context k']]);
both('nothing is kept with cache_not_found', { @behind, cache_not_found => 1 }, asks(sub { ($_[0]->get('k'), $_[0]->get('k')) }), [undef, undef, ['read context k']]);
both('set writes through', {@behind}, asks(sub { my $s = $_[0]->set(k => 'v'); ($s, $_[0]->get('k')) }), [1, 'v', ['write context k v forever']]);
both('remove deletes', {@behind}, asks(sub { $_[0]->set(k => 'v'); @asked = (); $_[0]->remove('k'); ($_[0]->get('k')) }, k => 'v'), [undef, ['delete context k', 'read context k']]);
both('expire does not', {@behind}, asks(sub { $_[0]->set(k => 'v'); @asked = (); $_[0]->expire('k'); $_[0]->get('k') }), ['v', ['read context k']]);
both('get_and_set reads and writes', {@behind}, asks(sub { $_[0]->get_and_set(k => sub { "$_[1]!" }) }, k => 'v'), ['v!', 1, ['read context k', 'write context k v! forever']]);
both('clear and empty tell nobody', {@behind}, asks(sub { $_[0]->set(k => 'v'); @asked = (); $_[0]->clear; $_[0]->empty; () }), [[]]);
both('read_cb that dies', { @behind, read_cb => sub { die "no\n" } }, asks(sub { eval { $_[0]->get('k') }; $@ }), ["no\n", []]);
both('structures', { serializer => 'storable', write_cb => sub { $store{ $_[1] } = $_[2] } }, sub { $_[0]->set(k => ['v']); $store{k} }, [['v']]);
both('write_back writes nothing yet', { @behind, write_action => 'write_back' }, asks(sub { $_[0]->set(k => 'v'); ($_[0]->get('k'), [@asked]) }), ['v', [], []]);
both('write_back at empty', { @behind, write_action => 'write_back' }, asks(sub { $_[0]->set(k => 'v'); $_[0]->empty; $_[0]->empty; () }), [['write context k v forever']]);
both('write_back at expire', { @behind, write_action => 'write_back' }, asks(sub { $_[0]->set(k => 'v'); $_[0]->expire('k'); () }), [['write context k v forever']]);
both('what was read is not written back', { @behind, write_action => 'write_back' }, asks(sub { $_[0]->get('k'); $_[0]->empty; () }, k => 'v'), [['read context k']]);
both('flags of what is to be written back', { @behind, write_action => 'write_back' }, asks(sub { $_[0]->set(k => 'v'); ($_[0]->get_keys(1))[0]{flags} }), [1, []]);
both('callbacks without context', { serializer => '', read_cb => sub { defined $_[0] ? 'context' : "read $_[1]" } }, sub { $_[0]->get('k') }, ['read k']);

subtest 'at the end of a cache' => sub {
    (%store, @asked) = ();
    my $file = path();
    my $cache = ours(@behind, share_file => $file, write_action => 'write_back', empty_on_exit => 1);
    $cache->set(k => 'v');
    ok(reap(child(sub { $cache->DESTROY; 1 })), 'a child ends');
    is_deeply(\@asked, [], 'and its parent has written nothing');
    is($cache->get('k'), 'v', 'nor emptied anything');
    undef $cache;
    is_deeply(\@asked, ['write context k v forever'], 'empty_on_exit');
    ok(!-e $file, 'unlink_on_exit is for files that were not there');
    $cache = ours(@behind, share_file => $file, unlink_on_exit => 0);
    undef $cache;
    ok(-e $file, 'unless it is asked for not to');
    $cache = ours(@behind, share_file => $file);
    undef $cache;
    ok(-e $file, 'nor where the file was there');
};

subtest 'which values are written back, and when' => sub {
    (%store, @asked) = ();
    my @back = (@behind, write_action => 'write_back');
    my $cache = ours(@back);
    $cache->set("key $_" => 'v') for 1 .. 1000;
    is(scalar @asked, 1000, 'after a thousand values');
    $cache->set("key $_" => 'x' x 10_000) for 1 .. 20;
    cmp_ok(scalar(@asked), '>', 1000, 'after a 32nd of the cache');
    @asked = ();
    $cache->set(k => 'old', { expire_on => time - 10 });
    is_deeply(\@asked, ['write context k old until'], 'at once where its time is over');
    is($cache->get('k'), 'old', 'after which it is read');
    my $file = path();
    my $other = ours(@back, share_file => $file);
    my $child = child(sub { $other->set(left => 'behind'); 1 });
    ok(reap($child), 'a process sets a value, and ends without destructors');
    @asked = ();
    $other->empty;
    is_deeply(\@asked, ['write context left behind forever'], 'empty writes it back');
    @asked = ();
    my $warning = '';
    local $SIG{__WARN__} = sub { $warning .= $_[0] };
    my $failing = ours(serializer => '', write_action => 'write_back', write_cb => sub { push @asked, 'asked'; die "no\n" });
    $failing->set(k => 'v');
    $failing->expire('other');
    $failing->_write_back('k') for 1 .. 2;
    is_deeply(\@asked, ['asked', 'asked'], 'what could not be written back is tried again');
    like($warning, qr/write_cb: no/, 'and that is told');
};

subtest 'recursion' => sub {
    my $cache;
    $cache = ours(serializer => '', read_cb => sub { my ($context, $key) = @_; $key eq 'a' ? 'of ' . $cache->get('b') : "read $key" });
    is($cache->get('a'), 'of read b', 'a callback may use the cache');
    is_deeply([$cache->get_and_set(c => sub { $cache->set(d => 1); $cache->get('b') })], ['read b', 1], 'that of get_and_set, too');
    $cache = ours(serializer => '', read_cb => sub { $cache->get($_[1]) });
    is_error(sub { $cache->get('a') }, 'argument', 'but not for the key that it was called for');
    is_error(sub { $cache->get_and_set(a => sub { $cache->get_and_set(a => sub { 1 }) }) }, 'argument', 'nor for a change of it');
    my $depth = 0;
    $cache = ours(serializer => '', allow_recursive => 1, read_cb => sub { $depth++ ? 'deep' : $cache->get($_[1]) });
    is($cache->get('a'), 'deep', 'unless allow_recursive');
    $cache = ours(serializer => '', write_cb => sub { $cache->set($_[1] => 'by write_cb') if $_[2] eq 'v' });
    $cache->set(k => 'v');
    is($cache->get('k'), 'by write_cb', 'a set by write_cb stays');
};

subtest 'write_cb gets the expiry time' => sub {
    (%store, @asked) = ();
    my $cache = ours(@behind, expire_time => '1d');
    $cache->set(k => 'v', '1h');
    $cache->set(l => 'v');
    $cache->set(m => 'v', 'never');
    is_deeply(\@asked, ['write context k v until', 'write context l v until', 'write context m v forever'], 'by the set, else by the cache');
};

subtest 'one process reads a key at a time' => sub {
    my $cache = ours(serializer => '', read_cb => sub { my ($counts, $key) = @_; $counts->increment($key); "read $key" },
        context => Cache::Eyewall->anonymous(size => 1 << 20));
    ok(reap(map { child(sub { $cache->get('k') eq 'read k' }) } 1 .. 4), 'four processes ask');
    is($cache->{context}->increment('k', 0), 1, 'one reads');
};

subtest 'callbacks that die' => sub {
    my $warnings = '';
    local $SIG{__WARN__} = sub { $warnings .= $_[0] };
    my $cache = ours(serializer => '', write_cb => sub { die "write\n" }, delete_cb => sub { die "delete\n" });
    ok($cache->set(k => 'v') && $cache->get('k') eq 'v', 'a set is done');
    ok($cache->remove('k'), 'a remove is done');
    is($warnings, "write_cb: write\ndelete_cb: delete\n", 'and both are told');
};

done_testing;
