<?php
// The router of PHP's own web server: files are served as they are, all else is WordPress's, as its rewrite rules have it.
$path = rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH));
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if (is_dir($file) && is_file(rtrim($file, '/') . '/index.php') && $path !== '/') {
    // Without its slash, the folder's relative addresses would lead elsewhere.
    if (!str_ends_with($path, '/')) {
        header("Location: $path/", true, 301);
        return true;
    }
    return false;
}
if (is_file($file)) {
    return false;
}
$_SERVER['SCRIPT_NAME'] = '/index.php';
$_SERVER['PHP_SELF'] = '/index.php';
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
