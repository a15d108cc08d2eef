--TEST--
The stub matches the extension
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
$stub = file_get_contents(__DIR__ . '/../eyewall.stub.php');
$stub = str_replace(['namespace Eyewall;', '<?php'], ['namespace Stub;', ''], $stub);
eval($stub);

function described(ReflectionClass $class): array
{
    $lines = [];
    foreach ($class->getMethods() as $method) {
        if ($method->getDeclaringClass()->name !== $class->name) {
            continue;
        }
        $parameters = array_map(fn (ReflectionParameter $parameter) => $parameter->getType() . ' $' . $parameter->getName()
            . ($parameter->isOptional() ? ' = ' . var_export($parameter->getDefaultValue(), true) : ''), $method->getParameters());
        $lines[] = implode(' ', Reflection::getModifierNames($method->getModifiers())) . " $method->name(" . implode(', ', $parameters) . '): '
            . str_replace(['Stub\\', 'Eyewall\\'], '', (string) $method->getReturnType());
    }
    foreach ($class->getReflectionConstants() as $constant) {
        $lines[] = "const $constant->name = {$constant->getValue()}";
    }
    $lines[] = ($class->isFinal() ? 'final ' : '') . ($class->getParentClass()->name ?? '') . ' ' . implode(' ', $class->getInterfaceNames());
    sort($lines);
    return $lines;
}
foreach (['Cache', 'Claim', 'Keys', 'Exception'] as $class) {
    same(described(new ReflectionClass("Stub\\$class")), described(new ReflectionClass("Eyewall\\$class")));
}
$extension = new ReflectionExtension('eyewall');
same(['Eyewall\Exception', 'Eyewall\Cache', 'Eyewall\Claim', 'Eyewall\Keys'], array_keys($extension->getClasses()));
$options = array_map(fn (string $name) => substr($name, strlen('eyewall.')), array_keys($extension->getINIEntries()));
preg_match('/@param array\{(.*?)\} \$options/s', file_get_contents(__DIR__ . '/../eyewall.stub.php'), $documented);
preg_match_all('/(\w+)\?:/', $documented[1], $names);
sort($options);
$names = ["path", ...$names[1]];
sort($names);
same($names, $options);
// The stub is the reference: all that is public in it is described.
function undescribed(ReflectionClass $class): array
{
    $of = fn (array $parts) => array_filter($parts, fn ($part) => $part->getDeclaringClass()->name === $class->name && $part->isPublic());
    $parts = [$class, ...$of($class->getMethods()), ...$of($class->getReflectionConstants())];
    return array_map(fn ($part) => $part->getName(), array_values(array_filter($parts, fn ($part) => strlen((string) $part->getDocComment()) < 20)));
}
foreach (['Cache', 'Claim', 'Keys', 'Exception'] as $class) {
    same([], undescribed(new ReflectionClass("Stub\\$class")), $class);
}
ob_start();
$extension->info();
check(str_contains(ob_get_clean(), 'Version of libeyewall => '));
echo "done\n";
--EXPECT--
done
