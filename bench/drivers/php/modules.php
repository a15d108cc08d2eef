<?php
// The procedure `modules` on the stores of PHP; bench/drivers/README.md describes the protocol and the procedure.
declare(strict_types=1);

require __DIR__ . '/lib/protocol.php';
require __DIR__ . '/lib/values.php';
require __DIR__ . '/lib/stores.php';
require __DIR__ . '/lib/memcached.php';
require __DIR__ . '/lib/work.php';
require __DIR__ . '/lib/request.php';

function list_stores(): void
{
    foreach (stores() as $name => $store) {
        $absent = $store->absent();
        answer($absent !== null
            ? ['store' => $name, 'absent' => $absent]
            : ['store' => $name, 'kind' => $store->kind(), 'version' => $store->version()]);
    }
}

function measure(array $request): void
{
    foreach ($request['stores'] as $name) {
        $store = stores()[$name];
        $absent = $store->absent();
        if ($absent !== null) {
            answer(['store' => $name, 'absent' => $absent]);
            continue;
        }
        if (!$store->fits($request)) {
            continue;
        }
        start_again_with($store->ini($request), $name, $request);
        foreach ($request['repetitions'] as $repetition) {
            measure_once($name, $store, $request, $repetition);
        }
    }
}

function measure_once(string $name, Store $store, array $request, int $repetition): void
{
    $folder = new Scratch($request['folder']);
    try {
        $store->open($request, $folder->path);
        $figures = figures($store, new Values($request), $request);
    } catch (Throwable $failure) {
        answer(['note' => "$name: " . preg_replace('/\s+/', ' ', $failure->getMessage())]);
        return;
    } finally {
        $store->close();
        $folder->remove();
    }
    foreach ($figures as $measure => $value) {
        answer(['sample' => ['store' => $name, 'measure' => $measure, 'repetition' => $repetition, 'value' => $value]]);
    }
}

/**
 * Settings that PHP reads only at its start: if a store needs other ones, this program becomes a PHP that has them, for this store
 * alone. The other stores get a process of their own.
 */
function start_again_with(array $ini, string $name, array $request): void
{
    $others = array_filter($ini, fn ($value, $setting) => ini_get($setting) !== $value, ARRAY_FILTER_USE_BOTH);
    if ($others === []) {
        return;
    }
    if (isset($request['is_started_again'])) {
        refuse('PHP did not take the settings ' . implode(', ', array_keys($others)));
    }
    if (count($request['stores']) > 1) {
        refuse("$name is measured alone, since PHP has to be started for it; ask for it in a request of its own");
    }
    $options = [];
    foreach ($ini as $setting => $value) {
        array_push($options, '-d', "$setting=$value");
    }
    unset($request['folder'], $request['size'], $request['configuration']);
    pcntl_exec(PHP_BINARY, [...$options, __FILE__, json_encode(['is_started_again' => true] + $request)]);
    refuse("PHP could not be started again for $name: " . pcntl_strerror(pcntl_get_last_error()));
}

end_by_signals();
// A restarted program can't read the standard input again.
$request = read_request($argv[1] ?? stream_get_contents(STDIN));
match ($request['do']) {
    'list' => list_stores(),
    'measure' => measure($request),
    'vectors' => answer(['vectors' => (new Values($request))->vectors()]),
};
