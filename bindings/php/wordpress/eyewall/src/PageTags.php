<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/**
 * The tags of the page that this request makes, which go out as Surrogate-Key.
 *
 *   site        every page
 *   post-ID     a page that shows this post, or its title
 *   posts       a page that lists posts
 *   comments    a page that lists comments of several posts
 *   none        a page that says that there is nothing
 *
 * On a multisite, each begins with the blog: b2-post-7. The page is buffered, since its tags are known at its end.
 */
final class PageTags
{
    /** @var array<string, true> by tag */
    private static array $tags = ['site' => true];

    public static function hook(): void
    {
        add_action('template_redirect', [self::class, 'start'], -1000);
        add_filter('the_posts', [self::class, 'posts']);
        add_action('the_post', static fn ($post) => self::posts([$post]));
        add_filter('the_title', static function ($title, $id = 0) {
            (int) $id > 0 && self::add(["post-$id"]);
            return $title;
        }, 10, 2);
        // Also queries whose results no filter sees.
        add_action('pre_get_posts', static fn ($query) => $query->is_singular() || Changes::isPartOfPages($query->get('post_type')) || self::add(['posts']));
        add_action('pre_get_comments', static fn ($query) => empty($query->query_vars['post_id']) && self::add(['comments']));
        foreach (['get_previous_post_where', 'get_next_post_where'] as $neighbour) {
            add_filter($neighbour, static function ($where) {
                self::add(['posts']);
                return $where;
            });
        }
    }

    /** @param list<string> $tags */
    public static function add(array $tags): void
    {
        self::$tags += array_fill_keys($tags, true);
    }

    /** @internal */
    public static function posts(array $posts): array
    {
        foreach ($posts as $post) {
            $post instanceof \WP_Post && !Changes::isPartOfPages($post->post_type) && self::add(["post-$post->ID"]);
        }
        return $posts;
    }

    /** @internal */
    public static function start(): void
    {
        is_404() && self::add(['none']);
        ob_start([self::class, 'send']);
    }

    /** @internal Called with the page, before its head goes out. */
    public static function send(string $page): string
    {
        if (!headers_sent()) {
            header('Surrogate-Key: ' . implode(' ', array_map([self::class, 'name'], array_keys(self::$tags))));
        }
        return $page;
    }

    /** A tag as pages and purges of the present blog have it. */
    public static function name(string $tag): string
    {
        $clean = (string) preg_replace('/[^A-Za-z0-9._-]+/', '-', $tag);
        // A tag has at most 255 bytes, with the name of the site before it.
        $clean = strlen($clean) <= 128 ? $clean : substr($clean, 0, 90) . '-' . md5($tag);
        return is_multisite() ? 'b' . get_current_blog_id() . '-' . $clean : $clean;
    }
}
