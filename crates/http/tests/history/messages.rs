//! Random requests and responses, of words that matter to a cache.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::literal::Fields;

/// When histories begin, in seconds since 1970.
pub(crate) const START: i64 = 784_111_777;

const OF_RESPONSES: [&str; 22] = [
    "max-age=5",
    "max-age=60",
    "max-age=60",
    "max-age=0",
    "max-age=soon",
    "max-age=\"30\"",
    "s-maxage=20",
    "s-maxage=0",
    "no-store",
    "no-cache",
    "No-Cache=\"x-a\"",
    "private",
    "private=\"x-a\"",
    "PUBLIC",
    "must-revalidate",
    "proxy-revalidate",
    "must-understand",
    "immutable",
    "stale-while-revalidate=20",
    "stale-while-revalidate=9",
    "stale-if-error=40",
    "x=\"a, max-age=99\"",
];

const OF_REQUESTS: [&str; 11] = [
    "no-cache",
    "no-store",
    "max-age=0",
    "max-age=10",
    "min-fresh=10",
    "max-stale",
    "max-stale=10",
    "only-if-cached",
    "stale-if-error=30",
    "x-other",
    "max-age=100",
];

/// A request after a while, and the origin's answer to it.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Seconds since the step before.
    pub(crate) pause: i64,
    pub(crate) method: &'static str,
    pub(crate) asked: Fields,
    pub(crate) status: u16,
    /// With dates as seconds from the time of the answer, in [`DATES`].
    pub(crate) answer: Fields,
    /// Seconds that the origin takes.
    pub(crate) delay: i64,
}

/// The fields whose texts are numbers of seconds until they are made dates.
const DATES: [&str; 3] = ["date", "expires", "last-modified"];

impl Step {
    /// The fields of the answer, if it is made at `now`.
    pub(crate) fn answer_at(&self, now: i64) -> Fields {
        let dated = |(name, text): &(&'static str, String)| match text.parse() {
            // An `Expires` of 0 stays one: many origins send it, and it is no date.
            Ok(offset) if DATES.contains(name) && (*name, offset) != ("expires", 0) => (*name, date(now + offset)),
            _ => (*name, text.clone()),
        };
        self.answer.iter().map(dated).collect()
    }
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 2..12)
}

fn step() -> impl Strategy<Value = Step> {
    let pause = select(vec![0, 0, 1, 4, 5, 10, 20, 31, 60, 100]);
    let method = select(vec!["GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"]);
    let status = select(vec![200, 200, 200, 200, 203, 206, 302, 404, 503, 503, 599]);
    (pause, method, asked(), status, answer(), select(vec![0, 0, 0, 1, 3]))
        .prop_map(|(pause, method, asked, status, answer, delay)| Step { pause, method, asked, status, answer, delay })
}

fn asked() -> impl Strategy<Value = Fields> {
    let fields = (
        prop_oneof![3 => Just(None), 2 => list(&OF_REQUESTS, 0..=2).prop_map(Some)],
        sometimes("pragma", &["no-cache"], 9),
        sometimes("foo", &["1", "2"], 1),
        sometimes("accept-encoding", &["gzip", "br", "gzip, br"], 1),
        sometimes("authorization", &["Basic eA=="], 9),
    );
    fields.prop_map(|(control, pragma, foo, coding, user)| {
        let control = control.map(|list| ("cache-control", list));
        [control, pragma, foo, coding, user].into_iter().flatten().collect()
    })
}

fn answer() -> impl Strategy<Value = Fields> {
    let fields = (
        prop_oneof![1 => Just(None), 4 => list(&OF_RESPONSES, 1..=4).prop_map(Some)],
        sometimes("date", &["0", "-5", "10", "-30"], 1),
        sometimes("expires", &["0", "30", "-30", "90"], 2),
        sometimes("last-modified", &["-1000", "-100", "yesterday"], 1),
        sometimes("age", &["10", "soon", "3, 90", "-1"], 3),
        sometimes("etag", &["\"a\"", "W/\"b\""], 1),
        sometimes("vary", &["foo", "Foo, Accept-Encoding", "*"], 2),
        sometimes("x-a", &["1"], 1),
    );
    fields.prop_map(|(control, date, expires, modified, age, etag, vary, own)| {
        let control = control.map(|list| ("cache-control", list));
        [control, date, expires, modified, age, etag, vary, own].into_iter().flatten().collect()
    })
}

fn list(words: &[&'static str], counts: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = String> + use<> {
    subsequence(words.to_vec(), counts).prop_shuffle().prop_map(|words| words.join(", "))
}

/// A field with one of these texts. It is absent `absent` times as often as it has any one of them.
fn sometimes(
    name: &'static str,
    texts: &[&'static str],
    absent: u32,
) -> impl Strategy<Value = Option<(&'static str, String)>> + use<> {
    let present = select(texts.to_vec()).prop_map(move |text| Some((name, text.to_owned())));
    prop_oneof![absent => Just(None), 1 => present]
}

pub(crate) fn time(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds as u64)
}

fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(time(seconds))
}
