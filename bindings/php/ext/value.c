/* PHP values as bytes of the volume.
 *
 * A string is stored as its bytes, without metadata. So values of other languages are strings in PHP, and they read PHP's strings.
 * For every other type, one byte of metadata names the type. None of these bytes begins UTF-8, or an ASCII word that another
 * program might use. A value with other metadata is a string.
 */
#include "value.h"
#include <dlfcn.h>
#include <ext/standard/basic_functions.h>
#include <ext/standard/php_var.h>
#include <zend_exceptions.h>

enum {
    /* Eight bytes, little-endian: a counter of eyewall_increment, in every language. */
    KIND_INTEGER = 0xC0,
    /* A zero byte and a little-endian double. Nine bytes, so that nobody takes it for a counter. */
    KIND_FLOAT = 0xC1,
    KIND_NULL = 0xF5,
    KIND_FALSE = 0xF6,
    KIND_TRUE = 0xF7,
    KIND_PHP = 0xF8,
    KIND_IGBINARY = 0xF9,
    /* From 0xFA on: Python's types (bindings/python/src/value.rs), which are strings here. */
};

/* From igbinary.h. The symbol is looked up at run time, so that igbinary is needed neither to build nor to load this
 * extension. */
typedef int (*igbinary_serialize_function)(uint8_t **bytes, size_t *length, zval *value);
typedef int (*igbinary_unserialize_function)(const uint8_t *bytes, size_t length, zval *value);

/* Looked up once per process, since that takes as long as serializing. Threads that look it up at the same time find
 * the same. */
static igbinary_serialize_function igbinary_serialize;
static igbinary_unserialize_function igbinary_unserialize;

static bool has_igbinary(void)
{
    if (igbinary_unserialize == NULL && zend_hash_str_exists(&module_registry, ZEND_STRL("igbinary"))) {
        igbinary_serialize = (igbinary_serialize_function)dlsym(RTLD_DEFAULT, "igbinary_serialize");
        igbinary_unserialize = (igbinary_unserialize_function)dlsym(RTLD_DEFAULT, "igbinary_unserialize");
    }
    return igbinary_serialize != NULL && igbinary_unserialize != NULL;
}

static void write_little_endian(char *to, uint64_t number)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (char)(number >> (8 * i));
    }
}

static uint64_t read_little_endian(const char *from)
{
    uint64_t number = 0;
    for (int i = 0; i < 8; i++) {
        number |= (uint64_t)(unsigned char)from[i] << (8 * i);
    }
    return number;
}

static bool encode_igbinary(php_eyewall_encoded *encoded, zval *value)
{
    size_t length;
    if (!has_igbinary() || igbinary_serialize(&encoded->packed, &length, value) != 0) {
        if (!EG(exception)) {
            zend_throw_exception(php_eyewall_ce_Exception, "igbinary can't serialize the value", EYEWALL_ERROR_ARGUMENT);
        }
        return false;
    }
    encoded->data = encoded->packed;
    encoded->length = length;
    encoded->kind = KIND_IGBINARY;
    return true;
}

static bool encode_php(php_eyewall_encoded *encoded, zval *value)
{
    php_serialize_data_t data;
    /* Inside another serialization, this one is independent; so is the unserialization. */
    BG(serialize_lock)++;
    PHP_VAR_SERIALIZE_INIT(data);
    php_var_serialize(&encoded->serialized, value, &data);
    PHP_VAR_SERIALIZE_DESTROY(data);
    BG(serialize_lock)--;
    if (EG(exception) || encoded->serialized.s == NULL) {
        return false;
    }
    encoded->data = ZSTR_VAL(encoded->serialized.s);
    encoded->length = ZSTR_LEN(encoded->serialized.s);
    encoded->kind = KIND_PHP;
    return true;
}

static bool encode_structure(php_eyewall_encoded *encoded, php_eyewall_serializer serializer, zval *value)
{
    switch (serializer) {
    case PHP_EYEWALL_NONE:
        zend_throw_exception_ex(php_eyewall_ce_Exception, EYEWALL_ERROR_ARGUMENT,
            "A value of type %s can't be stored without a serializer; choose one by the option serializer", zend_zval_type_name(value));
        return false;
    case PHP_EYEWALL_PHP:
        return encode_php(encoded, value);
    case PHP_EYEWALL_IGBINARY:
        return encode_igbinary(encoded, value);
    default:
        return has_igbinary() ? encode_igbinary(encoded, value) : encode_php(encoded, value);
    }
}

bool php_eyewall_encode(php_eyewall_encoded *encoded, php_eyewall_serializer serializer, zval *value)
{
    *encoded = (php_eyewall_encoded){.data = encoded->number};
    uint64_t bits;
    switch (Z_TYPE_P(value)) {
    case IS_STRING:
        encoded->data = Z_STRVAL_P(value);
        encoded->length = Z_STRLEN_P(value);
        return true;
    case IS_LONG:
        write_little_endian(encoded->number, (uint64_t)Z_LVAL_P(value));
        encoded->length = 8;
        encoded->kind = KIND_INTEGER;
        return true;
    case IS_DOUBLE:
        memcpy(&bits, &Z_DVAL_P(value), sizeof bits);
        encoded->number[0] = 0;
        write_little_endian(encoded->number + 1, bits);
        encoded->length = 9;
        encoded->kind = KIND_FLOAT;
        return true;
    case IS_NULL:
        encoded->kind = KIND_NULL;
        return true;
    case IS_FALSE:
        encoded->kind = KIND_FALSE;
        return true;
    case IS_TRUE:
        encoded->kind = KIND_TRUE;
        return true;
    default:
        return encode_structure(encoded, serializer, value);
    }
}

void php_eyewall_encoded_free(php_eyewall_encoded *encoded)
{
    smart_str_free(&encoded->serialized);
    if (encoded->packed != NULL) {
        efree(encoded->packed);
        encoded->packed = NULL;
    }
}

bool php_eyewall_release_held(php_eyewall_volume *volume)
{
    eyewall_hit *held = &EYEWALL_G(held);
    eyewall_status status = eyewall_hit_check(held);
    eyewall_hit_release(held);
    return php_eyewall_is_done(volume, status);
}

bool php_eyewall_copy_held(php_eyewall_volume *volume, php_eyewall_stored *stored)
{
    const eyewall_hit *held = &EYEWALL_G(held);
    eyewall_bytes metadata = eyewall_hit_metadata(held);
    stored->kind = metadata.length == 1 ? *(const uint8_t *)metadata.data : 0;
    stored->bytes = zend_string_init_fast(held->value, held->value_length);
    if (EXPECTED(php_eyewall_release_held(volume))) {
        return true;
    }
    zend_string_release(stored->bytes);
    stored->bytes = NULL;
    return false;
}

static bool decode_php(const zend_string *bytes, zval *value)
{
    const unsigned char *at = (const unsigned char *)ZSTR_VAL(bytes);
    php_unserialize_data_t data;
    BG(serialize_lock)++;
    PHP_VAR_UNSERIALIZE_INIT(data);
    bool is_done = php_var_unserialize(value, &at, at + ZSTR_LEN(bytes), &data);
    PHP_VAR_UNSERIALIZE_DESTROY(data);
    BG(serialize_lock)--;
    return is_done;
}

static bool decode_igbinary(const zend_string *bytes, zval *value)
{
    if (!has_igbinary()) {
        zend_throw_exception(php_eyewall_ce_Exception,
            "The value was stored by igbinary, which isn't loaded; load it, or delete the value", EYEWALL_ERROR_ARGUMENT);
        return false;
    }
    return igbinary_unserialize((const uint8_t *)ZSTR_VAL(bytes), ZSTR_LEN(bytes), value) == 0;
}

/* The slower types. Without a serializer nothing is unserialized, since that runs code of the classes that the bytes
 * name. */
static bool decode_structure(php_eyewall_stored stored, php_eyewall_serializer serializer, zval *value)
{
    ZVAL_NULL(value);
    if (serializer == PHP_EYEWALL_NONE) {
        zend_throw_exception(php_eyewall_ce_Exception,
            "The value is serialized, and the option serializer is \"none\"; read it with another serializer, or delete it",
            EYEWALL_ERROR_ARGUMENT);
        return false;
    }
    bool is_done = stored.kind == KIND_PHP ? decode_php(stored.bytes, value) : decode_igbinary(stored.bytes, value);
    if (is_done && !EG(exception)) {
        if (Z_ISREF_P(value)) {
            zend_unwrap_reference(value);
        }
        return true;
    }
    zval_ptr_dtor(value);
    ZVAL_NULL(value);
    if (!EG(exception)) {
        zend_throw_exception(php_eyewall_ce_Exception, "The stored value can't be unserialized; delete it, and store it again",
            EYEWALL_ERROR_CORRUPT);
    }
    return false;
}

bool php_eyewall_decode(php_eyewall_stored stored, php_eyewall_serializer serializer, zval *value)
{
    if (EXPECTED(stored.kind == 0)) {
        ZVAL_STR(value, stored.bytes);
        return true;
    }
    size_t length = ZSTR_LEN(stored.bytes);
    bool is_done = true;
    uint64_t bits;
    if (stored.kind == KIND_INTEGER && length == 8) {
        ZVAL_LONG(value, (zend_long)read_little_endian(ZSTR_VAL(stored.bytes)));
    } else if (stored.kind == KIND_FLOAT && length == 9) {
        bits = read_little_endian(ZSTR_VAL(stored.bytes) + 1);
        ZVAL_DOUBLE(value, 0);
        memcpy(&Z_DVAL_P(value), &bits, sizeof bits);
    } else if (stored.kind == KIND_NULL) {
        ZVAL_NULL(value);
    } else if (stored.kind == KIND_FALSE || stored.kind == KIND_TRUE) {
        ZVAL_BOOL(value, stored.kind == KIND_TRUE);
    } else if (stored.kind == KIND_PHP || stored.kind == KIND_IGBINARY) {
        is_done = decode_structure(stored, serializer, value);
    } else {
        ZVAL_STR(value, stored.bytes);
        return true;
    }
    zend_string_release(stored.bytes);
    return is_done;
}
