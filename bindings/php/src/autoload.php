<?php
// For projects without Composer: require this file, and PHP loads Eyewall's classes on their first use.
declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Eyewall\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('Eyewall\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
