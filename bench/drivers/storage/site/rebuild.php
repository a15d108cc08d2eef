<?php
// Builds the cache of the generated site anew, so many times, in a way; prints the nanoseconds of each.
declare(strict_types=1);

require __DIR__ . '/framework.php';

[, $way, $runs] = $argv;
$site = new Site(__DIR__, kept(Way::from($way)));
for ($run = 0; $run < (int) $runs; $run++) {
    $start = hrtime(true);
    $site->rebuild();
    echo hrtime(true) - $start, "\n";
}
