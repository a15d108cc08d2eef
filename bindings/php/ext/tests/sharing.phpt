--TEST--
Users of a group share a volume; others may do what its mode says (docs/sharing.md)
--EXTENSIONS--
eyewall
posix
--SKIPIF--
<?php
if (posix_geteuid() !== 0) die('skip only root can become other users');
?>
--FILE--
<?php
require __DIR__ . '/helpers.inc';
const CACHE_GROUP = 4711;

/** What a process of another user says of a volume. */
function as_user(int $user, int $group, string $work, string $name = 'volume'): string
{
    // PHP has no setgroups: initgroups of a name that has none but its own.
    $child = new Process('posix_initgroups("nobody", (int) $argv[2]); posix_setgid((int) $argv[2]); posix_setuid((int) $argv[1]);
        function open(array $options = []): Eyewall\Cache { global $argv; return new Eyewall\Cache($argv[3], $options + ["lock_deadline" => 20]); }
        try { ' . $work . ' } catch (Eyewall\Exception $error) { echo $error->getCode(), ": ", $error->getMessage(); }',
        (string) $user, (string) $group, folder() . "/$name");
    return $child->rest();
}

chmod(folder(), 02770);
chgrp(folder(), CACHE_GROUP);
$cache = volume(['mode' => 0660, 'group' => CACHE_GROUP, 'lock_deadline' => 20]);
$cache->set('by root', 'read');

// Members do everything.
same('read', as_user(1001, CACHE_GROUP, '$cache = open(); echo $cache->get("by root"); $cache->set("by 1001", 1, 60, ["tag"]); $cache->increment("n");'));
same('11', as_user(1002, CACHE_GROUP, '$cache = open(); echo $cache->get("by 1001"), $cache->get("n"); $cache->purgeTag("tag"); echo $cache->get("by 1001");'));
same(null, $cache->get('by 1001'));

// One takes over what another's dead process held.
same('', as_user(1001, CACHE_GROUP, '$claim = open()->claim("held"); posix_kill(getmypid(), 9);'));
same('1', as_user(1002, CACHE_GROUP, 'echo open()->update("held", fn () => "taken over", wait: 0);'));
same('taken over', $cache->get('held'));

// A member creates one for all, if it says so.
same('', as_user(1001, CACHE_GROUP, 'open(["size" => "1M", "mode" => 0660, "group" => ' . CACHE_GROUP . '])->set("made", 1);', 'second'));
same('1', as_user(1002, CACHE_GROUP, 'echo open()->get("made");', 'second'));
same('', as_user(1001, CACHE_GROUP, 'open(["size" => "1M"])->set("made", 1);', 'private'));
check(str_contains(as_user(1002, CACHE_GROUP, 'open();', 'private'), 'open it with read_only(true), or as a user who may write it'));
check(str_contains(as_user(1001, CACHE_GROUP, 'open(["size" => "1M", "group" => 4712]);', 'third'), 'it can\'t be given to group 4712'));
same(false, file_exists(folder() . '/third'));

// Strangers, by the mode.
chmod(folder(), 02775);
$denied = Eyewall\Exception::READ_ONLY . ': ';
check(str_starts_with(as_user(1003, 1003, 'open();'), $denied));
check(as_user(1003, 1003, 'open(["read_only" => true]); echo "opened";') !== 'opened');
chmod(folder() . '/volume', 0664);
check(str_starts_with(as_user(1003, 1003, 'open();'), $denied));
same('read', as_user(1003, 1003, 'echo open(["read_only" => true])->get("by root");'));
check(str_starts_with(as_user(1003, 1003, 'open(["read_only" => true])->purgeAll();'), $denied));
check(str_contains(as_user(1003, 1003, 'open(["size" => "1M"]);', 'fourth'), 'a volume can\'t be created there; choose another directory'));
echo "done\n";
--EXPECT--
done
