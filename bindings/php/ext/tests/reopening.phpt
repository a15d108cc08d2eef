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

// Removed: objects keep the old volume; a new object creates a new one.
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

// Removed volumes that no object uses are unmapped.
function mapped_files(): int
{
    preg_match_all('~ (\d+) +' . preg_quote(folder(), '~') . '/~', file_get_contents('/proc/self/maps'), $files);
    return count(array_unique($files[1]));
}
volume([], 'opened first');
$before = mapped_files();
check($before > 0);
for ($i = 0; $i < 20; $i++) {
    volume([], "removed-$i")->set('a', $i);
    unlink(folder() . "/removed-$i");
}
$used = volume([], 'removed-20');
$used->set('a', 'still here');
unlink(folder() . '/removed-20');
volume([], 'opened last');
// The volume in use, and the last one.
same($before + 2, mapped_files());
same('still here', $used->get('a'));

// A volume that this process creates is opened only once.
$made = volume([], 'made');
same([1, 1], [volume([], 'made')->stats()['attachments'], $made->stats()['attachments']]);
echo "done\n";
--EXPECT--
done
