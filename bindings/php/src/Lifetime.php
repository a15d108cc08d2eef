<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * Lifetimes as the PSRs have them: null, seconds or an interval.
 *
 * @internal
 */
final class Lifetime
{
    /** Seconds from now on; null: without an end. Nothing or less: it is over already. */
    public static function seconds(null|int|\DateInterval $lifetime): ?int
    {
        if ($lifetime instanceof \DateInterval) {
            // An interval has months: its length depends on when it begins.
            $now = new \DateTimeImmutable();
            return $now->add($lifetime)->getTimestamp() - $now->getTimestamp();
        }
        return $lifetime;
    }
}
