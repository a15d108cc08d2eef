/* Purges. For all processes, purged entries are gone; after a soft purge, they are stale. */
#include "object.h"

static int kind_of(bool is_soft)
{
    return is_soft ? EYEWALL_PURGE_SOFT : EYEWALL_PURGE_HARD;
}

typedef eyewall_status (*purge_function)(const eyewall_cache *cache, const void *bytes, size_t length, int32_t kind);

static void purge_by_string(INTERNAL_FUNCTION_PARAMETERS, purge_function purge)
{
    zend_string *bytes;
    bool is_soft = false;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_STR(bytes)
        Z_PARAM_OPTIONAL
        Z_PARAM_BOOL(is_soft)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this != NULL) {
        php_eyewall_is_done(this->volume, purge(this->volume->cache, ZSTR_VAL(bytes), ZSTR_LEN(bytes), kind_of(is_soft)));
    }
}

PHP_METHOD(Eyewall_Cache, purgeTag)
{
    purge_by_string(INTERNAL_FUNCTION_PARAM_PASSTHRU, eyewall_purge_tag);
}

/* An empty prefix matches every key, and usually comes from a variable that is empty by mistake. */
static eyewall_status purge_prefix(const eyewall_cache *cache, const void *prefix, size_t length, int32_t kind)
{
    if (length == 0) {
        zend_argument_value_error(1, "cannot be empty; purgeAll purges all entries");
        return EYEWALL_OK;
    }
    return eyewall_purge_prefix(cache, prefix, length, kind);
}

PHP_METHOD(Eyewall_Cache, purgePrefix)
{
    purge_by_string(INTERNAL_FUNCTION_PARAM_PASSTHRU, purge_prefix);
}

PHP_METHOD(Eyewall_Cache, purgeTags)
{
    HashTable *tags;
    bool is_soft = false;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_ARRAY_HT(tags)
        Z_PARAM_OPTIONAL
        Z_PARAM_BOOL(is_soft)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    zval *tag;
    ZEND_HASH_FOREACH_VAL(tags, tag) {
        ZVAL_DEREF(tag);
        if (Z_TYPE_P(tag) != IS_STRING) {
            zend_type_error("A tag must be a string, not %s", zend_zval_type_name(tag));
            RETURN_THROWS();
        }
        eyewall_status status = eyewall_purge_tag(this->volume->cache, Z_STRVAL_P(tag), Z_STRLEN_P(tag), kind_of(is_soft));
        if (!php_eyewall_is_done(this->volume, status)) {
            RETURN_THROWS();
        }
    } ZEND_HASH_FOREACH_END();
}

PHP_METHOD(Eyewall_Cache, purgeAll)
{
    bool is_soft = false;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_BOOL(is_soft)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this != NULL) {
        php_eyewall_is_done(this->volume, eyewall_purge_all(this->volume->cache, kind_of(is_soft)));
    }
}
