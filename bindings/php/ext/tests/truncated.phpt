--TEST--
A volume that is truncated while it is open fails by exceptions, and can be opened again
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['survive_sigbus' => true]);
for ($i = 0; $i < 200; $i++) {
    $cache->set("key $i", str_repeat('x', 5000));
}
ftruncate(fopen(folder() . '/volume', 'r+'), 0);
$said = [];
for ($i = 0; $i < 200; $i++) {
    $said[] = thrown(fn () => $cache->get("key $i"));
}
$failed = array_filter($said, fn (string $said) => str_starts_with($said, 'Eyewall\Exception ' . Eyewall\Exception::FAILED));
check(count($failed) > 0, end($said));

// Bytes that are lost while they are copied: never is anything returned that wasn't put, whatever copies it.
$long = str_repeat('value', 100000);
$key = str_repeat('k', 60000);
$seen = null;
foreach ([
    'get' => fn ($cache) => $cache->get('long'),
    'getWithSerial' => fn ($cache) => $cache->getWithSerial('long')[0],
    'lookup' => fn ($cache) => $cache->lookup('long')['value'],
    'getMultiple' => fn ($cache) => $cache->getMultiple(['long'])['long'],
    'claim' => fn ($cache) => $cache->claim('long')->get(),
    'fetchOrCompute' => fn ($cache) => $cache->fetchOrCompute('long', fn () => 'not called'),
    'update' => function ($cache) use (&$seen) {
        $cache->update('long', function ($key, $value) use (&$seen) {
            throw new LogicException($seen = $value);
        });
    },
    'keys' => fn ($cache) => $cache->keys()->current(),
] as $method => $read) {
    $name = "lost-$method";
    $cache = volume(['survive_sigbus' => true, 'size' => '16M'], $name);
    $cache->set($method === 'keys' ? $key : 'long', $long);
    $file = fopen(folder() . "/$name", 'r+');
    $right = $method === 'keys' ? $key : $long;
    for ($size = 16 << 20; $size > 0; $size -= 16384) {
        ftruncate($file, $size);
        try {
            $found = $read($cache);
        } catch (LogicException) {
            $found = $seen;
        } catch (Eyewall\Exception $error) {
            same(Eyewall\Exception::FAILED, $error->getCode(), $method);
            continue 2;
        }
        if ($found !== $right) {
            check(false, "$method has read what wasn't put");
            continue 2;
        }
    }
    check(false, "$method never failed");
}

unlink(folder() . '/volume');
$anew = volume(['survive_sigbus' => true]);
check($anew->set('a', 1) && $anew->get('a') === 1);
echo "done\n";
--EXPECT--
done
