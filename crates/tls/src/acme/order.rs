//! From an order to a certificate (RFC 8555, section 7.4).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeType, Identifier, NewOrder,
    Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use zeroize::Zeroizing;

use super::challenge::{ChallengeKind, Challenges};
use super::dns::{self, DnsError, Task};
use crate::identity::IdentityError;

/// How long the authority may take to ask, and to issue.
const POLLING: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(200)).backoff(1.5).timeout(Duration::from_mins(3));

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum OrderError {
    #[error(transparent)]
    Acme(#[from] instant_acme::Error),
    #[error("the authority could not validate {name} by {}: {reason}", kind.name())]
    NotValidated { name: String, kind: ChallengeKind, reason: String },
    #[error("the authority validates {name} by {offered} only; allow one of these challenges")]
    NoChallenge { name: String, offered: String },
    #[error("the authority's answer is not usable: {0}")]
    Unusable(String),
    #[error(transparent)]
    Dns(#[from] DnsError),
    #[error("can't write: {0}")]
    File(#[from] io::Error),
    #[error("the authority's certificate can't be used: {0}")]
    Certificate(#[from] IdentityError),
    #[error("a key or a request for a certificate can't be made: {0}")]
    Request(#[from] rcgen::Error),
    #[error("the order took more than {} minutes", .0.as_secs() / 60)]
    Late(Duration),
}

impl OrderError {
    /// Whether the authority doesn't know the account, or not any more (RFC 8555, section 6.7).
    pub(super) fn is_about_account(&self) -> bool {
        let Self::Acme(instant_acme::Error::Api(problem)) = self else { return false };
        problem.r#type.as_deref().is_some_and(|kind| kind.ends_with(":accountDoesNotExist"))
    }
}

/// The names of an order.
pub(super) struct Wanted<'a> {
    pub(super) names: &'a [String],
    pub(super) profile: Option<&'a str>,
    /// The certificate that is renewed (RFC 9773, section 5).
    pub(super) replaces: Option<CertificateIdentifier<'static>>,
    /// The kinds of challenge, best first.
    pub(super) kinds: Vec<ChallengeKind>,
}

/// Chain and key in PEM.
pub(super) struct Issued {
    pub(super) chain: String,
    pub(super) key: Zeroizing<String>,
}

/// The answers that an authority may ask for just now. [`Presented::clear`] takes them back, also after an order that was given up.
pub(super) struct Presented {
    challenges: Arc<Challenges>,
    dns_command: Option<PathBuf>,
    answers: Vec<Answer>,
}

enum Answer {
    Http { token: String },
    Tls { name: String },
    Dns { name: String, value: String },
}

/// A challenge whose answer is ready, for a message if it fails.
type Told = (String, ChallengeKind);

/// Orders a certificate and waits for it.
pub(super) async fn issue(
    account: &Account,
    wanted: &Wanted<'_>,
    presented: &mut Presented,
) -> Result<Issued, OrderError> {
    let mut order = new_order(account, wanted).await?;
    let told = answer_challenges(&mut order, wanted, presented).await?;
    if order.state().status != OrderStatus::Ready {
        let polled = order.poll_ready(&POLLING).await;
        if !matches!(polled, Ok(OrderStatus::Ready)) {
            return Err(explain(&mut order, &told, polled.err()).await);
        }
    }
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(wanted.names)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key)?;
    order.finalize_csr(request.der()).await?;
    let chain = order.poll_certificate(&POLLING).await?;
    Ok(Issued { chain, key: Zeroizing::new(key.serialize_pem()) })
}

async fn new_order(account: &Account, wanted: &Wanted<'_>) -> Result<Order, OrderError> {
    let identifiers: Vec<Identifier> = wanted.names.iter().map(|name| identifier(name)).collect();
    let mut new = NewOrder::new(&identifiers);
    if let Some(profile) = wanted.profile {
        new = new.profile(profile);
    }
    let Some(replaces) = &wanted.replaces else { return Ok(account.new_order(&new).await?) };
    new = new.replaces(replaces.clone());
    match account.new_order(&new).await {
        Ok(order) => Ok(order),
        Err(error) if is_about_replacement(&error) => {
            // The certificate is another account's, or was replaced already. An order that replaces none is as good.
            let plain = Wanted { names: wanted.names, profile: wanted.profile, replaces: None, kinds: Vec::new() };
            Box::pin(new_order(account, &plain)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether an order might be taken that replaces nothing. An authority that wants to be left alone is.
fn is_about_replacement(error: &instant_acme::Error) -> bool {
    match error {
        instant_acme::Error::Unsupported(_) => true,
        instant_acme::Error::Api(problem) => {
            let kind = problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next());
            matches!(kind, Some("alreadyReplaced" | "conflict" | "malformed" | "serverInternal" | "unauthorized"))
        }
        _ => false,
    }
}

fn identifier(name: &str) -> Identifier {
    name.parse().map_or_else(|_| Identifier::Dns(name.to_owned()), Identifier::Ip)
}

/// Makes the answers ready, then tells the authority to ask for them.
async fn answer_challenges(
    order: &mut Order,
    wanted: &Wanted<'_>,
    presented: &mut Presented,
) -> Result<Vec<Told>, OrderError> {
    let mut told = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization?;
        match authorization.status {
            AuthorizationStatus::Valid => continue,
            AuthorizationStatus::Pending => {}
            other => return Err(OrderError::Unusable(format!("an authorization of a new order is {other:?}"))),
        }
        told.push(answer_challenge(&mut authorization, wanted, presented).await?);
    }
    Ok(told)
}

async fn answer_challenge<'a>(
    authorization: &'a mut AuthorizationHandle<'a>,
    wanted: &Wanted<'_>,
    presented: &mut Presented,
) -> Result<Told, OrderError> {
    let offered = |kind: &ChallengeKind| authorization.challenges.iter().any(|offer| offer.r#type == kind_of(*kind));
    let Some(kind) = wanted.kinds.iter().copied().find(offered) else {
        let offered: Vec<&str> = authorization.challenges.iter().map(|offer| word(&offer.r#type)).collect();
        let name = authorization.identifier().to_string();
        return Err(OrderError::NoChallenge { name, offered: offered.join(", ") });
    };
    // Without the asterisk of a wildcard.
    let name = match authorization.identifier().identifier {
        Identifier::Dns(name) => name.clone(),
        Identifier::Ip(address) => address.to_string(),
        _ => return Err(OrderError::Unusable("an authorization is for no name".to_owned())),
    };
    if !wanted.names.iter().any(|known| known.strip_prefix("*.").unwrap_or(known) == name) {
        return Err(OrderError::Unusable(format!("it is about {name}, which wasn't asked for")));
    }
    let missing = || OrderError::Unusable("a challenge is gone".to_owned());
    let mut challenge = authorization.challenge(kind_of(kind)).ok_or_else(missing)?;
    let (token, authorization) = (challenge.token.clone(), challenge.key_authorization());
    match kind {
        ChallengeKind::Http01 => presented.put_http(&token, authorization.as_str())?,
        ChallengeKind::TlsAlpn01 => presented.put_tls(&name, &authorization.dns_value())?,
        ChallengeKind::Dns01 => presented.put_dns(&name, &authorization.dns_value()).await?,
    }
    challenge.set_ready().await?;
    Ok((name, kind))
}

fn kind_of(kind: ChallengeKind) -> ChallengeType {
    match kind {
        ChallengeKind::Http01 => ChallengeType::Http01,
        ChallengeKind::TlsAlpn01 => ChallengeType::TlsAlpn01,
        ChallengeKind::Dns01 => ChallengeType::Dns01,
    }
}

fn word(kind: &ChallengeType) -> &str {
    match kind {
        ChallengeType::Http01 => "http-01",
        ChallengeType::TlsAlpn01 => "tls-alpn-01",
        ChallengeType::Dns01 => "dns-01",
        ChallengeType::Unknown(word) => word,
        _ => "others",
    }
}

/// What the authority says of the challenge that failed; else the error of the order.
async fn explain(order: &mut Order, told: &[Told], error: Option<instant_acme::Error>) -> OrderError {
    // The order keeps authorizations as they were before the authority asked.
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            break;
        }
        let failed = authorization.challenges.iter().find_map(|challenge| Some((challenge, challenge.error.as_ref()?)));
        if let Some((challenge, problem)) = failed {
            let name = authorization.identifier().identifier.authorized(false).to_string();
            let kind = told.iter().find(|(_, kind)| kind_of(*kind) == challenge.r#type);
            if let Some((_, kind)) = kind {
                let reason = problem.detail.clone().unwrap_or_else(|| problem.to_string());
                return OrderError::NotValidated { name, kind: *kind, reason };
            }
        }
    }
    error.map_or_else(|| OrderError::Unusable("the order is invalid, for no reason".to_owned()), OrderError::Acme)
}

impl Presented {
    pub(super) fn new(challenges: Arc<Challenges>, dns_command: Option<PathBuf>) -> Self {
        Self { challenges, dns_command, answers: Vec::new() }
    }

    // Each is noted before it is made: what was made in part is cleared, too.

    fn put_http(&mut self, token: &str, authorization: &str) -> io::Result<()> {
        self.answers.push(Answer::Http { token: token.to_owned() });
        self.challenges.put_http(token, authorization)
    }

    fn put_tls(&mut self, name: &str, digest: &str) -> io::Result<()> {
        self.answers.push(Answer::Tls { name: name.to_owned() });
        self.challenges.put_tls(name, digest)
    }

    async fn put_dns(&mut self, name: &str, value: &str) -> Result<(), OrderError> {
        let Some(command) = self.dns_command.clone() else {
            return Err(OrderError::Unusable("there is no command for DNS-01".to_owned()));
        };
        let name = format!("_acme-challenge.{name}");
        self.answers.push(Answer::Dns { name: name.clone(), value: value.to_owned() });
        Ok(dns::call(&command, Task::Set, &name, value).await?)
    }

    /// Takes all answers back.
    pub(super) async fn clear(&mut self) {
        while let Some(answer) = self.answers.pop() {
            match answer {
                Answer::Http { token } => self.challenges.remove_http(&token),
                Answer::Tls { name } => self.challenges.remove_tls(&name),
                Answer::Dns { name, value } => {
                    let Some(command) = &self.dns_command else { continue };
                    if let Err(error) = dns::call(command, Task::Clear, &name, &value).await {
                        tracing::warn!(%error, "a TXT record stays behind");
                    }
                }
            }
        }
    }
}
