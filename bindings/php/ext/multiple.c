/* Calls with many keys. Each key is looked up or stored by itself, so no entry is held while another is copied. */
#include "object.h"
#include "put.h"

/* The key in an array element. PHP turns array keys that look like numbers into integers. */
static zend_string *key_of(zval *element)
{
    ZVAL_DEREF(element);
    if (Z_TYPE_P(element) == IS_STRING) {
        return zend_string_copy(Z_STR_P(element));
    }
    if (Z_TYPE_P(element) == IS_LONG) {
        return zend_long_to_str(Z_LVAL_P(element));
    }
    zend_type_error("A key must be a string, not %s", zend_zval_type_name(element));
    return NULL;
}

/* False: an exception was thrown. */
static bool get_into(zval *array, php_eyewall_object *this, zend_string *key, zval *otherwise)
{
    zval value;
    eyewall_status status = eyewall_get(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), php_eyewall_held());
    if (!php_eyewall_is_done(this->volume, status)) {
        return false;
    }
    if (status == EYEWALL_MISS) {
        if (otherwise == NULL) {
            ZVAL_NULL(&value);
        } else {
            ZVAL_COPY(&value, otherwise);
        }
    } else if (!php_eyewall_take_held(this, &value)) {
        return false;
    }
    zend_symtable_update(Z_ARRVAL_P(array), key, &value);
    return true;
}

PHP_METHOD(Eyewall_Cache, getMultiple)
{
    HashTable *keys;
    zval *otherwise = NULL;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_ARRAY_HT(keys)
        Z_PARAM_OPTIONAL
        Z_PARAM_ZVAL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    array_init_size(return_value, zend_hash_num_elements(keys));
    zval *element;
    ZEND_HASH_FOREACH_VAL(keys, element) {
        zend_string *key = key_of(element);
        bool is_done = key != NULL && get_into(return_value, this, key, otherwise);
        if (key != NULL) {
            zend_string_release(key);
        }
        if (!is_done) {
            RETURN_THROWS();
        }
    } ZEND_HASH_FOREACH_END();
}

PHP_METHOD(Eyewall_Cache, setMultiple)
{
    HashTable *values;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(1, 4)
        Z_PARAM_ARRAY_HT(values)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    php_eyewall_put put;
    bool is_done = php_eyewall_put_begin(&put, &terms);
    zend_ulong number;
    zend_string *name;
    zval *value;
    ZEND_HASH_FOREACH_KEY_VAL(values, number, name, value) {
        if (!is_done) {
            break;
        }
        /* Serializing may run code that changes the referenced value. */
        zval held;
        ZVAL_COPY_DEREF(&held, value);
        zend_string *key = name != NULL ? zend_string_copy(name) : zend_long_to_str((zend_long)number);
        is_done = php_eyewall_put_value(this, key, &held, &put, PHP_EYEWALL_ALWAYS);
        zval_ptr_dtor(&held);
        zend_string_release(key);
    } ZEND_HASH_FOREACH_END();
    php_eyewall_put_end(&put);
    RETURN_BOOL(is_done);
}

PHP_METHOD(Eyewall_Cache, deleteMultiple)
{
    HashTable *keys;
    ZEND_PARSE_PARAMETERS_START(1, 1)
        Z_PARAM_ARRAY_HT(keys)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    zend_long deleted = 0;
    zval *element;
    ZEND_HASH_FOREACH_VAL(keys, element) {
        zend_string *key = key_of(element);
        if (key == NULL) {
            RETURN_THROWS();
        }
        eyewall_status status = eyewall_remove(this->volume->cache, ZSTR_VAL(key), ZSTR_LEN(key));
        zend_string_release(key);
        if (!php_eyewall_is_done(this->volume, status)) {
            RETURN_THROWS();
        }
        deleted += status == EYEWALL_OK;
    } ZEND_HASH_FOREACH_END();
    RETURN_LONG(deleted);
}
