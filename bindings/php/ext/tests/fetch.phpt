--TEST--
fetchOrCompute: stored values, computed values, and failures
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$calls = 0;
$compute = function (string $key) use (&$calls): string {
    $calls++;
    return "made for $key";
};
same('made for a', $cache->fetchOrCompute('a', $compute));
same('made for a', $cache->fetchOrCompute('a', $compute));
same(1, $calls);
same('MADE', $cache->fetchOrCompute('b', fn () => 'MADE', 100, ['t'], 10, 1));
$cache->purgeTag('t');
same(null, $cache->get('b'));
foreach ([null, false, 0, [], 1.5, ['a' => [1]]] as $number => $value) {
    same($value, $cache->fetchOrCompute("value $number", fn () => $value));
    same($value, $cache->fetchOrCompute("value $number", fn () => 'not called'));
    check($cache->has("value $number"));
}
same('KEY', $cache->fetchOrCompute('key', 'strtoupper'));

// After a failure of any kind, nothing is stored and nobody waits.
same('LogicException 7: failed', thrown(fn () => $cache->fetchOrCompute('c', fn () => throw new LogicException('failed', 7))));
same('Exception 0: Serialization of \'Closure\' is not allowed', thrown(fn () => $cache->fetchOrCompute('c', fn () => fn () => 1)));
same('ValueError 0: The time wait must be 0 seconds or more', thrown(fn () => $cache->fetchOrCompute('c', $compute, wait: -1)));
same('ValueError 0: The ttl must be more than 0 seconds, or null: until the entry is evicted', thrown(fn () => $cache->fetchOrCompute('c', $compute, 0)));
same('TypeError 0: A tag must be a string, not int', thrown(fn () => $cache->fetchOrCompute('c', $compute, null, [1])));
check(str_starts_with(thrown(fn () => $cache->fetchOrCompute('c', 'no_such_function')), 'TypeError'));
check(str_starts_with(thrown(fn () => $cache->fetchOrCompute('c', function (int $a) {})), 'TypeError'));
same(null, $cache->get('c'));
same('at last', $cache->fetchOrCompute('c', fn () => 'at last', wait: 0));

// Nested calls with other keys.
same('inner+', $cache->fetchOrCompute('outer', fn () => $cache->fetchOrCompute('inner', fn () => 'inner') . '+'));
same('inner', $cache->get('inner'));

// A value that can't be stored is returned, and logged.
$said = [];
set_error_handler(function (int $level, string $words) use (&$said): bool {
    $said[] = "$level $words";
    return true;
});
$large = str_repeat('x', 2000000);
check($cache->fetchOrCompute('large', fn () => $large) === $large);
check(count($said) === 1 && str_starts_with($said[0], E_WARNING . " Eyewall\\Cache::fetchOrCompute(): The computed value is not stored: "), implode($said));
set_error_handler(fn (int $level, string $words) => throw new ErrorException($words));
check(str_starts_with(thrown(fn () => $cache->fetchOrCompute('large', fn () => $large)), 'ErrorException'));
restore_error_handler();
restore_error_handler();
same(false, $cache->has('large'));

// Another put meanwhile counts as later, and stays.
same('computed', $cache->fetchOrCompute('raced', function () use ($cache) {
    $cache->set('raced', 'set');
    return 'computed';
}));
same('set', $cache->get('raced'));

// By reference, and never returning a value.
$box = ['x'];
$byReference = function &() use (&$box) {
    return $box;
};
same(['x'], $cache->fetchOrCompute('reference', $byReference));
same(null, $cache->fetchOrCompute('nothing', function () {}));

// A fiber that is destroyed inside the callback.
$fiber = new Fiber(fn () => $cache->fetchOrCompute('fiber', fn () => Fiber::suspend('waiting')));
same('waiting', $fiber->start());
unset($fiber);
same('free', $cache->fetchOrCompute('fiber', fn () => 'free', wait: 0));
same(0, $cache->stats()['pins']);
echo "done\n";
--EXPECT--
done
