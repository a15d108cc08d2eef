/* Code of PHP that runs while something of the volume is held. */
#ifndef PHP_EYEWALL_CALLBACKS_H
#define PHP_EYEWALL_CALLBACKS_H

#include "object.h"
#include "put.h"

/* A call whose result is stored. */
typedef struct {
    php_eyewall_object *this;
    zend_fcall_info *call;
    zend_fcall_info_cache *function;
    /* What the callback is given first. */
    zend_string *key;
    /* And then, for update: the value of what is held in EYEWALL_G(held); without such, null. */
    bool is_given_value;
    bool has_held;
    /* Its result, and what that is to be stored as. */
    zval result;
    php_eyewall_encoded encoded;
} php_eyewall_callback;

/* Calls, and encodes what comes back. If that fails, by whatever a script can do (throw, exit, run out of memory or time, suspend a
 * fiber for good), the claim and the flight are ended, either of which may be NULL; false then, and an exception is thrown. What is
 * encoded has to be freed in any case. */
bool php_eyewall_call(php_eyewall_callback *callback, eyewall_claim *claim, eyewall_flight *flight);

/* Claims a key, and waits for it: for so many seconds at least, in steps of the lock deadline. */
eyewall_status php_eyewall_claim_key(php_eyewall_volume *volume, zend_string *key, uint64_t wait_ms, eyewall_claim **claim,
    eyewall_hit *hit);

#endif
