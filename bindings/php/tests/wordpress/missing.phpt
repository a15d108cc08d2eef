--TEST--
WordPress: without the extension or the volume, WordPress uses its own object cache, and administrators are told once
--EXTENSIONS--
eyewall
posix
--SKIPIF--
<?php
if (!function_exists('proc_open')) {
    die('skip no proc_open');
}
--FILE--
<?php
require __DIR__ . '/../helpers.inc';

$load = 'require $argv[1] . "/stubs.inc"; define("WP_EYEWALL_PATH", $argv[2]); $argv[3] === "" || define("WP_EYEWALL_SIZE", $argv[3]); define("WP_ADMIN", true); ini_set("error_log", $argv[4]);
    require $argv[1] . "/../../wordpress/eyewall/object-cache.php"; require_once $argv[1] . "/../../wordpress/eyewall/object-cache.php";
    $GLOBALS["may"] = $argv[5] === "" ? [] : [$argv[5]];
    echo json_encode([function_exists("wp_cache_init"), class_exists("WP_Object_Cache", false)]), "\n";
    foreach ($GLOBALS["hooks"] as $hook => $calls) { echo $hook, " "; foreach ($calls as $call) { $call(); echo "\n"; } }';
$log = folder() . '/log';
$say = function (string $path, string $size = '', string $may = 'manage_options') use ($load, $log): array {
    @unlink($log);
    $lines = explode("\n", (new Process($load, __DIR__, $path, $size, $log, $may))->rest());
    return [...$lines, is_file($log) ? substr_count(file_get_contents($log), 'Eyewall object cache: ') : 0];
};

// It is fine: nothing is said.
same(['[true,true]', '', 0], $say(folder() . '/volume', '4M'));

// There is no folder.
$said = $say(folder() . '/no/volume');
same('[false,false]', $said[0]);
foreach ([1 => 'admin_notices ', 2 => 'network_admin_notices '] as $line => $hook) {
    check(str_starts_with($said[$line], $hook . '<div class="notice notice-error"><p>Eyewall object cache: The volume ' . folder() . '/no/volume can&#039;t be opened: '), $said[$line]);
    check(str_contains($said[$line], 'user needs write permission for its folder.'), $said[$line]);
}
same(1, end($said));
// Only administrators are told.
same(['[false,false]', 'admin_notices ', 'network_admin_notices ', '', 1], $say(folder() . '/no/volume', '', 'edit_posts'));

// Another size is asked for than the volume has: it is used, and something is said.
$said = $say(folder() . '/volume', '8M');
same('[true,true]', $said[0]);
check(str_contains($said[1], 'keeps its size, since it was created with another WP_EYEWALL_SIZE.'), $said[1]);
same(1, end($said));
// A size that isn't one.
check(str_contains($say(folder() . '/other', 'large')[1], 'can&#039;t be opened: '));

// There is no extension.
$script = folder() . '/bare.php';
file_put_contents($script, '<?php ' . $load . ' if ($argv[6] !== "") { define("ABSPATH", "$argv[6]/"); define("WPINC", "wp-includes"); require ABSPATH . WPINC . "/cache.php"; wp_cache_init(); wp_cache_set("k", 1); echo wp_cache_get("k"); }');
@unlink($log);
$process = proc_open([PHP_BINARY, '-n', $script, __DIR__, folder() . '/volume', '', $log, 'manage_options', (string) getenv('EYEWALL_WORDPRESS')], [1 => ['pipe', 'w']], $pipes);
$said = stream_get_contents($pipes[1]);
proc_close($process);
check(str_starts_with($said, "[false,false]\nadmin_notices "), $said);
check(str_contains($said, 'PHP (cli) has no extension eyewall. Install it for every PHP of the site, and for the command line.'), $said);
check(!getenv('EYEWALL_WORDPRESS') || str_ends_with($said, '1'), $said);
same(1, substr_count(file_get_contents($log), 'has no extension eyewall'));
echo "done\n";
--EXPECT--
done
