<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * What is compiled from sources and kept: configuration, routes, manifests, templates; in place of generated PHP files.
 *
 * An array comes back by igbinary or unserialize() in a few microseconds, whatever process has stored it, and nothing has to be
 * written, renamed, or thrown out of the opcode cache. Templates, which are code, are evaluated anew at each rendering, as eval()
 * does: the opcode cache doesn't hold what it evaluates. A large template that changes seldom is faster as a file.
 *
 * The version is part of the key: a new one never meets what an old one has stored, which is evicted when it is cold.
 */
final class CompiledStore
{
    public function __construct(private readonly Cache $cache, private readonly string $prefix = 'compiled:')
    {
    }

    /**
     * What was compiled of a version; else what `$compile($name)` returns, which one process does while the others wait.
     *
     * @param string|int $version a time of modification, a checksum, a release
     */
    public function get(string $name, string|int $version, callable $compile): mixed
    {
        return $this->cache->fetchOrCompute($this->key($name) . $version, static fn () => $compile($name));
    }

    /** The same of a file: compiled anew when its time of modification or its length has changed. */
    public function ofFile(string $path, callable $compile): mixed
    {
        clearstatcache(true, $path);
        $file = @stat($path);
        if ($file === false) {
            throw new \RuntimeException("There is no file $path to compile");
        }
        return $this->get($path, "$file[mtime]-$file[size]-$file[ino]", $compile);
    }

    /**
     * Runs a template, as include does with a file; `$compile($name)` returns what that file would hold.
     *
     * @param array<string, mixed> $variables what the template sees
     * @return mixed what the template returns, 1 if nothing
     */
    public function render(string $name, string|int $version, callable $compile, array $variables = []): mixed
    {
        $source = $this->get($name, $version, $compile);
        if (!is_string($source)) {
            throw new \UnexpectedValueException("What $name is compiled to has to be PHP source, not " . get_debug_type($source));
        }
        return (static function () {
            extract(func_get_arg(1), EXTR_SKIP);
            return eval('?>' . func_get_arg(0)) ?? 1;
        })($source, $variables);
    }

    /** All versions of a name are gone. */
    public function forget(string $name): void
    {
        $this->cache->purgePrefix($this->key($name));
    }

    /** A zero byte ends the name, so that no name is the beginning of another's key. */
    private function key(string $name): string
    {
        return $this->prefix . $name . "\0";
    }
}
