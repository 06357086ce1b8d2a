//! The system's own store for secrets, where there is one.

use keyring::Entry;

use super::Secret;

/// What our secrets are filed under.
const SERVICE: &str = "pixir";

pub(super) fn find(provider: &str) -> Option<Secret> {
    let kept = Entry::new(SERVICE, provider).ok()?.get_password().ok()?;
    Secret::from_json(&serde_json::from_str(&kept).ok()?)
}

/// Whether it was kept; a machine without a store keeps nothing.
pub(super) fn save(provider: &str, secret: &Secret) -> bool {
    Entry::new(SERVICE, provider).and_then(|entry| entry.set_password(&secret.to_json().to_string())).is_ok()
}

/// Whether there was one.
pub(super) fn remove(provider: &str) -> bool {
    Entry::new(SERVICE, provider).and_then(|entry| entry.delete_credential()).is_ok()
}
