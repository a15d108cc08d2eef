--TEST--
How values are serialized and unserialized
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
refused(Eyewall\Exception::ARGUMENT, 'of type array can\'t be stored without a serializer', fn () => volume(['serializer' => 'none'])->set('a', [1]));
$none = volume(['serializer' => 'none']);
foreach (['text', 1, 1.5, true, null] as $value) {
    $none->set('k', $value);
    same($value, $none->get('k', 'default'));
}
$php = volume(['serializer' => 'php']);
$php->set('array', ['a' => [1, 2]]);
same(['a' => [1, 2]], $php->get('array'));
// Without a serializer, no method unserializes.
foreach ([
    fn () => $none->get('array'), fn () => $none->getMultiple(['array']), fn () => $none->getWithSerial('array'),
    fn () => $none->fetchOrCompute('array', fn () => 1), fn () => $none->update('array', fn () => 1), fn () => $none->claim('array')->get(),
] as $read) {
    refused(Eyewall\Exception::ARGUMENT, 'the option serializer is "none"', $read);
}
check($none->delete('array'));
same('Exception 0: Serialization of \'Closure\' is not allowed', thrown(fn () => $php->set('closure', fn () => 1)));
same(false, $php->has('closure'));

final class Broken
{
    public function __serialize(): array
    {
        throw new LogicException('not me');
    }
}
same('LogicException 0: not me', thrown(fn () => $php->set('broken', new Broken())));

final class Waking
{
    public static bool $fails = false;
    public int $number = 1;
    public function __unserialize(array $data): void
    {
        self::$fails ? throw new LogicException('asleep') : $this->number = $data['number'];
    }
    public function __serialize(): array
    {
        return ['number' => 7];
    }
}
$php->set('waking', new Waking());
same(7, $php->get('waking')->number);
Waking::$fails = true;
same('LogicException 0: asleep', thrown(fn () => $php->get('waking')));
same('LogicException 0: asleep', thrown(fn () => $php->getMultiple(['waking'])));
same('LogicException 0: asleep', thrown(fn () => $php->getWithSerial('waking')));
same('LogicException 0: asleep', thrown(fn () => $php->update('waking', fn () => 1)));
Waking::$fails = false;
check($php->update('waking', fn ($key, $value) => $value->number));
same(7, $php->get('waking'));
same(0, $php->stats()['pins']);

if (extension_loaded('igbinary')) {
    $igbinary = volume(['serializer' => 'igbinary']);
    $igbinary->set('packed', ['a' => [1, 2], 'b' => new Waking()]);
    same([1, 2], $php->get('packed')['a']);
    refused(Eyewall\Exception::ARGUMENT, 'the option serializer is "none"', fn () => $none->get('packed'));
    same(7, $php->get('packed')['b']->number);
    check(thrown(fn () => $igbinary->set('closure', fn () => 1)) !== 'nothing was thrown');
} else {
    same('ValueError 0: The option serializer must be "php", "none", or, if that extension is loaded, "igbinary"',
        thrown(fn () => volume(['serializer' => 'igbinary'])));
}
echo "done\n";
--EXPECT--
done
