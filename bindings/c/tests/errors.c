/* Invalid calls, and their error messages. */
#include "test.h"
#include <glob.h>
#include <pthread.h>
#include <sys/stat.h>

static bool says(const char *words) {
    return strstr(eyewall_error_message(), words) != NULL;
}

static void of_opening(void) {
    eyewall_cache *cache = (eyewall_cache *)1;
    CHECK(eyewall_open(path, &(eyewall_open_options){.flags = EYEWALL_MUST_EXIST}, &cache) == EYEWALL_ERROR_NOT_FOUND);
    CHECK(cache == NULL && says(path));
    CHECK(eyewall_open(NULL, NULL, &cache) == EYEWALL_ERROR_ARGUMENT && cache == NULL);
    CHECK(eyewall_open("", NULL, &cache) == EYEWALL_ERROR_ARGUMENT && says("empty"));
    CHECK(eyewall_open(path, NULL, NULL) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_open(path, &(eyewall_open_options){.size = 1}, &cache) == EYEWALL_ERROR_OUT_OF_RANGE);
    CHECK(eyewall_open("/dev/null/volume", NULL, &cache) == EYEWALL_ERROR_IO);

    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("Something else, and nobody wants to lose it.", file) >= 0 && fclose(file) == 0);
    CHECK(eyewall_open(path, NULL, &cache) == EYEWALL_ERROR_FOREIGN && says("left as it is"));
    CHECK(unlink(path) == 0);

    CHECK((file = fopen(path, "w")) != NULL && fclose(file) == 0);
    CHECK(eyewall_open(path, NULL, &cache) == EYEWALL_ERROR_CORRUPT && says("put_aside_broken"));
    CHECK(eyewall_open(path, &(eyewall_open_options){.flags = EYEWALL_PUT_ASIDE_BROKEN}, &cache) == EYEWALL_OK);
    CHECK(eyewall_put(cache, STR("k"), STR("v"), NULL, NULL) == EYEWALL_OK);
    eyewall_close(cache);
    char pattern[sizeof path + 16];
    glob_t aside;
    snprintf(pattern, sizeof pattern, "%s.broken-*", path);
    CHECK(glob(pattern, 0, NULL, &aside) == 0 && aside.gl_pathc == 1 && unlink(aside.gl_pathv[0]) == 0);
    globfree(&aside);
    CHECK(unlink(path) == 0);

    cache = open_volume();
    eyewall_cache *other;
    CHECK(eyewall_open(path, &(eyewall_open_options){.size = 8 << 20}, &other) == EYEWALL_ERROR_OPTIONS_DIFFER);
    struct stat about;
    CHECK(stat(path, &about) == 0 && (about.st_mode & 0777) == 0600);
    CHECK(eyewall_open(path, &(eyewall_open_options){.flags = EYEWALL_READ_ONLY}, &other) == EYEWALL_OK);
    CHECK(eyewall_put(other, STR("k"), STR("v"), NULL, NULL) == EYEWALL_ERROR_READ_ONLY);
    CHECK(eyewall_is_read_only(other) && !eyewall_is_read_only(NULL));
    eyewall_close(other);
    eyewall_close(cache);
    eyewall_close(NULL);
}

/* Overwrites the first occurrence of these bytes in the volume's file. */
static void damage(const char *bytes) {
    FILE *file = fopen(path, "r+");
    static char held[4 << 20];
    CHECK(file != NULL);
    size_t length = fread(held, 1, sizeof held, file);
    char *found = memmem(held, length, bytes, strlen(bytes));
    CHECK(found != NULL && fseek(file, found - held, SEEK_SET) == 0 && fputc('#', file) == '#' && fclose(file) == 0);
}

static void of_damage(void) {
    eyewall_cache *cache;
    eyewall_open_options options = {.size = 4 << 20, .flags = EYEWALL_VERIFY_HITS};
    CHECK(eyewall_open(path, &options, &cache) == EYEWALL_OK);
    put(cache, "key", "a value that is damaged later");
    CHECK(has(cache, "key", "a value that is damaged later"));
    damage("a value that is damaged later");
    CHECK(has(cache, "key", NULL));
    eyewall_close(cache);
    CHECK(unlink(path) == 0);
}

static void of_a_fleet(void) {
    eyewall_cache *cache;
    eyewall_open_options options = {.size = 4 << 20, .flags = EYEWALL_FLEET};
    char outbox[sizeof path + 16];
    snprintf(outbox, sizeof outbox, "%s.purges", path);
    CHECK(eyewall_open(path, &options, &cache) == EYEWALL_OK);
    CHECK(eyewall_purge_tag(cache, STR("post-7"), EYEWALL_PURGE_HARD) == EYEWALL_OK);
    struct stat about;
    CHECK(stat(outbox, &about) == 0 && about.st_size > 6);
    CHECK(unlink(outbox) == 0 && mkdir(outbox, 0700) == 0);
    CHECK(eyewall_purge_all(cache, EYEWALL_PURGE_HARD) == EYEWALL_ERROR_IO && says("counts here"));
    eyewall_close(cache);
    CHECK(rmdir(outbox) == 0 && unlink(path) == 0);
}

static void of_arguments(eyewall_cache *cache) {
    eyewall_hit hit;
    static char large[1 << 20];
    CHECK(eyewall_get(cache, "", 0, &hit) == EYEWALL_ERROR_KEY_EMPTY && hit.value == NULL);
    CHECK(eyewall_get(cache, NULL, 3, &hit) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_get(cache, STR("k"), NULL) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_get(NULL, STR("k"), &hit) == EYEWALL_ERROR_ARGUMENT && says("NULL"));
    CHECK(eyewall_put(cache, large, 1 << 17, STR("v"), NULL, NULL) == EYEWALL_ERROR_KEY_TOO_LONG);
    CHECK(eyewall_put(cache, STR("k"), large, sizeof large, NULL, NULL) == EYEWALL_ERROR_ENTRY_TOO_LARGE);
    CHECK(says("limit of this volume"));
    CHECK(eyewall_put(cache, STR("k"), NULL, 5, NULL, NULL) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_open(path, &(eyewall_open_options){.flags = 1u << 31}, &(eyewall_cache *){NULL}) == EYEWALL_ERROR_ARGUMENT);

    /* After an error all results are NULL or zero. */
    uint64_t serial = 7, offset = 7;
    int64_t sum = 7;
    bool resident = true;
    size_t count = 7;
    eyewall_hit hits[2];
    CHECK(eyewall_put(cache, "", 0, STR("v"), NULL, &serial) == EYEWALL_ERROR_KEY_EMPTY && serial == 0);
    CHECK(eyewall_increment(cache, "", 0, 1, NULL, &sum) == EYEWALL_ERROR_KEY_EMPTY && sum == 0);
    CHECK(eyewall_is_resident(cache, "", 0, &resident) == EYEWALL_ERROR_KEY_EMPTY && !resident);
    CHECK(eyewall_get_copy(NULL, STR("k"), NULL, 0, &count) == EYEWALL_ERROR_ARGUMENT && count == 0);
    CHECK(eyewall_hit_file_range(NULL, &offset, NULL) == EYEWALL_ERROR_ARGUMENT && offset == 0);
    memset(hits, 255, sizeof hits);
    CHECK(eyewall_get_many(cache, NULL, 2, hits) == EYEWALL_ERROR_ARGUMENT && hits[1].value == NULL);

    eyewall_put_options options = {.metadata = large, .metadata_length = 70000};
    CHECK(eyewall_put(cache, STR("k"), STR("v"), &options, NULL) == EYEWALL_ERROR_METADATA_TOO_LONG);
    eyewall_bytes tags[33];
    for (int i = 0; i < 33; i++)
        tags[i] = (eyewall_bytes){STR("tag")};
    options = (eyewall_put_options){.tags = tags, .tags_count = 33};
    CHECK(eyewall_put(cache, STR("k"), STR("v"), &options, NULL) == EYEWALL_ERROR_TOO_MANY_TAGS);
    tags[0].length = 0;
    options.tags_count = 1;
    CHECK(eyewall_put(cache, STR("k"), STR("v"), &options, NULL) == EYEWALL_ERROR_TAG_LENGTH);
    tags[0] = (eyewall_bytes){STR("\xff")};
    CHECK(eyewall_put(cache, STR("k"), STR("v"), &options, NULL) == EYEWALL_ERROR_ARGUMENT && says("UTF-8"));
    CHECK(eyewall_purge_all(cache, 7) == EYEWALL_ERROR_ARGUMENT && says("EYEWALL_PURGE"));
    CHECK(eyewall_purge_tag(cache, STR("\xff"), EYEWALL_PURGE_HARD) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_stats_read(cache, NULL, 8) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_written(NULL, NULL, NULL) == EYEWALL_ERROR_ARGUMENT);

    memset(&hit, 0, sizeof hit);
    eyewall_info info;
    CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_ERROR_ARGUMENT && says("the hit is empty"));
    CHECK(eyewall_hit_key(&hit).data == NULL && eyewall_hit_metadata(NULL).data == NULL);
    CHECK(eyewall_size(NULL) == 0);
    CHECK(has(cache, "k", NULL));
}

/* The file is truncated under the map while an entry is held. */
static void of_lost_bytes(void) {
    eyewall_cache *cache;
    eyewall_hit hit, copy;
    char buffer[8];
    size_t length;
    unlink(path);
    eyewall_open_options options = {.size = 4 << 20, .flags = EYEWALL_SURVIVE_SIGBUS};
    CHECK(eyewall_open(path, &options, &cache) == EYEWALL_OK);
    put(cache, "key", "value");
    CHECK(eyewall_get(cache, STR("key"), &hit) == EYEWALL_OK && eyewall_hit_check(&hit) == EYEWALL_OK);
    CHECK(!eyewall_is_failed(cache) && !eyewall_is_failed(NULL));
    CHECK(memcmp(hit.value, "value", 5) == 0);
    eyewall_iter *walk;
    CHECK(eyewall_iter_begin(cache, true, &walk) == EYEWALL_OK);
    CHECK(truncate(path, 0) == 0);
    CHECK(memcmp(hit.value, "\0\0\0\0", 5) == 0);
    CHECK(eyewall_hit_check(&hit) == EYEWALL_ERROR_FAILED && says(path));
    eyewall_hit_release(&hit);
    CHECK(eyewall_get_copy(cache, STR("key"), buffer, sizeof buffer, &length) == EYEWALL_ERROR_FAILED);
    CHECK(eyewall_get(cache, STR("key"), &copy) == EYEWALL_ERROR_FAILED && copy.value == NULL);
    CHECK(eyewall_hit_check(&copy) == EYEWALL_ERROR_ARGUMENT && says("the hit is empty"));
    CHECK(eyewall_iter_next(walk, &copy) == EYEWALL_ERROR_FAILED && copy.value == NULL);
    eyewall_iter_end(walk);
    CHECK(eyewall_is_failed(cache) && eyewall_populate(cache) == EYEWALL_ERROR_FAILED);
    eyewall_close(cache);
}

static void *of_another_thread(void *cache) {
    CHECK(strcmp(eyewall_error_message(), "") == 0);
    CHECK(eyewall_get_copy(cache, "", 0, NULL, 0, &(size_t){0}) == EYEWALL_ERROR_KEY_EMPTY);
    return NULL;
}

int main(void) {
    make_folder();
    of_damage();
    of_a_fleet();
    of_opening();
    eyewall_cache *cache = open_volume();
    of_arguments(cache);

    /* Each thread has an error of its own. */
    pthread_t thread;
    CHECK(eyewall_purge_all(cache, 7) == EYEWALL_ERROR_ARGUMENT);
    CHECK(pthread_create(&thread, NULL, of_another_thread, cache) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(says("EYEWALL_PURGE"));
    eyewall_close(cache);
    of_lost_bytes();
    remove_folder();
    return 0;
}
