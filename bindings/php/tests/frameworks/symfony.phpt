--TEST--
Symfony: the tag-aware adapter, behind the interfaces of the component that Debian packages
--SKIPIF--
<?php
require __DIR__ . '/packages.inc';
skip_without('Symfony/Component/Cache', 'php-symfony-cache');
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . '/packages.inc';
load_package('Psr/SimpleCache');
load_package('Symfony/Component/Cache');
require __DIR__ . '/../helpers.inc';

use Eyewall\Symfony\TagAwareAdapter;
use Symfony\Component\Cache\Adapter\ProxyAdapter;
use Symfony\Component\Cache\Adapter\TagAwareAdapterInterface;
use Symfony\Component\Cache\CacheItem;
use Symfony\Component\Cache\Psr16Cache;
use Symfony\Contracts\Cache\ItemInterface;
use Symfony\Contracts\Cache\TagAwareCacheInterface;

final class Log extends Psr\Log\AbstractLogger
{
    public array $lines = [];

    public function log($level, $message, array $context = [])
    {
        $this->lines[] = strtr($message, ['{key}' => $context['key']]);
    }
}

$volume = volume();
$pool = new TagAwareAdapter($volume, 'app.');
$log = new Log();
$pool->setLogger($log);
check($pool instanceof TagAwareAdapterInterface && $pool instanceof TagAwareCacheInterface);

// Items.
$item = $pool->getItem('a');
check($item instanceof CacheItem && !$item->isHit() && $item->get() === null);
check($pool->save($item->set(['value', null])->expiresAfter(60)->tag(['one', 'two'])));
$item = (new TagAwareAdapter($volume, 'app.'))->getItem('a');
check($item->isHit());
same(['value', null], $item->get());
$metadata = $item->getMetadata();
same(['one' => 'one', 'two' => 'two'], $metadata[ItemInterface::METADATA_TAGS]);
check(abs($metadata[ItemInterface::METADATA_EXPIRY] - microtime(true) - 30) <= 30);
same(['app.one', 'app.two'], $volume->lookup('app.a')['tags']);
check($pool->hasItem('a') && !$pool->hasItem('b'));
foreach ([null, false, 0, '', 1.5, 'text', new DateTimeImmutable('@0')] as $value) {
    check($pool->save($pool->getItem('value')->set($value)));
    check($pool->getItem('value')->isHit() && $pool->getItem('value')->get() == $value);
}
same(['a' => true, 'none' => false], array_map(fn ($item) => $item->isHit(), iterator_to_array($pool->getItems(['a', 'none']))));
foreach (['', '{x}', 'a:b', 7, null] as $key) {
    same('Symfony\Component\Cache\Exception\InvalidArgumentException', strtok(thrown(fn () => $pool->getItem($key)), ' '));
}
// Saved again, it has the new tags only.
check($pool->save($pool->getItem('a')->set('again')->tag('three')));
same(['app.three'], $volume->lookup('app.a')['tags']);
check($pool->save($pool->getItem('past')->set(1)->expiresAfter(-1)) && !$pool->hasItem('past'));
check($pool->save($pool->getItem('a')->expiresAt(new DateTime('-1 hour'))) && !$pool->hasItem('a'));
check((new TagAwareAdapter($volume, 'brief.', 100))->save((new TagAwareAdapter($volume, 'brief.'))->getItem('x')->set(1)));
check($volume->lookup('brief.x')['ttl'] <= 100);

// Deferred items.
check($pool->saveDeferred($pool->getItem('later')->set(1)) && !$volume->has('app.later'));
check($pool->getItem('later')->isHit() && $volume->has('app.later'));
check($pool->saveDeferred($pool->getItem('last')->set(1)->tag('l')) && $pool->commit() && $volume->has('app.last'));
check($pool->saveDeferred($pool->getItem('never')->set(1)) && $pool->deleteItem('never') && $pool->commit() && !$volume->has('app.never'));
$leaving = new TagAwareAdapter($volume, 'app.');
$leaving->saveDeferred($leaving->getItem('leaving')->set(1));
unset($leaving);
check($volume->has('app.leaving'));

// Tags, which are those of the prefix.
foreach (['app.', 'other.'] as $prefix) {
    $each = new TagAwareAdapter($volume, $prefix);
    foreach (['x' => ['p'], 'y' => ['p', 'q'], 'z' => []] as $key => $tags) {
        $each->save($each->getItem($key)->set(1)->tag($tags));
    }
}
check($pool->invalidateTags(['q', 'r']) && $pool->invalidateTags([]));
same([true, false, true], [$pool->hasItem('x'), $pool->hasItem('y'), $pool->hasItem('z')]);
check($pool->saveDeferred($pool->getItem('y')->set(1)->tag('p')) && $pool->invalidateTags(['p']));
same([false, false, true], [$pool->hasItem('x'), $pool->hasItem('y'), $pool->hasItem('z')]);
check($each->hasItem('x') && $each->hasItem('y'));
same('Symfony\Component\Cache\Exception\InvalidArgumentException', strtok(thrown(fn () => $pool->invalidateTags(['{'])), ' '));

// What can't be stored is logged.
same([], $log->lines);
same(false, $pool->save($pool->getItem('large')->set(str_repeat('x', 1 << 21))));
same(false, $pool->save($pool->getItem('closure')->set(fn () => 1)));
same(false, $pool->save($pool->getItem('tags')->set(1)->tag(array_map(fn ($n) => "tag$n", range(1, 33)))));
same(3, count(preg_grep('/^Failed to save key "(large|closure|tags)": ./', $log->lines)));
$volume->set('app.odd', new ArrayObject([1]));
$volume->set('app.z', 1);

// get() computes once, and several processes compute once together.
$count = 0;
$compute = function (ItemInterface $item) use (&$count): int {
    $item->expiresAfter(60)->tag(['computed']);
    return ++$count;
};
same([1, 1, 2, 2], [$pool->get('c', $compute), $pool->get('c', $compute, 100.0), $pool->get('c', $compute, INF, $metadata), $pool->get('c', $compute, null, $metadata)]);
same(['computed' => 'computed'], $metadata[ItemInterface::METADATA_TAGS]);
check($pool->delete('c') && $pool->get('c', $compute) === 3 && $pool->invalidateTags(['computed']) && $pool->get('c', $compute) === 4);
same(5, $pool->get('unsaved', function (ItemInterface $item, bool &$save): int { $save = false; return 5; }));
same(false, $pool->hasItem('unsaved'));
same('LogicException 0: broken', thrown(fn () => $pool->get('broken', fn () => throw new LogicException('broken'))));
same(6, $pool->get('broken', fn () => 6));
same(7, $pool->get('outer', fn () => $pool->get('inner', fn () => 7)));
$script = 'require $argv[2] . "/packages.inc"; load_package("Symfony/Component/Cache"); require $argv[2] . "/../../src/autoload.php";
    $pool = new Eyewall\Symfony\TagAwareAdapter(new Eyewall\Cache($argv[1]), "app.", 0, 60.0); echo "ready\n"; fgets(STDIN);
    echo $pool->get("shared", function () { echo "computed "; usleep(50000); return "value"; });';
$processes = array_map(fn () => new Process($script, folder() . '/volume', __DIR__), range(1, 3));
array_map(fn (Process $process) => $process->line(), $processes);
array_map(fn (Process $process) => $process->tell(''), $processes);
$said = array_map(fn (Process $process) => $process->rest(), $processes);
sort($said);
same(['computed value', 'value', 'value'], $said);

// As a PSR-16 cache, behind a proxy, and cleared.
$simple = new Psr16Cache($pool);
check($simple->set('s', [1], 60) && $simple->get('s') === [1] && $simple->deleteMultiple(['s']) && $simple->get('s', 'none') === 'none');
check((new ProxyAdapter($pool))->getItem('z')->isHit());
check($pool->clear('z') && !$pool->hasItem('z') && $pool->hasItem('c'));
check($pool->clear() && !$pool->hasItem('c') && $each->hasItem('x'));
check((new TagAwareAdapter($volume))->clear() && !$each->hasItem('x'));
$pool->saveDeferred($pool->getItem('kept')->set(1));
$pool->reset();
check($volume->has('app.kept'));
same(false, $pool->save(new Eyewall\Item('k', 1, true)));
echo "done\n";
--EXPECT--
done
