--TEST--
lookup and setNegative: all properties of an entry
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\Exception;

$cache = volume();
same(null, $cache->lookup('absent'));
refused(Exception::KEY_EMPTY, '', fn () => $cache->lookup(''));

$before = microtime(true);
$cache->set('a', ['value'], 100, ['news', 'sport'], 50);
$entry = $cache->lookup('a');
same(['state', 'value', 'reason', 'serial', 'created', 'ttl', 'usable', 'tags', 'metadata'], array_keys($entry));
same(['fresh', ['value'], null, ['news', 'sport'], 1], [$entry['state'], $entry['value'], $entry['reason'], $entry['tags'], strlen($entry['metadata'])]);
same($cache->getWithSerial('a')[1], $entry['serial']);
// The kernel's coarse clock has steps of some milliseconds.
check($entry['created'] >= $before - 1 && $entry['created'] <= microtime(true), "$entry[created] $before");
check($entry['ttl'] > 0 && $entry['ttl'] <= 100 && $entry['usable'] > $entry['ttl'] && $entry['usable'] <= 150);

// A string is only its bytes; without times it doesn't expire.
$cache->set('plain', 'text');
$entry = $cache->lookup('plain');
same(['fresh', 'text', null, null, [], ''], [$entry['state'], $entry['value'], $entry['ttl'], $entry['usable'], $entry['tags'], $entry['metadata']]);

$cache->purgeTag('news', soft: true);
$entry = $cache->lookup('a');
same(['stale', ['value'], null], [$entry['state'], $entry['value'], $cache->get('a')]);
same($entry['ttl'], 0.0);
check($entry['usable'] > 0);

// Negative: a miss for get, and fetchOrCompute doesn't compute.
same(true, $cache->setNegative('none', 404, 100, ['news']));
$entry = $cache->lookup('none');
same(['negative', null, 404, ['news']], [$entry['state'], $entry['value'], $entry['reason'], $entry['tags']]);
check($entry['ttl'] > 0 && $entry['ttl'] <= 100);
same(['default', false, null, null], [$cache->get('none', 'default'), $cache->has('none'), $cache->getWithSerial('none'), $cache->fetchOrCompute('none', fn () => 'not called')]);
same(true, $cache->cas('none', $entry['serial'], 'found after all'));
same('found after all', $cache->get('none'));
same(true, $cache->setNegative('none', 0));
same(['negative', 0, null], [$cache->lookup('none')['state'], $cache->lookup('none')['reason'], $cache->lookup('none')['ttl']]);
$serial = $cache->lookup('none')['serial'];
$cache->purgePrefix('no');
same([null, false], [$cache->lookup('none'), $cache->cas('none', $serial, 'late')]);
check($cache->setNegative('none', 65535, 100) && $cache->add('none', 'added'));
same('added', $cache->get('none'));

foreach ([-1, 65536] as $reason) {
    same('ValueError 0: Eyewall\Cache::setNegative(): Argument #2 ($reason) must be between 0 and 65535', thrown(fn () => $cache->setNegative('x', $reason)));
}
same('ValueError 0: The ttl must be more than 0 seconds, or null: until the entry is evicted', thrown(fn () => $cache->setNegative('x', 1, 0)));
same('TypeError 0: A tag must be a string, not int', thrown(fn () => $cache->setNegative('x', 1, null, [1])));
refused(Exception::KEY_EMPTY, '', fn () => $cache->setNegative('', 1));
same(null, $cache->lookup('x'));
$cache->set('array', [1]);
refused(Exception::ARGUMENT, 'the option serializer is "none"', fn () => volume(['serializer' => 'none'])->lookup('array'));
same(0, $cache->stats()['pins']);
echo "done\n";
--EXPECT--
done
