package Cache::Eyewall;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;
use Scalar::Util ();
require XSLoader;
XSLoader::load('Cache::Eyewall', $VERSION);

# Flags of eyewall.h.
my %flag = (must_exist => 1, read_only => 2, secure_erase => 4, survive_sigbus => 8, clear_unclean => 16, put_aside_broken => 64,
    verify_hits => 128, fleet => 256);
use constant SET_GROUP => 32;
use constant UINT32_MAX => 0xffff_ffff;

# Longest wait in C, in seconds. Perl's signal handlers run between the waits.
use constant WAIT => 1;

my @options = (qw(path size entry_bytes_max entry_size_hint mode group lock_deadline tier_bytes tier_folder), sort CORE::keys %flag);

# A new thread gets no copies of these objects; it opens the volume itself.
sub CLONE_SKIP { 1 }
sub Cache::Eyewall::Claim::CLONE_SKIP    { 1 }
sub Cache::Eyewall::Flight::CLONE_SKIP   { 1 }
sub Cache::Eyewall::Walk::CLONE_SKIP     { 1 }
sub Cache::Eyewall::Writer::CLONE_SKIP   { 1 }
sub Cache::Eyewall::Follower::CLONE_SKIP { 1 }

sub open {    ## no critic (it is a method)
    my ($class, %given) = @_;
    Cache::Eyewall::Error->argument('path is missing: name the file of the volume, as in: path => "/dev/shm/pages"')
        unless defined $given{path} && length $given{path};
    Cache::Eyewall::Error->argument('path has a zero byte in it: file names can\'t') if $given{path} =~ /\0/;
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
        Cache::Eyewall::Error->argument("no option $name; the options are " . join ', ', @options) unless $known{$name};
    }
    my $flags = 0;
    $given{$_} and $flags |= $flag{$_} for CORE::keys %flag;
    $flags |= SET_GROUP if defined $given{group};
    # In quotes, an octal number would be taken as a decimal one.
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
    Cache::Eyewall::Error->argument("$name must be a number from 0 on, and is $number") unless $number =~ /^[0-9]+(?:\.[0-9]+)?\z/;
    Cache::Eyewall::Error->argument("$name must be at most $max, and is $number") if defined $max && $number > $max;
    return $number;
}

# Rounds a fraction of a millisecond up to one, since 0 asks for the default.
sub milliseconds {
    my ($seconds) = @_;
    return $seconds > 0 && $seconds < 0.001 ? 1 : int(1000 * $seconds);
}

# The number of a group, from its name or number.
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
    Cache::Eyewall::Error->argument('no option ' . (sort CORE::keys %given)[0] . '; the options are deadline, use_stale') if %given;
    Cache::Eyewall::Error->argument('fill needs a reference to a sub that makes the value') unless ref $make;
    my ($state, $known) = begun($self, $key, $deadline, $use_stale);
    return $known if $state eq 'fresh' || $state eq 'stale';
    return undef  if $state eq 'negative';
    # The flight ends when its object is freed, even if $make dies.
    my ($value, %options) = $make->($key);
    $known->store($value, %options) if defined $value;
    return $value;
}

# The result of fill_begin, within a deadline.
sub begun {
    my ($self, $key, $deadline, $use_stale) = @_;
    # Keep the caller's $@.
    local $@;
    while (1) {
        my $left = Scalar::Util::looks_like_number($deadline) ? $deadline - WAIT : 0;
        my @begun = eval { $self->fill_begin($key, $left > 0 ? WAIT : $deadline, $use_stale) };
        return @begun if @begun;
        # A signal handler may have died with another error.
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

    # One process makes the value, however many ask for it.
    $page = $cache->fill('/contact', sub { return '<h1>Contact</h1>', ttl => 60 });

    $cache->purge_tag('pages');

=head1 DESCRIPTION

A I<volume> is a file, or a piece of shared memory, that every process maps when it opens it: programs in Perl, C and PHP, and the Eyewall
web server. The size of the volume is a hard cap. When it is full, the cache evicts entries that are seldom asked for. Look-ups take no lock.

If you come from L<Cache::FastMmap>, use L<Cache::Eyewall::FastMmap>: it has the same methods and options.

=head2 Keys and values are bytes

Keys, values, metadata and tags are strings of bytes. A string with a character above 255 is an error: encode it, for instance by
C<Encode::encode_utf8>. Perl's UTF-8 flag makes no other difference: C<"\xe9"> is one byte with or without it. A reference is an error:
serialize it. An object that overloads stringification (L<overload>) is stored as its string.

Under C<-T>, data from a volume is tainted, like data from a file.

=head2 Times

All times are in seconds. They may have a fraction, which counts to the millisecond. A time of more than 126,000 years means forever. All
other numbers are whole numbers of at most 64 bits; anything else is an error.

=head2 Errors

Methods throw errors as L<Cache::Eyewall::Error>. A miss is not an error.

=head2 Processes and threads

A forked child can use the cache that its parent opened. It can't use what the parent held at that time: scalars of C<get_pinned>, claims,
flights, writers and followers. The child must not read such scalars, and calls on the other objects have no effect.

Under ithreads, each thread opens the volume itself; the objects of one thread are undefined in another. Scalars of C<get_pinned> are shared.

=head1 OPENING

=head2 open(path => PATH, ...)

Opens the volume at a path, and creates it if it doesn't exist. A process may open it several times, at no cost.

=over 4

=item size

Size of the volume in bytes, including all overhead: a hard cap. The default is 64 MiB, the minimum 512 KiB.

=item entry_bytes_max

Largest entry in bytes: 48, plus key, metadata and value. The default is a sixteenth of the size, at most 4 MiB. The maximum is a quarter of
the size.

=item entry_size_hint

Size of a typical entry in bytes, 1024 by default. It determines the first size of the index, which then adapts to what is put.

=item mode, group

Permission bits of a new volume, 0600 by default; the umask doesn't apply. And its group, by name or number. Readers trust every user who can
write the volume.

=item lock_deadline

How long a call waits for a stopped process, or for another process's claim. The default is one second. Perl's signal handlers run after the
wait.

=item tier_bytes, tier_folder

For a volume on a disk: the maximum size of a tier, which is shared memory that holds copies of hot entries; and the folder of the tier.

=item put_aside_broken

If true, a broken file is renamed to F<NAME.broken-SECONDS>, and a new volume takes its place. A file is broken if it is empty, shorter than
its header says, or has a damaged header. Without this option, opening such a file throws C<corrupt>.

=item verify_hits

If true, the checksum of each value is verified before the value is returned. A damaged value is removed, and is a miss. Each look-up then
reads the whole value.

=item fleet

If true, the volume belongs to a fleet: purges wait beside it, in F<NAME.purges>, until C<eyewall fleet agent> or C<eyewall serve> passes them on
to other machines.

=item must_exist, read_only, secure_erase, survive_sigbus, clear_unclean

True or false; F<eyewall.h> explains them.

=back

The creation of a volume fixes its size, C<entry_bytes_max> and C<entry_size_hint>. Opening it later with other values is an error. Opening it
without them accepts the volume as it is.

=head2 anonymous(...)

Creates a volume without a name, in shared memory. This process shares it with the processes that it forks.

=head2 close

Closes the volume; so does the end of the object. Pinned and claimed entries stay until they are freed.

=head1 LOOKING UP

=head2 get(KEY)

Returns the value, or undef.

=head2 peek(KEY)

Like C<get>, but the look-up doesn't keep the entry from eviction, and the statistics don't count it.

=head2 get_pinned(KEY)

Returns a reference to a scalar whose bytes lie in the volume, not in a copy; or undef. The scalar is read-only. Its bytes can't change or be
evicted while it exists, so don't keep it for long. An assignment (C<< my $copy = $$page >>) copies the bytes; C<print $$page>,
C<length $$page> and C<< for ($$page) { ... } >> don't. With C<survive_sigbus>, bytes that the volume loses read as zeros, and every later call
on the cache throws an error.

    my $page = $cache->get_pinned('/about');
    print length $$page if $page;

=head2 get_many(KEY, ...)

Returns the values of many keys, with undef for a miss. It is faster than one call for each key.

=head2 lookup(KEY)

Returns all that is known about an entry, as a reference to a hash, or undef. The hash has C<value>, C<key>, C<metadata>, C<tags> (an array),
C<serial>, C<created> (seconds since 1970), C<ttl_left> and C<usable_left> (undef: until it is evicted), C<reason>, and C<state>: C<fresh>,
C<stale> or C<negative>.

=head2 contains(KEY)

Returns whether there is a valid entry. It doesn't keep the entry from eviction.

=head2 keys

Returns the keys of all valid entries, which may be many.

=head2 walk(all => BOOL)

Begins an iteration over all valid entries; with C<all>, over stale and negative entries, too. Its method C<next> returns what C<lookup>
returns, and undef at the end.

    my $walk = $cache->walk;
    while (my $entry = $walk->next) {
        print "$entry->{key}: ", length $entry->{value}, "\n";
    }

=head1 CHANGING

All methods that put have these options:

=over 4

=item ttl

Time to live. Without it, the entry is valid until it is evicted.

=item stale

How long C<lookup> and C<fill> may use the entry after its time to live. The default is 0: not at all.

=item metadata

Up to 65,535 bytes of your own, which C<lookup> returns.

=item tags

A reference to an array of up to 32 tags, each of 1 to 255 bytes of UTF-8. C<purge_tag> removes all entries with a tag.

=item begun_in

The result of C<now> from before your code began to make the value. The value then counts as older than every purge since.

=back

=head2 put(KEY, VALUE, ...)

Stores a value, and returns its serial: a number that identifies this version of the entry.

=head2 add(KEY, VALUE, ...)

Stores a value if there is no valid entry. Returns the serial, or undef if there was an entry.

=head2 replace(KEY, SERIAL, VALUE, ...)

Stores a value if the entry still has this serial. Returns the new serial, or undef if the entry has another serial or is gone.

=head2 put_negative(KEY, REASON, ...)

Stores a negative entry: there is nothing under this key. REASON is a number up to 65,535 that says why; C<lookup> returns it.

=head2 remove(KEY)

Removes the entry, and returns whether there was one.

=head2 remove_if(KEY, SERIAL)

Removes the entry if it has this serial, and returns whether it did.

=head2 touch(KEY, ...)

Gives an entry new times and metadata, by C<ttl>, C<stale>, C<metadata> and C<if_serial>. The value stays. Returns whether there was an entry.

=head2 increment(KEY, BY, ...)

Adds BY to a counter, and returns the sum. BY is 1 by default, but you must give it if options follow. The options are those of a put, for a
new counter, and C<start>, C<min> and C<max>. A counter is an entry of eight bytes, which C<unpack 'q<', $cache-E<gt>get(KEY)> reads.

=head2 purge_tag(TAG, ...), purge_prefix(PREFIX, ...), purge_all(...)

Purges all entries with this tag, all entries whose keys begin with this prefix, or all entries. With C<< soft => 1 >> they become stale. A
purge takes microseconds, however many entries it applies to.

=head2 clear

Removes all entries, and returns how many there were.

=head2 now

Returns the present moment, for C<begun_in>.

=head2 sweep, sync

C<sweep> removes purged and expired entries, and returns how many. C<sync> writes everything to storage. You never have to call them.

=head1 CHANGES IN SEVERAL CALLS

=head2 claim(KEY)

Returns an object that holds the right to change a key, over all processes. It waits for other claims up to C<lock_deadline>. The claim ends
with C<put>, C<remove>, C<end>, or when the object is freed. Plain puts and removes don't wait for it: they supersede it.

    my $claim = $cache->claim('log');
    $claim->put(($claim->value // '') . "one more line\n");

C<value> returns the value that the claim found, or undef. C<put(VALUE, ...)> returns the serial. It returns undef, and stores nothing, if
another caller has put, removed or purged the entry since. C<remove> likewise returns whether it removed the entry.

=head2 fill(KEY, CODE, ...)

Returns the value. If there is none, one process calls CODE with the key, and the others wait for its result. CODE returns a value and options
of a put, or undef if there is nothing. If CODE dies, C<fill> dies and stores nothing, and one of the waiting processes calls its CODE.
C<deadline> is how long to wait, 10 seconds by default; then C<fill> throws C<busy>. With C<use_stale>, C<fill> returns a stale value while
another process makes a new one.

    my $page = $cache->fill('/news', sub { return "news of $_[0]", ttl => 60, stale => 600 }, use_stale => 1);

=head2 fill_begin(KEY, DEADLINE, USE_STALE)

Does the same in two steps. It returns a state and its data: C<fresh> or C<stale> and the value; C<negative> and the reason; or C<ours> and an
object. The holder of that object has to make the entry. It calls C<store(VALUE, ...)>; C<remember(REASON, TTL)> if there is nothing; or
C<end> to give up.

=head1 PIECE BY PIECE

=head2 writer(KEY, ...)

Begins an entry whose value comes piece by piece, and returns an object. Look-ups don't find the entry before it is committed. Like a claim, the
writer keeps other changes of the key waiting. The options are those of a put, and C<length>: the number of bytes that will come, if you know
it. If it is right, nothing is copied twice.

    my $writer = $cache->writer('/report', ttl => 3600, tags => ['reports']);
    $writer->write("line $_\n") for 1 .. 1000;
    defined $writer->commit or warn 'another process has stored another report meanwhile';

C<write(BYTES)> takes all of the bytes, or dies. After the errors C<busy> and C<pinned> you may write the same piece again; after any other
error the entry can't be committed. C<commit> publishes the entry and returns its serial. It returns undef, and stores nothing, if another
caller has put, removed or purged the entry since. C<abort> gives up; so does the end of the object, for instance when your code dies. The
former entry stays until the commit. In a forked child of the process that began the writer, C<write> and C<commit> throw C<interrupted>, and
the end of the object has no effect.

=head2 follow(KEY)

Returns an object that reads what any process is writing to this key, from the first byte on; or undef if nobody is writing it.

C<< read(deadline => SECONDS) >> returns the next bytes, up to 65,536, or undef at the end of a stored entry. It waits for up to C<deadline>, 10
seconds by default. Then it throws C<busy>, and you may call it again. The error C<interrupted> says that the entry will not come; what you
have read is part of no entry. C<metadata> returns the metadata of the coming entry, and C<end> stops reading.

    if (my $follower = $cache->follow('/report')) {
        while (defined(my $bytes = $follower->read(deadline => 30))) {
            print $bytes;
        }
    }

=head1 STATISTICS

=head2 stats

Returns all statistics of the volume, as a reference to a hash: present sizes, and counts since its creation. F<eyewall.h> explains them.

=head2 size, entry_bytes_max

Return the size of the volume, and of its largest possible entry, in bytes.

=head2 library_version

Returns the version of libeyewall.

=head1 SEE ALSO

L<Cache::Eyewall::FastMmap>, L<Cache::Eyewall::Error>

=cut
