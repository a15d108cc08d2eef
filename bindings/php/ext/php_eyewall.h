/* Declarations for all files of the extension. */
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

/* The claim or flight that a callback holds while it runs, or neither. It lies on the stack of the calling method. */
typedef struct php_eyewall_right {
    eyewall_claim *claim;
    eyewall_flight *flight;
    struct php_eyewall_right *previous, *next;
} php_eyewall_right;

ZEND_BEGIN_MODULE_GLOBALS(eyewall)
    /* Open volumes, kept over requests. */
    HashTable volumes;
    /* The entry whose bytes are being copied. If memory runs out meanwhile, PHP leaves by a longjmp; the end of the
     * request releases this entry. */
    eyewall_hit held;
    /* Rights of callbacks that are running or belong to suspended fibers; the end of the request ends those that are
     * left. */
    php_eyewall_right *rights;
ZEND_END_MODULE_GLOBALS(eyewall)

ZEND_EXTERN_MODULE_GLOBALS(eyewall)
#define EYEWALL_G(name) ZEND_MODULE_GLOBALS_ACCESSOR(eyewall, name)
#if defined(ZTS) && defined(COMPILE_DL_EYEWALL)
ZEND_TSRMLS_CACHE_EXTERN()
#endif

/* The identity of a file, independent of its path. */
typedef struct {
    dev_t device;
    ino_t number;
} php_eyewall_file;

/* An open volume. It is closed when neither the table of volumes nor an object refers to it. */
typedef struct {
    eyewall_cache *cache;
    uint32_t references;
    char *path;
    /* The file that was opened. If another file, or none, is at the path, a new object opens that. Zeros: unknown. */
    php_eyewall_file file;
    /* Bytes were lost: this volume is unusable. */
    bool has_failed;
} php_eyewall_volume;

typedef enum { PHP_EYEWALL_AUTOMATIC, PHP_EYEWALL_PHP, PHP_EYEWALL_IGBINARY, PHP_EYEWALL_NONE } php_eyewall_serializer;

/* The options of `new Eyewall\Cache`. */
typedef struct {
    eyewall_open_options open;
    /* The string that open.tier_folder points to, or NULL. */
    zend_string *tier_folder;
    php_eyewall_serializer serializer;
} php_eyewall_settings;

typedef struct {
    /* NULL: the constructor failed, or was not called. */
    php_eyewall_volume *volume;
    php_eyewall_serializer serializer;
    zend_object std;
} php_eyewall_object;

extern zend_class_entry *php_eyewall_ce_Cache, *php_eyewall_ce_Claim, *php_eyewall_ce_Keys, *php_eyewall_ce_Exception;

/* exception.c */
void php_eyewall_register_exception(void);
/* Throws the library's last error. */
void php_eyewall_throw(php_eyewall_volume *volume, eyewall_status status);
/* Returns the status, and throws if it is an error. */
static inline bool php_eyewall_is_done(php_eyewall_volume *volume, eyewall_status status)
{
    if (EXPECTED(status >= EYEWALL_OK)) {
        return true;
    }
    php_eyewall_throw(volume, status);
    return false;
}

/* options.c */
/* Reads ini settings and options. False: an exception was thrown. Call php_eyewall_settings_end in any case. */
bool php_eyewall_settings_begin(php_eyewall_settings *settings, HashTable *options);
void php_eyewall_settings_end(php_eyewall_settings *settings);

/* volumes.c */
void php_eyewall_volumes_begin(HashTable *volumes);
/* Returns the volume at a path, opened if necessary, with one more reference. NULL: an exception was thrown. */
php_eyewall_volume *php_eyewall_volume_of(zend_string *path, const php_eyewall_settings *settings);
void php_eyewall_volume_release(php_eyewall_volume *volume);

/* callbacks.c */
/* Ends the rights of callbacks that never continue. */
void php_eyewall_end_rights(void);

/* cache.c, claim.c, keys.c */
void php_eyewall_register_cache(const zend_function_entry *methods);
void php_eyewall_register_claim(const zend_function_entry *methods);
void php_eyewall_register_keys(const zend_function_entry *methods);

#endif
