//! A server whose configuration and processes change under load: no request fails, no byte is wrong, and no stored page is lost.
//!
//! With `EYEWALL_SOAK` it takes some minutes: 20 reloads and 10 upgrades in at least a million requests, 5,000 a second, half of them
//! over TLS.

use crate::common::authority::Authority;
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

/// A server whose sites speak HTTP and HTTPS.
struct Changing {
    authority: Authority,
    origin: Origin,
    other: Origin,
}

impl Changing {
    fn text(&self, workers: u64, has_other: bool) -> String {
        let state = self.authority.path("state");
        // Each text has new certificates.
        let site = self.authority.site("test", &self.origin.url(), "");
        let other = if has_other { self.authority.site("other", &self.other.url(), "") } else { String::new() };
        let state = state.display();
        format!("workers = {workers}\nlisten_tls = [\"127.0.0.1:0\"]\n[server.tls]\nstate = '{state}'\n{other}{site}")
    }
}

#[test]
fn reloads_and_upgrades_under_load_are_not_noticed() {
    let plan = Plan::get();
    let changing = Changing { authority: Authority::new(), origin: load::origin(), other: Origin::counting("") };
    let mut upgrading = Upgrading::start(&changing.text(2, false));
    let (clear, tls) = (upgrading.address, upgrading.tls_address.unwrap());
    for page in 0..load::PAGES {
        let target = format!("/page/{page}");
        while !get(clear, &target).is_hit() {}
        while !changing.authority.get(tls, "test", &target).is_hit() {}
    }
    let (clients, rate) = (plan.clients / 2, plan.rate / 2);
    let config = changing.authority.config(&["http/1.1"]);
    let loads = [load::clear(clear), load::tls(tls, config)].map(|connect| Load::start(clients, rate, connect));
    let changes = plan.reloads + plan.upgrades;
    let wait = || loads.iter().for_each(|load| load.wait_for(plan.requests / changes / 2));
    for number in 0..changes {
        wait();
        // The upgrades are spread among the reloads.
        if number * plan.upgrades % changes < plan.upgrades {
            upgrading.write(&changing.text(1 + number % 3, false));
            upgrading.upgrade();
        } else {
            upgrading.write(&changing.text(2, number % 2 == 0));
            let reply = upgrading.socket.ask("POST", "/reload", &[], "");
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
    }
    wait();
    let counts = loads.map(Load::end).into_iter().fold(load::Counts::default(), load::Counts::and);
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
