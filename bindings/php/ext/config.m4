dnl ./configure finds libeyewall by pkg-config, or below a prefix: --with-eyewall=/opt/eyewall

PHP_ARG_WITH([eyewall],
  [for Eyewall],
  [AS_HELP_STRING([[--with-eyewall[=PREFIX]]],
    [The cache that all processes of a machine share; PREFIX is where libeyewall was installed, pkg-config is asked without])])

if test "$PHP_EYEWALL" != "no"; then
  if test "$PHP_EYEWALL" != "yes"; then
    if test ! -f "$PHP_EYEWALL/include/eyewall.h"; then
      AC_MSG_ERROR([there is no $PHP_EYEWALL/include/eyewall.h: give the prefix that libeyewall was installed with])
    fi
    PHP_ADD_INCLUDE([$PHP_EYEWALL/include])
    PHP_ADD_LIBRARY_WITH_PATH([eyewall], [$PHP_EYEWALL/lib], [EYEWALL_SHARED_LIBADD])
  else
    AC_PATH_PROG([PKG_CONFIG], [pkg-config], [no])
    if test "$PKG_CONFIG" = "no" || ! $PKG_CONFIG --exists eyewall; then
      AC_MSG_ERROR([pkg-config doesn't know eyewall: install libeyewall, set PKG_CONFIG_PATH, or say --with-eyewall=PREFIX])
    fi
    PHP_EVAL_INCLINE([`$PKG_CONFIG --cflags eyewall`])
    PHP_EVAL_LIBLINE([`$PKG_CONFIG --libs eyewall`], [EYEWALL_SHARED_LIBADD])
  fi
  PHP_SUBST([EYEWALL_SHARED_LIBADD])
  PHP_NEW_EXTENSION([eyewall],
    [eyewall.c exception.c volumes.c options.c value.c put.c cache.c lookups.c changes.c multiple.c callbacks.c claim.c purges.c keys.c stats.c],
    [$ext_shared], , [-DZEND_ENABLE_STATIC_TSRMLS_CACHE=1])
fi
