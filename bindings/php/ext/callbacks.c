/* Methods with callbacks: fetchOrCompute and update.
 *
 * The library never calls PHP. The method gets the right to make an entry (a flight or a claim) from the library, calls the PHP
 * function with no frame of the library on the stack, and hands the result in. PHP may leave C functions by a longjmp (after a
 * fatal error, or when memory or time runs out); the method gives the right up before the jump continues. No jump passes a fiber
 * that is suspended in a callback: the end of the request finds its right in a list, and gives it up.
 */
#include "callbacks.h"
#include <time.h>
#include <zend_exceptions.h>

static bool call_and_encode(php_eyewall_callback *callback)
{
    zval arguments[2];
    ZVAL_STR_COPY(&arguments[0], callback->key);
    ZVAL_NULL(&arguments[1]);
    bool is_done = true;
    if (callback->has_held) {
        is_done = php_eyewall_take_held(callback->this, &arguments[1]);
    }
    if (is_done) {
        callback->call->params = arguments;
        callback->call->param_count = callback->is_given_value ? 2 : 1;
        callback->call->retval = &callback->result;
        is_done = zend_call_function(callback->call, callback->function) == SUCCESS && !Z_ISUNDEF(callback->result) && !EG(exception);
    }
    zval_ptr_dtor(&arguments[0]);
    zval_ptr_dtor(&arguments[1]);
    if (!is_done) {
        return false;
    }
    if (Z_ISREF(callback->result)) {
        zend_unwrap_reference(&callback->result);
    }
    return php_eyewall_encode(&callback->encoded, callback->this->serializer, &callback->result);
}

static void enter_right(php_eyewall_right *right)
{
    right->next = EYEWALL_G(rights);
    if (right->next != NULL) {
        right->next->previous = right;
    }
    EYEWALL_G(rights) = right;
}

/* Fibers end in any order. */
static void leave_right(php_eyewall_right *right)
{
    if (right->next != NULL) {
        right->next->previous = right->previous;
    }
    if (right->previous != NULL) {
        right->previous->next = right->next;
    } else {
        EYEWALL_G(rights) = right->next;
    }
}

static void end_right(php_eyewall_right *right)
{
    eyewall_claim_end(right->claim);
    eyewall_flight_end(right->flight);
    right->claim = NULL;
    right->flight = NULL;
}

void php_eyewall_end_rights(void)
{
    for (php_eyewall_right *right = EYEWALL_G(rights); right != NULL; right = right->next) {
        end_right(right);
    }
    EYEWALL_G(rights) = NULL;
}

bool php_eyewall_call(php_eyewall_callback *callback, eyewall_claim *claim, eyewall_flight *flight)
{
    php_eyewall_right right = {.claim = claim, .flight = flight};
    enter_right(&right);
    /* Volatile: written between setjmp and longjmp. */
    volatile bool is_done = false, is_left = false;
    zend_try {
        is_done = call_and_encode(callback);
    } zend_catch {
        is_left = true;
    } zend_end_try();
    leave_right(&right);
    if (!is_done) {
        end_right(&right);
    }
    if (is_left) {
        zend_bailout();
    }
    return is_done;
}

/* Frees the result for PHP, and its encoding for the volume. */
static void finish(php_eyewall_callback *callback, zval *return_value)
{
    php_eyewall_encoded_free(&callback->encoded);
    if (EG(exception)) {
        zval_ptr_dtor(&callback->result);
    } else if (!Z_ISUNDEF(callback->result)) {
        ZVAL_COPY_VALUE(return_value, &callback->result);
    }
}

/* A page that can't be stored is still valid: return it, and log why it will be computed again. */
static void warn_if_not_stored(eyewall_status status)
{
    if (status < EYEWALL_OK) {
        php_error_docref(NULL, E_WARNING, "The computed value is not stored: %s", eyewall_error_message());
    }
}

/* This process holds the flight. */
static void compute(php_eyewall_callback *callback, eyewall_flight *flight, php_eyewall_put *put)
{
    if (php_eyewall_call(callback, NULL, flight)) {
        const php_eyewall_encoded *encoded = &callback->encoded;
        warn_if_not_stored(
            eyewall_flight_store(flight, encoded->data, encoded->length, php_eyewall_put_of(put, encoded), NULL));
    }
}

/* The process with the flight takes too long: compute here, too. Purges since the beginning still count. */
static void compute_alone(php_eyewall_callback *callback, php_eyewall_put *put)
{
    eyewall_cache *cache = callback->this->volume->cache;
    eyewall_epoch begun;
    if (!php_eyewall_is_done(callback->this->volume, eyewall_now(cache, &begun)) || !php_eyewall_call(callback, NULL, NULL)) {
        return;
    }
    const php_eyewall_encoded *encoded = &callback->encoded;
    put->options.begun_in = &begun;
    warn_if_not_stored(eyewall_put(cache, ZSTR_VAL(callback->key), ZSTR_LEN(callback->key), encoded->data, encoded->length,
        php_eyewall_put_of(put, encoded), NULL));
}

static void fetch_or_compute(php_eyewall_callback *callback, php_eyewall_put *put, uint64_t wait_ms, zval *return_value)
{
    php_eyewall_volume *volume = callback->this->volume;
    eyewall_flight *flight;
    eyewall_status status = eyewall_fill_begin(volume->cache, ZSTR_VAL(callback->key), ZSTR_LEN(callback->key), wait_ms,
        put->options.stale_ms != 0, php_eyewall_held(), NULL, &flight);
    switch (status) {
    case EYEWALL_OK:
    case EYEWALL_STALE:
        php_eyewall_take_held(callback->this, return_value);
        return;
    case EYEWALL_NEGATIVE:
        return;
    case EYEWALL_FILL:
        compute(callback, flight, put);
        break;
    case EYEWALL_ERROR_BUSY:
        compute_alone(callback, put);
        break;
    default:
        php_eyewall_throw(volume, status);
        return;
    }
    finish(callback, return_value);
}

PHP_METHOD(Eyewall_Cache, fetchOrCompute)
{
    zend_fcall_info call;
    zend_fcall_info_cache function;
    php_eyewall_callback callback = {.call = &call, .function = &function};
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    double wait = 5;
    ZEND_PARSE_PARAMETERS_START(2, 6)
        Z_PARAM_STR(callback.key)
        Z_PARAM_FUNC(call, function)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
        Z_PARAM_DOUBLE(wait)
    ZEND_PARSE_PARAMETERS_END();
    ZVAL_UNDEF(&callback.result);
    callback.this = php_eyewall_this(ZEND_THIS);
    php_eyewall_put put = {0};
    uint64_t wait_ms;
    if (callback.this != NULL && php_eyewall_duration("wait", wait, &wait_ms) && php_eyewall_put_begin(&put, &terms)) {
        fetch_or_compute(&callback, &put, wait_ms, return_value);
    }
    php_eyewall_put_end(&put);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

eyewall_status php_eyewall_claim_key(php_eyewall_volume *volume, zend_string *key, uint64_t wait_ms, eyewall_claim **claim,
    eyewall_hit *hit)
{
    uint64_t end = now_ms() + wait_ms;
    eyewall_status status;
    do {
        status = eyewall_claim_begin(volume->cache, ZSTR_VAL(key), ZSTR_LEN(key), claim, hit);
    } while (status == EYEWALL_ERROR_BUSY && now_ms() < end);
    return status;
}

PHP_METHOD(Eyewall_Cache, update)
{
    zend_fcall_info call;
    zend_fcall_info_cache function;
    php_eyewall_callback callback = {.call = &call, .function = &function, .is_given_value = true};
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    double wait = 5;
    ZEND_PARSE_PARAMETERS_START(2, 6)
        Z_PARAM_STR(callback.key)
        Z_PARAM_FUNC(call, function)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
        Z_PARAM_DOUBLE(wait)
    ZEND_PARSE_PARAMETERS_END();
    ZVAL_UNDEF(&callback.result);
    callback.this = php_eyewall_this(ZEND_THIS);
    php_eyewall_put put = {0};
    uint64_t wait_ms;
    if (callback.this == NULL || !php_eyewall_duration("wait", wait, &wait_ms) || !php_eyewall_put_begin(&put, &terms)) {
        php_eyewall_put_end(&put);
        RETURN_THROWS();
    }
    php_eyewall_volume *volume = callback.this->volume;
    eyewall_claim *claim;
    eyewall_status status = php_eyewall_claim_key(volume, callback.key, wait_ms, &claim, php_eyewall_held());
    bool is_stored = false;
    if (php_eyewall_is_done(volume, status)) {
        callback.has_held = status == EYEWALL_OK;
        if (php_eyewall_call(&callback, claim, NULL)) {
            const php_eyewall_encoded *encoded = &callback.encoded;
            status = eyewall_claim_put(claim, encoded->data, encoded->length, php_eyewall_put_of(&put, encoded), NULL);
            is_stored = php_eyewall_is_done(volume, status) && status == EYEWALL_OK;
        }
    }
    php_eyewall_encoded_free(&callback.encoded);
    zval_ptr_dtor(&callback.result);
    php_eyewall_put_end(&put);
    RETURN_BOOL(is_stored);
}
