--TEST--
Changes that depend on the present entry
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
same(true, $cache->add('a', 1));
same(false, $cache->add('a', 2));
same(1, $cache->get('a'));

same(null, $cache->getWithSerial('absent'));
[$value, $serial] = $cache->getWithSerial('a');
same(1, $value);
check(is_int($serial) && $serial > 0);
same(true, $cache->cas('a', $serial, 'second'));
same(false, $cache->cas('a', $serial, 'third'));
same('second', $cache->get('a'));
same(false, $cache->cas('absent', $serial, 'x'));

same(true, $cache->delete('a'));
same(false, $cache->delete('a'));
same(false, $cache->touch('a', 10));

same(5, $cache->increment('n', 5));
same(5, $cache->get('n'));
same(6, $cache->increment('n'));
same(-4, $cache->increment('n', -10));
same(101, $cache->increment('m', 1, start: 100));
$cache->set('set', 41);
same(42, $cache->increment('set'));
same(42, $cache->get('set'));
// A counter of another language lacks PHP's mark: get returns eight bytes, and increment counts it without adding
// the mark.
$cache->set('foreign', pack('P', -42));
same(-42, unpack('P', $cache->get('foreign'))[1]);
same(-41, $cache->increment('foreign'));
same(pack('P', -41), $cache->get('foreign'));
same(-41, $cache->increment('foreign', 0));
$cache->set('float', 0.5);
foreach (['float', 'text'] as $key) {
    $cache->add($key, 'words');
    refused(Eyewall\Exception::NOT_A_COUNTER, '', fn () => $cache->increment($key));
}
same(0.5, $cache->get('float'));
same(1, $cache->increment('tagged', 1, 100, ['t']));
$cache->purgeTag('t');
same(null, $cache->get('tagged'));

// Times: an expired entry is gone; touch sets a new time.
$cache->set('short', 1, 0.001);
$cache->set('touched', 1, 3600);
check($cache->touch('touched', 0.001));
while ($cache->has('short') || $cache->has('touched')) {
    usleep(1000);
}
same([null, null], [$cache->get('short'), $cache->get('touched')]);
foreach ([[100], [100, 10], []] as $times) {
    $cache->set('stale', 1, 3600, ['t'], 3600);
    $cache->purgeTag('t', soft: true);
    same(false, $cache->has('stale'));
    check($cache->touch('stale', ...$times));
    same(1, $cache->get('stale'));
}
foreach ([0, -1, NAN] as $ttl) {
    foreach ([fn () => $cache->set('a', 1, $ttl), fn () => $cache->touch('a', $ttl), fn () => $cache->increment('a', 1, $ttl)] as $work) {
        same('ValueError 0: The ttl must be more than 0 seconds, or null: until the entry is evicted', thrown($work));
    }
}
check($cache->set('long', 1, INF) && $cache->get('long') === 1);
same('ValueError 0: The time stale must be 0 seconds or more', thrown(fn () => $cache->set('a', 1, 1, [], -1)));
same('ValueError 0: The time stale must be 0 seconds or more', thrown(fn () => $cache->touch('a', 1, NAN)));
same('TypeError 0: A tag must be a string, not int', thrown(fn () => $cache->set('a', 1, 1, [1])));
echo "done\n";
--EXPECT--
done
