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

static bool is_where_it_was(const php_eyewall_volume *volume, const char *path)
{
    struct stat now;
    return stat(path, &now) == 0 && now.st_dev == volume->device && now.st_ino == volume->file;
}

static php_eyewall_volume *open_volume(const char *path, const php_eyewall_settings *settings)
{
    eyewall_cache *cache;
    eyewall_status status = eyewall_open(path, &settings->open, &cache);
    if (status != EYEWALL_OK) {
        php_eyewall_throw(NULL, status);
        return NULL;
    }
    struct stat file = {0};
    stat(path, &file);
    php_eyewall_volume *volume = pecalloc(1, sizeof *volume, 1);
    *volume = (php_eyewall_volume){.cache = cache, .references = 1, .device = file.st_dev, .file = file.st_ino};
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
    if (volume != NULL && (volume->has_failed || !is_where_it_was(volume, whole))) {
        zend_hash_del(&EYEWALL_G(volumes), name);
        volume = NULL;
    }
    if (volume == NULL) {
        volume = open_volume(whole, settings);
        if (volume != NULL) {
            zend_hash_str_add_ptr(&EYEWALL_G(volumes), ZSTR_VAL(name), ZSTR_LEN(name), volume);
        }
    }
    if (volume != NULL) {
        volume->references++;
    }
    zend_string_release(name);
    efree(whole);
    return volume;
}
