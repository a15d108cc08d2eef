package Driver::Store::Memcached;

# A memcached that this driver starts, behind a Unix socket. It ends with the object.
use v5.26;
use warnings;
use IO::Socket::UNIX ();
use POSIX qw(WNOHANG _exit);
use Time::HiRes qw(sleep);

use constant PATIENCE_SECONDS => 10;

sub program { return (grep { -x } map { "$_/memcached" } split(/:/, $ENV{PATH} // ''), '/usr/sbin', '/usr/bin')[0] }

sub version {
    my ($words) = qx(${\program()} -V) =~ /(\S+)\s*$/;
    return "memcached $words";
}

sub socket_in { return "$_[0]/socket" }

sub start {
    my ($class, $folder, $bytes) = @_;
    my $socket = socket_in($folder);
    my $megabytes = int($bytes / (1 << 20)) + 1;
    my $user = getpwuid $>;
    my $process = fork // die "fork: $!\n";
    if ($process == 0) {
        open STDOUT, '>', '/dev/null';
        exec program(), '-s', $socket, '-a', '0700', '-m', $megabytes, '-t', 1, '-u', $user or _exit(1);
    }
    my $self = bless { process => $process, owner => $$ }, $class;
    for (1 .. PATIENCE_SECONDS * 100) {
        return $self if IO::Socket::UNIX->new(Peer => $socket);
        die "memcached ended while it started\n" if waitpid($process, WNOHANG) == $process;
        sleep 0.01;
    }
    die "memcached did not start within @{[PATIENCE_SECONDS]} s\n";
}

sub DESTROY {
    my ($self) = @_;
    return if $self->{owner} != $$;
    local $?;
    kill TERM => $self->{process};
    waitpid $self->{process}, 0;
}

1;
