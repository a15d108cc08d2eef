<?php
// The stores of PHP: the name of each, its source, its configurations, and how to open it.
declare(strict_types=1);

abstract class Store
{
    /** Why the store isn't available here, and what to do; null if it is. */
    public function absent(): ?string
    {
        return null;
    }

    public function kind(): string
    {
        return 'other';
    }

    public function version(): string
    {
        return 'PHP ' . PHP_VERSION;
    }

    /** Whether the store can be measured in the request's case. A store without a cap can only be measured if all objects fit. */
    public function fits(array $request): bool
    {
        return $request['configuration']['is_roomy'] ?? false;
    }

    /** The settings that PHP has to start with. */
    public function ini(array $request): array
    {
        return [];
    }

    abstract public function open(array $request, string $folder): void;

    abstract public function set(string $key, mixed $value): void;

    /** The value, or null for a miss. */
    abstract public function get(string $key): mixed;

    public function close(): void
    {
    }
}

/** @return array<string, Store> */
function stores(): array
{
    static $stores = null;
    return $stores ??= [
        'eyewall (PHP)' => new EyewallVolume(), 'APCu' => new Apcu(), 'file-per-key (PHP)' => new FilePerKey(), 'array (PHP)' => new PlainArray(),
        'memcached (PHP)' => new MemcachedOfOurs(), 'serialize (PHP)' => new Serialized(),
    ];
}

/**
 * Shared memory of one PHP and its children. Its size is in whole mebibytes, at least one. An entry that doesn't fit empties it. The extension
 * serialises by itself.
 */
final class Apcu extends Store
{
    private const SEGMENT_MIN = 1_000_000;
    private int $expiry = 0;

    public function absent(): ?string
    {
        return extension_loaded('apcu') ? null : 'the extension apcu is missing (apt install php-apcu)';
    }

    public function version(): string
    {
        return phpversion('apcu') . ', PHP ' . PHP_VERSION;
    }

    public function fits(array $request): bool
    {
        return $request['configuration']['bytes'] >= self::SEGMENT_MIN;
    }

    public function ini(array $request): array
    {
        $megabytes = max(1, intdiv($request['configuration']['bytes'], 1 << 20));
        return ['apc.enable_cli' => '1', 'apc.shm_size' => "{$megabytes}M", 'apc.entries_hint' => (string) $request['settings']['keys']];
    }

    public function open(array $request, string $folder): void
    {
        apcu_enabled() || throw new RuntimeException('APCu is switched off (apc.enabled)');
        apcu_clear_cache();
        $this->expiry = $request['configuration']['expiry_seconds'] ?? 0;
    }

    public function set(string $key, mixed $value): void
    {
        apcu_store($key, $value, $this->expiry);
    }

    public function get(string $key): mixed
    {
        $value = apcu_fetch($key, $is_there);
        return $is_there ? $value : null;
    }
}

/** The extension of bindings/php: a volume with the size of the cap. The extension serialises by itself. */
final class EyewallVolume extends Store
{
    private ?Eyewall\Cache $cache = null;
    private ?float $ttl = null;

    public function absent(): ?string
    {
        return extension_loaded('eyewall') ? null : 'the extension eyewall is missing (bindings/php/README.md; PHP_INI_SCAN_DIR=:FOLDER adds a folder with its ini file)';
    }

    public function version(): string
    {
        return phpversion('eyewall') . ', PHP ' . PHP_VERSION;
    }

    public function fits(array $request): bool
    {
        return true;
    }

    public function open(array $request, string $folder): void
    {
        $this->cache = new Eyewall\Cache("$folder/volume", ['size' => $request['configuration']['bytes']]);
        $this->ttl = $request['configuration']['expiry_seconds'] ?? null;
    }

    public function set(string $key, mixed $value): void
    {
        $this->cache->set($key, $value, $this->ttl);
    }

    public function get(string $key): mixed
    {
        return $this->cache->get($key);
    }

    public function close(): void
    {
        $this->cache = null;
    }
}

/** A file for each key, in 256 directories, written under another name and renamed. Structured values are serialised. */
final class FilePerKey extends Store
{
    private string $folder = '';
    private bool $is_structured = false;

    public function open(array $request, string $folder): void
    {
        $this->folder = $folder;
        $this->is_structured = $request['case']['values'] === 'structured';
    }

    public function set(string $key, mixed $value): void
    {
        $path = $this->path($key);
        $beside = $path . '.' . getmypid();
        $bytes = $this->is_structured ? serialize($value) : $value;
        if (@file_put_contents($beside, $bytes) === false) {
            @mkdir(dirname($path), 0750, true);
            file_put_contents($beside, $bytes) === strlen($bytes) || throw new RuntimeException("$beside can't be written");
        }
        rename($beside, $path) || throw new RuntimeException("$path can't be replaced");
    }

    public function get(string $key): mixed
    {
        $bytes = @file_get_contents($this->path($key));
        if ($bytes === false) {
            return null;
        }
        return $this->is_structured ? unserialize($bytes) : $bytes;
    }

    private function path(string $key): string
    {
        $name = md5($key);
        return "$this->folder/" . substr($name, 0, 2) . "/$name";
    }
}

final class PlainArray extends Store
{
    private array $entries = [];

    public function kind(): string
    {
        return 'reference';
    }

    public function open(array $request, string $folder): void
    {
        $this->entries = [];
    }

    public function set(string $key, mixed $value): void
    {
        $this->entries[$key] = $value;
    }

    public function get(string $key): mixed
    {
        return $this->entries[$key] ?? null;
    }
}

/** The cost of serialising alone; bytes need none. */
final class Serialized extends Store
{
    private array $entries = [];

    public function kind(): string
    {
        return 'reference';
    }

    public function fits(array $request): bool
    {
        return parent::fits($request) && $request['case']['values'] === 'structured';
    }

    public function open(array $request, string $folder): void
    {
        $this->entries = [];
    }

    public function set(string $key, mixed $value): void
    {
        $this->entries[$key] = serialize($value);
    }

    public function get(string $key): mixed
    {
        $bytes = $this->entries[$key] ?? null;
        return $bytes === null ? null : unserialize($bytes);
    }
}
