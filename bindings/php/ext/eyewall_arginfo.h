/* The declarations of eyewall.stub.php for PHP's engine; tests/stub.phpt compares both. */
#ifndef EYEWALL_ARGINFO_H
#define EYEWALL_ARGINFO_H

#include <php.h>

/* `?float $ttl = null, array $tags = [], float $stale = 0.0` */
#define TERMS                                                                                                          \
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttl, IS_DOUBLE, 1, "null")                                                \
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tags, IS_ARRAY, 0, "[]")                                                  \
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, stale, IS_DOUBLE, 0, "0.0")

ZEND_BEGIN_ARG_INFO_EX(arginfo_Cache___construct, 0, 0, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, path, IS_STRING, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, options, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_get, 0, 1, IS_MIXED, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()

/* getWithSerial, lookup */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_array_of_key, 0, 1, IS_ARRAY, 1)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_getMultiple, 0, 1, IS_ARRAY, 0)
    ZEND_ARG_TYPE_INFO(0, keys, IS_ARRAY, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()

/* has, delete */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_of_key, 0, 1, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
ZEND_END_ARG_INFO()

/* set, add */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_set, 0, 2, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, value, IS_MIXED, 0)
    TERMS
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_setMultiple, 0, 1, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, values, IS_ARRAY, 0)
    TERMS
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_cas, 0, 3, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, serial, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO(0, value, IS_MIXED, 0)
    TERMS
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_setNegative, 0, 2, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, reason, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttl, IS_DOUBLE, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tags, IS_ARRAY, 0, "[]")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_deleteMultiple, 0, 1, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO(0, keys, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_touch, 0, 1, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttl, IS_DOUBLE, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, stale, IS_DOUBLE, 0, "0.0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_increment, 0, 1, IS_LONG, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, by, IS_LONG, 0, "1")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, ttl, IS_DOUBLE, 1, "null")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, tags, IS_ARRAY, 0, "[]")
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, start, IS_LONG, 0, "0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_fetchOrCompute, 0, 2, IS_MIXED, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, compute, IS_CALLABLE, 0)
    TERMS
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, wait, IS_DOUBLE, 0, "5.0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_update, 0, 2, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO(0, change, IS_CALLABLE, 0)
    TERMS
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, wait, IS_DOUBLE, 0, "5.0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_Cache_claim, 0, 1, Eyewall\\Claim, 0)
    ZEND_ARG_TYPE_INFO(0, key, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, wait, IS_DOUBLE, 0, "5.0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_purgeTag, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, tag, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, soft, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_purgeTags, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, tags, IS_ARRAY, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, soft, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_purgePrefix, 0, 1, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO(0, prefix, IS_STRING, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, soft, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_purgeAll, 0, 0, IS_VOID, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, soft, _IS_BOOL, 0, "false")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_OBJ_INFO_EX(arginfo_Cache_keys, 0, 0, Eyewall\\Keys, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Cache_stats, 0, 0, IS_ARRAY, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(arginfo_private_construct, 0, 0, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Claim_get, 0, 0, IS_MIXED, 0)
    ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, default, IS_MIXED, 0, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Claim_set, 0, 1, _IS_BOOL, 0)
    ZEND_ARG_TYPE_INFO(0, value, IS_MIXED, 0)
    TERMS
ZEND_END_ARG_INFO()

/* Of methods without arguments. */
ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_bool, 0, 0, _IS_BOOL, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_int, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_void, 0, 0, IS_VOID, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(arginfo_Keys_current, 0, 0, IS_STRING, 1)
ZEND_END_ARG_INFO()

#undef TERMS

ZEND_METHOD(Eyewall_Cache, __construct);
ZEND_METHOD(Eyewall_Cache, get);
ZEND_METHOD(Eyewall_Cache, getWithSerial);
ZEND_METHOD(Eyewall_Cache, lookup);
ZEND_METHOD(Eyewall_Cache, getMultiple);
ZEND_METHOD(Eyewall_Cache, has);
ZEND_METHOD(Eyewall_Cache, set);
ZEND_METHOD(Eyewall_Cache, setMultiple);
ZEND_METHOD(Eyewall_Cache, add);
ZEND_METHOD(Eyewall_Cache, cas);
ZEND_METHOD(Eyewall_Cache, setNegative);
ZEND_METHOD(Eyewall_Cache, delete);
ZEND_METHOD(Eyewall_Cache, deleteMultiple);
ZEND_METHOD(Eyewall_Cache, touch);
ZEND_METHOD(Eyewall_Cache, increment);
ZEND_METHOD(Eyewall_Cache, fetchOrCompute);
ZEND_METHOD(Eyewall_Cache, update);
ZEND_METHOD(Eyewall_Cache, claim);
ZEND_METHOD(Eyewall_Cache, purgeTag);
ZEND_METHOD(Eyewall_Cache, purgeTags);
ZEND_METHOD(Eyewall_Cache, purgePrefix);
ZEND_METHOD(Eyewall_Cache, purgeAll);
ZEND_METHOD(Eyewall_Cache, clear);
ZEND_METHOD(Eyewall_Cache, keys);
ZEND_METHOD(Eyewall_Cache, stats);
ZEND_METHOD(Eyewall_Cache, sync);
ZEND_METHOD(Eyewall_Claim, __construct);
ZEND_METHOD(Eyewall_Claim, isHit);
ZEND_METHOD(Eyewall_Claim, get);
ZEND_METHOD(Eyewall_Claim, set);
ZEND_METHOD(Eyewall_Claim, delete);
ZEND_METHOD(Eyewall_Claim, end);
ZEND_METHOD(Eyewall_Keys, __construct);
ZEND_METHOD(Eyewall_Keys, current);
ZEND_METHOD(Eyewall_Keys, key);
ZEND_METHOD(Eyewall_Keys, next);
ZEND_METHOD(Eyewall_Keys, rewind);
ZEND_METHOD(Eyewall_Keys, valid);

static const zend_function_entry cache_methods[] = {
    ZEND_ME(Eyewall_Cache, __construct, arginfo_Cache___construct, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, get, arginfo_Cache_get, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, getWithSerial, arginfo_Cache_array_of_key, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, lookup, arginfo_Cache_array_of_key, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, getMultiple, arginfo_Cache_getMultiple, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, has, arginfo_Cache_of_key, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, set, arginfo_Cache_set, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, setMultiple, arginfo_Cache_setMultiple, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, add, arginfo_Cache_set, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, cas, arginfo_Cache_cas, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, setNegative, arginfo_Cache_setNegative, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, delete, arginfo_Cache_of_key, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, deleteMultiple, arginfo_Cache_deleteMultiple, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, touch, arginfo_Cache_touch, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, increment, arginfo_Cache_increment, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, fetchOrCompute, arginfo_Cache_fetchOrCompute, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, update, arginfo_Cache_update, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, claim, arginfo_Cache_claim, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, purgeTag, arginfo_Cache_purgeTag, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, purgeTags, arginfo_Cache_purgeTags, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, purgePrefix, arginfo_Cache_purgePrefix, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, purgeAll, arginfo_Cache_purgeAll, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, clear, arginfo_int, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, keys, arginfo_Cache_keys, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, stats, arginfo_Cache_stats, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Cache, sync, arginfo_void, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

static const zend_function_entry claim_methods[] = {
    ZEND_ME(Eyewall_Claim, __construct, arginfo_private_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Eyewall_Claim, isHit, arginfo_bool, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Claim, get, arginfo_Claim_get, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Claim, set, arginfo_Claim_set, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Claim, delete, arginfo_bool, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Claim, end, arginfo_void, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

static const zend_function_entry keys_methods[] = {
    ZEND_ME(Eyewall_Keys, __construct, arginfo_private_construct, ZEND_ACC_PRIVATE)
    ZEND_ME(Eyewall_Keys, current, arginfo_Keys_current, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Keys, key, arginfo_int, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Keys, next, arginfo_void, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Keys, rewind, arginfo_void, ZEND_ACC_PUBLIC)
    ZEND_ME(Eyewall_Keys, valid, arginfo_bool, ZEND_ACC_PUBLIC)
    ZEND_FE_END
};

#endif
