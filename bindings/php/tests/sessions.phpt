--TEST--
Sessions: what a request reads is what it changes
--EXTENSIONS--
eyewall
posix
session
--FILE--
<?php
require __DIR__ . "/helpers.inc";
use Eyewall\SessionHandler;

$volume = volume(['lock_deadline' => 0.02]);
$path = folder() . '/volume';
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
ini_set('session.gc_probability', '1');
ini_set('session.gc_divisor', '1');
check(session_set_save_handler(new SessionHandler($volume, wait: 0.05), true));

session_id('one');
session_start();
same([], $_SESSION);
$_SESSION['n'] = 1;
session_write_close();
same('n|i:1;', $volume->get('session:one'));

// Read by the next request, and not changed.
session_start();
same(['n' => 1], $_SESSION);
session_write_close();
same('n|i:1;', $volume->get('session:one'));
// And as PHP does it, where nothing has changed (session.lazy_write).
$volume->touch('session:one', 10);
session_start();
session_write_close();
check($volume->lookup('session:one')['ttl'] > 10);
// Nothing is held now.
$volume->claim('session:one', 0)->end();

session_start(['read_and_close' => true]);
same(['n' => 1], $_SESSION);
$volume->claim('session:one', 0)->end();

// Another request of the same session waits, and one that waits for too long is told so.
session_start();
refused(Eyewall\Exception::BUSY, '', fn () => $volume->claim('session:one', 0));
$busy = new Process('require $argv[2]; $handler = new Eyewall\SessionHandler(new Eyewall\Cache($argv[1], ["lock_deadline" => 0.02]), wait: 0.05);
    echo substr(thrown(fn () => $handler->read("one")), 0, 21), $handler->read("two");', $path, __DIR__ . '/../src/autoload.php');
same('Eyewall\Exception -10', $busy->rest());

// A new name of the session: the old one goes, and both are free afterwards.
$_SESSION['n'] = 2;
session_regenerate_id(true);
$new = session_id();
check($new !== 'one' && !$volume->has('session:one'));
$_SESSION['n'] = 3;
session_write_close();
same('n|i:3;', $volume->get("session:$new"));
session_start();
session_regenerate_id(false);
session_write_close();
same('n|i:3;', $volume->get("session:$new"));
$volume->claim("session:$new", 0)->end();

session_id($new);
session_start();
check(session_destroy());
same(false, $volume->has("session:$new"));
$volume->claim("session:$new", 0)->end();

// Somebody destroys a session while a request has it: it stays destroyed.
session_id('gone');
session_start();
$_SESSION['n'] = 1;
session_write_close();
session_start();
$volume->delete('session:gone');
$_SESSION['n'] = 2;
session_write_close();
same(false, $volume->has('session:gone'));

// Made up names aren't taken.
ini_set('session.use_strict_mode', '1');
session_id('invented');
session_start();
$real = session_id();
check($real !== 'invented');
session_write_close();
session_id($real);
session_start();
same($real, session_id());
session_write_close();

// Without a claim, as no request does it: by itself.
$handler = new SessionHandler($volume, 'other:', ttl: 100);
check($handler->open('', '') && $handler->write('x', 'data') && $handler->validateId('x') && !$handler->validateId('') && !$handler->validateId('y'));
same('data', $volume->get('other:x'));
// A session that was only read lives on: it has its whole time again.
$ttl = fn (string $key) => $volume->lookup("other:$key")['ttl'];
check($ttl('x') > 0 && $ttl('x') <= 100);
check((new SessionHandler($volume, 'other:', ttl: 5000))->updateTimestamp('x', 'not stored') && $volume->get('other:x') === 'data');
check($ttl('x') > 100 && $ttl('x') <= 5000);
check($handler->updateTimestamp('new', 'stored') && $volume->get('other:new') === 'stored');
check($handler->destroy('x') && $handler->gc(1) === 0 && $handler->close() && !$volume->has('other:x'));

// No increment of many requests is lost, and one that dies doesn't stop the others.
$script = 'require $argv[2]; ini_set("session.use_cookies", "0"); ini_set("session.cache_limiter", "");
    session_set_save_handler(new Eyewall\SessionHandler(new Eyewall\Cache($argv[1])), true); session_id("counted");
    for ($i = 0; $i < 50; $i++) { session_start(); $_SESSION["n"] = ($_SESSION["n"] ?? 0) + 1; session_write_close(); }
    if ($argv[3] === "dies") { session_start(); $_SESSION["n"] = 0; posix_kill(getmypid(), 9); }';
$children = [];
foreach (['lives', 'dies', 'lives'] as $end) {
    $children[] = new Process($script, $path, __DIR__ . '/../src/autoload.php', $end);
}
foreach ($children as $child) {
    same('', $child->rest());
}
same('n|i:150;', $volume->get('session:counted'));
echo "done\n";
--EXPECT--
done
