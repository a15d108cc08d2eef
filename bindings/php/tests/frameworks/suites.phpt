--TEST--
The public suites for PSR-6 and PSR-16 pass: with the packages of their interfaces, and with the adapter for Symfony
--SKIPIF--
<?php
require __DIR__ . '/packages.inc';
skip_without('Cache/IntegrationTests', 'php-cache-integration-tests');
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . '/suites.inc';
load_package('Psr/SimpleCache');
load_package('Symfony/Component/Cache');
require __DIR__ . '/../helpers.inc';

// The suites sleep until something expires; other tests cover that.
$expiring = ['testExpiration', 'testHasItemReturnsFalseWhenDeferredItemIsExpired', 'testSetTtl', 'testSetMultipleTtl'];
$volume = volume();

final class ItemPoolTest extends Cache\IntegrationTests\CachePoolTest
{
    public function createCachePool(): Eyewall\ItemPool
    {
        return new Eyewall\ItemPool($GLOBALS['volume'], 'pool.');
    }
}

final class SymfonyTest extends Cache\IntegrationTests\CachePoolTest
{
    public function createCachePool(): Eyewall\Symfony\TagAwareAdapter
    {
        return new Eyewall\Symfony\TagAwareAdapter($GLOBALS['volume'], 'symfony.');
    }
}

final class SimpleTest extends Cache\IntegrationTests\SimpleCacheTest
{
    public function createSimpleCache(): Eyewall\SimpleCache
    {
        return new Eyewall\SimpleCache($GLOBALS['volume'], 'simple.');
    }
}

foreach ([ItemPoolTest::class, SymfonyTest::class, SimpleTest::class] as $class) {
    $count = run_suite($class);
    check($count > 25, "$class has $count tests");
}
echo "done\n";
--EXPECT--
done
