/* A page cache for a C program: the first process that needs a page makes it, and the others wait for it.
 *
 *     cc pages.c -o pages $(pkg-config --cflags --libs eyewall)
 *     ./pages /tmp/pages /about /contact /about
 */
#include <eyewall.h>
#include <stdio.h>
#include <string.h>

/* A real program does its slow work here. Returns the page's length, or -1 if it can't be made. */
static int make_page(const char *address, char *page, size_t capacity) {
    int length = snprintf(page, capacity, "<h1>%s</h1>", address);
    return length < 0 || (size_t)length >= capacity ? -1 : length;
}

static int show(eyewall_cache *cache, const char *address) {
    eyewall_hit hit;
    eyewall_flight *flight;
    switch (eyewall_fill_begin(cache, address, strlen(address), 5000, true, &hit, NULL, &flight)) {
    case EYEWALL_OK:
    case EYEWALL_STALE:
        /* The bytes lie in the volume, and don't change until they are released. */
        printf("%s, stored before: %.*s\n", address, (int)hit.value_length, (const char *)hit.value);
        eyewall_hit_release(&hit);
        return 0;
    case EYEWALL_FILL: {
        char page[256];
        int length = make_page(address, page, sizeof page);
        if (length < 0) {
            /* One of the waiting processes makes the page instead. */
            eyewall_flight_end(flight);
            fprintf(stderr, "%s: can't be made\n", address);
            return 1;
        }
        eyewall_bytes tag = {"pages", 5};
        eyewall_put_options options = {.ttl_ms = 60000, .stale_ms = 10000, .tags = &tag, .tags_count = 1};
        if (eyewall_flight_store(flight, page, length, &options, NULL) < EYEWALL_OK)
            fprintf(stderr, "%s was not stored: %s\n", address, eyewall_error_message());
        printf("%s, made now: %s\n", address, page);
        return 0;
    }
    default:
        fprintf(stderr, "%s: %s\n", address, eyewall_error_message());
        return 1;
    }
}

int main(int count, char **arguments) {
    if (count < 3) {
        fprintf(stderr, "usage: %s VOLUME ADDRESS...\n", arguments[0]);
        return 2;
    }
    eyewall_cache *cache;
    if (eyewall_open(arguments[1], &(eyewall_open_options){.size = 16 << 20}, &cache) != EYEWALL_OK) {
        fprintf(stderr, "%s\n", eyewall_error_message());
        return 1;
    }
    int failed = 0;
    for (int i = 2; i < count; i++)
        failed |= show(cache, arguments[i]);
    eyewall_close(cache);
    return failed;
}
