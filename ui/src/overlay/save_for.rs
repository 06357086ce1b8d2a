//! For whom a setting is changed: this Session, the user, the project.

/// For whom a setting is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveFor {
    /// Until pixir quits.
    Session,
    /// In the user's own configuration.
    You,
    /// In the project's configuration.
    Project,
}

impl SaveFor {
    const ALL: [SaveFor; 3] = [SaveFor::Session, SaveFor::You, SaveFor::Project];

    fn name(self) -> &'static str {
        match self {
            SaveFor::Session => "session",
            SaveFor::You => "you",
            SaveFor::Project => "project",
        }
    }

    /// The next one.
    pub(crate) fn next(self) -> SaveFor {
        match self {
            SaveFor::Session => SaveFor::You,
            SaveFor::You => SaveFor::Project,
            SaveFor::Project => SaveFor::Session,
        }
    }

    /// `save for: session [you] project`
    pub(crate) fn choices(self) -> String {
        let one = |it: SaveFor| if it == self { format!("[{}]", it.name()) } else { it.name().to_owned() };
        format!("save for: {}", SaveFor::ALL.map(one).join(" "))
    }
}

/// The file that a setting is saved in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SavePlace {
    /// The user's own.
    User,
    /// The project's.
    Project,
}
