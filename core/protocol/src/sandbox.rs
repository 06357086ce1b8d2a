//! The means by which programs are confined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};

/// The means by which programs are confined, from the strongest to none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Tier {
    /// User, mount, process and network namespaces.
    #[serde(rename = "ns")]
    Namespaces,
    /// Landlock for files, seccomp for the network.
    #[serde(rename = "ll")]
    Landlock,
    /// Nothing confines programs, so pixir asks before it runs any.
    #[serde(rename = "none")]
    None,
}

impl Tier {
    /// All of them, the strongest first.
    pub const ALL: [Tier; 3] = [Tier::Namespaces, Tier::Landlock, Tier::None];

    /// The name in settings, events and the header.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Namespaces => "ns",
            Tier::Landlock => "ll",
            Tier::None => "none",
        }
    }

    /// The tier of this name.
    ///
    /// # Errors
    /// `CONFIG_INVALID` for another name.
    pub fn parse(name: &str) -> Result<Tier> {
        Tier::ALL.into_iter().find(|tier| tier.name() == name).ok_or_else(|| {
            Error::new(Code::ConfigInvalid, format!("there is no sandbox `{name}`"), "ns, ll or none")
                .with("input", name)
        })
    }

    /// What it is, in words.
    pub fn words(self) -> &'static str {
        match self {
            Tier::Namespaces => "namespaces",
            Tier::Landlock => "Landlock",
            Tier::None => "no sandbox",
        }
    }
}
