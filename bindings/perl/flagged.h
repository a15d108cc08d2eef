/* Format of values and keys of Cache::Eyewall::FastMmap.
 *
 * Metadata: the byte 'P', a byte of flags, and with FLAG_MODSEQ eight bytes of a number, lowest first. An entry without metadata,
 * or with other metadata, is bytes, as other languages put them. A value that needs no flag is put without metadata.
 *
 * Keys are the bytes that Perl holds: UTF-8, if the string has the UTF-8 flag. An empty key, and one that begins with a zero byte,
 * gets the prefix "\0\0". Keys of multi_set get the prefix "\0\1", the length of the page key, ':' and the page key. The class's
 * own keys begin with "\0\2".
 */

enum {
    FLAG_UNDEFINED = 1,  /* The value is undef. */
    FLAG_UTF8 = 2,       /* The stored bytes are UTF-8, and Perl's flag was on. */
    FLAG_SERIALIZED = 4,
    FLAG_COMPRESSED = 8,
    FLAG_DIRTY = 16,     /* To be written back. */
    FLAG_KEY_UTF8 = 32,
    FLAG_MODSEQ = 64,
    FLAG_TEXT = 128      /* The bytes before compression are UTF-8 text. */
};

/* Ten years: an unwritten entry is kept past its time to live. */
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

/* The key in the volume; `flags` gets FLAG_KEY_UTF8. */
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

/* The user's key, which is "page-key" under a page key; NULL for the class's own keys. */
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

/* The stored bytes: the whole value unless it is serialized or compressed. The hit stays held. */
static inline SV *flagged_value(pTHX_ const eyewall_hit *hit, unsigned flags) {
    SV *value;
    if (flags & FLAG_UNDEFINED)
        return newSV(0);
    value = newSVpvn((const char *)hit->value, hit->value_length);
    if (flags & FLAG_UTF8)
        SvUTF8_on(value);
    return value;
}

/* The stored bytes and the flags; releases the hit. */
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

/* The flags, if they are needed to decode the value; else 0. */
static inline unsigned decoding_flags(unsigned flags) {
    return flags & (FLAG_SERIALIZED | FLAG_COMPRESSED) ? flags : 0;
}

static int64_t wall_milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The milliseconds from now to a second since 1970, plus one, since the clock is rounded down to the millisecond. Not
 * a number counts as expired. */
static uint64_t ttl_until(NV second) {
    NV left = second * 1000 + 1 - (NV)wall_milliseconds();
    return !(left >= 1) ? 1 : left > MILLISECONDS_MAX ? (uint64_t)MILLISECONDS_MAX : (uint64_t)left;
}

/* The expiry time of an entry in seconds since 1970, from `info`; 0: never. Entries expire at a whole second, so this
 * rounds to the nearest one: the volume's clock and this one differ by some milliseconds. */
static IV expires_on(const eyewall_info *info) {
    int64_t left = (int64_t)info->ttl_left_ms;
    if (info->ttl_left_ms == EYEWALL_FOREVER)
        return 0;
    /* A stale entry only knows how long it is kept. */
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

/* Options for a put of a value with flags; NULL if it needs none. `modseq` may be undef. */
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

/* Result of a put: whether the value is stored, or was, before another process changed it. As in Cache::FastMmap, a
 * value that can't be stored is no error; _message says why. */
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

/* Result of a look-up. As in Cache::FastMmap, a key that is too long is a miss. */
static inline eyewall_status looked_up(pTHX_ eyewall_status status) {
    return status == EYEWALL_ERROR_KEY_TOO_LONG ? EYEWALL_MISS : answered(aTHX_ status);
}

/* Whether a value is a plain string, which its bytes and its UTF-8 flag describe completely. */
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

/* Calls a Perl method with the arguments of this XSUB, and returns its result. */
#define GO_TO(method)                                                                   \
    do {                                                                                \
        PUSHMARK(SP);                                                                   \
        SP += items;                                                                    \
        PUTBACK;                                                                        \
        call_pv("Cache::Eyewall::FastMmap::" method, GIMME_V);                          \
        return;                                                                         \
    } while (0)

/* A mortal copy of a tied value that was just fetched. */
static SV *mortal_copy_got(pTHX_ SV *tied) {
    SV *copy = sv_newmortal();
    sv_setsv_nomg(copy, tied);
    return copy;
}

/* The mortal result of a sub with one argument. */
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

/* Decodes a value that is only serialized; mortal. */
static SV *deserialized(pTHX_ SV *deserialize, SV *bytes) {
    SV *reference = called(aTHX_ deserialize, bytes);
    if (!SvROK(reference))
        fail_argument(aTHX_ "the deserializer returned no reference: was the value stored with the same serializer?");
    return sv_mortalcopy(SvRV(reference));
}

/* Returns five elements: flags, value, expire_on, modseq, serial. Releases the hit. */
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

/* An entry for get_keys, except its value, which may have to be decoded. NULL for an entry of the class itself. */
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
