# tidy: long because a third of it is the manual, which users look for in one file.
package Cache::Eyewall::FastMmap;
use v5.16;
use warnings;

our $VERSION = '0.001';

# The version of Cache::FastMmap whose documented interface this is.
use constant INTERFACE => '1.63';

use Cache::Eyewall;
use parent 'Cache::Eyewall::FastMmap::Callbacks';
use Cache::Eyewall::FastMmap::Codec;
use Cache::Eyewall::FastMmap::Options;
use File::Spec;
use Scalar::Util qw(blessed refaddr weaken);

use constant {
    # As in flagged.h.
    DIRTY => 16,
    # Attempts to claim a key. Each waits for the lock deadline of the volume, one second.
    TRIES => 60,
    # Mode of a new file.
    PERMISSIONS => 0640,
    # The key of the statistics from which get_statistics counts.
    COUNTED_FROM => "\0\2counted from",
};

# Caches that must write back or empty before global destruction.
my %live;

sub CLONE_SKIP { 1 }

# Makes Cache::FastMmap->new, in code that can't be edited, return a cache of this class.
sub import {
    my ($class) = @_;
    return if Cache::FastMmap->isa($class);
    Cache::Eyewall::Error->argument('Cache::FastMmap is loaded already: load Cache::Eyewall::FastMmap before it, '
            . 'for instance by perl -MCache::Eyewall::FastMmap') if $INC{'Cache/FastMmap.pm'};
    $INC{'Cache/FastMmap.pm'} = __FILE__;
    no warnings 'once';
    @Cache::FastMmap::ISA     = ($class);
    $Cache::FastMmap::VERSION = INTERFACE;
    return;
}

sub new {
    my $class = shift;
    my %options = ref $_[0] eq 'HASH' ? %{ $_[0] } : @_;
    my $file = $options{share_file};
    Cache::Eyewall::Error->argument('share_file is a reference: give the path of a file') if ref $file;
    $file = File::Spec->catfile(File::Spec->tmpdir, join '-', 'sharefile', $$, time, int rand 1e9) unless defined $file && length $file;
    my $write_action = $options{write_action} // 'write_through';
    Cache::Eyewall::Error->argument("no write_action $write_action; give write_through or write_back")
        unless $write_action eq 'write_through' || $write_action eq 'write_back';

    my $self = bless {
        share_file      => $file,
        pid             => $$,
        unlink_on_exit  => $options{unlink_on_exit} // !-e $file,
        codec           => Cache::Eyewall::FastMmap::Codec->new(\%options),
        expire_time     => Cache::Eyewall::FastMmap::Options::seconds($options{expire_time}, 'expire_time'),
        tombstone_time  => Cache::Eyewall::FastMmap::Options::seconds($options{tombstone_expire_time} // $options{expire_time}, 'tombstone_expire_time'),
        has_tombstones  => defined $options{tombstone_expire_time},
        is_write_back   => $write_action eq 'write_back' && defined $options{write_cb},
        dirty           => [],
        dirty_bytes     => 0,
        dirty_of        => $$,
        left            => {},
        busy            => {},
        map { $_ => $options{$_} } qw(context read_cb write_cb delete_cb cache_not_found allow_recursive empty_on_exit enable_stats),
    }, ref $class || $class;
    $self->_open(\%options);
    $self->_note_shortcut;
    weaken($live{ refaddr $self } = $self) if $self->{empty_on_exit} || $self->{is_write_back};
    return $self;
}

sub _open {
    my ($self, $options) = @_;
    my $size = Cache::Eyewall::FastMmap::Options::volume_bytes($options);
    my @how = (
        path => $self->{share_file}, size => $size, entry_bytes_max => Cache::Eyewall::FastMmap::Options::entry_bytes_max($size),
        mode => $options->{permissions} // PERMISSIONS, survive_sigbus => $options->{survive_sigbus},
    );
    # Keep the caller's $@.
    local $@;
    $self->{cache} = eval { Cache::Eyewall->open(@how) };
    if (!$self->{cache}) {
        # With init_file, any file is replaced.
        die $@ unless $options->{init_file} && blessed $@ && $@->isa('Cache::Eyewall::Error')
            && $@->name =~ /^(?:foreign|version|corrupt|options_differ)\z/;
        unlink $self->{share_file};
        $self->{cache} = Cache::Eyewall->open(@how);
    }
    $self->clear if $options->{init_file};
    $self->{dirty_bytes_max} = $size * Cache::Eyewall::FastMmap::Callbacks::DIRTY_PART;
    $self->{large_bytes}     = $size * Cache::Eyewall::FastMmap::Callbacks::LARGE_PART;
    return;
}

# Tells FastMmap.xsh what get and set may do without calling Perl.
sub _note_shortcut {
    my ($self) = @_;
    my $codec = $self->{codec};
    $self->{sets_plainly} = !$self->{write_cb} && !$self->{has_tombstones};
    $self->_shorten($self->{cache}, !$self->{read_cb}, $self->{sets_plainly}, !$codec || $codec->keeps_strings, !$codec,
        $codec ? $codec->serializer_alone : (undef, undef), $self->{expire_time});
    return;
}

# The method get, unless FastMmap.xsh does it alone.
sub _get {
    my ($self, $key, $options) = @_;
    my $value;
    if ($self->{read_cb}) {
        $value = $self->_read($key);
    } else {
        $value = _fetch($self->{cache}, $key, my $flags);
        $value = $self->_decoded($value, $flags) if $flags;
    }
    if (ref $options && ref $options->{modseq}) {
        my ($state, undef, undef, undef, $modseq) = _describe($self->{cache}, $key);
        ${ $options->{modseq} } = defined $state && $state eq 'fresh' ? $modseq : undef;
    }
    return $value;
}

sub get_and_set {
    my ($self, $key, $change) = @_;
    Cache::Eyewall::Error->argument('get_and_set needs a reference to a sub that returns the new value') unless ref $change;
    my ($claim, $flags, $bytes, $expire_on) = $self->_claimed($key);
    local $self->{busy}{ $key // '' } = 1;
    # An expired value that still waits is written back before read_cb reads it.
    $self->_write_back_claimed($key) if $self->{is_write_back} && !defined $flags;
    my $value = defined $flags ? $self->_decoded($bytes, $flags) : $self->{read_cb} ? $self->{read_cb}->($self->{context}, $key) : undef;
    my @changed = $change->($key, $value, { expire_on => $expire_on });
    if (!@changed) {
        # The value of read_cb is stored, as by get.
        $self->_put($claim, $key, $value, $self->_expiry, 0) if $claim && !defined $flags && defined $value;
        return wantarray ? ($value, 0) : $value;
    }
    my ($new, $options) = @changed;
    Cache::Eyewall::Error->argument('options must be a hash reference: the sub of get_and_set returned something else after the new value')
        if defined $options && ref $options ne 'HASH';
    $self->_look_for_room if $self->{is_write_back};
    my $is_stored = $self->_set_claimed($claim // $self->{cache}, $key, $new, $options);
    return wantarray ? ($new, $is_stored) : $new;
}

sub get_and_remove {
    my ($self, $key) = @_;
    my ($claim, $flags, $bytes) = $self->_claimed($key);
    local $self->{busy}{ $key // '' } = 1;
    my $value = defined $flags ? $self->_decoded($bytes, $flags) : $self->{read_cb} ? $self->{read_cb}->($self->{context}, $key) : undef;
    $self->_deleted($key);
    my $was_there = defined $flags || defined $value;
    $claim->remove if $claim;
    return wantarray ? ($value, $was_there ? 1 : 0) : $value;
}

sub exists {    ## no critic (it is a method)
    my ($self, $key) = @_;
    return _exists($self->{cache}, $key) ? 1 : 0;
}

sub remove {
    my ($self, $key, $options) = @_;
    my $modseq = ref $options eq 'HASH' ? $options->{modseq} : undef;
    $self->_deleted($key);
    return $self->_bury($key, $modseq, $options) if defined $modseq;
    # Removing a tombstone counts, too.
    my ($state) = _describe($self->{cache}, $key);
    return _remove($self->{cache}, $key) || defined $state && $state eq 'negative' ? 1 : 0;
}

sub expire {
    my ($self, $key) = @_;
    return _remove($self->{cache}, $key) ? 1 : 0 unless $self->{is_write_back};
    my ($state) = _describe($self->{cache}, $key);
    # A value that write_cb didn't take stays: no other store has it.
    my $is_removed = $self->_write_back($key, 1);
    return $is_removed && defined $state && $state eq 'fresh' ? 1 : 0;
}

sub clear {
    my ($self) = @_;
    my $base = $self->{enable_stats} ? $self->{cache}->peek(COUNTED_FROM) : undef;
    $self->{cache}->clear;
    $self->{cache}->put(COUNTED_FROM, $base) if defined $base;
    @$self{qw(dirty dirty_bytes left)} = ([], 0, {});
    return;
}

sub purge {
    my ($self) = @_;
    $self->{cache}->sweep;
    return;
}

sub empty {
    my ($self, $only_expired) = @_;
    if (!$self->{is_write_back}) {
        $only_expired ? $self->purge : $self->clear;
        return;
    }
    for my $entry (_entries($self->{cache}, 0, 1)) {
        next if $only_expired && !$entry->{is_stale};
        # A value that was set meanwhile stays.
        $entry->{bits} & DIRTY ? $self->_write_back($entry->{key}, 1) : _remove_if($self->{cache}, $entry->{key}, $entry->{serial});
    }
    return;
}

sub get_keys {
    my ($self, $mode) = @_;
    $mode ||= 0;
    return _entries($self->{cache}, 1, 0) if $mode == 0;
    my @entries = _entries($self->{cache}, 0, 0);
    for my $entry (@entries) {
        my ($bits, $value) = CORE::delete @$entry{qw(bits value)};
        CORE::delete @$entry{qw(serial is_stale)};
        $entry->{flags} = $bits & DIRTY ? 1 : 0;
        $entry->{value} = $self->_decoded($value, $bits) if $mode == 2;
    }
    return @entries;
}

sub get_statistics {
    my ($self, $clears) = @_;
    return (0, 0) unless $self->{enable_stats};
    my $stats = $self->{cache}->stats;
    my @now = ($stats->{hits} + $stats->{misses}, $stats->{hits});
    my $base = $self->{cache}->peek(COUNTED_FROM);
    my @base = defined $base ? unpack "QQ", $base : (0, 0);
    $self->{cache}->put(COUNTED_FROM, pack 'QQ', @now) if $clears;
    return ($now[0] - $base[0], $now[1] - $base[1]);
}

sub multi_get {
    my ($self, $page, $keys) = @_;
    my %found;
    for my $key (@$keys) {
        my $value = _fetch($self->{cache}, $key, my $flags, $page);
        next unless defined $flags;
        $found{$key} = $flags ? $self->_decoded($value, $flags) : $value;
    }
    return \%found;
}

sub multi_set {
    my ($self, $page, $values, $options) = @_;
    my $expire_on = $self->_expiry($options);
    my $all = 1;
    for my $key (keys %$values) {
        my ($bytes, $flags) = $self->{codec} ? $self->{codec}->encode($values->{$key}) : ($values->{$key}, 0);
        $self->_make_room(length($bytes // '')) if $self->{is_write_back};
        $all = $self->_refused unless _store($self->{cache}, $key, $bytes, $flags, $expire_on, undef, $page);
    }
    return $all;
}

# Why the last failed set of this cache failed; undef if none did.
sub last_refusal { $_[0]{refusal} }

# The work that a cache does before global destruction.
sub _finish {
    my ($self) = @_;
    return unless $self->{cache};
    if ($self->{empty_on_exit} && $self->{pid} == $$) {
        eval { $self->empty; 1 } or warn $@;
    }
    # A forked child writes back only its own values.
    if ($self->{is_write_back}) {
        eval { $self->_write_back_rest; 1 } or warn $@;
    }
    return;
}

sub DESTROY {
    my ($self) = @_;
    local ($@, $!, $?);
    CORE::delete $live{ refaddr $self };
    $self->_finish unless ${^GLOBAL_PHASE} eq 'DESTRUCT';
    # In global destruction, Perl may have freed the volume before it calls this.
    my $cache = CORE::delete $self->{cache};
    $cache->close if $cache;
    unlink $self->{share_file} if $self->{unlink_on_exit} && $self->{pid} == $$;
    return;
}

END {
    $_ and $_->_finish for values %live;
}

# Decodes a value of a claim or a look-up.
sub _decoded {
    my ($self, $bytes, $flags) = @_;
    return Cache::Eyewall::FastMmap::Codec::decode($self->{codec}, $bytes, $flags);
}

# The expiry time from the options of a set; 0 means never.
sub _expiry {
    my ($self, $options) = @_;
    my $given = $options;
    if (ref $options) {
        return Cache::Eyewall::FastMmap::Options::second($options->{expire_on}) if defined $options->{expire_on};
        $given = $options->{expire_time};
    }
    return Cache::Eyewall::FastMmap::Options::expiry($given) if defined $given;
    return $self->{expire_time} && time + $self->{expire_time};
}

sub _is_over { $_[0] && $_[0] <= time }

# A claim, and the result of push_known (flagged.h); undef for a key that is too long.
sub _claimed {
    my ($self, $key) = @_;
    Cache::Eyewall::Error->throw(argument => 'a callback changes the key that it was called for: let it return the new value instead')
        if $self->{busy}{ $key // '' };
    for (1 .. TRIES) {
        my @claimed = _claim($self->{cache}, $key);
        return @claimed if @claimed;
    }
    Cache::Eyewall::Error->throw(busy => 'gave up after a minute, since another process keeps this key: ' . _message());
}

# Stores a value by the cache, a claim or a flight.
sub _put {
    my ($self, $into, $key, $value, $expire_on, $flags, $modseq) = @_;
    my ($bytes, $codec_flags) = $self->{codec} ? $self->{codec}->encode($value) : ($value, 0);
    $self->_make_room(length($bytes // '')) if $self->{is_write_back};
    my $is_stored = _store($into, $key, $bytes, $flags | $codec_flags, $expire_on, $modseq) ? 1 : $self->_refused;
    $self->_note_dirty($key, length($bytes // '')) if $is_stored && $flags & DIRTY;
    return $is_stored;
}

# The method set, unless FastMmap.xsh does it alone.
sub _set {
    my ($self, $key, $value, $options) = @_;
    if ($self->{sets_plainly} && !defined $options) {
        my ($bytes, $flags) = $self->{codec} ? $self->{codec}->encode($value) : ($value, 0);
        return 1 if _store($self->{cache}, $key, $bytes, $flags, $self->{expire_time} && time + $self->{expire_time});
        return $self->_refused;
    }
    $self->_note_tombstones if ref $options && defined $options->{modseq};
    $self->_look_for_room if $self->{is_write_back};
    my $is_written_through = $self->{write_cb} && !$self->_defers;
    if (!$is_written_through && !$self->{has_tombstones} || $self->{busy}{ $key // '' }) {
        return $self->_set_claimed($self->{cache}, $key, $value, $options);
    }
    my ($claim) = $self->_claimed($key);
    local $self->{busy}{ $key // '' } = 1;
    return $self->_set_claimed($claim // $self->{cache}, $key, $value, $options);
}

# Sets a value by a claim; or by the cache, if no other process has to wait.
sub _set_claimed {
    my ($self, $into, $key, $value, $options) = @_;
    my $expire_on = $self->_expiry($options);
    my $modseq    = ref $options ? $options->{modseq} : undef;
    return 0 if $self->{has_tombstones} && $self->_is_outdated($key, $modseq);
    my $is_over = _is_over($expire_on);
    my $is_dirty = $self->_defers && !$is_over;
    if ($self->{write_cb} && !$is_dirty) {
        # empty tries a failed write again.
        $is_dirty = !$self->_written($key, $value, $expire_on) && $self->{is_write_back} && !$is_over;
    }
    if ($is_over) {
        _remove($self->{cache}, $key);
        return 1;
    }
    my $is_stored = $self->_put($into, $key, $value, $expire_on, $is_dirty ? DIRTY : 0, $modseq);
    if ($self->{is_write_back} && !$is_stored) {
        # The cache refused the value. If the store behind it took the value, the cached one is outdated.
        _remove($self->{cache}, $key) if !$is_dirty || $self->_written($key, $value, $expire_on);
    } elsif ($is_dirty && $self->{is_short} && !_describe($self->{cache}, $key)) {
        # Other processes filled the cache meanwhile, and evicted the value.
        $self->_written($key, $value, $expire_on);
    }
    return $is_stored;
}

# Whether a value is outdated. Without a modseq, it is older than any tombstone, and newer than any value.
sub _is_outdated {
    my ($self, $key, $modseq) = @_;
    my ($state, undef, undef, undef, $known) = _describe($self->{cache}, $key);
    return 0 if !defined $state || $state eq 'stale';
    return $state eq 'negative' unless defined $modseq;
    return defined $known && $modseq < $known;
}

# Removes an entry and leaves a tombstone of the highest known modseq.
sub _bury {
    my ($self, $key, $modseq, $options) = @_;
    $self->_note_tombstones;
    $self->_make_room(0) if $self->{is_write_back};
    my ($claim) = $self->_claimed($key);
    # The key is too long.
    return 0 unless $claim;
    my ($state, undef, undef, undef, $known) = _describe($self->{cache}, $key);
    $state //= '';
    $modseq = $known if $state eq 'negative' && defined $known && $known > $modseq;
    my $has_time = defined $options->{expire_time} || defined $options->{expire_on};
    my $expire_on = $has_time ? $self->_expiry($options) : $self->{tombstone_time} && time + $self->{tombstone_time};
    _leave_tombstone($self->{cache}, $key, $modseq, $expire_on);
    return $state eq 'fresh' ? 1 : 0;
}

sub _note_tombstones {
    my ($self) = @_;
    return if $self->{has_tombstones};
    $self->{has_tombstones} = 1;
    $self->_note_shortcut;
    return;
}

# Remembers why a value was refused. Warns once per cache only.
sub _refused {
    my ($self) = @_;
    $self->{refusal} = _message();
    require Carp;
    Carp::carp("not stored: $self->{refusal}") unless $self->{has_told}++;
    return 0;
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap - Cache::Eyewall with the interface of Cache::FastMmap

=head1 SYNOPSIS

    use Cache::Eyewall::FastMmap;

    my $cache = Cache::Eyewall::FastMmap->new(share_file => '/dev/shm/people', cache_size => '64m', expire_time => '10m');
    $cache->set(ann => { name => 'Ann', age => 7 });
    my $ann = $cache->get('ann');
    $cache->get_and_set(visits => sub { my ($key, $count) = @_; return ($count // 0) + 1 });

Where the code can't be edited:

    perl -MCache::Eyewall::FastMmap server.pl

=head1 DESCRIPTION

This class has the documented methods and options of L<Cache::FastMmap> 1.63, on a volume that other languages share. C<use
Cache::Eyewall::FastMmap> also takes over the name: from then on C<< Cache::FastMmap->new >> returns an object of this class.
C<use Cache::Eyewall::FastMmap ()> doesn't.

Advantages:

=over 4

=item *

Look-ups take no lock, and no lock is held while your code runs. C<get_and_set> and C<read_cb> lock one key, not a page of keys.
Callbacks may use the cache.

=item *

A value may be as large as a quarter of the cache, at most 2 GiB.

=item *

Any number of processes may open the file at the same time. When one is killed, the others continue, with all entries.

=item *

The hit rate is higher than that of an LRU cache.

=back

Differences:

=over 4

=item *

A file of Cache::FastMmap, or a file of another size, is an error: remove the file, or give C<init_file>.

=item *

The size is that of the file, including all overhead. The minimum is 512 KiB.

=item *

C<write_back>: the cache can't call C<write_cb> for an evicted value, so it writes values before they can be evicted. See
L</WRITING BACK>.

=item *

A callback can't read or change the key that it was called for: that is an error, not a deadlock. With C<allow_recursive> it may
read.

=item *

An invalid time or size in the options of C<new> is an error. So is an unknown serializer or C<write_action>. A C<set> with an
invalid time succeeds, and the value expires at once, as in Cache::FastMmap; this class also warns. Values that other languages
stored are strings of bytes.

=back

Differences that the tests of Cache::FastMmap show:

=over 4

=item *

Pages (F<1.t>, F<13.t>). In Cache::FastMmap, a page limits the size of a value. Here the whole cache does, so a value larger than
a page is stored.

=item *

The lock of a page (F<11.t>). In Cache::FastMmap, a callback that uses the cache dies with C<already locked>. Here it may use the
cache.

=item *

C<last_access> (F<23.t>). In Cache::FastMmap, C<get> renews it. Here it is the time of the C<set>, since look-ups write nothing.

=item *

When C<write_cb> is called (F<7.t>). Cache::FastMmap calls it at eviction; this class calls it earlier. See L</WRITING BACK>.

=item *

Undocumented functions: C<_set_time_override> (F<2.t>, F<22.t>, F<23.t>, F<25.t>), C<repaired_pages>, and those that begin with
C<fc_> (F<26.t>).

=back

On 2026-11-24, 14 of the 26 test files of Cache::FastMmap passed unchanged: 3 to 6, 8 to 10, 12, 14 to 18 and 20. Files 19 and 21
skip themselves without a module or 9 GiB of temporary space; both passed when these were present. Files 2, 22 and 25 passed with
a C<_set_time_override> that waits for the time. Six files fail: 1, 7, 11, 13 and 23 because of the differences above, and 26,
which calls functions that don't exist here. Our copy of file 24 does not compile.

=head1 OPTIONS OF new

Pairs, or a reference to a hash. Unknown options are ignored.

=over 4

=item share_file

The path of the volume. The default is a new name in the temporary directory; C<< $cache->{share_file} >> has it.

=item init_file

Removes all entries. Replaces the file if it is not a volume, or has another shape.

=item cache_size; page_size, num_pages

The size in bytes, or with a unit, as in C<64m>; or the size of C<num_pages> pages. The default is 89 pages of 64 KiB.

=item permissions

Permission bits of a new file; the umask doesn't apply. The default is 0640.

=item expire_time

How long values are valid: seconds, C<10m>, C<2h>, C<1d> or C<never>. Seconds are whole numbers, as in all times of this class.

=item serializer

C<storable> (the default), C<json>, C<sereal>, or a reference to an array of two subs. The first turns a reference to the value
into bytes, the second turns bytes into a reference to the value. With C<''>, all values are strings. The named serializers store
a string as it is; your own subs get strings, too.

=item compressor

C<zlib>, C<lz4>, C<snappy>, or a reference to an array of two subs, which compress and uncompress bytes.

=item raw_values, compress

Older names of C<< serializer => '' >> and C<< compressor => 'zlib' >>.

=item enable_stats

Enables C<get_statistics>. It costs nothing.

=item context, read_cb, write_cb, delete_cb, cache_not_found, write_action, allow_recursive

Callbacks to the store behind the cache. All get the context and the key; C<write_cb> also gets the value and its expiry time. If
C<write_cb> or C<delete_cb> dies, the class warns. If C<read_cb> dies, C<get> dies.

=item empty_on_exit, unlink_on_exit

What to do when the object ends in the process that made it. C<unlink_on_exit> is true by default if the file didn't exist before.

=item tombstone_expire_time

How long a tombstone is kept, unless C<remove> gives a time. The default is C<expire_time>. See L</TOMBSTONES AND MODSEQS>.

=item survive_sigbus

An addition of this class: if the file is truncated or its storage fails, methods throw the error C<failed>, and the process is
not killed.

=item catch_deadlocks

Accepted and ignored: no lock is held while callbacks run, so there is no deadlock to catch.

=back

=head1 METHODS

=over 4

=item get(KEY, [OPTIONS])

Returns the value, or undef. A key that is too long is a miss.

=item set(KEY, VALUE, [OPTIONS])

Stores a value, and returns whether it did: false if the key or the value is too large. The third argument is an expiry time such
as C<10m>, or a reference to a hash with C<expire_time>, C<expire_on> (seconds since 1970; 0: never) or C<modseq>.

=item get_and_set(KEY, CODE)

Calls CODE once, with the key, its value and a hash with C<expire_on>, and stores the result. Meanwhile the key is locked against
other calls of C<get_and_set>. CODE returns a value and a reference to a hash of options as in C<set>; or an empty list, to store
nothing. A plain C<set> of another process meanwhile counts as later. Returns the new value; in list context, also whether it was
stored.

=item get_and_remove(KEY)

Removes the value and returns it.

=item exists(KEY), remove(KEY, [OPTIONS]), expire(KEY)

Return whether there was a value. C<remove> also deletes a tombstone, and is true then. C<remove> calls C<delete_cb>, C<expire>
doesn't.

=item multi_get(PAGE_KEY, KEYS), multi_set(PAGE_KEY, VALUES, [OPTIONS])

Read or store several values under a page key; they take references to an array of keys, or to a hash. The same key names
different values under different page keys, and without one.

=item get_keys(MODE)

Returns all keys. With mode 1 it returns references to hashes with C<key>, C<last_access> (the time of the set), C<expire_on>,
C<flags> (1: to be written back) and, if there is one, C<modseq>; with mode 2 also C<value>.

=item get_statistics(CLEAR)

Returns how many reads there were, and how many of them found a value, over all processes.

=item clear, purge, empty(ONLY_EXPIRED)

C<clear> removes all values. C<purge> removes expired ones. C<empty> writes back, then removes, all values or only expired ones.

=item last_refusal

Returns why a C<set> failed, in a sentence. The first failure of a cache object also warns with it.

=back

=head1 WRITING BACK

With C<< write_action => 'write_back' >>, C<set> stores a value and calls C<write_cb> later. Until then the value lies in the cache, marked as not written.

A process writes its values back after 1,000 of them, or after a 32nd of the cache; when it calls C<empty> or C<expire>; and when
its cache object ends.

C<set> defers the write only while the cache has plenty of room: while less than a quarter of its bytes and of its index are in
use. The process that crosses this limit writes back all unwritten values, including those of other processes. From then on C<set>
calls C<write_cb> at once, until there is room again. Before and after it stores a value, C<set> reads how much all processes have
put into the cache. So each process notices the lack of room by itself, and a value that is evicted during its own C<set> is
written before C<set> returns.

Before C<set> stores a value larger than a 64th of the cache, it writes back all unwritten values. If the cache refuses a value,
C<set> writes it at once and removes the older value of its key.

The unwritten values of a killed process stay in the cache. The next process that calls C<empty>, or crosses the limit, writes
them. Only processes with C<write_back> and a C<write_cb> write back. Let no other process put values into the same file: what
such a process evicts is lost, as in Cache::FastMmap.

=head1 TOMBSTONES AND MODSEQS

Use these if each value in your store has a number that grows with each change. C<< remove($key, { modseq => 12 }) >> leaves a
tombstone: a note that change 12 made older values invalid. Then C<< set($key, $value, { modseq => 11 }) >> returns false, and so
does a C<set> without a number. A C<set> with 12 or above stores its value. A value with a number never replaces one with a higher
number. C<< get($key, { modseq => \my $modseq }) >> returns the number.

A process respects tombstones only if its cache has the option C<tombstone_expire_time>, or has used a C<modseq>: give all
processes the option.

=cut
