//! A new secret in place of one that has expired or was refused.

use config::credentials::{Renewal, Secret, Token};
use protocol::error::Result;

use super::{copilot, device_login, key_command};

/// Gets a new secret: a token from its issuer, a key from the user's command.
///
/// # Errors
/// `AUTH_REQUIRED` when the issuer refuses, `TOKEN_REQUEST_FAILED`, `NETWORK`.
pub(super) async fn renewed(old: Secret, provider: String) -> Result<Secret> {
    match old {
        Secret::Key(key) => Ok(Secret::Key(key)),
        Secret::Token(Token { refresh: Some(github), endpoint, client_id, renewal: Renewal::Copilot, .. }) => {
            copilot::exchange(&github, &endpoint, &client_id, &provider).await.map(Secret::Token)
        }
        Secret::Token(token) => device_login::refresh(token, provider).await.map(Secret::Token),
        Secret::Printed(it) => key_command::print(it, &provider).await.map(Secret::Printed),
    }
}
