--TEST--
PSR-6 with tags, with the interfaces of all versions
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
with_each_version('cache', 'item_pool.inc');
echo "done\n";
--EXPECT--
done
