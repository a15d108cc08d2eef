--TEST--
Every snippet of the README runs
--EXTENSIONS--
eyewall
--FILE--
<?php
require __DIR__ . "/helpers.inc";
preg_match_all('/^```php\n(.*?)^```$/ms', file_get_contents(__DIR__ . '/../README.md'), $snippets);
check(count($snippets[1]) > 3);
foreach ($snippets[1] as $number => $snippet) {
    // Their volumes lie in a folder of the test's.
    $snippet = str_replace(["<?php\n", '/var/cache/eyewall/'], ['', folder() . '/snippet-'], $snippet);
    $child = new Process('error_reporting(E_ALL); ini_set("display_errors", "1"); ini_set("eyewall.path", $argv[1] . "/snippet-pages");
        require "$argv[2]/../src/autoload.php"; require "$argv[2]/psr/simple-cache-3.php"; require "$argv[2]/psr/cache-3.php"; ob_start();'
        . $snippet . '; $said = ob_get_clean(); if (preg_match("/Warning|Fatal|Notice|Deprecated|Uncaught/", $said)) echo $said; echo "snippet ran";', folder(), __DIR__);
    $said = $child->rest();
    check($said === 'snippet ran', "$number: $said\n$snippet");
}
echo "done\n";
--EXPECT--
done
