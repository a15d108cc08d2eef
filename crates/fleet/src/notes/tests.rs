use super::*;

fn as_of(line: u64, reign: &str) -> AsOf {
    AsOf { line, written_in: Reign::new(reign), reign: Reign::new(reign) }
}

fn place(number: u64, reign: &str) -> Place {
    Place { reign: Reign::new(reign), number, written_in: Reign::new(reign) }
}

fn line(number: u64, reign: &str) -> Line {
    let reign = Reign::new(reign);
    Line { number, before: reign.clone(), reign, purger: String::new(), purge: Vec::new() }
}

/// Notes at line 5 of reign `a`.
fn notes(notes_max: usize) -> Notes {
    let mut notes = Notes::new(notes_max, false);
    notes.applied(&place(5, "a"));
    notes
}

fn allows(notes: &Notes, as_of: &AsOf, tags: &[&str]) -> bool {
    let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
    let subject = Subject { address: "http://x/p", key: b"http://x/p cookie:a=b", tags: &tags };
    notes.allows(as_of, subject)
}

#[test]
fn a_later_line_that_covers_a_response_refuses_it() {
    for covers in [
        Covers::Address("http://x/p"),
        Covers::Tag("t"),
        Covers::Prefix(b"http://x/"),
        Covers::Prefix(b"http://x/p"),
        Covers::Everything,
    ] {
        let mut notes = notes(9);
        notes.add(&line(6, "a"), [covers]);
        notes.add(&line(7, "a"), [Covers::Tag("other"), Covers::Address("http://x/"), Covers::Prefix(b"http://y/")]);
        assert!(!allows(&notes, &as_of(5, "a"), &["s", "t"]), "{covers:?}");
        for (line, is_allowed) in [(4, false), (6, true), (7, true), (8, true)] {
            assert_eq!(allows(&notes, &as_of(line, "a"), &["s", "t"]), is_allowed, "{covers:?} {line}");
        }
    }
}

#[test]
fn another_history_is_refused() {
    let mut notes = Notes::new(9, true);
    notes.applied(&place(5, "a"));
    notes.add(&line(6, "a"), []);
    notes.add(&line(7, "b"), []);
    notes.applied(&Place { reign: Reign::new("c"), number: 7, written_in: Reign::new("b") });
    for (line, reign, is_allowed) in [
        (5, "a", true),
        (5, "b", false),
        (6, "a", true),
        (6, "b", false),
        (7, "a", false),
        (7, "b", true),
        (7, "c", false),
        // Lines that this node has not seen.
        (8, "b", true),
        (8, "c", true),
        (8, "a", false),
    ] {
        assert_eq!(allows(&notes, &as_of(line, reign), &[]), is_allowed, "{line} {reign}");
    }
}

#[test]
fn a_line_of_a_successor_ends_the_reign_before_it() {
    let mut notes = Notes::new(9, true);
    notes.applied(&place(5, "a"));
    assert!(allows(&notes, &as_of(9, "a"), &["t"]));
    notes.add(&line(6, "b"), [Covers::Tag("t")]);
    assert!(!allows(&notes, &as_of(9, "a"), &["t"]), "the old server's line 9 follows another line 6");
    assert!(allows(&notes, &as_of(9, "b"), &["t"]));
}

#[test]
fn a_gap_makes_everything_before_it_unknown() {
    let mut notes = notes(9);
    notes.gap();
    assert!(notes.as_of().is_none() && !allows(&notes, &as_of(5, "a"), &[]));
    notes.applied(&place(9, "b"));
    assert_eq!(notes.as_of(), Some(&as_of(9, "b")));
    assert!(allows(&notes, &as_of(9, "b"), &[]) && !allows(&notes, &as_of(8, "b"), &[]));
    // A line that doesn't follow is a gap, too.
    notes.add(&line(11, "b"), []);
    assert_eq!(notes.as_of(), None);
}

#[test]
fn what_is_forgotten_raises_the_floor() {
    let mut notes = notes(2);
    for number in 6..=9 {
        notes.add(&line(number, "a"), [Covers::Tag("same")]);
    }
    assert!(!allows(&notes, &as_of(6, "a"), &[]) && allows(&notes, &as_of(7, "a"), &[]));
    assert!(!allows(&notes, &as_of(8, "a"), &["same"]) && allows(&notes, &as_of(9, "a"), &["same"]));
    for number in 10..=12 {
        notes.add(&line(number, "a"), [Covers::Prefix(b"http://elsewhere/")]);
    }
    assert!(!allows(&notes, &as_of(9, "a"), &[]) && allows(&notes, &as_of(10, "a"), &[]));
    notes.forget();
    assert!(!allows(&notes, &as_of(11, "a"), &[]) && allows(&notes, &as_of(12, "a"), &[]));
}

#[test]
fn the_place_is_that_of_applied_lines() {
    let mut notes = notes(9);
    notes.add(&line(6, "a"), [Covers::Everything]);
    assert_eq!(notes.as_of(), Some(&as_of(5, "a")));
    assert!(!allows(&notes, &as_of(5, "a"), &[]));
    notes.applied(&place(6, "a"));
    assert_eq!(notes.as_of(), Some(&as_of(6, "a")));
}

#[test]
fn a_line_number_survives_as_text() {
    for reign in ["", "a"] {
        let as_of = as_of(7, reign);
        assert_eq!(AsOf::parse(&as_of.to_text()), Some(as_of));
    }
    for text in ["", "7", "7 a", "x a b", "7 a b c"] {
        assert_eq!(AsOf::parse(text), None, "{text}");
    }
}

#[test]
fn notes_reach_back_before_they_began() {
    let mut notes = notes(3);
    assert!(notes.add_earlier(&line(6, "a"), [Covers::Everything]), "it is known, or will be");
    assert!(!notes.add_earlier(&line(4, "a"), []) && !notes.add_earlier(&line(5, "b"), []));
    assert!(!allows(&notes, &as_of(4, "a"), &[]));
    assert!(notes.add_earlier(&line(5, "a"), [Covers::Tag("t")]));
    assert!(notes.add_earlier(&Line { before: Reign::new("z"), ..line(4, "a") }, [Covers::Prefix(b"http://y/")]));
    for (line, reign, tag, is_allowed) in [
        (5, "a", "t", true),
        (4, "a", "t", false),
        (4, "a", "s", true),
        (3, "z", "s", true),
        (3, "z", "t", false),
        (3, "a", "s", false),
        (2, "z", "s", false),
    ] {
        let as_of = AsOf { reign: Reign::new("a"), ..as_of(line, reign) };
        assert_eq!(allows(&notes, &as_of, &[tag]), is_allowed, "{line} {reign} {tag}");
    }
    // A later line of the same tag stays the latest, and the bound holds.
    notes.add(&line(6, "a"), [Covers::Tag("s")]);
    assert!(notes.add_earlier(&line(3, "z"), [Covers::Tag("s")]));
    let of_z = |line| AsOf { reign: Reign::new("a"), ..as_of(line, "z") };
    assert!(!allows(&notes, &as_of(5, "a"), &["s"]) && !allows(&notes, &of_z(2), &["s"]));
    assert!(!notes.add_earlier(&line(2, "z"), [Covers::Tag("u")]), "there is no room");
    assert!(allows(&notes, &of_z(2), &["u"]) && !allows(&notes, &of_z(1), &["u"]));
}

/// A line of reign `a` that covers the response may be lost: this node has seen the change, and the maker has not.
#[test]
fn another_reign_than_that_of_this_node_is_refused_if_lines_can_be_lost() {
    let moved = Place { reign: Reign::new("b"), ..place(5, "a") };
    for is_durable in [false, true] {
        let mut notes = Notes::new(9, is_durable);
        notes.applied(&moved);
        assert!(allows(&notes, &AsOf::of(&moved), &[]));
        assert_eq!(allows(&notes, &as_of(5, "a"), &[]), is_durable);
    }
}

#[test]
fn lines_that_were_forgotten_are_noted_again_as_they_are_now() {
    let mut notes = notes(9);
    let of_b = Line { before: Reign::new("a"), ..line(7, "b") };
    notes.add(&line(6, "a"), [Covers::Tag("old")]);
    notes.add(&of_b, [Covers::Tag("old")]);
    notes.applied(&Place { written_in: Reign::new("b"), ..place(7, "b") });
    notes.forget();
    let made = as_of(7, "b");
    assert!(allows(&notes, &made, &["new"]));
    assert!(!notes.add_earlier(&line(6, "a"), []), "the last one comes first");
    assert!(notes.add_earlier(&of_b, [Covers::Tag("new")]));
    assert!(notes.add_earlier(&line(6, "a"), [Covers::Tag("newer")]));
    let earlier = AsOf { line: 5, written_in: Reign::new("a"), reign: Reign::new("b") };
    assert!(allows(&notes, &earlier, &["old"]) && allows(&notes, &made, &["new"]));
    assert!(!allows(&notes, &earlier, &["new"]) && !allows(&notes, &earlier, &["newer"]));
}
