//! Objects in a bucket.

use std::time::Duration;

use bytes::Bytes;
use eyewall_second_level::{Backend, Credentials, GateState, Offered, S3Settings, SecondLevelThread, Settings};

use super::bucket::{ACCESS_KEY, Bucket};
use super::{await_status, put, settings, start};

fn on(bucket: &Bucket, access_key_id: &str) -> Settings {
    settings(Backend::S3(S3Settings {
        bucket: "pages".to_owned(),
        prefix: "shop".to_owned(),
        endpoint: Some(bucket.url()),
        region: "eu-central-1".to_owned(),
        credentials: Some(Credentials {
            access_key_id: access_key_id.to_owned(),
            secret_access_key: "secret".to_owned(),
        }),
        authority: None,
    }))
}

#[test]
fn what_one_offers_another_one_gets() {
    let bucket = Bucket::start();
    let [(one, _one), (other, _other)] = [(); 2].map(|()| start(&on(&bucket, ACCESS_KEY)));
    assert_eq!(other.ask_blocking(b"key"), None);
    put(&one, b"key", b"value");
    assert_eq!(other.ask_blocking(b"key").unwrap(), &b"value"[..]);
    let paths = bucket.paths();
    assert!(paths.len() == 1 && paths[0].starts_with("/pages/shop/"), "{paths:?}");
}

#[test]
fn an_object_that_is_too_old_is_removed() {
    let bucket = Bucket::start();
    let (second_level, _thread) = start(&on(&bucket, ACCESS_KEY));
    assert_eq!(second_level.offer(b"key", Bytes::from_static(b"value"), Duration::from_millis(1)), Offered::Queued);
    await_status(&second_level, |status| status.stored == 1);
    while !bucket.paths().is_empty() {
        assert_eq!(second_level.ask_blocking(b"key"), None);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_wrong_key_and_a_failing_service_are_told_and_not_asked_further() {
    let bucket = Bucket::start();
    let (wrong, _wrong) = start(&on(&bucket, "AKIAOTHER"));
    put(&wrong, b"key", b"value");
    assert_eq!(wrong.status().offers_failed, 1);
    bucket.fail(503);
    let (right, _right) = start(&on(&bucket, ACCESS_KEY));
    for second_level in [&wrong, &right] {
        for _ in 0..3 {
            assert_eq!(second_level.ask_blocking(b"key"), None);
        }
        let asked = bucket.asked();
        let status = second_level.status();
        assert!(status.state == GateState::Failing && status.trouble.is_some(), "{status:?}");
        assert_eq!(second_level.ask_blocking(b"key"), None);
        assert!(bucket.asked() <= asked + 1, "at most a probe");
    }
}

#[test]
fn a_service_that_takes_longer_than_the_origin_is_not_waited_for() {
    let bucket = Bucket::start();
    let (second_level, _thread) = start(&on(&bucket, ACCESS_KEY));
    put(&second_level, b"key", b"value");
    second_level.origin_took(Duration::from_millis(10));
    bucket.delay(Duration::from_millis(100));
    for _ in 0..3 {
        assert_eq!(second_level.ask_blocking(b"key"), None);
    }
    assert_eq!(second_level.status().state, GateState::Failing);
    bucket.delay(Duration::ZERO);
    while second_level.ask_blocking(b"key").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn settings_that_make_no_sense_are_an_error() {
    let bucket = Bucket::start();
    let Settings { backend: Backend::S3(right), .. } = on(&bucket, ACCESS_KEY) else { unreachable!("it is on S3") };
    let no_certificate = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec();
    let wrong = settings(Backend::S3(S3Settings { authority: Some(no_certificate), ..right }));
    assert!(SecondLevelThread::start(&wrong).is_err());
}
