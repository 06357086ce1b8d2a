//! The role that the user gives to the Session, such as `plan`. It bounds the whole tree, and the model reads it as late context,
//! so the bytes before it stay as they were.

use std::sync::Arc;

use super::Session;
use call::off_loop;
use context::roles::Role;
use protocol::error::{Code, Error, Result};
use protocol::input::SettingsChange;

impl Session {
    /// The role that a change names, if it names one.
    ///
    /// # Errors
    /// Those of [`Role::for_session`]; `INVALID_ARGS` for an agent, whose role holds as long as it lives.
    pub(super) async fn role_for(&self, change: &SettingsChange) -> Result<Option<Arc<Role>>> {
        let Some(name) = change.role.clone() else { return Ok(None) };
        if self.history.started.parent.is_some() {
            let message = "the role of an agent cannot be changed";
            return Err(Error::new(Code::InvalidArgs, message, "start another agent with that role"));
        }
        if name.is_empty() {
            return Ok(None);
        }
        let library = Arc::clone(&self.services.library);
        off_loop(move || Ok(Some(Arc::new(Role::for_session(&library.roles(), &name)?.clone())))).await
    }

    /// The role holds from here on.
    pub(super) fn take_role(&mut self, role: Option<Arc<Role>>) {
        if let Some(role) = role {
            self.services.standing.set_role(Some(role.bounds()));
            self.role = Some(role);
        }
    }

    /// The Log says that the Session has no role any more.
    pub(super) fn drop_role(&mut self) {
        if self.history.started.parent.is_none() && self.history.settings.role.is_none() && self.role.take().is_some() {
            self.services.standing.set_role(None);
        }
    }
}
