--TEST--
Iteration over keys
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
same([], iterator_to_array($cache->keys()));
$expected = [];
for ($i = 0; $i < 300; $i++) {
    $cache->set($expected[] = "key $i", str_repeat('x', $i));
}
$found = [];
foreach ($cache->keys() as $number => $key) {
    same(count($found), $number);
    $found[] = $key;
}
sort($found);
sort($expected);
same($expected, $found);

// Stopped, begun again, changed meanwhile, and outliving the cache's object.
$keys = $cache->keys();
unset($cache);
check($keys instanceof Iterator && $keys->valid());
$first = $keys->current();
$keys->next();
$keys->next();
same(2, $keys->key());
$keys->rewind();
same([0, $first], [$keys->key(), $keys->current()]);
$other = volume();
foreach ($keys as $key) {
    $other->delete($key);
}
same([false, null], [$keys->valid(), $keys->current()]);
$keys->next();
same(false, $keys->valid());
$keys->rewind();
same(false, $keys->valid());
same(0, $other->stats()['entries']);
echo "done\n";
--EXPECT--
done
