--TEST--
WordPress: its own object cache, as WordPress ships it, passes the tests of ours, so that they describe WordPress
--SKIPIF--
<?php
if (!is_file(getenv('EYEWALL_WORDPRESS') . '/wp-includes/class-wp-object-cache.php')) {
    die("skip the files of WordPress are missing (Debian's package wordpress can't be fetched)");
}
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . '/../helpers.inc';

foreach (['', '1'] as $multisite) {
    $script = 'error_reporting(E_ALL); $GLOBALS["multisite"] = (bool) $argv[2]; require $argv[1] . "/stubs.inc"; require $argv[1] . "/behaviours.inc";
        define("ABSPATH", $argv[3] . "/"); define("WPINC", "wp-includes"); require ABSPATH . WPINC . "/cache.php"; wp_cache_init(); function between() {} behave();';
    same('behaved', (new Process($script, __DIR__, $multisite, getenv('EYEWALL_WORDPRESS')))->rest());
}
echo "done\n";
--EXPECT--
done
