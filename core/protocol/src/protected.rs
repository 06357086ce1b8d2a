//! The groups of protected files: the user is asked once for all files of a group that a call touches.

/// The most files that a question names.
const NAMED: usize = 5;

/// Protected files with one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// What git and other version control obey, and hooks.
    Git,
    /// Orders and settings of coding agents.
    Agents,
    /// Settings of editors that can start programs.
    Editors,
    /// What CI runs after a push.
    Ci,
    /// What shells, desktops and interactive programs read when they start.
    Shells,
    /// Settings of package and build tools that can start programs.
    Packages,
    /// Keys, and who may log in.
    Keys,
    /// pixir's own settings, rules and Logs.
    Pixir,
}

impl Group {
    /// All groups.
    pub const ALL: [Group; 8] = [
        Group::Git,
        Group::Agents,
        Group::Editors,
        Group::Ci,
        Group::Shells,
        Group::Packages,
        Group::Keys,
        Group::Pixir,
    ];

    /// Its name, as the user reads it.
    pub fn name(self) -> &'static str {
        match self {
            Group::Git => "git",
            Group::Agents => "agents",
            Group::Editors => "editors",
            Group::Ci => "CI",
            Group::Shells => "shells",
            Group::Packages => "packages",
            Group::Keys => "keys",
            Group::Pixir => "pixir",
        }
    }

    /// Why its files are protected, as a clause.
    pub fn why(self) -> &'static str {
        match self {
            Group::Git => "git and its hooks run or obey such files",
            Group::Agents => "such files give orders to agents, or can run code in them",
            Group::Editors => "an editor that opens the folder can run such files",
            Group::Ci => "CI runs such files after a push",
            Group::Shells => "shells and other programs can run such files when they start",
            Group::Packages => "package and build tools can run such files",
            Group::Keys => "such files hold keys, or say who may log in",
            Group::Pixir => "such files are pixir's own, and can widen permissions",
        }
    }

    /// The reason to ask about these files of the group.
    pub fn reason(self, paths: &[&str]) -> String {
        let are = if paths.len() == 1 { "is" } else { "are" };
        format!("{} {are} protected ({}): {}", named(paths), self.name(), self.why())
    }

    /// What was written, as the object of a sentence that asks whether to keep it.
    pub fn wrote(self, paths: &[&str]) -> String {
        let are = if paths.len() == 1 { "is" } else { "are" };
        format!("{}, which {are} protected ({}): {}", named(paths), self.name(), self.why())
    }
}

fn named(paths: &[&str]) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", paths[..paths.len().min(NAMED)].join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: a question about many files of a group grows with their number.
    #[test]
    fn a_reason_names_the_group_and_at_most_five_files() {
        assert_eq!(
            Group::Ci.reason(&[".gitlab-ci.yml"]),
            ".gitlab-ci.yml is protected (CI): CI runs such files after a push"
        );
        let paths = ["a", "b", "c", "d", "e", "f", "g"];
        let reason = Group::Agents.reason(&paths);
        assert!(reason.starts_with("a, b, c, d, e and 2 more are protected (agents): "), "{reason}");
    }
}
