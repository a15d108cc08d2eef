<?php
// Installs WordPress, run from its folder: reads a JSON object with users and posts, writes one with the posts' numbers.
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$database = new mysqli('localhost', 'root', '', '', 0, getenv('SITES_DATABASE'));
$database->query('CREATE DATABASE wordpress CHARACTER SET utf8mb4');

$_SERVER['HTTP_HOST'] = $_SERVER['SERVER_NAME'] = getenv('SITES_HOST');
$_SERVER['REQUEST_METHOD'] = 'GET';
$_SERVER['REQUEST_URI'] = '/';
$_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
define('WP_INSTALLING', true);
$wanted = json_decode(stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
require './wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

$editor = $wanted['editor'];
$installed = wp_install($wanted['title'], $editor['login'], $editor['mail'], true, '', $editor['password']);
wp_update_user(['ID' => $installed['user_id'], 'display_name' => $editor['name'], 'nickname' => $editor['name']]);

update_option('permalink_structure', '/%postname%/');
// Pictures of commenters would come from elsewhere.
update_option('show_avatars', '0');
// A comment is seen at once, its address of origin notwithstanding, and two may follow each other.
update_option('comment_moderation', '0');
update_option('comment_previously_approved', '0');
update_option('require_name_email', '1');

foreach ($wanted['users'] as $user) {
    $number = wp_insert_user([
        'user_login' => $user['login'], 'user_pass' => $user['password'], 'user_email' => $user['mail'],
        'display_name' => $user['name'], 'nickname' => $user['name'], 'role' => 'author',
    ]);
    is_wp_error($number) && exit($number->get_error_message());
}
$numbers = [];
foreach ($wanted['posts'] as $index => $post) {
    $number = wp_insert_post([
        'post_author' => $installed['user_id'], 'post_name' => $post['name'], 'post_title' => $post['title'],
        'post_content' => $post['content'], 'post_status' => $post['status'], 'post_password' => $post['password'],
        'comment_status' => 'open',
        // Each is younger than the one before, so that their order is the same on each page.
        'post_date' => gmdate('Y-m-d H:i:s', time() - 60 * (count($wanted['posts']) - $index)),
    ], true);
    is_wp_error($number) && exit($number->get_error_message());
    $numbers[$post['name']] = $number;
}
flush_rewrite_rules();
echo json_encode($numbers), "\n";
