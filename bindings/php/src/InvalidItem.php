<?php

declare(strict_types=1);

namespace Eyewall;

/** An argument that PSR-6 forbids. */
final class InvalidItem extends \InvalidArgumentException implements \Psr\Cache\InvalidArgumentException
{
}
