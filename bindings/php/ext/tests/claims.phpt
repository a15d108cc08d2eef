--TEST--
Claims: the right to change a key
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$cache = volume(['lock_deadline' => 0.02]);
$claim = $cache->claim('key');
same([false, null, 'default'], [$claim->isHit(), $claim->get(), $claim->get('default')]);
refused(Eyewall\Exception::BUSY, '', fn () => $cache->claim('key', 0));
same(true, $claim->set(['first'], 100, ['t'], 10));
refused(Eyewall\Exception::ARGUMENT, 'The claim has ended; call claim() again', fn () => $claim->set(1));
refused(Eyewall\Exception::ARGUMENT, 'The claim has ended; call claim() again', fn () => $claim->delete());
$claim->end();
same(['first'], $cache->get('key'));

$claim = $cache->claim('key');
same([true, ['first'], ['first']], [$claim->isHit(), $claim->get(), $claim->get('default')]);
same(true, $claim->delete());
same(['first'], $claim->get());
same(false, $cache->has('key'));

$claim = $cache->claim('key');
$claim->end();
$claim->end();
$claim = $cache->claim('key');
unset($claim);
$claim = $cache->claim('key');
same('Exception 0: Serialization of \'Closure\' is not allowed', thrown(fn () => $claim->set(fn () => 1)));
same('ValueError 0: The ttl must be more than 0 seconds, or null: until the entry is evicted', thrown(fn () => $claim->set(1, 0)));
check($claim->set('still mine'));
same('ValueError 0: The time wait must be 0 seconds or more', thrown(fn () => $cache->claim('key', -1)));

// Plain changes don't wait for a claim, and count as later.
$claim = $cache->claim('key');
$cache->set('key', 'plain');
same(false, $claim->set('claimed'));
same('plain', $cache->get('key'));
$claim = $cache->claim('key');
$cache->set('key', 'plain again');
same(false, $claim->delete());
same('plain again', $cache->get('key'));
$claim = $cache->claim('key');
refused(Eyewall\Exception::ENTRY_TOO_LARGE, '', fn () => $claim->set(str_repeat('x', 2000000)));
refused(Eyewall\Exception::ARGUMENT, 'has ended', fn () => $claim->set('x'));

// A claim outlives the cache's object.
$claim = (new Eyewall\Cache(folder() . '/volume'))->claim('late');
unset($cache);
check($claim->set('stored'));
same('stored', volume()->get('late'));
same('Error 0: Trying to clone an uncloneable object of class Eyewall\Claim', thrown(fn () => clone $claim));
echo "done\n";
--EXPECT--
done
