//! A small volume has room for few notes of purges. The server makes room before purges remove more than they were asked to.

use crate::common::client::Reply;
use crate::common::origin::Origin;
use crate::common::server::Server;

#[test]
fn purges_of_many_addresses_leave_the_others() {
    let origin = Origin::counting("Cache-Control: max-age=600");
    let server = Server::over_site(&origin.url(), "key = { cookies = [\"lang\"] }");
    let kept: Vec<String> = (0..20).map(|number| format!("/kept/{number}")).collect();
    for target in &kept {
        server.get_until(target, Reply::is_hit);
    }
    // Twice as many as the volume can note.
    for number in 0..2000 {
        let reply = server.ask("PURGE", &format!("/purged/{number}"), &[]);
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    let hits = kept.iter().filter(|target| server.get(target).is_hit()).count();
    // If the sweeping thread was late, a purge may have taken some.
    assert!(hits >= 15, "{hits} of 20");
}
