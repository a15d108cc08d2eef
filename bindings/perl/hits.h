/* Turns entries into Perl values. */

/* Releases a hit after all reads. Returns the error of lost bytes, or else the status of the reads. */
static inline eyewall_status hit_read(eyewall_hit *hit, eyewall_status so_far) {
    eyewall_status intact = eyewall_hit_check(hit);
    eyewall_hit_release(hit);
    return intact < EYEWALL_OK ? intact : so_far;
}

/* A string of bytes, tainted since it comes from outside. */
static inline SV *bytes_new(pTHX_ const void *data, size_t length) {
    SV *bytes = newSVpvn(data == NULL ? "" : (const char *)data, length);
    SvTAINTED_on(bytes);
    return bytes;
}

/* A copy of the value; the hit is released. */
static inline SV *value_taken(pTHX_ eyewall_hit *hit) {
    SV *value = bytes_new(aTHX_ hit->value, hit->value_length);
    eyewall_status status = hit_read(hit, EYEWALL_OK);
    if (UNLIKELY(status < EYEWALL_OK)) {
        SvREFCNT_dec(value);
        fail_status(aTHX_ status);
    }
    return value;
}

/* A reference to a read-only scalar whose bytes lie in the volume. The scalar owns the hit. */
static SV *value_pinned(pTHX_ volume *of, const eyewall_hit *hit) {
    SV *value = newSV_type(SVt_PVMG);
    pin *this;
    Newx(this, 1, pin);
    this->of = volume_keep(of);
    this->hit = *hit;
    this->users = 1;
    sv_magicext(value, NULL, PERL_MAGIC_ext, &pin_kind, (const char *)this, 0)->mg_flags |= MGf_DUP;
    SvPV_set(value, (char *)hit->value);
    SvCUR_set(value, hit->value_length);
    /* Length 0: Perl neither frees nor reuses the bytes. */
    SvLEN_set(value, 0);
    SvPOK_only(value);
    SvTAINTED_on(value);
    SvREADONLY_on(value);
    return newRV_noinc(value);
}

static SV *seconds_new(pTHX_ uint64_t milliseconds) {
    return milliseconds == EYEWALL_FOREVER ? newSV(0) : newSVnv(milliseconds / 1000.0);
}

/* All properties of an entry, as a mortal reference to a hash; releases the hit. */
static SV *entry_taken(pTHX_ eyewall_hit *hit) {
    HV *entry = newHV();
    SV *reference = sv_2mortal(newRV_noinc((SV *)entry));
    AV *tags = newAV();
    eyewall_info info;
    eyewall_bytes part;
    size_t i;
    eyewall_status status = eyewall_hit_info(hit, &info);
    (void)hv_stores(entry, "tags", newRV_noinc((SV *)tags));
    part = eyewall_hit_key(hit);
    (void)hv_stores(entry, "key", bytes_new(aTHX_ part.data, part.length));
    part = eyewall_hit_metadata(hit);
    (void)hv_stores(entry, "metadata", bytes_new(aTHX_ part.data, part.length));
    for (i = 0;; i++) {
        part = eyewall_hit_tag(hit, i);
        if (part.data == NULL)
            break;
        av_push(tags, bytes_new(aTHX_ part.data, part.length));
    }
    (void)hv_stores(entry, "value", bytes_new(aTHX_ hit->value, hit->value_length));
    answered(aTHX_ hit_read(hit, status));
    (void)hv_stores(entry, "state", newSVpv(info.is_negative ? "negative" : info.is_stale ? "stale" : "fresh", 0));
    (void)hv_stores(entry, "serial", newSVuv(info.serial));
    (void)hv_stores(entry, "created", seconds_new(aTHX_ info.created_ms));
    (void)hv_stores(entry, "ttl_left", seconds_new(aTHX_ info.ttl_left_ms));
    (void)hv_stores(entry, "usable_left", seconds_new(aTHX_ info.usable_left_ms));
    (void)hv_stores(entry, "reason", info.is_negative ? newSVuv(info.reason) : newSV(0));
    return reference;
}

/* Fills `hit` with the next entry, which the caller releases; false at the end. */
static bool walk_next(pTHX_ walk *this, eyewall_hit *hit) {
    return answered(aTHX_ eyewall_iter_next(this->iter, hit)) != EYEWALL_END;
}
