--TEST--
A volume is opened once in a process; another file at its path is another volume
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$cache->set('a', 'first');
for ($i = 0; $i < 100; $i++) {
    same('first', volume()->get('a'));
}
same(1, $cache->stats()['attachments']);
same(1, $cache->stats()['processes']);

// Removed: whoever has it keeps it; a new object makes a new one.
unlink(folder() . '/volume');
$new = volume();
same([null, 'first'], [$new->get('a'), $cache->get('a')]);
$new->set('a', 'second');
same('second', volume()->get('a'));
unset($cache);
same('second', volume()->get('a'));

// Replaced by another volume.
volume([], 'other')->set('a', 'third');
rename(folder() . '/other', folder() . '/volume');
same('third', volume()->get('a'));
same('second', $new->get('a'));

// Objects hold a volume, not the other way round.
foreach (range(1, 50) as $i) {
    $caches[] = volume();
}
unset($caches, $new);
same('third', volume()->get('a'));

// Everything is there after a restart.
same('third', (new Process('echo (new Eyewall\Cache($argv[1]))->get("a");', folder() . '/volume'))->rest());
echo "done\n";
--EXPECT--
done
