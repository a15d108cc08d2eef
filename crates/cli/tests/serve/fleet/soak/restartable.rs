//! A node on a volume of its own, which may be killed and started again.

use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::admin::{Socket, json};
use crate::common::load::{self, Connection, Response};
use crate::common::server::Server;

pub(super) struct Restartable {
    text: String,
    admin: Socket,
    life: Mutex<Life>,
    _folder: TempDir,
}

/// The process, and how many there were before it.
struct Life {
    server: Option<Server>,
    number: u64,
}

/// A connection to a node, which lasts as long as the node lives.
#[derive(Default)]
pub(super) struct Client {
    kept: Option<(u64, BufReader<Box<dyn Connection>>)>,
}

impl Restartable {
    /// A node with this `[fleet]`, in front of an origin.
    pub(super) fn start(fleet: &str, origin: &str) -> Self {
        let (admin, folder) = (Socket::new(), tempfile::tempdir().expect("a folder can be made"));
        let volume: PathBuf = folder.path().join("volume");
        let text = format!(
            "[cache]\npath = \"{}\"\nsize = \"8M\"\n{}[fleet]\n{fleet}\n[[site]]\norigins = [\"{origin}\"]\n",
            volume.display(),
            admin.table()
        );
        let server = Some(Server::configured(&text));
        Self { text, admin, life: Mutex::new(Life { server, number: 0 }), _folder: folder }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().expect("nobody panics with it")
    }

    /// Kills it by SIGKILL.
    pub(super) fn kill(&self) {
        let server = {
            let mut life = self.life();
            life.number += 1;
            life.server.take()
        };
        drop(server);
    }

    pub(super) fn restart(&self) {
        let server = Server::configured(&self.text);
        self.life().server = Some(server);
    }

    /// Its process; `None` while it is dead.
    pub(super) fn address(&self) -> Option<(u64, SocketAddr)> {
        let life = self.life();
        life.server.as_ref().map(|server| (life.number, server.address))
    }

    pub(super) fn process(&self) -> Option<u32> {
        self.life().server.as_ref().map(|server| server.child.id())
    }

    /// Purges, and waits until all nodes have applied it.
    pub(super) fn purge_and_wait(&self, body: &str) {
        let reply = self.admin.ask("POST", "/purge?wait=applied", &[], body);
        assert_eq!(reply.status, 200, "{body}: {reply:?}");
    }

    pub(super) fn status(&self) -> Value {
        json(&self.admin.ask("GET", "/fleet", &[], ""))
    }
}

impl Client {
    /// The answer to a request. `None`: the node is dead, or died meanwhile.
    pub(super) fn ask(&mut self, node: &Restartable, request: &str, fields: &str) -> Option<Result<Response, String>> {
        let (number, address) = node.address()?;
        let kept = self.kept.take().filter(|(in_life, _)| *in_life == number);
        let asked = kept.map_or_else(|| Ok(BufReader::new(load::clear(address)()?)), |(_, kept)| Ok(kept));
        let asked = asked.and_then(|mut kept| load::ask(&mut kept, request, fields).map(|response| (kept, response)));
        if node.address().is_none_or(|(in_life, _)| in_life != number) {
            return None;
        }
        Some(match asked {
            Ok((kept, response)) => {
                let is_last = response.1.get("connection").is_some_and(|field| field.eq_ignore_ascii_case("close"));
                self.kept = (!is_last).then_some((number, kept));
                Ok(response)
            }
            Err(error) => Err::<_, std::io::Error>(error).map_err(|error| error.to_string()),
        })
    }
}
