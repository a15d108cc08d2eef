--TEST--
WordPress: the object cache behaves as WordPress's own does, and keeps values from request to request
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . '/../helpers.inc';

/** Runs all behaviours in a process of its own, which `load` prepares. */
function behaves(string $load, bool $multisite): void
{
    $script = 'error_reporting(E_ALL); $GLOBALS["multisite"] = (bool) $argv[3]; require $argv[1] . "/stubs.inc"; require $argv[1] . "/behaviours.inc";' . $load . 'behave();';
    same('behaved', (new Process($script, __DIR__, folder(), $multisite ? '1' : '', (string) getenv('EYEWALL_WORDPRESS')))->rest(), $load);
}

$drop_in = 'define("WP_EYEWALL_PATH", $argv[2] . "/behaviours$argv[3]"); define("WP_EYEWALL_SIZE", "4M");
    require $argv[1] . "/../../wordpress/eyewall/object-cache.php"; wp_cache_init();';
foreach ([false, true] as $multisite) {
    // From the memory of the request; and from the volume, as another request would get it.
    behaves($drop_in . 'wp_cache_flush(); function between() {}', $multisite);
    behaves($drop_in . 'wp_cache_flush(); function between() { check(wp_cache_flush_runtime() === true); }', $multisite);
    // As another process of the site changes and reads it: with a new object.
    behaves($drop_in . 'wp_cache_flush(); function between() {
        $former = $GLOBALS["wp_object_cache"];
        wp_cache_init();
        $now = $GLOBALS["wp_object_cache"];
        $now->add_global_groups(array_keys($former->global_groups));
        $now->switch_to_blog((int) $former->blog_prefix);
        [$now->cache_hits, $now->cache_misses] = [$former->cache_hits, $former->cache_misses];
    }', $multisite);
}
echo "done\n";
--EXPECT--
done
