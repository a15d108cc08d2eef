/* A forked child may use the cache, but nothing else that its parent held. */
#include "test.h"
#include <signal.h>
#include <sys/wait.h>

static void child_succeeds(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_child_uses_its_parents_cache(eyewall_cache *cache) {
    eyewall_hit hit;
    put(cache, "parent", "1");
    CHECK(eyewall_get(cache, STR("parent"), &hit) == EYEWALL_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        eyewall_info info;
        CHECK(has(cache, "parent", "1"));
        put(cache, "child", "2");
        CHECK(eyewall_hit_metadata(&hit).data == NULL);
        CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_ERROR_ARGUMENT && info.serial == 0);
        CHECK(strstr(eyewall_error_message(), "inherited it by a fork") != NULL);
        eyewall_hit_release(&hit);
        _exit(0);
    }
    child_succeeds(child);
    CHECK(memcmp(hit.value, "1", 1) == 0);
    eyewall_hit_release(&hit);
    CHECK(has(cache, "child", "2"));
}

static void a_childs_death_ends_its_claim(eyewall_cache *cache) {
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        eyewall_claim *claim;
        eyewall_hit hit;
        CHECK(eyewall_claim_begin(cache, STR("held"), &claim, &hit) == EYEWALL_MISS);
        CHECK(write(pipes[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    char told;
    CHECK(read(pipes[0], &told, 1) == 1);
    eyewall_claim *claim;
    eyewall_hit hit;
    CHECK(eyewall_claim_begin(cache, STR("held"), &claim, &hit) == EYEWALL_ERROR_BUSY);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    CHECK(eyewall_claim_begin(cache, STR("held"), &claim, &hit) == EYEWALL_MISS);
    CHECK(eyewall_claim_put(claim, STR("taken over"), NULL, NULL) == EYEWALL_OK);
    close(pipes[0]);
    close(pipes[1]);
}

static void a_child_ends_in_vain_what_its_parent_began(eyewall_cache *cache) {
    eyewall_claim *claim;
    eyewall_flight *flight;
    eyewall_writer *writer;
    eyewall_iter *iter;
    eyewall_hit hit;
    CHECK(eyewall_claim_begin(cache, STR("mine"), &claim, &hit) == EYEWALL_MISS);
    CHECK(eyewall_fill_begin(cache, STR("flown"), 0, false, &hit, NULL, &flight) == EYEWALL_FILL);
    CHECK(eyewall_writer_begin(cache, STR("written"), 3, NULL, &writer) == EYEWALL_OK);
    CHECK(eyewall_iter_begin(cache, false, &iter) == EYEWALL_OK);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(eyewall_claim_put(claim, STR("a child's"), NULL, NULL) == EYEWALL_SUPERSEDED);
        CHECK(eyewall_flight_store(flight, STR("a child's"), NULL, NULL) == EYEWALL_SUPERSEDED);
        CHECK(eyewall_writer_write(writer, STR("abc")) == EYEWALL_ERROR_INTERRUPTED);
        eyewall_writer_abort(writer);
        eyewall_iter_end(iter);
        CHECK(eyewall_claim_begin(cache, STR("mine"), &claim, &hit) == EYEWALL_ERROR_BUSY);
        eyewall_close(cache);
        _exit(0);
    }
    child_succeeds(child);
    CHECK(eyewall_claim_put(claim, STR("1"), NULL, NULL) == EYEWALL_OK && has(cache, "mine", "1"));
    CHECK(eyewall_flight_store(flight, STR("2"), NULL, NULL) == EYEWALL_OK && has(cache, "flown", "2"));
    CHECK(eyewall_writer_write(writer, STR("abc")) == EYEWALL_OK);
    CHECK(eyewall_writer_commit(writer, NULL) == EYEWALL_OK && has(cache, "written", "abc"));
    eyewall_iter_end(iter);
}

int main(void) {
    make_folder();
    eyewall_cache *cache;
    CHECK(eyewall_open(path, &(eyewall_open_options){.size = 4 << 20, .lock_deadline_ms = 1000}, &cache) == EYEWALL_OK);
    a_child_uses_its_parents_cache(cache);
    a_childs_death_ends_its_claim(cache);
    a_child_ends_in_vain_what_its_parent_began(cache);
    eyewall_close(cache);

    /* A parent and its children share an anonymous volume. */
    CHECK(eyewall_open_anonymous(&(eyewall_open_options){.size = 4 << 20}, &cache) == EYEWALL_OK);
    a_child_uses_its_parents_cache(cache);
    eyewall_close(cache);
    remove_folder();
    return 0;
}
