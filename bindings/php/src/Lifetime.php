<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * Lifetimes of the PSRs: null, seconds or an interval.
 *
 * @internal
 */
final class Lifetime
{
    /** Seconds from now; null: forever. 0 or less: expired already. */
    public static function seconds(null|int|\DateInterval $lifetime): ?int
    {
        if ($lifetime instanceof \DateInterval) {
            // Months make the length of an interval depend on its beginning.
            $now = new \DateTimeImmutable();
            return $now->add($lifetime)->getTimestamp() - $now->getTimestamp();
        }
        return $lifetime;
    }
}
