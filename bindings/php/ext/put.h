/* The options of methods that store a value. */
#ifndef PHP_EYEWALL_PUT_H
#define PHP_EYEWALL_PUT_H

#include "php_eyewall.h"
#include "value.h"

/* The arguments `?float $ttl = null, array $tags = [], float $stale = 0.0` of a method. */
typedef struct {
    double ttl;
    bool is_forever;
    HashTable *tags;
    double stale;
} php_eyewall_terms;

#define PHP_EYEWALL_TERMS {.is_forever = true}

/* All three in ZEND_PARSE_PARAMETERS, after Z_PARAM_OPTIONAL. */
#define Z_PARAM_TERMS(terms)                                                                                          \
    Z_PARAM_DOUBLE_OR_NULL((terms).ttl, (terms).is_forever)                                                           \
    Z_PARAM_ARRAY_HT((terms).tags)                                                                                    \
    Z_PARAM_DOUBLE((terms).stale)

typedef struct {
    eyewall_put_options options;
    eyewall_bytes *tags;
    /* Keeps the strings of the tags: PHP code that runs before their use may change the array. */
    zend_string **names;
} php_eyewall_put;

/* False: an exception was thrown. Call php_eyewall_put_end in any case. */
bool php_eyewall_put_begin(php_eyewall_put *put, const php_eyewall_terms *terms);
void php_eyewall_put_end(php_eyewall_put *put);

/* The options for storing this value. */
static inline const eyewall_put_options *php_eyewall_put_of(php_eyewall_put *put, const php_eyewall_encoded *encoded)
{
    put->options.metadata = &encoded->kind;
    put->options.metadata_length = encoded->kind != 0;
    return &put->options;
}

/* The milliseconds of a time that must be above 0, or at least 0. False: an exception was thrown. */
bool php_eyewall_ttl(double seconds, bool is_forever, uint64_t *milliseconds);
bool php_eyewall_duration(const char *name, double seconds, uint64_t *milliseconds);

/* The condition for storing the value. */
typedef struct {
    enum { PHP_EYEWALL_KIND_ALWAYS, PHP_EYEWALL_KIND_IF_ABSENT, PHP_EYEWALL_KIND_IF_SERIAL } kind;
    uint64_t serial;
} php_eyewall_condition;

#define PHP_EYEWALL_ALWAYS ((php_eyewall_condition){PHP_EYEWALL_KIND_ALWAYS, 0})
#define PHP_EYEWALL_IF_ABSENT ((php_eyewall_condition){PHP_EYEWALL_KIND_IF_ABSENT, 0})
#define PHP_EYEWALL_IF_SERIAL(serial) ((php_eyewall_condition){PHP_EYEWALL_KIND_IF_SERIAL, (uint64_t)(serial)})

/* Whether the value was stored. After false, check for an exception. */
bool php_eyewall_put_value(php_eyewall_object *this, zend_string *key, zval *value, php_eyewall_put *put,
    php_eyewall_condition condition);

#endif
