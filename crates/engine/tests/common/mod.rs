//! What tests of several processes share: children that play roles, words that all of them see, and values that can
//! be checked.
//!
//! A child is this same test binary, run again with a role in its environment. [`Child::start`] starts it, and the
//! `child` test of its file calls [`play`]. It has at most one idle thread besides the thread that plays. Both ends
//! talk in lines: [`say`] and [`listen`] in the child, [`Child::hear`] and [`Child::tell`] in the parent.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod aftermath;
pub mod ledger;
pub mod tiered;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use eyewall::Cache;
use eyewall_region::Region;
use tempfile::TempDir;

const ROLE: &str = "EYEWALL_TEST_ROLE";
const SEPARATOR: &str = "\u{1f}";

/// The long form of a test, or its short one.
pub fn soak<T>(short: T, long: T) -> T {
    if std::env::var_os("EYEWALL_SOAK").is_some() { long } else { short }
}

static TURN: Mutex<()> = Mutex::new(());

/// A lock for tests that count processes or compare the bytes of a file, so that they run one at a time. Between its
/// fork and its exec, a child that another test of the program starts takes a process slot of every volume that is
/// open here.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder in shared memory, if there is any.
pub fn fast_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| disk_folder())
}

/// A folder on the disk of the build.
pub fn disk_folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether this process may mount file systems, change its user and create namespaces.
pub fn is_root() -> bool {
    // SAFETY: no pointers are involved.
    unsafe { libc::geteuid() == 0 }
}

/// The work of a role with its arguments.
pub type Role = (&'static str, fn(&[&str]));

/// In the `child` test of a file: plays the role that this process was started for, and ends the process. Returns if
/// it has no role.
pub fn play(roles: &[Role]) {
    let Ok(line) = std::env::var(ROLE) else { return };
    let parts: Vec<&str> = line.split(SEPARATOR).collect();
    let (_, work) = roles.iter().find(|(name, _)| *name == parts[0]).unwrap();
    // Otherwise descendants would inherit the role.
    end_with(catch_unwind(AssertUnwindSafe(|| work(&parts[1..]))).is_ok())
}

fn end_with(well: bool) -> ! {
    let _ = std::io::stdout().flush();
    // SAFETY: ends the process at once; nothing of the test harness must run any more.
    unsafe { libc::_exit(if well { 0 } else { 101 }) }
}

/// Sends one word to the parent.
pub fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{word}").unwrap();
    out.flush().unwrap();
}

/// Waits for the parent's next word.
pub fn listen() -> String {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap() == 0 {
        // The parent is gone.
        end_with(false);
    }
    line.trim_end().to_owned()
}

/// A child process, killed with its whole group when dropped.
pub struct Child {
    process: std::process::Child,
    /// Its descendants hear through it, too, even after it has ended.
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
    role: String,
}

impl Child {
    pub fn start(role: &str, arguments: &[&str]) -> Self {
        let mut line = vec![role];
        line.extend_from_slice(arguments);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, line.join(SEPARATOR))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        // SAFETY: prctl may be called between fork and exec.
        unsafe { command.pre_exec(end_with_parent) };
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let input = process.stdin.take();
        Self { process, input, lines, role: role.to_owned() }
    }

    pub fn id(&self) -> i32 {
        self.process.id() as i32
    }

    /// The next word of the child, or of a descendant that shares its output.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "{} ended without a word", self.role);
            if let Some((_, word)) = line.split_once('@') {
                return word.trim_end().to_owned();
            }
        }
    }

    pub fn expect(&mut self, word: &str) {
        assert_eq!(self.hear(), word, "from {}", self.role);
    }

    pub fn tell(&mut self, word: &str) {
        writeln!(self.input.as_mut().unwrap(), "{word}").unwrap();
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no pointers are involved. The child isn't reaped yet, so its id is still its own.
        assert_eq!(unsafe { libc::kill(self.id(), signal) }, 0);
        if signal == libc::SIGSTOP {
            // Until it has stopped, it could still take a word that is meant for another process.
            // SAFETY: the call fills what it is given, and doesn't reap the child.
            let mut state = unsafe { std::mem::zeroed::<libc::siginfo_t>() };
            let how = libc::WSTOPPED | libc::WNOWAIT;
            // SAFETY: as above.
            assert_eq!(unsafe { libc::waitid(libc::P_PID, self.id() as u32, &raw mut state, how) }, 0);
        }
    }

    /// Ends the child by SIGKILL.
    pub fn kill(mut self) {
        self.signal(libc::SIGKILL);
        let status = self.process.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{} had ended before: {status}", self.role);
    }

    /// Whether the child has ended in any way.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }

    /// Waits until it has stopped.
    pub fn wait_until_stopped(&mut self) {
        let mut status = 0;
        // SAFETY: the call writes `status`. A report that the child has stopped doesn't reap it.
        assert_eq!(unsafe { libc::waitpid(self.id(), &raw mut status, libc::WUNTRACED) }, self.id());
        assert!(libc::WIFSTOPPED(status), "{} ended: {status:#x}", self.role);
    }

    /// Waits until SIGKILL has ended it.
    pub fn wait_until_killed(&mut self) {
        let status = self.process.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{}: {status}", self.role);
    }

    /// Waits until it has ended well. Its descendants continue and hear us.
    pub fn wait_for_the_leader(&mut self) {
        let status = self.process.wait().unwrap();
        assert!(status.success(), "{}: {status}", self.role);
    }

    /// Waits until it has ended well.
    pub fn finish(mut self) {
        let status = self.wait();
        assert!(status.success(), "{}: {status}", self.role);
    }

    /// Waits until it has ended in any way.
    pub fn wait(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.process.wait().unwrap()
    }

    /// Sends a signal to it and its descendants.
    pub fn signal_all(&self, signal: i32) {
        // SAFETY: no pointers are involved. The leader isn't reaped yet, so the group's id is still its own.
        assert_eq!(unsafe { libc::kill(-self.id(), signal) }, 0);
    }

    /// Ends it and its descendants by SIGKILL.
    pub fn kill_all(&mut self) {
        self.signal_all(libc::SIGKILL);
        self.wait_until_killed();
        self.drain();
    }

    /// Waits until the child and all processes that share its output have ended.
    pub fn drain(&mut self) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {}
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            // SAFETY: no pointers are involved. The leader isn't reaped yet, so the group's id is still its own.
            unsafe { libc::kill(-self.id(), libc::SIGKILL) };
            let _ = self.process.wait();
        }
    }
}

/// Lets children play the role `rounds` in `folder` for some seeds, or for the seed in `EYEWALL_SEED`. If a seed ends
/// a child, the next child continues after that seed. At the end, the test names all of these seeds.
///
/// The role passes its arguments to [`each_round`].
pub fn play_rounds(folder: &Path, first: u64, count: u64) {
    let seed = std::env::var("EYEWALL_SEED").ok().and_then(|seed| seed.parse().ok());
    let (first, count) = seed.map_or((first, count), |seed| (seed, 1));
    let board = Board::create(&folder.join(BOARD), 1);
    let (mut next, end) = (first, first + count);
    let mut failed = Vec::new();
    while next < end && failed.len() < 10 {
        let (from, left) = (next.to_string(), (end - next).to_string());
        let status = Child::start("rounds", &[folder.to_str().unwrap(), &from, &left]).wait();
        if status.success() {
            break;
        }
        let seed = board.word(0).load(Relaxed);
        failed.push(format!("seed {seed}: {status}"));
        next = seed + 1;
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

const BOARD: &str = "board";

/// In a child: calls `round` with the folder and each seed from [`play_rounds`]. A round that hangs ends the process.
pub fn each_round(arguments: &[&str], mut round: impl FnMut(&Path, u64)) {
    let [folder, first, count] = arguments else { panic!("{arguments:?}") };
    let (folder, first) = (Path::new(folder), first.parse::<u64>().unwrap());
    let board = Board::open(folder.join(BOARD).to_str().unwrap());
    for seed in first..first + count.parse::<u64>().unwrap() {
        board.word(0).store(seed, Relaxed);
        // SAFETY: no pointers are involved.
        unsafe { libc::alarm(120) };
        round(folder, seed);
    }
}

/// Makes sure that even a killed test leaves no child behind.
fn end_with_parent() -> std::io::Result<()> {
    // SAFETY: no pointers are involved.
    match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A forked process.
pub struct Forked(pub i32);

/// Runs `work` in a forked child, which ends afterwards.
pub fn fork(work: impl FnOnce()) -> Forked {
    // SAFETY: the other threads of the callers are idle, or the child only calls what may be called then.
    match unsafe { libc::fork() } {
        0 => end_with(catch_unwind(AssertUnwindSafe(work)).is_ok()),
        id => {
            assert!(id > 0, "{}", std::io::Error::last_os_error());
            Forked(id)
        }
    }
}

impl Forked {
    pub fn kill(self) {
        // SAFETY: no pointers are involved. The child isn't reaped yet.
        assert_eq!(unsafe { libc::kill(self.0, libc::SIGKILL) }, 0);
        self.wait();
    }

    /// Whether it has ended. This doesn't reap it, so its id stays its own.
    pub fn is_dead(&self) -> bool {
        // SAFETY: an all-zero siginfo is valid, and the call writes it.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: as above.
        assert_eq!(unsafe { libc::waitid(libc::P_PID, self.0 as u32, &raw mut info, options) }, 0);
        // SAFETY: waitid has written it; it is zero if there was nothing to report.
        unsafe { info.si_pid() != 0 }
    }

    /// Waits until SIGKILL has ended it.
    pub fn reap(self) {
        let status = self.wait();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "a forked child: {status}");
    }

    /// Waits for its end.
    pub fn wait(self) -> ExitStatus {
        let mut status = 0;
        // SAFETY: the call writes `status`.
        assert_eq!(unsafe { libc::waitpid(self.0, &raw mut status, 0) }, self.0);
        ExitStatus::from_raw(status)
    }

    /// Waits until it has ended well.
    pub fn finish(self) {
        let status = self.wait();
        assert!(status.success(), "a forked child: {status}");
    }
}

/// Words that several processes see, in a mapped file.
pub struct Board(Region);

impl Board {
    pub fn create(path: &Path, words: usize) -> Self {
        let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        file.set_len(words as u64 * 8).unwrap();
        Self(Region::map(&file, words * 8, true).unwrap())
    }

    pub fn open(path: &str) -> Self {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let bytes = file.metadata().unwrap().len() as usize;
        Self(Region::map(&file, bytes, true).unwrap())
    }

    pub fn word(&self, number: usize) -> &AtomicU64 {
        self.0.word(number * 8)
    }
}

/// The generator `SplitMix64`.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

const VERSION_BYTES: usize = 4;

/// Asks the kernel to drop its cached pages of a file; it may refuse.
pub fn drop_pages(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: the descriptor is open; no pointers are involved.
    let failed = unsafe { libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(failed, 0);
}

/// `bytes` bytes (at least 10) that only this version and length of `key` has.
pub fn value(key: &[u8], version: u32, bytes: usize) -> Vec<u8> {
    assert!(bytes >= 10);
    let mut value = Vec::with_capacity(bytes + 8);
    value.extend_from_slice(&version.to_le_bytes());
    let mut stream = stream(key, version, bytes);
    while value.len() < bytes {
        value.extend_from_slice(&stream.next().to_le_bytes());
    }
    value.truncate(bytes);
    value
}

/// The version of a value of `key`. Checks every byte.
///
/// # Panics
/// If any byte is wrong, torn or of another key.
pub fn version_of(key: &[u8], value: &[u8]) -> u32 {
    let version = u32::from_le_bytes(value[..VERSION_BYTES].try_into().unwrap());
    let mut stream = stream(key, version, value.len());
    for (number, word) in value[VERSION_BYTES..].chunks(8).enumerate() {
        let wanted = stream.next().to_le_bytes();
        assert!(
            *word == wanted[..word.len()],
            "wrong bytes at word {number} of a value of {} bytes, key {:?}, version {version}",
            value.len(),
            String::from_utf8_lossy(key)
        );
    }
    version
}

/// Reads every byte of every entry, and returns how many entries there are.
pub fn read_all(cache: &Cache) -> u64 {
    let mut entries = 0;
    for hit in cache {
        version_of(hit.key(), &hit);
        entries += 1;
    }
    entries
}

fn stream(key: &[u8], version: u32, bytes: usize) -> Random {
    let seed = key
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    Random(seed ^ (u64::from(version) << 32) ^ bytes as u64)
}
