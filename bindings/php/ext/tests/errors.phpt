--TEST--
Errors of the volume and their messages
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\Cache;
use Eyewall\Exception;

$cache = volume();
$cache->set('a', 'before');
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->get(''));
foreach (['has', 'delete', 'touch', 'increment', 'getWithSerial', 'claim'] as $method) {
    refused(Exception::KEY_EMPTY, 'key', fn () => $cache->$method(''));
}
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->set('', 1));
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->add('', 1));
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->cas('', 1, 1));
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->fetchOrCompute('', fn () => 1));
refused(Exception::KEY_EMPTY, 'key', fn () => $cache->update('', fn () => 1));
refused(Exception::KEY_TOO_LONG, '', fn () => $cache->set(str_repeat('k', 70000), 1));
refused(Exception::ENTRY_TOO_LARGE, '', fn () => $cache->set('a', str_repeat('x', 2000000)));
refused(Exception::TOO_MANY_TAGS, '', fn () => $cache->set('a', 1, null, array_map('strval', range(1, 33))));
refused(Exception::TAG_LENGTH, '', fn () => $cache->set('a', 1, null, ['']));
refused(Exception::TAG_LENGTH, '', fn () => $cache->purgeTag(str_repeat('t', 256)));
refused(Exception::ARGUMENT, 'UTF-8', fn () => $cache->set('a', 1, null, ["\xff"]));
refused(Exception::ARGUMENT, 'UTF-8', fn () => $cache->purgeTags(['good', "\xff"]));
same('TypeError 0: A tag must be a string, not int', thrown(fn () => $cache->purgeTags([1])));
same('before', $cache->get('a'));

refused(Exception::NOT_FOUND, '', fn () => volume(['must_exist' => true], 'other'));
refused(Exception::OPTIONS_DIFFER, '', fn () => volume(['size' => '8M']));
refused(Exception::OUT_OF_RANGE, '', fn () => volume(['size' => 4096], 'small'));
file_put_contents(folder() . '/foreign', str_repeat('not a volume', 100000));
refused(Exception::FOREIGN, '', fn () => new Cache(folder() . '/foreign'));
same(1200000, filesize(folder() . '/foreign'));
refused(Exception::IO, '', fn () => new Cache(folder() . '/nowhere/volume'));

$reader = volume(['read_only' => true]);
same('before', $reader->get('a'));
refused(Exception::READ_ONLY, 'read-only', fn () => $reader->set('a', 1));

// An object whose constructor failed throws in every method.
$failed = (new ReflectionClass(Cache::class));
check(str_contains(thrown(fn () => $failed->newInstanceWithoutConstructor()), 'cannot be instantiated without invoking its constructor'));
check(str_contains(thrown(fn () => serialize($cache)), "Serialization of 'Eyewall\\Cache' is not allowed"));
same('Error 0: Trying to clone an uncloneable object of class Eyewall\Cache', thrown(fn () => clone $cache));
same('Error 0: The cache is open already; create another one with new', thrown(fn () => $cache->__construct('x')));
check(str_contains(thrown(fn () => new Eyewall\Claim()), 'private'));
check(str_contains(thrown(fn () => new Eyewall\Keys()), 'private'));
check((new Exception()) instanceof RuntimeException);
echo "done\n";
--EXPECT--
done
