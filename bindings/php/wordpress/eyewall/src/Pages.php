<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** The pages that `eyewall serve` has stored: the ways to purge them by tags. */
final class Pages
{
    private const TIMEOUT_SECONDS = 2;
    private const FAULT = 'eyewall_purge_fault';

    /** How purges reach the pages, in words; empty: they don't. */
    public static function way(): string
    {
        if (defined('WP_EYEWALL_SERVER')) {
            return 'by the server at ' . WP_EYEWALL_SERVER;
        }
        return defined('WP_EYEWALL_PAGES') ? 'in the volume ' . WP_EYEWALL_PAGES : '';
    }

    /**
     * Purges what has any of these tags. A failure is noted for the status page, since no visitor can mend it.
     *
     * @param list<string> $tags
     * @return string why it failed; empty: it didn't
     */
    public static function purge(string $host, array $tags): string
    {
        if (self::way() === '' || $tags === []) {
            return '';
        }
        try {
            if (!defined('WP_EYEWALL_SERVER')) {
                self::in_volume($host, $tags);
            } elseif (str_starts_with(WP_EYEWALL_SERVER, 'http://')) {
                self::by_request($host, $tags);
            } else {
                self::by_socket($host, $tags);
            }
        } catch (\Throwable $error) {
            $fault = 'Pages can\'t be purged ' . self::way() . ': ' . $error->getMessage();
            update_option(self::FAULT, gmdate('Y-m-d H:i:s') . ' UTC: ' . $fault, false);
            return $fault;
        }
        get_option(self::FAULT) === false || delete_option(self::FAULT);
        return '';
    }

    /** The last failure, if no purge has succeeded since. */
    public static function fault(): string
    {
        return (string) get_option(self::FAULT, '');
    }

    private static function by_socket(string $host, array $tags): void
    {
        $socket = 'unix://' . preg_replace('~^unix:(//)?~', '', WP_EYEWALL_SERVER);
        self::ask($socket, 'POST /purge', ['Host' => 'localhost', 'Content-Type' => 'application/json'], (string) wp_json_encode(['tag' => $tags, 'host' => $host]));
    }

    private static function by_request(string $host, array $tags): void
    {
        $fields = ['Host' => $host, 'Xkey' => implode(' ', $tags)];
        if (defined('WP_EYEWALL_TOKEN_FILE')) {
            $token = @file_get_contents(WP_EYEWALL_TOKEN_FILE);
            if ($token === false) {
                throw new \RuntimeException('PHP can\'t read the token in ' . WP_EYEWALL_TOKEN_FILE . '. Give the file PHP\'s group, and the mode 0640.');
            }
            $fields['Authorization'] = 'Bearer ' . trim($token);
        }
        $address = substr(rtrim(WP_EYEWALL_SERVER, '/'), strlen('http://'));
        self::ask('tcp://' . (preg_match('/:\d+$/', $address) ? $address : "$address:80"), 'PURGE /', $fields, '');
    }

    private static function in_volume(string $host, array $tags): void
    {
        $volume = new \Eyewall\Cache(WP_EYEWALL_PAGES, ['must_exist' => true]);
        // Pages with more tags than an entry can have carry the last one.
        $volume->purgeTags(array_map(static fn (string $tag): string => "$host:$tag", [...$tags, '*']));
    }

    private static function ask(string $address, string $request, array $fields, string $body): void
    {
        $stream = @stream_socket_client($address, $code, $why, self::timeout());
        if ($stream === false) {
            throw new \RuntimeException("nothing answers at $address ($why). Does the server run, and may PHP's user connect?");
        }
        try {
            stream_set_timeout($stream, self::timeout());
            $head = "$request HTTP/1.1\r\nConnection: close\r\nContent-Length: " . strlen($body) . "\r\n";
            foreach ($fields as $name => $value) {
                $head .= "$name: $value\r\n";
            }
            fwrite($stream, "$head\r\n$body");
            $answer = (string) stream_get_contents($stream, 65536);
        } finally {
            fclose($stream);
        }
        if (!preg_match('~^HTTP/1\.1 (\d+)~', $answer, $status)) {
            throw new \RuntimeException("no answer came from $address within " . self::timeout() . ' seconds');
        }
        if ($status[1] !== '200') {
            $reason = trim(explode("\r\n\r\n", $answer, 2)[1] ?? '');
            throw new \RuntimeException("the answer was $status[1]: " . substr($reason, 0, 300));
        }
    }

    private static function timeout(): int
    {
        return defined('WP_EYEWALL_TIMEOUT') ? (int) WP_EYEWALL_TIMEOUT : self::TIMEOUT_SECONDS;
    }
}
