//! Signing out of a server that runs elsewhere: its token is forgotten, and its issuer is told to end it (RFC 7009).

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::sign_in::{authenticated, post};
use config::Environment;
use config::credentials::{ClientProof, Secret, Token, Vault, name_for_login};
use protocol::error::Result;
use provider::device_login::told;

/// How long an issuer may take to end the tokens of a sign-in.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of a sign-in that the user wants to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignedOut {
    /// There was none.
    Nothing,
    /// It is forgotten. Its issuer has no way to end it, so it ends when it expires.
    Forgotten,
    /// It is forgotten, and its issuer has ended it.
    Revoked,
    /// It is forgotten, and its issuer could not be told.
    NotRevoked {
        /// Why.
        why: String,
    },
}

/// Forgets the sign-in to the server at this URL, and tells its issuer. It is forgotten also where the issuer does not answer.
///
/// # Errors
/// Those of the store.
pub(super) async fn sign_out(url: &str, vault: &Vault, environment: &Environment) -> Result<SignedOut> {
    let name = name_for_login(url);
    let secret = {
        // A renewal that is under way would store what comes after it.
        let _alone = vault.lock_renewal().await?;
        let (vault, environment) = (vault.clone(), environment.clone());
        call::off_loop(move || {
            let secret = vault.find(&name, None, &environment).ok().flatten().map(|it| it.secret());
            vault.remove(&name).map(|was| was.then_some(secret))
        })
        .await?
    };
    let Some(secret) = secret else { return Ok(SignedOut::Nothing) };
    let Some(Secret::Token(token)) = secret else { return Ok(SignedOut::Forgotten) };
    let Some(address) = token.grant.as_ref().and_then(|it| it.revocation.clone()) else {
        return Ok(SignedOut::Forgotten);
    };
    let revoked = tokio::time::timeout(PATIENCE, revoke(&token, &address)).await;
    let late = || Err(format!("no answer within {} s", PATIENCE.as_secs()));
    Ok(match revoked.unwrap_or_else(|_| late()) {
        Ok(()) => SignedOut::Revoked,
        Err(why) => SignedOut::NotRevoked { why },
    })
}

/// Ends both tokens of a sign-in, first the one that gives new ones.
async fn revoke(token: &Token, address: &str) -> std::result::Result<(), String> {
    let proof = token.grant.as_ref().map_or(&ClientProof::Nothing, |it| &it.client);
    let both = [("refresh_token", token.refresh.as_ref()), ("access_token", Some(&token.access))];
    let mut ended = Err("there is no token".to_owned());
    for (hint, secret) in both {
        let Some(secret) = secret else { continue };
        let form =
            [("token", secret.expose_secret()), ("token_type_hint", hint), ("client_id", token.client_id.as_str())];
        let (status, answer) =
            post(address, authenticated(&form, &token.client_id, proof)).await.map_err(|e| e.message)?;
        match status {
            200 => ended = Ok(()),
            // Some end only the first, and the second with it.
            _ if ended.is_ok() => {}
            _ => ended = Err(format!("{status}: {}", told(&answer).replace(secret.expose_secret(), "[redacted]"))),
        }
    }
    ended
}
