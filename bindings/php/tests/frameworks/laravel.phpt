--TEST--
Laravel: the store, its tags and its locks, in the repository that Debian packages
--SKIPIF--
<?php
require __DIR__ . '/packages.inc';
skip_without('Illuminate/Cache', 'php-illuminate-cache');
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . '/packages.inc';
load_package('Illuminate/Cache');
require __DIR__ . '/../helpers.inc';

use Eyewall\Laravel\Store;
use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\Repository;
use Illuminate\Contracts\Cache\LockProvider;
use Illuminate\Contracts\Cache\LockTimeoutException;

$volume = volume();
$store = new Store($volume, 'app:');
$cache = new Repository($store);
check($store instanceof LockProvider && $store->getPrefix() === 'app:' && $cache->supportsTags());

// Values.
foreach (['text', 7, 1.5, true, false, [1, ['x' => null]], new ArrayObject([1])] as $value) {
    check($cache->put('v', $value, 60) && $cache->get('v') == $value && gettype($cache->get('v')) === gettype($value));
}
check($volume->lookup('app:v')['ttl'] <= 60);
same([null, 'default', false], [$cache->get('none'), $cache->get('none', 'default'), $cache->has('none')]);
check($cache->forever('f', 1) && $volume->lookup('app:f')['ttl'] === null);
check($cache->putMany(['a' => 1, 'b' => 'two'], 60) && $cache->many(['a', 'b', 'none']) === ['a' => 1, 'b' => 'two', 'none' => null]);
check($cache->pull('a') === 1 && !$cache->has('a') && $cache->forget('b') && !$cache->forget('b'));
check($cache->add('once', 1, 60) && !$cache->add('once', 2, 60) && $cache->get('once') === 1);
check($cache->put('v', 1, -1) && !$cache->has('v') && $store->put('v', 1, 0) && $store->get('v') === null);
same([1, 1], [$cache->remember('r', 60, fn () => 1), $cache->remember('r', 60, fn () => 2)]);
same([false, false], [$cache->put('large', str_repeat('x', 1 << 21), 60), $cache->add('closure', fn () => 1, 60)]);
check($store->touch('r', 1000) && $volume->lookup('app:r')['ttl'] > 60 && !$store->touch('none', 1));

// Counters.
same([1, 3, 2, 0], [$cache->increment('n'), $cache->increment('n', 2), $cache->decrement('n'), $cache->decrement('n', 2)]);
same([-1, -1], [$cache->decrement('n'), $cache->get('n')]);
check($cache->put('text', '5', 60) && $cache->increment('text') === 6 && $volume->lookup('app:text')['ttl'] <= 60);
check($cache->put('word', 'text', 60) && $cache->increment('word') === false && $cache->get('word') === 'text');
$cache->put('n', 10, 60);
same([11, true], [$cache->increment('n'), $volume->lookup('app:n')['ttl'] <= 60]);
$limiter = new RateLimiter($cache);
same([1, 2, true, false], [$limiter->hit('login'), $limiter->hit('login'), $limiter->tooManyAttempts('login', 2), $limiter->tooManyAttempts('login', 3)]);

// Tags: found by the same ones, purged by any of them.
foreach ([$cache, new Repository(new Store($volume, 'other:'))] as $each) {
    check($each->tags(['people', 'artists'])->put('john', 'J', 60) && $each->tags('people')->put('anne', 'A', 60));
    check($each->tags(['people', 'artists'])->add('count', 1, 60) && $each->tags(['people', 'artists'])->increment('count') === 2);
}
same(['J', 'A', null, null, null], [$cache->tags(['people', 'artists'])->get('john'), $cache->tags(['people'])->get('anne'), $cache->get('john'), $cache->tags('people')->get('john'), $cache->tags('people|artists')->get('john')]);
same(['app:people', 'app:artists'], $volume->lookup('app:' . $cache->tags(['people', 'artists'])->taggedItemKey('john'))['tags']);
check($cache->tags('artists')->flush());
same([null, null, 'A'], [$cache->tags(['people', 'artists'])->get('john'), $cache->tags(['people', 'artists'])->get('count'), $cache->tags('people')->get('anne')]);
same('J', $each->tags(['people', 'artists'])->get('john'));
check($cache->tags(['people', 'artists'])->flush() && $cache->tags('people')->get('anne') === null && $cache->get('f') === 1);
check($cache->tags('people')->put('anne', 'again', 60) && $cache->tags('people')->get('anne') === 'again');
check($cache->tags('people')->putMany(['x' => 1, 'y' => 2], 60) && $cache->tags('people')->many(['x', 'y']) === ['x' => 1, 'y' => 2]);
check($cache->tags('people')->remember('z', 60, fn () => 3) === 3 && $cache->tags('people')->getTags()->getNames() === ['people']);
$cache->tags('people')->getTags()->resetTag('people');
same(null, $cache->tags('people')->get('x'));

// Locks.
$lock = $cache->lock('job', 60);
check($lock->get() && !$cache->lock('job', 60)->get());
same(false, $cache->lock('job', 60)->release());
check($cache->restoreLock('job', $lock->owner())->release() && !$lock->release());
same('held', $cache->lock('job', 60)->get(fn () => 'held'));
check($cache->lock('job')->get() && $volume->lookup('app:job')['ttl'] === null);
same(LockTimeoutException::class, strtok(thrown(fn () => $cache->lock('job')->betweenBlockedAttemptsSleepFor(1)->block(0)), ' '));
$cache->lock('job')->forceRelease();
check($cache->lock('job', 60)->block(60));
$cache->lock('job')->forceRelease();
// Only one of several processes gets a lock.
$script = 'require $argv[2] . "/packages.inc"; load_package("Illuminate/Cache"); require $argv[2] . "/../../src/autoload.php";
    $store = new Eyewall\Laravel\Store(new Eyewall\Cache($argv[1]), "app:"); echo "ready\n"; fgets(STDIN);
    echo $store->lock("race", 600, "me")->get() ? "got it" : "";';
$processes = array_map(fn () => new Process($script, folder() . '/volume', __DIR__), range(1, 3));
array_map(fn (Process $process) => $process->line(), $processes);
array_map(fn (Process $process) => $process->tell(''), $processes);
$said = array_map(fn (Process $process) => $process->rest(), $processes);
sort($said);
same(['', '', 'got it'], $said);

// A flush covers the prefix only.
check($cache->flush() && !$cache->has('f') && $each->tags('people')->get('anne') === 'A');
check((new Store($volume))->flush() && $each->tags('people')->get('anne') === null);
echo "done\n";
--EXPECT--
done
