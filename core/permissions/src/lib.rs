//! Whether a call may run, decided from what it touches, the mode and the user's rules.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use protocol::error::{Code, Error};
use protocol::event::{DecidedBy, Mode, Rule, Scope};
use protocol::remedy::Remedy;

mod bounds; // what the role of a Session leaves to it
mod outside; // reading outside the workspace
mod effects; // what common programs do, for the user
mod network; // under which words the network is a program's own
mod readers; // which commands are proven to only read
pub mod repository; // the repository of git, and whether git may run there
pub mod rules; // rules as the user writes them, and what they cover
pub mod shell; // one line, parsed
mod terminal; // programs that wait for keys
mod touch; // what a call touches, before it runs

pub use bounds::Bounds;
pub use bounds::SetBy;
use readers::parse;
pub use readers::{Judged, Parse};
pub use readers::{Takes, UnaskedProgram, unasked_programs};
pub use readers::{git_root, plain, prove, prove_read_only};
use rules::Covers;
use touch::Command;
pub use touch::{Changes, Protected, Touch, UsersWord};

/// Where a command may read without an approval. The paths are absolute and without symlinks.
#[derive(Debug, Clone, Copy)]
pub struct Readable<'a> {
    /// The workspace.
    pub workspace: &'a Path,
    /// Another path by which the user has named it.
    pub alias: Option<&'a Path>,
    /// The folder of the Session's saved outputs.
    pub outputs: Option<&'a Path>,
    /// Folders outside that are worked on as the workspace is.
    pub folders: &'a [PathBuf],
    /// Files and folders outside: sources that everybody can have, and folders that the user has added.
    pub others: &'a [PathBuf],
    /// The home folder of the command, where it is known.
    pub home: Option<&'a str>,
    /// Whether a sandbox keeps programs to that.
    pub is_confined: bool,
    /// Whether the user trusts where the workspace's repository leads: programs see those folders.
    pub trusts_leads: bool,
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for Readable<'a> {
    fn from(workspace: &'a P) -> Readable<'a> {
        Readable {
            workspace: workspace.as_ref(),
            alias: None,
            outputs: None,
            folders: &[],
            others: &[],
            home: None,
            is_confined: true,
            trusts_leads: false,
        }
    }
}

impl<'a> Readable<'a> {
    /// The workspace, then the folders besides it.
    fn roots(&self) -> impl Iterator<Item = &'a Path> + use<'a> {
        std::iter::once(self.workspace).chain(self.folders.iter().map(PathBuf::as_path))
    }

    /// The workspace, or the folder besides it, that holds this path.
    fn root_of(&self, path: &Path) -> Option<&'a Path> {
        self.roots().find(|it| path.starts_with(it))
    }
}

/// The outcome of judging a call.
#[derive(Debug, Clone)]
pub enum Ruling {
    /// Run it: it needs no permission.
    Free,
    /// Run it with `sandbox::Policy::Look`, because it is proven to only read.
    Look,
    /// Run it.
    Allow {
        /// Who allowed it.
        by: DecidedBy,
        /// The rule that allowed it.
        rule: Option<Rule>,
        /// The reason, for the user.
        reason: String,
    },
    /// Ask the user.
    Ask {
        /// The reason, for the user.
        reason: String,
        /// The rule that the decision "always" would add.
        rule: Option<Rule>,
    },
    /// Do not run it.
    Deny {
        /// Whether the mode or a rule denies it.
        by: DecidedBy,
        /// The rule that denies it.
        rule: Option<Rule>,
        /// The error that the model receives.
        error: Error,
    },
}

/// Judges a call.
///
/// A deny rule applies in every mode. A call that is not proven to only read needs an approval in `ask` and is refused
/// in `read-only`.
/// Where nothing confines programs, none runs without an approval.
pub fn judge<'a>(mode: Mode, touch: &Touch, rules: &[Rule], readable: impl Into<Readable<'a>>) -> Ruling {
    let readable = readable.into();
    let confines = readable.is_confined;
    let mut may_be_denied =
        rules.contains(&Rule::Deny(Scope::Unknown)).then_some("a deny rule that cannot be read here");
    for rule in rules {
        let Rule::Deny(scope) = rule else { continue };
        match rules::denies(scope, touch) {
            Covers::Yes => {
                return Ruling::Deny { by: DecidedBy::Rule, rule: Some(rule.clone()), error: forbidden() };
            }
            Covers::Perhaps => may_be_denied = Some("a deny rule may cover a part that only the shell knows"),
            Covers::No => {}
        }
    }
    let (reason, rule) = match touch {
        Touch::Read | Touch::Note => {
            return Ruling::Free;
        }
        Touch::Mcp { word: UsersWord::Reads, .. } => return Ruling::Free,
        Touch::Mcp { server, tool, pin, word, is_destructive } => {
            let reason = format!("{server}.{tool} is a tool of another program, which acts outside the sandbox");
            let rule = Rule::Allow(Scope::Mcp(format!("{server}.{tool}#{pin}")));
            if mode != Mode::ReadOnly && may_be_denied.is_none() {
                // A rule is the user's own word, of this call or of an earlier one.
                if let Some(it) = rules::allowing(rules, touch, readable) {
                    return Ruling::Allow { by: DecidedBy::Rule, rule: Some(it), reason };
                }
                if *word == UsersWord::Allowed {
                    let reason = format!("{reason}; your configuration allows it");
                    return Ruling::Allow { by: DecidedBy::Rule, rule: None, reason };
                }
                return Ruling::Ask { reason, rule: (!is_destructive).then_some(rule) };
            }
            (reason, None)
        }
        // In the other modes each step is allowed or refused when it comes.
        Touch::Workflow if mode == Mode::Ask => {
            return Ruling::Ask { reason: "it runs a workflow".to_owned(), rule: None };
        }
        Touch::Workflow => return Ruling::Free,
        Touch::Outside { paths, secret } => match outside::approval(mode, paths, secret.as_deref(), readable.workspace)
        {
            Ok(asks) => asks,
            Err(error) => return Ruling::Deny { by: DecidedBy::Mode, rule: None, error },
        },
        Touch::Files { protected: Some(it), .. } => (it.group.reason(&[&it.path]), None),
        Touch::ReadOnly { path, mode } => {
            (format!("{path} is read-only (its mode is {mode:03o}), and would be replaced all the same"), None)
        }
        Touch::Files { protected: None, .. } => ("it changes files".to_owned(), Some(Rule::Allow(Scope::FileChanges))),
        Touch::Command(_) | Touch::Program(_) => {
            let command = touch.command().expect("it runs one");
            let rule = Some(Rule::Allow(Scope::Command(command.line().into_owned())));
            match command.proven_to_read(readable) {
                Ok(()) if confines => return Ruling::Look,
                Ok(()) => (NOTHING_CONFINES.to_owned(), rule),
                Err(why) => (why, rule),
            }
        }
    };
    match mode {
        Mode::ReadOnly => {
            let look = match (touch.command(), confines) {
                (Some(_), true) => Some("read, grep, find, or the same without that"),
                (Some(_), false) => Some("read, grep and find, which start no program"),
                (None, _) => None,
            };
            Ruling::Deny { by: DecidedBy::Mode, rule: None, error: blocked(&reason, look) }
        }
        // The unreadable rule may deny exactly this call, so the user decides.
        Mode::Ask | Mode::Auto if may_be_denied.is_some() => {
            Ruling::Ask { reason: format!("{reason}, and {}", may_be_denied.unwrap_or_default()), rule: None }
        }
        Mode::Ask => match rules::allowing(rules, touch, readable) {
            Some(it) => Ruling::Allow { by: DecidedBy::Rule, rule: Some(it), reason },
            None => Ruling::Ask { reason, rule },
        },
        // A call without a possible rule touches a protected path, which needs an approval even in `auto`.
        Mode::Auto if rule.is_none() && !touch.only_reads() => Ruling::Ask { reason, rule },
        Mode::Auto if !confines && touch.command().is_some() => match rules::allowing(rules, touch, readable) {
            Some(it) => Ruling::Allow { by: DecidedBy::Rule, rule: Some(it), reason },
            None if reason == NOTHING_CONFINES => Ruling::Ask { reason, rule },
            None => Ruling::Ask { reason: format!("{NOTHING_CONFINES}; {reason}"), rule },
        },
        // The mode gives no network, and a rule may.
        Mode::Auto if needs_network(touch, readable) => {
            let rule = rules::allowing(rules, touch, readable);
            let by = if rule.is_some() { DecidedBy::Rule } else { DecidedBy::Mode };
            Ruling::Allow { by, rule, reason }
        }
        Mode::Auto => Ruling::Allow { by: DecidedBy::Mode, rule: None, reason },
    }
}

/// Whether a call has a program that is not proven to read and does nothing useful without the network.
pub fn needs_network(touch: &Touch, readable: Readable<'_>) -> bool {
    let needs = |words: &[&str]| effects::needs_network(words, readable.workspace);
    match touch.command() {
        Some(Command::Line(line)) => parse(line, readable)
            .programs
            .iter()
            .any(|it| it.verdict.is_err() && needs(&it.words.iter().map(String::as_str).collect::<Vec<_>>())),
        Some(Command::Program(words)) => needs(&words),
        None => false,
    }
}

/// The first program of a call that draws on a terminal and waits for keys, and what to do in its place, as a clause.
pub fn needs_terminal(touch: &Touch, readable: Readable<'_>) -> Option<(String, &'static str)> {
    let of = |words: &[&str]| terminal::needs_terminal(words);
    match touch.command()? {
        Command::Line(line) => {
            let programs = parse(line, readable).programs;
            programs.iter().find_map(|it| of(&it.words.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        Command::Program(words) => of(&words),
    }
}

/// Whether the rules that allow a call also give it the network: each of its programs that is not proven to read is covered by
/// one whose own words need the network, such as `bash(git push *)`, and uses it itself: `git push --receive-pack=x` starts
/// another program. `bash(cargo *)` says nothing of it.
pub fn rules_give_network(touch: &Touch, rules: &[Rule], readable: Readable<'_>) -> bool {
    let needs = |words: &[&str]| effects::needs_network(words, readable.workspace);
    let is_its_own = |words: &[&str], folders: &[&Path]| network::is_its_own(words, folders, readable.workspace);
    rules::each_is_covered_by(rules, touch, readable, &needs, &is_its_own)
}

/// Whether a line is git's own work on the repository, with a command that changes the repository's configuration, and beside
/// it only what is proven to read. Such a line starts nothing but git.
pub fn configures_git(line: &str, readable: Readable<'_>) -> bool {
    let parse = parse(line, readable);
    let is_git = |it: &Judged, commands: &[&str]| matches!(it.words.as_slice(), [git, sub, ..] if git == "git" && commands.contains(&sub.as_str()));
    parse.fault.is_none()
        && parse.programs.iter().any(|it| is_git(it, &CONFIGURES_GIT))
        && parse.programs.iter().all(|it| it.verdict.is_ok() || is_git(it, &CONFIGURES_GIT) || is_git(it, &LEAVES_IT))
}

/// Commands of git that write the repository's configuration.
const CONFIGURES_GIT: [&str; 8] = ["remote", "config", "branch", "checkout", "switch", "push", "pull", "fetch"];
/// Commands of git that often stand beside those. None of them runs a program that its words name.
const LEAVES_IT: [&str; 10] = ["add", "commit", "merge", "restore", "reset", "stash", "tag", "mv", "rm", "init"];

/// How a command line is judged, for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Program by program.
    pub parse: Parse,
    /// `runs`, `asks` or `refused`.
    pub verdict: &'static str,
    /// Why.
    pub reason: String,
    /// The rule that decides.
    pub rule: Option<Rule>,
}

/// Judges a command line as [`judge`] does, and shows how.
pub fn explain(mode: Mode, command: &str, rules: &[Rule], readable: Readable<'_>) -> Explained {
    let (verdict, reason, rule) = match judge(mode, &Touch::Command(command.to_owned()), rules, readable) {
        Ruling::Free | Ruling::Look => ("runs", ONLY_READS.to_owned(), None),
        Ruling::Allow { reason, rule, .. } => ("runs", reason, rule),
        Ruling::Ask { reason, .. } => ("asks", reason, None),
        Ruling::Deny { error, rule, .. } => ("refused", error.message, rule),
    };
    Explained { parse: parse(command, readable), verdict, reason, rule }
}

/// The reason of [`Ruling::Look`], for the user.
pub const ONLY_READS: &str = "the command only reads";
/// The reason to ask where there is no sandbox.
const NOTHING_CONFINES: &str = "no sandbox works on this machine";

/// The message where a rule of the user refuses a call.
pub const FORBIDDEN: &str = "a deny rule of the user forbids this call";

fn forbidden() -> Error {
    Error::new(Code::PermissionDenied, FORBIDDEN, "respect that: try another way, or ask the user")
}

/// `look` is how the model can look instead.
fn blocked(reason: &str, look: Option<&str>) -> Error {
    let others = ["describe the change instead".into(), Remedy::SetMode { mode: Mode::Ask }];
    let remedies = look.map(Remedy::from).into_iter().chain(others).collect();
    Error::new(Code::MutationBlocked, format!("the mode is read-only: {reason}"), Remedy::AnyOf { remedies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_things_is_refused_asked_or_run_by_the_mode_and_protected_files_always_ask() {
        let root = Path::new("/");
        let file = Touch::Files { path: None, protected: None };
        let hook = Protected { path: ".git/hooks/x".into(), group: protocol::protected::Group::Git };
        let hook = Touch::Files { path: None, protected: Some(hook) };
        let said = |mode, touch: &Touch, rules: &[Rule]| match judge(mode, touch, rules, root) {
            Ruling::Free | Ruling::Look | Ruling::Allow { .. } => "allow",
            Ruling::Ask { .. } => "ask",
            Ruling::Deny { .. } => "deny",
        };
        assert_eq!(Mode::ALL.map(|mode| said(mode, &file, &[])), ["deny", "ask", "allow"]);
        assert_eq!(Mode::ALL.map(|mode| said(mode, &hook, &[Rule::Allow(Scope::FileChanges)])), ["deny", "ask", "ask"]);
        assert_eq!(Mode::ALL.map(|mode| said(mode, &Touch::Read, &[])), ["allow"; 3]);
        assert_eq!(said(Mode::Ask, &file, &[Rule::Allow(Scope::FileChanges)]), "allow");
        let make = Touch::Command("make".into());
        assert_eq!(said(Mode::Ask, &make, &[Rule::Allow(Scope::Command("make".into()))]), "allow");
        assert_eq!(said(Mode::Ask, &make, &[Rule::Allow(Scope::Command("make test".into()))]), "ask");

        let no_make = [Rule::Allow(Scope::FileChanges), Rule::Deny(Scope::Command("make".into()))];
        assert_eq!(Mode::ALL.map(|mode| said(mode, &make, &no_make)), ["deny"; 3], "a deny binds in every mode");
        assert_eq!(Mode::ALL.map(|mode| said(mode, &file, &no_make)), ["deny", "allow", "allow"]);
        let no_changes = [Rule::Allow(Scope::FileChanges), Rule::Deny(Scope::FileChanges)];
        assert_eq!(Mode::ALL.map(|mode| said(mode, &file, &no_changes)), ["deny"; 3], "and before every allow");
        let no_ls = [Rule::Deny(Scope::Command("ls".into()))];
        assert_eq!(Mode::ALL.map(|mode| said(mode, &Touch::Command("ls".into()), &no_ls)), ["deny"; 3]);
        let of_later = [Rule::Allow(Scope::FileChanges), Rule::Deny(Scope::Unknown)];
        assert_eq!(Mode::ALL.map(|mode| said(mode, &file, &of_later)), ["deny", "ask", "ask"]);
        assert_eq!(Mode::ALL.map(|mode| said(mode, &file, &[Rule::Allow(Scope::Unknown)])), ["deny", "ask", "allow"]);
    }
    /// Broken build: a rule for a program whose commands use the network only sometimes gives it to all of them.
    #[test]
    fn a_rule_gives_the_network_where_its_own_words_need_it() {
        let gives = |line: &str, rules: &[&str]| {
            let rules: Vec<Rule> = rules.iter().map(|it| Rule::Allow(Scope::Pattern((*it).to_owned()))).collect();
            rules_give_network(&Touch::Command(line.into()), &rules, Path::new("/").into())
        };
        for (line, rule) in [
            ("git push", "git push *"),
            ("git push origin main && ls", "git push *"),
            ("cargo add serde", "cargo add *"),
            ("cargo add serde", "cargo add serde"),
            ("curl -s http://x/ | head -3", "curl *"),
        ] {
            assert!(gives(line, &[rule]), "{line}: {rule}");
        }
        // git alone gets the network, and no program that it starts for an option.
        for (line, rule) in [
            ("git push --receive-pack=./x", "git push *"),
            ("git push --exec ./x", "git push *"),
            ("git push ext::./x", "git push *"),
            ("git fetch --upload-pack ./x origin", "git fetch *"),
            ("git clone -u ./x https://h/r", "git clone *"),
            ("git clone -c core.sshCommand=./x git@h:r", "git clone *"),
            ("git clone --template=x https://h/r", "git clone *"),
            ("git ls-remote --exec=./x origin", "git ls-remote *"),
            ("git pull --strategy=x", "git pull *"),
            // A folder here has hooks of its own.
            ("git push ./x", "git push *"),
            ("git push usr", "git push *"),
            ("git push file:///usr", "git push *"),
            ("curl -K x https://h/", "curl *"),
            ("curl --config=x https://h/", "curl *"),
            ("curl -sSfK x https://h/", "curl *"),
            ("wget --use-askpass=./x https://h/", "wget *"),
            ("wget -e use_askpass=./x https://h/", "wget *"),
            ("ssh -o ProxyCommand=./x h", "ssh *"),
            ("ssh -oProxyCommand=./x h", "ssh *"),
            ("ssh h -oLocalCommand=./x ls", "ssh *"),
            ("ssh -F x h", "ssh *"),
            ("scp -S ./x a h:b", "scp *"),
            ("sftp -b x h", "sftp *"),
            ("cargo add --config x serde", "cargo add *"),
            ("cargo install -Zunstable-options x", "cargo install *"),
            ("npm install --script-shell=./x", "npm install *"),
            ("npm ci --node-options=--require=./x", "npm ci *"),
            ("pip install --python ./x y", "pip install *"),
            ("go get -toolexec ./x y", "go get *"),
            ("gem install x -- --with-cc=./x", "gem install *"),
            ("nc -e ./x h 1", "nc *"),
            ("kubectl get pods --kubeconfig x", "kubectl get *"),
            ("gh repo clone a/b -- -u ./x", "gh repo *"),
            ("npx -c ./x", "npx *"),
        ] {
            assert!(!gives(line, &[rule]), "{line}: {rule}");
        }
        for (line, rule) in [
            ("git push -u origin main", "git push *"),
            ("git push --force-with-lease origin HEAD:main", "git push *"),
            ("git fetch --all --prune", "git fetch *"),
            ("git pull --rebase --autostash origin main", "git pull *"),
            ("git clone --depth 1 https://h/r dir", "git clone *"),
            ("git clone git@h:r.git", "git clone *"),
            ("git ls-remote --tags origin", "git ls-remote *"),
            ("timeout 60 git fetch", "git fetch *"),
            ("curl -fsSL -o x https://h/", "curl *"),
            ("curl -X POST -H 'A: b' -d @in https://h/", "curl *"),
            ("wget -qO- https://h/", "wget *"),
            ("wget -nc https://h/", "wget *"),
            ("ssh -o BatchMode=yes -p 22 h ls -la", "ssh *"),
            ("scp -r a h:b", "scp *"),
            ("cargo add serde --features derive", "cargo add *"),
            ("cargo install ripgrep --locked", "cargo install *"),
            ("npm ci --no-audit --no-fund", "npm ci *"),
            ("npm install -D vitest", "npm install *"),
            ("pip install -r requirements.txt", "pip install *"),
            ("python3 -m pip install -U pip", "python3 -m pip install *"),
            ("go mod tidy", "go mod tidy"),
            ("go get -u ./...", "go get *"),
            ("uv sync --dev", "uv sync *"),
            ("gh pr list --limit 5", "gh pr *"),
            ("kubectl get pods -n x", "kubectl get *"),
        ] {
            assert!(gives(line, &[rule]), "{line}: {rule}");
        }
        for (line, rules) in [
            ("git push", &["git *"][..]),
            ("cargo add serde", &["cargo *"]),
            ("git push && cargo add serde", &["git push *", "cargo *"]),
            ("git push && make", &["git push *", "make *"]),
            ("cargo test", &["cargo test *"]),
        ] {
            assert!(!gives(line, rules), "{line}: {rules:?}");
        }
    }
}
