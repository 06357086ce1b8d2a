//! What the role of a Session, and the call that started it, leave to it, besides its mode and the rules of the user. Bounds
//! only ever refuse.

use super::Readable;
use super::rules;
use super::touch::{Command, Touch};
use protocol::error::{Code, Error};
use protocol::event::Mode;

/// Who sets bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SetBy {
    /// The role of this name.
    Role(String),
    /// The call that started the agent.
    #[default]
    Call,
}

/// The bounds that a role or a call sets. What is `None` is not bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Who sets them, for refusals.
    pub by: SetBy,
    /// The most permissive mode.
    pub mode: Option<Mode>,
    /// The tools that may be called.
    pub tools: Option<Vec<String>>,
    /// Patterns of the commands that may run.
    pub commands: Option<Vec<String>>,
    /// Globs of the files that may be changed.
    pub writes: Option<Vec<String>>,
    /// Programs get no network.
    pub no_network: bool,
}

impl Bounds {
    /// The part that holds for the Sessions below too. Tools and commands bind one agent alone: one that may only start
    /// others is of use only if those may do more.
    pub fn below(&self) -> Bounds {
        Bounds { tools: None, commands: None, ..self.clone() }
    }

    /// Whether the role leaves only reading: what changes something is then refused whatever mode the user sets.
    pub fn only_reads(&self) -> bool {
        self.mode == Some(Mode::ReadOnly)
    }

    /// The refusal of the mode `read-only`, where these bounds set it: no other mode of the user would change it.
    pub fn instead_of_the_mode(&self, refusal: Error) -> Error {
        let fix = "describe the change instead";
        match &self.by {
            SetBy::Role(role) => {
                let message = format!("the role {role} changes nothing; {}", refusal.message);
                Error { message, remedy: fix.into(), ..refusal }.with("role", &**role)
            }
            SetBy::Call => Error { remedy: fix.into(), ..refusal },
        }
    }

    /// Why a call of this tool may not touch this. Paths of files are real ones, without symlinks.
    pub fn refuses<'a>(&self, tool: &str, touch: &Touch, readable: impl Into<Readable<'a>>) -> Option<Error> {
        let readable = readable.into();
        if let Some(tools) = &self.tools
            && !tools.iter().any(|it| it == tool)
        {
            let fix = format!("one of its tools: {}", listed(tools));
            return Some(self.denied(format!("has no tool `{}`", tool.escape_debug()), &fix));
        }
        match touch {
            Touch::Read | Touch::Outside { .. } | Touch::Note | Touch::Workflow | Touch::ReadOnly { .. } => None,
            Touch::Mcp { server, tool, .. } => {
                let writes = self.writes.as_ref().filter(|_| !touch.only_reads())?;
                // It could write anywhere.
                Some(self.blocked(format!("may not call {server}.{tool}, which may change anything"), writes))
            }
            Touch::Files { path, .. } => {
                let writes = self.writes.as_ref()?;
                let is_in = path.as_deref().is_some_and(|path| writes.iter().any(|glob| rules::is_below(glob, path)));
                let what = path.as_deref().unwrap_or("files that are not known before the call");
                (!is_in).then(|| self.blocked(format!("may not change {what}"), writes))
            }
            Touch::Command(_) | Touch::Program(_) => self.refuses_command(&touch.command()?, readable),
        }
    }

    fn refuses_command(&self, command: &Command<'_>, readable: Readable<'_>) -> Option<Error> {
        if let Some(commands) = &self.commands
            && !rules::consists_of(commands, command, readable)
        {
            let fix = format!("one of its commands, alone or joined: {}", listed(commands));
            return Some(self.denied("may not run this command".to_owned(), &fix));
        }
        let writes = self.writes.as_ref()?;
        // A command could write anywhere in the workspace.
        let proven = command.proven_to_read(readable);
        proven.err().map(|why| self.blocked(format!("may only run commands that read: {why}"), writes))
    }

    fn denied(&self, what: String, fix: &str) -> Error {
        self.refusal(Code::PermissionDenied, &what, fix)
    }

    fn blocked(&self, what: String, writes: &[String]) -> Error {
        let fix = if writes.is_empty() {
            "describe the change instead".to_owned()
        } else {
            format!("change only {}, with a tool for files", listed(writes))
        };
        self.refusal(Code::MutationBlocked, &what, &fix)
    }

    fn refusal(&self, code: Code, what: &str, fix: &str) -> Error {
        match &self.by {
            SetBy::Role(role) => Error::new(code, format!("the role {role} {what}"), fix).with("role", &**role),
            SetBy::Call => Error::new(code, format!("this agent {what}"), fix),
        }
    }
}

fn listed(all: &[String]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Broken build: a tool passes that the role does not have.
    #[test]
    fn a_role_calls_its_tools_and_no_others() {
        let tools = vec!["read".to_owned(), "bash".to_owned()];
        let role = Bounds { by: SetBy::Role("r".into()), tools: Some(tools), ..Bounds::default() };
        let code = |tool: &str, touch: Touch| role.refuses(tool, &touch, Path::new("/")).map(|it| it.code);
        assert_eq!(code("read", Touch::Read), None);
        assert_eq!(code("bash", Touch::Command("touch x".into())), None);
        let file = || Touch::Files { path: Some("x".into()), protected: None };
        assert_eq!(["write", "apply_patch"].map(|it| code(it, file())), [Some(Code::PermissionDenied); 2]);
        assert_eq!(code("grep", Touch::Read), Some(Code::PermissionDenied));
    }

    /// Broken builds: a command beside a listed one passes; a proven command passes unlisted; a pattern covers a part of a word.
    #[test]
    fn a_role_runs_its_commands_and_nothing_beside_them() {
        let role = Bounds {
            by: SetBy::Role("r".into()),
            commands: Some(vec!["git diff *".into(), "cargo test".into()]),
            ..Bounds::default()
        };
        let code = |line: &str| role.refuses("bash", &Touch::Command(line.into()), Path::new("/")).map(|it| it.code);
        for line in ["git diff", "git diff --stat HEAD~1", "cargo test", "git diff && cargo test", "git diff 2>&1"] {
            assert_eq!(code(line), None, "{line}");
        }
        for line in [
            "ls",
            "git push",
            "git diff | tee P",
            "git diff > P",
            "git diff; rm x",
            "git diff $(touch P)",
            "git diff `touch P`",
            "cargo test -p x",
            "cargo testx",
            "bash -c 'git diff'",
            "sudo git diff",
            "cd .. && git diff",
            "GIT_EXTERNAL_DIFF=x git diff",
            "git diff & touch P",
            "git diff\ntouch P",
            "timeout 5 git diff",
            "if git diff; then touch P; fi",
            "git diff <(touch P)",
            "(git diff)",
            "",
        ] {
            assert_eq!(code(line), Some(Code::PermissionDenied), "{line}");
        }
        let program = |words: &[&str]| Touch::Program(words.iter().map(|it| (*it).to_owned()).collect());
        assert!(role.refuses("run", &program(&["git", "diff", "x"]), Path::new("/")).is_none());
        assert!(role.refuses("run", &program(&["git", "push"]), Path::new("/")).is_some());
    }

    #[test]
    fn a_role_changes_its_files_and_no_others_and_its_commands_only_read_then() {
        let role = Bounds { by: SetBy::Role("docs".into()), writes: Some(vec!["docs/**".into()]), ..Bounds::default() };
        let file = |path: Option<&str>| Touch::Files { path: path.map(Into::into), protected: None };
        let code = |touch: &Touch| role.refuses("write", touch, Path::new("/")).map(|it| it.code);
        assert_eq!(code(&file(Some("docs/a/b.md"))), None);
        for path in [Some("src/a.rs"), Some("docs"), Some("xdocs/a"), None] {
            assert_eq!(code(&file(path)), Some(Code::MutationBlocked), "{path:?}");
        }
        assert_eq!(code(&Touch::Command("touch docs/a".into())), Some(Code::MutationBlocked));
        assert_eq!(code(&Touch::Command("ls".into())), None);
        let none = Bounds { writes: Some(Vec::new()), ..role.clone() };
        assert!(none.refuses("write", &file(Some("docs/a")), Path::new("/")).is_some());
        assert!(role.below().refuses("write", &file(Some("src/a.rs")), Path::new("/")).is_some(), "it binds below");
    }
}
