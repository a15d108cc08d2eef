//! `eyewall fleet agent`: volumes without a server are nodes of a fleet.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

use eyewall::{Cache, FillOptions, Filling, Lookup, Options, Purge, PutOptions};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{Node, PATIENCE, patient};
use crate::common::command::{eyewall, run};
use crate::common::origin::Origin;
use crate::common::redis::Redis;

/// An agent of a volume.
struct Agent {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(volume: &Path, redis: &str) -> Self {
        Self::with(volume, redis, &[])
    }

    /// An agent with further flags.
    fn with(volume: &Path, redis: &str, flags: &[&str]) -> Self {
        let mut command = eyewall();
        command.args(["fleet", "agent", "--max-blind", "2m", "--redis", redis, "--cache"]).arg(volume).args(flags);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let output = BufReader::new(child.stdout.take().expect("it has a standard output"));
        Self { child, output }
    }

    fn expect(mut self, words: &str) -> Self {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says something");
        assert!(line.contains(words), "{line}");
        self
    }

    fn ready(self) -> Self {
        self.expect("belongs to the fleet eyewall")
    }

    /// Ends it as a service manager does.
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        assert!(self.child.wait().expect("it is ours").success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Machine {
    _folder: TempDir,
    path: PathBuf,
    cache: Cache,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let cache = Options::new().size(1 << 20).open(&path).unwrap();
        Self { _folder: folder, path, cache }
    }

    /// The value that a fill gets without making it.
    fn found(&self, key: &str) -> Option<Vec<u8>> {
        let cache = eyewall_fleet_client::join(&self.cache);
        match cache.begin_fill(key, PATIENCE, &FillOptions::new()).unwrap() {
            Filling::Found(found) => found.value().map(<[u8]>::to_vec),
            // Nothing is made.
            Filling::Ours(_) => None,
        }
    }

    fn make(&self, key: &str, value: &str) {
        let cache = eyewall_fleet_client::join(&self.cache);
        match cache.begin_fill(key, PATIENCE, &FillOptions::new()).unwrap() {
            Filling::Ours(flight) => {
                flight.store(value, &PutOptions::new().tags(&["post-7"]).ttl(PATIENCE)).unwrap();
            }
            // It made the value before, or another machine did.
            Filling::Found(_) => {}
        }
    }

    /// The second level gets what is made a moment later.
    fn await_found(&self, key: &str) -> Vec<u8> {
        self.await_shared(key, || {})
    }

    /// The same for an object that another machine makes again, if a purge on its way has covered it, too.
    fn await_shared(&self, key: &str, make: impl Fn()) -> Vec<u8> {
        let start = Instant::now();
        loop {
            make();
            if let Some(found) = self.found(key) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn put(&self) {
        self.cache.put_with("/shop/a", "page", &PutOptions::new().tags(&["post-7"])).unwrap();
    }

    fn await_purge(&self) -> Lookup<'_> {
        self.await_purge_of("/shop/a")
    }

    fn await_purge_of(&self, key: &str) -> Lookup<'_> {
        let start = Instant::now();
        loop {
            let found = self.cache.lookup(key).unwrap();
            if !matches!(found, Lookup::Fresh(_)) {
                return found;
            }
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[test]
fn purges_of_a_volume_reach_volumes_and_servers_and_theirs_reach_it() {
    let Some(redis) = Redis::start(&[]) else { return };
    let machines = [(); 2].map(|()| Machine::new());
    let agents = [0, 1].map(|number: usize| Agent::start(&machines[number].path, &redis.url()).ready());
    let origin = Origin::counting("Cache-Control: max-age=600\r\nETag: \"1\"\r\nXkey: post-7");
    let server = Node::start(&patient(&redis.url()), &origin.url());
    let [one, other] = &machines;
    for (purge, is_hard) in [
        (&(|| one.cache.purge_tag("post-7", Purge::Hard)) as &dyn Fn() -> eyewall::Result<()>, true),
        (&|| one.cache.purge_prefix("/shop/", Purge::Soft), false),
        (&|| one.cache.purge_all(Purge::Hard), true),
    ] {
        other.put();
        purge().unwrap();
        assert_eq!(matches!(other.await_purge(), Lookup::Miss), is_hard);
    }
    server.store("/b");
    one.cache.purge_tag("post-7", Purge::Hard).unwrap();
    server.await_miss("/b");
    other.put();
    one.put();
    server.purge_and_wait(r#"{"tag": "post-7"}"#);
    assert!(machines.iter().all(|machine| matches!(machine.await_purge(), Lookup::Miss)));
    one.put();
    server.purge_and_wait(r#"{"url": "http://test/b"}"#);
    assert!(one.cache.contains("/shop/a").unwrap(), "a bare volume has no addresses");
    assert_eq!(server.status()["nodes"].as_array().map(Vec::len), Some(3), "agents are nodes");
    agents.into_iter().for_each(Agent::stop);
}

#[test]
fn another_agent_takes_over_and_misses_nothing() {
    let Some(redis) = Redis::start(&[]) else { return };
    let machines = [(); 2].map(|()| Machine::new());
    let [one, other] = &machines;
    let _agent = Agent::start(&one.path, &redis.url()).ready();
    let mut first = Agent::start(&other.path, &redis.url()).ready();
    other.put();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    one.cache.purge_tag("post-7", Purge::Hard).unwrap();
    let _second = Agent::start(&other.path, &redis.url()).ready();
    assert!(matches!(other.await_purge(), Lookup::Miss), "it was purged while it had no agent");
    one.put();
    other.cache.purge_tag("post-7", Purge::Hard).unwrap();
    assert!(matches!(one.await_purge(), Lookup::Miss));
}

#[test]
fn volumes_share_what_fills_make_and_no_purged_object_comes_back() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let machines = [(); 3].map(|()| Machine::new());
    let start = |machine: &Machine| Agent::with(&machine.path, &redis.url(), &["--second-level-size", "8M"]).ready();
    let [one, two, late] = &machines;
    let (_first, second) = (start(one), start(two));
    one.make("a", "made once");
    one.make("b", "made once, too");
    assert_eq!(two.await_found("a"), b"made once");
    assert_eq!(two.cache.get("a").unwrap().unwrap().tags().collect::<Vec<_>>(), ["post-7"], "the volume has it now");
    // The purger doesn't get it back, also not while the purge is on its way.
    one.cache.purge_tag("post-7", Purge::Hard).unwrap();
    assert_eq!((one.found("a"), one.found("b")), (None, None));
    two.await_purge_of("a");
    assert_eq!((two.found("a"), two.found("b")), (None, None));
    assert_eq!(two.await_shared("a", || one.make("a", "made again")), b"made again");
    let _late = start(late);
    assert_eq!((late.await_found("a"), late.found("b")), (b"made again".to_vec(), None));
    // An agent that was away doesn't know what its volume has missed, and takes only what was made since.
    second.stop();
    one.cache.purge_prefix("a", Purge::Hard).unwrap();
    let _again = start(two);
    assert_eq!((two.found("a"), two.found("b")), (None, None));
    assert_eq!(two.await_shared("d", || one.make("d", "made since")), b"made since");
    redis.kill();
    two.make("c", "made without Redis");
    two.cache.remove("a").unwrap();
    assert_eq!(two.found("a"), None);
    two.make("a", "made without Redis, too");
}

#[test]
fn clients_that_say_nothing_are_bounded_in_number_and_time() {
    let Some(redis) = Redis::start(&[]) else { return };
    let machines = [(); 2].map(|()| Machine::new());
    let start = |machine: &Machine| Agent::with(&machine.path, &redis.url(), &["--second-level-size", "8M"]).ready();
    let [one, two] = &machines;
    let (agent, _other) = (start(one), start(two));
    let socket = eyewall_fleet_client::socket_of(&one.path);
    let silent: Vec<UnixStream> = (0..350).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", agent.child.id())).unwrap().count();
    for mut client in silent {
        assert!(descriptors() < 330, "256 clients at once, and what the agent itself has open");
        // The agent closes it, and nobody else does.
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    one.make("a", "made");
    assert_eq!(two.await_found("a"), b"made");
}

#[test]
fn without_a_socket_the_agent_follows_the_log() {
    let Some(redis) = Redis::start(&[]) else { return };
    let machines = [(); 2].map(|()| Machine::new());
    let [one, other] = &machines;
    // A file that can't be removed is in the way.
    std::fs::create_dir(eyewall_fleet_client::socket_of(&one.path)).unwrap();
    let start = |machine: &Machine| Agent::with(&machine.path, &redis.url(), &["--second-level-size", "8M"]).ready();
    let _agents = [start(one), start(other)];
    for (purger, purged) in [(one, other), (other, one)] {
        purged.put();
        purger.cache.purge_tag("post-7", Purge::Hard).unwrap();
        assert!(matches!(purged.await_purge(), Lookup::Miss));
    }
    one.make("a", "made");
    assert_eq!(one.found("a").unwrap(), b"made", "fills go on");
}

#[test]
fn an_agent_waits_for_its_volume_and_follows_it() {
    let Some(redis) = Redis::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("volume");
    let agent = Agent::start(&path, &redis.url()).expect("waiting for the volume");
    let open = || Options::new().size(1 << 20).open(&path).unwrap();
    drop(open());
    let agent = agent.ready();
    std::fs::remove_file(&path).unwrap();
    drop(open());
    let agent = agent.ready();
    assert!(path.with_file_name("volume.purges").exists());
    agent.stop();
}

#[test]
fn wrong_words_are_refused() {
    for (words, expected) in [
        (&["fleet"][..], "--server <SERVER>"),
        (&["fleet", "agent"], "--redis"),
        (&["fleet", "agent", "--redis", "redis://a"], "no volume is given"),
        (&["fleet", "agent", "--redis", "http://a", "--cache", "x"], "not the address of a Redis server"),
    ] {
        let ended = run(eyewall().args(words), b"");
        assert!(ended.code == 2 && ended.stderr.contains(expected), "{words:?}: {} {}", ended.code, ended.stderr);
    }
}
