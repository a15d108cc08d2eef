--TEST--
Options, and the ini settings that are their defaults
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\Cache;

foreach ([
    ['size' => -1], ['size' => '64X'], ['size' => ''], ['size' => 1.5], ['size' => '99999999999T'], ['mode' => 01000], ['mode' => 0], ['mode' => '0668'],
    ['group' => 'no-such-group'], ['group' => -1], ['group' => ''], ['group' => []], ['lock_deadline' => 0], ['lock_deadline' => 'soon'], ['lock_deadline' => NAN],
    ['lock_deadline' => null, 'tier' => 'x'], ['entry_bytes_max' => []], ['entry_size_hint' => '5G'], ['tier_folder' => ''], ['tier_folder' => "a\0b"],
    ['serializer' => 'json'], ['serializer' => 1], ['must_exist' => 2], ['read_only' => 'yes'], ['survive_sigbus' => []],
    ['put_aside_broken' => 'maybe'], ['verify_hits' => 2],
] as $options) {
    $said = thrown(fn () => volume($options + ['size' => '4M'], 'refused'));
    check(str_starts_with($said, 'ValueError 0: The option ' . array_key_last($options) . ' must be '), json_encode($options) . $said);
}
same('ValueError 0: There is no option colour; see the constructor of Eyewall\Cache', thrown(fn () => volume(['colour' => 1])));
same('ValueError 0: There is no option without a name; see the constructor of Eyewall\Cache', thrown(fn () => volume([1])));
same(false, file_exists(folder() . '/refused'));
same('ValueError 0: The path of the volume is missing: pass it, or set eyewall.path in php.ini', thrown(fn () => new Cache()));
same('ValueError 0: Eyewall\Cache::__construct(): Argument #1 ($path) cannot be empty', thrown(fn () => new Cache('')));
check(str_contains(thrown(fn () => new Cache("a\0b")), 'must not contain any null bytes'));

$cache = new Cache(folder() . '/shaped', ['size' => '2M', 'entry_bytes_max' => '256K', 'entry_size_hint' => 512, 'mode' => '0640',
    'group' => (string) posix_getegid(), 'lock_deadline' => 0.25, 'survive_sigbus' => true]);
same(2 << 20, $cache->stats()['size_bytes']);
same(256 << 10, $cache->stats()['entry_bytes_max']);
same(0640, fileperms(folder() . '/shaped') & 0777);
same(posix_getegid(), filegroup(folder() . '/shaped'));

// A broken file.
touch(folder() . '/broken');
refused(Eyewall\Exception::CORRUPT, 'put_aside_broken', fn () => volume([], 'broken'));
same(true, volume(['put_aside_broken' => true], 'broken')->set('a', 1));
same(1, count(glob(folder() . '/broken.broken-*')));

// A fleet: purges wait for its node.
volume([], 'alone')->purgeTag('before');
same(false, file_exists(folder() . '/alone.purges'));
volume(['fleet' => true], 'alone')->purgeTag('post-7');
same(1, substr_count(file_get_contents(folder() . '/alone.purges'), 'post-7'));

// Damage.
$careful = volume(['verify_hits' => true], 'careful');
$careful->set('a', 'a value that is damaged later');
same('a value that is damaged later', $careful->get('a'));
$file = fopen(folder() . '/careful', 'r+');
fseek($file, strpos(stream_get_contents($file), 'a value that is damaged later'));
fwrite($file, '#');
fclose($file);
same(null, $careful->get('a'));

// Options take precedence over ini settings.
ini_set('eyewall.path', folder() . '/from-ini');
ini_set('eyewall.size', '1M');
ini_set('eyewall.serializer', 'none');
ini_set('eyewall.mode', '0660');
same(1 << 20, (new Cache())->stats()['size_bytes']);
same(0660, fileperms(folder() . '/from-ini') & 0777);
check(str_contains(thrown(fn () => (new Cache())->set('a', [])), 'without a serializer'));
check((new Cache(null, ['serializer' => 'php']))->set('a', []));
ini_set('eyewall.must_exist', '1');
refused(Eyewall\Exception::NOT_FOUND, '', fn () => new Cache(folder() . '/another'));
check((new Cache(folder() . '/another', ['must_exist' => false])) instanceof Cache);
ini_set('eyewall.size', 'many');
same('ValueError 0: The ini setting eyewall.size must be a number of bytes, or text such as "64M"', thrown(fn () => new Cache()));

check((new Cache(null, ['size' => '1M'])) instanceof Cache);
ini_set('eyewall.size', '');
ini_set('eyewall.must_exist', '');

// A relative path depends on the present directory.
chdir(folder());
(new Cache('from-ini', ['size' => '1M']))->set('relative', 1);
chdir('/');
same(1, (new Cache(folder() . '/from-ini', ['size' => '1M']))->get('relative'));
// The extension obeys open_basedir.
$closed = new Process('ini_set("open_basedir", "/usr");
    echo thrown(fn () => @new Eyewall\Cache($argv[1])), "\n", thrown(fn () => @new Eyewall\Cache("/usr/x", ["tier_folder" => "/dev/shm"]));', folder() . '/closed');
same('ValueError 0: open_basedir does not permit the volume\'s path ' . folder() . '/closed', $closed->line());
same('ValueError 0: The option tier_folder must be the path of a folder that open_basedir permits', $closed->line());
$closed->rest();
echo "done\n";
--EXPECT--
done
