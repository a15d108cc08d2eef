--TEST--
Stored values of every type come back, in other processes, too
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$values = [
    'empty' => '', 'one' => 'x', 'bytes' => "\0\1\xfe\xff", 'long' => str_repeat('x', 100000), 'accents' => 'café',
    'zero' => 0, 'int' => -1234567890123, 'least' => PHP_INT_MIN, 'most' => PHP_INT_MAX,
    'float' => 0.1, 'minus zero' => -0.0, 'infinity' => -INF, 'true' => true, 'false' => false, 'null' => null,
    'list' => [1, 'two', [3.0, null]], 'map' => ['a' => true, 'b' => ['c' => []]], 'none' => [],
];
foreach ($values as $key => $value) {
    same(true, $cache->set($key, $value));
    same($value, $cache->get($key, 'default'));
    same(true, $cache->has($key));
}
check(is_nan($cache->set('nan', NAN) ? $cache->get('nan') : 0.0));
same('-0', (string) $cache->get('minus zero'));

// Of keys any bytes are good.
foreach (["\0", "\xff\xfe", 'a b', str_repeat('k', 65000), '0'] as $key) {
    $cache->set($key, "of $key");
    same("of $key", $cache->get($key));
}

final class Point
{
    public ?Point $next = null;
    public function __construct(public int $x) {}
}
$point = new Point(1);
$point->next = new Point(2);
$point->next->next = $point;
$cache->set('object', $point);
$found = $cache->get('object');
check($found instanceof Point && $found->next->x === 2 && $found->next->next === $found);
$shared = [1];
$cache->set('references', [&$shared, &$shared]);
$found = $cache->get('references');
$found[0][] = 2;
same([1, 2], $found[1]);

// Absent keys.
same(null, $cache->get('absent'));
same('default', $cache->get('absent', 'default'));
same(false, $cache->has('absent'));
$cache->set('x', 1);
$cache->set('x', 'other');
same('other', $cache->get('x'));

$other = new Process('$cache = new Eyewall\Cache($argv[1]); echo serialize($cache->getMultiple(["int", "map", "float", "false", "bytes"]));',
    folder() . '/volume');
same(serialize(['int' => $values['int'], 'map' => $values['map'], 'float' => 0.1, 'false' => false, 'bytes' => $values['bytes']]), $other->rest());
echo "done\n";
--EXPECT--
done
