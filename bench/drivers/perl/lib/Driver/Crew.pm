package Driver::Crew;

# Processes that are forked from this one and do what they are told, at the same time. They end with the object.
use v5.26;
use warnings;
use POSIX qw(_exit);
use Driver::Protocol;

# So many. Each calls `orders` with its number, from 0 on: what it does by which word, a closure each, which gives back numbers.
sub start {
    my ($class, $count, $orders) = @_;
    my $self = bless { members => [], owner => $$ }, $class;
    for my $number (0 .. $count - 1) {
        pipe my $hear, my $say or die "pipe: $!\n";
        pipe my $listen, my $tell or die "pipe: $!\n";
        my $process = fork // die "fork: $!\n";
        if ($process == 0) {
            # The others' ends too, or nobody would see that this program has ended.
            close $_ for $say, $listen, map { @$_{qw(say listen)} } @{ $self->{members} };
            obey($hear, $tell, $number, $orders);
        }
        push @{ $self->{members} }, { process => $process, say => $say, listen => $listen };
    }
    return $self;
}

# Until nobody is there who could say a word. Nothing that was opened before the fork is let go here: it is the other's.
sub obey {
    my ($hear, $tell, $number, $orders) = @_;
    $SIG{$_} = sub { _exit(0) } for qw(HUP INT TERM);
    $tell->autoflush(1);
    my $does = $orders->($number);
    while (defined(my $word = <$hear>)) {
        chomp $word;
        my @found = eval { $does->{$word}->() };
        print {$tell} $@ ? 'failed: ' . one_line($@) : "@found", "\n";
    }
    _exit(0);
}

# Says a word to the first so many, who begin together, and waits until all have done it: what each of them gave back, as a list.
sub told {
    my ($self, $word, $count) = @_;
    my @members = @{ $self->{members} }[0 .. $count - 1];
    local $SIG{PIPE} = 'IGNORE';
    syswrite $_->{say}, "$word\n" for @members;
    my @answers = map { scalar readline $_->{listen} } @members;
    for (@answers) {
        die "a process of it ended\n" if !defined;
        die "$1\n" if /^failed: (.*)/;
    }
    return map { [split] } @answers;
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local $?;
    my @processes = map { $_->{process} } @{ $self->{members} };
    kill TERM => @processes;
    waitpid $_, 0 for @processes;
}

1;
