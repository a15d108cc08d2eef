/* From a PHP object to the extension's. */
#ifndef PHP_EYEWALL_OBJECT_H
#define PHP_EYEWALL_OBJECT_H

#include "php_eyewall.h"

static inline php_eyewall_object *php_eyewall_object_of(zend_object *object)
{
    return (php_eyewall_object *)((char *)object - offsetof(php_eyewall_object, std));
}

/* The object of a method. NULL if it was never opened: an exception was thrown. */
static inline php_eyewall_object *php_eyewall_this(zval *object)
{
    php_eyewall_object *this = php_eyewall_object_of(Z_OBJ_P(object));
    if (EXPECTED(this->volume != NULL)) {
        return this;
    }
    zend_throw_error(NULL, "The cache isn't open: its constructor was not called, or failed");
    return NULL;
}

/* Place of a hit whose bytes are copied next. */
static inline eyewall_hit *php_eyewall_held(void)
{
    eyewall_hit *held = &EYEWALL_G(held);
    /* The last copy ran out of memory, and a shutdown function is running now. */
    if (UNEXPECTED(held->value != NULL)) {
        eyewall_hit_release(held);
    }
    return held;
}

#endif
