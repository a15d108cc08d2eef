--TEST--
Purges: by tag, by prefix, of everything, hard and soft
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume();
$fill = function () use ($cache): void {
    $cache->set('/shop/1', 1, 100, ['news'], 100);
    $cache->set('/shop/2', 2, 100, ['news', 'sport'], 100);
    $cache->set('/about', 3, 100, ['sport'], 100);
    $cache->set('plain', 4, 100, [], 100);
};
$there = fn () => array_keys(array_filter($cache->getMultiple(['/shop/1', '/shop/2', '/about', 'plain']), fn ($value) => $value !== null));
$fill();
$cache->purgeTag('news');
same(['/about', 'plain'], $there());
$fill();
$cache->purgeTags(['news', 'sport', 'none']);
same(['plain'], $there());
$fill();
$cache->purgePrefix('/shop/');
same(['/about', 'plain'], $there());
$fill();
$cache->purgeAll();
same([], $there());
$fill();
same(4, $cache->clear());
same([], $there());

foreach ([false, true] as $soft) {
    $fill();
    same('ValueError 0: Eyewall\Cache::purgePrefix(): Argument #1 ($prefix) cannot be empty; purgeAll purges all entries', thrown(fn () => $cache->purgePrefix('', $soft)));
    same(['/shop/1', '/shop/2', '/about', 'plain'], $there());
}

// Softly purged entries are stale: callers that allow stale values get them while another process renews them.
foreach (['purgeTag' => 'sport', 'purgeTags' => ['sport'], 'purgePrefix' => '/about'] as $method => $what) {
    $fill();
    $cache->$method($what, soft: true);
    same(null, $cache->get('/about'));
    check($cache->touch('/about', 100));
    same(3, $cache->get('/about'));
}
$cache->purgeAll(true);
same([], $there());
check($cache->touch('plain', 100));
same(['plain'], $there());
echo "done\n";
--EXPECT--
done
