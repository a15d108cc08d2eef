--TEST--
A volume that is truncated under a process fails by exceptions, and can be had anew
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
unlink(folder() . '/volume');
$anew = volume(['survive_sigbus' => true]);
check($anew->set('a', 1) && $anew->get('a') === 1);
echo "done\n";
--EXPECT--
done
