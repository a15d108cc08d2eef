# Apache with mod_perl and the prefork MPM: children share the volume that their parent opened before the fork, and
# one that each of them opens.
use v5.16;
use warnings;
use Test::More;
use lib 't/lib';
use EyewallTest;
use Cache::Eyewall;
use File::Basename 'dirname';
use File::Spec;
use IO::Socket::INET;
use POSIX ();

# The paths of Debian and Fedora. mod_perl is built for one Perl, and lies among its modules.
my ($apache) = grep { -x } qw(/usr/sbin/apache2 /usr/sbin/httpd);
my ($modules) = grep { -e "$_/mod_perl.so" } qw(/usr/lib/apache2/modules /usr/lib64/httpd/modules);
plan skip_all => 'there is no Apache with mod_perl of this Perl (apt-get install apache2-bin libapache2-mod-perl2)'
    unless $apache && $modules && eval { require mod_perl2; 1 };
use constant CHILDREN => 3;

# If root starts Apache, its children belong to another user, who must be able to open the volume.
my $folder = path();
mkdir $folder or die $!;
chmod 0777, $folder or die $!;
chmod 0711, dirname($folder) or die $!;
my ($inherited, $opened) = ("$folder/inherited", "$folder/opened");

sub write_file {
    my ($name, $text) = @_;
    open my $file, '>', "$folder/$name" or die "$name: $!";
    print {$file} $text;
    close $file or die "$name: $!";
    return;
}

write_file('startup.pl', <<"END_OF_PERL");
use v5.16;
use warnings;
use lib @{[ join ', ', map { "'" . File::Spec->rel2abs($_) . "'" } grep { !ref } @INC ]};
use Apache2::RequestIO ();
use Apache2::RequestRec ();
use Cache::Eyewall;

package Pages;
my \$inherited = Cache::Eyewall->open(path => '$inherited', size => 4 << 20);
my \$opened;
my \$children = @{[ CHILDREN ]};

my %answer = (
    who => sub { '' },
    # Waits until this many children run at the same time; then all request the same page.
    meet => sub {
        my (\$key) = \@_;
        my \$meeting = "meeting for \$key";
        \$inherited->increment(\$meeting);
        for (1 .. 6000) {
            last if \$inherited->increment(\$meeting, 0) == \$children;
            select undef, undef, undef, 0.01;
        }
        return join ',', map { my \$cache = \$_; \$cache->fill(\$key, sub { 'page ' . \$cache->increment('made') }, deadline => 60) } \$inherited, \$opened;
    },
    get => sub { join ',', map { \$_->get(\$_[0]) // '' } \$inherited, \$opened },
    claim => sub { join ',', map { defined \$_->claim(\$_[0])->put(\$\$) ? 'put' : '' } \$inherited, \$opened },
    # Dies while it holds everything that can be held.
    die => sub {
        my (\$key) = \@_;
        my \@held = map { (\$_->claim(\$key), \$_->writer("\$key, written"), \$_->get_pinned('page'), \$_->walk) } \$inherited, \$opened;
        kill KILL => \$\$;
        sleep 600;
    },
);

sub handler {
    my (\$request) = \@_;
    \$opened //= Cache::Eyewall->open(path => '$opened', size => 4 << 20);
    my (undef, \$what, \$key) = split m{/}, \$request->uri;
    \$request->content_type('text/plain');
    \$request->print("\$\$ ", \$answer{\$what}->(\$key));
    return 0;
}
1;
END_OF_PERL

sub configuration {
    my ($port) = @_;
    return <<"END_OF_CONFIGURATION";
ServerRoot $folder
ServerName localhost
PidFile $folder/apache.pid
ErrorLog /dev/stderr
DefaultRuntimeDir $folder
Mutex file:$folder
Listen 127.0.0.1:$port
LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule perl_module $modules/mod_perl.so
User #65534
Group #65534
StartServers @{[ CHILDREN ]}
MinSpareServers 1
MaxRequestWorkers @{[ CHILDREN ]}
KeepAlive Off
DocumentRoot $folder
PerlPostConfigRequire $folder/startup.pl
SetHandler modperl
PerlResponseHandler Pages
END_OF_CONFIGURATION
}

my ($server, $port, $log);

# Runs however the test ends.
END { kill TERM => $server if $server }

# Reads Apache's output until it is ready; false if it ended.
sub is_ready {
    my $said = '';
    while (my $line = <$log>) {
        return 1 if $line =~ /resuming normal operations/;
        $said .= $line;
    }
    diag($said);
    return 0;
}

sub start {
    # Another program may take a free port before Apache does.
    for (1 .. 3) {
        my $free = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die "no port: $@";
        $port = $free->sockport;
        close $free;
        write_file('apache.conf', configuration($port));
        pipe $log, my $to or die $!;
        $server = child(sub {
            open STDERR, '>&', $to or die $!;
            # Apache kills its whole process group.
            POSIX::setsid();
            exec $apache, '-DFOREGROUND', '-f', "$folder/apache.conf" or die "$apache: $!";
        });
        close $to;
        return 1 if is_ready();
        waitpid $server, 0;
        undef $server;
    }
    return 0;
}

sub begin_asking {
    my ($address) = @_;
    my $connection = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "no connection: $@";
    print {$connection} "GET $address HTTP/1.0\r\n\r\n";
    return $connection;
}

# The process that answered and its response; nothing if the response broke off.
sub answer_of {
    my ($connection) = @_;
    local $/;
    my $answer = <$connection> // '';
    return $answer =~ /\AHTTP\/1.. 200 .*?\r\n\r\n(\d+) (.*)\z/s ? ($1, $2) : ();
}

sub ask { return answer_of(begin_asking(@_)) }

ok(start(), 'it starts') or BAIL_OUT('Apache does not start');
ok(-e $inherited && !-e $opened, 'the parent has opened a volume');

subtest 'all children share a page that one made' => sub {
    my @answers = map { [answer_of($_)] } map { begin_asking('/meet/page') } 1 .. CHILDREN;
    my %children = map { ($_->[0] // '' => 1) } @answers;
    is(scalar keys %children, CHILDREN, 'several children answer');
    is_deeply([map { $_->[1] } @answers], [('page 1,page 1') x CHILDREN], 'it was made once, in either volume');
    is((ask('/get/page'))[1], 'page 1,page 1', 'and is there for later');
    is(Cache::Eyewall->open(path => $_)->get('page'), 'page 1', "also for other processes, in $_") for $inherited, $opened;
};

subtest 'children that are killed' => sub {
    is_deeply([ask('/die/held')], [], 'one dies in the middle of everything') for 1 .. 2;
    my ($child) = ask('/who');
    kill KILL => $child;
    # Until it is gone, the kernel may wake only it for a connection.
    select undef, undef, undef, 0.02 while kill 0, $child;
    my @answers = map { [answer_of($_)] } map { begin_asking('/meet/another') } 1 .. CHILDREN;
    is(scalar(grep { $_->[0] != $child } @answers), CHILDREN, 'others come in their place');
    is_deeply([map { $_->[1] } @answers], [('page 2,page 2') x CHILDREN], 'which go on');
    is((ask('/get/page'))[1], 'page 1,page 1', 'nothing is lost');
    is((ask('/claim/held'))[1], 'put,put', 'nothing is held');
};

subtest 'a restart' => sub {
    kill USR1 => $server;
    ok(is_ready(), 'Apache starts anew, with another Perl');
    is((ask('/get/page'))[1], 'page 1,page 1', 'all is there');
    my @answers = map { [answer_of($_)] } map { begin_asking('/meet/third') } 1 .. CHILDREN;
    is_deeply([map { $_->[1] } @answers], [('page 3,page 3') x CHILDREN], 'and shared');
};

kill TERM => $server;
waitpid $server, 0;
is($? & 127, 0, 'it ends when it is told');
undef $server;
is(Cache::Eyewall->open(path => $_)->get('page'), 'page 1', 'the volume outlives the server') for $inherited, $opened;

done_testing;
