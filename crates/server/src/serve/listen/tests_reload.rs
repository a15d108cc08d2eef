//! The moment of a reload.

use std::sync::Arc;
use std::thread;

use eyewall::Options;
use eyewall_tls::clock::SystemClock;

use super::workers::Order;
use super::{Activated, Binding, ListenPlace, Sockets, Workers};
use crate::config::{self, Config};
use crate::serve::reload::Reloader;
use crate::serve::shared::Shared;
use crate::serve::supervisor::Supervisor;

fn parsed(more: &str) -> Config {
    let site = "[[site]]\norigins = [\"http://127.0.0.1:1\"]\n";
    config::parse(&format!("[server]\nlisten = [\"127.0.0.1:0\"]\n{site}{more}")).unwrap()
}

#[test]
fn the_purge_log_has_another_configuration_before_a_worker_does() {
    let (running, cache) = (parsed(""), Options::new().size(4 << 20).anonymous().unwrap());
    let (places, binding) = (ListenPlace::all(&running.server), Binding::of(&running.server, 1));
    let sockets = Sockets::bind(&places, binding, &mut Vec::new(), &mut Activated::default()).unwrap();
    let (workers, mut beginnings) = Workers::new(sockets, 1, 1 << 20).unwrap();
    let shared = Shared::new(running, &cache, Arc::new(SystemClock)).unwrap();
    let reloader = Arc::new(Reloader::new(shared, workers, (None, None), Supervisor { is_told: false }));
    let seen = Arc::clone(&reloader);
    let worker = thread::spawn(move || match beginnings.remove(0).orders.blocking_recv() {
        // Lines are noted and applied by the state of the reloader.
        Some(Order::Change(change)) => Arc::ptr_eq(&seen.shared(), &change.shared),
        _ => panic!("a change"),
    });
    reloader.reload(parsed("key = { cookies = [\"lang\"] }")).unwrap();
    assert!(worker.join().unwrap());
}
