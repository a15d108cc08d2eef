--TEST--
Pages that come to nothing: exceptions, buffers, and what can't be stored
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\Page;

$volume = volume(['lock_deadline' => 0.02]);
$path = folder() . '/volume';
$autoload = __DIR__ . '/../src/autoload.php';
Page::use($volume);

function printed(callable $work): string
{
    ob_start();
    $level = ob_get_level();
    $work();
    check(ob_get_level() === $level, 'buffers are left');
    return ob_get_clean();
}
$fail = fn () => throw new LogicException('no news');
$isFree = fn (string $key) => thrown(fn () => $volume->claim("page:$key", 0)->end()) === 'nothing was thrown';

// A function that makes a page.
same('news of /news', printed(fn () => Page::cached('/news', function (string $key): void { echo "news of $key"; }, 60, ['news'])));
same('news of /news', printed(fn () => Page::cached('/news', $fail)));
same(['news of /news', ['news']], [$volume->get('page:/news'), $volume->lookup('page:/news')['tags']]);
same('', printed(function () use ($fail, $isFree) {
    same('LogicException 0: no news', thrown(fn () => Page::cached('fails', function () use ($fail) {
        echo 'half';
        ob_start();
        Page::start('within');
        echo 'a page';
        $fail();
    })));
    check($isFree('fails') && $isFree('within'));
}));
same([false, false], [$volume->has('page:fails'), $volume->has('page:within')]);
same('made', printed(fn () => Page::cached('fails', fn () => print 'made')));
same('made', $volume->get('page:fails'));
same('', printed(function () {
    same('LogicException 0: Between Page::start() and Page::end(), code must end every output buffer that it begins, and no other', thrown(fn () => Page::cached('unbalanced', fn () => ob_start())));
}));
same(false, $volume->has('page:unbalanced'));

// A fiber that is given up within.
same('', printed(function () use ($isFree) {
    $fiber = new Fiber(fn () => Page::cached('fiber', fn () => Fiber::suspend()));
    $fiber->start();
    unset($fiber);
    check($isFree('fiber'));
}));

// A page that an exception left open, inside another page: neither is stored under the key of the other.
same('[half sorry]', printed(function () use ($fail, $isFree) {
    Page::start('around');
    echo '[';
    try {
        Page::start('left');
        echo 'half';
        $fail();
        Page::end('left');
    } catch (LogicException) {
        echo ' sorry';
    }
    echo ']';
    Page::end('around');
    check($isFree('left'));
}));
same(['[half sorry]', null], [$volume->get('page:around'), $volume->get('page:left')]);
// Begun again: it doesn't wait for itself.
$busy = $volume->stats()['busy'];
same('halfwhole', printed(function () {
    Page::start('again');
    echo 'half';
    Page::start('inner');
    same(false, Page::start('again'));
    echo 'whole';
    Page::end('again');
}));
same(['whole', null, $busy], [$volume->get('page:again'), $volume->get('page:inner'), $volume->stats()['busy']]);
// Without its buffer.
same('next', printed(function () use ($isFree) {
    Page::start('cleaned');
    ob_end_clean();
    Page::start('next');
    check($isFree('cleaned'));
    echo 'next';
    Page::end();
}));
same(['next', false], [$volume->get('page:next'), $volume->has('page:cleaned')]);
same('', printed(function () use ($isFree) {
    Page::start('cleaned too');
    ob_end_clean();
    check(str_starts_with(thrown(Page::end(...)), 'LogicException'));
    check($isFree('cleaned too'));
    same('LogicException 0: Page::end() needs a Page::start() before it that returned false', thrown(Page::end(...)));
}));
same("LogicException 0: Page::end('other') needs a Page::start('other') before it that returned false", thrown(fn () => Page::end('other')));

// A page that isn't stored leaves a negative entry, and no process waits for it from then on.
$busy = $volume->stats()['busy'];
set_error_handler(fn () => true);
foreach ([
    'skipped' => fn () => Page::skip(),
    'large' => function () { echo str_repeat('x', 2000000); Page::end(); },
    'error' => function () { http_response_code(500); Page::end(); http_response_code(200); },
    'thrown' => fn () => thrown(fn () => Page::cached('thrown', $fail)),
] as $way => $end) {
    printed(function () use ($way, $end) {
        $way === 'thrown' || Page::start($way);
        $end();
    });
    same('negative', $volume->lookup("page:$way")['state'] ?? 'nothing', $way);
    // Two make it at a time; the first one to end has it stored.
    $script = 'require $argv[2]; Eyewall\Page::use(new Eyewall\Cache($argv[1]));
        if (!Eyewall\Page::start($argv[3])) { echo "by another"; Eyewall\Page::end(); }';
    same('by us', printed(function () use ($script, $path, $autoload, $way) {
        same(false, Page::start($way, 60));
        echo 'by us';
        same('by another', (new Process($script, $path, $autoload, $way))->rest(), $way);
        Page::end();
    }));
    same('by another', $volume->get("page:$way"));
}
restore_error_handler();
same($busy, $volume->stats()['busy']);

// A page that is purged meanwhile isn't stored.
foreach ([fn () => $volume->purgeTag('t'), fn () => $volume->purgePrefix('page:'), fn () => $volume->purgeAll()] as $purge) {
    printed(fn () => Page::start('purged', 60, ['t']) || Page::skip());
    printed(function () use ($purge) {
        Page::start('purged', 60, ['t']);
        $purge();
        Page::end();
    });
    same(null, $volume->lookup('page:purged'));
}
// Somebody else has stored it meanwhile: it stays.
same('ours', printed(function () use ($volume) {
    Page::start('stored');
    $volume->set('page:stored', 'theirs');
    echo 'ours';
    Page::skip();
}));
same('theirs', $volume->get('page:stored'));

// A script that ends in the middle is noted, too; one whose shutdown function ends the page has it stored.
$begin = 'require $argv[2]; Eyewall\Page::use(new Eyewall\Cache($argv[1])); Eyewall\Page::start("exit"); echo "half"; ';
same('half', (new Process($begin . 'exit(0);', $path, $autoload))->rest());
same('negative', $volume->lookup('page:exit')['state']);
same('half', (new Process($begin . 'register_shutdown_function(Eyewall\Page::end(...), "exit"); exit(0);', $path, $autoload))->rest());
same('half', $volume->get('page:exit'));

// Under a prefix of their own, or of one's choice.
$volume->set('key', 'no page');
same('page', printed(fn () => Page::cached('key', fn () => print 'page')));
same(['no page', 'page'], [$volume->get('key'), $volume->get('page:key')]);
Page::use($volume, 'shop.page:');
same('of the shop', printed(fn () => Page::cached('key', fn () => print 'of the shop')));
same(['page', 'of the shop'], [$volume->get('page:key'), $volume->get('shop.page:key')]);
same(0, $volume->stats()['pins']);
echo "done\n";
--EXPECT--
done
