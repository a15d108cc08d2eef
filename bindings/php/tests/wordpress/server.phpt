--TEST--
WordPress: the plugin purges by the administration's socket, and by PURGE with a token, and says what failed
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . '/../helpers.inc';

// A server that answers one request, and prints it.
$server = '$listener = stream_socket_server($argv[1]); echo stream_socket_get_name($listener, false), "\n"; $client = stream_socket_accept($listener, 60); $request = "";
    while (!str_contains($request, "\r\n\r\n")) { $request .= fread($client, 8192); }
    preg_match("/Content-Length: (\d+)/", $request, $length);
    while (strlen($request) < strpos($request, "\r\n\r\n") + 4 + $length[1]) { $request .= fread($client, 8192); }
    fwrite($client, str_replace("|", "\r\n", $argv[2])); fclose($client); echo str_replace("\r\n", "|", $request);';
$site = 'require $argv[1] . "/site.inc"; define("ABSPATH", "/"); define("WP_EYEWALL_SERVER", $argv[2]); define("WP_EYEWALL_TIMEOUT", 60); $argv[3] === "" || define("WP_EYEWALL_TOKEN_FILE", $argv[3]);
    require $argv[1] . "/../../wordpress/eyewall/eyewall.php";
    eyewall_purge(["post-7", "posts"]); echo Eyewall\WordPress\Changes::purge();';
$purge = fn (string $address, string $token = ''): string => (new Process($site, __DIR__, $address, $token))->rest();
$ok = 'HTTP/1.1 200 OK|Content-Length: 2||{}';

$socket = folder() . '/admin.sock';
$admin = new Process($server, "unix://$socket", $ok);
$admin->line();
same('', $purge($socket));
$body = '{"tag":["post-7","posts"],"host":"example.org"}';
same('POST /purge HTTP/1.1|Connection: close|Content-Length: ' . strlen($body) . "|Host: localhost|Content-Type: application/json||$body", $admin->rest());
unlink($socket);

file_put_contents(folder() . '/token', "secret\n");
$front = new Process($server, 'tcp://127.0.0.1:0', $ok);
same('', $purge('http://' . $front->line() . '/', folder() . '/token'));
same('PURGE / HTTP/1.1|Connection: close|Content-Length: 0|Host: example.org|Xkey: post-7 posts|Authorization: Bearer secret||', $front->rest());

// The server refuses; answers nothing; isn't there; the token can't be read.
$front = new Process($server, 'tcp://127.0.0.1:0', 'HTTP/1.1 403 Forbidden|Connection: close||not from here');
$address = 'http://' . $front->line();
same("Pages can't be purged by the server at $address: the answer was 403: not from here", $purge($address));
check(str_contains($front->rest(), 'PURGE / HTTP/1.1'));
$front = new Process($server, 'tcp://127.0.0.1:0', '');
$address = 'http://' . $front->line();
check(str_contains($purge($address), 'no answer came from tcp://'));
$front->rest();
check(str_contains($purge($socket), "nothing answers at unix://$socket (") && str_contains($purge($socket), 'Does the server run, and may PHP\'s user connect?'));
check(str_contains($purge('http://127.0.0.1:1', folder() . '/no-token'), 'PHP can\'t read the token in ' . folder() . '/no-token. Give the file PHP\'s group, and the mode 0640.'));
echo "done\n";
--EXPECT--
done
