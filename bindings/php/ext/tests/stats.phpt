--TEST--
Numbers, and holders of entries
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$before = $cache->stats();
$cache->set('a', 1);
$cache->get('a');
$cache->get('a');
$cache->get('absent');
$cache->delete('a');
$after = $cache->stats();
same(4 << 20, $after['size_bytes']);
foreach (['puts' => 1, 'hits' => 2, 'misses' => 1, 'removes' => 1, 'entries' => 0, 'pins' => 0] as $name => $more) {
    same($more, $after[$name] - $before[$name]);
}
same(1, $after['processes']);
foreach ($after as $name => $number) {
    check(is_int($number) && $number >= 0, $name);
}
// Every number of the header is here, where the test is told which header.
$header = getenv('EYEWALL_HEADER');
if ($header !== false) {
    preg_match('/struct eyewall_stats \{(.*?)\}/s', file_get_contents($header), $struct);
    preg_match_all('/uint64_t (\w+);/', $struct[1], $names);
    same($names[1], array_keys($after));
}
$cache->sync();
echo "done\n";
--EXPECT--
done
