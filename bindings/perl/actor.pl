#!/usr/bin/env perl
# The Perl actor of bindings/cases: answers the questions on its standard input (bindings/cases/README.md). It needs
# Cache::Eyewall in @INC, for instance by PERL5LIB=blib/lib:blib/arch.
use v5.16;
use warnings;
use Cache::Eyewall;

my ($cache, $claim, $writer);
# The serial of the entry that this actor read last.
my $serial = 0;

# The times of a put or a touch in seconds.
sub times_of {
    my ($given) = @_;
    return map { exists $given->{$_} ? ($_ => $given->{$_} / 1000) : () } qw(ttl stale);
}

sub put_options {
    my ($given) = @_;
    return (times_of($given), exists $given->{tags} ? (tags => [split /,/, $given->{tags}]) : ());
}

# Appends to a value under its claim; retries if a put superseded the claim.
sub append {
    my ($key, $bytes) = @_;
    while (1) {
        my $changed = $cache->claim($key);
        my $value = ($changed->value // '') . $bytes;
        return ('value', $value) if defined $changed->put($value);
    }
}

sub purge {
    my ($given, $what, @which) = @_;
    my $purge = { tag => 'purge_tag', prefix => 'purge_prefix', all => 'purge_all' }->{$what} or return 'cannot';
    my $mode = $given->{mode} // 'hard';
    return 'cannot' unless $mode eq 'hard' || $mode eq 'soft';
    $cache->$purge(@which, soft => $mode eq 'soft');
    return 'ok';
}

sub fill {
    my ($given, $key, $made) = @_;
    my $word = 'value';
    my $then = $given->{then} // '';
    my $value = eval {
        $cache->fill($key, sub {
            kill KILL => $$ if $then eq 'die';
            die "gives up\n" if $then eq 'fail';
            $word = 'made';
            return $made;
        });
    };
    return 'failed' if $@ eq "gives up\n";
    die $@ if $@;
    return ($word, $value);
}

my %answer = (
    open => sub { my ($given, $path, $size) = @_; $cache = Cache::Eyewall->open(path => $path, size => $size, fleet => exists $given->{fleet}); 'ok' },
    put => sub { my ($given, $key, $value) = @_; $cache->put($key, $value, put_options($given)); 'ok' },
    get => sub {
        my (undef, $key) = @_;
        my $entry = $cache->lookup($key);
        return 'miss' unless $entry && $entry->{state} eq 'fresh';
        $serial = $entry->{serial};
        return ('value', $entry->{value});
    },
    negative => sub { my ($given, $key, $reason) = @_; $cache->put_negative($key, $reason, put_options($given)); 'ok' },
    lookup => sub {
        my $entry = $cache->lookup($_[1]) or return 'miss';
        return ($entry->{state}, $entry->{state} eq 'negative' ? $entry->{reason} : $entry->{value});
    },
    add => sub { my ($given, $key, $value) = @_; defined $cache->add($key, $value, put_options($given)) ? 'ok' : 'unmet' },
    replace => sub { my (undef, $key, $value) = @_; defined $cache->replace($key, $serial, $value) ? 'ok' : 'unmet' },
    remove => sub { $cache->remove($_[1]) ? 'ok' : 'miss' },
    contains => sub { $cache->contains($_[1]) ? 'yes' : 'no' },
    touch => sub { my ($given, $key) = @_; $cache->touch($key, times_of($given)) ? 'ok' : 'miss' },
    increment => sub { ('sum', $cache->increment($_[1], $_[2])) },
    append => sub { append(@_[1, 2]) },
    claim => sub { $claim = $cache->claim($_[1]); my $value = $claim->value; defined $value ? ('value', $value) : 'none' },
    store => sub { my $held = $claim or return 'cannot'; undef $claim; defined $held->put($_[1]) ? 'ok' : 'superseded' },
    fill => \&fill,
    begin => sub { my ($given, $key) = @_; $writer = $cache->writer($key, put_options($given)); 'ok' },
    write => sub { return 'cannot' unless $writer; $writer->write($_[1]); 'ok' },
    commit => sub { my $written = $writer or return 'cannot'; undef $writer; defined $written->commit ? 'ok' : 'superseded' },
    abort => sub { my $written = $writer or return 'cannot'; undef $writer; $written->abort; 'ok' },
    purge => \&purge,
    clear => sub { $cache->clear; 'ok' },
    count => sub { ('count', scalar(() = $cache->keys)) },
);

sub decoded {
    my ($word) = @_;
    return '' if $word eq '%';
    return $word =~ s/%([0-9a-fA-F]{2})/chr hex $1/ger;
}

sub encoded {
    my ($word) = @_;
    return '%' if $word eq '';
    return $word =~ s{([^A-Za-z0-9_./-])}{sprintf '%%%02x', ord $1}ger;
}

# The number of words before the options, which are name=value. A purge of everything has one less.
my %words = (open => 2, put => 2, add => 2, touch => 1, negative => 2, fill => 2, begin => 1, purge => 2);

# The words of the answer.
sub answered {
    my ($name, @words) = @_;
    my $work = $answer{$name} or return 'cannot';
    @words = map { decoded($_) } @words;
    my $count = $words{$name} // @words;
    $count = 1 if $name eq 'purge' && @words && $words[0] eq 'all';
    my %options = map { split /=/, $_, 2 } @words > $count ? splice @words, $count : ();
    my @answer = eval { $work->(\%options, @words) };
    return @answer unless $@;
    return ('error', $@->name) if ref $@ && $@->isa('Cache::Eyewall::Error');
    die $@;
}

binmode $_ for *STDIN, *STDOUT;
$| = 1;
while (defined(my $line = <STDIN>)) {
    chomp $line;
    print join("\t", map { encoded($_) } answered(split /\t/, $line, -1)), "\n";
}
