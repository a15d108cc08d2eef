/* What the files of the extension share. */
#ifndef PHP_EYEWALL_H
#define PHP_EYEWALL_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <eyewall.h>
#include <php.h>
#include <sys/stat.h>

#define PHP_EYEWALL_VERSION "0.1.0"

extern zend_module_entry eyewall_module_entry;
#define phpext_eyewall_ptr &eyewall_module_entry

/* What a callback has on the volume while it runs: a claim or a flight, or neither. It lies on the stack of the method that calls. */
typedef struct php_eyewall_right {
    eyewall_claim *claim;
    eyewall_flight *flight;
    struct php_eyewall_right *previous, *next;
} php_eyewall_right;

ZEND_BEGIN_MODULE_GLOBALS(eyewall)
    /* Open volumes, kept over requests. */
    HashTable volumes;
    /* The entry whose bytes are being copied. Memory may run out in the middle of that, and PHP leaves by a jump then; the end of
     * the request releases what is found here. */
    eyewall_hit held;
    /* Rights of callbacks that are running, or belong to fibers that are suspended; the end of the request ends what is left. */
    php_eyewall_right *rights;
ZEND_END_MODULE_GLOBALS(eyewall)

ZEND_EXTERN_MODULE_GLOBALS(eyewall)
#define EYEWALL_G(name) ZEND_MODULE_GLOBALS_ACCESSOR(eyewall, name)
#if defined(ZTS) && defined(COMPILE_DL_EYEWALL)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

/* Which file it is, wherever it lies. */
typedef struct {
    dev_t device;
    ino_t number;
} php_eyewall_file;

/* An open volume. It is closed when nobody refers to it any more: the table of volumes, nor an object. */
typedef struct {
    eyewall_cache *cache;
    uint32_t references;
    char *path;
    /* What was opened there: where another file lies at the path, or none, a new object opens that. Zeros: it isn't known. */
    php_eyewall_file file;
    /* Bytes of it were lost: this one is of no more use. */
    bool has_failed;
} php_eyewall_volume;

typedef enum { PHP_EYEWALL_AUTOMATIC, PHP_EYEWALL_PHP, PHP_EYEWALL_IGBINARY, PHP_EYEWALL_NONE } php_eyewall_serializer;

/* What `new Eyewall\Cache` was told. */
typedef struct {
    eyewall_open_options open;
    /* What open.tier_folder points at, or NULL. */
    zend_string *tier_folder;
    php_eyewall_serializer serializer;
} php_eyewall_settings;

typedef struct {
    /* NULL: the constructor has failed, or wasn't called. */
    php_eyewall_volume *volume;
    php_eyewall_serializer serializer;
    zend_object std;
} php_eyewall_object;

extern zend_class_entry *php_eyewall_ce_Cache, *php_eyewall_ce_Claim, *php_eyewall_ce_Keys, *php_eyewall_ce_Exception;

/* exception.c */
void php_eyewall_register_exception(void);
/* Throws what the library's last error was. */
void php_eyewall_throw(php_eyewall_volume *volume, eyewall_status status);
/* The status, or an exception where it is an error. */
static inline bool php_eyewall_is_done(php_eyewall_volume *volume, eyewall_status status)
{
    if (EXPECTED(status >= EYEWALL_OK)) {
        return true;
    }
    php_eyewall_throw(volume, status);
    return false;
}

/* options.c */
/* Reads ini settings and options; false: an exception was thrown. Ended by php_eyewall_settings_end in any case. */
bool php_eyewall_settings_begin(php_eyewall_settings *settings, HashTable *options);
void php_eyewall_settings_end(php_eyewall_settings *settings);

/* volumes.c */
void php_eyewall_volumes_begin(HashTable *volumes);
/* The volume at a path, opened if it isn't open yet; it counts a reference. NULL: an exception was thrown. */
php_eyewall_volume *php_eyewall_volume_of(zend_string *path, const php_eyewall_settings *settings);
void php_eyewall_volume_release(php_eyewall_volume *volume);

/* callbacks.c */
/* Ends the rights of callbacks that are never gone on with. */
void php_eyewall_end_rights(void);

/* cache.c, claim.c, keys.c */
void php_eyewall_register_cache(const zend_function_entry *methods);
void php_eyewall_register_claim(const zend_function_entry *methods);
void php_eyewall_register_keys(const zend_function_entry *methods);

#endif
