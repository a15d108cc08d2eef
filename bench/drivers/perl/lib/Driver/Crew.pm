package Driver::Crew;

# Processes that are forked from this one, and carry out commands at the same time. They end with the object.
use v5.26;
use warnings;
use POSIX qw(_exit);
use Driver::Protocol;

# Forks `count` processes. Each calls `orders` with its number, from 0 on. `orders` returns a closure for each command,
# which returns numbers.
sub start {
    my ($class, $count, $orders) = @_;
    my $self = bless { members => [], owner => $$ }, $class;
    for my $number (0 .. $count - 1) {
        pipe my $hear, my $say or die "pipe: $!\n";
        pipe my $listen, my $tell or die "pipe: $!\n";
        my $process = fork // die "fork: $!\n";
        if ($process == 0) {
            # Closes the pipes of the other processes, too. Otherwise the processes would not notice the end of this
            # program.
            close $_ for $say, $listen, map { @$_{qw(say listen)} } @{ $self->{members} };
            obey($hear, $tell, $number, $orders);
        }
        push @{ $self->{members} }, { process => $process, say => $say, listen => $listen };
    }
    return $self;
}

# Obeys until no more commands can come. Leaves by `_exit`, so that it doesn't release what the parent opened before the
# fork.
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

# Sends a command to the first `count` processes, which begin together, and waits until all are done. Returns a list of
# their numbers for each process.
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
