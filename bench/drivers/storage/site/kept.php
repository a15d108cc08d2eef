<?php
// Keeps a site's manifest, its compiled templates and the fragments of its pages: in files, or in a volume of Eyewall.
declare(strict_types=1);

interface Kept
{
    /** The site's classes; null if nothing was built yet. */
    public function manifest(): ?array;

    /** Replaces everything that was built before. Takes the classes, and the templates as PHP source, by name. */
    public function replace(array $classes, array $templates): void;

    /** Prints a template. */
    public function run(string $template, Site $site, array $data): void;

    /** A part of a page: the stored one, or else a new one. */
    public function fragment(string $name, callable $make): array;
}

/** Replaces a whole file, in one of three ways. */
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

final class KeptFiles implements Kept
{
    public function __construct(private readonly string $cache, private readonly Way $way)
    {
    }

    public function manifest(): ?array
    {
        $manifest = "$this->cache/manifest.php";
        return is_file($manifest) ? require $manifest : null;
    }

    public function replace(array $classes, array $templates): void
    {
        if ($this->way === Way::Delete) {
            foreach ([...glob("$this->cache/templates/*"), ...glob("$this->cache/manifest.php")] as $file) {
                unlink($file);
            }
        }
        foreach (['templates', 'fragments'] as $folder) {
            is_dir("$this->cache/$folder") || mkdir("$this->cache/$folder", 0750, true);
        }
        $this->way->write("$this->cache/manifest.php", '<?php return ' . var_export($classes, true) . ";\n");
        foreach ($templates as $name => $source) {
            $this->way->write("$this->cache/templates/$name.php", $source);
        }
    }

    public function run(string $template, Site $site, array $data): void
    {
        require "$this->cache/templates/$template.php";
    }

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
}

/** The manifest and fragments are arrays, which Eyewall serialises in its default way. A template is source that PHP compiles for each page. */
final class KeptInVolume implements Kept
{
    private const SIZE = '16M';
    private readonly Eyewall\Cache $volume;

    public function __construct(string $cache)
    {
        $this->volume = new Eyewall\Cache("$cache/volume", ['size' => self::SIZE]);
    }

    public function manifest(): ?array
    {
        return $this->volume->get('manifest');
    }

    public function replace(array $classes, array $templates): void
    {
        foreach ($templates as $name => $source) {
            $this->volume->set("template/$name", $source);
        }
        $this->volume->set('manifest', $classes);
    }

    public function run(string $template, Site $site, array $data): void
    {
        eval('?>' . $this->volume->get("template/$template"));
    }

    public function fragment(string $name, callable $make): array
    {
        return $this->volume->fetchOrCompute("fragment/$name", $make);
    }
}

/** The store that the environment names. */
function kept(Way $way): Kept
{
    $cache = getenv('SITE_CACHE') ?: throw new RuntimeException('SITE_CACHE is not set');
    return getenv('SITE_STORE') === 'eyewall' ? new KeptInVolume($cache) : new KeptFiles($cache, $way);
}
