 # What Cache::Eyewall::FastMmap is made of: keys and values with flags (flagged.h).

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::FastMmap

 # The methods get and set, as long as nothing but the value has to be looked at; else _get and _set, in Perl.

void
get(SV *self, SV *key, ...)
  PREINIT:
    eyewall_hit hit;
    known_flags known;
    SV *value;
    unsigned ignored = 0;
  PPCODE:
    MAGIC *magic = object_magic(self, &shortcut_kind);
    if (magic == NULL || items != 2 || !((shortcut *)magic->mg_ptr)->gets_plainly)
        GO_TO("_get");
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    if (looked_up(aTHX_ eyewall_get(((shortcut *)magic->mg_ptr)->of->cache, name.data, name.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    value = sv_2mortal(flagged_taken(aTHX_ &hit, &known));
    if (((shortcut *)magic->mg_ptr)->deserialize != NULL && (known.flags & (FLAG_SERIALIZED | FLAG_COMPRESSED)) == FLAG_SERIALIZED) {
        PUTBACK;
        value = deserialized(aTHX_ ((shortcut *)magic->mg_ptr)->deserialize, value);
        SPAGAIN;
        known.flags = 0;
    }
    if (decoding_flags(known.flags) == 0) {
        XPUSHs(value);
        PUTBACK;
        return;
    }
    PUSHMARK(SP);
    EXTEND(SP, 3);
    PUSHs(self);
    PUSHs(value);
    mPUSHu(known.flags);
    PUTBACK;
    call_pv("Cache::Eyewall::FastMmap::_decoded", G_SCALAR);
    return;

void
set(SV *self, SV *key, SV *value, ...)
  PREINIT:
    flagged_room room;
    unsigned flags = 0;
  PPCODE:
    MAGIC *magic = object_magic(self, &shortcut_kind);
    shortcut *known = magic == NULL ? NULL : (shortcut *)magic->mg_ptr;
    if (known == NULL || items != 3 || !known->sets_plainly)
        GO_TO("_set");
    if (!known->keeps_all && !(known->keeps_strings && is_string(value))) {
        if (known->serialize == NULL)
            GO_TO("_set");
        SvGETMAGIC(value);
        if (SvOK(value)) {
            SV *reference = sv_2mortal(newRV_inc(SvGMAGICAL(value) ? mortal_copy_got(aTHX_ value) : value));
            /* The cache outlives the sub. The caller's arguments stay on the stack below the sub's. */
            sv_2mortal(SvREFCNT_inc(SvRV(self)));
            SP += items;
            PUTBACK;
            value = called(aTHX_ known->serialize, reference);
            SPAGAIN;
            SP -= items;
            flags = FLAG_SERIALIZED;
        }
    }
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &flags);
    eyewall_bytes bytes = flagged_bytes(aTHX_ value, &flags);
    const eyewall_put_options *options =
        flagged_options(aTHX_ &room, flags, known->expire_time == 0 ? 0 : time(NULL) + known->expire_time, NULL);
    if (!is_stored(aTHX_ eyewall_put(known->of->cache, name.data, name.length, bytes.data, bytes.length, options, NULL)))
        GO_TO("_refused");
    XSRETURN_IV(1);

 # Says what get and set may do by themselves, once and whenever that changes.

void
_shorten(SV *self, SV *cache, bool gets_plainly, bool sets_plainly, bool keeps_strings, bool keeps_all, SV *serialize, SV *deserialize, NV expire_time)
  PPCODE:
    MAGIC *magic = object_magic(self, &shortcut_kind);
    shortcut *known;
    if (magic == NULL) {
        volume *of = volume_of(aTHX_ cache);
        Newx(known, 1, shortcut);
        known->of = volume_keep(of);
        known->serialize = SvOK(serialize) ? newSVsv(serialize) : NULL;
        known->deserialize = SvOK(deserialize) ? newSVsv(deserialize) : NULL;
        sv_magicext(SvRV(self), NULL, PERL_MAGIC_ext, &shortcut_kind, (const char *)known, 0);
    } else
        known = (shortcut *)magic->mg_ptr;
    known->gets_plainly = gets_plainly;
    known->sets_plainly = sets_plainly;
    known->keeps_strings = keeps_strings;
    known->keeps_all = keeps_all;
    known->expire_time = expire_time;

 # The value, and in `flags` 0, or the flags if it has to be decoded; or undef, and nothing in `flags`.

SV *
_fetch(SV *cache, SV *key, SV *flags, SV *page = NULL)
  PREINIT:
    eyewall_hit hit;
    known_flags known;
    unsigned ignored = 0;
  CODE:
    eyewall_bytes name = stored_key(aTHX_ key, page, &ignored);
    eyewall_cache *from = cache_of(aTHX_ cache);
    if (looked_up(aTHX_ eyewall_get(from, name.data, name.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    RETVAL = flagged_taken(aTHX_ &hit, &known);
    sv_setiv(flags, decoding_flags(known.flags));
  OUTPUT:
    RETVAL

 # Stores into a cache, by a claim, or by a flight, which end; whether it did (is_stored).

bool
_store(SV *into, SV *key, SV *value, UV flags, NV expire_on, SV *modseq = NULL, SV *page = NULL)
  PREINIT:
    MAGIC *magic;
    flagged_room room;
    const eyewall_put_options *options;
    eyewall_bytes name, bytes;
    unsigned all_flags;
    eyewall_status status;
  CODE:
    all_flags = flags;
    name = stored_key(aTHX_ key, page, &all_flags);
    bytes = flagged_bytes(aTHX_ value, &all_flags);
    options = flagged_options(aTHX_ &room, all_flags, expire_on, modseq);
    if ((magic = object_magic(into, &claim_kind)) != NULL)
        status = eyewall_claim_put(claim_taken(aTHX_ (held_claim *)magic->mg_ptr), bytes.data, bytes.length, options, NULL);
    else if ((magic = object_magic(into, &flight_kind)) != NULL)
        status = eyewall_flight_store(flight_taken(aTHX_ (held_flight *)magic->mg_ptr), bytes.data, bytes.length, options, NULL);
    else
        status = eyewall_put(cache_of(aTHX_ into), name.data, name.length, bytes.data, bytes.length, options, NULL);
    RETVAL = is_stored(aTHX_ status);
  OUTPUT:
    RETVAL

const char *
_message()
  CODE:
    RETVAL = eyewall_error_message();
  OUTPUT:
    RETVAL

 # A claim, and behind it what push_known gives if there is a valid entry. undef: the key is too long. Nothing: others kept the key until the deadline.

void
_claim(SV *cache, SV *key)
  PREINIT:
    eyewall_claim *claim;
    eyewall_hit hit;
    eyewall_status status;
    unsigned ignored = 0;
    SV *object;
  PPCODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    volume *of = volume_of(aTHX_ cache);
    status = eyewall_claim_begin(of->cache, name.data, name.length, &claim, &hit);
    if (status == EYEWALL_ERROR_BUSY)
        XSRETURN_EMPTY;
    if (status == EYEWALL_ERROR_KEY_TOO_LONG)
        XSRETURN_UNDEF;
    answered(aTHX_ status);
    (void)claim_new(aTHX_ of, claim, &object);
    EXTEND(SP, 1 + KNOWN_COUNT);
    PUSHs(object);
    if (status == EYEWALL_OK) {
        push_known(aTHX_ SP + 1, &hit);
        SP += KNOWN_COUNT;
    }

 # A flight; or undef, and behind it the value and flags as _fetch has them; or undef alone: a tombstone lies there, or the key is too long; or nothing: others
 # kept the key until the deadline.

void
_fill(SV *cache, SV *key, UV deadline_ms)
  PREINIT:
    eyewall_flight *flight;
    eyewall_hit hit;
    eyewall_status status;
    unsigned ignored = 0;
  PPCODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    volume *of = volume_of(aTHX_ cache);
    status = eyewall_fill_begin(of->cache, name.data, name.length, deadline_ms, FALSE, &hit, NULL, &flight);
    if (status == EYEWALL_ERROR_BUSY)
        XSRETURN_EMPTY;
    if (status == EYEWALL_NEGATIVE || status == EYEWALL_ERROR_KEY_TOO_LONG)
        XSRETURN_UNDEF;
    answered(aTHX_ status);
    EXTEND(SP, 3);
    if (status == EYEWALL_FILL)
        PUSHs(flight_new(aTHX_ of, flight));
    else {
        known_flags known;
        PUSHs(&PL_sv_undef);
        mPUSHs(flagged_taken(aTHX_ &hit, &known));
        mPUSHu(decoding_flags(known.flags));
    }

 # "fresh", "stale" or "negative", and behind it what push_known gives; nothing: nothing is known.

void
_describe(SV *cache, SV *key)
  PREINIT:
    eyewall_hit hit;
    eyewall_status status;
    unsigned ignored = 0;
  PPCODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    eyewall_cache *from = cache_of(aTHX_ cache);
    status = looked_up(aTHX_ eyewall_lookup(from, name.data, name.length, &hit));
    if (status == EYEWALL_MISS)
        XSRETURN_EMPTY;
    EXTEND(SP, 1 + KNOWN_COUNT);
    mPUSHs(newSVpv(status == EYEWALL_OK ? "fresh" : status == EYEWALL_STALE ? "stale" : "negative", 0));
    push_known(aTHX_ SP + 1, &hit);
    SP += KNOWN_COUNT;

 # How many entries all processes have put into the volume, the bytes of these, and the volume's size.

void
_put_counts(SV *cache)
  PREINIT:
    uint64_t puts, bytes;
  PPCODE:
    eyewall_cache *of = cache_of(aTHX_ cache);
    answered(aTHX_ eyewall_written(of, &puts, &bytes));
    EXTEND(SP, 3);
    mPUSHu(puts);
    mPUSHu(bytes);
    mPUSHu(eyewall_size(of));

 # Leaves a tombstone.

void
_leave_tombstone(SV *cache, SV *key, SV *modseq, NV expire_on)
  PREINIT:
    flagged_room room;
    const eyewall_put_options *options;
    unsigned flags = 0;
  PPCODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &flags);
    eyewall_cache *into = cache_of(aTHX_ cache);
    options = flagged_options(aTHX_ &room, flags, expire_on, modseq);
    answered(aTHX_ eyewall_put_negative(into, name.data, name.length, 0, options, NULL));

 # Notes that an entry was written back, if it is still the one of this serial. It goes on as a touched one: with `expire_on` as its time.

bool
_clean(SV *cache, SV *key, UV serial, UV flags, SV *modseq)
  PREINIT:
    eyewall_touch_options options;
    flagged_room room;
    const eyewall_put_options *clean;
    unsigned ignored = 0;
  CODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    eyewall_cache *into = cache_of(aTHX_ cache);
    clean = flagged_options(aTHX_ &room, flags & ~FLAG_DIRTY & ~FLAG_MODSEQ, 0, modseq);
    Zero(&options, 1, eyewall_touch_options);
    options.set_metadata = true;
    if (clean != NULL) {
        options.metadata = clean->metadata;
        options.metadata_length = clean->metadata_length;
    }
    options.if_serial = true;
    options.serial = serial;
    RETVAL = answered(aTHX_ eyewall_touch(into, name.data, name.length, &options)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

bool
_remove(SV *cache, SV *key)
  ALIAS:
    _exists = 1
  PREINIT:
    unsigned ignored = 0;
  CODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    eyewall_cache *from = cache_of(aTHX_ cache);
    RETVAL = looked_up(aTHX_ ix == 0 ? eyewall_remove(from, name.data, name.length)
                                    : eyewall_contains(from, name.data, name.length)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

 # Removes an entry if it is still the one of this serial.

bool
_remove_if(SV *cache, SV *key, UV serial)
  PREINIT:
    unsigned ignored = 0;
  CODE:
    eyewall_bytes name = stored_key(aTHX_ key, NULL, &ignored);
    eyewall_cache *from = cache_of(aTHX_ cache);
    RETVAL = looked_up(aTHX_ eyewall_remove_if(from, name.data, name.length, serial)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

bool
_is_string(SV *value)
  CODE:
    RETVAL = is_string(value);
  OUTPUT:
    RETVAL

 # The user's entries: as keys, or as hashes (listed); with `stale`, those that are past their time, too. _waiting: the keys of
 # those that have to be written back.

void
_entries(SV *cache, bool keys_only = TRUE, bool stale = TRUE)
  ALIAS:
    _waiting = 1
  PREINIT:
    eyewall_iter *iter;
    eyewall_hit hit;
    walk *begun;
  PPCODE:
    volume *of = volume_of(aTHX_ cache);
    answered(aTHX_ eyewall_iter_begin(of->cache, stale, &iter));
    Newx(begun, 1, walk);
    begun->of = volume_keep(of);
    begun->iter = iter;
    (void)object_new(aTHX_ "Cache::Eyewall::Walk", &walk_kind, begun);
    while (walk_next(aTHX_ begun, &hit)) {
        eyewall_info info;
        SV *entry = NULL;
        eyewall_status status = eyewall_hit_info(&hit, &info);
        if (status == EYEWALL_OK && !info.is_negative && (ix == 0 || (flags_of(&hit).flags & FLAG_DIRTY) != 0))
            entry = listed(aTHX_ &hit, keys_only);
        if (entry != NULL)
            mXPUSHs(entry);
        answered(aTHX_ hit_read(&hit, status));
    }
