/* PHP values as bytes of the volume. */
#ifndef PHP_EYEWALL_VALUE_H
#define PHP_EYEWALL_VALUE_H

#include "php_eyewall.h"
#include <zend_smart_str.h>

/* A value to be stored. */
typedef struct {
    const void *data;
    size_t length;
    /* The byte of metadata; 0: none. */
    uint8_t kind;
    char number[9];
    smart_str serialized;
    uint8_t *packed;
} php_eyewall_encoded;

/* Encodes a value. The value must exist until php_eyewall_encoded_free, which must be called in any case. PHP code may
 * run. False: an exception was thrown. */
bool php_eyewall_encode(php_eyewall_encoded *encoded, php_eyewall_serializer serializer, zval *value);
void php_eyewall_encoded_free(php_eyewall_encoded *encoded);

/* The bytes of a value, and their type. */
typedef struct {
    zend_string *bytes;
    uint8_t kind;
} php_eyewall_stored;

/* Releases the entry in EYEWALL_G(held) after its bytes were copied. False: the copies are wrong, and an exception was
 * thrown. */
bool php_eyewall_release_held(php_eyewall_volume *volume);

/* Copies the value in EYEWALL_G(held), and releases it. False: an exception was thrown, and there is nothing to free. */
bool php_eyewall_copy_held(php_eyewall_volume *volume, php_eyewall_stored *stored);

/* Takes the bytes and decodes them. PHP code may run, unless the serializer is PHP_EYEWALL_NONE. False: an exception
 * was thrown. */
bool php_eyewall_decode(php_eyewall_stored stored, php_eyewall_serializer serializer, zval *value);

/* Decodes the value in EYEWALL_G(held), and releases it. False: an exception was thrown. */
static inline bool php_eyewall_take_held(php_eyewall_object *this, zval *value)
{
    php_eyewall_stored stored;
    return php_eyewall_copy_held(this->volume, &stored) && php_eyewall_decode(stored, this->serializer, value);
}

#endif
