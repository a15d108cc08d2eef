/* The module that PHP loads. */
#include "eyewall_arginfo.h"
#include "php_eyewall.h"
#include <ext/standard/info.h>

ZEND_DECLARE_MODULE_GLOBALS(eyewall)

/* Defaults of the options of Eyewall\Cache; options.c reads them. */
PHP_INI_BEGIN()
    PHP_INI_ENTRY("eyewall.path", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.size", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.entry_bytes_max", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.entry_size_hint", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.mode", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.group", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.lock_deadline", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.tier", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.tier_folder", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.serializer", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.must_exist", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.read_only", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.survive_sigbus", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.put_aside_broken", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.verify_hits", "", PHP_INI_ALL, NULL)
    PHP_INI_ENTRY("eyewall.fleet", "", PHP_INI_ALL, NULL)
PHP_INI_END()

static PHP_GINIT_FUNCTION(eyewall)
{
#if defined(ZTS) && defined(COMPILE_DL_EYEWALL)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    memset(eyewall_globals, 0, sizeof *eyewall_globals);
    php_eyewall_volumes_begin(&eyewall_globals->volumes);
}

static PHP_GSHUTDOWN_FUNCTION(eyewall)
{
    zend_hash_destroy(&eyewall_globals->volumes);
}

static PHP_MINIT_FUNCTION(eyewall)
{
    REGISTER_INI_ENTRIES();
    php_eyewall_register_exception();
    php_eyewall_register_cache(cache_methods);
    php_eyewall_register_claim(claim_methods);
    php_eyewall_register_keys(keys_methods);
    return SUCCESS;
}

static PHP_MSHUTDOWN_FUNCTION(eyewall)
{
    UNREGISTER_INI_ENTRIES();
    return SUCCESS;
}

static PHP_RINIT_FUNCTION(eyewall)
{
#if defined(ZTS) && defined(COMPILE_DL_EYEWALL)
    ZEND_TSRMLS_CACHE_UPDATE();
#endif
    return SUCCESS;
}

static PHP_RSHUTDOWN_FUNCTION(eyewall)
{
    eyewall_hit_release(&EYEWALL_G(held));
    php_eyewall_end_rights();
    return SUCCESS;
}

static PHP_MINFO_FUNCTION(eyewall)
{
    php_info_print_table_start();
    php_info_print_table_row(2, "Eyewall", "enabled");
    php_info_print_table_row(2, "Version of the extension", PHP_EYEWALL_VERSION);
    php_info_print_table_row(2, "Version of libeyewall", eyewall_version());
    php_info_print_table_end();
    DISPLAY_INI_ENTRIES();
}

static const zend_module_dep dependencies[] = {
    ZEND_MOD_REQUIRED("spl")
    ZEND_MOD_OPTIONAL("igbinary")
    ZEND_MOD_END
};

zend_module_entry eyewall_module_entry = {
    STANDARD_MODULE_HEADER_EX,
    NULL,
    dependencies,
    "eyewall",
    NULL,
    PHP_MINIT(eyewall),
    PHP_MSHUTDOWN(eyewall),
    PHP_RINIT(eyewall),
    PHP_RSHUTDOWN(eyewall),
    PHP_MINFO(eyewall),
    PHP_EYEWALL_VERSION,
    PHP_MODULE_GLOBALS(eyewall),
    PHP_GINIT(eyewall),
    PHP_GSHUTDOWN(eyewall),
    NULL,
    STANDARD_MODULE_PROPERTIES_EX
};

#ifdef COMPILE_DL_EYEWALL
#ifdef ZTS
ZEND_TSRMLS_CACHE_DEFINE()
#endif
ZEND_GET_MODULE(eyewall)
#endif
