 # Entries that are written piece by piece, and read meanwhile (streams.h).

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall

void
writer(SV *self, SV *key, ...)
  PREINIT:
    put_room room;
    own_words words;
    uint64_t length;
    eyewall_writer *writer;
  PPCODE:
    Zero(&words, 1, own_words);
    const eyewall_put_options *options = put_options(aTHX_ &ST(2), items - 2, &room, &words);
    length = words.length == NULL ? EYEWALL_LENGTH_UNKNOWN : unsigned_of(aTHX_ words.length, "length", UV_MAX - 1);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    volume *of = volume_of(aTHX_ self);
    answered(aTHX_ eyewall_writer_begin(of->cache, name.data, name.length, length, options, &writer));
    PUSHs(writer_new(aTHX_ of, writer));

void
follow(SV *self, SV *key)
  PREINIT:
    eyewall_follower *follower;
  PPCODE:
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    volume *of = volume_of(aTHX_ self);
    if (answered(aTHX_ eyewall_follow(of->cache, name.data, name.length, &follower)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    PUSHs(follower_new(aTHX_ of, follower));

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::Writer

void
write(SV *self, SV *piece)
  PPCODE:
    eyewall_bytes bytes = bytes_of(aTHX_ piece, "the piece");
    answered(aTHX_ eyewall_writer_write(writer_going_on(aTHX_ self), bytes.data, bytes.length));

void
commit(SV *self)
  PREINIT:
    uint64_t serial;
  PPCODE:
    eyewall_writer *writer = writer_going_on(aTHX_ self);
    writer_of(aTHX_ self)->writer = NULL;
    if (answered(aTHX_ eyewall_writer_commit(writer, &serial)) == EYEWALL_SUPERSEDED)
        XSRETURN_UNDEF;
    XSRETURN_UV(serial);

void
abort(SV *self)
  PPCODE:
    held_writer *this = writer_of(aTHX_ self);
    eyewall_writer_abort(this->writer);
    this->writer = NULL;

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::Follower

 # The next bytes; undef: that was all.

SV *
read(SV *self, ...)
  PREINIT:
    SV *deadline, *room;
    uint64_t patience;
    size_t length;
  CODE:
    deadline = only_option(aTHX_ &ST(1), items - 1, "deadline");
    patience = deadline == NULL ? 10000 : duration_of(aTHX_ deadline, "the deadline");
    room = sv_2mortal(newSV(FOLLOWED_AT_ONCE));
    if (followed(aTHX_ self, SvPVX(room), patience, &length) == EYEWALL_END)
        XSRETURN_UNDEF;
    RETVAL = bytes_new(aTHX_ SvPVX(room), length);
  OUTPUT:
    RETVAL

SV *
metadata(SV *self)
  CODE:
    eyewall_bytes bytes = eyewall_follower_metadata(follower_going_on(aTHX_ self));
    RETVAL = bytes_new(aTHX_ bytes.data, bytes.length);
  OUTPUT:
    RETVAL

void
end(SV *self)
  PPCODE:
    held_follower *this = follower_of(aTHX_ self);
    eyewall_follower_end(this->follower);
    this->follower = NULL;
