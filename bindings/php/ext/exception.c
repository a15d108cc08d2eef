/* Eyewall\Exception: the library's message, with the status as the code. */
#include "php_eyewall.h"
#include <ext/spl/spl_exceptions.h>
#include <zend_exceptions.h>

zend_class_entry *php_eyewall_ce_Exception;

static const struct {
    const char *name;
    eyewall_status status;
} codes[] = {
    {"ARGUMENT", EYEWALL_ERROR_ARGUMENT},
    {"KEY_EMPTY", EYEWALL_ERROR_KEY_EMPTY},
    {"KEY_TOO_LONG", EYEWALL_ERROR_KEY_TOO_LONG},
    {"METADATA_TOO_LONG", EYEWALL_ERROR_METADATA_TOO_LONG},
    {"TOO_MANY_TAGS", EYEWALL_ERROR_TOO_MANY_TAGS},
    {"TAG_LENGTH", EYEWALL_ERROR_TAG_LENGTH},
    {"NOT_A_COUNTER", EYEWALL_ERROR_NOT_A_COUNTER},
    {"ENTRY_TOO_LARGE", EYEWALL_ERROR_ENTRY_TOO_LARGE},
    {"PINNED", EYEWALL_ERROR_PINNED},
    {"BUSY", EYEWALL_ERROR_BUSY},
    {"INTERRUPTED", EYEWALL_ERROR_INTERRUPTED},
    {"READ_ONLY", EYEWALL_ERROR_READ_ONLY},
    {"NOT_FOUND", EYEWALL_ERROR_NOT_FOUND},
    {"FOREIGN", EYEWALL_ERROR_FOREIGN},
    {"VERSION", EYEWALL_ERROR_VERSION},
    {"CORRUPT", EYEWALL_ERROR_CORRUPT},
    {"OPTIONS_DIFFER", EYEWALL_ERROR_OPTIONS_DIFFER},
    {"OUT_OF_RANGE", EYEWALL_ERROR_OUT_OF_RANGE},
    {"NO_TIER", EYEWALL_ERROR_NO_TIER},
    {"NO_SPACE", EYEWALL_ERROR_NO_SPACE},
    {"TOO_MANY_PROCESSES", EYEWALL_ERROR_TOO_MANY_PROCESSES},
    {"FAILED", EYEWALL_ERROR_FAILED},
    {"IO", EYEWALL_ERROR_IO},
    {"INTERNAL", EYEWALL_ERROR_INTERNAL},
};

void php_eyewall_register_exception(void)
{
    zend_class_entry class;
    INIT_NS_CLASS_ENTRY(class, "Eyewall", "Exception", NULL);
    php_eyewall_ce_Exception = zend_register_internal_class_ex(&class, spl_ce_RuntimeException);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        zend_declare_class_constant_long(php_eyewall_ce_Exception, codes[i].name, strlen(codes[i].name), codes[i].status);
    }
}

void php_eyewall_throw(php_eyewall_volume *volume, eyewall_status status)
{
    if (volume != NULL && status == EYEWALL_ERROR_FAILED) {
        volume->has_failed = true;
    }
    zend_throw_exception(php_eyewall_ce_Exception, eyewall_error_message(), status);
}
