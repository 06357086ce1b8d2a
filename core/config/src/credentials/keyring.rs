//! Stores secrets in the system's keyring, if there is one.

use keyring::Entry;

use super::Secret;

/// The service name of pixir's secrets in the keyring.
const SERVICE: &str = "pixir";

pub(super) fn find(provider: &str) -> Option<Secret> {
    let kept = Entry::new(SERVICE, provider).ok()?.get_password().ok()?;
    Secret::from_json(&serde_json::from_str(&kept).ok()?)
}

/// Stores a secret and returns whether it was stored. A machine without a keyring stores nothing.
pub(super) fn save(provider: &str, secret: &Secret) -> bool {
    Entry::new(SERVICE, provider).and_then(|entry| entry.set_password(&secret.to_json().to_string())).is_ok()
}

/// Removes a secret and returns whether there was one.
pub(super) fn remove(provider: &str) -> bool {
    Entry::new(SERVICE, provider).and_then(|entry| entry.delete_credential()).is_ok()
}
