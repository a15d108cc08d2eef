//! The account at the authority (RFC 8555, section 7.3): made once, and kept in the folder.

use instant_acme::{Account, ExternalAccountKey, NewAccount};

use super::client::Client;
use super::order::OrderError;
use super::settings::AcmeSettings;
use super::state::State;

/// The account of the folder, if there is one.
pub(super) async fn load(client: &Client, state: &State) -> Result<Option<Account>, OrderError> {
    let Some(credentials) = state.account()? else { return Ok(None) };
    Ok(Some(Account::builder_with_http(Box::new(client.clone())).from_credentials(credentials).await?))
}

/// The account of the folder, or a new one. The caller has the folder's lock, so that one is made.
pub(super) async fn load_or_make(
    client: &Client,
    state: &State,
    settings: &AcmeSettings,
) -> Result<Account, OrderError> {
    if let Some(account) = load(client, state).await? {
        return Ok(account);
    }
    let contacts: Vec<String> = settings.contacts.iter().map(|contact| format!("mailto:{contact}")).collect();
    let contacts: Vec<&str> = contacts.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contacts, terms_of_service_agreed: true, only_return_existing: false };
    let external = settings.external_account.as_ref();
    let external =
        external.and_then(|account| Some(ExternalAccountKey::new(account.id.clone(), &account.key_bytes()?)));
    let builder = Account::builder_with_http(Box::new(client.clone()));
    let (account, credentials) = builder.create(&new, settings.directory.clone(), external.as_ref()).await?;
    state.keep_account(&credentials)?;
    tracing::info!(directory = settings.directory, "an account for certificates was made");
    Ok(account)
}
