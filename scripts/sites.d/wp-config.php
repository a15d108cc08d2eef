<?php
// How the WordPress of this test finds its database; what differs from run to run is in the environment.
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . getenv('SITES_DATABASE'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define("{$name}_KEY", hash('sha256', "$name key" . getenv('SITES_SECRET')));
    define("{$name}_SALT", hash('sha256', "$name salt" . getenv('SITES_SECRET')));
}
define('WP_HOME', 'http://' . getenv('SITES_HOST'));
define('WP_SITEURL', WP_HOME);
// Nothing happens but what is asked for, and nothing outside is asked.
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_DEBUG', true);
define('WP_DEBUG_DISPLAY', false);
define('WP_DEBUG_LOG', false);
// With the extension for PHP, the administrator may install the plugin.
if (getenv('SITES_OBJECTS')) {
    define('WP_EYEWALL_PATH', getenv('SITES_OBJECTS'));
    define('WP_EYEWALL_SIZE', '16M');
    define('WP_EYEWALL_SERVER', getenv('SITES_ADMIN'));
    define('WP_EYEWALL_TIMEOUT', 60);
}
$table_prefix = 'wp_';
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
