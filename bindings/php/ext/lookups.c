/* Look-ups. The bytes of a hit are copied once, into the PHP string. */
#include "object.h"
#include "value.h"

PHP_METHOD(Eyewall_Cache, get)
{
    zend_string *key;
    zval *otherwise = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_STR(key)
        Z_PARAM_OPTIONAL
        Z_PARAM_ZVAL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (UNEXPECTED(this == NULL)) {
        RETURN_THROWS();
    }
    eyewall_status status = eyewall_get(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), php_eyewall_held());
    if (EXPECTED(status == EYEWALL_OK)) {
        php_eyewall_take_held(this, return_value);
    } else if (status == EYEWALL_MISS) {
        if (otherwise != NULL) {
            RETURN_COPY(otherwise);
        }
    } else {
        php_eyewall_throw(this->volume, status);
    }
}

PHP_METHOD(Eyewall_Cache, getWithSerial)
{
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    eyewall_hit *held = php_eyewall_held();
    eyewall_status status = eyewall_get(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), held);
    if (!php_eyewall_is_done(this->volume, status) || status == EYEWALL_MISS) {
        return;
    }
    eyewall_info info;
    eyewall_hit_info(held, &info);
    zval value;
    if (!php_eyewall_take_held(this, &value)) {
        RETURN_THROWS();
    }
    array_init_size(return_value, 2);
    add_next_index_zval(return_value, &value);
    add_next_index_long(return_value, (zend_long)info.serial);
}

static void add_seconds(zval *array, const char *name, uint64_t milliseconds)
{
    if (milliseconds == EYEWALL_FOREVER) {
        add_assoc_null(array, name);
    } else {
        add_assoc_double(array, name, (double)milliseconds / 1000);
    }
}

/* Adds the properties of the entry in EYEWALL_G(held), except its value. */
static void describe_held(eyewall_status status, zval *array)
{
    const eyewall_hit *held = &EYEWALL_G(held);
    eyewall_info info;
    eyewall_hit_info(held, &info);
    array_init(array);
    add_assoc_string(array, "state", status == EYEWALL_NEGATIVE ? "negative" : status == EYEWALL_STALE ? "stale" : "fresh");
    add_assoc_null(array, "value");
    if (status == EYEWALL_NEGATIVE) {
        add_assoc_long(array, "reason", info.reason);
    } else {
        add_assoc_null(array, "reason");
    }
    add_assoc_long(array, "serial", (zend_long)info.serial);
    add_assoc_double(array, "created", (double)info.created_ms / 1000);
    add_seconds(array, "ttl", info.ttl_left_ms);
    add_seconds(array, "usable", info.usable_left_ms);
    zval tags;
    array_init(&tags);
    add_assoc_zval(array, "tags", &tags);
    eyewall_bytes tag;
    for (size_t number = 0; (tag = eyewall_hit_tag(held, number)).data != NULL; number++) {
        add_next_index_stringl(&tags, tag.data, tag.length);
    }
    eyewall_bytes metadata = eyewall_hit_metadata(held);
    add_assoc_stringl(array, "metadata", metadata.length == 0 ? "" : metadata.data, metadata.length);
}

PHP_METHOD(Eyewall_Cache, lookup)
{
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    eyewall_status status = eyewall_lookup(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), php_eyewall_held());
    if (!php_eyewall_is_done(this->volume, status) || status == EYEWALL_MISS) {
        return;
    }
    zval entry, value;
    describe_held(status, &entry);
    ZVAL_NULL(&value);
    bool is_done = status == EYEWALL_NEGATIVE ? php_eyewall_release_held(this->volume) : php_eyewall_take_held(this, &value);
    if (!is_done) {
        zval_ptr_dtor(&entry);
        RETURN_THROWS();
    }
    add_assoc_zval(&entry, "value", &value);
    RETURN_COPY_VALUE(&entry);
}

PHP_METHOD(Eyewall_Cache, has)
{
    zend_string *key;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_STR(key)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    eyewall_status status = eyewall_contains(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key));
    if (php_eyewall_is_done(this->volume, status)) {
        RETURN_BOOL(status == EYEWALL_OK);
    }
}

