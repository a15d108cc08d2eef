/* Values of PHP as bytes of the volume. */
#ifndef PHP_EYEWALL_VALUE_H
#define PHP_EYEWALL_VALUE_H

#include "php_eyewall.h"
#include <zend_smart_str.h>

/* A value that is to be stored. */
typedef struct {
    const void *data;
    size_t length;
    /* What goes into the metadata; 0: nothing. */
    uint8_t kind;
    char number[9];
    smart_str serialized;
    uint8_t *packed;
} php_eyewall_encoded;

/* The value has to stay until php_eyewall_encoded_free, which is called in any case. PHP code may run. False: an exception was
 * thrown. */
bool php_eyewall_encode(php_eyewall_encoded *encoded, php_eyewall_serializer serializer, zval *value);
void php_eyewall_encoded_free(php_eyewall_encoded *encoded);

/* The bytes of a value, and what they are. */
typedef struct {
    zend_string *bytes;
    uint8_t kind;
} php_eyewall_stored;

/* Copies what is held in EYEWALL_G(held), and releases it. */
php_eyewall_stored php_eyewall_copy_held(void);
/* Takes the bytes. PHP code may run. False: an exception was thrown. */
bool php_eyewall_decode(php_eyewall_stored stored, zval *value);

/* Makes what is held in EYEWALL_G(held) a value, and releases it. */
static inline bool php_eyewall_take_held(zval *value)
{
    return php_eyewall_decode(php_eyewall_copy_held(), value);
}

#endif
