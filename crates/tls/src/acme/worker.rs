//! The thread that gets and renews certificates.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use instant_acme::{Account, CertificateIdentifier};
use tokio::sync::oneshot;
use zeroize::Zeroizing;

use super::account;
use super::challenge::{ChallengeKind, Challenges};
use super::client::Client;
use super::order::{self, Issued, OrderError, Presented, Wanted};
use super::renewal::{self, Attempts, Lifetime, Window};
use super::settings::AcmeSettings;
use super::state::State;
use super::{AcmeError, SetState, SetStatus};
use crate::clock::{Clock, locked};
use crate::file::{self, Stamp};
use crate::identity::{Identity, IdentityFiles};

/// When to look again where another process works with the authority.
const BUSY: Duration = Duration::from_secs(10);

/// When to try again where the folder can't be written.
const FOLDER_AGAIN: Duration = Duration::from_mins(1);

/// The least and the most time from the beginning of a round over all sets to that of the next.
const ROUND_MIN: Duration = Duration::from_secs(1);
const ROUND_MAX: Duration = Duration::from_hours(24);

/// For an order with all that belongs to it, so that one that hangs doesn't hold up the other sets forever.
const ORDER_TIMEOUT: Duration = Duration::from_mins(10);

/// For clearing what an order left that was given up, when the thread ends.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Worker {
    settings: AcmeSettings,
    state: State,
    client: Client,
    clock: Arc<dyn Clock>,
    started: SystemTime,
    challenges: Arc<Challenges>,
    presented: Presented,
    /// Kept while it works: it knows where the authority's pages are.
    account: Option<Account>,
    sets: Vec<Set>,
    statuses: Arc<Mutex<Vec<SetStatus>>>,
}

/// A set of names.
struct Set {
    names: Vec<String>,
    /// That of the file when it was last read.
    stamp: Option<Stamp>,
    /// The certificate in the file, if there is one.
    held: Option<Held>,
    /// What the authority last said of the renewal of what is held.
    window: Option<Window>,
    /// When to ask for that again.
    ask: SystemTime,
}

struct Held {
    identity: Identity,
    lifetime: Lifetime,
}

impl Held {
    /// How the authority knows the certificate; `None` where it names no issuer's key.
    fn id(&self) -> Option<CertificateIdentifier<'static>> {
        let certificate = self.identity.certified().cert.first()?;
        CertificateIdentifier::try_from(certificate).ok().map(CertificateIdentifier::into_owned)
    }
}

/// What a step over a set comes to.
enum Next {
    /// There is more to do at once.
    Now,
    At(SystemTime),
}

impl Worker {
    pub(super) fn new(
        settings: AcmeSettings,
        sets: Vec<Vec<String>>,
        state: State,
        challenges: Arc<Challenges>,
        statuses: Arc<Mutex<Vec<SetStatus>>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AcmeError> {
        let client = Client::new(settings.roots.as_deref())?;
        let presented = Presented::new(challenges.clone(), settings.dns_command.clone());
        let started = clock.now();
        let set = |names| Set { names, stamp: None, held: None, window: None, ask: started };
        let sets = sets.into_iter().map(set).collect();
        Ok(Self { settings, state, client, clock, started, challenges, presented, account: None, sets, statuses })
    }

    /// Works until it is stopped.
    pub(super) async fn run(mut self, stopped: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = stopped => {}
            () = self.work() => {}
        }
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, self.presented.clear()).await;
    }

    async fn work(&mut self) {
        loop {
            let began = self.clock.now();
            let mut next = began + ROUND_MAX;
            for index in 0..self.sets.len() {
                next = next.min(self.step(index).await);
            }
            self.clock.sleep_until(next.max(began + ROUND_MIN)).await;
        }
    }

    /// Does what is to be done for a set, and says when to come again.
    async fn step(&mut self, index: usize) -> SystemTime {
        loop {
            let now = self.clock.now();
            self.read(index);
            if self.sets[index].held.is_some() && self.sets[index].ask <= now {
                self.ask(index, now).await;
            }
            if let Some(due) = self.due(index, now) {
                self.show(index, SetState::Valid, due, &Attempts::default());
                return due.min(self.sets[index].ask);
            }
            match self.attempt(index, now).await {
                Ok(Next::Now) => {}
                Ok(Next::At(next)) => return next,
                Err(error) => {
                    let folder = self.state.folder().display();
                    let error = format!("can't use the folder {folder} for certificates: {error}");
                    tracing::warn!(names = self.sets[index].names.join(" "), error, "no certificate was ordered");
                    let attempts = Attempts { error: Some(error), failures: 1, ..Attempts::default() };
                    self.show(index, SetState::Failing, now + FOLDER_AGAIN, &attempts);
                    return now + FOLDER_AGAIN;
                }
            }
        }
    }

    /// When the certificate of a set is to be renewed, unless that is now or it has none.
    fn due(&self, index: usize, now: SystemTime) -> Option<SystemTime> {
        let set = &self.sets[index];
        let due = set.held.as_ref()?.lifetime.renewal(set.window);
        (now < due).then_some(due)
    }

    /// Reads the file of a set if it is another than before. One that can't be used is as none: an order replaces it.
    fn read(&mut self, index: usize) {
        let files = self.files(index);
        let set = &mut self.sets[index];
        let stamp = Stamp::of(&files.certificate);
        if stamp == set.stamp {
            return;
        }
        set.stamp = stamp;
        set.window = None;
        set.ask = self.clock.now();
        set.held = match Identity::load(&files) {
            Ok(identity) => Some(Held::new(identity)),
            Err(error) => {
                if !error.is_missing() {
                    tracing::warn!(%error, "a certificate is ordered anew");
                }
                None
            }
        };
    }

    fn files(&self, index: usize) -> IdentityFiles {
        let path = self.state.certificate(&self.sets[index].names);
        IdentityFiles { certificate: path.clone(), key: path, ocsp: None }
    }

    /// Asks the authority when it wants the certificate of a set to be renewed (ARI, RFC 9773). Where it doesn't say, what it said before
    /// counts, and else the lifetime.
    async fn ask(&mut self, index: usize, now: SystemTime) {
        let Some(id) = self.sets[index].held.as_ref().and_then(Held::id) else {
            self.sets[index].ask = now + ROUND_MAX;
            return;
        };
        let answer = self.renewal_info(&id).await;
        let set = &mut self.sets[index];
        match answer {
            Ok(Some((window, again))) => {
                set.window = Some(window);
                set.ask = renewal::ask_again(now, again);
            }
            Ok(None) => set.ask = now + renewal::ASK_AGAIN,
            Err(OrderError::Acme(instant_acme::Error::Unsupported(_))) => set.ask = now + ROUND_MAX,
            Err(error) => {
                tracing::debug!(names = set.names.join(" "), %error, "the authority doesn't say when to renew");
                set.ask = now + renewal::ASK_AGAIN;
            }
        }
    }

    async fn renewal_info(&mut self, id: &CertificateIdentifier<'_>) -> Result<Option<(Window, Duration)>, OrderError> {
        if self.account.is_none() {
            self.account = account::load(&self.client, &self.state).await?;
        }
        let Some(account) = &self.account else { return Ok(None) };
        let (info, again) = account.renewal_info(id).await?;
        let window = info.suggested_window;
        Ok(Some((Window { start: window.start.into(), end: window.end.into() }, again)))
    }

    /// Orders a certificate, if nobody else does just now and no failure forbids it.
    async fn attempt(&mut self, index: usize, now: SystemTime) -> io::Result<Next> {
        let Some(_lock) = self.state.try_lock()? else {
            let attempts = self.state.attempts(&self.sets[index].names);
            self.show(index, SetState::Waiting, now + BUSY, &attempts);
            return Ok(Next::At(now + BUSY));
        };
        // Another process may have done it since.
        self.read(index);
        if self.due(index, now).is_some() {
            return Ok(Next::Now);
        }
        let names = self.sets[index].names.clone();
        let mut attempts = self.state.attempts(&names);
        let mut next = attempts.next(self.started);
        if let Some(held) = &self.sets[index].held {
            next = next.max(attempts.pause(&held.lifetime));
        }
        if now < next {
            let state = if attempts.failures > 0 { SetState::Failing } else { SetState::Valid };
            self.show(index, state, next, &attempts);
            return Ok(Next::At(next));
        }
        self.show(index, SetState::Ordering, now, &attempts);
        self.challenges.remove_left_over();
        // Noted first: a process that is killed again and again, or that can't write, leaves the authority alone.
        let mut begun = attempts.clone();
        begun.failed(now, "a process ended during the order".to_owned(), None, chance());
        self.state.keep_attempts(&names, &begun)?;
        let result = self.obtain(index, attempts.failures).await;
        let now = self.clock.now();
        let next = match result {
            Ok(not_after) => {
                attempts.succeeded(now);
                let seconds = not_after.duration_since(now).unwrap_or_default().as_secs();
                tracing::info!(names = names.join(" "), hours = seconds / 3600, "a certificate was issued");
                Next::Now
            }
            Err(error) => {
                let error = error.to_string();
                attempts.failed(now, error.clone(), self.client.take_retry_after(), chance());
                let next = attempts.next(self.started);
                let seconds = next.duration_since(now).unwrap_or_default().as_secs();
                let (names, failures) = (names.join(" "), attempts.failures);
                tracing::warn!(names, error, failures, again_in_seconds = seconds, "no certificate was issued");
                self.show(index, SetState::Failing, next, &attempts);
                Next::At(next)
            }
        };
        self.state.keep_attempts(&names, &attempts)?;
        Ok(next)
    }

    /// Orders a certificate, checks it, and puts it into the file. Until when it is valid.
    async fn obtain(&mut self, index: usize, failures: u32) -> Result<SystemTime, OrderError> {
        self.client.take_retry_after();
        let issued = match tokio::time::timeout(ORDER_TIMEOUT, self.order(index, failures)).await {
            Ok(issued) => issued,
            Err(_) => Err(OrderError::Late(ORDER_TIMEOUT)),
        };
        self.presented.clear().await;
        if let Err(error) = &issued {
            // Another time the authority's pages may be elsewhere, or it may have forgotten the account.
            self.account = None;
            if error.is_about_account() {
                self.state.put_account_aside()?;
            }
        }
        let Issued { chain, key } = issued?;
        let files = self.files(index);
        let identity = Identity::from_pem(&files, chain.as_bytes(), key.as_bytes())?;
        let names = &self.sets[index].names;
        if let Some(name) = names.iter().find(|name| !identity.names().contains(name)) {
            return Err(OrderError::Unusable(format!("the certificate isn't for {name}")));
        }
        let mut text = Zeroizing::new(Vec::with_capacity(chain.len() + key.len() + 1));
        text.extend_from_slice(chain.trim_end().as_bytes());
        text.push(b'\n');
        text.extend_from_slice(key.as_bytes());
        file::replace(&files.certificate, &text)?;
        Ok(identity.not_after())
    }

    async fn order(&mut self, index: usize, failures: u32) -> Result<Issued, OrderError> {
        if self.account.is_none() {
            self.account = Some(account::load_or_make(&self.client, &self.state, &self.settings).await?);
        }
        let Some(account) = &self.account else { return Err(OrderError::Unusable("there is no account".to_owned())) };
        let set = &self.sets[index];
        let wanted = Wanted {
            names: &set.names,
            profile: self.settings.profile.as_deref(),
            replaces: set.held.as_ref().and_then(Held::id),
            kinds: kinds(&self.settings.challenges, failures),
        };
        order::issue(account, &wanted, &mut self.presented).await
    }

    fn show(&self, index: usize, state: SetState, next: SystemTime, attempts: &Attempts) {
        let held = self.sets[index].held.as_ref();
        if let Some(status) = locked(&self.statuses).get_mut(index) {
            status.state = state;
            status.not_after = held.map(|held| held.identity.not_after());
            status.next = Some(next);
            status.failures = attempts.failures;
            status.error.clone_from(&attempts.error);
        }
    }
}

impl Held {
    fn new(identity: Identity) -> Self {
        let first = identity.certified().cert.first();
        let lifetime = Lifetime {
            not_before: identity.not_before(),
            not_after: identity.not_after(),
            share: first.map_or(0.5, |certificate| renewal::share(certificate)),
        };
        Self { identity, lifetime }
    }
}

/// The kinds of challenge in the order of this attempt: after a failure another goes first.
fn kinds(allowed: &[ChallengeKind], failures: u32) -> Vec<ChallengeKind> {
    let mut kinds = allowed.to_vec();
    kinds.rotate_left(failures as usize % allowed.len().max(1));
    kinds
}

/// A random number from 0 to 1; the middle where the system gives none.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    match aws_lc_rs::rand::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_another_kind_of_challenge_goes_first() {
        use ChallengeKind::{Http01, TlsAlpn01};
        let allowed = [TlsAlpn01, Http01];
        assert_eq!(kinds(&allowed, 0), [TlsAlpn01, Http01]);
        assert_eq!(kinds(&allowed, 1), [Http01, TlsAlpn01]);
        assert_eq!(kinds(&allowed, 2), [TlsAlpn01, Http01]);
        assert_eq!(kinds(&allowed, u32::MAX), [Http01, TlsAlpn01]);
    }
}
