/* Perl objects that hold objects of the library, and errors. */

/* An open volume. It is closed when nothing holds it any more, in whatever order Perl frees objects at its end. The
 * count is atomic, since another thread may free a pinned scalar. */
typedef struct {
    eyewall_cache *cache;
    size_t users;
} volume;

/* Bytes of a volume under a scalar. Threads that are cloned from this one share it. */
typedef struct {
    volume *of;
    eyewall_hit hit;
    size_t users;
} pin;

/* The right to change a key, with a copy of the value that the claim found, or NULL. A hit that stays held while Perl
 * code runs could keep the put from making room. `claim` is NULL after its end. */
typedef struct {
    volume *of;
    eyewall_claim *claim;
    SV *value;
} held_claim;

/* The duty to make an entry. `flight` is NULL after its end. */
typedef struct {
    volume *of;
    eyewall_flight *flight;
} held_flight;

typedef struct {
    volume *of;
    eyewall_iter *iter;
} walk;

/* State of a Cache::Eyewall::FastMmap beside its hash, with which a plain get or set runs without Perl code. */
typedef struct {
    volume *of;
    /* Without a read_cb; without a write_cb, and before any use of a modseq. */
    bool gets_plainly;
    bool sets_plainly;
    /* Strings are stored unchanged; all values are strings. */
    bool keeps_strings;
    bool keeps_all;
    /* Subs, or NULL unless the serializer alone makes the bytes. */
    SV *serialize;
    SV *deserialize;
    /* Seconds; 0: forever. May exceed an integer. */
    NV expire_time;
} shortcut;

static volume *volume_keep(volume *this) {
    __atomic_add_fetch(&this->users, 1, __ATOMIC_RELAXED);
    return this;
}

static void volume_leave(volume *this) {
    if (__atomic_sub_fetch(&this->users, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    eyewall_close(this->cache);
    Safefree(this);
}

/* Perl frees objects at the end of any scope, so also between a failed call and the caller's use of $!. */
#define KEEPING_ERRNO(work)                                                             \
    do {                                                                                \
        dSAVE_ERRNO;                                                                    \
        work;                                                                           \
        RESTORE_ERRNO;                                                                  \
    } while (0)

static int free_cache(pTHX_ SV *sv, MAGIC *magic) {
    PERL_UNUSED_ARG(sv);
    if (magic->mg_ptr != NULL)
        KEEPING_ERRNO(volume_leave((volume *)magic->mg_ptr));
    return 0;
}

static int free_pin(pTHX_ SV *sv, MAGIC *magic) {
    pin *this = (pin *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    if (__atomic_sub_fetch(&this->users, 1, __ATOMIC_ACQ_REL) != 0)
        return 0;
    KEEPING_ERRNO(eyewall_hit_release(&this->hit); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static int share_pin(pTHX_ MAGIC *magic, CLONE_PARAMS *unused) {
    PERL_UNUSED_ARG(unused);
    __atomic_add_fetch(&((pin *)magic->mg_ptr)->users, 1, __ATOMIC_RELAXED);
    return 0;
}

static int free_claim(pTHX_ SV *sv, MAGIC *magic) {
    held_claim *this = (held_claim *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    SvREFCNT_dec(this->value);
    KEEPING_ERRNO(eyewall_claim_end(this->claim); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static int free_flight(pTHX_ SV *sv, MAGIC *magic) {
    held_flight *this = (held_flight *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    KEEPING_ERRNO(eyewall_flight_end(this->flight); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static int free_walk(pTHX_ SV *sv, MAGIC *magic) {
    walk *this = (walk *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    KEEPING_ERRNO(eyewall_iter_end(this->iter); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static int free_shortcut(pTHX_ SV *sv, MAGIC *magic) {
    shortcut *this = (shortcut *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    SvREFCNT_dec(this->serialize);
    SvREFCNT_dec(this->deserialize);
    KEEPING_ERRNO(volume_leave(this->of));
    Safefree(this);
    return 0;
}

/* An object is a scalar with magic of this module, which Perl code can't forge. The addresses of these tables identify
 * its kind. */
static const MGVTBL cache_kind = {.svt_free = free_cache};
static const MGVTBL pin_kind = {.svt_free = free_pin, .svt_dup = share_pin};
static const MGVTBL claim_kind = {.svt_free = free_claim};
static const MGVTBL flight_kind = {.svt_free = free_flight};
static const MGVTBL walk_kind = {.svt_free = free_walk};
static const MGVTBL shortcut_kind = {.svt_free = free_shortcut};

/* A new mortal object, which owns `held`. */
static SV *object_new(pTHX_ const char *class, const MGVTBL *kind, void *held) {
    SV *inner = newSV_type(SVt_PVMG);
    SV *reference = sv_2mortal(newRV_noinc(inner));
    sv_magicext(inner, NULL, PERL_MAGIC_ext, kind, (const char *)held, 0);
    return sv_bless(reference, gv_stashpv(class, GV_ADD));
}

/* The magic of an object of this kind; NULL if it isn't one. */
static inline MAGIC *object_magic(SV *self, const MGVTBL *kind) {
    MAGIC *magic;
    if (!SvROK(self) || SvTYPE(SvRV(self)) < SVt_PVMG)
        return NULL;
    for (magic = SvMAGIC(SvRV(self)); magic != NULL; magic = magic->mg_moremagic)
        if (magic->mg_virtual == kind)
            return magic;
    return NULL;
}

/* The name of an error in Cache::Eyewall::Error: the status in small letters, without EYEWALL_ERROR_. */
static const char *error_name(eyewall_status status) {
    switch (status) {
    case EYEWALL_ERROR_ARGUMENT: return "argument";
    case EYEWALL_ERROR_KEY_EMPTY: return "key_empty";
    case EYEWALL_ERROR_KEY_TOO_LONG: return "key_too_long";
    case EYEWALL_ERROR_METADATA_TOO_LONG: return "metadata_too_long";
    case EYEWALL_ERROR_TOO_MANY_TAGS: return "too_many_tags";
    case EYEWALL_ERROR_TAG_LENGTH: return "tag_length";
    case EYEWALL_ERROR_NOT_A_COUNTER: return "not_a_counter";
    case EYEWALL_ERROR_ENTRY_TOO_LARGE: return "entry_too_large";
    case EYEWALL_ERROR_PINNED: return "pinned";
    case EYEWALL_ERROR_BUSY: return "busy";
    case EYEWALL_ERROR_INTERRUPTED: return "interrupted";
    case EYEWALL_ERROR_READ_ONLY: return "read_only";
    case EYEWALL_ERROR_NOT_FOUND: return "not_found";
    case EYEWALL_ERROR_FOREIGN: return "foreign";
    case EYEWALL_ERROR_VERSION: return "version";
    case EYEWALL_ERROR_CORRUPT: return "corrupt";
    case EYEWALL_ERROR_OPTIONS_DIFFER: return "options_differ";
    case EYEWALL_ERROR_OUT_OF_RANGE: return "out_of_range";
    case EYEWALL_ERROR_NO_TIER: return "no_tier";
    case EYEWALL_ERROR_NO_SPACE: return "no_space";
    case EYEWALL_ERROR_TOO_MANY_PROCESSES: return "too_many_processes";
    case EYEWALL_ERROR_FAILED: return "failed";
    case EYEWALL_ERROR_IO: return "io";
    default: return "internal";
    }
}

static bool is_ours(const char *package) {
    const char *name = "Cache::Eyewall";
    size_t length = strlen(name);
    return strncmp(package, name, length) == 0 && (package[length] == 0 || package[length] == ':');
}

/* The place in Perl that called, outside of these modules. */
static const COP *place_of_call(pTHX) {
    const COP *place = PL_curcop;
    I32 depth;
    for (depth = 0;; depth++) {
        const PERL_CONTEXT *frame;
        HV *stash = CopSTASH(place);
        const char *package = stash == NULL ? NULL : HvNAME(stash);
        if (package == NULL || !is_ours(package))
            return place;
        frame = caller_cx(depth, NULL);
        if (frame == NULL)
            return place;
        place = frame->blk_oldcop;
    }
}

/* Throws a Cache::Eyewall::Error. */
static void fail(pTHX_ eyewall_status status, SV *message) __attribute__((noreturn));
static void fail(pTHX_ eyewall_status status, SV *message) {
    HV *error = newHV();
    const COP *place = place_of_call(aTHX);
    SV *reference = sv_2mortal(newRV_noinc((SV *)error));
    (void)hv_stores(error, "name", newSVpv(error_name(status), 0));
    (void)hv_stores(error, "code", newSViv(status));
    (void)hv_stores(error, "message", SvREFCNT_inc_simple_NN(message));
    (void)hv_stores(error, "file", newSVpv(CopFILE(place) ? CopFILE(place) : "", 0));
    (void)hv_stores(error, "line", newSVuv(CopLINE(place)));
    croak_sv(sv_bless(reference, gv_stashpvs("Cache::Eyewall::Error", GV_ADD)));
}

/* Throws the error `argument`. */
static void fail_argument(pTHX_ const char *form, ...) __attribute__((noreturn));
static void fail_argument(pTHX_ const char *form, ...) {
    va_list arguments;
    SV *message;
    va_start(arguments, form);
    message = sv_2mortal(vnewSVpvf(form, &arguments));
    va_end(arguments);
    fail(aTHX_ EYEWALL_ERROR_ARGUMENT, message);
}

/* Throws the library's last error. */
static void fail_status(pTHX_ eyewall_status status) __attribute__((noreturn));
static void fail_status(pTHX_ eyewall_status status) {
    fail(aTHX_ status, sv_2mortal(newSVpv(eyewall_error_message(), 0)));
}

/* Passes an answer on, and throws an error. */
static inline eyewall_status answered(pTHX_ eyewall_status status) {
    if (status < EYEWALL_OK)
        fail_status(aTHX_ status);
    return status;
}

/* The volume of an open Cache::Eyewall. */
static inline volume *volume_of(pTHX_ SV *self) {
    MAGIC *magic = object_magic(self, &cache_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this is not a Cache::Eyewall of this thread: open the cache in each thread");
    if (magic->mg_ptr == NULL)
        fail_argument(aTHX_ "the cache was closed: open it again");
    return (volume *)magic->mg_ptr;
}

static inline eyewall_cache *cache_of(pTHX_ SV *self) {
    return volume_of(aTHX_ self)->cache;
}

static held_claim *claim_of(pTHX_ SV *self) {
    MAGIC *magic = object_magic(self, &claim_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this isn't a Cache::Eyewall::Claim of this thread");
    return (held_claim *)magic->mg_ptr;
}

static held_flight *flight_of(pTHX_ SV *self) {
    MAGIC *magic = object_magic(self, &flight_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this isn't a Cache::Eyewall::Flight of this thread");
    return (held_flight *)magic->mg_ptr;
}

/* The claim of an object. The caller hands it to the call that ends it. */
static eyewall_claim *claim_taken(pTHX_ held_claim *this) {
    eyewall_claim *claim = this->claim;
    if (claim == NULL)
        fail_argument(aTHX_ "the claim has ended already: a claim is for one change");
    this->claim = NULL;
    return claim;
}

static eyewall_flight *flight_taken(pTHX_ held_flight *this) {
    eyewall_flight *flight = this->flight;
    if (flight == NULL)
        fail_argument(aTHX_ "the flight has ended already: it is for one entry");
    this->flight = NULL;
    return flight;
}

/* A claim without a value, in the mortal object `object`. */
static held_claim *claim_new(pTHX_ volume *of, eyewall_claim *claim, SV **object) {
    held_claim *this;
    Newx(this, 1, held_claim);
    this->of = volume_keep(of);
    this->claim = claim;
    this->value = NULL;
    *object = object_new(aTHX_ "Cache::Eyewall::Claim", &claim_kind, this);
    return this;
}

static SV *flight_new(pTHX_ volume *of, eyewall_flight *flight) {
    held_flight *this;
    Newx(this, 1, held_flight);
    this->of = volume_keep(of);
    this->flight = flight;
    return object_new(aTHX_ "Cache::Eyewall::Flight", &flight_kind, this);
}
