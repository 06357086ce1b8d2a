//! Refusals of the sandbox, recognised by what a program printed before it failed.

use super::Context;
use crate::sandbox::Policy;

/// The last bytes of a program's output that are searched.
const TAIL: usize = 8 << 10;
/// How programs say that there is no network, in lower case.
const NO_NETWORK: [&str; 14] = [
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
    "dial tcp: lookup",
    "no address associated with hostname",
    "failed to resolve address",
];
/// How programs say that they may not write or read a file, in lower case.
const NO_FILE: [&str; 5] = ["read-only file system", "erofs", "permission denied", "eacces", "operation not permitted"];

/// What the sandbox refused to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The network.
    Network,
    /// This file or folder.
    File(String),
}

impl Blocked {
    /// What happened, as a clause.
    pub(crate) fn told(&self) -> String {
        match self {
            Blocked::Network => "the sandbox blocked the network".into(),
            Blocked::File(path) => format!("the sandbox blocked {path}"),
        }
    }
}

/// The end of a program's output.
#[derive(Debug, Default)]
pub(crate) struct Tail(Vec<u8>);

impl Tail {
    /// Takes the next bytes and forgets what is too old.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        if self.0.len() > 2 * TAIL {
            self.0.drain(..self.0.len() - TAIL);
        }
    }

    /// What is kept of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// What the sandbox refused, as far as the program says so. The program is one that failed in this context.
    pub(crate) fn blocked(&self, ctx: &Context) -> Option<Blocked> {
        if !ctx.sandbox.confines() || ctx.policy == Policy::Outside {
            return None;
        }
        let text = String::from_utf8_lossy(&self.0);
        let has_no_network = ctx.policy != Policy::Network;
        text.lines().rev().find_map(|line| {
            let lower = line.to_lowercase();
            if has_no_network && NO_NETWORK.iter().any(|it| lower.contains(it)) {
                return Some(Blocked::Network);
            }
            if !NO_FILE.iter().any(|it| lower.contains(it)) {
                return None;
            }
            let outside = |path: &&str| !std::path::Path::new(path).starts_with(ctx.workspace.root());
            let is_read_only = lower.contains("read-only file system") || lower.contains("erofs");
            // Every path of the workspace that may not be written is a protected one.
            let path = paths(line).find(|path| is_read_only || outside(path))?;
            Some(Blocked::File(path.to_owned()))
        })
    }
}

/// The absolute paths in a line.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "'\"`:()[]{},;=‘’“”".contains(c));
    words.filter(|word| word.len() > 1 && word.starts_with('/'))
}
