//! The same in a bucket.

use super::{FIELDS, Node, is_shared, patient};
use crate::common::bucket::{ACCESS_KEY, Bucket};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

#[test]
fn nodes_share_by_a_bucket_and_what_was_purged_does_not_come_back() {
    let (Some(redis), bucket) = (Redis::start(&[]), Bucket::start()) else { return };
    let origin = Origin::counting(FIELDS);
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    std::fs::write(&credentials, format!("{ACCESS_KEY}\nsecret\n")).unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef").unwrap();
    let level = format!(
        "{}store = \"s3\"\nbucket = \"pages\"\nendpoint = \"{}\"\ncredentials_file = \"{}\"\nsecret_file = \"{}\"\n",
        super::LEVEL,
        bucket.url(),
        credentials.display(),
        secret.display()
    );
    let [maker, other] = [(); 2].map(|()| Node::with(&patient(&redis.url()), &origin.url(), &level));
    maker.share("/a");
    maker.share("/b");
    assert_eq!(bucket.paths().len(), 2);
    assert!(is_shared(&other.server.get("/a")));
    maker.purge_and_wait(r#"{"tag": "post-7"}"#);
    for target in ["/a", "/b"] {
        let reply = other.server.get(target);
        assert!(!is_shared(&reply) && !reply.is_hit(), "{reply:?}");
    }
}
