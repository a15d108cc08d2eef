//! A process that survives the truncation of its volumes also maps other files, has handlers of its own, or gets
//! SIGBUS from somebody. None of that belongs to the cache, so it goes where it would have gone without the cache.

#![cfg(test)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering::Relaxed;

use common::{Child, play};
use eyewall::{Cache, Options};
use eyewall_region::Region;

const OWN_HANDLER: i32 = 42;

#[test]
fn child() {
    play(&[("plays", plays)]);
}

extern "C" fn plain(signal: libc::c_int) {
    if signal == libc::SIGBUS {
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(OWN_HANDLER) }
    }
}

extern "C" fn with_information(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid siginfo.
    let code = unsafe { (*info).si_code };
    let told = matches!(code, libc::BUS_ADRERR | libc::SI_USER | libc::SI_TKILL) && !context.is_null();
    if told {
        plain(signal);
    }
}

/// Leaves a fault as it is, and isn't called again.
extern "C" fn only_once(_: libc::c_int) {}

fn handle(handler: libc::sighandler_t, flags: i32) {
    // SAFETY: all zeros are a valid action.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: a valid action, whose handler lives as long as the program.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) }, 0);
}

/// Installs the handler before ours, and lets the signal come in this way.
fn plays(arguments: &[&str]) {
    match arguments[0] {
        "default" => handle(libc::SIG_DFL, 0),
        "ignored" => handle(libc::SIG_IGN, 0),
        "plain" => handle(plain as extern "C" fn(_) as usize, 0),
        "only once" => handle(only_once as extern "C" fn(_) as usize, libc::SA_RESETHAND),
        _ => handle(with_information as extern "C" fn(_, _, _) as usize, libc::SA_SIGINFO),
    }
    let caches: Vec<Cache> = (0..2).map(|_| survivor()).collect();
    // A region that was watched, and isn't any more.
    drop(survivor());
    if arguments[1] == "sent" {
        // SAFETY: no pointers are involved.
        unsafe { libc::raise(libc::SIGBUS) };
    } else {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let region = Region::map(&file, 4096, true).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(region.word(0).load(Relaxed), 0);
    }
    assert!(caches.iter().all(|cache| !cache.is_failed()));
}

fn survivor() -> Cache {
    Options::new().size(1 << 20).survive_sigbus(true).anonymous().unwrap()
}

/// How a process with this handler ended: by a signal, or with a code.
fn end(handler: &str, how: &str) -> (Option<i32>, Option<i32>) {
    let status = Child::start("plays", &[handler, how]).wait();
    (status.signal(), status.code())
}

#[test]
fn a_fault_elsewhere_ends_the_process_as_before() {
    for handler in ["default", "ignored"] {
        assert_eq!(end(handler, "fault"), (Some(libc::SIGBUS), None), "{handler}");
    }
}

#[test]
fn a_sent_signal_acts_as_before() {
    assert_eq!(end("default", "sent"), (Some(libc::SIGBUS), None));
    assert_eq!(end("ignored", "sent"), (None, Some(0)));
}

#[test]
fn the_programs_own_handler_is_reached() {
    for handler in ["plain", "with information"] {
        for how in ["fault", "sent"] {
            assert_eq!(end(handler, how), (None, Some(OWN_HANDLER)), "{handler}, {how}");
        }
    }
}

#[test]
fn a_one_shot_handler_is_called_once() {
    assert_eq!(end("only once", "fault"), (Some(libc::SIGBUS), None));
    assert_eq!(end("only once", "sent"), (None, Some(0)));
}
