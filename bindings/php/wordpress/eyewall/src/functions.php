<?php
// What themes and plugins call.
declare(strict_types=1);

use Eyewall\WordPress\Changes;
use Eyewall\WordPress\PageTags;

/**
 * Prints a part of a page, which is made once for all requests. The name has to say all that it depends on: the language, or the role.
 *
 * One request makes it, and the others wait. Its tags are also tags of the page; see PageTags.
 *
 * @param callable $print prints the part
 * @param list<string> $tags such as post-7 or posts
 */
function eyewall_fragment(string $name, callable $print, int $ttl = 3600, array $tags = []): void
{
    PageTags::add($tags);
    $make = static function () use ($print): string {
        ob_start();
        try {
            $print();
            return (string) ob_get_contents();
        } finally {
            ob_end_clean();
        }
    };
    $cache = $GLOBALS['wp_object_cache'] ?? null;
    if (!$cache instanceof Eyewall_Object_Cache || $cache->volume() === null) {
        echo $make();
        return;
    }
    $names = array_map(static fn (string $tag): string => $cache->site_name() . '/tag/' . PageTags::name($tag), [...$tags, 'site']);
    $made = null;
    $remembered = static function () use ($make, &$made): string {
        return $made = $make();
    };
    try {
        echo $cache->volume()->fetchOrCompute($cache->blog_name() . "/fragment/$name", $remembered, (float) $ttl, array_values(array_unique($names)));
    } catch (\Eyewall\Exception $failure) {
        // A volume that fails must not take the page from the visitor.
        echo $made ?? $make();
    }
}

/**
 * Purges pages and fragments with any of these tags, at the end of the request.
 *
 * @param list<string> $tags such as post-7; site: all
 */
function eyewall_purge(array $tags): void
{
    Changes::add($tags);
}
