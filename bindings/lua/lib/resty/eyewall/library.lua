-- libeyewall by LuaJIT's FFI: its declarations, its statuses, and objects that are ended once.
--
-- The declarations are those of eyewall.h, word for word; a test compares them. Only eyewall_open's flags and the
-- statuses stand here as Lua tables.

local ffi = require "ffi"

local _M = { _VERSION = "0.1.0" }

ffi.cdef [[
typedef int32_t eyewall_status;
typedef struct eyewall_cache eyewall_cache;
typedef struct eyewall_claim eyewall_claim;
typedef struct eyewall_flight eyewall_flight;
typedef struct eyewall_iter eyewall_iter;
typedef struct eyewall_writer eyewall_writer;

typedef struct eyewall_hit {
  const void *value;
  size_t value_length;
  uint64_t held[8];
} eyewall_hit;

typedef struct eyewall_bytes {
  const void *data;
  size_t length;
} eyewall_bytes;

typedef struct eyewall_epoch {
  uint64_t words[2];
} eyewall_epoch;

typedef struct eyewall_put_options {
  uint64_t ttl_ms;
  uint64_t stale_ms;
  const void *metadata;
  size_t metadata_length;
  const struct eyewall_bytes *tags;
  size_t tags_count;
  const struct eyewall_epoch *begun_in;
  uint64_t reserved[4];
} eyewall_put_options;

typedef struct eyewall_copy {
  void *value;
  size_t value_capacity;
  void *metadata;
  size_t metadata_capacity;
  size_t value_length;
  size_t metadata_length;
  uint64_t serial;
  uint64_t reserved[4];
} eyewall_copy;

typedef struct eyewall_info {
  uint64_t serial;
  uint64_t created_ms;
  uint64_t ttl_left_ms;
  uint64_t usable_left_ms;
  uint16_t reason;
  bool is_negative;
  bool is_stale;
  bool is_copy;
  bool is_intact;
  uint64_t reserved[4];
} eyewall_info;

typedef struct eyewall_open_options {
  uint64_t size;
  uint64_t entry_bytes_max;
  uint32_t entry_size_hint;
  uint32_t flags;
  uint32_t mode;
  uint32_t group;
  uint64_t lock_deadline_ms;
  uint64_t tier_bytes;
  const char *tier_folder;
  uint64_t reserved[4];
} eyewall_open_options;

typedef struct eyewall_touch_options {
  bool set_times;
  bool set_metadata;
  bool if_serial;
  uint64_t ttl_ms;
  uint64_t stale_ms;
  const void *metadata;
  size_t metadata_length;
  uint64_t serial;
  const struct eyewall_epoch *begun_in;
  uint64_t reserved[4];
} eyewall_touch_options;

typedef struct eyewall_counter_options {
  int64_t start;
  bool has_bounds;
  int64_t min;
  int64_t max;
  const struct eyewall_put_options *put;
  uint64_t reserved[4];
} eyewall_counter_options;

typedef struct eyewall_stats {
  uint64_t size_bytes;
  uint64_t data_bytes;
  uint64_t overhead_bytes;
  uint64_t stripes;
  uint64_t entry_bytes_max;
  uint64_t entries;
  uint64_t live_bytes;
  uint64_t free_bytes;
  uint64_t filler_bytes;
  uint64_t dead_bytes;
  uint64_t untiled_bytes;
  uint64_t index_slots;
  uint64_t index_live;
  uint64_t index_ghosts;
  uint64_t hits;
  uint64_t misses;
  uint64_t copies;
  uint64_t puts;
  uint64_t removes;
  uint64_t evictions_cold;
  uint64_t evictions_expired;
  uint64_t evictions_index;
  uint64_t evictions_damaged;
  uint64_t evictions_purged;
  uint64_t promotions;
  uint64_t reinsertions;
  uint64_t moved;
  uint64_t bytes_written;
  uint64_t bytes_copied;
  uint64_t pins;
  uint64_t processes;
  uint64_t threads;
  uint64_t repairs;
  uint64_t resets;
  uint64_t pinned_refusals;
  uint64_t busy;
  uint64_t eviction_age_ms;
  uint64_t purges;
  uint64_t purge_overflows;
  uint64_t attachments;
  uint64_t unclean_drops;
  uint64_t tier_hits;
  uint64_t tier_size_bytes;
  uint64_t index_slots_wanted;
  uint64_t index_steps;
} eyewall_stats;

eyewall_status eyewall_open(const char *path, const struct eyewall_open_options *options, struct eyewall_cache **cache);
void eyewall_close(struct eyewall_cache *cache);
const char *eyewall_error_message(void);
const char *eyewall_version(void);

eyewall_status eyewall_get(const struct eyewall_cache *cache, const void *key, size_t key_length, struct eyewall_hit *hit);
eyewall_status eyewall_peek(const struct eyewall_cache *cache, const void *key, size_t key_length, struct eyewall_hit *hit);
eyewall_status eyewall_lookup(const struct eyewall_cache *cache, const void *key, size_t key_length, struct eyewall_hit *hit);
eyewall_status eyewall_contains(const struct eyewall_cache *cache, const void *key, size_t key_length);
eyewall_status eyewall_get_entry(const struct eyewall_cache *cache, const void *key, size_t key_length, struct eyewall_copy *copy);
void eyewall_hit_release(struct eyewall_hit *hit);
struct eyewall_bytes eyewall_hit_key(const struct eyewall_hit *hit);
struct eyewall_bytes eyewall_hit_metadata(const struct eyewall_hit *hit);
struct eyewall_bytes eyewall_hit_tag(const struct eyewall_hit *hit, size_t number);
eyewall_status eyewall_hit_info(const struct eyewall_hit *hit, struct eyewall_info *info);
eyewall_status eyewall_hit_check(const struct eyewall_hit *hit);

eyewall_status eyewall_put(const struct eyewall_cache *cache, const void *key, size_t key_length, const void *value, size_t value_length, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_put_negative(const struct eyewall_cache *cache, const void *key, size_t key_length, uint16_t reason, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_add(const struct eyewall_cache *cache, const void *key, size_t key_length, const void *value, size_t value_length, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_replace_if(const struct eyewall_cache *cache, const void *key, size_t key_length, uint64_t expected, const void *value, size_t value_length, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_remove(const struct eyewall_cache *cache, const void *key, size_t key_length);
eyewall_status eyewall_remove_if(const struct eyewall_cache *cache, const void *key, size_t key_length, uint64_t serial);
eyewall_status eyewall_clear(const struct eyewall_cache *cache, uint64_t *removed);
eyewall_status eyewall_touch(const struct eyewall_cache *cache, const void *key, size_t key_length, const struct eyewall_touch_options *options);
eyewall_status eyewall_increment(const struct eyewall_cache *cache, const void *key, size_t key_length, int64_t by, const struct eyewall_counter_options *options, int64_t *sum);

eyewall_status eyewall_claim_begin(const struct eyewall_cache *cache, const void *key, size_t key_length, struct eyewall_claim **claim, struct eyewall_hit *hit);
eyewall_status eyewall_claim_put(struct eyewall_claim *claim, const void *value, size_t value_length, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_claim_remove(struct eyewall_claim *claim);
void eyewall_claim_end(struct eyewall_claim *claim);

eyewall_status eyewall_fill_begin(const struct eyewall_cache *cache, const void *key, size_t key_length, uint64_t deadline_ms, bool use_stale, struct eyewall_hit *hit, uint16_t *reason, struct eyewall_flight **flight);
eyewall_status eyewall_flight_store(struct eyewall_flight *flight, const void *value, size_t value_length, const struct eyewall_put_options *options, uint64_t *serial);
eyewall_status eyewall_flight_remember(struct eyewall_flight *flight, uint16_t reason, uint64_t ttl_ms);
void eyewall_flight_end(struct eyewall_flight *flight);

eyewall_status eyewall_writer_begin(const struct eyewall_cache *cache, const void *key, size_t key_length, uint64_t value_length, const struct eyewall_put_options *options, struct eyewall_writer **writer);
eyewall_status eyewall_writer_write(struct eyewall_writer *writer, const void *data, size_t length);
eyewall_status eyewall_writer_commit(struct eyewall_writer *writer, uint64_t *serial);
void eyewall_writer_abort(struct eyewall_writer *writer);

eyewall_status eyewall_purge_tag(const struct eyewall_cache *cache, const void *tag, size_t tag_length, int32_t purge);
eyewall_status eyewall_purge_prefix(const struct eyewall_cache *cache, const void *prefix, size_t prefix_length, int32_t purge);
eyewall_status eyewall_purge_all(const struct eyewall_cache *cache, int32_t purge);
eyewall_status eyewall_now(const struct eyewall_cache *cache, struct eyewall_epoch *epoch);

eyewall_status eyewall_iter_begin(const struct eyewall_cache *cache, bool all, struct eyewall_iter **iter);
eyewall_status eyewall_iter_next(struct eyewall_iter *iter, struct eyewall_hit *hit);
void eyewall_iter_end(struct eyewall_iter *iter);

eyewall_status eyewall_stats_read(const struct eyewall_cache *cache, struct eyewall_stats *stats, size_t stats_size);
eyewall_status eyewall_written(const struct eyewall_cache *cache, uint64_t *puts, uint64_t *bytes);
uint64_t eyewall_size(const struct eyewall_cache *cache);
uint64_t eyewall_entry_bytes_max(const struct eyewall_cache *cache);
eyewall_status eyewall_sweep(const struct eyewall_cache *cache, uint64_t *dropped);
eyewall_status eyewall_sync(const struct eyewall_cache *cache);
]]

-- The answers of eyewall_status; errors are below 0.
_M.OK = 0
_M.MISS = 1
_M.STALE = 2
_M.NEGATIVE = 3
_M.UNMET = 4
_M.SUPERSEDED = 5
_M.FILL = 6
_M.END = 7
_M.TOO_SMALL = 8

_M.NOT_A_COUNTER = -7
_M.ENTRY_TOO_LARGE = -8
_M.PINNED = -9
_M.BUSY = -10

-- The names of the errors, from -1 downwards.
local error_names = {
    "argument", "key_empty", "key_too_long", "metadata_too_long", "too_many_tags", "tag_length", "not_a_counter",
    "entry_too_large", "pinned", "busy", "interrupted", "read_only", "not_found", "foreign", "version", "corrupt",
    "options_differ", "out_of_range", "no_tier", "no_space", "too_many_processes", "failed", "io", "internal",
}
_M.error_names = error_names

-- The flags of eyewall_open by the names that they have in Lua.
_M.flags = {
    must_exist = 1,
    read_only = 2,
    secure_erase = 4,
    survive_sigbus = 8,
    clear_unclean = 16,
    put_aside_broken = 64,
    verify_hits = 128,
    fleet = 256,
}

-- The name with the number of the interface comes first: only packages for developers have libeyewall.so.
local function load()
    local reasons = {}
    for _, name in ipairs { "libeyewall.so.0", "eyewall" } do
        local is_loaded, library = pcall(ffi.load, name)
        if is_loaded then
            return library
        end
        reasons[#reasons + 1] = library
    end
    error("resty.eyewall: can't load libeyewall (" .. table.concat(reasons, "; ") .. "). Install it (`make install` and "
        .. "`ldconfig`), or name its folder in LD_LIBRARY_PATH", 0)
end

local C = load()
_M.C = C

-- What a call returns after an error: nil, the message, and the error's name.
function _M.failure(status)
    return nil, ffi.string(C.eyewall_error_message()), error_names[-status] or "unknown"
end

-- An object of the library that is ended once: by `finish`, or by the collector. It keeps its cache open until then; the
-- collector ends objects in any order when the Lua state closes.
local Owned = {}
Owned.__index = Owned

-- The pointer, for calls that leave the object alive. nil if it has ended.
function Owned:pointer()
    return self.object
end

-- Ends the object by `call(object, ...)`, and returns the call's result; nil if the object has ended already. The call
-- still needs the cache, so the object leaves the cache after it. An argument that C doesn't take raises an error
-- before the call: the object lives on.
function Owned:finish(call, ...)
    local object = self.object
    if object == nil then
        return nil
    end
    local result = call(object, ...)
    self.object = nil
    ffi.gc(object, nil)
    self.anchor:leave()
    return result
end

-- Counts the objects of a cache and the cache itself, and closes the cache after the last of them.
local Anchor = {}
Anchor.__index = Anchor

function Anchor:leave()
    self.objects = self.objects - 1
    if self.objects == 0 then
        C.eyewall_close(self.pointer)
        self.pointer = nil
    end
end

-- `ends` is the C function that ends an object which nobody finished. The finalizer must not reach the object: the
-- collector would keep both forever.
function Anchor:own(object, ends)
    self.objects = self.objects + 1
    return setmetatable({
        anchor = self,
        object = ffi.gc(object, function(left)
            ends(left)
            self:leave()
        end),
    }, Owned)
end

-- The anchor of an open cache, and the part that the Lua object of the cache owns.
function _M.anchor(pointer)
    local anchor = setmetatable({ pointer = pointer, objects = 0 }, Anchor)
    return anchor, anchor:own(ffi.new("char[1]"), function() end)
end

return _M
