/* The C actor: answers the questions on its standard input (bindings/cases/README.md). */
#define _GNU_SOURCE
#include <eyewall.h>
#include <signal.h>

#include "words.h"

static eyewall_cache *cache;
/* The serial that the last `get` returned; `replace` compares with it. */
static uint64_t serial;
static eyewall_claim *claim;
static eyewall_writer *writer;

/* The names of statuses from -1 downwards. */
static const char *const errors[] = {
    "argument",      "key_empty",     "key_too_long",  "metadata_too_long", "too_many_tags", "tag_length",
    "not_a_counter", "entry_too_large", "pinned",      "busy",              "interrupted",   "read_only",
    "not_found",     "foreign",       "version",       "corrupt",           "options_differ", "out_of_range",
    "no_tier",       "no_space",      "too_many_processes", "failed",       "io",            "internal",
};

static void answer_status(eyewall_status status) {
    size_t number = (size_t)-(status + 1);
    switch (status) {
    case EYEWALL_OK:
        answer("ok");
        break;
    case EYEWALL_MISS:
        answer("miss");
        break;
    case EYEWALL_UNMET:
        answer("unmet");
        break;
    case EYEWALL_SUPERSEDED:
        answer("superseded");
        break;
    default:
        fprintf(stderr, "%s\n", eyewall_error_message());
        printf("error\t%s\n", number < sizeof errors / sizeof *errors ? errors[number] : "unknown");
        fflush(stdout);
    }
}

static void answer_hit(eyewall_hit *hit) {
    answer_bytes("value", hit->value, hit->value_length);
    eyewall_hit_release(hit);
}

/* The value of an option, or NULL. Options come last in a question. */
static char *option(struct word *words, int count, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < count; i++)
        if (strncmp(words[i].bytes, name, length) == 0 && words[i].bytes[length] == '=')
            return words[i].bytes + length + 1;
    return NULL;
}

static uint64_t milliseconds(struct word *words, int count, const char *name) {
    char *given = option(words, count, name);
    return given ? strtoull(given, NULL, 10) : 0;
}

static eyewall_put_options put_options(struct word *words, int count, eyewall_bytes *tags) {
    eyewall_put_options options = {
        .ttl_ms = milliseconds(words, count, "ttl"), .stale_ms = milliseconds(words, count, "stale"), .tags = tags};
    char *names = option(words, count, "tags");
    for (char *name = names ? strtok(names, ",") : NULL; name != NULL && options.tags_count < TAGS_MAX; name = strtok(NULL, ","))
        tags[options.tags_count++] = (eyewall_bytes){name, strlen(name)};
    return options;
}

static void put(struct word *words, int count) {
    eyewall_bytes tags[TAGS_MAX];
    struct word key = words[1], value = words[2];
    eyewall_put_options options = put_options(words + 3, count - 3, tags);
    bool adds = strcmp(words[0].bytes, "add") == 0;
    answer_status((adds ? eyewall_add : eyewall_put)(cache, key.bytes, key.length, value.bytes, value.length, &options, NULL));
}

static void negative(struct word *words, int count) {
    eyewall_bytes tags[TAGS_MAX];
    eyewall_put_options options = put_options(words + 3, count - 3, tags);
    uint16_t reason = (uint16_t)strtoul(words[2].bytes, NULL, 10);
    answer_status(eyewall_put_negative(cache, words[1].bytes, words[1].length, reason, &options, NULL));
}

static void lookup(struct word key) {
    eyewall_hit hit;
    eyewall_info info;
    eyewall_status status = eyewall_lookup(cache, key.bytes, key.length, &hit);
    if (status == EYEWALL_NEGATIVE && eyewall_hit_info(&hit, &info) == EYEWALL_OK)
        answer_number("negative", info.reason);
    else if (status == EYEWALL_OK || status == EYEWALL_STALE)
        answer_bytes(status == EYEWALL_OK ? "fresh" : "stale", hit.value, hit.value_length);
    else
        answer_status(status);
    eyewall_hit_release(&hit);
}

static void get(struct word key) {
    eyewall_hit hit;
    eyewall_info info;
    eyewall_status status = eyewall_get(cache, key.bytes, key.length, &hit);
    if (status != EYEWALL_OK) {
        answer_status(status);
        return;
    }
    if (eyewall_hit_info(&hit, &info) == EYEWALL_OK)
        serial = info.serial;
    answer_hit(&hit);
}

static void append(struct word key, struct word bytes) {
    eyewall_hit hit;
    eyewall_claim *own;
    eyewall_status status = eyewall_claim_begin(cache, key.bytes, key.length, &own, &hit);
    if (status < EYEWALL_OK) {
        answer_status(status);
        return;
    }
    size_t length = hit.value_length + bytes.length;
    char *value = malloc(length + 1);
    if (value == NULL)
        abort();
    if (hit.value_length > 0)
        memcpy(value, hit.value, hit.value_length);
    memcpy(value + hit.value_length, bytes.bytes, bytes.length);
    eyewall_hit_release(&hit);
    status = eyewall_claim_put(own, value, length, NULL, NULL);
    if (status == EYEWALL_OK)
        answer_bytes("value", value, length);
    else
        answer_status(status);
    free(value);
}

static void take_claim(struct word key) {
    eyewall_hit hit;
    eyewall_status status = eyewall_claim_begin(cache, key.bytes, key.length, &claim, &hit);
    if (status == EYEWALL_OK)
        answer_hit(&hit);
    else if (status == EYEWALL_MISS)
        answer("none");
    else
        answer_status(status);
}

static void store(struct word value) {
    answer_status(eyewall_claim_put(claim, value.bytes, value.length, NULL, NULL));
    claim = NULL;
}

static void fill(struct word *words, int count) {
    struct word key = words[1], value = words[2];
    eyewall_hit hit;
    eyewall_flight *flight;
    eyewall_status status = eyewall_fill_begin(cache, key.bytes, key.length, 10000, false, &hit, NULL, &flight);
    if (status == EYEWALL_OK) {
        answer_hit(&hit);
        return;
    }
    char *then = option(words + 3, count - 3, "then");
    if (status == EYEWALL_FILL && then != NULL) {
        if (strcmp(then, "die") == 0)
            raise(SIGKILL);
        eyewall_flight_end(flight);
        answer("failed");
        return;
    }
    if (status == EYEWALL_FILL)
        status = eyewall_flight_store(flight, value.bytes, value.length, NULL, NULL);
    if (status == EYEWALL_OK)
        answer_bytes("made", value.bytes, value.length);
    else
        answer_status(status);
}

static void purge(struct word *words, int count) {
    struct word what = words[1], which = words[2];
    eyewall_purge how = option(words + 2, count - 2, "mode") != NULL ? EYEWALL_PURGE_SOFT : EYEWALL_PURGE_HARD;
    if (strcmp(what.bytes, "tag") == 0)
        answer_status(eyewall_purge_tag(cache, which.bytes, which.length, how));
    else if (strcmp(what.bytes, "prefix") == 0)
        answer_status(eyewall_purge_prefix(cache, which.bytes, which.length, how));
    else
        answer_status(eyewall_purge_all(cache, how));
}

static void begin(struct word *words, int count) {
    eyewall_bytes tags[TAGS_MAX];
    eyewall_put_options options = put_options(words + 2, count - 2, tags);
    answer_status(
        eyewall_writer_begin(cache, words[1].bytes, words[1].length, EYEWALL_LENGTH_UNKNOWN, &options, &writer));
}

static void commit(void) {
    answer_status(eyewall_writer_commit(writer, NULL));
    writer = NULL;
}

static void give_up(void) {
    eyewall_writer_abort(writer);
    writer = NULL;
    answer("ok");
}

static void count_entries(void) {
    eyewall_iter *iter;
    eyewall_hit hit;
    long long met = 0;
    eyewall_status status = eyewall_iter_begin(cache, false, &iter);
    if (status != EYEWALL_OK) {
        answer_status(status);
        return;
    }
    for (; eyewall_iter_next(iter, &hit) == EYEWALL_OK; met++)
        eyewall_hit_release(&hit);
    eyewall_iter_end(iter);
    answer_number("count", met);
}

static void increment(struct word key, struct word by) {
    int64_t sum;
    eyewall_status status = eyewall_increment(cache, key.bytes, key.length, strtoll(by.bytes, NULL, 10), NULL, &sum);
    if (status == EYEWALL_OK)
        answer_number("sum", sum);
    else
        answer_status(status);
}

static void open_volume(struct word *words, int count) {
    eyewall_open_options options = {.size = strtoull(words[2].bytes, NULL, 10)};
    if (option(words + 3, count - 3, "fleet") != NULL)
        options.flags = EYEWALL_FLEET;
    answer_status(eyewall_open(words[1].bytes, &options, &cache));
}

/* Answers a question. `words` has room for more than `count`; the words after those are empty. */
static void values(const char *question, struct word *words, int count) {
    struct word key = words[1], value = words[2];
    if (strcmp(question, "put") == 0 || strcmp(question, "add") == 0)
        put(words, count);
    else if (strcmp(question, "negative") == 0)
        negative(words, count);
    else if (strcmp(question, "get") == 0)
        get(key);
    else if (strcmp(question, "lookup") == 0)
        lookup(key);
    else if (strcmp(question, "replace") == 0)
        answer_status(eyewall_replace_if(cache, key.bytes, key.length, serial, value.bytes, value.length, NULL, NULL));
    else if (strcmp(question, "remove") == 0)
        answer_status(eyewall_remove(cache, key.bytes, key.length));
    else if (strcmp(question, "contains") == 0)
        answer(eyewall_contains(cache, key.bytes, key.length) == EYEWALL_OK ? "yes" : "no");
    else if (strcmp(question, "touch") == 0) {
        eyewall_touch_options touch = {.set_times = true,
                                       .ttl_ms = milliseconds(words + 2, count - 2, "ttl"),
                                       .stale_ms = milliseconds(words + 2, count - 2, "stale")};
        answer_status(eyewall_touch(cache, key.bytes, key.length, &touch));
    } else if (strcmp(question, "increment") == 0)
        increment(key, value);
    else if (strcmp(question, "purge") == 0)
        purge(words, count);
    else if (strcmp(question, "clear") == 0)
        answer_status(eyewall_clear(cache, NULL));
    else if (strcmp(question, "count") == 0)
        count_entries();
    else
        answer("cannot");
}

static void act(struct word *words, int count) {
    struct word key = words[1];
    const char *question = words[0].bytes;
    if (strcmp(question, "open") == 0)
        open_volume(words, count);
    else if (strcmp(question, "append") == 0)
        append(key, words[2]);
    else if (strcmp(question, "claim") == 0)
        take_claim(key);
    else if (strcmp(question, "store") == 0)
        store(key);
    else if (strcmp(question, "fill") == 0)
        fill(words, count);
    else if (strcmp(question, "begin") == 0)
        begin(words, count);
    else if (strcmp(question, "write") == 0)
        answer_status(eyewall_writer_write(writer, key.bytes, key.length));
    else if (strcmp(question, "commit") == 0)
        commit();
    else if (strcmp(question, "abort") == 0)
        give_up();
    else
        values(question, words, count);
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        static char nothing[1];
        struct word words[WORDS_MAX];
        int count = split(line, words);
        for (int i = count; i < WORDS_MAX; i++)
            words[i] = (struct word){nothing, 0};
        act(words, count);
    }
    free(line);
    eyewall_claim_end(claim);
    eyewall_writer_abort(writer);
    eyewall_close(cache);
    return 0;
}
