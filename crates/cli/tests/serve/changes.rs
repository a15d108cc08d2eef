//! A server whose configuration and processes change under load: no request fails, no byte is wrong, and no stored page is lost.
//!
//! With `EYEWALL_SOAK` it takes some minutes: 20 reloads and 10 upgrades in at least a million requests, 5,000 a second.

use crate::common::client::get;
use crate::common::load::{self, Load};
use crate::common::origin::Origin;
use crate::common::upgrading::Upgrading;

struct Plan {
    reloads: u64,
    upgrades: u64,
    requests: u64,
    clients: u32,
    /// Requests a second; zero is as many as possible.
    rate: u32,
}

impl Plan {
    fn get() -> Self {
        if std::env::var_os("EYEWALL_SOAK").is_some() {
            return Self { reloads: 20, upgrades: 10, requests: 1_000_000, clients: 32, rate: 5_000 };
        }
        Self { reloads: 6, upgrades: 3, requests: 3_000, clients: 8, rate: 0 }
    }
}

#[test]
fn reloads_and_upgrades_under_load_are_not_noticed() {
    let plan = Plan::get();
    let (origin, other) = (load::origin(), Origin::counting(""));
    let site = format!("[[site]]\nhosts = [\"test\"]\norigins = [\"{}\"]\n", origin.url());
    let more = format!("{site}[[site]]\nhosts = [\"other\"]\norigins = [\"{}\"]\n", other.url());
    let mut upgrading = Upgrading::start(&format!("workers = 2\n{site}"));
    for page in 0..load::PAGES {
        while !get(upgrading.address, &format!("/page/{page}")).is_hit() {}
    }
    let clients = Load::start(plan.clients, plan.rate, load::clear(upgrading.address));
    let changes = plan.reloads + plan.upgrades;
    for number in 0..changes {
        clients.wait_for(plan.requests / changes);
        // The upgrades are spread among the reloads.
        if number * plan.upgrades % changes < plan.upgrades {
            let workers = 1 + number % 3;
            upgrading.write(&format!("workers = {workers}\n{site}"));
            upgrading.upgrade();
        } else {
            upgrading.write(if number % 2 == 0 { &more } else { &site });
            let reply = upgrading.socket.ask("POST", "/reload", &[], "");
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
    }
    clients.wait_for(plan.requests / changes);
    let counts = clients.end();
    println!(
        "{} reloads, {} upgrades, {} requests on {} connections, {} hits, {} hits lost, {} failures",
        plan.reloads,
        plan.upgrades,
        counts.requests,
        counts.connections,
        counts.hits,
        counts.lost_hits,
        counts.failures
    );
    assert!(counts.failures == 0 && counts.lost_hits == 0, "{counts:?}");
    assert!(counts.requests >= plan.requests, "{counts:?}");
}
