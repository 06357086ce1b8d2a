//! The paths that copies for agents have although git ignores them.

use std::path::{Component, Path};

use super::AgentsConfig;
use protocol::error::{Code, Error, Result};

impl AgentsConfig {
    /// Rejects paths outside the workspace.
    pub(super) fn check(&self) -> Result<()> {
        let is_below = |path: &&String| {
            !path.is_empty() && Path::new(path).components().all(|it| matches!(it, Component::Normal(_)))
        };
        if let Some(path) = self.copy_ignored.iter().find(|path| !is_below(path)) {
            let message =
                format!("`agents.copy_ignored` has `{}`, which is no path below the workspace", path.escape_debug());
            return Err(Error::new(Code::ConfigInvalid, message, "paths like node_modules or web/node_modules"));
        }
        Ok(())
    }
}
