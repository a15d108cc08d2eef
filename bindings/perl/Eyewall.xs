/* Cache::Eyewall, on eyewall.h.
 *
 *   objects.h   Perl objects that hold objects of the library; errors
 *   words.h     arguments from Perl: bytes, times, options
 *   hits.h      results to Perl: entries
 *   flagged.h   values with flags, for Cache::Eyewall::FastMmap
 *   streams.h   writers and followers
 *
 * Perl code never runs inside a call of the library, only between two calls.
 */
#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"
#include <eyewall.h>

#include "objects.h"
#include "words.h"
#include "hits.h"
#include "flagged.h"
#include "streams.h"

/* get_many holds at most this many entries at a time. */
#define LOOKED_UP_AT_ONCE 64

/* The fields of eyewall_stats. */
#define STATISTIC(name) (void)hv_stores(numbers, #name, newSVuv(stats.name))

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall

PROTOTYPES: DISABLE

SV *
_open(SV *class, SV *path, UV size, UV entry_bytes_max, UV entry_size_hint, UV flags, UV mode, UV group, UV lock_deadline_ms, UV tier_bytes, SV *tier_folder)
  PREINIT:
    eyewall_open_options options;
    eyewall_cache *cache;
    volume *opened;
  CODE:
    Zero(&options, 1, eyewall_open_options);
    options.size = size;
    options.entry_bytes_max = entry_bytes_max;
    options.entry_size_hint = entry_size_hint;
    options.flags = flags;
    options.mode = mode;
    options.group = group;
    options.lock_deadline_ms = lock_deadline_ms;
    options.tier_bytes = tier_bytes;
    options.tier_folder = SvOK(tier_folder) ? SvPV_nolen(tier_folder) : NULL;
    if (SvOK(path))
        answered(aTHX_ eyewall_open(SvPV_nolen(path), &options, &cache));
    else
        answered(aTHX_ eyewall_open_anonymous(&options, &cache));
    Newx(opened, 1, volume);
    opened->cache = cache;
    opened->users = 1;
    RETVAL = SvREFCNT_inc(object_new(aTHX_ SvPV_nolen(class), &cache_kind, opened));
  OUTPUT:
    RETVAL

void
close(SV *self)
  PPCODE:
    MAGIC *magic = object_magic(self, &cache_kind);
    if (magic != NULL && magic->mg_ptr != NULL) {
        volume_leave((volume *)magic->mg_ptr);
        magic->mg_ptr = NULL;
    }

SV *
get(SV *self, SV *key)
  PREINIT:
    eyewall_hit hit;
  CODE:
    eyewall_bytes wanted = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    if (answered(aTHX_ eyewall_get(cache, wanted.data, wanted.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    RETVAL = value_taken(aTHX_ &hit);
  OUTPUT:
    RETVAL

SV *
peek(SV *self, SV *key)
  PREINIT:
    eyewall_hit hit;
  CODE:
    eyewall_bytes wanted = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    if (answered(aTHX_ eyewall_peek(cache, wanted.data, wanted.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    RETVAL = value_taken(aTHX_ &hit);
  OUTPUT:
    RETVAL

SV *
get_pinned(SV *self, SV *key)
  PREINIT:
    eyewall_hit hit;
  CODE:
    eyewall_bytes wanted = bytes_of(aTHX_ key, "the key");
    volume *of = volume_of(aTHX_ self);
    if (answered(aTHX_ eyewall_get(of->cache, wanted.data, wanted.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    RETVAL = value_pinned(aTHX_ of, &hit);
  OUTPUT:
    RETVAL

void
get_many(SV *self, ...)
  PREINIT:
    eyewall_bytes keys[LOOKED_UP_AT_ONCE];
    eyewall_hit hits[LOOKED_UP_AT_ONCE];
    I32 count = items - 1, first, some, i;
    eyewall_status status = EYEWALL_OK;
  PPCODE:
    /* A call may have more keys than can be held at once. Each value takes the place of a key that was read already. */
    for (first = 0; first < count; first += some) {
        some = count - first < LOOKED_UP_AT_ONCE ? count - first : LOOKED_UP_AT_ONCE;
        for (i = 0; i < some; i++)
            keys[i] = bytes_of(aTHX_ ST(first + i + 1), "a key");
        answered(aTHX_ eyewall_get_many(cache_of(aTHX_ self), keys, some, hits));
        for (i = 0; i < some; i++) {
            ST(first + i) = &PL_sv_undef;
            if (hits[i].value == NULL)
                continue;
            ST(first + i) = sv_2mortal(bytes_new(aTHX_ hits[i].value, hits[i].value_length));
            status = hit_read(&hits[i], status);
        }
        answered(aTHX_ status);
    }
    XSRETURN(count);

void
lookup(SV *self, SV *key)
  PREINIT:
    eyewall_hit hit;
  PPCODE:
    eyewall_bytes wanted = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    if (answered(aTHX_ eyewall_lookup(cache, wanted.data, wanted.length, &hit)) == EYEWALL_MISS)
        XSRETURN_UNDEF;
    PUSHs(entry_taken(aTHX_ &hit));

bool
contains(SV *self, SV *key)
  CODE:
    eyewall_bytes wanted = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    RETVAL = answered(aTHX_ eyewall_contains(cache, wanted.data, wanted.length)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

void
put(SV *self, SV *key, SV *value, ...)
  ALIAS:
    add = 1
  PREINIT:
    put_room room;
    uint64_t serial;
    eyewall_status status;
  PPCODE:
    const eyewall_put_options *options = put_options(aTHX_ &ST(3), items - 3, &room, NULL);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_bytes bytes = bytes_of(aTHX_ value, "the value");
    eyewall_cache *cache = cache_of(aTHX_ self);
    if (ix == 0)
        status = eyewall_put(cache, name.data, name.length, bytes.data, bytes.length, options, &serial);
    else
        status = eyewall_add(cache, name.data, name.length, bytes.data, bytes.length, options, &serial);
    if (answered(aTHX_ status) == EYEWALL_UNMET)
        XSRETURN_UNDEF;
    XSRETURN_UV(serial);

void
replace(SV *self, SV *key, SV *serial_known, SV *value, ...)
  PREINIT:
    UV expected;
    put_room room;
    uint64_t serial;
  PPCODE:
    const eyewall_put_options *options = put_options(aTHX_ &ST(4), items - 4, &room, NULL);
    expected = unsigned_of(aTHX_ serial_known, "the serial", UV_MAX);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_bytes bytes = bytes_of(aTHX_ value, "the value");
    eyewall_cache *cache = cache_of(aTHX_ self);
    if (answered(aTHX_ eyewall_replace_if(cache, name.data, name.length, expected, bytes.data, bytes.length, options,
                                          &serial)) == EYEWALL_UNMET)
        XSRETURN_UNDEF;
    XSRETURN_UV(serial);

UV
put_negative(SV *self, SV *key, SV *reason, ...)
  PREINIT:
    put_room room;
    uint64_t serial;
  CODE:
    const eyewall_put_options *options = put_options(aTHX_ &ST(3), items - 3, &room, NULL);
    uint16_t number = unsigned_of(aTHX_ reason, "the reason", UINT16_MAX);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    answered(aTHX_ eyewall_put_negative(cache, name.data, name.length, number, options, &serial));
    RETVAL = serial;
  OUTPUT:
    RETVAL

bool
remove(SV *self, SV *key)
  CODE:
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    RETVAL = answered(aTHX_ eyewall_remove(cache, name.data, name.length)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

bool
remove_if(SV *self, SV *key, SV *serial)
  CODE:
    UV expected = unsigned_of(aTHX_ serial, "the serial", UV_MAX);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    RETVAL = answered(aTHX_ eyewall_remove_if(cache, name.data, name.length, expected)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

UV
clear(SV *self)
  PREINIT:
    uint64_t removed;
  CODE:
    answered(aTHX_ eyewall_clear(cache_of(aTHX_ self), &removed));
    RETVAL = removed;
  OUTPUT:
    RETVAL

bool
touch(SV *self, SV *key, ...)
  PREINIT:
    eyewall_touch_options options;
    I32 i;
  CODE:
    if (items % 2 != 0)
        fail_argument(aTHX_ "options come in pairs, as in: ttl => 60");
    Zero(&options, 1, eyewall_touch_options);
    for (i = 2; i < items; i += 2)
        touch_option(aTHX_ SvPV_nolen(ST(i)), ST(i + 1), &options);
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    RETVAL = answered(aTHX_ eyewall_touch(cache, name.data, name.length, &options)) == EYEWALL_OK;
  OUTPUT:
    RETVAL

IV
increment(SV *self, SV *key, SV *by = NULL, ...)
  PREINIT:
    put_room room;
    own_words words;
    eyewall_counter_options options;
    int64_t sum;
  CODE:
    IV summand = by == NULL ? 1 : integer_of(aTHX_ by, "what is added");
    Zero(&words, 1, own_words);
    words.is_counter = TRUE;
    Zero(&options, 1, eyewall_counter_options);
    options.put = put_options(aTHX_ &ST(3), items - 3, &room, &words);
    options.start = words.start == NULL ? 0 : integer_of(aTHX_ words.start, "start");
    options.has_bounds = words.min != NULL || words.max != NULL;
    options.min = words.min == NULL ? INT64_MIN : integer_of(aTHX_ words.min, "min");
    options.max = words.max == NULL ? INT64_MAX : integer_of(aTHX_ words.max, "max");
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    eyewall_cache *cache = cache_of(aTHX_ self);
    answered(aTHX_ eyewall_increment(cache, name.data, name.length, summand, &options, &sum));
    RETVAL = sum;
  OUTPUT:
    RETVAL

void
purge_tag(SV *self, SV *tag, ...)
  PPCODE:
    int32_t kind = purge_kind(aTHX_ &ST(2), items - 2);
    eyewall_bytes name = bytes_of(aTHX_ tag, "the tag");
    answered(aTHX_ eyewall_purge_tag(cache_of(aTHX_ self), name.data, name.length, kind));

void
purge_prefix(SV *self, SV *prefix, ...)
  PPCODE:
    int32_t kind = purge_kind(aTHX_ &ST(2), items - 2);
    eyewall_bytes name = bytes_of(aTHX_ prefix, "the prefix");
    answered(aTHX_ eyewall_purge_prefix(cache_of(aTHX_ self), name.data, name.length, kind));

void
purge_all(SV *self, ...)
  PPCODE:
    int32_t kind = purge_kind(aTHX_ &ST(1), items - 1);
    answered(aTHX_ eyewall_purge_all(cache_of(aTHX_ self), kind));

SV *
now(SV *self)
  PREINIT:
    eyewall_epoch epoch;
  CODE:
    answered(aTHX_ eyewall_now(cache_of(aTHX_ self), &epoch));
    RETVAL = newSVpvn((const char *)&epoch, sizeof epoch);
  OUTPUT:
    RETVAL

UV
sweep(SV *self)
  PREINIT:
    uint64_t dropped;
  CODE:
    answered(aTHX_ eyewall_sweep(cache_of(aTHX_ self), &dropped));
    RETVAL = dropped;
  OUTPUT:
    RETVAL

void
sync(SV *self)
  PPCODE:
    answered(aTHX_ eyewall_sync(cache_of(aTHX_ self)));

UV
size(SV *self)
  CODE:
    RETVAL = eyewall_size(cache_of(aTHX_ self));
  OUTPUT:
    RETVAL

UV
entry_bytes_max(SV *self)
  CODE:
    RETVAL = eyewall_entry_bytes_max(cache_of(aTHX_ self));
  OUTPUT:
    RETVAL

void
stats(SV *self)
  PREINIT:
    eyewall_stats stats;
    HV *numbers;
  PPCODE:
    answered(aTHX_ eyewall_stats_read(cache_of(aTHX_ self), &stats, sizeof stats));
    numbers = newHV();
    PUSHs(sv_2mortal(newRV_noinc((SV *)numbers)));
    STATISTIC(size_bytes);
    STATISTIC(data_bytes);
    STATISTIC(overhead_bytes);
    STATISTIC(stripes);
    STATISTIC(entry_bytes_max);
    STATISTIC(entries);
    STATISTIC(live_bytes);
    STATISTIC(free_bytes);
    STATISTIC(filler_bytes);
    STATISTIC(dead_bytes);
    STATISTIC(untiled_bytes);
    STATISTIC(index_slots);
    STATISTIC(index_live);
    STATISTIC(index_ghosts);
    STATISTIC(hits);
    STATISTIC(misses);
    STATISTIC(copies);
    STATISTIC(puts);
    STATISTIC(removes);
    STATISTIC(evictions_cold);
    STATISTIC(evictions_expired);
    STATISTIC(evictions_index);
    STATISTIC(evictions_damaged);
    STATISTIC(evictions_purged);
    STATISTIC(promotions);
    STATISTIC(reinsertions);
    STATISTIC(moved);
    STATISTIC(bytes_written);
    STATISTIC(bytes_copied);
    STATISTIC(pins);
    STATISTIC(processes);
    STATISTIC(threads);
    STATISTIC(repairs);
    STATISTIC(resets);
    STATISTIC(pinned_refusals);
    STATISTIC(busy);
    STATISTIC(eviction_age_ms);
    STATISTIC(purges);
    STATISTIC(purge_overflows);
    STATISTIC(attachments);
    STATISTIC(unclean_drops);
    STATISTIC(tier_hits);
    STATISTIC(tier_size_bytes);
    STATISTIC(index_slots_wanted);
    STATISTIC(index_steps);

const char *
library_version(...)
  CODE:
    PERL_UNUSED_VAR(items);
    RETVAL = eyewall_version();
  OUTPUT:
    RETVAL

void
claim(SV *self, SV *key)
  PREINIT:
    eyewall_claim *claim;
    eyewall_hit hit;
    eyewall_status status;
    held_claim *held;
    SV *object;
  PPCODE:
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    volume *of = volume_of(aTHX_ self);
    status = answered(aTHX_ eyewall_claim_begin(of->cache, name.data, name.length, &claim, &hit));
    held = claim_new(aTHX_ of, claim, &object);
    if (status == EYEWALL_OK)
        held->value = value_taken(aTHX_ &hit);
    PUSHs(object);

void
fill_begin(SV *self, SV *key, SV *deadline = NULL, bool use_stale = FALSE)
  PREINIT:
    eyewall_hit hit;
    eyewall_flight *flight;
    uint16_t reason;
    uint64_t patience;
  PPCODE:
    patience = deadline == NULL ? 10000 : duration_of(aTHX_ deadline, "the deadline");
    eyewall_bytes name = bytes_of(aTHX_ key, "the key");
    volume *of = volume_of(aTHX_ self);
    EXTEND(SP, 2);
    switch (answered(aTHX_ eyewall_fill_begin(of->cache, name.data, name.length, patience, use_stale, &hit, &reason, &flight))) {
    case EYEWALL_FILL:
        mPUSHs(newSVpvs("ours"));
        PUSHs(flight_new(aTHX_ of, flight));
        break;
    case EYEWALL_NEGATIVE:
        mPUSHs(newSVpvs("negative"));
        mPUSHu(reason);
        break;
    case EYEWALL_STALE:
        mPUSHs(newSVpvs("stale"));
        mPUSHs(value_taken(aTHX_ &hit));
        break;
    default:
        mPUSHs(newSVpvs("fresh"));
        mPUSHs(value_taken(aTHX_ &hit));
    }

void
walk(SV *self, ...)
  PREINIT:
    SV *all;
    bool is_all;
    walk *begun;
    eyewall_iter *iter;
  PPCODE:
    all = only_option(aTHX_ &ST(1), items - 1, "all");
    is_all = all != NULL && SvTRUE(all);
    volume *of = volume_of(aTHX_ self);
    answered(aTHX_ eyewall_iter_begin(of->cache, is_all, &iter));
    Newx(begun, 1, walk);
    begun->of = volume_keep(of);
    begun->iter = iter;
    PUSHs(object_new(aTHX_ "Cache::Eyewall::Walk", &walk_kind, begun));

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::Walk

void
next(SV *self)
  PREINIT:
    eyewall_hit hit;
  PPCODE:
    MAGIC *magic = object_magic(self, &walk_kind);
    if (magic == NULL)
        fail_argument(aTHX_ "this isn't a Cache::Eyewall::Walk of this thread");
    if (!walk_next(aTHX_ (walk *)magic->mg_ptr, &hit))
        XSRETURN_UNDEF;
    PUSHs(entry_taken(aTHX_ &hit));

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::Claim

SV *
value(SV *self)
  CODE:
    held_claim *this = claim_of(aTHX_ self);
    RETVAL = this->value == NULL ? newSV(0) : newSVsv(this->value);
  OUTPUT:
    RETVAL

void
put(SV *self, SV *value, ...)
  PREINIT:
    put_room room;
    uint64_t serial;
  PPCODE:
    const eyewall_put_options *options = put_options(aTHX_ &ST(2), items - 2, &room, NULL);
    eyewall_bytes bytes = bytes_of(aTHX_ value, "the value");
    eyewall_claim *claim = claim_taken(aTHX_ claim_of(aTHX_ self));
    if (answered(aTHX_ eyewall_claim_put(claim, bytes.data, bytes.length, options, &serial)) == EYEWALL_SUPERSEDED)
        XSRETURN_UNDEF;
    XSRETURN_UV(serial);

bool
remove(SV *self)
  CODE:
    RETVAL = answered(aTHX_ eyewall_claim_remove(claim_taken(aTHX_ claim_of(aTHX_ self)))) == EYEWALL_OK;
  OUTPUT:
    RETVAL

void
end(SV *self)
  PPCODE:
    held_claim *this = claim_of(aTHX_ self);
    eyewall_claim_end(this->claim);
    this->claim = NULL;

MODULE = Cache::Eyewall    PACKAGE = Cache::Eyewall::Flight

void
store(SV *self, SV *value, ...)
  PREINIT:
    put_room room;
    uint64_t serial;
  PPCODE:
    const eyewall_put_options *options = put_options(aTHX_ &ST(2), items - 2, &room, NULL);
    eyewall_bytes bytes = bytes_of(aTHX_ value, "the value");
    eyewall_flight *flight = flight_taken(aTHX_ flight_of(aTHX_ self));
    if (answered(aTHX_ eyewall_flight_store(flight, bytes.data, bytes.length, options, &serial)) == EYEWALL_SUPERSEDED)
        XSRETURN_UNDEF;
    XSRETURN_UV(serial);

void
remember(SV *self, SV *reason, SV *ttl = &PL_sv_undef)
  PPCODE:
    uint16_t number = unsigned_of(aTHX_ reason, "the reason", UINT16_MAX);
    uint64_t ttl_ms = milliseconds_of(aTHX_ ttl, "ttl");
    answered(aTHX_ eyewall_flight_remember(flight_taken(aTHX_ flight_of(aTHX_ self)), number, ttl_ms));

void
end(SV *self)
  PPCODE:
    held_flight *this = flight_of(aTHX_ self);
    eyewall_flight_end(this->flight);
    this->flight = NULL;

INCLUDE: Streams.xsh

INCLUDE: FastMmap.xsh
