/* Volumes that are open: each once in a process (in a thread, where PHP has threads), over all requests.
 *
 * Nothing is opened before a script asks for it, so that the master of PHP-FPM or Apache has nothing open when it forks. A child
 * may use what its parent has opened all the same.
 */
#include "php_eyewall.h"
#include <fopen_wrappers.h>
#include <zend_smart_str.h>

static void close_if_unused(php_eyewall_volume *volume)
{
    if (volume->references == 0) {
        eyewall_close(volume->cache);
        pefree(volume->path, 1);
        pefree(volume, 1);
    }
}

void php_eyewall_volume_release(php_eyewall_volume *volume)
{
    volume->references--;
    close_if_unused(volume);
}

static void leave_table(zval *place)
{
    php_eyewall_volume_release(Z_PTR_P(place));
}

void php_eyewall_volumes_begin(HashTable *volumes)
{
    zend_hash_init(volumes, 8, NULL, leave_table, 1);
}

/* One volume that is asked for with other options is opened by these, so that the library says where they differ. */
static zend_string *name_of(const char *path, const php_eyewall_settings *settings)
{
    eyewall_open_options open = settings->open;
    open.tier_folder = NULL;
    smart_str name = {0};
    smart_str_appends(&name, path);
    smart_str_appendc(&name, '\0');
    smart_str_appendl(&name, (const char *)&open, sizeof open);
    if (settings->tier_folder != NULL) {
        smart_str_append(&name, settings->tier_folder);
    }
    smart_str_0(&name);
    return name.s;
}

/* Which file lies at a path; zeros: none. */
static php_eyewall_file file_at(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (php_eyewall_file){file.st_dev, file.st_ino} : (php_eyewall_file){0};
}

static bool is_same_file(php_eyewall_file one, php_eyewall_file other)
{
    return one.number != 0 && one.device == other.device && one.number == other.number;
}

static int forget_if_useless(zval *place)
{
    const php_eyewall_volume *volume = Z_PTR_P(place);
    return volume->has_failed || !is_same_file(volume->file, file_at(volume->path)) ? ZEND_HASH_APPLY_REMOVE : ZEND_HASH_APPLY_KEEP;
}

/* The library doesn't say which file it has opened. It is the one that was at the path before and afterwards; if that isn't one
 * (we have made it, or somebody has put another one there), it is opened once more before the first is left, which is the same
 * attachment as a rule. Where files change all the time none is known, and the next object opens what is there then. */
static eyewall_status open_and_identify(const char *path, const eyewall_open_options *options, php_eyewall_volume *volume)
{
    eyewall_status status = EYEWALL_OK;
    for (int tries = 0; tries < 3 && status == EYEWALL_OK && volume->file.number == 0; tries++) {
        php_eyewall_file before = file_at(path);
        eyewall_cache *earlier = volume->cache;
        status = eyewall_open(path, options, &volume->cache);
        eyewall_close(earlier);
        if (status == EYEWALL_OK && is_same_file(before, file_at(path))) {
            volume->file = before;
        }
    }
    return status;
}

static php_eyewall_volume *open_volume(const char *path, const php_eyewall_settings *settings)
{
    php_eyewall_volume opened = {.references = 1};
    eyewall_status status = open_and_identify(path, &settings->open, &opened);
    if (status != EYEWALL_OK) {
        php_eyewall_throw(NULL, status);
        return NULL;
    }
    opened.path = pestrdup(path, 1);
    php_eyewall_volume *volume = pemalloc(sizeof *volume, 1);
    *volume = opened;
    return volume;
}

php_eyewall_volume *php_eyewall_volume_of(zend_string *path, const php_eyewall_settings *settings)
{
    /* Scripts change directories, and volumes outlive them. */
    char *whole = expand_filepath(ZSTR_VAL(path), NULL);
    if (whole == NULL || php_check_open_basedir(whole)) {
        zend_value_error("The volume's path %s is not one that may be used", ZSTR_VAL(path));
        if (whole != NULL) {
            efree(whole);
        }
        return NULL;
    }
    zend_string *name = name_of(whole, settings);
    php_eyewall_volume *volume = zend_hash_find_ptr(&EYEWALL_G(volumes), name);
    if (volume == NULL || volume->has_failed || !is_same_file(volume->file, file_at(whole))) {
        /* All that were removed go, not only this one: else they would stay mapped for as long as this process lives. */
        zend_hash_apply(&EYEWALL_G(volumes), forget_if_useless);
        volume = open_volume(whole, settings);
        if (volume != NULL) {
            zend_hash_str_update_ptr(&EYEWALL_G(volumes), ZSTR_VAL(name), ZSTR_LEN(name), volume);
        }
    }
    if (volume != NULL) {
        volume->references++;
    }
    zend_string_release(name);
    efree(whole);
    return volume;
}
