<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** The file wp-content/object-cache.php, which WordPress loads in place of its own object cache. */
final class DropIn
{
    public const ABSENT = 'absent';
    public const OURS = 'installed';
    public const OUTDATED = 'of another version';
    public const FOREIGN = 'of another plugin';

    private const SOURCE = __DIR__ . '/../object-cache.php';

    public static function state(): string
    {
        $file = self::file();
        if (!is_file($file)) {
            return self::ABSENT;
        }
        $text = (string) file_get_contents($file);
        if ($text === file_get_contents(self::SOURCE)) {
            return self::OURS;
        }
        return str_contains($text, 'class Eyewall_Object_Cache') ? self::OUTDATED : self::FOREIGN;
    }

    /** @throws \RuntimeException with what to do */
    public static function install(): void
    {
        self::refuse_others();
        require_once self::SOURCE;
        if (\Eyewall_Object_Cache::open() === null) {
            throw new \RuntimeException(\Eyewall_Object_Cache::fault());
        }
        // What the volume has is older than all that changed while the file was away.
        if (!(new \Eyewall_Object_Cache())->flush()) {
            throw new \RuntimeException('The volume can\'t be flushed, so that its values may be old. Remove its file ' . \Eyewall_Object_Cache::path() . ', and try again.');
        }
        // Requests that run meanwhile load either file as a whole.
        $new = self::file() . '.new';
        if (!@copy(self::SOURCE, $new) || !@rename($new, self::file())) {
            @unlink($new);
            throw new \RuntimeException('PHP can\'t write ' . self::file() . '. Copy ' . realpath(self::SOURCE) . ' to that place.');
        }
        self::forget_code();
    }

    /** @throws \RuntimeException with what to do */
    public static function remove(): void
    {
        self::refuse_others();
        if (self::state() !== self::ABSENT && !@unlink(self::file())) {
            throw new \RuntimeException('PHP can\'t remove ' . self::file() . '. Remove it by hand.');
        }
        self::forget_code();
    }

    public static function file(): string
    {
        return WP_CONTENT_DIR . '/object-cache.php';
    }

    private static function refuse_others(): void
    {
        if (self::state() === self::FOREIGN) {
            throw new \RuntimeException(self::file() . ' belongs to another plugin. Deactivate its object cache first.');
        }
        if (!wp_is_file_mod_allowed('eyewall')) {
            throw new \RuntimeException('DISALLOW_FILE_MODS forbids to change ' . self::file() . '. Copy or remove the file by hand.');
        }
    }

    private static function forget_code(): void
    {
        if (function_exists('opcache_invalidate')) {
            @opcache_invalidate(self::file(), true);
        }
    }
}
