<?php
// The small framework of the generated site: a manifest of classes, compiled templates, stored fragments of pages, and
// temporary files. The measurement varies only where the framework keeps these.
declare(strict_types=1);

require __DIR__ . '/kept.php';

final class Site
{
    private array $manifest = [];

    public function __construct(private readonly string $root, private readonly Kept $kept)
    {
    }

    /** Loads the data of a page. If there is none, as after a restart, builds it first. */
    public function start(): void
    {
        $manifest = $this->kept->manifest();
        if ($manifest === null) {
            $this->rebuild();
            $manifest = $this->kept->manifest();
        }
        $this->manifest = $manifest;
        spl_autoload_register(function (string $class): void {
            if (isset($this->manifest[$class])) {
                require $this->root . $this->manifest[$class]['file'];
            }
        });
    }

    /** Finds all classes, compiles all templates, and stores both again. */
    public function rebuild(): void
    {
        $templates = [];
        foreach (glob("$this->root/templates/*.html") as $file) {
            $templates[basename($file, '.html')] = self::compiled(file_get_contents($file));
        }
        $this->kept->replace($this->classes(), $templates);
    }

    public function render(string $template, array $data): string
    {
        ob_start();
        $this->kept->run($template, $this, $data);
        return ob_get_clean();
    }

    /** A part of a page: the stored one, or else a new one. */
    public function fragment(string $name, callable $make): array
    {
        return $this->kept->fragment($name, $make);
    }

    /** Makes a temporary file, as uploads and pictures do. */
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
