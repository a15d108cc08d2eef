<?php
// The small framework of the generated site: a manifest of classes, templates that are compiled, fragments of pages that are kept, and
// temporary files. Whatever it writes lies below one directory, the site's only setting that is measured.
declare(strict_types=1);

/** A whole file in the place of another, in one of three ways. */
enum Way: string
{
    case Truncate = 'truncate';
    case Delete = 'delete and write';
    case Rename = 'write and rename';

    public function write(string $path, string $bytes): void
    {
        $target = $this === self::Rename ? "$path.new" : $path;
        if (file_put_contents($target, $bytes) !== strlen($bytes) || ($target !== $path && !rename($target, $path))) {
            throw new RuntimeException("$path can't be written");
        }
    }
}

final class Site
{
    private array $manifest = [];

    public function __construct(private readonly string $root, private readonly string $cache)
    {
    }

    /** Gets what a page needs from the cache, and makes it first where it is empty, as after a restart. */
    public function start(): void
    {
        $manifest = "$this->cache/manifest.php";
        if (!is_file($manifest)) {
            $this->rebuild(Way::Rename);
        }
        $this->manifest = require $manifest;
        spl_autoload_register(function (string $class): void {
            if (isset($this->manifest[$class])) {
                require $this->root . $this->manifest[$class]['file'];
            }
        });
    }

    /** Finds all classes, compiles all templates, and writes both anew. */
    public function rebuild(Way $way): void
    {
        if ($way === Way::Delete) {
            foreach ([...glob("$this->cache/templates/*"), ...glob("$this->cache/manifest.php")] as $file) {
                unlink($file);
            }
        }
        foreach (['templates', 'fragments', 'temporary'] as $folder) {
            is_dir("$this->cache/$folder") || mkdir("$this->cache/$folder", 0750, true);
        }
        $way->write("$this->cache/manifest.php", '<?php return ' . var_export($this->classes(), true) . ";\n");
        foreach (glob("$this->root/templates/*.html") as $file) {
            $way->write("$this->cache/templates/" . basename($file, '.html') . '.php', self::compiled(file_get_contents($file)));
        }
    }

    public function render(string $template, array $data): string
    {
        $site = $this;
        ob_start();
        require "$this->cache/templates/$template.php";
        return ob_get_clean();
    }

    /** A part of a page, from the cache or made. */
    public function fragment(string $name, callable $make): array
    {
        $path = "$this->cache/fragments/$name";
        $kept = @file_get_contents($path);
        if ($kept !== false) {
            return unserialize($kept);
        }
        $made = $make();
        Way::Rename->write($path, serialize($made));
        return $made;
    }

    /** A temporary file, as uploads and pictures need one. */
    public function passThroughTemporaryFile(string $bytes): string
    {
        $path = tempnam(sys_get_temp_dir(), 'page');
        file_put_contents($path, $bytes);
        $read = file_get_contents($path);
        unlink($path);
        return $read;
    }

    private function classes(): array
    {
        $classes = [];
        foreach (glob("$this->root/classes/*/*.php") as $file) {
            $text = file_get_contents($file);
            preg_match('/^namespace (.+);$/m', $text, $namespace);
            preg_match('/^class (\w+)(?: extends (\S+))?$/m', $text, $class);
            $classes["$namespace[1]\\$class[1]"] = ['file' => substr($file, strlen($this->root)), 'parent' => $class[2] ?? null];
        }
        return $classes;
    }

    private static function compiled(string $text): string
    {
        return preg_replace(
            ['/\{\{ (\w+) \}\}/', '/\{% each (\w+) %\}/', '/\{% end %\}/', '/\{% include (\w+) %\}/'],
            [
                '<?= htmlspecialchars((string) $data[\'$1\']) ?>', '<?php foreach ($data[\'$1\'] as $data[\'each\']): ?>',
                '<?php endforeach ?>', '<?= $site->render(\'$1\', $data) ?>',
            ],
            $text,
        );
    }
}
