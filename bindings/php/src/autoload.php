<?php
// For projects without Composer: require this file, and Eyewall's classes are found when they are used.
declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Eyewall\\')) {
        $file = __DIR__ . '/' . strtr(substr($class, strlen('Eyewall\\')), '\\', '/') . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});
