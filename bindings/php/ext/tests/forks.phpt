--TEST--
A forked child uses the volume that its parent opened
--EXTENSIONS--
eyewall
pcntl
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$cache->set('a', 'parent');
$claim = $cache->claim('claimed');
$keys = $cache->keys();
$children = [];
for ($i = 0; $i < 3; $i++) {
    $pid = pcntl_fork();
    if ($pid === 0) {
        check($cache->get('a') === 'parent');
        $cache->set("child $i", $i);
        $cache->increment('sum');
        unset($keys);
        // What the parent holds isn't the child's to end.
        unset($claim);
        (new Eyewall\Cache(folder() . '/volume'))->set("again $i", $i);
        exit(0);
    }
    $children[] = $pid;
}
foreach ($children as $pid) {
    pcntl_waitpid($pid, $status);
    same(0, pcntl_wexitstatus($status));
}
same(3, $cache->get('sum'));
for ($i = 0; $i < 3; $i++) {
    same([$i, $i], [$cache->get("child $i"), $cache->get("again $i")]);
}
check($claim->set('by the parent'));
same('by the parent', $cache->get('claimed'));
echo "done\n";
--EXPECT--
done
