<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * Stores data compiled from sources: configuration, routes, manifests, templates. It replaces generated PHP files.
 *
 * igbinary or unserialize() restores an array in a few microseconds, whatever process stored it. Nothing has to be
 * written, renamed or removed from the opcode cache. A template is code, and is compiled at each rendering, since
 * the opcode cache doesn't hold code of eval(). A large template that seldom changes is faster as a file.
 *
 * The version is part of the key: a new version never meets the data of an old one, which is evicted when it is
 * cold.
 */
final class CompiledStore
{
    /** Minimum age in seconds of a file's change before its time identifies it: file times are whole seconds. */
    private const SETTLED = 2;

    /**
     * @param string $prefix goes before each name, so that several stores can share a volume
     * @param float $wait seconds to wait for another process that compiles the same; then this process
     *     compiles, too
     */
    public function __construct(private readonly Cache $cache, private readonly string $prefix = 'compiled:', private readonly float $wait = 5.0)
    {
    }

    /**
     * Returns the data compiled for a version. If there is none, one process stores and returns the result of
     * `$compile($name)`, and the others wait.
     *
     * @param string|int $version a time of modification, a checksum, a release
     */
    public function get(string $name, string|int $version, callable $compile): mixed
    {
        return $this->cache->fetchOrCompute($this->key($name) . $version, static fn () => $compile($name), wait: $this->wait);
    }

    /**
     * Does the same for a file. It is compiled again after it was written, replaced, or given another time. If
     * the file changed in the last two seconds, its content is compared, too, since it may change twice within
     * one second.
     */
    public function ofFile(string $path, callable $compile): mixed
    {
        clearstatcache(true, $path);
        $file = @stat($path);
        if ($file === false) {
            throw new \RuntimeException("The file $path to compile does not exist");
        }
        $version = "$file[mtime]-$file[ctime]-$file[size]-$file[ino]";
        if (max($file['mtime'], $file['ctime']) > time() - self::SETTLED) {
            $version .= '-' . @hash_file('xxh128', $path);
        }
        return $this->get($path, $version, $compile);
    }

    /**
     * Runs a template like an included file; `$compile($name)` returns the content of that file. In it
     * `__FILE__` is the name, and `__DIR__` the folder of the name.
     *
     * @param array<string, mixed> $variables the variables of the template
     * @return mixed what the template returns, 1 if nothing
     */
    public function render(string $name, string|int $version, callable $compile, array $variables = []): mixed
    {
        $source = $this->get($name, $version, static fn () => self::located($name, $compile($name)));
        if (!is_string($source)) {
            throw new \UnexpectedValueException("The compile function of $name must return PHP source, not " . get_debug_type($source));
        }
        // A declaration must be the first statement of a script, so remove the opening tag.
        $code = preg_match('/^<\?php(?=\s)/', $source) ? substr($source, strlen('<?php')) : '?>' . $source;
        return (static function () {
            extract(func_get_arg(1), EXTR_SKIP);
            return eval(func_get_arg(0)) ?? 1;
        })($code, $variables);
    }

    /** Removes all versions of a name. */
    public function forget(string $name): void
    {
        $this->cache->purgePrefix($this->key($name));
    }

    /** Replaces __FILE__ and __DIR__, which eval() would set to this file. */
    private static function located(string $name, mixed $source): mixed
    {
        if (!is_string($source) || !preg_match('/__(FILE|DIR)__/i', $source)) {
            return $source;
        }
        if (!class_exists(\PhpToken::class)) {
            throw new \RuntimeException("The template $name uses __FILE__ or __DIR__: load the extension tokenizer, or replace them by paths");
        }
        $words = array_map(static fn (\PhpToken $token) => match ($token->id) {
            T_FILE => var_export($name, true),
            T_DIR => var_export(dirname($name), true),
            default => $token->text,
        }, \PhpToken::tokenize($source));
        return implode('', $words);
    }

    /** A zero byte ends the name, so that no name is a prefix of another's key. */
    private function key(string $name): string
    {
        return $this->prefix . $name . "\0";
    }
}
