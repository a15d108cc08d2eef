--TEST--
Calls with many keys
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
same(true, $cache->setMultiple(['a' => 1, 'b' => [2], 7 => 'seven'], 100, ['t']));
same(['a' => 1, 'absent' => null, 'b' => [2], 7 => 'seven'], $cache->getMultiple(['a', 'absent', 'b', '7']));
same([7 => 'seven', 'x' => false], $cache->getMultiple([7, 'x'], false));
same([], $cache->getMultiple([]));
$text = 'by reference';
$key = 'r';
$values = [$key => &$text];
$cache->setMultiple($values);
$keys = [&$key];
same(['r' => 'by reference'], $cache->getMultiple($keys));
same(2, $cache->deleteMultiple(['a', 'a', 'absent', 7]));
same(0, $cache->deleteMultiple([]));
$cache->purgeTag('t');
same(['b' => null], $cache->getMultiple(['b']));
same('TypeError 0: A key must be a string, not float', thrown(fn () => $cache->getMultiple([1.5])));
same('TypeError 0: A key must be a string, not array', thrown(fn () => $cache->deleteMultiple([[]])));
refused(Eyewall\Exception::KEY_EMPTY, '', fn () => $cache->getMultiple(['a', '']));
refused(Eyewall\Exception::KEY_EMPTY, '', fn () => $cache->deleteMultiple(['a', '']));
refused(Eyewall\Exception::KEY_EMPTY, '', fn () => $cache->setMultiple(['first' => 1, '' => 2, 'third' => 3]));
same([1, null], [$cache->get('first'), $cache->get('third')]);
same('TypeError 0: A tag must be a string, not null', thrown(fn () => $cache->setMultiple(['a' => 1], null, [null])));
same('ValueError 0: The ttl must be more than 0 seconds, or null: until the entry is evicted', thrown(fn () => $cache->setMultiple(['a' => 1], 0)));
echo "done\n";
--EXPECT--
done
