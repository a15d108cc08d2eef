--TEST--
What is compiled once, and had by all
--EXTENSIONS--
eyewall
tokenizer
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
same('ValueError 0: The time wait must be 0 seconds or more', thrown(fn () => (new CompiledStore($volume, wait: -1))->get('routes', 5, fn () => 1)));

// Of a file, as long as it doesn't change.
$source = folder() . '/source.ini';
file_put_contents($source, 'a = 1');
$parse = fn (string $path) => parse_ini_file($path);
same(['a' => '1'], $store->ofFile($source, $parse));
file_put_contents($source, 'a = 1000');
same(['a' => '1000'], $store->ofFile($source, $parse));
touch($source, 1000000000);
same('anew', $store->ofFile($source, fn () => 'anew'));
// Edits of the same length within a moment of one another, whatever time they claim to be of.
foreach (range(10, 40) as $number) {
    file_put_contents($source, "a = $number");
    $number % 2 === 0 && touch($source, 1000000000);
    same(['a' => "$number"], $store->ofFile($source, $parse));
}
// A file that is new, or claims to be, is compiled once, too; and one that is old.
touch($source, time() + 100000);
same('new', $store->ofFile($source, fn () => 'new'));
same('new', $store->ofFile($source, fn () => 'not called'));
same('old', $store->ofFile(PHP_BINARY, fn () => 'old'));
same('old', $store->ofFile(PHP_BINARY, fn () => 'not called'));
same('RuntimeException 0: The file /nowhere to compile does not exist', thrown(fn () => $store->ofFile('/nowhere', $parse)));

// Templates.
foreach ([
    '<?php declare(strict_types=1); return strlen(...)(%s);',
    "<?php\n\n// A comment first.\ndeclare(strict_types=1);\nreturn strlen(%s);",
    "<?php declare(strict_types=1) ?>\n<?php return strlen(%s);",
] as $number => $strict) {
    same(3, $store->render("strict $number", 1, fn () => sprintf($strict, "'abc'")));
    check(str_starts_with(thrown(fn () => $store->render("strict $number", 2, fn () => sprintf($strict, 123))), 'TypeError'));
}
same(3, $store->render('loose', 1, fn () => '<?php return strlen(123);'));
same('Shop\\Template', $store->render('namespace', 1, fn () => '<?php namespace Shop\\Template; return __NAMESPACE__;'));
// Where a template lies is in its name.
ob_start();
same('/templates/shop', $store->render('/templates/shop/it\'s.php', 1, fn () => '<?= __FILE__, basename("__FILE__"), "{$name}__DIR__" ?><?php return __dir__;', ['name' => '!']));
same('/templates/shop/it\'s.php__FILE__!__DIR__', ob_get_clean());
$bare = new Process('require $argv[2]; $store = new Eyewall\CompiledStore(new Eyewall\Cache($argv[1]));
    echo thrown(fn () => $store->render("bare", 1, fn () => "<?= __FILE__")), $store->render("bare", 2, fn () => "<?php return 7;");', folder() . '/volume', __DIR__ . '/../src/autoload.php');
same('RuntimeException 0: The template bare uses __FILE__ or __DIR__: load the extension tokenizer, or replace them by paths7', $bare->rest());
$template = fn () => '<p><?= $name ?></p><?php return $n + 1;';
ob_start();
same(3, $store->render('hello', 1, $template, ['name' => 'World', 'n' => 2]));
same('<p>World</p>', ob_get_clean());
ob_start();
same(1, $store->render('plain', 1, fn () => 'text', ['this' => 1]));
same('text', ob_get_clean());
same('UnexpectedValueException 0: The compile function of array must return PHP source, not array', thrown(fn () => $store->render('array', 1, fn () => [])));
check(str_starts_with(thrown(fn () => $store->render('broken', 1, fn () => '<?php if (')), 'ParseError'));
echo "done\n";
--EXPECT--
done
