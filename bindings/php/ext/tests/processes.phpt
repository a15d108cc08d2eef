--TEST--
Processes share a volume, and die while they use it
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$path = folder() . '/volume';
$writers = [];
for ($i = 0; $i < 3; $i++) {
    $writers[] = new Process('$cache = new Eyewall\Cache($argv[1]); echo "on\n";
        for ($i = 0; ; $i++) { $cache->set("key " . $i % 100, str_repeat((string) ($i % 10), 1 + $i % 5000)); }', $path);
}
foreach ($writers as $writer) {
    same('on', $writer->line());
}
for ($i = 0; $i < 2000; $i++) {
    $value = $cache->get('key ' . $i % 100, '');
    check(count_chars($value, 3) === ($value === '' ? '' : $value[0]));
}
foreach ($writers as $writer) {
    $writer->kill();
}
foreach ($cache->keys() as $key) {
    $value = $cache->get($key);
    check(count_chars($value, 3) === $value[0]);
}
check($cache->set('after', 1) && $cache->get('after') === 1);
$late = new Process('$cache = new Eyewall\Cache($argv[1]); echo $cache->get("after"), " ", $cache->update("key 1", fn () => "late");', $path);
same('1 1', $late->rest());
same('late', $cache->get('key 1'));
same(1, $cache->stats()['processes']);
echo "done\n";
--EXPECT--
done
