"""Django's own tests of cache backends, for ours. scripts/test-python copies this file among those of Django's source (tests/cache)."""

import atexit
import os
import tempfile

from cache.tests import BaseCacheTests, caches_setting_for_tests
from django.core.cache import cache, caches
from django.test import TestCase, override_settings

FOLDER = tempfile.TemporaryDirectory(prefix="eyewall-django-")
atexit.register(FOLDER.cleanup)


@override_settings(
    CACHES=caches_setting_for_tests(
        BACKEND="eyewall.django.EyewallCache",
        LOCATION=os.path.join(FOLDER.name, "volume"),
        OPTIONS={"size": "4M", "MAX_ENTRIES": 30},
        # Django's tests give those of culling other options; all are one volume here.
        exclude={"cull", "zero_cull"},
    )
)
class EyewallCacheTests(BaseCacheTests, TestCase):
    # The cap is one of bytes: a number of entries culls nothing.
    test_cull = test_zero_cull = test_cull_delete_when_store_empty = None

    def test_incr_decr_timeout(self) -> None:
        """Counting doesn't change an entry's time; of Django's tests of its cache in memory."""
        cache.set("value", 1, timeout=1000)
        cache.incr("value")
        self.assertLess(999, cache.volume.lookup(cache.make_key("value")).ttl_left)

    def test_backends_share_a_volume(self) -> None:
        self.assertIs(caches["default"].volume, caches["prefix"].volume)
