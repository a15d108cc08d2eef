--TEST--
Many processes ask for an absent key: one computes
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$children = [];
for ($i = 0; $i < 4; $i++) {
    $children[] = new Process('$cache = new Eyewall\Cache($argv[1]); echo "ready\n"; fgets(STDIN);
        for ($i = 0; $i < 200; $i++) {
            $value = $cache->fetchOrCompute("key $i", function () use ($cache, $i) {
                $cache->increment("computed $i");
                return "value $i";
            }, wait: 60);
            if ($value !== "value $i") echo "wrong: $value\n";
            $cache->update("log", fn ($key, $value) => $value . "x", wait: 60);
            $cache->increment("sum");
        }', folder() . '/volume');
}
foreach ($children as $child) {
    same('ready', $child->line());
}
foreach ($children as $child) {
    $child->tell('go');
}
foreach ($children as $child) {
    same('', $child->rest());
}
for ($i = 0; $i < 200; $i++) {
    same(1, $cache->get("computed $i"));
}
same(800, $cache->get('sum'));
same(800, strlen($cache->get('log')));
echo "done\n";
--EXPECT--
done
