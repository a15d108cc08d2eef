<?php

declare(strict_types=1);

namespace Eyewall\WordPress;

/** A page of the administration: figures, and buttons to flush, to purge and to install the drop-in. */
final class StatusPage
{
    private const NAME = 'eyewall';
    private const BUTTONS = ['flush' => 'Flush the object cache', 'purge' => 'Purge all pages', 'install' => 'Install the drop-in', 'remove' => 'Remove the drop-in'];

    public static function hook(): void
    {
        add_action(is_multisite() ? 'network_admin_menu' : 'admin_menu', static function (): void {
            add_submenu_page(is_multisite() ? 'settings.php' : 'tools.php', 'Eyewall', 'Eyewall', self::capability(), self::NAME, [self::class, 'show']);
        });
        add_action('admin_post_' . self::NAME, [self::class, 'act']);
    }

    /** The volume belongs to all blogs, so that only the network's administrators may flush it. */
    public static function capability(): string
    {
        return is_multisite() ? 'manage_network_options' : 'manage_options';
    }

    public static function show(): void
    {
        // What the last button did. The text is escaped below, and nothing else depends on it.
        $said = isset($_GET['said']) ? sanitize_text_field(wp_unslash($_GET['said'])) : '';
        echo '<div class="wrap"><h1>Eyewall</h1>';
        $said === '' || printf('<div class="notice notice-info"><p>%s</p></div>', esc_html($said));
        echo '<table class="widefat striped" style="max-width: 60em"><tbody>';
        foreach (Status::lines() as $name => $value) {
            printf('<tr><th scope="row">%s</th><td>%s</td></tr>', esc_html($name), esc_html($value));
        }
        printf('</tbody></table><form method="post" action="%s"><input type="hidden" name="action" value="%s">', esc_url(admin_url('admin-post.php')), self::NAME);
        wp_nonce_field(self::NAME);
        echo '<p>';
        foreach (array_diff_key(self::BUTTONS, [DropIn::state() === DropIn::OURS ? 'install' : 'remove' => '']) as $do => $label) {
            printf('<button class="button" name="do" value="%s">%s</button> ', esc_attr($do), esc_html($label));
        }
        echo '</p></form></div>';
    }

    /** @internal A button was pressed. */
    public static function act(): void
    {
        if (!current_user_can(self::capability())) {
            wp_die('You may not change the cache of this site.', '', ['response' => 403]);
        }
        check_admin_referer(self::NAME);
        $said = self::done(isset($_POST['do']) ? sanitize_key($_POST['do']) : '');
        $page = is_multisite() ? network_admin_url('settings.php') : admin_url('tools.php');
        wp_safe_redirect(add_query_arg(['page' => self::NAME, 'said' => rawurlencode($said)], $page));
        exit;
    }

    private static function done(string $do): string
    {
        try {
            switch ($do) {
                case 'flush':
                    return Status::flush(false) ? 'The object cache is flushed.' : 'The object cache could not be flushed. The error log may say why.';
                case 'purge':
                    if (Pages::way() === '') {
                        return 'No server is known: define WP_EYEWALL_SERVER in wp-config.php.';
                    }
                    Changes::add(['site']);
                    return Changes::purge() ?: 'All pages are purged.';
                case 'install':
                    DropIn::install();
                    return 'The drop-in is installed.';
                case 'remove':
                    DropIn::remove();
                    return 'The drop-in is removed.';
            }
            return 'There is no such button.';
        } catch (\RuntimeException $error) {
            return $error->getMessage();
        }
    }
}
