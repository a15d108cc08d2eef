--TEST--
WordPress: what is in the volume is there for all processes of the site, and for no other site
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . '/../helpers.inc';
require __DIR__ . '/stubs.inc';

const WP_EYEWALL_SIZE = '4M';
define('WP_EYEWALL_PATH', folder() . '/objects');
define('DB_NAME', 'shop');
$GLOBALS['multisite'] = true;
require __DIR__ . '/../../wordpress/eyewall/object-cache.php';

/** Another process of the site, or of one with another salt, which has the same cache. */
function other(string $script, string ...$arguments): Process
{
    $load = 'require $argv[1] . "/stubs.inc"; define("WP_EYEWALL_PATH", $argv[2]); define("DB_NAME", "shop"); $GLOBALS["multisite"] = true; $argv[3] === "" || define("WP_CACHE_KEY_SALT", $argv[3]);
        require $argv[1] . "/../../wordpress/eyewall/object-cache.php"; wp_cache_init(); wp_cache_add_global_groups(["users"]);';
    return new Process($load . $script, __DIR__, WP_EYEWALL_PATH, ...($arguments ?: ['']));
}

/** What a new request of this process finds. */
function next_request(): void
{
    wp_cache_init();
    wp_cache_add_global_groups(['users']);
    wp_cache_add_non_persistent_groups('passing');
}

next_request();
same('', Eyewall_Object_Cache::fault());
check($GLOBALS['wp_object_cache'] instanceof WP_Object_Cache);
$volume = $GLOBALS['wp_object_cache']->volume();

// Two processes share what they store.
wp_cache_set('k', ['from' => 'one']);
same('{"from":"one"}two', other('echo json_encode(wp_cache_get("k")); wp_cache_set("k", "two"); echo wp_cache_get("k");')->rest());
// A request keeps what it has seen, until it asks for the present value.
same(['from' => 'one'], wp_cache_get('k'));
same('two', wp_cache_get('k', '', true));
same('two', wp_cache_get('k'));
same('1', other('echo wp_cache_delete("k");')->rest());
same(['two', false, false], [wp_cache_get('k'), wp_cache_get('k', '', true), wp_cache_get('k')]);
// Only one of all processes adds a key, even if another remembers a value that is gone.
wp_cache_set('lock', 1);
same('1', other('echo wp_cache_delete("lock"), wp_cache_add("lock", 2) ? "" : "not added";')->rest());
same([false, true], [wp_cache_add('lock', 3), wp_cache_delete('lock')]);
same([true, false], [wp_cache_add('lock', 4), wp_cache_replace('lock', 5) && other('wp_cache_delete("lock");')->rest() === '' && wp_cache_replace('lock', 6)]);
same(false, wp_cache_get('lock'));

// No step of a counter is lost.
wp_cache_set('n', 0, '', 3600);
$counting = array_map(fn () => other('for ($i = 0; $i < 100; $i++) { wp_cache_incr("n"); }'), range(1, 3));
same(['', '', ''], array_map(fn (Process $process) => $process->rest(), $counting));
same(300, wp_cache_get('n', '', true));
same(299, wp_cache_decr('n'));
// It expires when it would have.
$ttl = $volume->lookup('wp:' . rawurlencode('shop') . '-' . substr(md5(serialize(['', 'shop', ''])), 0, 8) . ':1:default:n')['ttl'];
check($ttl > 1800 && $ttl <= 3600);

// Values expire, in the memory of the request, too.
wp_cache_set('brief', 1, '', 1);
wp_cache_set('passing', 1, 'passing', 1);
$patience = microtime(true) + 60;
while ((wp_cache_get('brief') !== false || wp_cache_get('brief', '', true) !== false || wp_cache_get('passing', 'passing') !== false) && microtime(true) < $patience) {
    usleep(10_000);
}
same([false, false, false], [wp_cache_get('brief'), wp_cache_get('brief', '', true), wp_cache_get('passing', 'passing')]);
wp_cache_set('past', 1);
same([true, false], [wp_cache_set('past', 2, '', -1), wp_cache_get('past', '', true)]);

// Groups that are not persistent are in this request only.
wp_cache_set('counts', 5, 'passing');
same([5, 6, true, 6], [wp_cache_get('counts', 'passing', true), wp_cache_incr('counts', 1, 'passing'), !wp_cache_add('counts', 1, 'passing'), wp_cache_get('counts', 'passing')]);
next_request();
same([false, false, false, false], [wp_cache_get('counts', 'passing'), wp_cache_replace('counts', 1, 'passing'), wp_cache_delete('counts', 'passing'), wp_cache_incr('counts', 1, 'passing')]);

// A value that can't be stored is there for this request; other processes don't get the former one.
foreach (['serialized' => fn () => 1, 'large' => str_repeat('x', 1 << 20)] as $why => $value) {
    wp_cache_set('odd', 'former');
    same(false, wp_cache_set('odd', $value), $why);
    check($GLOBALS['wp_object_cache']->last_fault !== '');
    same(get_debug_type($value), get_debug_type(wp_cache_get('odd')));
    same(false, wp_cache_add('odd', $value), $why);
    same('bool(false)', trim(other('var_dump(wp_cache_get("odd"));')->rest()));
    next_request();
    same(false, wp_cache_get('odd'));
}
// Nor is a request stopped by a value that can't be read.
other('class Known { public function __unserialize(array $data): void { throw new Exception("not here"); } public function __serialize(): array { return [1]; } }
    wp_cache_set("unreadable", new Known()); wp_cache_set("readable", "yes");')->rest();
eval('class Known { public function __unserialize(array $data): void { throw new Exception("not here"); } }');
same(false, wp_cache_get('unreadable', '', false, $found));
same(false, $found);
same(['unreadable' => false, 'readable' => 'yes'], wp_cache_get_multiple(['unreadable', 'readable']));

// One blog is flushed, without the others and what is global.
wp_cache_set('k', 1);
wp_cache_set('k', 'all', 'users');
wp_cache_switch_to_blog(2);
wp_cache_set('k', 2);
same('', other('wp_cache_set("k", "theirs"); wp_cache_set("k", "theirs", "users");', 'another shop')->rest());
same('', other('wp_cache_set("k", "prefixed");', 'another')->rest());
check($GLOBALS['wp_object_cache']->flush_blog());
same([false, 'all'], [wp_cache_get('k'), wp_cache_get('k', 'users')]);
wp_cache_switch_to_blog(1);
same(1, wp_cache_get('k'));
// A flush covers this WordPress, and no other that shares the volume.
check(wp_cache_flush());
same([false, false], [wp_cache_get('k'), wp_cache_get('k', 'users')]);
same('theirs theirs', other('echo wp_cache_get("k"), " ", wp_cache_get("k", "users");', 'another shop')->rest());
// Its name begins with the other's.
same('1', other('echo wp_cache_flush();', 'another')->rest());
same('theirs theirs', other('echo wp_cache_get("k"), " ", wp_cache_get("k", "users");', 'another shop')->rest());
same('theirs', other('wp_cache_flush_group("users"); wp_cache_flush_runtime(); echo wp_cache_get("k"), wp_cache_get("k", "users");', 'another shop')->rest());
echo "done\n";
--EXPECT--
done
