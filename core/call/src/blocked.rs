//! Refusals of the sandbox, recognised by what a program printed before it failed.

use std::path::{Path, PathBuf};

use super::Context;
use permissions::plain;
use permissions::shell::{LineEnd, Operator, Script, TokenKind};
use process::ports::of_machine;
use protocol::sandbox::Tier;
use sandbox::Policy;

/// The last bytes of a program's output that are searched.
const TAIL: usize = 8 << 10;
/// How programs say that there is no network, in lower case.
const NO_NETWORK: [&str; 16] = [
    "network is unreachable",
    "could not resolve host",
    "couldn't resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "failed to lookup address",
    "unknownhostexception",
    "getaddrinfo enotfound",
    "getaddrinfo eai_again",
    "enetunreach",
    "connect eperm",
    "dial tcp: lookup",
    "no address associated with hostname",
    "failed to resolve address",
    // All that the end of pip's output tells.
    "no matching distribution found for",
];
/// How programs say that no server answers, in lower case.
const NO_SERVER: [&str; 5] =
    ["connection refused", "econnrefused", "could not connect", "couldn't connect", "failed to connect"];
/// How programs say that they may not write or read a file, in lower case.
const NO_FILE: [&str; 5] = ["read-only file system", "erofs", "permission denied", "eacces", "operation not permitted"];
/// How programs say that they cannot replace a file under a mount, in lower case.
const BUSY: [&str; 2] = ["device or resource busy", "ebusy"];
/// How programs say that there is no such file, in lower case.
const NOTHING_THERE: [&str; 2] = ["no such file or directory", "enoent"];

/// What the sandbox refused to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// The network.
    Network,
    /// This file or folder.
    File(String),
    /// This file or folder, which the program took for missing.
    Hidden(String),
}

impl Blocked {
    /// What happened, as a clause.
    pub fn told(&self) -> String {
        match self {
            Blocked::Network => "the sandbox blocked the network".into(),
            Blocked::File(path) => format!("the sandbox blocked {path}"),
            Blocked::Hidden(path) => format!("the sandbox does not show {path}"),
        }
    }
}

/// What ran.
pub struct Ran {
    /// The line as it was written.
    pub command: String,
    /// The folder in which it ran.
    pub folder: PathBuf,
}

impl Ran {
    /// Whether the exit code may be that of another program than the one that failed.
    fn may_hide_a_failure(&self) -> bool {
        let script = Script::parse(&self.command, LineEnd::Newline);
        script.tokens.iter().any(|it| matches!(it.kind, TokenKind::Operator(Operator::Pipe | Operator::PipeBoth)))
    }
}

/// The end of a program's output.
#[derive(Debug, Default)]
pub struct Tail(Vec<u8>);

impl Tail {
    /// Takes the next bytes and forgets what is too old.
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        if self.0.len() > 2 * TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
    }

    /// What is kept of it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the sandbox refused to what ended with this exit code in this context, as far as it says so.
    pub fn blocked(&self, ran: &Ran, exit: i32, ctx: &Context) -> Option<Blocked> {
        if !ctx.sandbox.confines() || ctx.policy == Policy::Outside {
            return None;
        }
        // What only reads prints the words of others, and fails for itself.
        let succeeded = exit == 0;
        if succeeded && ctx.policy == Policy::Look {
            return None;
        }
        let is_searched_whole = !succeeded || ran.may_hide_a_failure();
        let text = String::from_utf8_lossy(&self.0);
        let search = Search { ran, ctx, has_no_network: ctx.policy != Policy::Network, text: &text };
        // `curl -s` prints nothing.
        if is_searched_whole && search.has_no_network && text.trim().is_empty() && names_a_listener(&ran.command) {
            return Some(Blocked::Network);
        }
        let is_searched = |line: &&str| is_searched_whole || is_lost_configuration(line);
        text.lines().rev().filter(is_searched).find_map(|line| search.line(line))
    }
}

/// Git goes on where it could not write the configuration, and ends with 0.
fn is_lost_configuration(line: &str) -> bool {
    line.contains("could not write config file")
}

struct Search<'a> {
    ran: &'a Ran,
    ctx: &'a Context,
    has_no_network: bool,
    text: &'a str,
}

impl Search<'_> {
    fn line(&self, line: &str) -> Option<Blocked> {
        let lower = line.to_lowercase();
        let says = |any: &[&str]| any.iter().any(|it| lower.contains(it));
        if self.has_no_network {
            let is_of_the_machine =
                || says(&NO_SERVER) && (names_a_listener(line) || names_a_listener(&self.ran.command));
            if says(&NO_NETWORK) || is_of_the_machine() || (says(&NO_FILE) && self.is_a_socket(line)) {
                return Some(Blocked::Network);
            }
        }
        let is_read_only = lower.contains("read-only file system") || lower.contains("erofs");
        let is_kept = is_read_only || says(&BUSY);
        let mut words = paths(line);
        if says(&NO_FILE) || is_kept {
            // Every path of the workspace that may not be written is a protected one.
            words.find_map(|word| self.refused(word, is_kept)).map(Blocked::File)
        } else if says(&NOTHING_THERE) && self.ctx.policy != Policy::Look {
            words.find_map(|word| self.hidden(word)).map(Blocked::Hidden)
        } else {
            None
        }
    }

    /// Where a word that names a file leads, if the file is one that the sandbox keeps from the program.
    fn refused(&self, word: &str, is_kept: bool) -> Option<String> {
        let path = self.resolve(word)?;
        let workspace = &self.ctx.workspace;
        let is_own = path.starts_with(workspace.root()) || self.ctx.folders.paths.iter().any(|it| path.starts_with(it));
        if !is_own {
            return Some(shown(word, &path));
        }
        let is_protected = || workspace.locate(&path.display().to_string()).is_ok_and(|at| workspace.is_protected(&at));
        (is_kept && (word.starts_with('/') || is_protected())).then(|| word.to_owned())
    }

    /// The same for a file that is there on the machine, outside of all that the program sees.
    fn hidden(&self, word: &str) -> Option<String> {
        let path = self.resolve(word)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_own = real.starts_with(self.ctx.workspace.root())
            || self.ctx.folders.paths.iter().any(|it| real.starts_with(it))
            || self.ctx.outputs.as_ref().is_some_and(|it| real.starts_with(it))
            || self.ctx.sandbox.shows(&real);
        // Whether a secret is there is not told.
        let is_there = self.ctx.sandbox.is_secret(&real) || path.symlink_metadata().is_ok();
        (!is_own && is_there).then(|| shown(word, &path))
    }

    /// The path of a word that may name a file: absolute, below `~`, or relative to the folder of the program.
    fn resolve(&self, word: &str) -> Option<PathBuf> {
        let path = match word.strip_prefix("~/") {
            Some(below) => {
                let home = self.ctx.environment.iter().find(|(name, _)| name == "HOME")?;
                Path::new(&home.1).join(below)
            }
            None => self.ran.folder.join(word),
        };
        Some(plain(&path))
    }

    /// Under Landlock, a program without the network gets no socket, and names no path when it says so.
    fn is_a_socket(&self, line: &str) -> bool {
        self.ctx.sandbox.tier() == Tier::Landlock && !line.contains('/') && self.text.to_lowercase().contains("socket")
    }
}

/// A path outside the workspace is named by where it is.
fn shown(word: &str, path: &Path) -> String {
    if word.starts_with(['/', '~']) { word.to_owned() } else { path.display().to_string() }
}

/// The words of a line that may name files.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "'\"`:()[]{},;=‘’“”".contains(c));
    words.map(|word| word.trim_end_matches('.')).filter(|word| word.len() > 1 && word.contains(['/', '.']))
}

/// Whether a text names a port of this machine on which a server of the user listens, whom a program without the network
/// cannot reach.
fn names_a_listener(text: &str) -> bool {
    let named = ports(text);
    !named.is_empty() && of_machine().iter().any(|port| named.contains(port))
}

/// The ports of this machine that a text names: `localhost:8000`, `127.0.0.1 port 8000`.
fn ports(text: &str) -> Vec<u16> {
    let hosts = ["127.0.0.1", "localhost", "[::1]", "::1", "0.0.0.0"];
    let ends = hosts.iter().flat_map(|host| text.match_indices(host).map(|(at, host)| at + host.len()));
    let number = |at: usize| -> Option<u16> {
        let rest = text[at..].trim_start_matches([')', '"', ',', ' ']);
        let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix("port "))?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    ends.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_of_a_server_of_this_machine_is_read_from_what_programs_say() {
        for (line, wanted) in [
            ("curl: (7) Failed to connect to 127.0.0.1 port 8000 after 0 ms: Could not connect to server", vec![8000]),
            ("Error: connect ECONNREFUSED 127.0.0.1:5432", vec![5432]),
            ("connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused", vec![5432]),
            ("curl -s http://localhost:3000/api", vec![3000]),
            ("dial tcp [::1]:6379: connect: connection refused", vec![6379]),
            ("Failed to connect to example.com port 443", vec![]),
            ("localhost", vec![]),
        ] {
            assert_eq!(ports(line), wanted, "{line}");
        }
    }
}
