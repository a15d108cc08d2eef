//! RFC 8246: a client reloads a page whose files don't change.

use eyewall_http::reuse::Reuse;

use crate::support::{reuse, validate};

#[test]
fn a_reload_does_not_revalidate_an_immutable_response_unless_it_insists() {
    let stored = "cache-control: max-age=60, immutable\netag: \"a\"";
    assert_eq!(reuse(stored, "cache-control: max-age=0", 10), Reuse::Fresh);
    assert_eq!(reuse(stored, "cache-control: no-cache", 10), validate());
    assert_eq!(reuse(stored, "cache-control: max-age=0", 60), validate());
    assert_eq!(reuse(stored, "cache-control: min-fresh=51", 10), validate());
}
