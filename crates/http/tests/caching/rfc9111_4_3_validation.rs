//! RFC 9111, section 4.3: the cache revalidates a stored response, and interprets the answer.

use eyewall_http::message::Response;
use eyewall_http::validation::{self, Candidate, Outcome};
use http::{HeaderMap, StatusCode};

use crate::support::{at, fields};

const EARLIER: &str = "last-modified: Sat, 05 Nov 1994 08:49:37 GMT";
const LATER: &str = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";

/// Stored responses with these fields, each received a second after the one before.
fn with_candidates<T>(stored: &[&str], then: impl FnOnce(&[Candidate<'_>]) -> T) -> T {
    let stored: Vec<HeaderMap> = stored.iter().map(|lines| fields(lines)).collect();
    let candidates: Vec<Candidate<'_>> =
        stored.iter().enumerate().map(|(index, fields)| Candidate { fields, received: at(index as u64) }).collect();
    then(&candidates)
}

fn question(request: &str, stored: &[&str]) -> (bool, HeaderMap) {
    let mut request = fields(request);
    let is_one = with_candidates(stored, |candidates| validation::make_conditional(&mut request, candidates));
    (is_one, request)
}

fn outcome(status: u16, answer: &str, stored: &[&str]) -> Outcome {
    let answer = fields(answer);
    let answer = Response { status: StatusCode::from_u16(status).unwrap(), fields: &answer };
    with_candidates(stored, |candidates| validation::interpret(answer, candidates))
}

#[test]
fn it_asks_by_tag_and_by_date() {
    let both = format!("etag: \"a\"\n{LATER}");
    let if_later = LATER.replace("last-modified", "if-modified-since");
    for (stored, expected) in [
        (&both[..], format!("if-none-match: \"a\"\n{if_later}")),
        ("etag: W/\"a\"", "if-none-match: W/\"a\"".to_owned()),
        (LATER, if_later.clone()),
        ("etag: a", String::new()),
        ("etag: \"a\" \"b\"", String::new()),
        ("last-modified: yesterday", String::new()),
        ("", String::new()),
    ] {
        assert_eq!(question("", &[stored]), (!expected.is_empty(), fields(&expected)), "{stored}");
    }
}

#[test]
fn the_tags_of_several_are_one_list_and_dates_are_not_sent_then() {
    let first = format!("etag: \"a\"\n{LATER}");
    let found = question("", &[&first, "etag: \"b\"", "etag: \"a\"", ""]);
    assert_eq!(found, (true, fields("if-none-match: \"a\", \"b\"")));
}

#[test]
fn the_conditions_and_ranges_of_the_client_give_way() {
    let request = format!("if-none-match: \"x\"\nif-range: \"x\"\nrange: bytes=0-1\naccept: a/b\n{LATER}");
    assert_eq!(question(&request, &["etag: \"a\""]).1, fields(&format!("accept: a/b\n{LATER}\nif-none-match: \"a\"")));
    assert_eq!(question("if-none-match: \"x\"", &[""]), (false, HeaderMap::new()));
}

#[test]
fn a_304_selects_the_response_that_is_still_right() {
    let a_and_b = &["etag: \"a\"", "etag: \"b\"", "etag: \"a\""][..];
    let weak = &["etag: W/\"a\"", "etag: \"b\"", "etag: \"a\""][..];
    let dated = &[EARLIER, LATER, LATER][..];
    for (answer, stored, expected) in [
        // A strong tag selects all responses that have it.
        ("etag: \"a\"", a_and_b, Outcome::Updates(vec![0, 2])),
        ("etag: \"c\"", a_and_b, Outcome::AskAgain),
        ("etag: \"a\"", weak, Outcome::Updates(vec![2])),
        // A weak one selects the latest.
        ("etag: W/\"a\"", weak, Outcome::Updates(vec![2])),
        ("etag: W/\"c\"", weak, Outcome::AskAgain),
        (LATER, dated, Outcome::Updates(vec![2])),
        (EARLIER, dated, Outcome::Updates(vec![0])),
        // A tag takes precedence over a date.
        ("etag: \"c\"\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT", dated, Outcome::AskAgain),
        // Without either, the 304 is about the response that the cache asked about.
        ("", &["etag: \"a\""], Outcome::Updates(vec![0])),
        ("", a_and_b, Outcome::AskAgain),
        ("", &[], Outcome::AskAgain),
    ] {
        assert_eq!(outcome(304, answer, stored), expected, "{answer} / {stored:?}");
    }
}

#[test]
fn another_answer_replaces_and_an_error_may_be_hidden() {
    for (status, expected) in [
        (200, Outcome::Answers),
        (404, Outcome::Answers),
        (501, Outcome::Answers),
        (500, Outcome::Fails),
        (503, Outcome::Fails),
    ] {
        assert_eq!(outcome(status, "etag: \"a\"", &["etag: \"a\""]), expected, "{status}");
    }
}
