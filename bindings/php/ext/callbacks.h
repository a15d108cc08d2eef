/* PHP code that runs while a claim or flight is held. */
#ifndef PHP_EYEWALL_CALLBACKS_H
#define PHP_EYEWALL_CALLBACKS_H

#include "object.h"
#include "put.h"

/* A call whose result is stored. */
typedef struct {
    php_eyewall_object *this;
    zend_fcall_info *call;
    zend_fcall_info_cache *function;
    /* The callback's first argument. */
    zend_string *key;
    /* The second argument, for update: the value held in EYEWALL_G(held), or null. */
    bool is_given_value;
    bool has_held;
    /* Its result, and the encoding of that. */
    zval result;
    php_eyewall_encoded encoded;
} php_eyewall_callback;

/* Calls the function and encodes its result. If that fails in any way that a script can cause (throw, exit, out of
 * memory or time, a fiber that is suspended for good), this ends the claim and the flight, either of which may be
 * NULL, and returns false with an exception. Free the encoding in any case. */
bool php_eyewall_call(php_eyewall_callback *callback, eyewall_claim *claim, eyewall_flight *flight);

/* Claims a key, and waits for at least this many seconds, in multiples of the lock deadline. */
eyewall_status php_eyewall_claim_key(php_eyewall_volume *volume, zend_string *key, uint64_t wait_ms, eyewall_claim **claim,
    eyewall_hit *hit);

#endif
