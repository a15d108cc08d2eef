--TEST--
update: concurrent updates run one after the other
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['lock_deadline' => 0.02]);
same(true, $cache->update('list', fn (string $key, ?array $list) => [...$list ?? [], $key]));
same(true, $cache->update('list', fn (string $key, ?array $list) => [...$list ?? [], 2], 100, ['t'], 10));
same(['list', 2], $cache->get('list'));
$cache->purgeTag('t');
same(null, $cache->get('list'));

$cache->set('key', 'before');
same('LogicException 0: no', thrown(fn () => $cache->update('key', fn () => throw new LogicException('no'))));
same('Exception 0: Serialization of \'Closure\' is not allowed', thrown(fn () => $cache->update('key', fn () => fn () => 1)));
refused(Eyewall\Exception::ENTRY_TOO_LARGE, '', fn () => $cache->update('key', fn () => str_repeat('x', 2000000)));
same('before', $cache->get('key'));

// A plain change that comes between counts as later.
same(false, $cache->update('key', function () use ($cache) {
    $cache->set('key', 'between');
    return 'updated';
}));
same('between', $cache->get('key'));
same(false, $cache->update('key', function () use ($cache) {
    $cache->purgeAll();
    return 'updated';
}));
same(null, $cache->get('key'));

// An update of the same key within an update does not wait for itself forever.
refused(Eyewall\Exception::BUSY, '', fn () => $cache->update('key', fn () => $cache->update('key', fn () => 1, wait: 0)));
check($cache->update('key', fn () => 'again', wait: 0));
same('again', $cache->get('key'));
check($cache->update('other', fn () => $cache->update('key', fn () => 'inner')));
same(true, $cache->get('other'));
same('ValueError 0: The time wait must be 0 seconds or more', thrown(fn () => $cache->update('key', fn () => 1, wait: NAN)));
same(0, $cache->stats()['pins']);
echo "done\n";
--EXPECT--
done
