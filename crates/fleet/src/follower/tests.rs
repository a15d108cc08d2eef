//! Single steps of a follower. `tests/simulation` has the whole.

use super::*;

const MAX_BLIND_MS: u64 = 1000;

fn follower(is_durable: bool, place: Option<Place>) -> Follower {
    Follower::new(Settings { max_blind_ms: MAX_BLIND_MS, is_durable }, place, 100)
}

fn place(reign: &str, number: u64, written_in: &str) -> Place {
    Place { reign: Reign::new(reign), number, written_in: Reign::new(written_in) }
}

/// The state of a log of one reign that has all of its lines.
fn state(asked_ms: u64, about: u64, reign: &str, head: u64) -> State {
    let written = |number| if number == 0 { Reign::default() } else { Reign::new(reign) };
    State {
        asked_ms,
        about,
        reign: Reign::new(reign),
        head,
        head_written_in: written(head),
        about_written_in: (1..=head).contains(&about).then(|| Reign::new(reign)),
        next: (about < head).then_some(about + 1),
        is_replicated: true,
    }
}

fn line(number: u64, reign: &str, before: &str) -> Line {
    let purge = number.to_string().into_bytes();
    Line { number, reign: Reign::new(reign), before: Reign::new(before), purger: "other".to_owned(), purge }
}

#[test]
fn a_node_without_a_place_begins_at_the_end() {
    let mut follower = follower(false, None);
    assert!(!follower.is_ready());
    assert_eq!(follower.state(state(5, 0, "a", 7)), [Action::SoftenAll(Some(Gap::NoPlace))]);
    assert_eq!(follower.place(), Some(&place("a", 7, "a")));
    assert_eq!((follower.confirmed_ms(), follower.is_ready()), (Some(5), true));
}

#[test]
fn lines_are_applied_once_and_in_order() {
    let mut follower = follower(false, Some(place("a", 1, "a")));
    let applied = follower.lines([line(1, "a", ""), line(2, "a", "a"), line(2, "a", "a"), line(3, "a", "a")]);
    assert_eq!(applied, [Action::Apply(line(2, "a", "a")), Action::Apply(line(3, "a", "a"))]);
    assert_eq!(follower.lines([line(5, "a", "a"), line(6, "a", "a")]), [Action::Ask]);
    assert_eq!(follower.number(), 3);
}

#[test]
fn a_line_of_a_successor_is_a_change_of_the_reign() {
    let mut follower = follower(true, Some(place("a", 1, "a")));
    assert_eq!(follower.lines([line(2, "b", "a")]), [Action::Apply(line(2, "b", "a"))]);
    assert_eq!(follower.place(), Some(&place("b", 2, "b")));
    // An old answer of the server before.
    assert_eq!(follower.state(state(50, 1, "a", 1)), [Action::Ask]);
    assert_eq!(follower.confirmed_ms(), None);
}

#[test]
fn a_state_confirms_once_its_lines_are_applied() {
    let mut follower = follower(false, Some(place("a", 1, "a")));
    assert!(follower.state(state(50, 1, "a", 3)).is_empty());
    follower.lines([line(2, "a", "a")]);
    assert_eq!(follower.confirmed_ms(), None);
    follower.lines([line(3, "a", "a")]);
    assert_eq!(follower.confirmed_ms(), Some(50));
    let unsure = State { is_replicated: false, ..state(60, 3, "a", 3) };
    assert!(follower.state(unsure).is_empty());
    assert_eq!(follower.confirmed_ms(), Some(50));
    assert!(follower.state(state(40, 3, "b", 3)).is_empty(), "an old answer is too late");
}

#[test]
fn each_gap_has_its_reason() {
    let gap = |is_durable, state| match follower(is_durable, Some(place("a", 5, "a"))).state(state)[..] {
        [Action::SoftenAll(gap)] => gap,
        [] => None,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(gap(false, state(1, 5, "a", 5)), None);
    assert_eq!(gap(false, state(1, 5, "a", 4)), Some(Gap::Shorter));
    assert_eq!(gap(false, State { next: Some(7), ..state(1, 5, "a", 9) }), Some(Gap::Trimmed));
    assert_eq!(gap(false, State { next: None, ..state(1, 5, "a", 9) }), Some(Gap::Trimmed));
    assert_eq!(gap(false, state(1, 5, "b", 9)), Some(Gap::OtherServer));
    assert_eq!(gap(true, state(1, 5, "b", 9)), Some(Gap::OtherHistory));
    assert_eq!(gap(true, State { about_written_in: None, ..state(1, 5, "b", 9) }), Some(Gap::OtherHistory));
    let same = State { about_written_in: Some(Reign::new("a")), ..state(1, 5, "b", 9) };
    assert_eq!(gap(true, same.clone()), None);
    assert_eq!(gap(false, same), Some(Gap::OtherServer));
}

#[test]
fn a_line_of_another_log_is_not_applied() {
    let mut durable = follower(true, Some(place("b", 5, "a")));
    assert_eq!(durable.lines([line(6, "b", "b")]), [Action::Ask]);
    assert_eq!(durable.lines([line(6, "b", "a")]).len(), 1);
    assert_eq!(durable.place(), Some(&place("b", 6, "b")));
    let mut other = follower(false, Some(place("a", 5, "a")));
    assert_eq!(other.lines([line(6, "b", "a")]), [Action::Ask]);
    assert_eq!(other.state(state(1, 4, "b", 9)), [Action::Ask], "the answer is about another line");
}

#[test]
fn a_line_that_no_state_explains_is_a_gap() {
    let mut follower = follower(false, Some(place("a", 5, "a")));
    assert_eq!(follower.lines([line(6, "a", "x")]), [Action::Ask]);
    assert_eq!(follower.state(state(1, 4, "a", 6)), [], "the answer is about another line");
    assert_eq!(follower.state(state(2, 5, "a", 6)), [Action::SoftenAll(Some(Gap::OtherHistory))]);
    assert_eq!(follower.state(state(3, 6, "a", 6)), []);
}

#[test]
fn a_blind_node_softens_again_and_again() {
    let mut follower = follower(false, Some(place("a", 5, "a")));
    assert!(follower.tick(99).is_empty() && !follower.is_ready());
    assert_eq!(follower.tick(100), [Action::SoftenAll(None)]);
    assert!(follower.is_ready() && follower.tick(599).is_empty());
    assert_eq!(follower.tick(600), [Action::SoftenAll(None)]);
    follower.state(state(700, 5, "a", 5));
    assert!(!follower.is_blind(1449) && follower.tick(1449).is_empty());
    assert_eq!(follower.tick(1450), [Action::SoftenAll(None)]);
}

#[test]
fn a_purge_that_failed_is_a_gap() {
    let mut follower = follower(false, Some(place("a", 5, "a")));
    follower.could_not_apply();
    assert_eq!(follower.lines([line(6, "a", "a")]), [Action::Ask]);
    assert_eq!(follower.state(state(1, 0, "a", 6)), [Action::SoftenAll(Some(Gap::NoPlace))]);
}

#[test]
fn states_that_wait_are_bounded() {
    let mut follower = follower(false, Some(place("a", 0, "")));
    for asked in 1..=2 * WAITING_MAX as u64 {
        follower.state(state(asked, 0, "a", 1));
    }
    assert_eq!(follower.waiting.len(), WAITING_MAX);
    follower.lines([line(1, "a", "")]);
    assert_eq!(follower.confirmed_ms(), Some(2 * WAITING_MAX as u64));
}
