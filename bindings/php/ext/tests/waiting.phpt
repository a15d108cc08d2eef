--TEST--
Callers wait for the value, for their turn, or up to a limit
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['lock_deadline' => 0.02]);
$path = folder() . '/volume';
$script = '$cache = new Eyewall\Cache($argv[1]);
    $value = $cache->fetchOrCompute("key", function () { echo "computing\n"; fgets(STDIN); return "theirs"; }); echo "value: $value\n";';

// The other one computes, and we wait for too short a time: we compute ourselves, and that is stored.
$child = new Process($script, $path);
same('computing', $child->line());
same('ours', $cache->fetchOrCompute('key', fn () => 'ours', wait: 0.01));
same('ours', $cache->get('key'));
refused(Eyewall\Exception::BUSY, '', fn () => $cache->update('key', fn () => 1, wait: 0.01));
refused(Eyewall\Exception::BUSY, '', fn () => $cache->claim('key', 0));
same('LogicException 0: ours failed', thrown(fn () => $cache->fetchOrCompute('other', fn () => throw new LogicException('ours failed'))));
$child->tell('go on');
same('value: theirs', $child->line());
$child->rest();
same('ours', $cache->get('key'));

// An alone computed value that a purge overtakes isn't stored.
$cache->delete('key');
$child = new Process($script, $path);
same('computing', $child->line());
same('before the purge', $cache->fetchOrCompute('key', function () use ($cache) {
    $cache->purgePrefix('k');
    return 'before the purge';
}, wait: 0.01));
same(null, $cache->get('key'));
same('Exception 0: alone', thrown(fn () => $cache->fetchOrCompute('key', fn () => throw new Exception('alone'), wait: 0.01)));
$child->tell('go on');
$child->rest();
same(null, $cache->get('key'));

// With stale, who doesn't compute has the old one at once.
$cache->set('key', 'old', 100, [], 100);
$cache->purgeAll(soft: true);
$child = new Process(str_replace('return "theirs"; }', 'return "theirs"; }, 100, [], 100', $script), $path);
same('computing', $child->line());
same('old', $cache->fetchOrCompute('key', fn () => 'not called', 100, [], 100, 60));
$child->tell('go on');
same('value: theirs', $child->line());
$child->rest();
same('theirs', $cache->fetchOrCompute('key', fn () => 'not called', 100, [], 100));

// A caller that waits long enough gets the new value.
$cache->delete('key');
$child = new Process($script, $path);
same('computing', $child->line());
$waiting = new Process('$cache = new Eyewall\Cache($argv[1]); echo "asking\n"; echo $cache->fetchOrCompute("key", fn () => "not called", wait: 60);', $path);
same('asking', $waiting->line());
$child->tell('go on');
same('value: theirs', $child->line());
same('theirs', $waiting->rest());
$child->rest();
echo "done\n";
--EXPECT--
done
