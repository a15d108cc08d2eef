//! The system calls of look-ups and puts. The kernel ends the test process if it makes others.

#![cfg(test)]

mod common;

use common::{disk_folder, fast_folder, fork, value};
use eyewall::{Cache, Options, PutOptions};

const SIZE: u64 = 4 << 20;
/// Several times what the volume holds.
const PUTS: u32 = 20_000;
const BYTES: usize = 1000;

fn open(folder: &std::path::Path) -> Cache {
    Options::new().size(SIZE).open(folder.join("volume")).unwrap()
}

/// Puts and gets, with everything prepared.
struct Work<'a> {
    cache: &'a Cache,
    value: Vec<u8>,
}

impl<'a> Work<'a> {
    fn new(cache: &'a Cache) -> Self {
        let work = Self { cache, value: value(b"key", 0, BYTES) };
        // The first calls of a thread make some system calls, and the volume is marked as written to.
        work.run(2 * PUTS);
        work
    }

    /// How many gets were hits.
    fn run(&self, puts: u32) -> u32 {
        let mut hits = 0;
        for number in 0..puts {
            self.cache.put(number.to_le_bytes(), &self.value).unwrap();
            for back in [0, 1, 1000] {
                let key = number.saturating_sub(back).to_le_bytes();
                hits += u32::from(self.cache.get(key).unwrap().is_some_and(|hit| hit[10] == self.value[10]));
            }
        }
        hits
    }
}

/// Ends this process by the only call that is left.
fn leave(well: bool) -> ! {
    // SAFETY: nothing is returned to.
    unsafe { libc::syscall(libc::SYS_exit, libc::c_long::from(!well)) };
    unreachable!("a process has left")
}

/// From now on, every call ends this process, except the return from a signal and the exit. (Not seccomp's strict
/// mode, which also forbids reading the CPU's clock.)
fn forbid_everything() {
    filter(&[libc::SYS_exit, libc::SYS_rt_sigreturn], libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
}

/// From now on, these calls end this process.
fn forbid(calls: &[libc::c_long]) {
    filter(calls, libc::SECCOMP_RET_KILL_PROCESS, libc::SECCOMP_RET_ALLOW);
}

/// Sets what happens at these calls, and at all others.
fn filter(calls: &[libc::c_long], these: u32, others: u32) {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // The call's number is the first word that the filter sees.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in calls {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(libc::sock_filter { code: equal as u16, jt: 0, jf: 1, k: *call as u32 });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, these));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, others));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: no pointers are involved.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    // SAFETY: the program lives until it was read.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }, 0);
}

#[test]
fn in_shared_memory_no_operation_makes_a_system_call() {
    let folder = fast_folder();
    let child = fork(|| {
        let cache = open(folder.path());
        // Otherwise the first put into each 64 KiB makes a call.
        cache.populate().unwrap();
        let work = Work::new(&cache);
        forbid_everything();
        leave(work.run(PUTS) > 2 * PUTS);
    });
    child.finish();
}

const SYNCS: [libc::c_long; 6] = [
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_msync,
    libc::SYS_sync_file_range,
    libc::SYS_syncfs,
    libc::SYS_sync,
];

#[test]
fn on_a_disk_no_put_syncs_and_warm_pages_need_no_advice() {
    let folder = disk_folder();
    let child = fork(|| {
        let cache = open(folder.path());
        cache.populate().unwrap();
        let work = Work::new(&cache);
        let advice = [libc::SYS_madvise, libc::SYS_mincore, libc::SYS_mmap, libc::SYS_mprotect];
        forbid(&[&SYNCS[..], &advice[..]].concat());
        leave(work.run(PUTS) > 2 * PUTS);
    });
    child.finish();
}

#[test]
fn a_forbidden_call_ends_a_process() {
    let folder = fast_folder();
    let cache = open(folder.path());
    let child = fork(|| {
        forbid(&SYNCS);
        cache.put_with("key", "value", &PutOptions::new()).unwrap();
        let _ = cache.sync();
        leave(true);
    });
    assert!(!child.wait().success());
    let child = fork(|| {
        forbid_everything();
        // SAFETY: no pointers are involved.
        unsafe { libc::sched_yield() };
        leave(true);
    });
    assert!(!child.wait().success());
}
