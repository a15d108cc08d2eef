<?php
/**
 * Plugin Name: Eyewall
 * Description: An object cache that all PHP processes share, and purges of the pages that `eyewall serve` has stored.
 * Version: 0.1
 * Requires PHP: 8.1
 * Requires at least: 6.1
 * License: Apache-2.0
 *
 * Constants of wp-config.php, besides those of object-cache.php:
 *
 *   WP_EYEWALL_SERVER      the server with the pages: the administration's socket (/run/eyewall/admin.sock), or an address that accepts
 *                          PURGE (http://127.0.0.1:8080)
 *   WP_EYEWALL_TOKEN_FILE  the file of the token that PURGE needs
 *   WP_EYEWALL_PAGES       instead of a server: its volume, which the extension purges
 *   WP_EYEWALL_TIMEOUT     seconds that a purge waits for the server, 2 unless given
 *
 * @package eyewall
 */

declare(strict_types=1);

namespace Eyewall\WordPress;

defined('ABSPATH') || exit;

require_once __DIR__ . '/src/DropIn.php';
require_once __DIR__ . '/src/Pages.php';
require_once __DIR__ . '/src/PageTags.php';
require_once __DIR__ . '/src/Changes.php';
require_once __DIR__ . '/src/Status.php';
require_once __DIR__ . '/src/StatusPage.php';
require_once __DIR__ . '/src/functions.php';

PageTags::hook();
Changes::hook();
StatusPage::hook();
// The file is that of all blogs: the administrator of one may not take it from the others.
register_deactivation_hook(__FILE__, static function ($network = false): void {
    (!is_multisite() || $network) && DropIn::state() === DropIn::OURS && DropIn::remove();
});
if (defined('WP_CLI') && \WP_CLI) {
    require_once __DIR__ . '/src/Commands.php';
    \WP_CLI::add_command('eyewall', Commands::class);
}
