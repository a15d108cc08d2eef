//! Refuses system calls that no part of the server needs, to this thread and all that it starts: by seccomp.
//!
//! It is a list of refused calls, not of allowed ones: commands of the operator run inside, too, and a C library may begin to use
//! another call. The unit of systemd has a list of allowed calls.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use super::Extent;

/// Calls that fail with EPERM.
const REFUSED: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Namespaces and file systems.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Parts of the kernel that had many faults.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
];

/// Calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[i64] = &[libc::SYS_kexec_file_load];

/// Flags of `clone` that make a namespace.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWCGROUP,
];

/// How much is in force, and what is missing.
pub(super) fn restrict() -> (Extent, Option<String>) {
    match programs() {
        Ok(programs) => match programs.iter().try_for_each(|program| apply_filter(program)) {
            Ok(()) => (Extent::Whole, None),
            Err(error) => (
                Extent::None,
                Some(format!("this kernel lets no process restrict its system calls by seccomp: {error}")),
            ),
        },
        Err(error) => (Extent::None, Some(format!("seccomp: {error}"))),
    }
}

/// One filter for each error that refused calls get.
fn programs() -> Result<[BpfProgram; 2], BackendError> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(*flag as u32);
        SeccompRule::new(vec![SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?])
    });
    refused.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    // The flags of clone3 are in memory, where no filter can read them. As if the kernel were older, the C library uses clone instead.
    let unknown = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([with_native_numbers(filter(refused, libc::EPERM)?), filter(unknown, libc::ENOSYS)?])
}

fn filter(calls: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, BackendError> {
    let architecture = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls, SeccompAction::Allow, SeccompAction::Errno(error as u32), architecture)?.try_into()
}

/// Puts a check before a filter: x86-64 has a second number for each call, from 2^30 on (x32), which all fail with EPERM.
fn with_native_numbers(program: BpfProgram) -> BpfProgram {
    use seccompiler::sock_filter;
    // The constants of linux/bpf_common.h and linux/seccomp.h: load a word (the number of the call); jump if it is at least `k`; return.
    let load = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let jump = sock_filter { code: 0x35, jt: 0, jf: 1, k: 1 << 30 };
    let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::EPERM as u32 };
    [load, jump, refuse].into_iter().chain(program).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::io::Errno;
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

    use super::*;

    /// A filter is for a thread, so that a test can have one of its own.
    fn restricted<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        std::thread::scope(|scope| {
            let work = || {
                assert_eq!(restrict(), (Extent::Whole, None));
                work()
            };
            scope.spawn(work).join().unwrap()
        })
    }

    #[test]
    fn a_refused_call_fails() {
        let copy = || pidfd_getfd(pidfd_open(getpid(), PidfdFlags::empty())?, 0, PidfdGetfdFlags::empty());
        // A container may refuse it to all.
        let before = copy().map(drop);
        assert_eq!(restricted(copy).map(drop), Err(Errno::PERM), "without the filter: {before:?}");
        assert_eq!(copy().map(drop), before, "other threads are as before");
    }

    #[test]
    fn threads_and_programs_start_and_namespaces_do_not() {
        let succeeds = |words: &[&str]| {
            let ended = Command::new(words[0]).args(&words[1..]).output();
            ended.map(|output| output.status.success())
        };
        restricted(|| {
            assert_eq!(std::thread::spawn(|| 7).join().unwrap(), 7);
            assert!(succeeds(&["true"]).unwrap());
            match succeeds(&["unshare", "--user", "true"]) {
                Ok(has_made_one) => assert!(!has_made_one),
                Err(error) => println!("skipped: no `unshare`: {error}"),
            }
        });
    }
}
