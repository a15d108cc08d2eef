--TEST--
Claims that a request leaves open end before the next request of the process
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . "/helpers.inc";
require __DIR__ . '/servers.inc';

// One process handles all requests, so no claim ends by its death.
$path = var_export(folder() . '/volume', true);
file_put_contents(folder() . '/leave.php', '<?php
    $cache = new Eyewall\Cache(' . $path . ', ["size" => "4M", "lock_deadline" => 0.02]);
    $leave = [
        "exit" => fn () => exit("left"),
        "memory" => function () { echo "left"; ini_set("memory_limit", "4M"); $text = str_repeat("x", 100000000); },
        "fatal" => function () { echo "left"; trigger_error("fatal", E_USER_ERROR); },
        "uncaught" => function () { echo "left"; throw new Exception("uncaught"); },
        "return" => function () { echo "left"; },
    ][$_GET["way"]];
    $suspend = function (callable $hold) use ($leave) {
        $fiber = new Fiber($hold);
        $fiber->start();
        $leave();
    };
    ini_set("display_errors", "0");
    ini_set("log_errors", "0");
    match ($_GET["held"]) {
        "update" => $cache->update("key", $leave),
        "flight" => $cache->fetchOrCompute("key", $leave),
        "claim" => [$claim = $cache->claim("key"), $leave()],
        "kept claim" => [$GLOBALS["cycle"] = new ArrayObject([$cache->claim("key")]), $cycle["self"] = $cycle, $leave()],
        "suspended update" => $suspend(fn () => $cache->update("key", fn () => Fiber::suspend())),
        "suspended flight" => $suspend(fn () => $cache->fetchOrCompute("key", fn () => Fiber::suspend())),
        "suspended claim" => $suspend(fn () => [$claim = $cache->claim("key"), Fiber::suspend()]),
        "suspended both" => $suspend(fn () => $cache->update("other", fn () => $cache->update("key", fn () => Fiber::suspend()))),
    };');
file_put_contents(folder() . '/next.php', '<?php
    $cache = new Eyewall\Cache(' . $path . ', ["size" => "4M", "lock_deadline" => 0.02]);
    $cache->delete("key");
    try {
        foreach (["key", "other"] as $key) {
            $cache->claim($key, 0)->end();
        }
        echo "free ", $cache->stats()["pins"], " ", getmypid();
    } catch (Eyewall\Exception $error) {
        echo $error->getCode(), ": ", $error->getMessage();
    }');
$server = new Server([...php(), '-S', '127.0.0.1:0', '-t', folder()]);
[, $address] = $server->until('~\((http://127\.0\.0\.1:\d+)\) started~');
$pids = [];
foreach (['update', 'flight', 'claim', 'kept claim', 'suspended update', 'suspended flight', 'suspended claim', 'suspended both'] as $held) {
    foreach (['exit', 'memory', 'fatal', 'uncaught', 'return'] as $way) {
        $query = http_build_query(['held' => $held, 'way' => $way]);
        same('left', @file_get_contents("$address/leave.php?$query", false, stream_context_create(['http' => ['ignore_errors' => true]])), $query);
        $next = file_get_contents("$address/next.php");
        check(preg_match('/^free 0 (\d+)$/', $next, $match) === 1, "$query: $next");
        $pids[$match[1] ?? 0] = true;
    }
}
same(1, count($pids));
echo "done\n";
--EXPECT--
done
