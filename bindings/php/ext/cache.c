/* Eyewall\Cache: the class and its constructor. Its methods are in lookups.c, changes.c, callbacks.c, purges.c, keys.c
 * and stats.c. */
#include "php_eyewall.h"
#include "object.h"

zend_class_entry *php_eyewall_ce_Cache;

static zend_object_handlers handlers;

static zend_object *create_cache(zend_class_entry *class)
{
    php_eyewall_object *object = zend_object_alloc(sizeof *object, class);
    object->volume = NULL;
    object->serializer = PHP_EYEWALL_AUTOMATIC;
    zend_object_std_init(&object->std, class);
    object_properties_init(&object->std, class);
    object->std.handlers = &handlers;
    return &object->std;
}

static void free_cache(zend_object *std)
{
    php_eyewall_object *object = php_eyewall_object_of(std);
    if (object->volume != NULL) {
        php_eyewall_volume_release(object->volume);
        object->volume = NULL;
    }
    zend_object_std_dtor(std);
}

PHP_METHOD(Eyewall_Cache, __construct)
{
    zend_string *path = NULL;
    HashTable *options = NULL;
    ZEND_PARSE_PARAMETERS_START(0, 2)
        Z_PARAM_OPTIONAL
        Z_PARAM_PATH_STR_OR_NULL(path)
        Z_PARAM_ARRAY_HT(options)
    ZEND_PARSE_PARAMETERS_END();
    php_eyewall_object *object = php_eyewall_object_of(Z_OBJ_P(ZEND_THIS));
    if (object->volume != NULL) {
        zend_throw_error(NULL, "The cache is open already; create another one with new");
        RETURN_THROWS();
    }
    zend_string *from_ini = NULL;
    if (path == NULL) {
        const char *text = zend_ini_string("eyewall.path", sizeof "eyewall.path" - 1, 0);
        if (text == NULL || *text == '\0') {
            zend_value_error("The path of the volume is missing: pass it, or set eyewall.path in php.ini");
            RETURN_THROWS();
        }
        path = from_ini = zend_string_init(text, strlen(text), 0);
    } else if (ZSTR_LEN(path) == 0) {
        zend_argument_value_error(1, "cannot be empty");
        RETURN_THROWS();
    }
    php_eyewall_settings settings;
    if (php_eyewall_settings_begin(&settings, options)) {
        object->volume = php_eyewall_volume_of(path, &settings);
        object->serializer = settings.serializer;
    }
    php_eyewall_settings_end(&settings);
    if (from_ini != NULL) {
        zend_string_release(from_ini);
    }
}

void php_eyewall_register_cache(const zend_function_entry *methods)
{
    zend_class_entry class;
    INIT_NS_CLASS_ENTRY(class, "Eyewall", "Cache", methods);
    php_eyewall_ce_Cache = zend_register_internal_class_ex(&class, NULL);
    php_eyewall_ce_Cache->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
    php_eyewall_ce_Cache->create_object = create_cache;
    memcpy(&handlers, &std_object_handlers, sizeof handlers);
    handlers.offset = offsetof(php_eyewall_object, std);
    handlers.free_obj = free_cache;
    handlers.clone_obj = NULL;
}
