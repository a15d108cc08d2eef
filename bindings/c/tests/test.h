/* Helpers of all tests: a check that reports its line, a folder, and operations that must succeed. */
#ifndef EYEWALL_TEST_H
#define EYEWALL_TEST_H

#define _GNU_SOURCE
#include <eyewall.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                        \
    do {                                                                                                        \
        if (!(condition)) {                                                                                     \
            fprintf(stderr, "%s:%d: failed: %s (the last error was: %s)\n", __FILE__, __LINE__, #condition,     \
                    eyewall_error_message());                                                                   \
            exit(1);                                                                                            \
        }                                                                                                       \
    } while (0)

/* A string as two arguments: its bytes and its length. */
#define STR(string) (string), strlen(string)

/* The path of a volume to be created, in a folder that remove_folder removes. */
static char folder[] = "/tmp/eyewall-c-XXXXXX";
static char path[64];

static void make_folder(void) {
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/volume", folder);
}

static void remove_folder(void) {
    unlink(path);
    CHECK(rmdir(folder) == 0);
}

static inline eyewall_cache *open_volume(void) {
    eyewall_cache *cache;
    CHECK(eyewall_open(path, &(eyewall_open_options){.size = 4 << 20}, &cache) == EYEWALL_OK);
    return cache;
}

static inline void put(eyewall_cache *cache, const char *key, const char *value) {
    CHECK(eyewall_put(cache, STR(key), STR(value), NULL, NULL) == EYEWALL_OK);
}

/* Whether the valid entry of a key has this value. NULL: whether there is no valid entry. */
static inline bool has(eyewall_cache *cache, const char *key, const char *value) {
    eyewall_hit hit;
    eyewall_status status = eyewall_get(cache, STR(key), &hit);
    if (status == EYEWALL_MISS)
        return value == NULL;
    CHECK(status == EYEWALL_OK);
    bool same = value != NULL && hit.value_length == strlen(value) && memcmp(hit.value, value, hit.value_length) == 0;
    eyewall_hit_release(&hit);
    return same;
}

#endif
