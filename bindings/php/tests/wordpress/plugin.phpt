--TEST--
WordPress: the plugin finds the tags of changes, purges pages and fragments by them, and installs the drop-in
--EXTENSIONS--
eyewall
posix
--FILE--
<?php
require __DIR__ . '/../helpers.inc';
require __DIR__ . '/site.inc';

use Eyewall\WordPress\Changes;
use Eyewall\WordPress\Commands;
use Eyewall\WordPress\DropIn;
use Eyewall\WordPress\Pages;
use Eyewall\WordPress\PageTags;

define('ABSPATH', folder() . '/');
define('WP_CONTENT_DIR', folder());
define('WP_EYEWALL_PATH', folder() . '/objects');
const WP_EYEWALL_SIZE = '4M';
const WP_CLI = true;
require __DIR__ . '/../../wordpress/eyewall/object-cache.php';
wp_cache_init();
require __DIR__ . '/../../wordpress/eyewall/eyewall.php';
$command = new WP_CLI::$commands['eyewall']();
$pages = volume([], 'pages');

/** What a command says. */
function said(callable $work): array
{
    $GLOBALS['said'] = [];
    $work();
    return $GLOBALS['said'];
}

// Nothing is known of a server: changes purge fragments only, and whoever asks for more is told.
same('', Pages::way());
same(['Error: No server is known: define WP_EYEWALL_SERVER in wp-config.php.'], said(fn () => $command->purge([], ['all' => true])));
do_action('switch_theme');
do_action('shutdown');
same('', Pages::fault());

// The volume of the pages.
define('WP_EYEWALL_PAGES', folder() . '/pages');
/** Which of these pages a change purges: each has one tag, except the last, which has too many. */
function purged(callable $change): string
{
    global $pages;
    $tags = ['site', 'post-7', 'post-8', 'posts', 'comments', 'none', '*'];
    foreach ($tags as $tag) {
        $pages->set($tag, 1, null, ["example.org:$tag"]);
        $pages->set("other $tag", 1, null, ["example.com:$tag"]);
    }
    $change();
    do_action('shutdown');
    same(count($tags), count(array_filter($tags, fn ($tag) => $pages->has("other $tag"))), 'another site is purged');
    return implode(' ', array_filter($tags, fn ($tag) => !$pages->has($tag)));
}
$post = new WP_Post(7);
$with = function (string $name, mixed $value, string $type = 'post'): WP_Post {
    $post = new WP_Post(7, $type);
    $post->$name = $value;
    return $post;
};
same('', purged(fn () => null));
same('post-7 *', purged(fn () => do_action('transition_post_status', 'publish', 'publish', $post)));
same('post-7 posts none *', purged(fn () => do_action('transition_post_status', 'publish', 'draft', $post)));
same('post-7 posts none *', purged(fn () => do_action('transition_post_status', 'trash', 'publish', $post)));
same('post-7 posts none *', purged(fn () => do_action('deleted_post', 7, $post)));
same('site post-7 *', purged(fn () => do_action('transition_post_status', 'publish', 'draft', new WP_Post(7, 'page'))));
same('site *', purged(fn () => do_action('transition_post_status', 'publish', 'publish', new WP_Post(7, 'wp_template_part'))));
foreach ([['draft', 'draft', 'post'], ['private', 'draft', 'post'], ['publish', 'publish', 'shop_order']] as [$new, $old, $type]) {
    same('', purged(fn () => do_action('transition_post_status', $new, $old, new WP_Post(7, $type))), "$new $type");
}
same('', purged(fn () => do_action('post_updated', 7, $with('post_content', 'new'), $post)));
same('posts none *', purged(fn () => do_action('post_updated', 7, $with('post_title', 'New'), $post)));
same('site *', purged(fn () => do_action('post_updated', 7, $with('post_title', 'New', 'page'), $post)));
same('', purged(fn () => do_action('post_updated', 7, $with('post_status', 'draft'), $post)));
same('post-7 *', purged(fn () => do_action('clean_post_cache', 7, $post)));
same('', purged(fn () => do_action('clean_post_cache', 7, new WP_Post(7, 'revision', 'inherit'))));
same('post-8 posts *', purged(fn () => do_action('set_object_terms', 8)));
same('', purged(fn () => do_action('set_object_terms', 100)));
same('post-8 comments *', purged(fn () => do_action('wp_update_comment_count', 8)));
same('post-7 comments *', purged(fn () => do_action('edit_comment', 1)));
same('site *', purged(fn () => do_action('updated_option', 'widget_block')));
same('', purged(fn () => do_action('updated_option', 'cron')));
same(['site *', ''], [purged(fn () => do_action('profile_update', 1)), purged(fn () => do_action('profile_update', 2))]);
// One purge for many changes; beyond a hundred, the site.
same('site *', purged(fn () => array_map(fn ($id) => do_action('set_object_terms', $id), range(1, 99)) && Changes::add(['one', 'more'])));
add_filter('eyewall_purge_tags', fn ($tags) => in_array('extra', $tags, true) ? ['post-7', 'post-8'] : $tags);
same('post-7 post-8 *', purged(fn () => eyewall_purge(['extra'])));
same('post-7 posts *', purged(fn () => same(['Success: The pages are purged.'], said(fn () => $command->purge(['posts'], ['post' => '7'])))));
same(['Error: Name tags, or give --post or --all.'], said(fn () => $command->purge()));

// The tags of a page, as they go out.
same('<p>', PageTags::send('<p>'));
PageTags::add(['with blanks, and: more']);
same(['a-b.c_d', 'with-blanks-and-more'], [PageTags::name('a-b.c_d'), PageTags::name('with blanks, and: more')]);
same([123, true], [strlen(PageTags::name(str_repeat('a', 300))), PageTags::name(str_repeat('a', 300)) !== PageTags::name(str_repeat('a', 301))]);

// Fragments are made once, until they are purged.
$made = 0;
$fragment = function (array $tags = ['post-8']) use (&$made): string {
    ob_start();
    eyewall_fragment('menu', function () use (&$made): void { echo 'made ', ++$made; }, 3600, $tags);
    return ob_get_clean();
};
same(['made 1', 'made 1'], [$fragment(), $fragment()]);
same(false, wp_cache_get('menu', '/fragment'));
purged(fn () => eyewall_purge(['post-7']));
same('made 1', $fragment());
purged(fn () => eyewall_purge(['post-8']));
same('made 2', $fragment());
purged(fn () => eyewall_purge(['site']));
same('made 3', $fragment());
wp_cache_flush();
same('made 4', $fragment());
$level = ob_get_level();
same('RuntimeException 0: broken', thrown(fn () => eyewall_fragment('broken', function (): void { echo 'half'; throw new RuntimeException('broken'); })));
same($level, ob_get_level());
$cache = $GLOBALS['wp_object_cache'];
$GLOBALS['wp_object_cache'] = null;
same('made 5', $fragment());
$GLOBALS['wp_object_cache'] = $cache;
// A fragment that the volume refuses, here for its name, is shown.
ob_start();
eyewall_fragment(str_repeat('long', 20000), function (): void { echo 'shown'; });
same('shown', ob_get_clean());

// The drop-in.
$file = folder() . '/object-cache.php';
same(DropIn::ABSENT, DropIn::state());
wp_cache_set('old', 1);
same(['Success: The drop-in is installed.'], said(fn () => $command->enable()));
same(DropIn::OURS, DropIn::state());
same(false, wp_cache_get('old', '', true), 'what changed before it was installed may be old');
$lines = said(fn () => $command->status());
same(['Drop-in: installed', 'Object cache: in the volume ' . WP_EYEWALL_PATH], array_slice($lines, 0, 2));
check(str_starts_with($lines[2], 'Size: 4194304 B, of which ') && str_starts_with($lines[3], 'Entries: ') && str_contains($lines[4], ' % of '), implode('|', $lines));
same('Pages: purged in the volume ' . WP_EYEWALL_PAGES, $lines[5]);
file_put_contents($file, '<?php class Eyewall_Object_Cache {} // of a former version');
same(DropIn::OUTDATED, DropIn::state());
same(['Success: The drop-in is removed.'], said(fn () => $command->disable()));
same(DropIn::ABSENT, DropIn::state());
file_put_contents($file, '<?php // of another plugin');
foreach (['enable', 'disable'] as $name) {
    same(["Error: $file belongs to another plugin. Deactivate its object cache first."], said(fn () => $command->$name()));
}
do_action('deactivated');
same(DropIn::FOREIGN, DropIn::state());
unlink($file);
$GLOBALS['may change files'] = false;
same(["Error: DISALLOW_FILE_MODS forbids to change $file. Copy or remove the file by hand."], said(fn () => $command->enable()));
$GLOBALS['may change files'] = true;
mkdir($file . '.new');
same(["Error: PHP can't write $file. Copy " . realpath(__DIR__ . '/../../wordpress/eyewall/object-cache.php') . ' to that place.'], said(fn () => $command->enable()));
rmdir($file . '.new');
DropIn::install();
do_action('deactivated');
same(DropIn::ABSENT, DropIn::state());

wp_cache_set('kept', 1);
same(['Success: The object cache is flushed.'], said(fn () => $command->flush([], ['blog' => true])));
same(false, wp_cache_get('kept'));

// The volume of the pages is gone: the status says so, until a purge succeeds.
rename(WP_EYEWALL_PAGES, WP_EYEWALL_PAGES . '.away');
unset($pages);
eyewall_purge(['post-7']);
do_action('shutdown');
check(str_contains(Pages::fault(), 'UTC: Pages can\'t be purged in the volume ' . WP_EYEWALL_PAGES . ': '), Pages::fault());
rename(WP_EYEWALL_PAGES . '.away', WP_EYEWALL_PAGES);
eyewall_purge(['post-7']);
do_action('shutdown');
same('', Pages::fault());
echo "done\n";
--EXPECT--
done
