<?php
// The PHP actor: answers the questions on its standard input (bindings/cases/README.md).
declare(strict_types=1);

use Eyewall\Cache;
use Eyewall\Claim;

/** A fill that makes nothing. */
final class GivesUp extends Exception
{
}

final class Actor
{
    private Cache $cache;
    /** The serial that the last `get` returned; `replace` compares with it. */
    private int $serial = 0;
    private ?Claim $claim = null;

    /** @param list<string> $words @return list<string> */
    public function act(array $words): array
    {
        $question = array_shift($words);
        $options = $this->options($words);
        [$first, $second] = $words + ['', ''];
        return match ($question) {
            'open' => $this->open($first, (int) $second, $options['fleet'] === 'yes'),
            'put' => $this->done($this->cache->set($first, $second, $options['ttl'], $options['tags'], $options['stale'])),
            'negative' => $this->done($this->cache->setNegative($first, (int) $second, $options['ttl'], $options['tags'])),
            'lookup' => $this->lookup($first),
            'add' => $this->done($this->cache->add($first, $second, $options['ttl'], $options['tags']), 'unmet'),
            'get' => $this->get($first),
            'replace' => $this->done($this->cache->cas($first, $this->serial, $second), 'unmet'),
            'remove' => $this->done($this->cache->delete($first), 'miss'),
            'contains' => [$this->cache->has($first) ? 'yes' : 'no'],
            'touch' => $this->done($this->cache->touch($first, $options['ttl'], $options['stale']), 'miss'),
            'increment' => ['sum', (string) $this->cache->increment($first, (int) $second)],
            'append' => $this->append($first, $second),
            'claim' => $this->claim($first),
            'store' => $this->store($first),
            'fill' => $this->fill($first, $second, $options['then']),
            'purge' => $this->purge($first, $second, $options['mode'] === 'soft'),
            'clear' => $this->clear(),
            'count' => ['count', (string) iterator_count($this->cache->keys())],
            // Values are whole strings here: begin, write, commit, abort.
            default => ['cannot'],
        };
    }

    /**
     * Removes the options from the end of a question.
     *
     * @return array{ttl: ?float, stale: float, tags: list<string>, then: string, mode: string, fleet: string}
     */
    private function options(array &$words): array
    {
        $options = ['ttl' => null, 'stale' => 0.0, 'tags' => [], 'then' => '', 'mode' => '', 'fleet' => ''];
        while (preg_match('/^(ttl|stale|tags|then|mode|fleet)=(.*)$/s', (string) end($words), $parts)) {
            [, $name, $text] = $parts;
            $options[$name] = match ($name) {
                'ttl', 'stale' => $text / 1000,
                'tags' => explode(',', $text),
                default => $text,
            };
            array_pop($words);
        }
        return $options;
    }

    private function done(bool $isDone, string $otherwise = 'refused'): array
    {
        return [$isDone ? 'ok' : $otherwise];
    }

    private function open(string $path, int $size, bool $isOfFleet): array
    {
        $this->cache = new Cache($path, ['size' => $size, 'fleet' => $isOfFleet]);
        return ['ok'];
    }

    private function get(string $key): array
    {
        $found = $this->cache->getWithSerial($key);
        if ($found === null) {
            return ['miss'];
        }
        $this->serial = $found[1];
        return ['value', (string) $found[0]];
    }

    private function lookup(string $key): array
    {
        $entry = $this->cache->lookup($key);
        return match ($entry['state'] ?? 'miss') {
            'miss' => ['miss'],
            'negative' => ['negative', (string) $entry['reason']],
            default => [$entry['state'], (string) $entry['value']],
        };
    }

    private function append(string $key, string $bytes): array
    {
        $made = '';
        $isStored = $this->cache->update($key, function (string $key, ?string $value) use ($bytes, &$made): string {
            return $made = $value . $bytes;
        });
        return $isStored ? ['value', $made] : ['superseded'];
    }

    private function claim(string $key): array
    {
        $this->claim = $this->cache->claim($key);
        return $this->claim->isHit() ? ['value', $this->claim->get()] : ['none'];
    }

    private function store(string $value): array
    {
        $isStored = $this->claim->set($value);
        $this->claim = null;
        return [$isStored ? 'ok' : 'superseded'];
    }

    private function fill(string $key, string $value, string $then): array
    {
        if ($then === 'die' && !function_exists('posix_kill')) {
            return ['cannot'];
        }
        $isMade = false;
        $make = function () use ($value, $then, &$isMade): string {
            if ($then === 'die') {
                posix_kill(getmypid(), 9);
            }
            if ($then === 'fail') {
                throw new GivesUp();
            }
            $isMade = true;
            return $value;
        };
        try {
            $found = $this->cache->fetchOrCompute($key, $make, wait: 10);
        } catch (GivesUp) {
            return ['failed'];
        }
        return [$isMade ? 'made' : 'value', (string) $found];
    }

    private function purge(string $what, string $which, bool $isSoft): array
    {
        match ($what) {
            'tag' => $this->cache->purgeTag($which, $isSoft),
            'prefix' => $this->cache->purgePrefix($which, $isSoft),
            'all' => $this->cache->purgeAll($isSoft),
        };
        return ['ok'];
    }

    private function clear(): array
    {
        $this->cache->clear();
        return ['ok'];
    }
}

function decoded(string $word): string
{
    return $word === '%' ? '' : rawurldecode($word);
}

function encoded(string $word): string
{
    return $word === '' ? '%' : preg_replace_callback('~[^A-Za-z0-9_./-]~', fn ($byte) => sprintf('%%%02x', ord($byte[0])), $word);
}

/** The name of a status in the cases. */
function error_name(int $code): string
{
    $names = array_flip((new ReflectionClass(Eyewall\Exception::class))->getConstants());
    return strtolower($names[$code] ?? 'unknown');
}

$actor = new Actor();
while (($line = fgets(STDIN)) !== false) {
    try {
        $answer = $actor->act(array_map(decoded(...), explode("\t", rtrim($line, "\n"))));
    } catch (Eyewall\Exception $error) {
        fwrite(STDERR, $error->getMessage() . "\n");
        $answer = ['error', error_name($error->getCode())];
    }
    // One write, and no buffer behind it.
    fwrite(STDOUT, implode("\t", array_map(encoded(...), $answer)) . "\n");
}
