<?php
// Builds the cache of the generated site anew, so many times, in a way; prints the nanoseconds of each.
declare(strict_types=1);

require __DIR__ . '/framework.php';

[, $way, $runs] = $argv;
$site = new Site(__DIR__, getenv('SITE_CACHE') ?: throw new RuntimeException('SITE_CACHE is not set'));
for ($run = 0; $run < (int) $runs; $run++) {
    $start = hrtime(true);
    $site->rebuild(Way::from($way));
    echo hrtime(true) - $start, "\n";
}
