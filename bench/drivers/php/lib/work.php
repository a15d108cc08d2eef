<?php
// The work on a store, and its time.
declare(strict_types=1);

const CHECKED = 64;

/** The figures of one repetition, by measure. */
function figures(Store $store, Values $data, array $request): array
{
    ['keys' => $count, 'rounds' => $rounds, 'seconds' => $limit] = $request['settings'];
    [$keys, $values] = [$data->keys(), $data->values()];

    $sequence = again(range(0, $count - 1), $rounds);
    [$done, $seconds] = timed(count($sequence), $limit, function (int $from, int $to) use ($store, $keys, $values, $sequence) {
        for ($at = $from; $at < $to; $at++) {
            $index = $sequence[$at];
            $store->set($keys[$index], $values[$index & 255]);
        }
    });
    $stored = min($done, $count);
    $figures = ['set' => $done / $seconds, 'stored' => $stored];

    [$sequence, $hits] = [again($data->gets($stored), $rounds), 0];
    [$done, $seconds] = timed(count($sequence), $limit, function (int $from, int $to) use ($store, $keys, $sequence, &$hits) {
        for ($at = $from; $at < $to; $at++) {
            if ($store->get($keys[$sequence[$at]]) !== null) {
                $hits++;
            }
        }
    });
    $figures += ['get' => $done / $seconds, 'get_hits' => 100 * $hits / $done];
    check($store, $keys, $values, $sequence, $stored);

    [$sequence, $hits, $gets] = [again($data->mix($stored), $rounds), 0, 0];
    [$done, $seconds] = timed(count($sequence), $limit, function (int $from, int $to) use ($store, $keys, $values, $sequence, &$hits, &$gets) {
        for ($at = $from; $at < $to; $at++) {
            $index = $sequence[$at];
            if ($index < 0) {
                $store->set($keys[-1 - $index], $values[(-1 - $index) & 255]);
                continue;
            }
            $gets++;
            if ($store->get($keys[$index]) !== null) {
                $hits++;
            }
        }
    });
    return $figures + ['mix' => $done / $seconds] + ($gets > 0 ? ['mix_hits' => 100 * $hits / $gets] : []);
}

function again(array $sequence, int $rounds): array
{
    return array_merge(...array_fill(0, $rounds, $sequence));
}

/**
 * Does `count` operations by `work`, or fewer if the time is up first. Returns their number and their seconds.
 * It checks the clock between blocks of operations, and enlarges short blocks.
 */
function timed(int $count, float $limit, callable $work): array
{
    [$done, $block] = [0, 1];
    $start = $now = hrtime(true);
    while ($done < $count && $now - $start < $limit * 1e9) {
        [$from, $before] = [$done, $now];
        $done = min($from + $block, $count);
        $work($from, $done);
        $now = hrtime(true);
        if ($now - $before < $limit * 1e9 / 50) {
            $block *= 2;
        }
    }
    return [$done, ($now - $start) / 1e9];
}

function check(Store $store, array $keys, array $values, array $sequence, int $stored): void
{
    foreach (array_slice($sequence, 0, CHECKED) as $index) {
        $found = $store->get($keys[$index]);
        if ($found === null) {
            continue;
        }
        $index < $stored || throw new RuntimeException('it has a value for a key that was never stored');
        $found === $values[$index & 255] || throw new RuntimeException('it gave another value than the one that was stored');
    }
}
