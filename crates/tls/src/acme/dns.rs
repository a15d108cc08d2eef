//! The operator's command that sets and clears TXT records, for DNS-01 (RFC 8555, section 8.4).

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// For one call. It has to wait until the authority can see the record.
const TIMEOUT: Duration = Duration::from_mins(2);

/// What an error quotes of the command's messages, at most.
const MESSAGE_BYTES_MAX: u64 = 4096;

/// Why the command didn't do it.
#[derive(Debug, thiserror::Error)]
pub(super) enum DnsError {
    #[error("can't run {}: {source}", command.display())]
    NotRun { command: PathBuf, source: std::io::Error },
    #[error("{} {task} {name} failed ({status}): {message}", command.display())]
    Failed { command: PathBuf, task: &'static str, name: String, status: std::process::ExitStatus, message: String },
    #[error("{} {task} {name} took more than {} seconds and was ended", command.display(), timeout.as_secs())]
    Late { command: PathBuf, task: &'static str, name: String, timeout: Duration },
}

/// What the command is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Set,
    Clear,
}

/// Calls the command, and waits for it.
pub(super) async fn call(command: &Path, task: Task, name: &str, value: &str) -> Result<(), DnsError> {
    call_within(TIMEOUT, command, task, name, value).await
}

async fn call_within(timeout: Duration, command: &Path, task: Task, name: &str, value: &str) -> Result<(), DnsError> {
    let word = match task {
        Task::Set => "set",
        Task::Clear => "clear",
    };
    let not_run = |source| DnsError::NotRun { command: command.to_owned(), source };
    let mut child = Command::new(command)
        .args([word, name, value])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(not_run)?;
    let stderr = child.stderr.take();
    let finished = async {
        let mut message = Vec::new();
        if let Some(mut stderr) = stderr {
            // What goes beyond is read and dropped, so that the command is never held up.
            let _ = (&mut stderr).take(MESSAGE_BYTES_MAX).read_to_end(&mut message).await;
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
        }
        (child.wait().await, message)
    };
    let Ok((status, message)) = tokio::time::timeout(timeout, finished).await else {
        return Err(DnsError::Late { command: command.to_owned(), task: word, name: name.to_owned(), timeout });
    };
    let status = status.map_err(not_run)?;
    if status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&message).trim().to_owned();
    Err(DnsError::Failed { command: command.to_owned(), task: word, name: name.to_owned(), status, message })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("command");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    #[tokio::test]
    async fn the_command_gets_task_name_and_value() {
        let folder = tempfile::tempdir().unwrap();
        let command = script(folder.path(), r#"echo "$@" >> "$0.log""#);
        call(&command, Task::Set, "_acme-challenge.example.org", "abc").await.unwrap();
        call(&command, Task::Clear, "_acme-challenge.example.org", "abc").await.unwrap();
        let log = std::fs::read_to_string(folder.path().join("command.log")).unwrap();
        assert_eq!(log, "set _acme-challenge.example.org abc\nclear _acme-challenge.example.org abc\n");
    }

    #[tokio::test]
    async fn an_error_says_what_the_command_said() {
        let folder = tempfile::tempdir().unwrap();
        let command = script(folder.path(), "echo no such zone >&2; exit 3");
        let error = call(&command, Task::Set, "a", "b").await.unwrap_err().to_string();
        assert!(error.ends_with("command set a failed (exit status: 3): no such zone"), "{error}");
        // More than a pipe holds.
        let command = script(folder.path(), "head -c 200000 /dev/zero >&2; exit 1");
        assert!(call(&command, Task::Set, "a", "b").await.unwrap_err().to_string().len() < 5000);
        let error = call(&folder.path().join("none"), Task::Set, "a", "b").await.unwrap_err().to_string();
        assert!(error.starts_with("can't run"), "{error}");
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let command = script(folder.path(), "exec sleep 1000");
        let error = call_within(Duration::from_millis(20), &command, Task::Set, "a", "b").await.unwrap_err();
        assert!(matches!(error, DnsError::Late { .. }), "{error}");
    }
}
