--TEST--
Children of Apache with mod_php share a volume
--EXTENSIONS--
eyewall
posix
--SKIPIF--
<?php
require __DIR__ . '/helpers.inc';
require __DIR__ . '/servers.inc';
if (apache() === null) die('skip there is no Apache with mod_php of this version (apt-get install apache2-bin libapache2-mod-php)');
?>
--FILE--
<?php
require __DIR__ . '/helpers.inc';
require __DIR__ . '/servers.inc';
$folder = folder();
counting_script();
// If root starts Apache, its children belong to another user.
chmod($folder, 0777);
foreach (['eyewall.ini' => 'extension=' . loaded_extension(), 'apache.conf' => '
ServerRoot ' . $folder . '
ServerName localhost
PidFile ' . $folder . '/apache.pid
ErrorLog /dev/stderr
DefaultRuntimeDir ' . $folder . '
Mutex file:' . $folder . '
Listen 127.0.0.1:${PORT}
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule php_module ' . apache()[1] . '
PHPIniDir ' . $folder . '
User nobody
Group nogroup
StartServers 3
MinSpareServers 3
MaxRequestWorkers 3
MaxConnectionsPerChild 10
KeepAlive Off
DocumentRoot ' . $folder . '
SetHandler application/x-httpd-php
'] as $name => $text) {
    file_put_contents("$folder/$name", $text);
}
$answer = false;
// Another program may take a free port before Apache does.
for ($try = 0; $try < 3 && $answer === false; $try++) {
    $port = free_port();
    $server = new Server([apache()[0], '-DFOREGROUND', '-f', "$folder/apache.conf"], ['PORT' => (string) $port, 'PHP_INI_SCAN_DIR' => $folder]);
    try {
        $server->until('~resuming normal operations~');
    } catch (RuntimeException $ended) {
        continue;
    }
    $answer = file_get_contents("http://127.0.0.1:$port/counting.php");
}
$counts = $pids = [];
for ($i = 0; $i < 60; $i++) {
    [$pid, $counts[], $page, $processes, $pins] = json_decode($answer);
    $pids[$pid] = true;
    same(['1', 0], [$page, $pins]);
    $answer = file_get_contents("http://127.0.0.1:$port/counting.php");
}
same(range(1, 60), $counts);
check(count($pids) > 3, implode(' ', array_keys($pids)));
unset($server);
same(61, volume()->get('asked'));
same(1, volume()->stats()['processes']);
echo "done\n";
--EXPECT--
done
