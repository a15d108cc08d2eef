/* Converts arguments from Perl: bytes, times, and options in pairs. */

/* A time that counts as forever, and can still be added to the time of day. */
#define MILLISECONDS_MAX 4e15

static SV *settled_slowly(pTHX_ SV *sv) {
    SV *plain = sv_mortalcopy(sv);
    if (SvAMAGIC(plain)) {
        SV *text = AMG_CALLunary(plain, string_amg);
        if (text != NULL && !SvROK(text))
            return sv_mortalcopy(text);
    }
    return plain;
}

/* Fetches a tied value, or stringifies an object, into a plain scalar of its own: a later fetch may return another
 * string. This runs Perl code, so callers look up objects of the library afterwards. */
static inline SV *settled(pTHX_ SV *sv) {
    return UNLIKELY(SvGMAGICAL(sv) || SvAMAGIC(sv)) ? settled_slowly(aTHX_ sv) : sv;
}

/* The bytes of a string. Characters up to 255 are bytes; higher ones have no byte value. */
static inline eyewall_bytes bytes_of(pTHX_ SV *sv, const char *what) {
    eyewall_bytes bytes;
    STRLEN length;
    sv = settled(aTHX_ sv);
    if (!SvOK(sv))
        fail_argument(aTHX_ "%s is undefined", what);
    if (SvROK(sv))
        fail_argument(aTHX_ "%s is a reference: serialize it, as by Storable::freeze", what);
    bytes.data = SvPV_nomg_const(sv, length);
    bytes.length = length;
    if (UNLIKELY(SvUTF8(sv))) {
        bool is_utf8 = TRUE;
        U8 *narrowed = bytes_from_utf8((const U8 *)bytes.data, &length, &is_utf8);
        if (is_utf8)
            fail_argument(aTHX_ "%s has characters above 255: encode it, as by Encode::encode_utf8", what);
        if (narrowed != (const U8 *)bytes.data)
            SAVEFREEPV(narrowed);
        bytes.data = narrowed;
        bytes.length = length;
    }
    return bytes;
}

/* A time to live in milliseconds, at least one. undef, and a time that counts as forever, give 0. */
static uint64_t milliseconds_of(pTHX_ SV *seconds, const char *what) {
    NV milliseconds;
    seconds = settled(aTHX_ seconds);
    if (!SvOK(seconds))
        return 0;
    if (!looks_like_number(seconds))
        fail_argument(aTHX_ "%s is not a number of seconds: %" SVf, what, SVfARG(seconds));
    milliseconds = SvNV(seconds) * 1000;
    if (!(milliseconds > 0))
        fail_argument(aTHX_ "%s must be above 0: leave it out for an entry that stays until it is evicted", what);
    if (milliseconds >= MILLISECONDS_MAX)
        return 0;
    return milliseconds < 1 ? 1 : (uint64_t)milliseconds;
}

/* A duration in milliseconds, possibly 0. */
static uint64_t duration_of(pTHX_ SV *seconds, const char *what) {
    NV milliseconds;
    seconds = settled(aTHX_ seconds);
    if (!SvOK(seconds))
        return 0;
    milliseconds = looks_like_number(seconds) ? SvNV(seconds) * 1000 : -1;
    if (!(milliseconds >= 0))
        fail_argument(aTHX_ "%s must be a number of seconds from 0 on, and is %" SVf, what, SVfARG(seconds));
    if (milliseconds >= MILLISECONDS_MAX)
        return (uint64_t)MILLISECONDS_MAX;
    return milliseconds > 0 && milliseconds < 1 ? 1 : (uint64_t)milliseconds;
}

/* A mortal 64-bit integer (SvIOK), which Perl needn't truncate or round. */
static SV *whole_number(pTHX_ SV *number, const char *what) {
    SV *plain = sv_mortalcopy(settled(aTHX_ number));
    if (!SvOK(plain))
        fail_argument(aTHX_ "%s is undefined", what);
    if (!SvROK(plain) && looks_like_number(plain)) {
        (void)SvIV_nomg(plain);
        if (SvIOK(plain))
            return plain;
    }
    fail_argument(aTHX_ "%s must be a whole number of 64 bits, and is %" SVf, what, SVfARG(plain));
}

/* An integer from 0 on. */
static UV unsigned_of(pTHX_ SV *number, const char *what, UV max) {
    SV *whole = whole_number(aTHX_ number, what);
    if ((!SvIsUV(whole) && SvIVX(whole) < 0) || SvUVX(whole) > max)
        fail_argument(aTHX_ "%s must be a number from 0 to %" UVuf ", and is %" SVf, what, max, SVfARG(whole));
    return SvUVX(whole);
}

/* An integer of either sign. */
static IV integer_of(pTHX_ SV *number, const char *what) {
    SV *whole = whole_number(aTHX_ number, what);
    if (SvIsUV(whole) && SvUVX(whole) > (UV)IV_MAX)
        fail_argument(aTHX_ "%s must be at most %" IVdf ", and is %" SVf, what, IV_MAX, SVfARG(whole));
    return SvIVX(whole);
}

/* Options of a put, and the memory that they point to beside Perl's own. */
typedef struct {
    eyewall_put_options options;
    eyewall_epoch epoch;
} put_room;

/* Options of counters, or of writers, only. */
typedef struct {
    bool is_counter;
    SV *start;
    SV *min;
    SV *max;
    SV *length;
} own_words;

static void put_tags(pTHX_ SV *given, eyewall_put_options *options) {
    AV *tags;
    SSize_t count, i;
    eyewall_bytes *room;
    SvGETMAGIC(given);
    if (!SvROK(given) || SvTYPE(SvRV(given)) != SVt_PVAV)
        fail_argument(aTHX_ "tags must be a reference to an array, as in: tags => ['news']");
    tags = (AV *)SvRV(given);
    count = av_len(tags) + 1;
    if (count == 0)
        return;
    room = (eyewall_bytes *)SvPVX(sv_2mortal(newSV(count * sizeof *room)));
    for (i = 0; i < count; i++) {
        SV **tag = av_fetch(tags, i, 0);
        room[i] = bytes_of(aTHX_ tag == NULL ? &PL_sv_undef : *tag, "a tag");
    }
    options->tags = room;
    options->tags_count = count;
}

static void put_option(pTHX_ const char *name, SV *value, put_room *room, own_words *own) {
    if (strEQ(name, "ttl"))
        room->options.ttl_ms = milliseconds_of(aTHX_ value, "ttl");
    else if (strEQ(name, "stale"))
        room->options.stale_ms = duration_of(aTHX_ value, "stale");
    else if (strEQ(name, "metadata")) {
        eyewall_bytes metadata = bytes_of(aTHX_ value, "metadata");
        room->options.metadata = metadata.data;
        room->options.metadata_length = metadata.length;
    } else if (strEQ(name, "tags"))
        put_tags(aTHX_ value, &room->options);
    else if (strEQ(name, "begun_in")) {
        eyewall_bytes epoch = bytes_of(aTHX_ value, "begun_in");
        if (epoch.length != sizeof room->epoch)
            fail_argument(aTHX_ "begun_in must be a result of the method now");
        memcpy(&room->epoch, epoch.data, sizeof room->epoch);
        room->options.begun_in = &room->epoch;
    } else if (own != NULL && own->is_counter && strEQ(name, "start"))
        own->start = value;
    else if (own != NULL && own->is_counter && strEQ(name, "min"))
        own->min = value;
    else if (own != NULL && own->is_counter && strEQ(name, "max"))
        own->max = value;
    else if (own != NULL && !own->is_counter && strEQ(name, "length"))
        own->length = value;
    else
        fail_argument(aTHX_ "no option %s; the options are ttl, stale, metadata, tags, begun_in%s", name,
                      own == NULL ? "" : own->is_counter ? ", start, min, max" : ", length");
}

/* Reads the pairs from `given` on; NULL if there are none. */
static const eyewall_put_options *put_options(pTHX_ SV **given, I32 count, put_room *room, own_words *own) {
    I32 i;
    if (count <= 0)
        return NULL;
    if (count % 2 != 0)
        fail_argument(aTHX_ "options come in pairs, as in: ttl => 60, tags => ['news']");
    Zero(room, 1, put_room);
    for (i = 0; i < count; i += 2)
        put_option(aTHX_ SvPV_nolen(given[i]), given[i + 1], room, own);
    return &room->options;
}

/* The value of the only option that a look-up has; NULL if it isn't given. */
static SV *only_option(pTHX_ SV **given, I32 count, const char *known) {
    SV *value = NULL;
    I32 i;
    if (count % 2 != 0)
        fail_argument(aTHX_ "options come in pairs, as in: %s => 1", known);
    for (i = 0; i < count; i += 2) {
        const char *name = SvPV_nolen(given[i]);
        if (strNE(name, known))
            fail_argument(aTHX_ "no option %s; the only option is %s", name, known);
        value = given[i + 1];
    }
    return value;
}

static void touch_option(pTHX_ const char *name, SV *value, eyewall_touch_options *options) {
    if (strEQ(name, "ttl")) {
        options->set_times = true;
        options->ttl_ms = milliseconds_of(aTHX_ value, "ttl");
    } else if (strEQ(name, "stale")) {
        options->set_times = true;
        options->stale_ms = duration_of(aTHX_ value, "stale");
    } else if (strEQ(name, "metadata")) {
        eyewall_bytes metadata = bytes_of(aTHX_ value, "metadata");
        options->set_metadata = true;
        options->metadata = metadata.data;
        options->metadata_length = metadata.length;
    } else if (strEQ(name, "if_serial")) {
        options->if_serial = true;
        options->serial = unsigned_of(aTHX_ value, "if_serial", UV_MAX);
    } else
        fail_argument(aTHX_ "no option %s; the options are ttl, stale, metadata, if_serial", name);
}

/* Reads the option of a purge: `soft => 1`, or none. */
static int32_t purge_kind(pTHX_ SV **given, I32 count) {
    SV *soft = only_option(aTHX_ given, count, "soft");
    return soft != NULL && SvTRUE(soft) ? EYEWALL_PURGE_SOFT : EYEWALL_PURGE_HARD;
}
