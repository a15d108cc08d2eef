/* Eyewall\Claim: the right to change one key, while the object exists. */
#include "callbacks.h"
#include <zend_exceptions.h>

zend_class_entry *php_eyewall_ce_Claim;

static zend_object_handlers handlers;

typedef struct {
    /* NULL after the end of the claim. */
    eyewall_claim *claim;
    php_eyewall_volume *volume;
    php_eyewall_serializer serializer;
    /* The entry when the key was claimed; no bytes if there was none. */
    php_eyewall_stored entry;
    zend_object std;
} claim_object;

static claim_object *claim_of(zend_object *object)
{
    return (claim_object *)((char *)object - offsetof(claim_object, std));
}

static zend_object *create_claim(zend_class_entry *class)
{
    claim_object *object = zend_object_alloc(sizeof *object, class);
    memset(object, 0, offsetof(claim_object, std));
    zend_object_std_init(&object->std, class);
    object_properties_init(&object->std, class);
    object->std.handlers = &handlers;
    return &object->std;
}

/* Runs also when a script exits or fails, since PHP then frees all objects. */
static void free_claim(zend_object *std)
{
    claim_object *object = claim_of(std);
    eyewall_claim_end(object->claim);
    object->claim = NULL;
    if (object->entry.bytes != NULL) {
        zend_string_release(object->entry.bytes);
        object->entry.bytes = NULL;
    }
    if (object->volume != NULL) {
        php_eyewall_volume_release(object->volume);
        object->volume = NULL;
    }
    zend_object_std_dtor(std);
}

PHP_METHOD(Eyewall_Cache, claim)
{
    zend_string *key;
    double wait = 5;
    ZEND_PARSE_PARAMETERS_START(1, 2)
        Z_PARAM_STR(key)
        Z_PARAM_OPTIONAL
        Z_PARAM_DOUBLE(wait)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    uint64_t wait_ms;
    if (this == NULL || !php_eyewall_duration("wait", wait, &wait_ms)) {
        RETURN_THROWS();
    }
    /* Create the object before the claim, so that an owner ends the claim in any case. */
    object_init_ex(return_value, php_eyewall_ce_Claim);
    claim_object *object = claim_of(Z_OBJ_P(return_value));
    object->volume = this->volume;
    object->volume->references++;
    object->serializer = this->serializer;
    eyewall_status status = php_eyewall_claim_key(this->volume, key, wait_ms, &object->claim, php_eyewall_held());
    if (status == EYEWALL_OK) {
        php_eyewall_copy_held(this->volume, &object->entry);
    } else {
        php_eyewall_is_done(this->volume, status);
    }
}

/* Takes the claim out of its object, for a call that ends it. NULL: an exception was thrown. */
static eyewall_claim *take_claim(claim_object *object)
{
    eyewall_claim *claim = object->claim;
    object->claim = NULL;
    if (claim == NULL) {
        zend_throw_exception(php_eyewall_ce_Exception, "The claim has ended; call claim() again", EYEWALL_ERROR_ARGUMENT);
    }
    return claim;
}

PHP_METHOD(Eyewall_Claim, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

PHP_METHOD(Eyewall_Claim, isHit)
{
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(claim_of(Z_OBJ_P(ZEND_THIS))->entry.bytes != NULL);
}

PHP_METHOD(Eyewall_Claim, get)
{
    zval *otherwise = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 1)
        Z_PARAM_OPTIONAL
        Z_PARAM_ZVAL(otherwise)
    ZEND_PARSE_PARAMETERS_END();
    const claim_object *object = claim_of(Z_OBJ_P(ZEND_THIS));
    php_eyewall_stored entry = object->entry;
    if (entry.bytes != NULL) {
        zend_string_addref(entry.bytes);
        php_eyewall_decode(entry, object->serializer, return_value);
    } else if (otherwise != NULL) {
        RETURN_COPY(otherwise);
    }
}

PHP_METHOD(Eyewall_Claim, set)
{
    zval *value;
    php_eyewall_terms terms = PHP_EYEWALL_TERMS;
    ZEND_PARSE_PARAMETERS_START(1, 4)
        Z_PARAM_ZVAL(value)
        Z_PARAM_OPTIONAL
        Z_PARAM_TERMS(terms)
    ZEND_PARSE_PARAMETERS_END();
    claim_object *object = claim_of(Z_OBJ_P(ZEND_THIS));
    php_eyewall_put put;
    php_eyewall_encoded encoded = {0};
    bool is_stored = false;
    /* The object keeps the claim while PHP code may run. */
    if (php_eyewall_put_begin(&put, &terms) && php_eyewall_encode(&encoded, object->serializer, value)) {
        eyewall_claim *claim = take_claim(object);
        if (claim != NULL) {
            eyewall_status status = eyewall_claim_put(claim, encoded.data, encoded.length, php_eyewall_put_of(&put, &encoded), NULL);
            is_stored = php_eyewall_is_done(object->volume, status) && status == EYEWALL_OK;
        }
    }
    php_eyewall_encoded_free(&encoded);
    php_eyewall_put_end(&put);
    RETURN_BOOL(is_stored);
}

PHP_METHOD(Eyewall_Claim, delete)
{
    ZEND_PARSE_PARAMETERS_NONE();
    claim_object *object = claim_of(Z_OBJ_P(ZEND_THIS));
    eyewall_claim *claim = take_claim(object);
    if (claim != NULL) {
        eyewall_status status = eyewall_claim_remove(claim);
        php_eyewall_is_done(object->volume, status);
        RETURN_BOOL(status == EYEWALL_OK);
    }
}

PHP_METHOD(Eyewall_Claim, end)
{
    ZEND_PARSE_PARAMETERS_NONE();
    claim_object *object = claim_of(Z_OBJ_P(ZEND_THIS));
    eyewall_claim_end(object->claim);
    object->claim = NULL;
}

void php_eyewall_register_claim(const zend_function_entry *methods)
{
    zend_class_entry class;
    INIT_NS_CLASS_ENTRY(class, "Eyewall", "Claim", methods);
    php_eyewall_ce_Claim = zend_register_internal_class_ex(&class, NULL);
    php_eyewall_ce_Claim->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    php_eyewall_ce_Claim->create_object = create_claim;
    memcpy(&handlers, &std_object_handlers, sizeof handlers);
    handlers.offset = offsetof(claim_object, std);
    handlers.free_obj = free_claim;
    handlers.clone_obj = NULL;
}
