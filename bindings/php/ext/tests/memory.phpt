--TEST--
Running out of memory during a copy leaves nothing held
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['size' => '16M', 'entry_bytes_max' => '4M']);
$cache->set('large', str_repeat('x', 3000000));
$cache->set('small', 'here');
foreach (['$cache->get("large")', '$cache->lookup("large")', '$cache->getMultiple(["large"])', '$cache->claim("large")', '$cache->update("large", fn () => 1)', '$cache->fetchOrCompute("large", fn () => 1)'] as $call) {
    $child = new Process('ini_set("display_errors", "0"); ini_set("log_errors", "0");
        $cache = new Eyewall\Cache($argv[1]);
        register_shutdown_function(function () use ($cache) { echo $cache->get("small"), " ", $cache->stats()["pins"]; });
        ini_set("memory_limit", (string) (memory_get_usage(true) + 2000000));
        ' . $call . '; echo "not reached";', folder() . '/volume');
    same('here 0', $child->rest(), $call);
    check($cache->claim('large', 30)->isHit());
}
same(0, $cache->stats()['pins']);
echo "done\n";
--EXPECT--
done
