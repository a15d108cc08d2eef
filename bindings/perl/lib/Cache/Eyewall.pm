package Cache::Eyewall;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;
use Scalar::Util ();
require XSLoader;
XSLoader::load('Cache::Eyewall', $VERSION);

# Of eyewall.h.
my %flag = (must_exist => 1, read_only => 2, secure_erase => 4, survive_sigbus => 8, clear_unclean => 16, put_aside_broken => 64,
    verify_hits => 128);
use constant SET_GROUP => 32;
use constant UINT32_MAX => 0xffff_ffff;

# Seconds that C waits at a time, after which Perl's handlers of signals may run.
use constant WAIT => 1;

my @options = (qw(path size entry_bytes_max entry_size_hint mode group lock_deadline tier_bytes tier_folder), sort CORE::keys %flag);

# A thread that is started later has no part in the objects of this one; it opens the volume itself.
sub CLONE_SKIP { 1 }
sub Cache::Eyewall::Claim::CLONE_SKIP    { 1 }
sub Cache::Eyewall::Flight::CLONE_SKIP   { 1 }
sub Cache::Eyewall::Walk::CLONE_SKIP     { 1 }
sub Cache::Eyewall::Writer::CLONE_SKIP   { 1 }
sub Cache::Eyewall::Follower::CLONE_SKIP { 1 }

sub open {    ## no critic (it is a method)
    my ($class, %given) = @_;
    Cache::Eyewall::Error->argument('path is missing: where the volume is to lie, as in: path => "/dev/shm/pages"')
        unless defined $given{path} && length $given{path};
    Cache::Eyewall::Error->argument('path has a zero byte in it') if $given{path} =~ /\0/;
    return opened($class, %given);
}

sub anonymous {
    my ($class, %given) = @_;
    Cache::Eyewall::Error->argument('an anonymous volume has no path: use open') if defined $given{path};
    return opened($class, %given);
}

sub opened {
    my ($class, %given) = @_;
    $class = ref $class || $class;
    my %known = map { $_ => 1 } @options;
    for my $name (sort CORE::keys %given) {
        Cache::Eyewall::Error->argument("no option $name; there are " . join ', ', @options) unless $known{$name};
    }
    my $flags = 0;
    $given{$_} and $flags |= $flag{$_} for CORE::keys %flag;
    $flags |= SET_GROUP if defined $given{group};
    # As an octal number that stands in quotes it would be another mode.
    Cache::Eyewall::Error->argument("mode is a string that begins with 0: give a number, as in: mode => 0660")
        if ($given{mode} // '') =~ /^0[0-9]/;
    Cache::Eyewall::Error->argument('tier_folder has a zero byte in it') if ($given{tier_folder} // '') =~ /\0/;
    return $class->_open(
        $given{path}, number(\%given, 'size'), number(\%given, 'entry_bytes_max'), number(\%given, 'entry_size_hint', UINT32_MAX), $flags,
        number(\%given, 'mode', 07777), group($given{group}), milliseconds(number(\%given, 'lock_deadline', 1e9)),
        number(\%given, 'tier_bytes'), $given{tier_folder},
    );
}

sub number {
    my ($given, $name, $max) = @_;
    my $number = $given->{$name} // 0;
    Cache::Eyewall::Error->argument("$name is not a number from 0 on: $number") unless $number =~ /^[0-9]+(?:\.[0-9]+)?\z/;
    Cache::Eyewall::Error->argument("$name is above $max: $number") if defined $max && $number > $max;
    return $number;
}

# At least one, where there is a part of one: none is the default.
sub milliseconds {
    my ($seconds) = @_;
    return $seconds > 0 && $seconds < 0.001 ? 1 : int(1000 * $seconds);
}

# A group, by its name or its number.
sub group {
    my ($group) = @_;
    return 0 unless defined $group;
    my $number = $group =~ /^[0-9]+\z/ ? $group : getgrnam($group);
    return $number if defined $number && $number < UINT32_MAX;
    Cache::Eyewall::Error->argument("there is no group $group");
}

sub keys {    ## no critic (it is a method)
    my ($self) = @_;
    my $walk = $self->walk;
    my @keys;
    while (my $entry = $walk->next) {
        push @keys, $entry->{key};
    }
    return @keys;
}

sub fill {
    my ($self, $key, $make, %given) = @_;
    my ($deadline, $use_stale) = (delete $given{deadline} // 10, delete $given{use_stale});
    Cache::Eyewall::Error->argument('no option ' . (sort CORE::keys %given)[0] . '; there are deadline, use_stale') if %given;
    Cache::Eyewall::Error->argument('fill is given no reference to a sub that makes the value') unless ref $make;
    my ($state, $known) = begun($self, $key, $deadline, $use_stale);
    return $known if $state eq 'fresh' || $state eq 'stale';
    return undef  if $state eq 'negative';
    # The flight ends with its object, whatever happens in here.
    my ($value, %options) = $make->($key);
    $known->store($value, %options) if defined $value;
    return $value;
}

# What fill_begin gives, within a deadline.
sub begun {
    my ($self, $key, $deadline, $use_stale) = @_;
    # What the caller's own eval has left there stays.
    local $@;
    while (1) {
        my $left = Scalar::Util::looks_like_number($deadline) ? $deadline - WAIT : 0;
        my @begun = eval { $self->fill_begin($key, $left > 0 ? WAIT : $deadline, $use_stale) };
        return @begun if @begun;
        # A handler of a signal may have died of anything.
        die $@ unless $left > 0 && Scalar::Util::blessed($@) && $@->isa('Cache::Eyewall::Error') && $@->name eq 'busy';
        $deadline = $left;
    }
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall - one memory-mapped cache that all processes of a machine share

=head1 SYNOPSIS

    use Cache::Eyewall;

    my $cache = Cache::Eyewall->open(path => '/dev/shm/pages', size => 64 << 20);

    $cache->put('/about', '<h1>About</h1>', ttl => 3600, tags => ['pages']);
    my $page = $cache->get('/about');

    # Made once, however many processes ask for it at a time.
    $page = $cache->fill('/contact', sub { return '<h1>Contact</h1>', ttl => 60 });

    $cache->purge_tag('pages');

=head1 DESCRIPTION

A I<volume> is one file, or one piece of shared memory, that every process maps which opens it: Perl, C, PHP, the Eyewall web server.
Its size is a hard cap, and what hasn't been asked for goes to make room. Look-ups take no lock.

Coming from L<Cache::FastMmap>: L<Cache::Eyewall::FastMmap> has its methods and options.

=head2 Keys and values are bytes

Keys, values, metadata and tags are strings of bytes. A string with characters above 255 is refused: encode it, as by
C<Encode::encode_utf8>. Of other strings it makes no difference whether Perl's UTF-8 flag is on: C<"\xe9"> is one byte. A reference
is refused: serialize it. What an object says that it is as a string (L<overload>) is its string.

Under C<-T>, what comes out of a volume is tainted, as what is read from a file.

=head2 Times

All times are in seconds, and may have a fraction; they count in milliseconds. More than 126,000 years is for ever. Other numbers are whole ones, of 64 bits
at most; what isn't is refused.

=head2 Errors

Errors are thrown as L<Cache::Eyewall::Error>. A miss isn't one.

=head2 Processes and threads

A child that is forked goes on to use the cache that its parent has opened. What the parent held then, the scalars of C<get_pinned>,
claims, flights, writers and followers, isn't the child's: it must not read such scalars, and what else it has of them does nothing.

Under ithreads, a thread opens the volume itself: the objects of another thread are undefined in it. Scalars of C<get_pinned> are shared.

=head1 OPENING

=head2 open(path => PATH, ...)

Opens the volume at a path, and creates it if there is none. To open one several times costs nothing.

=over 4

=item size

Bytes of the volume, all overhead included: a hard cap. 64 MiB, if it isn't said; 512 KiB at least.

=item entry_bytes_max

The largest entry: 48 bytes, key, metadata and value. A sixteenth of the size, at most 4 MiB, if it isn't said; up to a quarter.

=item entry_size_hint

Bytes of a typical entry, 1024 if it isn't said: the first guess of the index, which follows what is put.

=item mode, group

Permission bits of a new volume, whatever the umask, 0600 if it isn't said; and its group, by name or number. Who may write a volume is
trusted by all who read it.

=item lock_deadline

For how long a call waits for a process that is stopped, or for another's claim. One second, if it isn't said. Perl's handlers of signals run after
the wait.

=item tier_bytes, tier_folder

Up to so much shared memory before a volume on a disk, for copies of what is asked for often, and where.

=item put_aside_broken

True: a file that is broken (empty, shorter than its header says, or with a damaged header) is renamed to
F<NAME.broken-SECONDS>, and a new volume takes its place. Without it, opening such a file throws C<corrupt>.

=item verify_hits

True: each value is held against its checksum before it is returned; a wrong one is dropped, and is a miss. That reads the whole
value each time.

=item must_exist, read_only, secure_erase, survive_sigbus, clear_unclean

True or false; F<eyewall.h> says what they do.

=back

Size, C<entry_bytes_max> and C<entry_size_hint> are fixed when the volume is created. To ask for others later is an error; not to ask takes it
as it is.

=head2 anonymous(...)

A volume without a name, in shared memory: of this process and those that it forks.

=head2 close

Leaves the volume. So does the end of the object. What is pinned or claimed stays until it is freed.

=head1 LOOKING UP

=head2 get(KEY)

The value, or undef.

=head2 peek(KEY)

The same, but it counts neither as use nor in the numbers.

=head2 get_pinned(KEY)

A reference to a scalar whose bytes are those in the volume, not a copy; or undef. It can only be read. The bytes don't change, and can't be
evicted, as long as the scalar is there, so don't keep it for long. An assignment (C<< my $copy = $$page >>) copies; C<print $$page>,
C<length $$page> and C<< for ($$page) { ... } >> don't. With C<survive_sigbus>, bytes that are lost while it is there read as zeros; any call of the cache
says so then.

    my $page = $cache->get_pinned('/about');
    print length $$page if $page;

=head2 get_many(KEY, ...)

The values of many keys, undef for those that aren't there. Faster than one by one.

=head2 lookup(KEY)

All that is known, as a reference to a hash, or undef: C<value>, C<key>, C<metadata>, C<tags> (an array), C<serial>, C<created> (seconds
since 1970), C<ttl_left> and C<usable_left> (undef: until it is evicted), C<reason>, and C<state>: C<fresh>, C<stale> or C<negative>.

=head2 contains(KEY)

Whether there is a valid entry. Doesn't count as use.

=head2 keys

The keys of all valid entries. There may be many.

=head2 walk(all => BOOL)

A walk over all valid entries, with C<all> over stale and negative ones, too. Its C<next> gives what C<lookup> gives, and undef at the end.

    my $walk = $cache->walk;
    while (my $entry = $walk->next) {
        print "$entry->{key}: ", length $entry->{value}, "\n";
    }

=head1 CHANGING

The options of all puts:

=over 4

=item ttl

Valid for so long. Without it, until it is evicted.

=item stale

Usable for so long after that, by C<lookup> and C<fill>. 0, which it is without it: not at all.

=item metadata

Bytes of yours, up to 65,535, which C<lookup> gives.

=item tags

A reference to an array of up to 32 labels, of 1 to 255 bytes of UTF-8, by which entries are purged together.

=item begun_in

What C<now> gave before the value was begun to be made: what has been purged since then is purged.

=back

=head2 put(KEY, VALUE, ...)

Stores a value, and gives its serial: a number that names this version of the entry.

=head2 add(KEY, VALUE, ...)

Stores a value if there is no valid entry. The serial; undef: there was one.

=head2 replace(KEY, SERIAL, VALUE, ...)

Stores a value if the entry still has this serial. The new serial; undef: it has another, or is gone.

=head2 put_negative(KEY, REASON, ...)

Notes that there is nothing, and why, by a number up to 65,535: C<lookup> gives it.

=head2 remove(KEY)

Whether there was an entry.

=head2 remove_if(KEY, SERIAL)

Removes the entry if it has this serial, and says whether it did.

=head2 touch(KEY, ...)

Gives an entry new times and metadata: C<ttl>, C<stale>, C<metadata>, and C<if_serial>. Its value stays. Whether there was one.

=head2 increment(KEY, BY, ...)

Adds to a counter, and gives the sum. BY is 1 if it isn't said, and has to be where options follow: those of a put, for a new counter, and
C<start>, C<min>, C<max>. A counter is an entry of eight bytes, which C<unpack 'q<', $cache-E<gt>get(KEY)> reads.

=head2 purge_tag(TAG, ...), purge_prefix(PREFIX, ...), purge_all(...)

Purges what has this tag, what has a key that begins so, everything; with C<< soft => 1 >> it becomes stale. It takes microseconds, however many
entries are meant.

=head2 clear

Removes all entries, and gives how many.

=head2 now

A moment, for C<begun_in>.

=head2 sweep, sync

Drops what is purged or over, and gives how much; brings all to storage. Nobody has to call them.

=head1 CHANGES THAT TAKE THEIR TIME

=head2 claim(KEY)

The right to change a key, over all processes, as an object; waits for others up to C<lock_deadline>. It ends with C<put>, C<remove>, C<end>, or when it is
freed. Plain puts and removes don't wait for it: they supersede it.

    my $claim = $cache->claim('log');
    $claim->put(($claim->value // '') . "one more line\n");

C<value> is the entry's as it was found, or undef. C<put(VALUE, ...)> gives the serial, or undef: somebody has put, removed or purged the entry since, and
nothing was stored. C<remove> says in the same way whether it did.

=head2 fill(KEY, CODE, ...)

The value; where there is none, what CODE makes of the key, which is done once over all processes while the others wait. CODE gives a value and options
for the put, or undef if there is nothing. If it dies, one of those that wait is next. C<deadline> is for how long to wait, 10 seconds if it isn't
said, and then the error C<busy>; with C<use_stale> a stale value is given while somebody else makes a new one.

    my $page = $cache->fill('/news', sub { return "news of $_[0]", ttl => 60, stale => 600 }, use_stale => 1);

If CODE dies, so does C<fill>, and nothing is kept.

=head2 fill_begin(KEY, DEADLINE, USE_STALE)

The same in two steps. Gives a state and what goes with it: C<fresh> or C<stale> and the value; C<negative> and the reason; C<ours> and an
object, which has to make the entry by C<store(VALUE, ...)>, C<remember(REASON, TTL)>: there is nothing, or C<end>.

=head1 PIECE BY PIECE

=head2 writer(KEY, ...)

Begins an entry whose value comes piece by piece, and gives an object. Nobody finds it before it is committed. It keeps the key as a claim does. The
options are those of a put, and C<length>: how many bytes will come, if that is known. If it is right, nothing is copied twice.

    my $writer = $cache->writer('/report', ttl => 3600, tags => ['reports']);
    $writer->write("line $_\n") for 1 .. 1000;
    defined $writer->commit or warn 'somebody has put another report meanwhile';

C<write(BYTES)> takes all of them, or dies. After the errors C<busy> and C<pinned> the same piece may be written again; after others nothing comes of
the entry. C<commit> makes it the entry, and gives its serial; undef: somebody has put, removed or purged the entry since, and nothing was stored. C<abort>
gives up; so does the end of the object, as when code dies. What isn't committed leaves the former entry as it was. In a forked child of the process that began
it, C<write> and C<commit> fail with the error C<interrupted>, and its end does nothing.

=head2 follow(KEY)

Reads what somebody is writing, whatever process it is, from its first byte on: an object; undef: nobody writes this key just now.

C<< read(deadline => SECONDS) >> gives the next bytes, up to 65,536; undef: that was all, and the entry was stored. It waits for up to 10 seconds, if C<deadline>
doesn't say otherwise, and then dies of C<busy>, after which it may be called again. The error C<interrupted> says that nothing will come of the entry: what was
read then is part of none. C<metadata> is what the entry will have, and C<end> reads no further.

    if (my $follower = $cache->follow('/report')) {
        while (defined(my $bytes = $follower->read(deadline => 30))) {
            print $bytes;
        }
    }

=head1 NUMBERS

=head2 stats

All numbers of the volume, as a reference to a hash: sizes now, and counts since it was created. F<eyewall.h> says what they are.

=head2 size, entry_bytes_max

The volume's bytes, and those of the largest entry.

=head2 library_version

The version of libeyewall.

=head1 SEE ALSO

L<Cache::Eyewall::FastMmap>, L<Cache::Eyewall::Error>

=cut
