//! Health checks leave an origin out until it passes one; each round is one call.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::uri::PathAndQuery;

use super::super::health::HealthCheck;
use super::scripted::{Origin, nobody, respond};
use super::{OriginSite, Origins, PATIENCE, settings};

fn check() -> HealthCheck {
    HealthCheck {
        path: PathAndQuery::from_static("/well"),
        interval: Duration::from_secs(1),
        timeout: PATIENCE,
        statuses: vec!["2xx".parse().unwrap()],
    }
}

/// How many of four requests go to the first of two origins.
fn chosen_first(origins: &Origins) -> usize {
    (0..4).filter(|_| origins.choose(None) == 0).count()
}

#[tokio::test]
async fn by_its_status() {
    let status = Arc::new(AtomicU16::new(500));
    let answer = Arc::clone(&status);
    let changing = Origin::answering(move |_| (answer.load(Ordering::SeqCst), String::new(), Vec::new()));
    let other = Origin::counting("");
    let urls = [changing.url(), other.url()];
    let site = Arc::new(OriginSite::new(settings(urls.iter().map(String::as_str)), None).unwrap());
    let (checking, worker) = (Origins::new(Arc::clone(&site)), Origins::new(site));
    checking.check(&check()).await;
    assert_eq!(chosen_first(&worker), 2, "one failed check is not enough");
    checking.check(&check()).await;
    assert_eq!(chosen_first(&worker), 0, "another worker knows");
    status.store(204, Ordering::SeqCst);
    checking.check(&check()).await;
    assert_eq!(chosen_first(&worker), 2);
    assert!(changing.asked().iter().chain(&other.asked()).all(|asked| asked.target == "/well"));
}

#[tokio::test]
async fn by_not_being_there() {
    let other = Origin::counting("");
    let urls = [format!("http://{}", nobody()), other.url()];
    let origins = Origins::new(Arc::new(OriginSite::new(settings(urls.iter().map(String::as_str)), None).unwrap()));
    for _ in 0..2 {
        origins.check(&check()).await;
    }
    assert_eq!(chosen_first(&origins), 0);
}

#[tokio::test]
async fn again_and_again() {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let origin = Origin::raw(move |asked, stream| {
        respond(stream, 200, "", 0, b"");
        let _ = sender.lock().unwrap().send(asked.target.clone());
    });
    let mut settings = settings([origin.url().as_str()]);
    settings.check = Some(HealthCheck { interval: Duration::from_millis(1), ..check() });
    let origins = Origins::new(Arc::new(OriginSite::new(settings, None).unwrap()));
    let thrice = tokio::task::spawn_blocking(move || [(); 3].map(|()| receiver.recv().unwrap()));
    tokio::select! {
        () = origins.keep_checking() => unreachable!("it has a check"),
        targets = thrice => assert_eq!(targets.unwrap(), ["/well"; 3]),
    }
}
