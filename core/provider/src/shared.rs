//! The Providers of a workspace, replaced as a whole when the user connects another while pixir runs.

use std::sync::Arc;

use parking_lot::RwLock;

use super::choose::Providers;
use super::connect::NewProvider;
use protocol::error::{Code, Error, Result};

/// The Providers that the Sessions of a workspace use now. Clones share them. A request that runs goes on with those that
/// it began with.
#[derive(Debug, Clone)]
pub struct SharedProviders(Arc<RwLock<Arc<Providers>>>);

impl SharedProviders {
    pub fn new(providers: Arc<Providers>) -> SharedProviders {
        SharedProviders(Arc::new(RwLock::new(providers)))
    }

    /// The Providers at this moment.
    pub fn now(&self) -> Arc<Providers> {
        Arc::clone(&self.0.read())
    }

    /// Takes the place of all Providers, with the keys that were found now.
    ///
    /// # Errors
    /// `CONFIG_INVALID` while the answers of models are recorded.
    pub fn replace(&self, providers: Providers) -> Result<()> {
        let mut now = self.0.write();
        now.may_change()?;
        *now = Arc::new(providers);
        Ok(())
    }

    /// Adds a Provider, or replaces one, and chooses it for new Sessions.
    ///
    /// # Errors
    /// `CONFIG_INVALID` while the answers of models are recorded.
    pub fn add(&self, new: NewProvider) -> Result<()> {
        let mut providers = self.0.write();
        providers.may_change()?;
        *providers = Arc::new(providers.with(new));
        Ok(())
    }
}

impl Providers {
    /// While a recording runs, Providers cannot change: it masks only the keys that it knew at its start.
    fn may_change(&self) -> Result<()> {
        if self.is_recorded() {
            let message = "the answers of the models are being recorded";
            return Err(Error::new(Code::ConfigInvalid, message, "connect the model first, then begin the recording"));
        }
        Ok(())
    }
}
