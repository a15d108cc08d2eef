package EyewallTest;
# Helpers of all tests: a folder for volumes, errors by name, children.
use v5.16;
use warnings;
use Exporter 'import';
use File::Temp ();
use POSIX ();
use Test::More;

our @EXPORT = qw(path error_name is_error child reap);

my $folder = File::Temp->newdir('cache-eyewall-XXXXXXXX', TMPDIR => 1);
my $made_by = $$;

# The path of a volume to be created.
sub path { state $number = 0; return "$folder/volume-" . $number++ }

# The name of the error that code throws; '' if it throws none.
sub error_name {
    my ($code) = @_;
    return '' if eval { $code->(); 1 };
    return ref $@ && $@->isa('Cache::Eyewall::Error') ? $@->name : "not one of ours: $@";
}

sub is_error {
    my ($code, $name, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is(error_name($code), $name, $what);
}

# Forks a child that runs code without the parent's destructors and END blocks, and returns its result as the exit
# status.
sub child {
    my ($code) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    my $is_well = eval { $code->() };
    print STDERR "# in a child: $@" if $@;
    POSIX::_exit($is_well ? 0 : 1);
}

# Waits for children, and returns whether all succeeded.
sub reap {
    my (@pids) = @_;
    my @failed = grep { waitpid($_, 0) != $_ || $? != 0 } @pids;
    return !@failed;
}

1;
