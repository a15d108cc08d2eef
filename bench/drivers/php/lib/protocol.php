<?php
// Lines of JSON for the suite, and messages for people (bench/drivers/README.md).
declare(strict_types=1);

/** One line of the answer. */
function answer(array $line): void
{
    echo json_encode($line, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION), "\n";
}

/** Ends the driver, since the request is wrong. */
function refuse(string $words): never
{
    fwrite(STDERR, "modules.php: $words\n");
    exit(2);
}

/** A signal ends the driver by an exit, so that it removes what it made. A second signal doesn't interrupt that. */
function end_by_signals(): void
{
    pcntl_async_signals(true);
    $signals = [SIGTERM, SIGINT, SIGHUP];
    foreach ($signals as $signal) {
        pcntl_signal($signal, function (int $got) use ($signals): never {
            array_map(fn (int $number) => pcntl_signal($number, SIG_IGN), $signals);
            exit(128 + $got);
        });
    }
}

/** A directory for this driver, which is removed at the end. */
final class Scratch
{
    public readonly string $path;

    public function __construct(string $parent)
    {
        $this->path = "$parent/modules-" . bin2hex(random_bytes(4));
        mkdir($this->path, 0700) || throw new RuntimeException("$this->path can't be made");
        register_shutdown_function($this->remove(...));
    }

    public function remove(): void
    {
        if (!is_dir($this->path)) {
            return;
        }
        $inside = new RecursiveDirectoryIterator($this->path, FilesystemIterator::SKIP_DOTS);
        foreach (new RecursiveIteratorIterator($inside, RecursiveIteratorIterator::CHILD_FIRST) as $entry) {
            $entry->isDir() ? rmdir($entry->getPathname()) : unlink($entry->getPathname());
        }
        rmdir($this->path);
    }
}
