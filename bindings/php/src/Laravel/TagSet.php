<?php

declare(strict_types=1);

namespace Eyewall\Laravel;

/**
 * Tags whose flush purges by the volume's tags: no identifiers of tags have to be stored, which might be evicted.
 *
 * @internal
 */
final class TagSet extends \Illuminate\Cache\TagSet // tidy: word, Laravel's
{
    public function reset(): void
    {
        $this->flush();
    }

    public function resetTag($name): string
    {
        $this->flushTag($name);
        return $name;
    }

    public function flush(): void
    {
        $this->store->flushTags($this->names);
    }

    public function flushTag($name): void
    {
        $this->store->flushTags([$name]);
    }

    public function tagId($name): string
    {
        return (string) $name;
    }

    /** Names with a bar in them must not look like others. */
    public function getNamespace(): string
    {
        return serialize($this->names);
    }
}
