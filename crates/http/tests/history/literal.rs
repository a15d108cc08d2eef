//! RFC 9111 word by word, slowly, and without the crate: what a shared cache must not store or reuse.
//!
//! Messages are lists of lower-case names and texts; times are whole seconds since 1970.

/// Fields in the order in which they came.
pub(crate) type Fields = Vec<(&'static str, String)>;

pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) fields: &'a Fields,
}

pub(crate) struct Stored<'a> {
    /// The request that it answered.
    pub(crate) asked: &'a Fields,
    pub(crate) status: u16,
    pub(crate) fields: &'a Fields,
    pub(crate) requested: i64,
    pub(crate) received: i64,
}

/// Section 3: the bullet that forbids to store a response.
pub(crate) fn forbids_storing(asked: &Asked<'_>, status: u16, fields: &Fields) -> Option<&'static str> {
    let response = directives(fields);
    let understood = [200, 203, 204, 302, 404, 500, 503].contains(&status);
    if asked.method != "GET" {
        return Some("the method is not understood");
    }
    if status < 200 || status == 304 || status == 206 && text(fields, "content-range").is_none() {
        return Some("not a final response of its own");
    }
    if has(&response, "must-understand") {
        if !understood {
            return Some("must-understand");
        }
    } else if has(&response, "no-store") {
        return Some("no-store");
    }
    if has(&directives(asked.fields), "no-store") {
        return Some("no-store in the request");
    }
    if has_bare(&response, "private") {
        return Some("private");
    }
    let shared = has(&response, "must-revalidate") || has(&response, "public") || has(&response, "s-maxage");
    if text(asked.fields, "authorization").is_some() && !shared {
        return Some("authorization");
    }
    let says = ["public", "max-age", "s-maxage"].iter().any(|name| has(&response, name));
    let by_default = [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501].contains(&status);
    (!says && text(fields, "expires").is_none() && !by_default).then_some("nothing makes it cacheable")
}

/// Sections 5.2.2.4 and 5.2.2.7: whether a field of a stored response must not be sent without validation, or to others.
pub(crate) fn withholds(fields: &Fields, name: &str) -> bool {
    let response = directives(fields);
    let names = |directive: &str| {
        let named = |(found, argument): &(String, String)| {
            found == directive && argument.split(',').any(|one| one.trim() == name)
        };
        response.iter().any(named)
    };
    let is_validated = has_bare(&response, "no-cache");
    text(fields, name).is_some() && (names("private") || names("no-cache") && !is_validated)
}

/// Section 4: what forbids to answer a request with a stored response without asking the origin; or, if `has_failed`, after the
/// origin was asked and failed.
pub(crate) fn forbids_reuse(
    stored: &Stored<'_>,
    asked: &Asked<'_>,
    now: i64,
    has_failed: bool,
) -> Option<&'static str> {
    let response = directives(stored.fields);
    let request = directives(asked.fields);
    if !["GET", "HEAD"].contains(&asked.method) {
        return Some("the method is another");
    }
    if !matches(stored, asked) {
        return Some("the fields named by Vary differ");
    }
    let has_pragma = text(asked.fields, "cache-control").is_none() && text(asked.fields, "pragma").is_some();
    if has(&request, "no-cache") || has_pragma {
        return Some("no-cache in the request");
    }
    if has_bare(&response, "no-cache") {
        return Some("no-cache");
    }
    let age = current_age(stored, now);
    let lifetime = lifetime(stored);
    let too_old = time(&request, "max-age").is_some_and(|most| age > most);
    let too_short = time(&request, "min-fresh").is_some_and(|least| lifetime - age < least);
    if lifetime > age {
        let windowed = has_failed && window(&response, &request) > 0;
        return match () {
            () if windowed => None,
            () if too_old && !has(&response, "immutable") => Some("older than max-age of the request"),
            () if too_short => Some("not as fresh as min-fresh"),
            () => None,
        };
    }
    if ["must-revalidate", "proxy-revalidate", "s-maxage"].iter().any(|name| has(&response, name)) {
        return Some("stale, and the origin forbids it");
    }
    let staleness = age - lifetime;
    if has_failed && staleness <= window(&response, &request) {
        return None;
    }
    if too_old || too_short {
        return Some("stale, and the request wants it young");
    }
    if has(&request, "max-stale") {
        let within = time(&request, "max-stale").is_none_or(|most| staleness <= most);
        return (!within).then_some("stale for longer than max-stale");
    }
    let while_validating = time(&response, "stale-while-revalidate").unwrap_or(0);
    let allowed = staleness <= while_validating && !has(&request, "max-age");
    (!allowed).then_some("stale")
}

/// RFC 5861, section 4.
fn window(response: &[(String, String)], request: &[(String, String)]) -> i64 {
    time(response, "stale-if-error").unwrap_or(0).max(time(request, "stale-if-error").unwrap_or(0))
}

/// Section 4.1, without any of the normalisation that it allows: the texts have to be equal.
fn matches(stored: &Stored<'_>, asked: &Asked<'_>) -> bool {
    let Some(vary) = text(stored.fields, "vary") else { return true };
    vary.split(',')
        .map(|name| name.trim().to_lowercase())
        .all(|name| name != "*" && text(stored.asked, &name) == text(asked.fields, &name))
}

/// Section 4.2.3.
fn current_age(stored: &Stored<'_>, now: i64) -> i64 {
    let age_value = match text(stored.fields, "age").map(|age| age.split(',').next().unwrap().trim().to_owned()) {
        Some(age) if age.chars().all(|digit| digit.is_ascii_digit()) => age.parse().unwrap_or(0),
        _ => 0,
    };
    let date_value = text(stored.fields, "date").and_then(|date| seconds_of(&date)).unwrap_or(stored.received);
    let apparent_age = (stored.received - date_value).max(0);
    let response_delay = stored.received - stored.requested;
    let corrected_age_value = age_value + response_delay;
    apparent_age.max(corrected_age_value) + (now - stored.received)
}

/// Section 4.2.1 and 4.2.2.
fn lifetime(stored: &Stored<'_>) -> i64 {
    let response = directives(stored.fields);
    let date = text(stored.fields, "date").and_then(|date| seconds_of(&date)).unwrap_or(stored.received);
    for name in ["s-maxage", "max-age"] {
        if has(&response, name) {
            return time(&response, name).unwrap_or(0);
        }
    }
    if let Some(expires) = text(stored.fields, "expires") {
        return seconds_of(&expires).map_or(0, |expires| expires - date);
    }
    match text(stored.fields, "last-modified").and_then(|modified| seconds_of(&modified)) {
        Some(modified) => (date - modified) / 10,
        None => 0,
    }
}

/// All lines of a field as one.
fn text(fields: &Fields, name: &str) -> Option<String> {
    let lines: Vec<&str> = fields.iter().filter(|(found, _)| *found == name).map(|(_, text)| text.as_str()).collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

/// Names in lower case and arguments, without their quotation marks, of `Cache-Control`.
fn directives(fields: &Fields) -> Vec<(String, String)> {
    let (mut found, mut name, mut argument) = (Vec::new(), String::new(), String::new());
    let (mut quoted, mut in_argument) = (false, false);
    for letter in text(fields, "cache-control").unwrap_or_default().chars().chain([',']) {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => {
                found.push((name.trim().to_lowercase(), argument.clone()));
                (name, argument, in_argument) = (String::new(), String::new(), false);
            }
            '=' if !quoted => in_argument = true,
            _ if in_argument => argument.push(letter),
            _ => name.push(letter),
        }
    }
    found
}

fn has(directives: &[(String, String)], name: &str) -> bool {
    directives.iter().any(|(found, _)| found == name)
}

fn has_bare(directives: &[(String, String)], name: &str) -> bool {
    directives.iter().any(|(found, argument)| found == name && argument.is_empty())
}

/// The first of this name, if it is a number.
fn time(directives: &[(String, String)], name: &str) -> Option<i64> {
    let (_, argument) = directives.iter().find(|(found, _)| found == name)?;
    argument.parse().ok()
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of(date: &str) -> Option<i64> {
    let words: Vec<&str> = date.split(' ').collect();
    let [_, day, month, year, clock, "GMT"] = words[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|name| *name == month)?;
    let year: i64 = year.parse().ok()?;
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days: i64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += lengths[..month].iter().sum::<i64>() + day.parse::<i64>().ok()? - 1;
    let clock: Vec<i64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    Some(days * 86400 + hours * 3600 + minutes * 60 + seconds)
}
