<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * What PSR-6 and PSR-16 ask of keys, which is more than a volume does.
 *
 * @internal
 */
final class KeyRules
{
    /** Reserved by both, for what they may mean one day. */
    private const RESERVED = '{}()/\@:';

    /** Why this isn't a key; null: it is one. */
    public static function fault(mixed $key): ?string
    {
        if (!is_string($key)) {
            return sprintf('A key has to be a string, not %s', get_debug_type($key));
        }
        if ($key === '') {
            return 'A key has to have a character at least';
        }
        if (strpbrk($key, self::RESERVED) !== false) {
            return sprintf('The key %s has one of the characters %s, which are reserved', $key, self::RESERVED);
        }
        return null;
    }
}
