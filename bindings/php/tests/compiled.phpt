--TEST--
What is compiled once, and had by all
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\CompiledStore;

$volume = volume();
$store = new CompiledStore($volume);
$calls = [];
$compile = function (string $name) use (&$calls): array {
    $calls[] = $name;
    return ['compiled' => $name, 'number' => count($calls)];
};
same(['compiled' => 'routes', 'number' => 1], $store->get('routes', 1, $compile));
same(['compiled' => 'routes', 'number' => 1], $store->get('routes', 1, $compile));
same(['compiled' => 'routes', 'number' => 2], $store->get('routes', 'release 2', $compile));
same(['compiled' => 'routes', 'number' => 1], $store->get('routes', 1, $compile));
same(['compiled' => 'routes1', 'number' => 3], $store->get('routes1', '', $compile));
$store->forget('routes');
same(['compiled' => 'routes1', 'number' => 3], $store->get('routes1', '', $compile));
same(['compiled' => 'routes', 'number' => 4], $store->get('routes', 1, $compile));
same('LogicException 0: syntax', thrown(fn () => $store->get('bad', 1, fn () => throw new LogicException('syntax'))));
same(1, (new CompiledStore($volume, 'other:'))->get('routes', 1, fn () => 1));

// Of a file, as long as it doesn't change.
$source = folder() . '/source.ini';
file_put_contents($source, 'a = 1');
$parse = fn (string $path) => parse_ini_file($path);
same(['a' => '1'], $store->ofFile($source, $parse));
same(['a' => '1'], $store->ofFile($source, fn () => 'not called'));
file_put_contents($source, 'a = 1000');
same(['a' => '1000'], $store->ofFile($source, $parse));
touch($source, 1000000000);
same('anew', $store->ofFile($source, fn () => 'anew'));
same('RuntimeException 0: There is no file /nowhere to compile', thrown(fn () => $store->ofFile('/nowhere', $parse)));

// Templates.
$template = fn () => '<p><?= $name ?></p><?php return $n + 1;';
ob_start();
same(3, $store->render('hello', 1, $template, ['name' => 'World', 'n' => 2]));
same('<p>World</p>', ob_get_clean());
ob_start();
same(1, $store->render('plain', 1, fn () => 'text', ['this' => 1]));
same('text', ob_get_clean());
same('UnexpectedValueException 0: What array is compiled to has to be PHP source, not array', thrown(fn () => $store->render('array', 1, fn () => [])));
check(str_starts_with(thrown(fn () => $store->render('broken', 1, fn () => '<?php if (')), 'ParseError'));
echo "done\n";
--EXPECT--
done
