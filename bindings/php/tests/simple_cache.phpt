--TEST--
PSR-16, with the interfaces of all versions
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
with_each_version('simple-cache', 'simple_cache.inc');
echo "done\n";
--EXPECT--
done
