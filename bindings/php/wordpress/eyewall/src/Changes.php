<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** Purges pages and fragments when what they show has changed. All changes of a request are one purge, at its end. */
final class Changes
{
    /** Types whose posts are parts of every page. */
    private const EVERYWHERE = ['wp_template', 'wp_template_part', 'wp_global_styles', 'wp_navigation', 'wp_block', 'nav_menu_item', 'custom_css'];
    /** Options that pages show, or that say what they show; also those that begin so. */
    private const OPTIONS = '/^(blogname|blogdescription|blog_public|permalink_structure|category_base|tag_base|show_on_front|page_on_front|page_for_posts|posts_per_page'
        . '|date_format|time_format|timezone_string|gmt_offset|start_of_week|WPLANG|site_icon|sticky_posts|sidebars_widgets|active_plugins|stylesheet|template'
        . '|thread_comments|comments_per_page|page_comments|comment_order|show_avatars|widget_.*|theme_mods_.*)$/';
    /** A request that changes more than this many things changes the site. */
    private const TAGS_MAX = 100;

    /** @var array<string, array<string, true>> tags by host */
    private static array $pending = [];

    public static function hook(): void
    {
        add_action('transition_post_status', [self::class, 'status'], 10, 3);
        add_action('post_updated', [self::class, 'updated'], 10, 3);
        add_action('deleted_post', static fn ($id, $post = null) => $post instanceof \WP_Post && self::status('deleted', $post->post_status, $post), 10, 2);
        // Plugins call this after changes that no other hook reports.
        add_action('clean_post_cache', static fn ($id, $post = null) => $post instanceof \WP_Post && self::isShown($post->post_status) && self::isPublic($post) && self::add(["post-$post->ID"]), 10, 2);
        add_action('set_object_terms', [self::class, 'terms'], 10, 1);
        foreach (['wp_update_comment_count' => 'self', 'edit_comment' => 'comment'] as $hook => $of) {
            add_action($hook, static function ($id) use ($of): void {
                $post = $of === 'self' ? $id : (get_comment($id)->comment_post_ID ?? 0);
                self::add(['comments', "post-$post"]);
            });
        }
        $site = static fn () => self::add(['site']);
        foreach (['switch_theme', 'customize_save_after', 'wp_update_nav_menu', 'edited_term', 'delete_term', 'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete'] as $hook) {
            add_action($hook, $site, 10, 0);
        }
        foreach (['updated_option', 'added_option', 'deleted_option'] as $hook) {
            add_action($hook, static fn ($option) => preg_match(self::OPTIONS, (string) $option) && self::add(['site']));
        }
        // Pages show the names of authors, and not of other users.
        foreach (['profile_update', 'delete_user'] as $hook) {
            add_action($hook, static fn ($user) => (int) count_user_posts((int) $user, get_post_types(['public' => true])) > 0 && self::add(['site']));
        }
    }

    /**
     * Purges at the end of the request.
     *
     * @param list<string> $tags of the present blog
     */
    public static function add(array $tags): void
    {
        if (self::$pending === []) {
            // Before WordPress sends the buffered response: once the client has it, no cache still serves the old page.
            add_action('shutdown', [self::class, 'purge'], 0);
        }
        $tags = (array) apply_filters('eyewall_purge_tags', $tags);
        $host = (string) wp_parse_url(home_url(), PHP_URL_HOST);
        self::$pending[$host] = (self::$pending[$host] ?? []) + array_fill_keys(array_map([PageTags::class, 'name'], array_values($tags)), true);
        if (count(self::$pending[$host]) > self::TAGS_MAX) {
            self::$pending[$host] = [PageTags::name('site') => true];
        }
    }

    /** Purges now. Returns why it failed; empty: it didn't. */
    public static function purge(): string
    {
        [$pending, self::$pending] = [self::$pending, []];
        $fault = '';
        foreach ($pending as $host => $tags) {
            self::purge_fragments(array_keys($tags));
            $fault = Pages::purge($host, array_keys($tags)) ?: $fault;
        }
        return $fault;
    }

    /** @internal */
    public static function status(string $new, string $old, \WP_Post $post): void
    {
        if (!self::isShown($new) && !self::isShown($old)) {
            return;
        }
        if (self::isPartOfPages($post->post_type)) {
            self::add(['site']);
        } elseif (self::isPublic($post)) {
            self::add(["post-$post->ID"]);
            // It appears in lists, or disappears; and its address, which had nothing, now has it.
            $new === $old || self::add(is_post_type_hierarchical($post->post_type) ? ['site'] : ['posts', 'none']);
        }
    }

    /** @internal What lists and menus show, or how they are sorted. */
    public static function updated($id, \WP_Post $after, \WP_Post $before): void
    {
        if (!self::isShown($after->post_status) || !self::isPublic($after)) {
            return;
        }
        foreach (['post_title', 'post_name', 'post_parent', 'post_date', 'post_author', 'menu_order', 'post_password'] as $property) {
            if ($after->$property != $before->$property) {
                self::add(is_post_type_hierarchical($after->post_type) ? ['site'] : ['posts', 'none']);
                return;
            }
        }
    }

    /** @internal */
    public static function terms($id): void
    {
        $post = get_post((int) $id);
        if ($post instanceof \WP_Post && self::isShown($post->post_status) && self::isPublic($post)) {
            self::add(["post-$post->ID", 'posts']);
        }
    }

    /** @internal Whether posts of this type are templates and menus, whose changes purge the site. */
    public static function isPartOfPages(mixed $type): bool
    {
        $types = array_filter((array) $type);
        return $types !== [] && array_diff($types, self::EVERYWHERE) === [];
    }

    private static function isShown(string $status): bool
    {
        return $status === 'publish' || $status === 'inherit';
    }

    private static function isPublic(\WP_Post $post): bool
    {
        return is_post_type_viewable($post->post_type);
    }

    /** @param list<string> $tags with the blog */
    private static function purge_fragments(array $tags): void
    {
        $cache = $GLOBALS['wp_object_cache'] ?? null;
        if ($cache instanceof \Eyewall_Object_Cache && $cache->volume() !== null) {
            try {
                $cache->volume()->purgeTags(array_map(static fn (string $tag): string => $cache->site_name() . "/tag/$tag", $tags));
            } catch (\Throwable) {
                // They expire. The object cache's own notice reports a volume that has failed.
            }
        }
    }
}
