//! Redis wants a password.

use super::{Node, password_file, watchful};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn a_wrong_password_is_reported_and_the_right_one_is_taken() {
    let Some(redis) = Redis::start(&["--requirepass", "secret"]) else { return };
    let (origin, folder) = (Origin::counting("Cache-Control: max-age=600"), tempfile::tempdir().unwrap());
    let node = |password: &str| {
        let file = password_file(folder.path(), password);
        let fleet = format!("{}password_file = \"{file}\"\n", watchful(&redis.url()));
        // The files are read inside the sandbox.
        Node::with(&fleet, &origin.url(), "[server]\nsandbox = \"on\"\n")
    };
    let wrong = node("wrong");
    assert_eq!(wrong.server.get("/a").status, 200);
    let trouble = wrong.await_status(|status| status["trouble"].is_string())["trouble"].to_string();
    assert!(trouble.contains("WRONGPASS") || trouble.to_lowercase().contains("password"), "{trouble}");
    node("secret").purge_and_wait(r#"{"everything": true}"#);
}
