/* Values with flags, as Cache::Eyewall::FastMmap keeps them, and its keys.
 *
 * Metadata: the byte 'P', a byte of flags, and with FLAG_MODSEQ eight bytes of a number, lowest first. An entry without, or
 * with other metadata, is bytes, as other languages put them; and what needs no flag is put as such.
 *
 * Keys are the bytes that Perl holds: those of a string with its UTF-8 flag on are UTF-8. An empty one, or one that begins with
 * a zero byte, has "\0\0" before it. Keys of multi_set have "\0\1", the length of the page key, ':' and the page key before them,
 * and "\0\2" begins what the class keeps for itself.
 */

enum {
    FLAG_UNDEFINED = 1,  /* The value is undef. */
    FLAG_UTF8 = 2,       /* The bytes that were stored are UTF-8, with Perl's flag on. */
    FLAG_SERIALIZED = 4,
    FLAG_COMPRESSED = 8,
    FLAG_DIRTY = 16,     /* To be written back. */
    FLAG_KEY_UTF8 = 32,
    FLAG_MODSEQ = 64,
    FLAG_TEXT = 128      /* What was compressed is UTF-8, of text. */
};

/* Ten years: an entry that still has to be written back is kept past its time. */
#define STALE_MS UINT64_C(315360000000)

typedef struct {
    unsigned flags;
    UV modseq;
} known_flags;

static bool has_high_bytes(const char *data, STRLEN length) {
    STRLEN i;
    for (i = 0; i < length; i++)
        if ((unsigned char)data[i] >= 128)
            return TRUE;
    return FALSE;
}

/* The key that an entry lies under; `flags` gets FLAG_KEY_UTF8. */
static inline eyewall_bytes stored_key(pTHX_ SV *key, SV *page, unsigned *flags) {
    eyewall_bytes stored;
    STRLEN length;
    const char *data;
    key = settled(aTHX_ key);
    data = SvPV_const(key, length);
    if (SvUTF8(key) && has_high_bytes(data, length))
        *flags |= FLAG_KEY_UTF8;
    if (page != NULL && SvOK(page)) {
        STRLEN page_length;
        const char *page_data = SvPV_const(page, page_length);
        SV *built = sv_2mortal(newSVpvn("\0\1", 2));
        sv_catpvf(built, "%" UVuf ":", (UV)page_length);
        sv_catpvn(built, page_data, page_length);
        sv_catpvn(built, data, length);
        data = SvPV_const(built, length);
    } else if (length == 0 || data[0] == 0) {
        SV *built = sv_2mortal(newSVpvn("\0\0", 2));
        sv_catpvn(built, data, length);
        data = SvPV_const(built, length);
    }
    stored.data = data;
    stored.length = length;
    return stored;
}

/* The key that the user knows it by, which is "page-key" under a page key; NULL: it's the class's own. */
static SV *users_key(pTHX_ eyewall_bytes stored, unsigned flags) {
    const char *data = (const char *)stored.data;
    const char *end = data + stored.length;
    SV *key, *page = NULL;
    if (stored.length >= 2 && data[0] == 0) {
        char kind = data[1];
        data += 2;
        if (kind == 1) {
            UV length = 0;
            for (; data < end && *data != ':'; data++)
                length = length * 10 + (*data - '0');
            if (data == end || length >= (UV)(end - data))
                return NULL;
            page = newSVpvn(data + 1, length);
            sv_catpvs(page, "-");
            data += 1 + length;
        } else if (kind != 0)
            return NULL;
    }
    key = page != NULL ? page : newSVpvn("", 0);
    sv_catpvn(key, data, end - data);
    if (flags & FLAG_KEY_UTF8)
        SvUTF8_on(key);
    return key;
}

static inline known_flags flags_of(const eyewall_hit *hit) {
    known_flags known = {0, 0};
    eyewall_bytes metadata = eyewall_hit_metadata(hit);
    const unsigned char *bytes = (const unsigned char *)metadata.data;
    int i;
    if (metadata.length < 2 || bytes[0] != 'P')
        return known;
    known.flags = bytes[1];
    if (known.flags & FLAG_MODSEQ) {
        if (metadata.length < 10)
            known.flags &= ~FLAG_MODSEQ;
        else
            for (i = 7; i >= 0; i--)
                known.modseq = known.modseq << 8 | bytes[2 + i];
    }
    return known;
}

/* The bytes as they were stored: a whole value unless it is serialized or compressed. The hit stays as it is. */
static inline SV *flagged_value(pTHX_ const eyewall_hit *hit, unsigned flags) {
    SV *value;
    if (flags & FLAG_UNDEFINED)
        return newSV(0);
    value = newSVpvn((const char *)hit->value, hit->value_length);
    if (flags & FLAG_UTF8)
        SvUTF8_on(value);
    return value;
}

/* The same, and its flags; the hit is released. */
static inline SV *flagged_taken(pTHX_ eyewall_hit *hit, known_flags *known) {
    SV *value;
    eyewall_status status;
    *known = flags_of(hit);
    value = flagged_value(aTHX_ hit, known->flags);
    status = hit_read(hit, EYEWALL_OK);
    if (UNLIKELY(status < EYEWALL_OK)) {
        SvREFCNT_dec(value);
        fail_status(aTHX_ status);
    }
    return value;
}

/* The flags, if the value has to be decoded by them; else 0. */
static inline unsigned decoding_flags(unsigned flags) {
    return flags & (FLAG_SERIALIZED | FLAG_COMPRESSED) ? flags : 0;
}

static int64_t wall_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* How long from now to a second since 1970; a millisecond more, since the clock is read to the millisecond below. What is no
 * number is over. */
static uint64_t ttl_until(NV second) {
    NV left = second * 1000 + 1 - (NV)wall_milliseconds();
    return !(left >= 1) ? 1 : left > MILLISECONDS_MAX ? (uint64_t)MILLISECONDS_MAX : (uint64_t)left;
}

/* When an entry expires, in seconds since 1970, from `info` of it; 0: never. It expires at a whole second: the nearest one is meant,
 * since the volume's clock and this one don't agree to the millisecond. */
static IV expires_on(const eyewall_info *info) {
    int64_t left = (int64_t)info->ttl_left_ms;
    if (info->ttl_left_ms == EYEWALL_FOREVER)
        return 0;
    /* What is past its time says only how long it is kept. */
    if (info->is_stale)
        left = (int64_t)info->usable_left_ms - (int64_t)STALE_MS;
    return (IV)((wall_milliseconds() + left + 500) / 1000);
}

typedef struct {
    eyewall_put_options options;
    unsigned char metadata[10];
} flagged_room;

static void put_modseq(flagged_room *room, unsigned *flags, UV modseq) {
    int i;
    *flags |= FLAG_MODSEQ;
    for (i = 0; i < 8; i++)
        room->metadata[2 + i] = (unsigned char)(modseq >> 8 * i);
}

/* Options for a put of a value with flags; NULL: it needs none. `modseq` may be undef. */
static const eyewall_put_options *flagged_options(pTHX_ flagged_room *room, unsigned flags, NV expire_on, SV *modseq) {
    bool has_modseq = modseq != NULL && SvOK(modseq);
    if (flags == 0 && expire_on == 0 && !has_modseq)
        return NULL;
    Zero(&room->options, 1, eyewall_put_options);
    if (expire_on != 0) {
        room->options.ttl_ms = ttl_until(expire_on);
        if (flags & FLAG_DIRTY)
            room->options.stale_ms = STALE_MS;
    }
    if (has_modseq)
        put_modseq(room, &flags, unsigned_of(aTHX_ modseq, "modseq", UV_MAX));
    if (flags != 0) {
        room->metadata[0] = 'P';
        room->metadata[1] = (unsigned char)flags;
        room->options.metadata = room->metadata;
        room->options.metadata_length = flags & FLAG_MODSEQ ? 10 : 2;
    }
    return &room->options;
}

/* What a put has come to: whether the value is stored, or was, before somebody changed it again. What can't be stored is no error,
 * as it isn't in Cache::FastMmap; _message says what it was. */
static bool is_stored(pTHX_ eyewall_status status) {
    switch (status) {
    case EYEWALL_ERROR_ENTRY_TOO_LARGE:
    case EYEWALL_ERROR_KEY_TOO_LONG:
    case EYEWALL_ERROR_PINNED:
    case EYEWALL_ERROR_BUSY:
        return FALSE;
    default:
        answered(aTHX_ status);
        return TRUE;
    }
}

/* What a look-up has come to: a key that is too long is a miss, as it is in Cache::FastMmap. */
static inline eyewall_status looked_up(pTHX_ eyewall_status status) {
    return status == EYEWALL_ERROR_KEY_TOO_LONG ? EYEWALL_MISS : answered(aTHX_ status);
}

/* Whether a value is a string and nothing else, so that its bytes and its UTF-8 flag are all of it. */
static inline bool is_string(SV *value) {
    return SvPOK(value) && !SvIOK(value) && !SvNOK(value) && !SvROK(value) && !SvGMAGICAL(value) && !SvVOK(value);
}

/* The bytes of a value, or none for undef; `flags` gets FLAG_UTF8 or FLAG_UNDEFINED. */
static inline eyewall_bytes flagged_bytes(pTHX_ SV *value, unsigned *flags) {
    eyewall_bytes bytes = {NULL, 0};
    STRLEN length;
    value = settled(aTHX_ value);
    if (!SvOK(value)) {
        *flags |= FLAG_UNDEFINED;
        return bytes;
    }
    bytes.data = SvPV_nomg_const(value, length);
    bytes.length = length;
    if (SvUTF8(value) && has_high_bytes((const char *)bytes.data, length))
        *flags |= FLAG_UTF8;
    return bytes;
}

/* Calls a method in Perl with the arguments that this XSUB was given, and gives what that gives. */
#define GO_TO(method)                                                                   \
    do {                                                                                \
        PUSHMARK(SP);                                                                   \
        SP += items;                                                                    \
        PUTBACK;                                                                        \
        call_pv("Cache::Eyewall::FastMmap::" method, GIMME_V);                          \
        return;                                                                         \
    } while (0)

/* A mortal copy of what is tied, and was fetched just now. */
static SV *mortal_copy_got(pTHX_ SV *tied) {
    SV *copy = sv_newmortal();
    sv_setsv_nomg(copy, tied);
    return copy;
}

/* What a sub gives for one argument; mortal. */
static SV *called(pTHX_ SV *sub, SV *argument) {
    dSP;
    SV *result;
    PUSHMARK(SP);
    XPUSHs(argument);
    PUTBACK;
    call_sv(sub, G_SCALAR);
    SPAGAIN;
    result = POPs;
    PUTBACK;
    return result;
}

/* A value that was serialized, and nothing else; mortal. */
static SV *deserialized(pTHX_ SV *deserialize, SV *bytes) {
    SV *reference = called(aTHX_ deserialize, bytes);
    if (!SvROK(reference))
        fail_argument(aTHX_ "the deserializer gave no reference: was the value stored with the same serializer?");
    return sv_mortalcopy(SvRV(reference));
}

/* Five elements: flags, value, expire_on, modseq, serial. The hit is released. */
enum { KNOWN_COUNT = 5 };
static void push_known(pTHX_ SV **to, eyewall_hit *hit) {
    known_flags known = flags_of(hit);
    eyewall_info info;
    eyewall_status status = eyewall_hit_info(hit, &info);
    to[0] = sv_2mortal(newSVuv(known.flags));
    to[1] = sv_2mortal(flagged_value(aTHX_ hit, known.flags));
    answered(aTHX_ hit_read(hit, status));
    to[2] = sv_2mortal(newSViv(expires_on(&info)));
    to[3] = known.flags & FLAG_MODSEQ ? sv_2mortal(newSVuv(known.modseq)) : &PL_sv_undef;
    to[4] = sv_2mortal(newSVuv(info.serial));
}

/* An entry as get_keys has it, but for its value, which may have to be decoded. NULL: it isn't the user's. */
static SV *listed(pTHX_ eyewall_hit *hit, bool keys_only) {
    known_flags known = flags_of(hit);
    SV *key = users_key(aTHX_ eyewall_hit_key(hit), known.flags);
    eyewall_info info;
    HV *entry;
    if (key == NULL || keys_only)
        return key;
    entry = newHV();
    (void)hv_stores(entry, "key", key);
    (void)hv_stores(entry, "value", flagged_value(aTHX_ hit, known.flags));
    (void)hv_stores(entry, "bits", newSVuv(known.flags));
    if (known.flags & FLAG_MODSEQ)
        (void)hv_stores(entry, "modseq", newSVuv(known.modseq));
    if (eyewall_hit_info(hit, &info) == EYEWALL_OK) {
        (void)hv_stores(entry, "expire_on", newSViv(expires_on(&info)));
        (void)hv_stores(entry, "last_access", newSViv(info.created_ms / 1000));
        (void)hv_stores(entry, "serial", newSVuv(info.serial));
        (void)hv_stores(entry, "is_stale", newSViv(info.is_stale));
    }
    return newRV_noinc((SV *)entry);
}
