package Cache::Eyewall::FastMmap::Callbacks;
use v5.16;
use warnings;

our $VERSION = '0.001';

use Cache::Eyewall::Error;

use constant {
    # As in flagged.h.
    DIRTY => 16,
    # What asks for a key waits so long for who makes it, so often. Perl's handlers of signals run between the waits.
    WAIT_MS => 1000,
    WAITS   => 10,
    # What a process has to write back itself before it goes on: so many values, or this part of the volume.
    DIRTY_MAX  => 1000,
    DIRTY_PART => 1 / 32,
    # Before a value that is larger than this part of the volume is stored, all are written back.
    LARGE_PART => 1 / 64,
    # What is evicted before it was written back would be lost. So values are deferred only while less than this part of the
    # index and of the bytes is used. Index buckets overflow from some 40 % on.
    USED_PART => 1 / 4,
    # Values are no longer deferred once less than this part of the volume is left of USED_PART. So a process needs to look at
    # the volume's numbers only after so many puts.
    LEFT_PART => 1 / 64,
    # While room is short, a process looks again after puts of this part, and writes back what waits: others may have found room
    # meanwhile, for instance after a clear. It is less than the small ring has at least: no value has passed through that before.
    AGAIN_PART => 1 / 32,
};

# What read_cb gives for a key that isn't there, which one process asks it at a time.
sub _read {
    my ($self, $key) = @_;
    my $name = $key // '';
    if ($self->{busy}{$name}) {
        my $value = Cache::Eyewall::FastMmap::_fetch($self->{cache}, $key, my $flags);
        return $flags ? $self->_decoded($value, $flags) : $value if defined $flags;
        Cache::Eyewall::Error->throw(argument => 'a callback asks for the key that it was called for; allow_recursive lets it')
            unless $self->{allow_recursive};
        return scalar $self->{read_cb}->($self->{context}, $key);
    }
    my @known;
    for (1 .. WAITS) {
        last if @known = Cache::Eyewall::FastMmap::_fill($self->{cache}, $key, WAIT_MS);
    }
    my ($flight, $bytes, $flags) = @known;
    return $flags ? $self->_decoded($bytes, $flags) : $bytes if defined $flags;
    # Without a flight, others have taken too long, or a change is known that is newer: the value is given and not kept.
    local $self->{busy}{$name} = 1;
    $self->_write_back_claimed($key) if $self->{is_write_back};
    my $value = $self->{read_cb}->($self->{context}, $key);
    $self->_put($flight, $key, $value, $self->_expiry, 0) if $flight && (defined $value || $self->{cache_not_found});
    return $value;
}

# Callbacks that only tell of a change don't undo it by dying.
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
    # What the parent has set before it forked this process is not for this one to write back.
    @$self{qw(dirty dirty_bytes dirty_of left)} = ([], 0, $$, {}) if $self->{dirty_of} != $$;
    push @{ $self->{dirty} }, $key;
    $self->{dirty_bytes} += $bytes;
    # Others may have used up the room since it was looked for.
    $self->_look_for_room;
    $self->_write_back_own if $self->{is_short} || @{ $self->{dirty} } >= DIRTY_MAX || $self->{dirty_bytes} >= $self->{dirty_bytes_max};
    return;
}

# Whether set leaves the call of write_cb for later.
sub _defers { return $_[0]{is_write_back} && !$_[0]{is_short} }

# Looks whether values can still be deferred. What the cache holds grows by no more than what all processes put, and that is
# cheap to ask; so the volume's numbers, which cost a walk over its index, are asked for when that has used up the room that
# they told. Each process finds out for itself: a note in the cache could be evicted.
sub _look_for_room {
    my ($self) = @_;
    my ($puts, $bytes, $size) = Cache::Eyewall::FastMmap::_put_counts($self->{cache});
    my $known = $self->{room};
    my $is_known = 0;
    if ($known && $known->{size} == $size && $puts >= $known->{puts} && $bytes >= $known->{bytes}) {
        $is_known = $puts < $known->{puts_end} && $bytes < $known->{bytes_end};
        # While room is short, a look each second finds that there is room again.
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

# Before a put of so many bytes, which may evict others.
sub _make_room {
    my ($self, $bytes) = @_;
    $self->_look_for_room;
    $self->_write_back_all if $bytes > $self->{large_bytes};
    return;
}

# Writes back what waits, of all processes.
sub _write_back_all {
    my ($self) = @_;
    if ($self->{is_writing_back}) {
        $self->{is_all_due} = 1;
        return;
    }
    local $self->{is_writing_back} = 1;
    # A write_cb that sets may find that all are due again.
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

# Writes back what this process has set. Not while it does so already: write_cb may set, too.
sub _write_back_own {
    my ($self) = @_;
    return if $self->{is_writing_back} || $self->{dirty_of} != $$;
    my $keys = $self->{dirty};
    @$self{qw(dirty dirty_bytes)} = ([], 0);
    {
        local $self->{is_writing_back} = 1;
        $self->_write_back($_) || ($self->{left}{$_} = 1) for @$keys;
    }
    # A write_cb that sets may have found that room is short.
    $self->_write_back_all if CORE::delete $self->{is_all_due};
    return;
}

# The end of a process: what it has set, once more where others were at it, or where write_cb died.
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

# Writes an entry back where it waits, and removes it if that is wanted. 0: it could not be written, and waits on; undef: others
# are at it.
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
    # To note that it was written gives an entry another serial.
    if ($removes) {
        Cache::Eyewall::FastMmap::_remove_if($self->{cache}, $key, $serial);
    } elsif ($flags & DIRTY) {
        Cache::Eyewall::FastMmap::_clean($self->{cache}, $key, $serial, $flags, $modseq);
    }
    return 1;
}

# A reference to the value; undef where this cache can't read it: one with other options may have set it. It stays for that one.
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

Cache::Eyewall::FastMmap::Callbacks - what Cache::Eyewall::FastMmap asks and tells the store behind it

=head1 DESCRIPTION

Used by L<Cache::Eyewall::FastMmap>, which it is a base of: reading through, writing through and writing back. It has no methods for others.

=cut
