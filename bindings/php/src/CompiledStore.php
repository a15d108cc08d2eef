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
    /** How old a change of a file has to be, in seconds, for the next one to have another time: times of files are whole seconds. */
    private const SETTLED = 2;

    /**
     * @param string $prefix goes before each name, so that several stores may share a volume
     * @param float $wait for how many seconds one waits for another process that compiles the same; then it compiles, too
     */
    public function __construct(private readonly Cache $cache, private readonly string $prefix = 'compiled:', private readonly float $wait = 5.0)
    {
    }

    /**
     * What was compiled of a version; else what `$compile($name)` returns, which one process does while the others wait.
     *
     * @param string|int $version a time of modification, a checksum, a release
     */
    public function get(string $name, string|int $version, callable $compile): mixed
    {
        return $this->cache->fetchOrCompute($this->key($name) . $version, static fn () => $compile($name), wait: $this->wait);
    }

    /**
     * The same of a file: compiled anew when it was written, replaced, or given another time. Of one that was changed in the last two
     * seconds the content is looked at, too, since it may change once more within one second.
     */
    public function ofFile(string $path, callable $compile): mixed
    {
        clearstatcache(true, $path);
        $file = @stat($path);
        if ($file === false) {
            throw new \RuntimeException("There is no file $path to compile");
        }
        $version = "$file[mtime]-$file[ctime]-$file[size]-$file[ino]";
        if (max($file['mtime'], $file['ctime']) > time() - self::SETTLED) {
            $version .= '-' . @hash_file('xxh128', $path);
        }
        return $this->get($path, $version, $compile);
    }

    /**
     * Runs a template, as include does with a file; `$compile($name)` returns what that file would hold. In it `__FILE__` is the name,
     * and `__DIR__` the folder of that.
     *
     * @param array<string, mixed> $variables what the template sees
     * @return mixed what the template returns, 1 if nothing
     */
    public function render(string $name, string|int $version, callable $compile, array $variables = []): mixed
    {
        $source = $this->get($name, $version, static fn () => self::located($name, $compile($name)));
        if (!is_string($source)) {
            throw new \UnexpectedValueException("What $name is compiled to has to be PHP source, not " . get_debug_type($source));
        }
        // Without the opening tag before it, a declaration is the first statement, as it has to be.
        $code = preg_match('/^<\?php(?=\s)/', $source) ? substr($source, strlen('<?php')) : '?>' . $source;
        return (static function () {
            extract(func_get_arg(1), EXTR_SKIP);
            return eval(func_get_arg(0)) ?? 1;
        })($code, $variables);
    }

    /** All versions of a name are gone. */
    public function forget(string $name): void
    {
        $this->cache->purgePrefix($this->key($name));
    }

    /** Source that is evaluated elsewhere says where it belongs. */
    private static function located(string $name, mixed $source): mixed
    {
        if (!is_string($source) || !preg_match('/__(FILE|DIR)__/i', $source)) {
            return $source;
        }
        if (!class_exists(\PhpToken::class)) {
            throw new \RuntimeException("The template $name names __FILE__ or __DIR__: load the extension tokenizer, or compile to paths");
        }
        $words = array_map(static fn (\PhpToken $token) => match ($token->id) {
            T_FILE => var_export($name, true),
            T_DIR => var_export(dirname($name), true),
            default => $token->text,
        }, \PhpToken::tokenize($source));
        return implode('', $words);
    }

    /** A zero byte ends the name, so that no name is the beginning of another's key. */
    private function key(string $name): string
    {
        return $this->prefix . $name . "\0";
    }
}
