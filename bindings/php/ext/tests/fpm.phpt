--TEST--
Children of PHP-FPM share a volume, and are recycled
--EXTENSIONS--
eyewall
posix
--SKIPIF--
<?php require __DIR__ . "/helpers.inc"; require __DIR__ . "/servers.inc"; if (fpm() === null) die("skip there is no PHP-FPM (apt-get install php-fpm, or EYEWALL_PHP_FPM=path)");
--FILE--
<?php
require __DIR__ . "/helpers.inc";
require __DIR__ . '/servers.inc';
$script = counting_script();
$socket = folder() . '/fpm.sock';
file_put_contents(folder() . '/fpm.conf', "[global]\nerror_log = /dev/stderr\ndaemonize = no\n[pool]\nlisten = $socket\npm = static\npm.max_children = 3\npm.max_requests = 15\n");
$options = array_slice(php(), 1);
$server = new Server([fpm(), '-R', '-F', '-y', folder() . '/fpm.conf', ...$options]);
$server->until('~ready to handle connections~');
$pids = $counts = [];
for ($i = 0; $i < 120; $i++) {
    [$pid, $counts[], $page, $processes, $pins] = json_decode(ask_fpm($socket, $script));
    $pids[$pid] = true;
    same(['1', 0], [$page, $pins]);
    // A child that is about to be recycled may still leave while its successor asks.
    check($processes <= 6, "processes: $processes");
}
same(range(1, 120), $counts);
// After 45 requests, the three children have been replaced.
check(count($pids) > 3, implode(' ', array_keys($pids)));
unset($server);
same(1, volume()->stats()['processes']);
same(120, volume()->get('asked'));
echo "done\n";
--EXPECT--
done
