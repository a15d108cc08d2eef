/* Statistics of a volume, which eyewall.h describes. */
#include "object.h"

#define NUMBER(name) {#name, offsetof(eyewall_stats, name)}

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
    NUMBER(size_bytes), NUMBER(data_bytes), NUMBER(overhead_bytes), NUMBER(stripes), NUMBER(entry_bytes_max),
    NUMBER(entries), NUMBER(live_bytes), NUMBER(free_bytes), NUMBER(filler_bytes), NUMBER(dead_bytes), NUMBER(untiled_bytes),
    NUMBER(index_slots), NUMBER(index_live), NUMBER(index_ghosts),
    NUMBER(hits), NUMBER(misses), NUMBER(copies), NUMBER(puts), NUMBER(removes),
    NUMBER(evictions_cold), NUMBER(evictions_expired), NUMBER(evictions_index), NUMBER(evictions_damaged), NUMBER(evictions_purged),
    NUMBER(promotions), NUMBER(reinsertions), NUMBER(moved), NUMBER(bytes_written), NUMBER(bytes_copied),
    NUMBER(pins), NUMBER(processes), NUMBER(threads), NUMBER(repairs), NUMBER(resets), NUMBER(pinned_refusals), NUMBER(busy),
    NUMBER(eviction_age_ms), NUMBER(purges), NUMBER(purge_overflows), NUMBER(attachments), NUMBER(unclean_drops),
    NUMBER(tier_hits), NUMBER(tier_size_bytes), NUMBER(index_slots_wanted), NUMBER(index_steps),
};

PHP_METHOD(Eyewall_Cache, stats)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    eyewall_stats stats;
    if (this == NULL || !php_eyewall_is_done(this->volume, eyewall_stats_read(this->volume->cache, &stats, sizeof stats))) {
        RETURN_THROWS();
    }
    array_init_size(return_value, sizeof numbers / sizeof *numbers);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        uint64_t number;
        memcpy(&number, (const char *)&stats + numbers[i].offset, sizeof number);
        add_assoc_long(return_value, numbers[i].name, (zend_long)MIN(number, (uint64_t)ZEND_LONG_MAX));
    }
}
