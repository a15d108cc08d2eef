<?php
// Which pages have been made, for those who count them.
add_action('template_redirect', function () {
    file_put_contents(getenv('SITES_MADE'), $_SERVER['REQUEST_URI'] . "\n", FILE_APPEND | LOCK_EX);
}, 0);
// What some plugin or other does to a page: it sets a cookie, although all who ask get the same.
add_action('template_redirect', function () {
    if (is_single(getenv('SITES_SETS_COOKIE'))) {
        setcookie('visit', getenv('SITES_VISIT_MARK') . bin2hex(random_bytes(8)), 0, '/');
    }
});
// All visitors come from one address here, and comment one soon after the other.
add_filter('comment_flood_filter', '__return_false');
add_filter('wp_is_comment_flood', '__return_false');
// Nobody is told by mail.
add_filter('pre_wp_mail', '__return_true');
