<?php

declare(strict_types=1);

namespace Eyewall;

/**
 * The rules of PSR-6 and PSR-16 for keys, which are stricter than those of a volume.
 *
 * @internal
 */
final class KeyRules
{
    /** Characters that both reserve for later use. */
    private const RESERVED = '{}()/\@:';

    /** Why this is not a key; null: it is one. */
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
