--TEST--
Every public method of the packages says what it does, or the interface does that it is of
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
require __DIR__ . '/psr/cache-3.php';
require __DIR__ . '/psr/simple-cache-3.php';

function is_described(ReflectionMethod $method): bool
{
    $ofInterface = array_filter($method->getDeclaringClass()->getInterfaces(), fn (ReflectionClass $interface) => $interface->hasMethod($method->name));
    return strlen((string) $method->getDocComment()) > 20 || $method->isDestructor() || $ofInterface !== [];
}
$classes = array_map(fn (string $file) => basename($file, '.php'), glob(__DIR__ . '/../src/[A-Z]*.php'));
check(count($classes) > 9);
foreach ($classes as $name) {
    $class = new ReflectionClass("Eyewall\\$name");
    check(strlen((string) $class->getDocComment()) > 20, $name);
    foreach ($class->getMethods(ReflectionMethod::IS_PUBLIC) as $method) {
        check($method->getDeclaringClass()->name !== $class->name || is_described($method), "described: $name::$method->name");
    }
}
echo "done\n";
--EXPECT--
done
