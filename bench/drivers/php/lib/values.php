<?php
// Keys, values and the order of operations: the same in every language, as bench/drivers/README.md defines them.
declare(strict_types=1);

const WORD = 0xffff_ffff;
const POOL_BYTES = 16_384;
const DISTINCT = 256;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
// Streams of random numbers, each with a number of its own.
const POOL = 1, VALUES = 2, GETS = 3, MIX = 4;

/** The finaliser of MurmurHash3: a bijection on 32 bits. */
function mixed(int $x): int
{
    $x ^= $x >> 16;
    $x = product($x, 0x85eb_ca6b);
    $x ^= $x >> 13;
    $x = product($x, 0xc2b2_ae35);
    return $x ^ ($x >> 16);
}

/** A product modulo 2^32, from halves, since the whole product is too large for an integer. */
function product(int $left, int $right): int
{
    return ((((($left >> 16) * $right) & 0xffff) << 16) + ($left & 0xffff) * $right) & WORD;
}

/** Random numbers of 32 bits (xorshift32). */
final class Stream
{
    private int $state;

    public function __construct(int $seed, int $number)
    {
        $this->state = mixed(($seed + $number) & WORD) ?: 1;
    }

    public function next(): int
    {
        $x = $this->state;
        $x ^= ($x << 13) & WORD;
        $x ^= $x >> 17;
        $x ^= ($x << 5) & WORD;
        return $this->state = $x;
    }

    public function below(int $limit): int
    {
        return ($this->next() * $limit) >> 32;
    }
}

/** The part that is the same for every store in a case. */
final class Values
{
    private int $seed;
    private array $settings;

    public function __construct(private array $request)
    {
        $this->settings = $request['settings'];
        $this->seed = $request['seed'] & WORD;
    }

    /** Twice as many keys as stored objects: those of the second half are never stored. */
    public function keys(): array
    {
        $base = mixed($this->seed);
        return array_map(fn (int $index) => sprintf('key:%08x', mixed($index ^ $base)), range(0, 2 * $this->settings['keys'] - 1));
    }

    /** The values. Key i has the value i modulo their number. */
    public function values(): array
    {
        $size = $this->request['size'];
        return $this->request['case']['values'] === 'structured' ? $this->structured($size) : $this->binary($size);
    }

    private function pool(): string
    {
        $stream = new Stream($this->seed, POOL);
        $pool = '';
        while (strlen($pool) < POOL_BYTES) {
            $pool .= pack('V', $stream->next());
        }
        return $pool;
    }

    private function binary(int $mean): array
    {
        [$pool, $stream, $values] = [$this->pool(), new Stream($this->seed, VALUES), []];
        for ($pair = 0; $pair < DISTINCT / 2; $pair++) {
            $distance = $stream->below(intdiv($mean, 2) + 1);
            foreach ([$mean + $distance, $mean - $distance] as $length) {
                $values[] = substr($pool, $stream->below(POOL_BYTES - $length), $length);
            }
        }
        return $values;
    }

    private function structured(int $fields): array
    {
        $letters = implode('', array_map(fn (int $byte) => LETTERS[$byte & 63], array_values(unpack('C*', $this->pool()))));
        $stream = new Stream($this->seed, VALUES);
        $values = [];
        for ($index = 0; $index < DISTINCT; $index++) {
            $values[] = self::record($letters, $stream, $fields);
        }
        return $values;
    }

    private static function record(string $letters, Stream $stream, int $fields): array
    {
        $record = [];
        for ($field = 0; $field < $fields; $field++) {
            $name = sprintf('field_%02d', $field);
            if ($field % 4 === 3) {
                $record[$name] = $stream->next() >> 1;
                continue;
            }
            $length = 8 + $stream->below(17);
            $record[$name] = substr($letters, $stream->below(POOL_BYTES - $length), $length);
        }
        return $record;
    }

    /** The key of each get, by index. */
    public function gets(int $stored): array
    {
        ['stored_percent' => $share, 'keys' => $keys, 'operations' => $count] = $this->settings;
        $stream = new Stream($this->seed, GETS);
        $sequence = [];
        while (count($sequence) < $count) {
            $sequence[] = $stream->below(100) < $share ? $stream->below($stored) : $keys + $stream->below($keys);
        }
        return $sequence;
    }

    /** The same for gets and sets; a set of key i is -1 - i. */
    public function mix(int $stored): array
    {
        ['set_percent' => $share, 'operations' => $count] = $this->settings;
        $stream = new Stream($this->seed, MIX);
        $sequence = [];
        while (count($sequence) < $count) {
            $sequence[] = $stream->below(100) < $share ? -1 - $stream->below($stored) : $stream->below($stored);
        }
        return $sequence;
    }

    /** A summary of all this, for the test that compares the languages. */
    public function vectors(): array
    {
        $keys = $this->keys();
        $vectors = [
            'keys' => ['count' => count($keys), 'first' => array_slice($keys, 0, 4), 'sha256' => hash('sha256', implode("\n", $keys))],
            'gets' => self::summary($this->gets($this->settings['keys'])),
            'mix' => self::summary($this->mix($this->settings['keys'])),
        ];
        foreach ($this->settings['binary_bytes'] as $size) {
            $vectors['binary'][$size] = self::of_values($this->binary($size));
        }
        foreach ($this->settings['structured_fields'] as $size) {
            $vectors['structured'][$size] = self::of_values(array_map(text_of(...), $this->structured($size)));
        }
        return $vectors;
    }

    private static function summary(array $sequence): array
    {
        return ['count' => count($sequence), 'first' => array_slice($sequence, 0, 8), 'sha256' => hash('sha256', implode("\n", $sequence))];
    }

    private static function of_values(array $texts): array
    {
        return [
            'lengths' => array_map(strlen(...), array_slice($texts, 0, 4)),
            'bytes' => array_sum(array_map(strlen(...), $texts)),
            'sha256' => hash('sha256', implode('', $texts)),
        ];
    }
}

/** A structured value as text, the same in every language. */
function text_of(array $record): string
{
    ksort($record, SORT_STRING);
    $text = '';
    foreach ($record as $name => $value) {
        $text .= "$name=$value;";
    }
    return $text;
}
