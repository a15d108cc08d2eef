/* Changes in one call. */
#include "object.h"
#include "put.h"

static eyewall_status put_encoded(php_eyewall_volume *volume, zend_string *key, const php_eyewall_encoded *encoded,
    const eyewall_put_options *options, php_eyewall_condition condition)
{
    switch (condition.kind) {
    case PHP_EYEWALL_KIND_IF_ABSENT:
        return eyewall_add(volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), encoded->data, encoded->length, options, NULL);
    case PHP_EYEWALL_KIND_IF_SERIAL:
        return eyewall_replace_if(volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), condition.serial, encoded->data, encoded->length,
            options, NULL);
    default:
        return eyewall_put(volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), encoded->data, encoded->length, options, NULL);
    }
}

bool php_eyewall_put_value(php_eyewall_object *this, zend_string *key, zval *value, php_eyewall_put *put,
    php_eyewall_condition condition)
{
    php_eyewall_encoded encoded;
    bool is_stored = false;
    if (php_eyewall_encode(&encoded, this->serializer, value)) {
        eyewall_status status = put_encoded(this->volume, key, &encoded, php_eyewall_put_of(put, &encoded), condition);
        is_stored = php_eyewall_is_done(this->volume, status) && status == EYEWALL_OK;
    }
    php_eyewall_encoded_free(&encoded);
    return is_stored;
}

static void put_by_terms(zval *object, zend_string *key, zval *value, const php_eyewall_terms *terms,
    php_eyewall_condition condition, zval *return_value)
{
    php_eyewall_object *this = php_eyewall_this(object);
    if (this == NULL) {
        RETURN_THROWS();
    }
    php_eyewall_put put;
    bool is_stored = php_eyewall_put_begin(&put, terms) && php_eyewall_put_value(this, key, value, &put, condition);
    php_eyewall_put_end(&put);
    RETURN_BOOL(is_stored);
}

PHP_METHOD(Eyewall_Cache, set)
{
    zend_string *key;
    zval *value;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(2, 5)
        Z_PARAM_STR(key)
        Z_PARAM_ZVAL(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
    ZEND_PARSE_PARAMETERS_END();
    put_by_terms(ZEND_THIS, key, value, &terms, PHP_EYEWALL_ALWAYS, return_value);
}

PHP_METHOD(Eyewall_Cache, add)
{
    zend_string *key;
    zval *value;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(2, 5)
        Z_PARAM_STR(key)
        Z_PARAM_ZVAL(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
    ZEND_PARSE_PARAMETERS_END();
    put_by_terms(ZEND_THIS, key, value, &terms, PHP_EYEWALL_IF_ABSENT, return_value);
}

PHP_METHOD(Eyewall_Cache, cas)
{
    zend_string *key;
    zend_long serial;
    zval *value;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(3, 6)
        Z_PARAM_STR(key)
        Z_PARAM_LONG(serial)
        Z_PARAM_ZVAL(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
    ZEND_PARSE_PARAMETERS_END();
    put_by_terms(ZEND_THIS, key, value, &terms, PHP_EYEWALL_IF_SERIAL(serial), return_value);
}

PHP_METHOD(Eyewall_Cache, setNegative)
{
    zend_string *key;
    zend_long reason;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(2, 4)
        Z_PARAM_STR(key)
        Z_PARAM_LONG(reason)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(terms.ttl, terms.is_forever)
        Z_PARAM_ARRAY_HT(terms.tags)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    if (reason < 0 || reason > UINT16_MAX) {
        zend_argument_value_error(2, "must be between 0 and %d", UINT16_MAX);
        RETURN_THROWS();
    }
    php_eyewall_put put;
    bool is_stored = php_eyewall_put_begin(&put, &terms)
        && php_eyewall_is_done(this->volume, eyewall_put_negative(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), (uint16_t)reason,
            &put.options, NULL));
    php_eyewall_put_end(&put);
    RETURN_BOOL(is_stored);
}

PHP_METHOD(Eyewall_Cache, delete)
{
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    eyewall_status status = eyewall_remove(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key));
    if (php_eyewall_is_done(this->volume, status)) {
        RETURN_BOOL(status == EYEWALL_OK);
    }
}

PHP_METHOD(Eyewall_Cache, touch)
{
    zend_string *key;
    double ttl = 0, stale = 0;
    bool is_forever = true;
    ZEND_PARSE_PARAMETERS_START(1, 3)
        Z_PARAM_STR(key)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE_OR_NULL(ttl, is_forever)
        Z_PARAM_DOUBLE(stale)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    eyewall_touch_options options = {.set_times = true};
    if (this == NULL || !php_eyewall_ttl(ttl, is_forever, &options.ttl_ms)
        || !php_eyewall_duration("stale", stale, &options.stale_ms)) {
        RETURN_THROWS();
    }
    eyewall_status status = eyewall_touch(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), &options);
    if (php_eyewall_is_done(this->volume, status)) {
        RETURN_BOOL(status == EYEWALL_OK);
    }
}

PHP_METHOD(Eyewall_Cache, increment)
{
    zend_string *key;
    zend_long by = 1, start = 0;
    double ttl = 0;
    bool is_forever = true;
    HashTable *tags = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 5)
        Z_PARAM_STR(key)
        Z_PARAM_OPTIONAL
        Z_PARAM_LONG(by)
        Z_PARAM_DOUBLE_OR_NULL(ttl, is_forever)
        Z_PARAM_ARRAY_HT(tags)
        Z_PARAM_LONG(start)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    /* Lets get return a new counter as an integer. */
    php_eyewall_encoded encoded;
    zval zero;
    ZVAL_LONG(&zero, 0);
    php_eyewall_encode(&encoded, this->serializer, &zero);
    php_eyewall_terms terms = {.ttl = ttl, .is_forever = is_forever, .tags = tags};
    php_eyewall_put put;
    int64_t sum = 0;
    if (php_eyewall_put_begin(&put, &terms)) {
        eyewall_counter_options options = {.start = start, .put = php_eyewall_put_of(&put, &encoded)};
        eyewall_status status = eyewall_increment(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), by, &options, &sum);
        php_eyewall_is_done(this->volume, status);
    }
    php_eyewall_put_end(&put);
    RETURN_LONG(sum);
}

PHP_METHOD(Eyewall_Cache, clear)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    uint64_t removed;
    if (this == NULL || !php_eyewall_is_done(this->volume, eyewall_clear(this->volume->cache, &removed))) {
        RETURN_THROWS();
    }
    RETURN_LONG((zend_long)removed);
}

PHP_METHOD(Eyewall_Cache, sync)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this != NULL) {
        php_eyewall_is_done(this->volume, eyewall_sync(this->volume->cache));
    }
}
