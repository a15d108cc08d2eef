# Arguments of all kinds: tied, overloaded, matched, numbers out of range; and variables that a call must not
# change.
use v5.16;
use warnings;
use B ();
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use Cache::Eyewall::FastMmap ();

# Returns another, longer string each time.
package Growing { sub TIESCALAR { my $n = 0; bless \$n, $_[0] } sub FETCH { 'tied ' . 'x' x (1000 * ${ $_[0] }++) } }
package Fixed { sub TIESCALAR { bless \(my $value = $_[1]), $_[0] } sub FETCH { ${ $_[0] } } }
package Text { use overload '""' => sub { $_[0][0]->() }, fallback => 1; sub new { bless [$_[1]], $_[0] } }
package Number { use overload '0+' => sub { ${ $_[0] } }, fallback => 1; sub new { bless \(my $n = $_[1]), $_[0] } }
package Compared { use overload '==' => sub { 1 }; sub new { bless [], $_[0] } }

package main;

my $cache = Cache::Eyewall->open(path => path(), size => 4 << 20);
my $shared = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '4m', serializer => '');

sub fixed { my ($value) = @_; tie my $tied, 'Fixed', $value; return \$tied }

subtest 'tied' => sub {
    tie my $growing, 'Growing';
    $cache->put($growing, $growing);
    is_deeply([map { length } $cache->keys, $cache->get('tied ')], [5, 1005], 'a scalar that is another string each time is fetched once for each');
    is_deeply([$cache->get_many($growing, $growing, 'tied ')], [undef, undef, 'tied ' . 'x' x 1000], 'in lists, too');
    $shared->set($growing, $growing);
    is_deeply([map { length } %{ +{ map { ($_->{key} => $_->{value}) } $shared->get_keys(2) } }], [4005, 5005], 'and by the other interface');
    $cache->put(${ fixed('k') }, ${ fixed('v') }, ttl => ${ fixed(3600) }, stale => ${ fixed(60) }, metadata => ${ fixed('m') }, tags => ${ fixed([${ fixed('t') }]) });
    my $known = $cache->lookup(${ fixed('k') });
    is_deeply([@$known{qw(value metadata)}, $known->{tags}], ['v', 'm', ['t']], 'options');
    ok($known->{ttl_left} && $known->{ttl_left} <= 3600, 'times');
    tie my @tags, 'Tags';
    $cache->put(k => 'v', tags => \@tags);
    is_deeply($cache->lookup('k')->{tags}, ['tag 0', 'tag 1'], 'tags');
    is($cache->increment(n => ${ fixed(3) }, max => ${ fixed(2) }), 2, 'numbers');
    is_error(sub { $cache->put(k => ${ fixed(undef) }) }, 'argument', 'and undef is undef');
};

package Tags { require Tie::Array; our @ISA = ('Tie::Array'); sub TIEARRAY { bless [] } sub FETCH { "tag $_[1]" } sub FETCHSIZE { 2 } }

package main;

subtest 'matched' => sub {
    'page 3600 tag' =~ /(\w+) (\d+) (\w+)/ or die;
    $cache->put($1, $1, ttl => $2, tags => [$3]);
    my $known = $cache->lookup('page');
    is_deeply([$known->{value}, $known->{tags}], ['page', ['tag']], 'what a match has found');
    ok(defined $known->{ttl_left}, 'its number is a time');
};

subtest 'overloaded' => sub {
    my $text = Text->new(sub { 'a string' });
    $cache->put($text, $text, metadata => $text);
    is($cache->get('a string') . $cache->lookup($text)->{metadata}, 'a stringa string', 'an object is its string');
    $cache->put(number => Number->new(42), ttl => Number->new(60));
    is($cache->get('number'), 42, 'or its number');
    ok(!eval { $cache->put(k => Compared->new); 1 }, 'one that has neither is refused by Perl');
    my $closing = Cache::Eyewall->anonymous(size => 1 << 20);
    is_error(sub { $closing->put(k => Text->new(sub { $closing->close; 'v' })) }, 'argument', 'one that closes the cache');
    my $claim = $cache->claim('claimed');
    is_error(sub { $claim->put(Text->new(sub { $claim->end; 'v' })) }, 'argument', 'one that ends the claim');
    my $writer = $cache->writer('written');
    is_error(sub { $writer->write(Text->new(sub { $writer->abort; 'v' })) }, 'argument', 'one that ends the writer');
    ok(!eval { $cache->put(k => Text->new(sub { die "no string\n" })); 1 }, 'one that dies');
    is($@, "no string\n", 'is heard');
    $shared->set($text => $text);
    is($shared->get('a string'), 'a string', 'by the other interface, too');
};

subtest 'numbers' => sub {
    my ($huge, $nan) = (9**9**9, -sin(9**9**9));
    for my $number (-1, 1.5, 'many', '', undef, 1e30, $huge, $nan, [], '0x10') {
        my $name = defined $number ? "'$number'" : 'undef';
        is_error(sub { $cache->replace(k => $number, 'v') }, 'argument', "a serial of $name");
        is_error(sub { $cache->remove_if(k => $number) }, 'argument', "to remove a serial of $name");
        is_error(sub { $cache->touch('k', if_serial => $number) }, 'argument', "to touch a serial of $name");
        is_error(sub { $cache->put_negative(k => $number) }, 'argument', "a reason of $name");
        next if defined $number && $number eq '-1';
        is_error(sub { $cache->increment(k => $number) }, 'argument', "to add $name");
        is_error(sub { $cache->increment('k', 1, $_ => $number) }, 'argument', "$_ of $name") for qw(start min max);
    }
    for my $time (-1, 0, 'soon', $nan, -$huge, []) {
        is_error(sub { $cache->put(k => 'v', ttl => $time) }, 'argument', "a ttl of $time");
        is_error(sub { $cache->touch('k', ttl => $time) }, 'argument', "to touch with a ttl of $time");
        next if $time eq '0';
        is_error(sub { $cache->put(k => 'v', stale => $time) }, 'argument', "a stale of $time");
        is_error(sub { $cache->fill_begin(k => $time) }, 'argument', "a deadline of $time");
        is_error(sub { $cache->fill(k => sub { fail('asked') }, deadline => $time) }, 'argument', "a deadline of $time for fill");
    }
    is($cache->get('k'), 'v', 'of all that nothing was stored');
    for my $ever (1e20, $huge, '1e300', 18446744073709551615) {
        $cache->put(ever => 1, ttl => $ever, stale => $ever);
        is($cache->lookup('ever')->{ttl_left}, undef, "$ever seconds are forever");
        $cache->put(long => 1, ttl => 60, stale => $ever);
        cmp_ok($cache->lookup('long')->{usable_left}, '>', 1e9, "and so long it stays usable");
    }
    $cache->put(short => 1, ttl => 1e-9, stale => 3600);
    ok($cache->lookup('short'), 'the least time is one');
    $cache->put(none => 1, ttl => 3600, stale => 0);
    my $known = $cache->lookup('none');
    is($known->{usable_left}, $known->{ttl_left}, 'stale for no time');
    is($cache->increment('large', 9223372036854775807), 9223372036854775807, 'the largest sum');
    is($cache->increment('small', -9223372036854775808), -9223372036854775808, 'the smallest sum');
    is_error(sub { $cache->increment('large', 18446744073709551615) }, 'argument', 'more than that');
    is($cache->increment('large', '-7'), 9223372036854775800, 'numbers in strings are numbers');
    my $unmet = $cache->replace(k => 18446744073709551615, 'v');
    is($unmet, undef, 'the largest serial');
};

subtest 'options of open' => sub {
    for my $wrong ([mode => '0660'], [mode => 010000], [entry_size_hint => 1 << 32], [group => 1 << 32], [group => '4294967295'], [size => -1], [size => '1e9x'],
        [size => 9**9**9], [lock_deadline => 'nan'], [tier_folder => "a\0b"]) {
        is_error(sub { Cache::Eyewall->open(path => path(), size => 1 << 20, @$wrong) }, 'argument', "$wrong->[0] of $wrong->[1]");
    }
    my $path = path();
    Cache::Eyewall->open(path => $path, size => 1 << 20, mode => '432');
    is((stat $path)[2] & 0777, 0660, 'a mode in decimal digits');
    is(ref $cache->anonymous(size => 1 << 20), 'Cache::Eyewall', 'an object opens another of its class');
    is_error(sub { Cache::Eyewall::FastMmap->new(share_file => path(), num_pages => $_) }, 'argument', "num_pages of $_") for -1, 'many';
    is_error(sub { Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '9' x 30 . 'g') }, 'argument', 'a cache_size that nothing has');
    my $far = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '1m', expire_time => '99999999999999999w');
    ok($far->set(k => 'v') && $far->get('k') eq 'v', 'a time so far away that it can not be counted');
    is_error(sub { $far->set(k => 'v', { modseq => $_ }) }, 'argument', "a modseq of $_") for -1, 'new', 1.5;
};

subtest 'unchanged variables' => sub {
    $@ = 'before';
    $cache->fill(filled => sub { 'v' });
    is($@, 'before', '$@ by fill');
    my $told = Cache::Eyewall::FastMmap->new(share_file => path(), cache_size => '1m', write_cb => sub { 1 }, delete_cb => sub { 1 });
    $told->set(k => 'v');
    $told->remove('k');
    undef $told;
    is($@, 'before', '$@ by callbacks');
    my $key = 5;
    $cache->put($key => $key);
    $cache->get($key);
    my $number = '7';
    $cache->increment(numbers => $number);
    $cache->replace(k => $number, 'v');
    is_deeply([map { B::svref_2object(\$_)->FLAGS & (B::SVf_POK() | B::SVf_IOK()) } $number], [B::SVf_POK()], 'a string that was a number');
    for my $text ("caf\xe9") {
        utf8::upgrade(my $upgraded = $text);
        $cache->put($upgraded => $upgraded, tags => ['t']);
        ok(utf8::is_utf8($upgraded), 'the UTF-8 flag of an argument');
        ok(!utf8::is_utf8($cache->get($text)), 'which a value has not');
    }
};

subtest 'errors in handlers and callbacks' => sub {
    (undef, my $flight) = $cache->fill_begin('asked');
    local $SIG{ALRM} = sub { die bless {}, 'Anything' };
    alarm 1;
    ok(!eval { $cache->fill(asked => sub { 1 }, deadline => 600); 1 } && ref $@ eq 'Anything', 'an object of any class') or diag $@;
    $flight->end;
    ok(!eval { $cache->fill(asked => sub { die bless {}, 'Anything' }); 1 } && ref $@ eq 'Anything', 'by the one that makes it, too');
    is_error(sub { $cache->fill(asked => sub { "\x{263a}" }) }, 'argument', 'a value that is refused');
    is($cache->fill(asked => sub { 'made' }, deadline => 0), 'made', 'leaves the key free');
    is_error(sub { $shared->get_and_set(k => sub { (1, { expire_on => 'soon' }) }) }, 'argument', 'a time that is refused');
    is($shared->get_and_set(k => sub { 2 }), 2, 'also');
    LEFT: for (1) { no warnings 'exiting'; $cache->fill(left => sub { last LEFT }) }
    is($cache->fill(left => sub { 'made' }, deadline => 0), 'made', 'code that leaves by last');
};


done_testing;
