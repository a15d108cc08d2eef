/* Claims, flights, writers and followers: which operations wait for which, and which supersede them. */
#include "test.h"
#include <pthread.h>

static eyewall_cache *cache;

static void a_claim_changes_an_entry(void) {
    eyewall_claim *claim;
    eyewall_hit hit;
    uint64_t serial;
    CHECK(eyewall_claim_begin(cache, STR("claimed"), &claim, &hit) == EYEWALL_MISS && claim != NULL);
    CHECK(eyewall_claim_put(claim, STR("1"), NULL, &serial) == EYEWALL_OK && serial != 0 && has(cache, "claimed", "1"));

    CHECK(eyewall_claim_begin(cache, STR("claimed"), &claim, &hit) == EYEWALL_OK);
    CHECK(hit.value_length == 1);
    /* A hit may outlive its claim. */
    CHECK(eyewall_claim_put(claim, STR("2"), NULL, NULL) == EYEWALL_OK);
    CHECK(*(const char *)hit.value == '1');
    eyewall_hit_release(&hit);

    CHECK(eyewall_claim_begin(cache, STR("claimed"), &claim, &hit) == EYEWALL_OK);
    eyewall_hit_release(&hit);
    put(cache, "claimed", "3");
    CHECK(eyewall_claim_put(claim, STR("4"), NULL, &serial) == EYEWALL_SUPERSEDED && serial == 0);
    CHECK(has(cache, "claimed", "3"));

    CHECK(eyewall_claim_begin(cache, STR("claimed"), &claim, &hit) == EYEWALL_OK);
    eyewall_hit_release(&hit);
    CHECK(eyewall_claim_remove(claim) == EYEWALL_OK && has(cache, "claimed", NULL));

    eyewall_claim_end(NULL);
    CHECK(eyewall_claim_put(NULL, STR("4"), NULL, NULL) == EYEWALL_ERROR_ARGUMENT);
}

static void a_second_claim_waits_in_vain(void) {
    eyewall_cache *impatient;
    eyewall_claim *claim, *second;
    eyewall_hit hit;
    CHECK(eyewall_open_anonymous(&(eyewall_open_options){.size = 4 << 20, .lock_deadline_ms = 50}, &impatient) == EYEWALL_OK);
    CHECK(eyewall_claim_begin(impatient, STR("claimed"), &claim, &hit) == EYEWALL_MISS);
    CHECK(eyewall_claim_begin(impatient, STR("claimed"), &second, &hit) == EYEWALL_ERROR_BUSY && second == NULL);
    eyewall_claim_end(claim);
    eyewall_close(impatient);
}

enum { THREADS = 4, ROUNDS = 500 };

static void *add_ones(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        eyewall_claim *claim;
        eyewall_hit hit;
        eyewall_status status = eyewall_claim_begin(cache, STR("sum"), &claim, &hit);
        CHECK(status == EYEWALL_OK || status == EYEWALL_MISS);
        int sum = 0;
        if (status == EYEWALL_OK)
            memcpy(&sum, hit.value, sizeof sum);
        eyewall_hit_release(&hit);
        sum++;
        CHECK(eyewall_claim_put(claim, &sum, sizeof sum, NULL, NULL) == EYEWALL_OK);
    }
    return unused;
}

static void no_claimed_update_is_lost(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, add_ones, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    int sum;
    size_t length;
    CHECK(eyewall_get_copy(cache, STR("sum"), &sum, sizeof sum, &length) == EYEWALL_OK && sum == THREADS * ROUNDS);
}

static int made;
static pthread_barrier_t all_ask;

static void *ask(void *unused) {
    eyewall_hit hit;
    eyewall_flight *flight;
    pthread_barrier_wait(&all_ask);
    eyewall_status status = eyewall_fill_begin(cache, STR("page"), 10000, false, &hit, NULL, &flight);
    if (status == EYEWALL_FILL) {
        /* Makes the others wait. */
        usleep(20000);
        __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
        CHECK(eyewall_flight_store(flight, STR("made once"), NULL, NULL) == EYEWALL_OK);
    } else {
        CHECK(status == EYEWALL_OK && hit.value_length == 9);
        eyewall_hit_release(&hit);
    }
    return unused;
}

static void what_many_ask_for_is_made_once(void) {
    pthread_t threads[THREADS];
    CHECK(pthread_barrier_init(&all_ask, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, ask, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(made == 1);
}

static void a_flight_has_four_ends(void) {
    eyewall_hit hit;
    eyewall_flight *flight, *second;
    uint16_t reason;
    CHECK(eyewall_fill_begin(cache, STR("flown"), 0, false, &hit, &reason, &flight) == EYEWALL_FILL);
    CHECK(eyewall_fill_begin(cache, STR("flown"), 5, false, &hit, &reason, &second) == EYEWALL_ERROR_BUSY);
    eyewall_flight_end(flight);
    CHECK(eyewall_fill_begin(cache, STR("flown"), 0, false, &hit, &reason, &flight) == EYEWALL_FILL);
    put(cache, "flown", "meanwhile");
    CHECK(eyewall_flight_store(flight, STR("too late"), NULL, NULL) == EYEWALL_SUPERSEDED);
    CHECK(has(cache, "flown", "meanwhile"));
    CHECK(eyewall_remove(cache, STR("flown")) == EYEWALL_OK);
    CHECK(eyewall_fill_begin(cache, STR("flown"), 0, false, &hit, &reason, &flight) == EYEWALL_FILL);
    CHECK(eyewall_flight_remember(flight, 503, 60000) == EYEWALL_OK);
    CHECK(eyewall_fill_begin(cache, STR("flown"), 0, false, &hit, &reason, &flight) == EYEWALL_NEGATIVE && reason == 503);
    CHECK(flight == NULL && hit.value == NULL);

    /* While one process renews the entry, the others may use the stale one. */
    eyewall_put_options options = {.ttl_ms = 60000, .stale_ms = 60000};
    CHECK(eyewall_put(cache, STR("stale"), STR("old"), &options, NULL) == EYEWALL_OK);
    CHECK(eyewall_purge_prefix(cache, STR("stale"), EYEWALL_PURGE_SOFT) == EYEWALL_OK);
    CHECK(eyewall_fill_begin(cache, STR("stale"), 0, true, &hit, NULL, &flight) == EYEWALL_FILL);
    CHECK(eyewall_fill_begin(cache, STR("stale"), 0, true, &hit, NULL, &second) == EYEWALL_STALE && hit.value_length == 3);
    eyewall_hit_release(&hit);
    CHECK(eyewall_flight_store(flight, STR("new"), &options, NULL) == EYEWALL_OK && has(cache, "stale", "new"));
    static char large[1 << 20];
    CHECK(eyewall_fill_begin(cache, STR("large"), 0, false, &hit, NULL, &flight) == EYEWALL_FILL);
    CHECK(eyewall_flight_store(flight, large, sizeof large, NULL, NULL) == EYEWALL_ERROR_ENTRY_TOO_LARGE);
    eyewall_flight_end(NULL);
}

static void a_writer_is_followed(void) {
    eyewall_writer *writer;
    eyewall_follower *follower;
    char bytes[64];
    size_t length;
    uint64_t serial;
    eyewall_put_options options = {.metadata = "text/xml", .metadata_length = 8};
    CHECK(eyewall_follow(cache, STR("feed"), &follower) == EYEWALL_MISS && follower == NULL);
    CHECK(eyewall_writer_begin(cache, STR("feed"), EYEWALL_LENGTH_UNKNOWN, &options, &writer) == EYEWALL_OK);
    CHECK(eyewall_writer_write(writer, STR("<item>")) == EYEWALL_OK);
    CHECK(eyewall_follow(cache, STR("feed"), &follower) == EYEWALL_OK);
    CHECK(eyewall_follower_metadata(follower).length == 8);
    CHECK(eyewall_follower_read(follower, bytes, sizeof bytes, 1000, &length) == EYEWALL_OK && length == 6);
    CHECK(eyewall_follower_read(follower, bytes, sizeof bytes, 0, &length) == EYEWALL_ERROR_BUSY && length == 0);
    CHECK(eyewall_follower_read(follower, NULL, 0, 0, &length) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_writer_write(writer, STR("</item>")) == EYEWALL_OK && has(cache, "feed", NULL));
    CHECK(eyewall_writer_commit(writer, &serial) == EYEWALL_OK && serial != 0 && has(cache, "feed", "<item></item>"));
    CHECK(eyewall_follower_read(follower, bytes, sizeof bytes, 1000, &length) == EYEWALL_OK && length == 7);
    CHECK(eyewall_follower_read(follower, bytes, sizeof bytes, 1000, &length) == EYEWALL_END);
    eyewall_follower_end(follower);

    CHECK(eyewall_writer_begin(cache, STR("feed"), 3, NULL, &writer) == EYEWALL_OK);
    CHECK(eyewall_follow(cache, STR("feed"), &follower) == EYEWALL_OK);
    eyewall_writer_abort(writer);
    CHECK(eyewall_follower_read(follower, bytes, sizeof bytes, 1000, &length) == EYEWALL_ERROR_INTERRUPTED);
    eyewall_follower_end(follower);
    CHECK(has(cache, "feed", "<item></item>"));

    CHECK(eyewall_writer_begin(cache, STR("feed"), 3, NULL, &writer) == EYEWALL_OK);
    put(cache, "feed", "meanwhile");
    CHECK(eyewall_writer_write(writer, STR("abc")) == EYEWALL_OK);
    CHECK(eyewall_writer_commit(writer, &serial) == EYEWALL_SUPERSEDED && serial == 0);

    static char large[1 << 20];
    CHECK(eyewall_writer_begin(cache, STR("feed"), sizeof large, NULL, &writer) == EYEWALL_ERROR_ENTRY_TOO_LARGE);
    CHECK(writer == NULL);
    CHECK(eyewall_writer_begin(cache, STR("feed"), EYEWALL_LENGTH_UNKNOWN, NULL, &writer) == EYEWALL_OK);
    CHECK(eyewall_writer_write(writer, large, sizeof large) == EYEWALL_ERROR_ENTRY_TOO_LARGE);
    CHECK(eyewall_writer_commit(writer, NULL) == EYEWALL_ERROR_INTERRUPTED);
}

int main(void) {
    make_folder();
    CHECK(eyewall_open(path, &(eyewall_open_options){.size = 4 << 20, .lock_deadline_ms = 60000}, &cache) == EYEWALL_OK);
    a_claim_changes_an_entry();
    a_second_claim_waits_in_vain();
    no_claimed_update_is_lost();
    what_many_ask_for_is_made_once();
    a_flight_has_four_ends();
    a_writer_is_followed();
    eyewall_close(cache);
    remove_folder();
    return 0;
}
