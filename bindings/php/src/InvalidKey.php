<?php

declare(strict_types=1);

namespace Eyewall;

/** An argument that PSR-16 forbids. */
final class InvalidKey extends \InvalidArgumentException implements \Psr\SimpleCache\InvalidArgumentException
{
}
