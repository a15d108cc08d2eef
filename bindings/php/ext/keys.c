/* Eyewall\Keys: an iterator over the keys of all valid entries. It holds no entry between two steps. */
#include "object.h"
#include "value.h"
#include <zend_interfaces.h>

zend_class_entry *php_eyewall_ce_Keys;

static zend_object_handlers handlers;

typedef struct {
    php_eyewall_volume *volume;
    /* NULL before the beginning and after the end of the iteration. */
    eyewall_iter *walk;
    zend_string *key;
    zend_long number;
    zend_object std;
} keys_object;

static keys_object *keys_of(zend_object *object)
{
    return (keys_object *)((char *)object - offsetof(keys_object, std));
}

static zend_object *create_keys(zend_class_entry *class)
{
    keys_object *object = zend_object_alloc(sizeof *object, class);
    memset(object, 0, offsetof(keys_object, std));
    zend_object_std_init(&object->std, class);
    object_properties_init(&object->std, class);
    object->std.handlers = &handlers;
    return &object->std;
}

static void forget_key(keys_object *object)
{
    if (object->key != NULL) {
        zend_string_release(object->key);
        object->key = NULL;
    }
}

static void end_walk(keys_object *object)
{
    forget_key(object);
    eyewall_iter_end(object->walk);
    object->walk = NULL;
}

static void free_keys(zend_object *std)
{
    keys_object *object = keys_of(std);
    end_walk(object);
    if (object->volume != NULL) {
        php_eyewall_volume_release(object->volume);
        object->volume = NULL;
    }
    zend_object_std_dtor(std);
}

static void step(keys_object *object)
{
    forget_key(object);
    if (object->walk == NULL) {
        return;
    }
    eyewall_hit *held = php_eyewall_held();
    eyewall_status status = eyewall_iter_next(object->walk, held);
    if (status == EYEWALL_OK) {
        eyewall_bytes key = eyewall_hit_key(held);
        object->key = zend_string_init(key.data, key.length, 0);
        if (!php_eyewall_release_held(object->volume)) {
            end_walk(object);
        }
    } else {
        end_walk(object);
        php_eyewall_is_done(object->volume, status);
    }
}

static void begin(keys_object *object)
{
    end_walk(object);
    object->number = 0;
    if (php_eyewall_is_done(object->volume, eyewall_iter_begin(object->volume->cache, false, &object->walk))) {
        step(object);
    }
}

PHP_METHOD(Eyewall_Cache, keys)
{
    ZEND_PARSE_PARAMETERS_NONE();
    php_eyewall_object *this = php_eyewall_this(ZEND_THIS);
    if (this == NULL) {
        RETURN_THROWS();
    }
    object_init_ex(return_value, php_eyewall_ce_Keys);
    keys_object *object = keys_of(Z_OBJ_P(return_value));
    object->volume = this->volume;
    object->volume->references++;
    begin(object);
}

PHP_METHOD(Eyewall_Keys, __construct)
{
    ZEND_PARSE_PARAMETERS_NONE();
}

PHP_METHOD(Eyewall_Keys, current)
{
    ZEND_PARSE_PARAMETERS_NONE();
    const keys_object *object = keys_of(Z_OBJ_P(ZEND_THIS));
    if (object->key != NULL) {
        RETURN_STR_COPY(object->key);
    }
}

PHP_METHOD(Eyewall_Keys, key)
{
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_LONG(keys_of(Z_OBJ_P(ZEND_THIS))->number);
}

PHP_METHOD(Eyewall_Keys, next)
{
    ZEND_PARSE_PARAMETERS_NONE();
    keys_object *object = keys_of(Z_OBJ_P(ZEND_THIS));
    object->number++;
    step(object);
}

PHP_METHOD(Eyewall_Keys, rewind)
{
    ZEND_PARSE_PARAMETERS_NONE();
    keys_object *object = keys_of(Z_OBJ_P(ZEND_THIS));
    /* foreach calls this first, when the iteration has just begun. */
    if (object->number > 0 || object->key == NULL) {
        begin(object);
    }
}

PHP_METHOD(Eyewall_Keys, valid)
{
    ZEND_PARSE_PARAMETERS_NONE();
    RETURN_BOOL(keys_of(Z_OBJ_P(ZEND_THIS))->key != NULL);
}

void php_eyewall_register_keys(const zend_function_entry *methods)
{
    zend_class_entry class;
    INIT_NS_CLASS_ENTRY(class, "Eyewall", "Keys", methods);
    php_eyewall_ce_Keys = zend_register_internal_class_ex(&class, NULL);
    php_eyewall_ce_Keys->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    php_eyewall_ce_Keys->create_object = create_keys;
    zend_class_implements(php_eyewall_ce_Keys, 1, zend_ce_iterator);
    memcpy(&handlers, &std_object_handlers, sizeof handlers);
    handlers.offset = offsetof(keys_object, std);
    handlers.free_obj = free_keys;
    handlers.clone_obj = NULL;
}
