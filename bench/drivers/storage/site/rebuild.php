<?php
// Builds the cache of the generated site again, so many times, in one of the ways. Prints the nanoseconds of each time.
declare(strict_types=1);

require __DIR__ . '/framework.php';

[, $way, $runs] = $argv;
$site = new Site(__DIR__, kept(Way::from($way)));
for ($run = 0; $run < (int) $runs; $run++) {
    $start = hrtime(true);
    $site->rebuild();
    echo hrtime(true) - $start, "\n";
}
