--TEST--
Pages: printed from the volume, or stored as they are printed
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\Page;

$volume = volume(['lock_deadline' => 0.02]);
$path = folder() . '/volume';
same('ValueError 0: The path of the volume is missing: pass it, or set eyewall.path in php.ini', thrown(fn () => Page::start('x')));
Page::use($volume);

function printed(callable $work): string
{
    ob_start();
    $work();
    return ob_get_clean();
}
$made = 0;
$page = function () use (&$made): void {
    if (!Page::start('/news', 60, ['news'])) {
        echo '<h1>News</h1>', ++$made;
        Page::end();
    }
};
same('<h1>News</h1>1', printed($page));
same('<h1>News</h1>1', printed($page));
same('<h1>News</h1>1', $volume->get('page:/news'));
$volume->purgeTag('news');
same('<h1>News</h1>2', printed($page));

// Parts within pages.
$outer = function () use ($page): void {
    if (!Page::start('outer')) {
        echo '[';
        $page();
        if (!Page::start('inner')) {
            echo 'inner';
            Page::end();
        }
        echo ']';
        Page::end();
    }
};
same('[<h1>News</h1>2inner]', printed($outer));
same(['[<h1>News</h1>2inner]', 'inner'], [$volume->get('page:outer'), $volume->get('page:inner')]);

// An empty page is a page.
same('', printed(fn () => Page::start('empty') || Page::end()));
same(['', true], [$volume->get('page:empty'), Page::start('empty')]);

// Pages that are not to be stored.
same('not this', printed(function () {
    Page::start('skipped');
    echo 'not this';
    Page::skip();
}));
http_response_code(404);
same('not found', printed(function () {
    Page::start('missing');
    echo 'not found';
    Page::end();
}));
http_response_code(200);
same([false, false], [$volume->has('page:skipped'), $volume->has('page:missing')]);
printed(function () use ($volume) {
    Page::start('good');
    echo 'good';
    Page::end();
    same('good', $volume->get('page:good'));
});
same('LogicException 0: Page::end() needs a Page::start() before it that returned false', thrown(Page::end(...)));
same('LogicException 0: Page::end() needs a Page::start() before it that returned false', thrown(Page::skip(...)));
same('partial', printed(function () {
    Page::start('buffers');
    ob_start();
    same('LogicException 0: Between Page::start() and Page::end(), code must end every output buffer that it begins, and no other', thrown(Page::end(...)));
    echo 'partial';
    ob_end_flush();
    ob_end_flush();
}));
same(false, $volume->has('page:buffers'));

// A script that ends in the middle has printed what it printed, and stores nothing.
$half = new Process('require $argv[2]; Eyewall\Page::use(new Eyewall\Cache($argv[1])); Eyewall\Page::start("half"); echo "half"; exit(0);', $path, __DIR__ . '/../src/autoload.php');
same('half', $half->rest());
same(false, $volume->has('page:half'));

// One makes a page, the others wait for it.
$script = 'require $argv[2]; $cache = new Eyewall\Cache($argv[1]); Eyewall\Page::use($cache); echo "ready\n"; fgets(STDIN);
    for ($i = 0; $i < 50; $i++) { if (!Eyewall\Page::start("page $i")) { echo $cache->increment("made $i"); Eyewall\Page::end(); } }';
$children = [];
for ($i = 0; $i < 3; $i++) {
    $children[] = new Process($script, $path, __DIR__ . '/../src/autoload.php');
}
foreach ($children as $child) {
    same('ready', $child->line());
}
foreach ($children as $child) {
    $child->tell('go');
}
foreach ($children as $child) {
    same(str_repeat('1', 50), $child->rest());
}
echo "done\n";
--EXPECT--
done
