/* Options of `new Eyewall\Cache`, and the ini settings that are their defaults.
 *
 * One table lists the options. An ini setting is read as if its text were the option.
 */
#include "php_eyewall.h"
#include <errno.h>
#include <fopen_wrappers.h>
#include <grp.h>
#include <math.h>

typedef bool (*reader)(php_eyewall_settings *settings, const zval *value);

/* A number of bytes: an integer, or text such as 64M. */
static bool read_bytes(const zval *value, uint64_t *bytes)
{
    if (Z_TYPE_P(value) == IS_LONG && Z_LVAL_P(value) >= 0) {
        *bytes = (uint64_t)Z_LVAL_P(value);
        return true;
    }
    if (Z_TYPE_P(value) != IS_STRING || Z_STRVAL_P(value)[0] < '0' || Z_STRVAL_P(value)[0] > '9') {
        return false;
    }
    char *end;
    errno = 0;
    uint64_t number = strtoull(Z_STRVAL_P(value), &end, 10);
    int shift = 0;
    switch (*end) {
    case 'T': case 't': shift = 40; break;
    case 'G': case 'g': shift = 30; break;
    case 'M': case 'm': shift = 20; break;
    case 'K': case 'k': shift = 10; break;
    }
    end += shift != 0;
    *bytes = number << shift;
    return errno == 0 && *end == '\0' && *bytes >> shift == number;
}

static bool read_flag(php_eyewall_settings *settings, const zval *value, uint32_t flag)
{
    bool is_true;
    if (Z_TYPE_P(value) == IS_TRUE || Z_TYPE_P(value) == IS_FALSE) {
        is_true = Z_TYPE_P(value) == IS_TRUE;
    } else if (Z_TYPE_P(value) == IS_STRING && Z_STRLEN_P(value) == 1 && strchr("01", Z_STRVAL_P(value)[0]) != NULL) {
        is_true = Z_STRVAL_P(value)[0] == '1';
    } else {
        return false;
    }
    settings->open.flags = is_true ? settings->open.flags | flag : settings->open.flags & ~flag;
    return true;
}

static bool read_size(php_eyewall_settings *settings, const zval *value)
{
    return read_bytes(value, &settings->open.size);
}

static bool read_entry_bytes_max(php_eyewall_settings *settings, const zval *value)
{
    return read_bytes(value, &settings->open.entry_bytes_max);
}

static bool read_entry_size_hint(php_eyewall_settings *settings, const zval *value)
{
    uint64_t bytes;
    if (!read_bytes(value, &bytes) || bytes > UINT32_MAX) {
        return false;
    }
    settings->open.entry_size_hint = (uint32_t)bytes;
    return true;
}

static bool read_mode(php_eyewall_settings *settings, const zval *value)
{
    unsigned long mode = 0;
    if (Z_TYPE_P(value) == IS_LONG) {
        mode = (unsigned long)Z_LVAL_P(value);
    } else if (Z_TYPE_P(value) == IS_STRING) {
        char *end;
        mode = strtoul(Z_STRVAL_P(value), &end, 8);
        if (*end != '\0') {
            return false;
        }
    }
    settings->open.mode = (uint32_t)mode;
    return mode > 0 && mode <= 0777;
}

/* A number, or a name in the system's table of groups. */
static bool read_group(php_eyewall_settings *settings, const zval *value)
{
    if (Z_TYPE_P(value) == IS_LONG && Z_LVAL_P(value) >= 0 && Z_LVAL_P(value) < UINT32_MAX) {
        settings->open.group = (uint32_t)Z_LVAL_P(value);
    } else if (Z_TYPE_P(value) == IS_STRING && Z_STRLEN_P(value) > 0) {
        struct group group, *found = NULL;
        char names[16384];
        char *end;
        errno = 0;
        unsigned long number = strtoul(Z_STRVAL_P(value), &end, 10);
        if (*end == '\0' && errno == 0 && number < UINT32_MAX) {
            settings->open.group = (uint32_t)number;
        } else if (getgrnam_r(Z_STRVAL_P(value), &group, names, sizeof names, &found) == 0 && found != NULL) {
            settings->open.group = found->gr_gid;
        } else {
            return false;
        }
    } else {
        return false;
    }
    settings->open.flags |= EYEWALL_SET_GROUP;
    return true;
}

static bool read_lock_deadline(php_eyewall_settings *settings, const zval *value)
{
    double seconds;
    if (Z_TYPE_P(value) == IS_LONG) {
        seconds = (double)Z_LVAL_P(value);
    } else if (Z_TYPE_P(value) == IS_DOUBLE) {
        seconds = Z_DVAL_P(value);
    } else if (Z_TYPE_P(value) != IS_STRING || !is_numeric_string(Z_STRVAL_P(value), Z_STRLEN_P(value), NULL, &seconds, false)) {
        return false;
    } else {
        seconds = zend_strtod(Z_STRVAL_P(value), NULL);
    }
    /* False if it is not a number, too. */
    if (!(seconds > 0 && seconds <= 86400)) {
        return false;
    }
    settings->open.lock_deadline_ms = (uint64_t)ceil(seconds * 1000);
    return true;
}

static bool read_tier(php_eyewall_settings *settings, const zval *value)
{
    return read_bytes(value, &settings->open.tier_bytes);
}

static bool read_tier_folder(php_eyewall_settings *settings, const zval *value)
{
    if (Z_TYPE_P(value) != IS_STRING || Z_STRLEN_P(value) == 0 || CHECK_NULL_PATH(Z_STRVAL_P(value), Z_STRLEN_P(value))) {
        return false;
    }
    if (settings->tier_folder != NULL) {
        zend_string_release(settings->tier_folder);
    }
    settings->tier_folder = zend_string_copy(Z_STR_P(value));
    settings->open.tier_folder = ZSTR_VAL(settings->tier_folder);
    return php_check_open_basedir(ZSTR_VAL(settings->tier_folder)) == 0;
}

static bool read_serializer(php_eyewall_settings *settings, const zval *value)
{
    if (Z_TYPE_P(value) != IS_STRING) {
        return false;
    }
    if (zend_string_equals_literal(Z_STR_P(value), "php")) {
        settings->serializer = PHP_EYEWALL_PHP;
    } else if (zend_string_equals_literal(Z_STR_P(value), "none")) {
        settings->serializer = PHP_EYEWALL_NONE;
    } else if (zend_string_equals_literal(Z_STR_P(value), "igbinary")) {
        settings->serializer = PHP_EYEWALL_IGBINARY;
        return zend_hash_str_exists(&module_registry, ZEND_STRL("igbinary"));
    } else {
        return false;
    }
    return true;
}

static bool read_must_exist(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_MUST_EXIST);
}

static bool read_read_only(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_READ_ONLY);
}

static bool read_survive_sigbus(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_SURVIVE_SIGBUS);
}

static bool read_put_aside_broken(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_PUT_ASIDE_BROKEN);
}

static bool read_verify_hits(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_VERIFY_HITS);
}

static bool read_fleet(php_eyewall_settings *settings, const zval *value)
{
    return read_flag(settings, value, EYEWALL_FLEET);
}

static const struct {
    const char *name;
    const char *ini;
    reader read;
    const char *wanted;
} options[] = {
    {"size", "eyewall.size", read_size, "a number of bytes, or text such as \"64M\""},
    {"entry_bytes_max", "eyewall.entry_bytes_max", read_entry_bytes_max, "a number of bytes, or text such as \"1M\""},
    {"entry_size_hint", "eyewall.entry_size_hint", read_entry_size_hint, "a number of bytes below 4G"},
    {"mode", "eyewall.mode", read_mode, "permission bits, such as 0660 or \"0660\""},
    {"group", "eyewall.group", read_group, "the number of a group, or the name of one on this system"},
    {"lock_deadline", "eyewall.lock_deadline", read_lock_deadline, "more than 0 and at most 86400 seconds"},
    {"tier", "eyewall.tier", read_tier, "a number of bytes, or text such as \"16M\""},
    {"tier_folder", "eyewall.tier_folder", read_tier_folder, "the path of a folder that open_basedir permits"},
    {"serializer", "eyewall.serializer", read_serializer,
     "\"php\", \"none\", or, if that extension is loaded, \"igbinary\""},
    {"must_exist", "eyewall.must_exist", read_must_exist, "true or false"},
    {"read_only", "eyewall.read_only", read_read_only, "true or false"},
    {"survive_sigbus", "eyewall.survive_sigbus", read_survive_sigbus, "true or false"},
    {"put_aside_broken", "eyewall.put_aside_broken", read_put_aside_broken, "true or false"},
    {"verify_hits", "eyewall.verify_hits", read_verify_hits, "true or false"},
    {"fleet", "eyewall.fleet", read_fleet, "true or false"},
};

enum { OPTIONS = sizeof options / sizeof *options };

static bool is_given(HashTable *given, const char *name)
{
    zval *value = given == NULL ? NULL : zend_hash_str_find_deref(given, name, strlen(name));
    return value != NULL && Z_TYPE_P(value) != IS_NULL;
}

static bool read_ini(php_eyewall_settings *settings, HashTable *given)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        if (is_given(given, options[i].name)) {
            continue;
        }
        const char *text = zend_ini_string((char *)options[i].ini, strlen(options[i].ini), 0);
        if (text == NULL || *text == '\0') {
            continue;
        }
        zval value;
        ZVAL_STRING(&value, text);
        bool is_read = options[i].read(settings, &value);
        zval_ptr_dtor_str(&value);
        if (!is_read) {
            zend_value_error("The ini setting %s must be %s", options[i].ini, options[i].wanted);
            return false;
        }
    }
    return true;
}

static bool read_option(php_eyewall_settings *settings, zend_string *name, zval *value)
{
    for (size_t i = 0; i < OPTIONS; i++) {
        if (name == NULL || strcmp(ZSTR_VAL(name), options[i].name) != 0) {
            continue;
        }
        ZVAL_DEREF(value);
        if (Z_TYPE_P(value) == IS_NULL || options[i].read(settings, value)) {
            return true;
        }
        if (!EG(exception)) {
            zend_value_error("The option %s must be %s", options[i].name, options[i].wanted);
        }
        return false;
    }
    zend_value_error("There is no option %s; see the constructor of Eyewall\\Cache", name == NULL ? "without a name" : ZSTR_VAL(name));
    return false;
}

bool php_eyewall_settings_begin(php_eyewall_settings *settings, HashTable *given)
{
    /* Clear all bytes: volumes are compared by these. */
    memset(settings, 0, sizeof *settings);
    if (!read_ini(settings, given)) {
        return false;
    }
    zend_string *name;
    zval *value;
    if (given != NULL) {
        ZEND_HASH_FOREACH_STR_KEY_VAL(given, name, value) {
            if (!read_option(settings, name, value)) {
                return false;
            }
        } ZEND_HASH_FOREACH_END();
    }
    return true;
}

void php_eyewall_settings_end(php_eyewall_settings *settings)
{
    if (settings->tier_folder != NULL) {
        zend_string_release(settings->tier_folder);
    }
}
