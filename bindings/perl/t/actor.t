# The actor of bindings/cases answers as the cases' README says.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use IPC::Open2 ();

my $pid = IPC::Open2::open2(my $from, my $to, $^X, (map { "-I$_" } @INC), 'actor.pl');

sub asks {
    my ($question, $answer) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    print {$to} join("\t", split / /, $question), "\n";
    $to->flush;
    chomp(my $line = <$from>);
    is($line, join("\t", split / /, $answer), $question);
}

my $path = path();
asks("open $path 4194304", 'ok');
asks('put page %3ch1%3e ttl=3600000 tags=a,b', 'ok');
asks('get page', 'value %3ch1%3e');
asks('get absent', 'miss');
asks('put empty %', 'ok');
asks('get empty', 'value %');
asks('put %00%ff%0a %00%25', 'ok');
asks('get %00%ff%0a', 'value %00%25');
asks('add page 2', 'unmet');
asks('add new 2 ttl%3d1000 tags%3da', 'ok');
asks('replace page 3', 'unmet');
asks('get page', 'value %3ch1%3e');
asks('replace page 3', 'ok');
asks('replace page 4', 'unmet');
asks('contains page', 'yes');
asks('contains absent', 'no');
asks('touch page ttl=7200000', 'ok');
asks('touch absent ttl=7200000', 'miss');
asks('increment n -2', 'sum -2');
asks('increment page 1', 'error not_a_counter');
asks('append page 4', 'value 34');
asks('claim page', 'value 34');
asks('store 5', 'ok');
asks('store 5', 'cannot');
asks('claim absent', 'none');
asks('put absent 1', 'ok');
asks('store 5', 'superseded');
asks('fill made 1', 'made 1');
asks('fill made 2', 'value 1');
asks('purge tag a', 'ok');
asks('get new', 'miss');
asks('purge prefix ma', 'ok');
asks('get made', 'miss');
asks('put % value', 'error key_empty');
asks('dance', 'cannot');
asks('count', 'count 5');
asks('remove page', 'ok');
asks('remove page', 'miss');
asks('purge all', 'ok');
asks('clear', 'ok');
asks('count', 'count 0');
close $to;
ok(reap($pid), 'it ends with its input');

done_testing;
