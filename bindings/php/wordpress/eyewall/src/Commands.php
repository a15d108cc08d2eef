<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** Shows and flushes the object cache, and purges pages. */
final class Commands
{
    /** Shows the state, the size and the hit ratio. */
    public function status(array $arguments = [], array $options = []): void
    {
        foreach (Status::lines() as $name => $value) {
            \WP_CLI::line("$name: $value");
        }
    }

    /**
     * Flushes the object cache of this WordPress.
     *
     * ## OPTIONS
     *
     * [--blog]
     * : Only the present blog of a multisite, which --url names.
     */
    public function flush(array $arguments = [], array $options = []): void
    {
        Status::flush(isset($options['blog'])) ? \WP_CLI::success('The object cache is flushed.') : \WP_CLI::error('The object cache could not be flushed.');
    }

    /**
     * Purges pages and fragments by tags.
     *
     * ## OPTIONS
     *
     * [<tag>...]
     * : Tags, such as post-7, posts or comments.
     *
     * [--post=<id>]
     * : Pages that show this post.
     *
     * [--all]
     * : All pages of the present blog.
     */
    public function purge(array $arguments = [], array $options = []): void
    {
        isset($options['post']) && $arguments[] = 'post-' . (int) $options['post'];
        isset($options['all']) && $arguments[] = 'site';
        if ($arguments === []) {
            \WP_CLI::error('Name tags, or give --post or --all.');
            return;
        }
        if (Pages::way() === '') {
            \WP_CLI::error('No server is known: define WP_EYEWALL_SERVER in wp-config.php.');
            return;
        }
        Changes::add(array_values($arguments));
        $fault = Changes::purge();
        $fault === '' ? \WP_CLI::success('The pages are purged.') : \WP_CLI::error($fault);
    }

    /** Installs the drop-in wp-content/object-cache.php. */
    public function enable(array $arguments = [], array $options = []): void
    {
        $this->tried(static fn () => DropIn::install(), 'The drop-in is installed.');
    }

    /** Removes the drop-in. */
    public function disable(array $arguments = [], array $options = []): void
    {
        $this->tried(static fn () => DropIn::remove(), 'The drop-in is removed.');
    }

    private function tried(\Closure $work, string $done): void
    {
        try {
            $work();
        } catch (\RuntimeException $error) {
            \WP_CLI::error($error->getMessage());
            return;
        }
        \WP_CLI::success($done);
    }
}
