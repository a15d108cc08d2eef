//! The board for Grafana and the alerts for Prometheus (`packaging/`) ask for nothing that a server doesn't tell: each metric, each label
//! and each value of a label is on a page of metrics.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::common::admin::Socket;
use crate::common::authority::Authority;
use crate::common::metrics::{Scrape, promtool};
use crate::common::origin::{Origin, nobody};

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["instance", "job"];

fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A page of a server that has all parts: certificates, a fleet, and an origin that fails.
fn full_scrape() -> Scrape {
    let (authority, origin, socket) = (Authority::new(), Origin::counting("Cache-Control: max-age=60"), Socket::new());
    let dead = format!("[[site]]\nhosts = [\"dead\"]\norigins = [\"http://{}\"]\n", nobody());
    let fleet = format!("[fleet]\nredis = [\"redis://{}\"]\n", nobody());
    let sites = [authority.site("test", &origin.url(), ""), dead, fleet].concat();
    let https = authority.serve(&sites, &socket.table());
    authority.get(https.address, "test", "/");
    Scrape::of(&socket)
}

/// The queries of the alerts, and the names that they record.
fn rules(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let is_key = |line: &str| ["for:", "labels:", "annotations:", "- "].iter().any(|key| line.starts_with(key));
    let mut queries = Vec::new();
    let mut is_query = false;
    for line in text.lines().map(str::trim) {
        if let Some(query) = line.strip_prefix("expr:") {
            queries.push(query.trim().trim_start_matches('|').to_owned());
            is_query = true;
        } else if is_key(line) {
            is_query = false;
        } else if is_query {
            queries.last_mut().unwrap().extend([" ", line]);
        }
    }
    let recorded = text.lines().filter_map(|line| line.trim().strip_prefix("- record: "));
    (queries, recorded.map(str::to_owned).collect())
}

/// The queries of a board.
fn board(text: &str) -> Vec<String> {
    let board: Value = serde_json::from_str(text).unwrap();
    let panels = board["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Demands that a query asks for what is on the page.
fn check(query: &str, scrape: &Scrape, recorded: &BTreeSet<String>) {
    let of_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
    let mut labels: BTreeSet<&str> = BTreeSet::new();
    for (_, found) in scrape.names() {
        labels.extend(found.keys().map(String::as_str));
    }
    let mut rest = query;
    let mut found = 0;
    while let Some(start) = rest.find(of_word) {
        let word_end = rest[start..].find(|letter| !of_word(letter)).map_or(rest.len(), |end| start + end);
        let (word, behind) = (&rest[start..word_end], &rest[word_end..]);
        rest = behind;
        if ["by", "on"].contains(&word) {
            let (list, behind) = behind.trim_start().strip_prefix('(').unwrap().split_once(')').unwrap();
            for label in list.split(',').map(str::trim) {
                assert!(ADDED.contains(&label) || labels.contains(label), "no label {label}: {query}");
            }
            rest = behind;
        } else if recorded.contains(word) {
            found += 1;
        } else if word.starts_with("eyewall_") || word.starts_with("process_") {
            found += 1;
            assert!(scrape.samples(word).next().is_some(), "no metric {word}: {query}");
            if let Some((matchers, behind)) = behind.strip_prefix('{').and_then(|behind| behind.split_once('}')) {
                check_matchers(word, matchers, scrape, query);
                rest = behind;
            }
        }
    }
    assert!(found > 0, "{query}");
}

/// `site=~"$site", verdict=~"hit|stale"`. Any value may have a pattern, such as `5.*`.
fn check_matchers(metric: &str, matchers: &str, scrape: &Scrape, query: &str) {
    for matcher in matchers.split(',') {
        let (label, values) = matcher.split_once(['=', '!']).unwrap();
        let label = label.trim();
        let known: BTreeSet<&String> = scrape.samples(metric).filter_map(|(labels, _)| labels.get(label)).collect();
        assert!(ADDED.contains(&label) || !known.is_empty(), "{metric} has no label {label}: {query}");
        let values = values.trim_start_matches(['=', '~']).trim_matches('"');
        for value in values.split('|').filter(|value| !value.starts_with('$')) {
            let is_known = match value.strip_suffix(".*") {
                Some(beginning) => known.iter().any(|known| known.starts_with(beginning)),
                None => known.iter().any(|known| *known == value),
            };
            // A verdict that no request has had yet.
            assert!(is_known || value == "none", "{metric} has no {label} {value}: {query}");
        }
    }
}

#[test]
fn each_query_of_the_board_and_of_the_alerts_is_about_what_a_server_tells() {
    let scrape = full_scrape();
    let (alerts, recorded) = rules(&packaged("prometheus/eyewall.rules.yaml"));
    let panels = board(&packaged("grafana/eyewall.json"));
    assert!(alerts.len() >= 10 && panels.len() >= 20, "{} and {}", alerts.len(), panels.len());
    for query in alerts.iter().chain(&panels) {
        check(query, &scrape, &recorded);
    }
}

#[test]
fn prometheus_understands_all_rules_and_queries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rules.yaml");
    let mut rules = String::from("groups:\n  - name: board\n    rules:\n");
    for (number, query) in board(&packaged("grafana/eyewall.json")).iter().enumerate() {
        // As Grafana fills them in.
        let query = query.replace("$__rate_interval", "5m").replace("$instance", ".*").replace("$site", ".*");
        let query = serde_json::to_string(&query).unwrap();
        writeln!(rules, "      - record: panel:{number}\n        expr: {query}").unwrap();
    }
    for text in [packaged("prometheus/eyewall.rules.yaml"), rules] {
        std::fs::write(&file, text).unwrap();
        promtool(&["check", "rules", file.to_str().unwrap()], "");
    }
}
