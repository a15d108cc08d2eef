/* Look-ups: the bytes of a hit are copied once, into the string that PHP gets. */
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

