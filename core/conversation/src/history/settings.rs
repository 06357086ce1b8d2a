//! The settings of a Session.

use protocol::event::{Mode, SettingsChanged, Toolset};

/// The settings of a Session after the last change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// The Provider's name.
    pub provider: String,
    /// The model's name at its Provider.
    pub model: String,
    /// How much the model is asked to reason.
    pub effort: Option<String>,
    /// Which calls run without the user's approval.
    pub mode: Mode,
    /// Which tools the model is offered.
    pub toolset: Toolset,
    /// The Session's name.
    pub name: Option<String>,
    /// The root of the workspace.
    pub workspace: String,
    /// The role that the user gave to the Session.
    pub role: Option<String>,
}

impl Settings {
    /// Takes over what changed.
    pub fn apply(&mut self, change: &SettingsChanged) {
        let SettingsChanged { provider, model, effort, mode, toolset, name, workspace, role, reason: _ } =
            change.clone();
        if let Some(provider) = provider {
            self.provider = provider;
        }
        if let Some(model) = model {
            self.model = model;
        }
        if let Some(effort) = effort {
            self.effort = Some(effort).filter(|name| !name.is_empty());
        }
        if let Some(mode) = mode {
            self.mode = mode;
        }
        if let Some(toolset) = toolset {
            self.toolset = toolset;
        }
        if let Some(name) = name {
            self.name = Some(name).filter(|n| !n.is_empty());
        }
        if let Some(workspace) = workspace {
            self.workspace = workspace;
        }
        if let Some(role) = role {
            self.role = Some(role).filter(|name| !name.is_empty());
        }
    }
}
