-- `luarocks make` in this folder installs it; libeyewall comes from `make install` of the repository.
rockspec_format = "3.0"
package = "lua-resty-eyewall"
version = "0.1.0-1"
source = {
    url = "git+file://.",
    dir = "bindings/lua",
}
description = {
    summary = "One memory-mapped cache for all processes of a machine",
    detailed = "The interface of ngx.shared.DICT over a volume that survives restarts and that all languages share; tags, "
        .. "purges, single flight, and a page cache for nginx. By LuaJIT's FFI over libeyewall; no C to compile.",
    license = "Apache-2.0",
    labels = { "cache", "openresty", "nginx" },
}
dependencies = {
    "lua ~> 5.1", -- LuaJIT 2.1
}
build = {
    type = "builtin",
    modules = {
        ["resty.eyewall"] = "lib/resty/eyewall.lua",
        ["resty.eyewall.claim"] = "lib/resty/eyewall/claim.lua",
        ["resty.eyewall.dict"] = "lib/resty/eyewall/dict.lua",
        ["resty.eyewall.dict.lists"] = "lib/resty/eyewall/dict/lists.lua",
        ["resty.eyewall.dict.values"] = "lib/resty/eyewall/dict/values.lua",
        ["resty.eyewall.fill"] = "lib/resty/eyewall/fill.lua",
        ["resty.eyewall.hit"] = "lib/resty/eyewall/hit.lua",
        ["resty.eyewall.library"] = "lib/resty/eyewall/library.lua",
        ["resty.eyewall.options"] = "lib/resty/eyewall/options.lua",
        ["resty.eyewall.page_cache"] = "lib/resty/eyewall/page_cache.lua",
    },
}
