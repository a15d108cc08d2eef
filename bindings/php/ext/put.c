/* The options of methods that store a value. */
#include "put.h"
#include <math.h>

/* Some thirty thousand years: sums of such times don't overflow. */
#define MILLISECONDS_MAX 1e15

static uint64_t milliseconds_of(double seconds)
{
    return (uint64_t)fmin(ceil(seconds * 1000), MILLISECONDS_MAX);
}

bool php_eyewall_ttl(double seconds, bool is_forever, uint64_t *milliseconds)
{
    *milliseconds = 0;
    if (is_forever) {
        return true;
    }
    if (!(seconds > 0)) {
        zend_value_error("The ttl must be more than 0 seconds, or null: until the entry is evicted");
        return false;
    }
    *milliseconds = milliseconds_of(seconds);
    return true;
}

bool php_eyewall_duration(const char *name, double seconds, uint64_t *milliseconds)
{
    if (!(seconds >= 0)) {
        zend_value_error("The time %s must be 0 seconds or more", name);
        return false;
    }
    *milliseconds = milliseconds_of(seconds);
    return true;
}

static bool read_tags(php_eyewall_put *put, HashTable *tags)
{
    uint32_t count = tags == NULL ? 0 : zend_hash_num_elements(tags);
    if (count == 0) {
        return true;
    }
    put->tags = safe_emalloc(count, sizeof *put->tags, 0);
    put->names = safe_emalloc(count, sizeof *put->names, 0);
    put->options.tags = put->tags;
    zval *tag;
    ZEND_HASH_FOREACH_VAL(tags, tag) {
        ZVAL_DEREF(tag);
        if (Z_TYPE_P(tag) != IS_STRING) {
            zend_type_error("A tag must be a string, not %s", zend_zval_type_name(tag));
            return false;
        }
        size_t number = put->options.tags_count++;
        put->names[number] = zend_string_copy(Z_STR_P(tag));
        put->tags[number] = (eyewall_bytes){Z_STRVAL_P(tag), Z_STRLEN_P(tag)};
    } ZEND_HASH_FOREACH_END();
    return true;
}

bool php_eyewall_put_begin(php_eyewall_put *put, const php_eyewall_terms *terms)
{
    *put = (php_eyewall_put){0};
    return php_eyewall_ttl(terms->ttl, terms->is_forever, &put->options.ttl_ms)
        && php_eyewall_duration("stale", terms->stale, &put->options.stale_ms) && read_tags(put, terms->tags);
}

void php_eyewall_put_end(php_eyewall_put *put)
{
    for (size_t number = 0; number < put->options.tags_count; number++) {
        zend_string_release(put->names[number]);
    }
    if (put->tags != NULL) {
        efree(put->names);
        efree(put->tags);
    }
}
