package Cache::Eyewall::FastMmap::Callbacks;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;

use constant {
    # As in flagged.h.
    DIRTY => 16,
    # Length and number of waits for the process that makes a value. Perl's signal handlers run between the
    # waits.
    WAIT_MS => 1000,
    WAITS   => 10,
    # A process writes back its own values after this many values, or this part of the volume.
    DIRTY_MAX  => 1000,
    DIRTY_PART => 1 / 32,
    # Before a larger part of the volume is stored as one value, all values are written back.
    LARGE_PART => 1 / 64,
    # An eviction before the write would lose the value. So values are deferred only while less than this part
    # of the index and of the bytes is used. Index buckets overflow from some 40 % on.
    USED_PART => 1 / 4,
    # Deferring ends when less than this part of the volume remains of USED_PART. So a process needs to read the
    # volume's statistics only after this many puts.
    LEFT_PART => 1 / 64,
    # While room is short, a process checks again after puts of this part, and writes all unwritten values back:
    # other processes may have found room meanwhile, for instance after a clear. The part is smaller than the
    # small ring at its smallest, so no value passes through that ring between two checks.
    AGAIN_PART => 1 / 32,
};

# The value of read_cb for a missing key. One process at a time calls read_cb for a key.
sub _read {
    my ($self, $key) = @_;
    my $name = $key // '';
    if ($self->{busy}{$name}) {
        my $value = Cache::Eyewall::FastMmap::_fetch($self->{cache}, $key, my $flags);
        return $flags ? $self->_decoded($value, $flags) : $value if defined $flags;
        Cache::Eyewall::Error->throw(argument => 'a callback reads the key that it was called for: give the option allow_recursive to permit that')
            unless $self->{allow_recursive};
        return scalar $self->{read_cb}->($self->{context}, $key);
    }
    my @known;
    for (1 .. WAITS) {
        last if @known = Cache::Eyewall::FastMmap::_fill($self->{cache}, $key, WAIT_MS);
    }
    my ($flight, $bytes, $flags) = @known;
    return $flags ? $self->_decoded($bytes, $flags) : $bytes if defined $flags;
    # There is no flight if others took too long, or if a newer change is known. Then the value is returned, not
    # stored.
    local $self->{busy}{$name} = 1;
    $self->_write_back_claimed($key) if $self->{is_write_back};
    my $value = $self->{read_cb}->($self->{context}, $key);
    $self->_put($flight, $key, $value, $self->_expiry, 0) if $flight && (defined $value || $self->{cache_not_found});
    return $value;
}

# A callback that reports a change doesn't undo the change when it dies.
sub _written {
    my ($self, $key, $value, $expire_on) = @_;
    local $@;
    return 1 if eval { $self->{write_cb}->($self->{context}, $key, $value, $expire_on); 1 };
    warn "write_cb: $@";
    return 0;
}

sub _deleted {
    my ($self, $key) = @_;
    return unless $self->{delete_cb};
    local $@;
    eval { $self->{delete_cb}->($self->{context}, $key); 1 } or warn "delete_cb: $@";
    return;
}

sub _note_dirty {
    my ($self, $key, $bytes) = @_;
    # The parent writes back what it set before the fork.
    @$self{qw(dirty dirty_bytes dirty_of left)} = ([], 0, $$, {}) if $self->{dirty_of} != $$;
    push @{ $self->{dirty} }, $key;
    $self->{dirty_bytes} += $bytes;
    # Other processes may have used up the room meanwhile.
    $self->_look_for_room;
    $self->_write_back_own if $self->{is_short} || @{ $self->{dirty} } >= DIRTY_MAX || $self->{dirty_bytes} >= $self->{dirty_bytes_max};
    return;
}

# Whether set defers the call of write_cb.
sub _defers { return $_[0]{is_write_back} && !$_[0]{is_short} }

# Checks whether values can still be deferred. The cache's content grows by no more than all processes put, and that
# number is cheap to read. The volume's statistics cost a walk over its index. So they are read again only when puts
# have used up the room that they showed. Each process checks for itself, since a note in the cache could be
# evicted.
sub _look_for_room {
    my ($self) = @_;
    my ($puts, $bytes, $size) = Cache::Eyewall::FastMmap::_put_counts($self->{cache});
    my $known = $self->{room};
    my $is_known = 0;
    if ($known && $known->{size} == $size && $puts >= $known->{puts} && $bytes >= $known->{bytes}) {
        $is_known = $puts < $known->{puts_end} && $bytes < $known->{bytes_end};
        # While room is short, one check per second notices when there is room again.
        return if $is_known && (!$self->{is_short} || $known->{looked} == time);
    }
    my $stats = $self->{cache}->stats;
    my $slots_left = USED_PART * $stats->{index_slots} - $stats->{index_live};
    my $bytes_left = USED_PART * $stats->{data_bytes} - $stats->{live_bytes};
    my $was_short = $self->{is_short};
    $self->{is_short} = $slots_left < LEFT_PART * $stats->{index_slots} || $bytes_left < LEFT_PART * $stats->{data_bytes};
    ($slots_left, $bytes_left) = (AGAIN_PART * $stats->{index_slots}, AGAIN_PART * $stats->{data_bytes}) if $self->{is_short};
    $self->{room} = {
        looked => time, size => $size, puts => $puts, bytes => $bytes, puts_end => $puts + $slots_left, bytes_end => $bytes + $bytes_left,
    };
    $self->_write_back_all if $self->{is_short} && !($was_short && $is_known);
    return;
}

# Makes room before a put of this many bytes, which may evict other entries.
sub _make_room {
    my ($self, $bytes) = @_;
    $self->_look_for_room;
    $self->_write_back_all if $bytes > $self->{large_bytes};
    return;
}

# Writes back the unwritten values of all processes.
sub _write_back_all {
    my ($self) = @_;
    if ($self->{is_writing_back}) {
        $self->{is_all_due} = 1;
        return;
    }
    local $self->{is_writing_back} = 1;
    # A write_cb may call set, which may find that everything must be written again.
    for (1 .. WAITS) {
        CORE::delete $self->{is_all_due};
        my %own = map { ($_ => 1) } $self->{dirty_of} == $$ ? @{ $self->{dirty} } : ();
        @$self{qw(dirty dirty_bytes)} = ([], 0);
        for my $key (Cache::Eyewall::FastMmap::_waiting($self->{cache})) {
            $self->_write_back($key) || $own{$key} && ($self->{left}{$key} = 1);
        }
        last unless $self->{is_all_due};
    }
    return;
}

# Writes back the values that this process has set. It does nothing if it is doing so already, since write_cb may
# call set.
sub _write_back_own {
    my ($self) = @_;
    return if $self->{is_writing_back} || $self->{dirty_of} != $$;
    my $keys = $self->{dirty};
    @$self{qw(dirty dirty_bytes)} = ([], 0);
    {
        local $self->{is_writing_back} = 1;
        $self->_write_back($_) || ($self->{left}{$_} = 1) for @$keys;
    }
    # A write_cb may have called set, which found that room is short.
    $self->_write_back_all if CORE::delete $self->{is_all_due};
    return;
}

# Writes back at the end of a process. It retries keys that another process was writing, and those whose write_cb
# died.
sub _write_back_rest {
    my ($self) = @_;
    return if $self->{dirty_of} != $$;
    $self->_write_back_own;
    for my $key (keys %{ CORE::delete $self->{left} // {} }) {
        for (1 .. WAITS) {
            last if defined $self->_write_back($key);
        }
    }
    return;
}

# Writes an unwritten entry back, and removes it if `removes` is true. Returns 0 if the write failed and is due
# again; undef if another process is writing the key.
sub _write_back {
    my ($self, $key, $removes) = @_;
    my ($claim) = Cache::Eyewall::FastMmap::_claim($self->{cache}, $key) or return undef;    ## no critic (it is one value)
    return $self->_write_back_claimed($key, $removes);
}

sub _write_back_claimed {
    my ($self, $key, $removes) = @_;
    my ($state, $flags, $bytes, $expire_on, $modseq, $serial) = Cache::Eyewall::FastMmap::_describe($self->{cache}, $key);
    return 1 unless defined $state;
    if ($flags & DIRTY) {
        my $value = $self->_readable($key, $bytes, $flags) or return 0;
        $self->_written($key, $$value, $expire_on) or return 0;
    }
    # Marking the entry as written gives it another serial.
    if ($removes) {
        Cache::Eyewall::FastMmap::_remove_if($self->{cache}, $key, $serial);
    } elsif ($flags & DIRTY) {
        Cache::Eyewall::FastMmap::_clean($self->{cache}, $key, $serial, $flags, $modseq);
    }
    return 1;
}

# A reference to the value; undef if this cache can't decode it, because a cache with other options set it. That
# cache writes it.
sub _readable {
    my ($self, $key, $bytes, $flags) = @_;
    local $@;
    my $value;
    return \$value if eval { $value = $self->_decoded($bytes, $flags); 1 };
    warn "the value of $key is not written back: $@";
    return;
}

1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::FastMmap::Callbacks - reading through, writing through and writing back for Cache::Eyewall::FastMmap

=head1 DESCRIPTION

The base class of L<Cache::Eyewall::FastMmap> that calls the store behind the cache. It has no methods for users.

=cut
