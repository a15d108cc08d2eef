# Values of all kinds, through serializers and compressors; keys and values of text.
use v5.16;
use warnings;
use utf8;
use Test::More;
use lib 't/lib';
use Both;
use EyewallTest;

my $structure = { name => 'Ann', list => [1, 2, { a => undef }], text => "caf\xe9 \x{263a}" };
my $text = "na\x{ef}ve \x{263a} \x{10ffff}";

for my $serializer ('storable', 'json', 'sereal') {
    my $module = { storable => 'Storable', json => 'JSON', sereal => 'Sereal' }->{$serializer};
    SKIP: {
        skip "$module is not installed", 1 unless eval "require $module; 1";
        both("$serializer: values", { serializer => $serializer }, sub {
            my ($cache) = @_;
            my @values = ($structure, [1, 'two'], 'a string', $text, 42, 1.5, '', undef);
            $cache->set("key $_" => $values[$_]) for 0 .. $#values;
            return map { $cache->get("key $_") } 0 .. $#values;
        }, [$structure, [1, 'two'], 'a string', $text, 42, 1.5, '', undef]);
    }
}
both('a value is a copy', {}, sub { my @l = (1); $_[0]->set(k => \@l); push @l, 2; push @{ $_[0]->get('k') }, 3; $_[0]->get('k') }, [[1]]);
both('subs', { serializer => [sub { join ',', @${ $_[0] } }, sub { \[split /,/, $_[0]] }] }, sub { $_[0]->set(k => [1, 2]); $_[0]->get('k') }, [[1, 2]]);
both('raw_values', { raw_values => 1 }, sub { $_[0]->set(k => 5); $_[0]->get('k') }, [5]);
both('raw text', { serializer => '' }, sub { $_[0]->set($text => $text); my $got = $_[0]->get($text); ($got, utf8::is_utf8($got), $_[0]->get_keys(0)) },
    [$text, !!1, $text]);
both('raw bytes', { serializer => '' }, sub { $_[0]->set("\xe9" => "\0\xff"); my $got = $_[0]->get("\xe9"); ($got, utf8::is_utf8($got), $_[0]->get_keys(0)) },
    ["\0\xff", !!0, "\xe9"]);
both('text under a compressor', { serializer => 'storable', compressor => 'zlib' }, sub { $_[0]->set($text => $text); $_[0]->get($text) }, [$text]);
both('a compressor', { compressor => 'zlib' }, sub { $_[0]->set(k => ['long ' x 50_000]); $_[0]->get('k') }, [['long ' x 50_000]]);
both('compress', { compress => 1, serializer => '' }, sub { $_[0]->set(k => 'long ' x 50_000); $_[0]->get('k') }, ['long ' x 50_000]);
both('a compressor of subs', { serializer => '', compressor => [sub { scalar reverse $_[0] }, sub { scalar reverse $_[0] }] },
    sub { $_[0]->set(k => 'abc'); $_[0]->get('k') }, ['abc']);
for my $module ('Compress::LZ4', 'Compress::Snappy') {
    SKIP: {
        skip "$module is not installed", 1 unless eval "require $module; 1";
        both($module, { compressor => lc $module =~ s/.*:://r }, sub { $_[0]->set(k => ['long ' x 500]); $_[0]->get('k') }, [['long ' x 500]]);
    }
}

subtest 'only ours' => sub {
    my $file = path();
    my @at = (share_file => $file, cache_size => '2m', unlink_on_exit => 0);
    my $plain = Cache::Eyewall::FastMmap->new(@at, serializer => '');
    my $packed = Cache::Eyewall::FastMmap->new(@at, compressor => 'zlib');
    my $other = Cache::Eyewall->open(path => $file);
    $packed->set(k => [1]);
    is_error(sub { $plain->get('k') }, 'argument', 'what was packed needs the packer');
    $plain->set(k => 'plain');
    is($packed->get('k'), 'plain', 'what was not is got by all');
    is($other->get('k'), 'plain', 'also by other languages');
    $other->put(k => 'of C', metadata => 'text/html');
    is($packed->get('k'), 'of C', 'and the other way round');
    Cache::Eyewall::FastMmap->new(@at)->set(string => 'as it is');
    is($other->get('string'), 'as it is', 'a string is stored as such, whatever the serializer');
    my $both = "5";
    { no warnings 'void'; $both + 0 }
    $packed->set(both => $both);
    is($packed->get('both'), 5, 'a number that was a string');
    is_error(sub { ours(serializer => 'xml') }, 'argument', 'a serializer that nobody knows');
    is_error(sub { ours(compressor => 'zip') }, 'argument', 'a compressor that nobody knows');
    is_error(sub { ours(serializer => [sub { 1 }]) }, 'argument', 'half a pair');
    is_error(sub { ours(cache_size => 'large') }, 'argument', 'a size that is none');
    is_error(sub { ours(expire_time => 'soon') }, 'argument', 'a time that is none');
    is_error(sub { ours(write_action => 'write_twice') }, 'argument', 'a write_action that is none');
    is_error(sub { ours(share_file => \'file') }, 'argument', 'a file that is none');
};

done_testing;
