<?php
// Reads the suite's request, and refuses it if it can't be met.
declare(strict_types=1);

const NUMBERS = ['keys', 'operations', 'rounds', 'seconds', 'stored_percent', 'set_percent'];

function read_request(string $text): array
{
    $request = json_decode($text, true);
    if (json_last_error() !== JSON_ERROR_NONE) {
        refuse('standard input is no JSON: ' . json_last_error_msg());
    }
    if (!is_array($request) || array_is_list($request) && $request !== []) {
        refuse('standard input is no object of JSON');
    }
    $do = $request['do'] ?? null;
    if (!in_array($do, ['list', 'measure', 'vectors'], true)) {
        refuse('"do" is ' . json_encode($do) . '; it may be list, measure or vectors');
    }
    if ($do !== 'list') {
        check_settings($request);
    }
    return $do === 'measure' ? checked_measure($request) : $request;
}

function check_settings(array $request): void
{
    is_int($request['seed'] ?? null) || refuse('"seed" has to be a whole number');
    $settings = $request['settings'] ?? null;
    is_array($settings) || refuse('"settings" are missing; bench/workloads/modules.toml has them');
    foreach (NUMBERS as $name) {
        $number = $settings[$name] ?? null;
        (is_int($number) || is_float($number)) && $number > 0 || refuse("settings: $name has to be a number above 0");
    }
    foreach (['binary_bytes', 'structured_fields', 'configurations'] as $name) {
        is_array($settings[$name] ?? null) || refuse("settings: $name has to be an object");
    }
}

/** A request to measure, with the meaning of its case. */
function checked_measure(array $request): array
{
    ($request['procedure'] ?? null) === 'modules' || refuse('"procedure" has to be modules');
    $case = $request['case'] ?? null;
    is_array($case) || refuse('"case" has to be an object');
    $values = $case['values'] ?? null;
    in_array($values, ['binary', 'structured'], true)
        || refuse('case: values is ' . json_encode($values) . '; it may be binary or structured');
    $settings = $request['settings'];
    $sizes = $settings[$values === 'binary' ? 'binary_bytes' : 'structured_fields'];
    $choices = ['size' => $sizes, 'configuration' => $settings['configurations']];
    foreach ($choices as $name => $known) {
        $request[$name] = $known[$case[$name] ?? ''] ?? refuse("case: $name is none of " . implode(', ', array_keys($known)));
    }
    foreach (['stores', 'repetitions'] as $list) {
        $given = $request[$list] ?? null;
        is_array($given) && array_is_list($given) && $given !== [] || refuse("\"$list\" has to be a list, and not empty");
    }
    foreach ($request['stores'] as $name) {
        isset(stores()[$name]) || refuse("there is no store '$name' here; {\"do\":\"list\"} says which there are");
    }
    foreach ($request['repetitions'] as $repetition) {
        is_int($repetition) && $repetition > 0 || refuse('repetitions count from 1');
    }
    $storage = $settings['storage'] ?? '';
    $request['folder'] = $request['scratch'][$storage] ?? '';
    is_dir($request['folder']) || refuse("\"scratch\" names no directory for the storage '$storage'");
    return $request;
}
