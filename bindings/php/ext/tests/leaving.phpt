--TEST--
exit(), fatal errors and death in a callback: other processes continue at once
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['lock_deadline' => 30]);
$path = folder() . '/volume';
foreach ([
    'exit' => 'exit(0);',
    'memory' => 'ini_set("memory_limit", "4M"); $text = str_repeat("x", 100000000);',
    'fatal' => 'trigger_error("fatal", E_USER_ERROR);',
    'death' => 'posix_kill(getmypid(), 9);',
    'time' => 'set_time_limit(1); while (true) {}',
] as $way => $code) {
    foreach (['fetchOrCompute', 'update'] as $method) {
        // It goes on after the callback, in shutdown functions: the key is free there already.
        $child = new Process('ini_set("display_errors", "0"); ini_set("log_errors", "0");
            $cache = new Eyewall\Cache($argv[1], ["lock_deadline" => 30]);
            register_shutdown_function(function () use ($cache) { echo $cache->update("key", fn () => "by shutdown", wait: 30) ? "free" : "superseded"; });
            $cache->' . $method . '("key", function () { ' . $code . ' });
            echo "not reached";', $path);
        same($way === 'death' ? '' : 'free', $child->rest());
        same($way === 'death' ? null : 'by shutdown', $cache->get('key'));
        $cache->delete('key');
        same('mine', $cache->fetchOrCompute('key', fn () => 'mine', wait: 30));
        check($cache->update('key', fn ($key, $value) => "$value again", wait: 30));
        same('mine again', $cache->get('key'));
        $cache->delete('key');
    }
}
// A claim object ends with its process, too; left_over.phpt tests the end of a script.
$child = new Process('$claim = (new Eyewall\Cache($argv[1]))->claim("key"); echo "claimed"; posix_kill(getmypid(), 9);', $path);
same('claimed', $child->rest());
check($cache->claim('key', 0)->set('after it'));
same('after it', $cache->get('key'));
echo "done\n";
--EXPECT--
done
