/* Open volumes. A process (or a thread, if PHP has threads) opens each volume once, over all requests.
 *
 * No volume is opened before a script asks for it, so the master of PHP-FPM or Apache has none open when it forks. If a parent does
 * have one open, its child may still use it.
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

/* A volume that is open already is opened again if the options differ, so that the library reports the difference. */
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

/* The identity of the file at a path; zeros: none. */
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

/* The library doesn't report which file it opened. It is the one that was at the path before and after. If these
 * differ (because this call created the file, or another process replaced it), open the path once more before closing
 * the first: usually that is the same attachment. If the file keeps changing, the identity stays unknown, and the next
 * object opens the path again. */
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
    /* An absolute path, since scripts change directories, and volumes outlive scripts. */
    char *whole = expand_filepath(ZSTR_VAL(path), NULL);
    if (whole == NULL || php_check_open_basedir(whole)) {
        zend_value_error("open_basedir does not permit the volume's path %s", ZSTR_VAL(path));
        if (whole != NULL) {
            efree(whole);
        }
        return NULL;
    }
    zend_string *name = name_of(whole, settings);
    php_eyewall_volume *volume = zend_hash_find_ptr(&EYEWALL_G(volumes), name);
    if (volume == NULL || volume->has_failed || !is_same_file(volume->file, file_at(whole))) {
        /* Close all removed volumes, not only this one: they would stay mapped for the life of this process. */
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
