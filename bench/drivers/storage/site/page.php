<?php
// A page of the generated site: about fifty of its classes, a template with the templates that it includes, twenty
// fragments, a temporary file.
declare(strict_types=1);

require __DIR__ . '/framework.php';

const USED = 50;
const FRAGMENTS = 20;

$number = (int) ($_GET['page'] ?? $argv[1] ?? 0);
$site = new Site(__DIR__, kept(Way::Rename));
$site->start();

$sum = 0;
for ($index = 0; $index < USED; $index++) {
    $class = sprintf('Site\Area%02d\Part%03d', intdiv(($number + $index) % 400, 40), ($number + $index) % 400);
    $sum += (new $class())->first($index);
}
$lines = [];
for ($index = 0; $index < FRAGMENTS; $index++) {
    $lines[] = $site->fragment("$number-$index", fn () => ['title' => "Fragment $index", 'text' => str_repeat("$number/$index ", 40)])['text'];
}
$page = $site->render(sprintf('page%03d', $number % 200), ['title' => "Page $number", 'sum' => $sum, 'lines' => $lines]);
echo $site->passThroughTemporaryFile($page);
