//! Random requests, responses and times: compares what the cache stores and sends with a literal reading of RFC
//! 9111.

#![cfg(test)]

mod literal;
mod messages;

use std::cell::RefCell;
use std::collections::BTreeMap;

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::vary::Vary;
use eyewall_http::message::{Exchange, Request, Response};
use eyewall_http::policy::Policy;
use eyewall_http::reuse::{self, Reuse};
use eyewall_http::terms::Terms;
use eyewall_http::{selecting, storing};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use literal::{Asked, Fields, Stored};
use messages::{START, Step, steps, time};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// The cache's record of a response, and what really happened.
struct Entry {
    terms: Terms,
    names: Vec<HeaderName>,
    key: Vec<u8>,
    asked: Fields,
    status: u16,
    fields: Fields,
    requested: i64,
    received: i64,
}

struct Cache {
    entries: Vec<Entry>,
    now: i64,
}

/// How often each case occurred. The test fails if it never tried one.
type Counts = RefCell<BTreeMap<&'static str, u64>>;

fn count(counts: &Counts, what: &'static str) {
    *counts.borrow_mut().entry(what).or_default() += 1;
}

impl Cache {
    fn step(&mut self, step: &Step, policy: &Policy, counts: &Counts) -> Result<(), TestCaseError> {
        self.now += step.pause;
        let asked = map(&step.asked);
        let directives = RequestDirectives::of(&asked);
        let method = Method::from_bytes(step.method.as_bytes()).unwrap();
        let selected = self
            .entries
            .iter()
            .rposition(|entry| reuse::is_answerable(&method) && entry.key == selecting::key(&entry.names, &asked));
        let Some(selected) = selected else { return self.fetch(step, &method, policy, counts) };
        match reuse::decide(&self.entries[selected].terms, &directives, time(self.now), policy) {
            Reuse::Fresh => self.sent(selected, step, false, "fresh", counts),
            Reuse::StaleAllowed => self.sent(selected, step, false, "stale allowed", counts),
            Reuse::StaleWhileRevalidate => {
                self.sent(selected, step, false, "stale while validated", counts)?;
                self.fetch(step, &method, policy, counts)
            }
            Reuse::Validate { on_failure } => {
                let status = StatusCode::from_u16(step.status).unwrap();
                match on_failure.error {
                    Some(left) if reuse::is_failure(status) && left.as_secs() as i64 >= step.delay => {
                        self.now += step.delay;
                        self.sent(selected, step, true, "stale after a failure", counts)
                    }
                    _ => self.fetch(step, &method, policy, counts),
                }
            }
            Reuse::MustNotUse => self.fetch(step, &method, policy, counts),
            Reuse::GatewayTimeout => {
                count(counts, "504");
                Ok(())
            }
        }
    }

    /// The response was sent. Checks whether that was allowed.
    fn sent(
        &self,
        selected: usize,
        step: &Step,
        has_failed: bool,
        what: &'static str,
        counts: &Counts,
    ) -> Result<(), TestCaseError> {
        count(counts, what);
        let Entry { asked, status, fields, requested, received, .. } = &self.entries[selected];
        let stored = Stored { asked, status: *status, fields, requested: *requested, received: *received };
        let request = Asked { method: step.method, fields: &step.asked };
        let forbidden = literal::forbids_reuse(&stored, &request, self.now, has_failed);
        prop_assert_eq!(forbidden, None, "{}: {:?} of {} for {:?}", what, fields, stored.status, step.asked);
        Ok(())
    }

    fn fetch(&mut self, step: &Step, method: &Method, policy: &Policy, counts: &Counts) -> Result<(), TestCaseError> {
        let requested = self.now;
        self.now += step.delay;
        let fields = step.answer_at(self.now);
        let exchange = Exchange { requested: time(requested), received: time(self.now) };
        let asked = map(&step.asked);
        let response = Response { status: StatusCode::from_u16(step.status).unwrap(), fields: &map(&fields) };
        let judged = storing::judge(Request { method, fields: &asked }, response, exchange, policy);
        let Ok(storable) = judged else {
            count(counts, "not stored");
            return Ok(());
        };
        count(counts, "stored");
        let forbidden =
            literal::forbids_storing(&Asked { method: step.method, fields: &step.asked }, step.status, &fields);
        prop_assert_eq!(forbidden, None, "stored: {:?} of {} for {:?}", fields, step.status, step.asked);
        let is_withheld = storable.withheld.iter().any(|name| name == "x-a");
        prop_assert!(is_withheld || !literal::withholds(&fields, "x-a"), "not withheld: {:?}", fields);
        let names = match storable.vary {
            Vary::Fields(names) => names,
            Vary::Nothing => Vec::new(),
            Vary::Everything => return Err(TestCaseError::fail("what varies by everything was stored")),
        };
        let terms = Terms::from_bytes(storable.terms.to_bytes()).unwrap();
        let key = selecting::key(&names, &asked);
        self.entries.retain(|entry| entry.names != names || entry.key != key);
        let (asked, status) = (step.asked.clone(), step.status);
        self.entries.push(Entry { terms, names, key, asked, status, fields, requested, received: self.now });
        Ok(())
    }
}

fn map(fields: &Fields) -> HeaderMap {
    fields.iter().map(|(name, text)| (HeaderName::from_static(name), HeaderValue::try_from(text).unwrap())).collect()
}

#[test]
fn nothing_is_stored_or_sent_that_the_rfc_forbids() {
    let cases = if std::env::var_os("EYEWALL_SOAK").is_some() { 200_000 } else { 3_000 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let policy = Policy::default();
    let counts = Counts::default();
    let result = runner.run(&steps(), |steps| {
        let mut cache = Cache { entries: Vec::new(), now: START };
        steps.iter().try_for_each(|step| cache.step(step, &policy, &counts))
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    for what in
        ["fresh", "stale allowed", "stale while validated", "stale after a failure", "504", "stored", "not stored"]
    {
        let times = counts.borrow().get(what).copied().unwrap_or(0);
        assert!(times > 20, "{what}: {times} times");
    }
}
