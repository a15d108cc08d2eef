/* Each call and its result. */
#include "test.h"

static void gets_and_puts(eyewall_cache *cache) {
    eyewall_hit hit;
    CHECK(eyewall_get(cache, STR("/"), &hit) == EYEWALL_MISS && hit.value == NULL);
    eyewall_hit_release(&hit);

    eyewall_bytes tags[] = {{STR("news")}, {STR("sport")}};
    eyewall_put_options options = {
        .ttl_ms = 60000, .stale_ms = 1000, .metadata = "text/html", .metadata_length = 9, .tags = tags, .tags_count = 2};
    uint64_t serial = 0, again = 0;
    CHECK(eyewall_put(cache, STR("/"), STR("<h1>Hello</h1>"), &options, &serial) == EYEWALL_OK && serial != 0);
    CHECK(eyewall_get(cache, STR("/"), &hit) == EYEWALL_OK);
    CHECK(hit.value_length == 14 && memcmp(hit.value, "<h1>Hello</h1>", 14) == 0);
    CHECK(eyewall_hit_key(&hit).length == 1 && memcmp(eyewall_hit_key(&hit).data, "/", 1) == 0);
    CHECK(eyewall_hit_metadata(&hit).length == 9 && memcmp(eyewall_hit_metadata(&hit).data, "text/html", 9) == 0);
    CHECK(eyewall_hit_tag(&hit, 1).length == 5 && memcmp(eyewall_hit_tag(&hit, 1).data, "sport", 5) == 0);
    CHECK(eyewall_hit_tag(&hit, 2).data == NULL);

    eyewall_info info;
    CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_OK);
    CHECK(info.serial == serial && info.ttl_left_ms > 0 && info.ttl_left_ms <= 60000);
    CHECK(info.usable_left_ms > 60000 - 1000 && info.usable_left_ms <= 61000 && info.created_ms > 1700000000000);
    CHECK(!info.is_negative && !info.is_stale && !info.is_copy && info.is_intact);

    /* A held entry stays, whatever is put. */
    CHECK(eyewall_put(cache, STR("/"), STR("<h1>Bye</h1>"), NULL, &again) == EYEWALL_OK && again > serial);
    CHECK(memcmp(hit.value, "<h1>Hello</h1>", 14) == 0);
    eyewall_hit_release(&hit);
    CHECK(hit.value == NULL);
    eyewall_hit_release(&hit);
    CHECK(has(cache, "/", "<h1>Bye</h1>"));

    CHECK(eyewall_peek(cache, STR("/"), &hit) == EYEWALL_OK);
    CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_OK && info.ttl_left_ms == EYEWALL_FOREVER);
    eyewall_hit_release(&hit);
    CHECK(eyewall_contains(cache, STR("/")) == EYEWALL_OK && eyewall_contains(cache, STR("/x")) == EYEWALL_MISS);
    CHECK(eyewall_remove(cache, STR("/")) == EYEWALL_OK && eyewall_remove(cache, STR("/")) == EYEWALL_MISS);
}

static void copies(eyewall_cache *cache) {
    char buffer[8];
    size_t length = 99;
    put(cache, "copied", "12345678");
    CHECK(eyewall_get_copy(cache, STR("copied"), buffer, sizeof buffer, &length) == EYEWALL_OK && length == 8);
    CHECK(memcmp(buffer, "12345678", 8) == 0);
    put(cache, "copied", "123456789");
    CHECK(eyewall_get_copy(cache, STR("copied"), buffer, sizeof buffer, &length) == EYEWALL_TOO_SMALL && length == 9);
    CHECK(eyewall_get_copy(cache, STR("absent"), buffer, sizeof buffer, &length) == EYEWALL_MISS && length == 0);
    CHECK(eyewall_put(cache, STR("empty"), NULL, 0, NULL, NULL) == EYEWALL_OK);
    CHECK(eyewall_get_copy(cache, STR("empty"), NULL, 0, &length) == EYEWALL_OK && length == 0);
    eyewall_hit hit;
    CHECK(eyewall_get(cache, STR("empty"), &hit) == EYEWALL_OK && hit.value != NULL && hit.value_length == 0);
    eyewall_hit_release(&hit);
}

static void copies_of_entries(eyewall_cache *cache) {
    char value[8], metadata[4];
    eyewall_copy copy = {.value = value, .value_capacity = sizeof value, .metadata = metadata, .metadata_capacity = sizeof metadata};
    eyewall_put_options options = {.metadata = "html", .metadata_length = 4};
    uint64_t serial;
    CHECK(eyewall_put(cache, STR("whole"), STR("12345678"), &options, &serial) == EYEWALL_OK);
    CHECK(eyewall_get_entry(cache, STR("whole"), &copy) == EYEWALL_OK && copy.serial == serial);
    CHECK(copy.value_length == 8 && memcmp(value, "12345678", 8) == 0);
    CHECK(copy.metadata_length == 4 && memcmp(metadata, "html", 4) == 0);
    CHECK(eyewall_get_entry(cache, STR("absent"), &copy) == EYEWALL_MISS);
    CHECK(copy.value_length == 0 && copy.metadata_length == 0 && copy.serial == 0);

    /* What has no room is not copied, and neither is the rest. */
    copy.metadata_capacity = 3;
    CHECK(eyewall_get_entry(cache, STR("whole"), &copy) == EYEWALL_TOO_SMALL && copy.metadata_length == 4);
    put(cache, "whole", "123456789");
    CHECK(eyewall_get_entry(cache, STR("whole"), &copy) == EYEWALL_TOO_SMALL && copy.value_length == 9);
    CHECK(memcmp(value, "12345678", 8) == 0 && copy.metadata_length == 0);

    copy.value = NULL;
    CHECK(eyewall_get_entry(cache, STR("whole"), &copy) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_get_entry(cache, STR("whole"), NULL) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_get_entry(NULL, STR("whole"), &(eyewall_copy){0}) == EYEWALL_ERROR_ARGUMENT);
    CHECK(eyewall_put(cache, STR("nothing"), NULL, 0, NULL, NULL) == EYEWALL_OK);
    CHECK(eyewall_get_entry(cache, STR("nothing"), &(eyewall_copy){0}) == EYEWALL_OK);
}

static void many_at_once(eyewall_cache *cache) {
    enum { COUNT = 40 };
    static char names[COUNT][8];
    eyewall_bytes keys[COUNT];
    eyewall_hit hits[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "many%d", i);
        keys[i] = (eyewall_bytes){STR(names[i])};
        if (i % 2 == 0)
            put(cache, names[i], names[i]);
    }
    CHECK(eyewall_get_many(cache, keys, COUNT, hits) == EYEWALL_OK);
    for (int i = 0; i < COUNT; i++) {
        CHECK((hits[i].value != NULL) == (i % 2 == 0));
        CHECK(i % 2 == 1 || memcmp(hits[i].value, names[i], hits[i].value_length) == 0);
        eyewall_hit_release(&hits[i]);
    }
    CHECK(eyewall_get_many(cache, NULL, 0, NULL) == EYEWALL_OK);
}

static void conditions(eyewall_cache *cache) {
    uint64_t serial, next;
    CHECK(eyewall_add(cache, STR("only"), STR("first"), NULL, &serial) == EYEWALL_OK);
    CHECK(eyewall_add(cache, STR("only"), STR("second"), NULL, &next) == EYEWALL_UNMET && next == 0);
    CHECK(eyewall_replace_if(cache, STR("only"), serial + 1, STR("third"), NULL, NULL) == EYEWALL_UNMET);
    CHECK(eyewall_replace_if(cache, STR("only"), serial, STR("third"), NULL, &next) == EYEWALL_OK && next > serial);
    CHECK(has(cache, "only", "third"));
    CHECK(eyewall_remove_if(cache, STR("only"), serial) == EYEWALL_UNMET);
    CHECK(eyewall_remove_if(cache, STR("only"), next) == EYEWALL_OK && has(cache, "only", NULL));
}

static void counters(eyewall_cache *cache) {
    int64_t sum;
    eyewall_counter_options stock = {.start = 10, .has_bounds = true, .min = 0, .max = 10};
    CHECK(eyewall_increment(cache, STR("stock"), -3, &stock, &sum) == EYEWALL_OK && sum == 7);
    CHECK(eyewall_increment(cache, STR("stock"), -30, &stock, &sum) == EYEWALL_OK && sum == 0);
    CHECK(eyewall_increment(cache, STR("visits"), 1, NULL, NULL) == EYEWALL_OK);
    CHECK(eyewall_increment(cache, STR("visits"), 1, NULL, &sum) == EYEWALL_OK && sum == 2);
    put(cache, "text", "no number");
    CHECK(eyewall_increment(cache, STR("text"), 1, NULL, &sum) == EYEWALL_ERROR_NOT_A_COUNTER);
}

static void touches(eyewall_cache *cache) {
    eyewall_hit hit;
    eyewall_info info;
    eyewall_touch_options touch = {.set_times = true, .ttl_ms = 5000, .set_metadata = true, .metadata = "m", .metadata_length = 1};
    put(cache, "touched", "value");
    CHECK(eyewall_touch(cache, STR("absent"), &touch) == EYEWALL_MISS);
    CHECK(eyewall_touch(cache, STR("touched"), &touch) == EYEWALL_OK);
    CHECK(eyewall_get(cache, STR("touched"), &hit) == EYEWALL_OK);
    CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_OK && info.ttl_left_ms <= 5000);
    CHECK(eyewall_hit_metadata(&hit).length == 1);
    eyewall_hit_release(&hit);
    touch = (eyewall_touch_options){.if_serial = true, .serial = info.serial + 1};
    CHECK(eyewall_touch(cache, STR("touched"), &touch) == EYEWALL_MISS);
    CHECK(eyewall_touch(cache, STR("touched"), NULL) == EYEWALL_OK);
}

static void what_isnt_there(eyewall_cache *cache) {
    eyewall_hit hit;
    eyewall_info info;
    CHECK(eyewall_put_negative(cache, STR("gone"), 404, &(eyewall_put_options){.ttl_ms = 60000}, NULL) == EYEWALL_OK);
    CHECK(has(cache, "gone", NULL));
    CHECK(eyewall_lookup(cache, STR("gone"), &hit) == EYEWALL_NEGATIVE);
    CHECK(eyewall_hit_info(&hit, &info) == EYEWALL_OK && info.is_negative && info.reason == 404);
    eyewall_hit_release(&hit);
    CHECK(eyewall_lookup(cache, STR("absent"), &hit) == EYEWALL_MISS);
}

static void purges(eyewall_cache *cache) {
    eyewall_hit hit;
    eyewall_bytes tag = {STR("tag")};
    eyewall_put_options tagged = {.ttl_ms = 60000, .stale_ms = 60000, .tags = &tag, .tags_count = 1};
    CHECK(eyewall_put(cache, STR("tagged"), STR("1"), &tagged, NULL) == EYEWALL_OK);
    CHECK(eyewall_purge_tag(cache, STR("tag"), EYEWALL_PURGE_SOFT) == EYEWALL_OK);
    CHECK(has(cache, "tagged", NULL));
    CHECK(eyewall_lookup(cache, STR("tagged"), &hit) == EYEWALL_STALE);
    eyewall_hit_release(&hit);
    CHECK(eyewall_purge_tag(cache, STR("tag"), EYEWALL_PURGE_HARD) == EYEWALL_OK);
    CHECK(eyewall_lookup(cache, STR("tagged"), &hit) == EYEWALL_MISS);

    put(cache, "/shop/1", "1");
    put(cache, "/news/1", "1");
    CHECK(eyewall_purge_prefix(cache, STR("/shop/"), EYEWALL_PURGE_HARD) == EYEWALL_OK);
    CHECK(has(cache, "/shop/1", NULL) && has(cache, "/news/1", "1"));

    /* A value that was begun before a purge doesn't survive it. */
    eyewall_epoch begun;
    CHECK(eyewall_now(cache, &begun) == EYEWALL_OK);
    CHECK(eyewall_purge_all(cache, EYEWALL_PURGE_HARD) == EYEWALL_OK && has(cache, "/news/1", NULL));
    CHECK(eyewall_put(cache, STR("late"), STR("1"), &(eyewall_put_options){.begun_in = &begun}, NULL) == EYEWALL_OK);
    CHECK(has(cache, "late", NULL));

    uint64_t dropped;
    CHECK(eyewall_sweep(cache, &dropped) == EYEWALL_OK && dropped > 0);
    /* Kernels before 5.14 can't. */
    eyewall_status populated = eyewall_populate(cache);
    CHECK(populated == EYEWALL_OK || populated == EYEWALL_ERROR_IO);
    CHECK(eyewall_populate(NULL) == EYEWALL_ERROR_ARGUMENT && !eyewall_is_read_only(cache));
    eyewall_bytes warning = eyewall_storage_warning(cache);
    CHECK((warning.data == NULL) == (warning.length == 0) && eyewall_storage_warning(NULL).data == NULL);
    CHECK(eyewall_sync(cache) == EYEWALL_OK);
    put(cache, "cleared", "1");
    CHECK(eyewall_clear(cache, &dropped) == EYEWALL_OK && dropped == 1 && has(cache, "cleared", NULL));
}

static void all_entries_and_numbers(eyewall_cache *cache) {
    CHECK(eyewall_clear(cache, NULL) == EYEWALL_OK);
    for (char key[] = "a"; key[0] <= 'e'; key[0]++)
        put(cache, key, key);
    CHECK(eyewall_put_negative(cache, STR("n"), 1, &(eyewall_put_options){.ttl_ms = 60000}, NULL) == EYEWALL_OK);
    for (int all = 0; all < 2; all++) {
        eyewall_iter *iter;
        eyewall_hit hit;
        int met = 0;
        CHECK(eyewall_iter_begin(cache, all, &iter) == EYEWALL_OK);
        while (eyewall_iter_next(iter, &hit) == EYEWALL_OK) {
            met++;
            eyewall_hit_release(&hit);
        }
        CHECK(met == 5 + all);
        eyewall_iter_end(iter);
    }
    eyewall_stats stats;
    CHECK(eyewall_stats_read(cache, &stats, sizeof stats) == EYEWALL_OK);
    CHECK(stats.size_bytes == eyewall_size(cache) && stats.entries == 6 && stats.puts > 6 && stats.processes == 1);
    CHECK(stats.entry_bytes_max == eyewall_entry_bytes_max(cache) && stats.pins == 0);
    /* Programs that were compiled against an earlier and a later library. */
    uint64_t first[2] = {0, 7}, later[sizeof stats / 8 + 2];
    CHECK(eyewall_stats_read(cache, (eyewall_stats *)first, sizeof first[0]) == EYEWALL_OK);
    CHECK(first[0] == stats.size_bytes && first[1] == 7);
    memset(later, 255, sizeof later);
    CHECK(eyewall_stats_read(cache, (eyewall_stats *)later, sizeof later) == EYEWALL_OK);
    CHECK(later[0] == stats.size_bytes && later[sizeof stats / 8 + 1] == 0);
    uint64_t puts, bytes;
    CHECK(eyewall_written(cache, &puts, &bytes) == EYEWALL_OK);
    CHECK(puts == stats.puts && bytes == stats.bytes_written);
    CHECK(eyewall_written(cache, NULL, NULL) == EYEWALL_OK);
}

static void where_it_lies(eyewall_cache *cache) {
    eyewall_hit hit;
    uint64_t offset, length;
    char bytes[16];
    bool resident;
    put(cache, "ranged", "in the file");
    CHECK(eyewall_get(cache, STR("ranged"), &hit) == EYEWALL_OK);
    CHECK(eyewall_hit_file_range(&hit, &offset, &length) == EYEWALL_OK && length == 11);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fseek(file, (long)offset, SEEK_SET) == 0 && fread(bytes, 1, length, file) == length);
    CHECK(memcmp(bytes, "in the file", length) == 0);
    fclose(file);
    eyewall_hit_release(&hit);
    CHECK(eyewall_is_resident(cache, STR("ranged"), &resident) == EYEWALL_OK && resident);
    CHECK(eyewall_prefault(cache, STR("ranged")) == EYEWALL_OK && eyewall_prefault(cache, STR("absent")) == EYEWALL_MISS);
}

int main(void) {
    make_folder();
    eyewall_cache *cache = open_volume();
    gets_and_puts(cache);
    copies(cache);
    copies_of_entries(cache);
    many_at_once(cache);
    conditions(cache);
    counters(cache);
    touches(cache);
    what_isnt_there(cache);
    purges(cache);
    all_entries_and_numbers(cache);
    where_it_lies(cache);
    eyewall_close(cache);
    CHECK(strcmp(eyewall_version(), "") != 0);
    remove_folder();
    return 0;
}
