//! The parts of a site's keys choose the entry.

use crate::common::origin::Origin;
use crate::common::server::Server;

fn numbers(server: &Server, targets: &[&str]) -> Vec<String> {
    targets.iter().map(|target| server.get(target).text().to_owned()).collect()
}

#[test]
fn tracking_parameters_are_not_part_of_the_key() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_site(
        &origin.url(),
        "[site.key]\nstrip_trackers = true\nstrip_query = [\"ref\"]\nsort_query = true\n",
    );
    let targets = ["/?b=2&a=1", "/?a=1&utm_source=x&b=2&fbclid=y", "/?b=2&ref=&a=1"];
    assert_eq!(numbers(&server, &targets), ["1", "1", "1"]);
    assert_eq!(origin.asked()[0].target, "/?a=1&b=2");
    assert_eq!(numbers(&server, &["/?a=2&b=2"]), ["2"]);
}

#[test]
fn further_parts_choose_entries_and_a_change_invalidates_all_of_them() {
    let origin = Origin::counting("Cache-Control: max-age=60");
    let server = Server::over_site(&origin.url(), "[site.key]\ncookies = [\"lang\"]\nheaders = [\"X-Device\"]\n");
    let is_hit = |field| server.ask("GET", "/", &[field]).is_hit();
    for field in ["Cookie: lang=de", "Cookie: lang=fr; sid=1", "X-Device: phone"] {
        assert_eq!([is_hit(field), is_hit(field)], [false, true], "{field}");
    }
    server.ask("POST", "/", &["Content-Length: 0"]);
    for field in ["Cookie: lang=de", "Cookie: lang=fr", "X-Device: phone"] {
        assert!(!is_hit(field), "{field}");
    }
}
