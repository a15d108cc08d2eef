<?php
// memcached as a store: a process that this driver starts, behind a Unix socket, and PHP's extension for it.
declare(strict_types=1);

final class MemcachedOfOurs extends Store
{
    private const PATIENCE_SECONDS = 10;
    private ?Memcached $client = null;
    /** @var resource|null */
    private $server = null;
    private bool $ends = false;

    public function absent(): ?string
    {
        return match (true) {
            !extension_loaded('memcached') => 'the extension memcached is missing (apt install php-memcached)',
            self::program() === null => 'memcached is missing (apt install memcached)',
            default => null,
        };
    }

    public function version(): string
    {
        preg_match('/(\S+)\s*$/', (string) shell_exec(escapeshellarg(self::program()) . ' -V'), $version);
        return "memcached $version[1], extension " . phpversion('memcached') . ', PHP ' . PHP_VERSION;
    }

    public function open(array $request, string $folder): void
    {
        // Runs whenever the driver ends, except by SIGKILL.
        $this->ends || register_shutdown_function($this->close(...));
        $this->ends = true;
        $socket = "$folder/socket";
        $megabytes = intdiv($request['configuration']['bytes'], 1 << 20) + 1;
        $user = posix_getpwuid(posix_geteuid())['name'];
        $nowhere = ['file', '/dev/null', 'r+'];
        $command = [self::program(), '-s', $socket, '-a', '0700', '-m', (string) $megabytes, '-t', '1', '-u', $user];
        $this->server = proc_open($command, [$nowhere, $nowhere], $pipes) ?: throw new RuntimeException('memcached could not be started');
        $this->client = new Memcached();
        $this->client->setOption(Memcached::OPT_COMPRESSION, false);
        $this->client->addServer($socket, 0);
        $end = hrtime(true) + self::PATIENCE_SECONDS * 1_000_000_000;
        while (!is_resource(@stream_socket_client("unix://$socket"))) {
            proc_get_status($this->server)['running'] || throw new RuntimeException('memcached ended while it started');
            hrtime(true) < $end || throw new RuntimeException('memcached did not start within ' . self::PATIENCE_SECONDS . ' s');
            usleep(10_000);
        }
    }

    public function set(string $key, mixed $value): void
    {
        $this->client->set($key, $value) || throw new RuntimeException('memcached refused a value: ' . $this->client->getResultMessage());
    }

    public function get(string $key): mixed
    {
        $value = $this->client->get($key);
        return $value === false ? null : $value;
    }

    public function close(): void
    {
        $this->client?->quit();
        $this->client = null;
        if ($this->server !== null) {
            proc_terminate($this->server);
            proc_close($this->server);
            $this->server = null;
        }
    }

    private static function program(): ?string
    {
        foreach ([...explode(':', (string) getenv('PATH')), '/usr/sbin', '/usr/bin'] as $folder) {
            if (is_executable("$folder/memcached")) {
                return "$folder/memcached";
            }
        }
        return null;
    }
}
