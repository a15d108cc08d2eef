/* Writers and followers of entries that are written piece by piece. */

/* Most bytes that a follower returns at once, and its longest wait in C. Perl's signal handlers run between the waits. */
#define FOLLOWED_AT_ONCE 65536
#define WAIT_MS 1000

/* An entry in progress; `writer` is NULL after its end. */
typedef struct {
    volume *of;
    eyewall_writer *writer;
} held_writer;

/* A reader of an entry in progress; `follower` is NULL after its end. */
typedef struct {
    volume *of;
    eyewall_follower *follower;
} held_follower;

static int free_writer(pTHX_ SV *sv, MAGIC *magic) {
    held_writer *this = (held_writer *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    KEEPING_ERRNO(eyewall_writer_abort(this->writer); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static int free_follower(pTHX_ SV *sv, MAGIC *magic) {
    held_follower *this = (held_follower *)magic->mg_ptr;
    PERL_UNUSED_ARG(sv);
    KEEPING_ERRNO(eyewall_follower_end(this->follower); volume_leave(this->of));
    Safefree(this);
    return 0;
}

static const MGVTBL writer_kind = {.svt_free = free_writer};
static const MGVTBL follower_kind = {.svt_free = free_follower};

static SV *writer_new(pTHX_ volume *of, eyewall_writer *writer) {
    held_writer *this;
    Newx(this, 1, held_writer);
    this->of = volume_keep(of);
    this->writer = writer;
    return object_new(aTHX_ "Cache::Eyewall::Writer", &writer_kind, this);
}

static SV *follower_new(pTHX_ volume *of, eyewall_follower *follower) {
    held_follower *this;
    Newx(this, 1, held_follower);
    this->of = volume_keep(of);
    this->follower = follower;
    return object_new(aTHX_ "Cache::Eyewall::Follower", &follower_kind, this);
}

static held_writer *writer_of(pTHX_ SV *self) {
    MAGIC *magic = object_magic(self, &writer_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this isn't a Cache::Eyewall::Writer of this thread");
    return (held_writer *)magic->mg_ptr;
}

static held_follower *follower_of(pTHX_ SV *self) {
    MAGIC *magic = object_magic(self, &follower_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this isn't a Cache::Eyewall::Follower of this thread");
    return (held_follower *)magic->mg_ptr;
}

/* The library's writer, which must not have ended. */
static eyewall_writer *writer_going_on(pTHX_ SV *self) {
    eyewall_writer *writer = writer_of(aTHX_ self)->writer;
    if (writer == NULL)
        fail_argument(aTHX_ "the writer has ended already: begin another one");
    return writer;
}

static eyewall_follower *follower_going_on(pTHX_ SV *self) {
    eyewall_follower *follower = follower_of(aTHX_ self)->follower;
    if (follower == NULL)
        fail_argument(aTHX_ "the follower has ended already: begin another one");
    return follower;
}

/* Reads the next bytes into FOLLOWED_AT_ONCE bytes of memory, within this many milliseconds. */
static eyewall_status followed(pTHX_ SV *self, void *buffer, uint64_t patience_ms, size_t *length) {
    for (;;) {
        uint64_t wait = patience_ms < WAIT_MS ? patience_ms : WAIT_MS;
        /* A signal handler may have ended the follower. */
        eyewall_status status =
            eyewall_follower_read(follower_going_on(aTHX_ self), buffer, FOLLOWED_AT_ONCE, wait, length);
        patience_ms -= wait;
        if (status != EYEWALL_ERROR_BUSY || patience_ms == 0)
            return answered(aTHX_ status);
        PERL_ASYNC_CHECK();
    }
}
