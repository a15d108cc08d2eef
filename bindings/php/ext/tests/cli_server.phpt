--TEST--
Requests of a server with several workers share a volume
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . "/helpers.inc";
require __DIR__ . '/servers.inc';
counting_script();
$server = new Server([...php(), '-S', '127.0.0.1:0', '-t', folder()], ['PHP_CLI_SERVER_WORKERS' => '3']);
[, $address] = $server->until('~\((http://127\.0\.0\.1:\d+)\) started~');
$counts = [];
for ($i = 0; $i < 60; $i++) {
    [$pid, $counts[], $page, $processes, $pins] = json_decode(file_get_contents("$address/counting.php"));
    same(['1', 0], [$page, $pins]);
    // The workers, and the process that has started them.
    check($processes <= 4, "processes: $processes");
}
same(range(1, 60), $counts);
same(60, volume()->get('asked'));
check(volume()->claim('left open')->isHit() === false);
echo "done\n";
--EXPECT--
done
