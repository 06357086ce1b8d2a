//! What a call touches, determined before it runs.
//!
//! A new kind of touch is a variant here, with its answers to the questions below, and an arm where the gate judges it
//! ([`super::judge`]) and where a role bounds it ([`super::Bounds::refuses`]).

use std::borrow::Cow;
use std::path::PathBuf;

use super::Readable;
use super::readers::{prove, prove_read_only};
use super::shell::quoted;
use protocol::protected::Group;

/// What a call touches, determined before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// It only reads, inside the workspace.
    Read,
    /// It only reads, outside the workspace too. The paths have no symlink in them.
    Outside {
        /// Files, and folders with all that is below them.
        paths: Vec<PathBuf>,
        /// A path among them that holds secrets.
        secret: Option<PathBuf>,
    },
    /// It changes only pixir's own record of the Session.
    Note,
    /// It calls a tool of another program, which acts outside the sandbox.
    Mcp {
        /// The server.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// The hash of its definition.
        pin: String,
        /// What the user said about the tool.
        word: UsersWord,
        /// The server says that a call may destroy something.
        is_destructive: bool,
    },
    /// It runs a workflow. Each step is judged by itself; the user sees the graph first.
    Workflow,
    /// It changes files.
    Files {
        /// The file, if the call changes exactly one and its path is known.
        path: Option<String>,
        /// A protected path among them: it can run code or widen pixir's permissions.
        protected: Option<Protected>,
    },
    /// It replaces or removes a file that its user may not write, beside what it touches otherwise.
    ReadOnly {
        /// The file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// It runs a command line through the shell.
    Command(String),
    /// It runs a program with these words, without a shell.
    Program(Vec<String>),
}

/// A protected file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// Its path.
    pub path: String,
    /// Its group.
    pub group: Group,
}

/// What the user said about a tool of another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsersWord {
    /// It only reads.
    Reads,
    /// It may run without asking.
    Allowed,
    /// Nothing.
    Nothing,
}

/// What a call may change in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes<'a> {
    /// Nothing.
    Nothing,
    /// This file.
    File(&'a str),
    /// Anything: it cannot be known before the call has run.
    Anything,
}

/// A command that a call runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// A line for the shell.
    Line(&'a str),
    /// A program with its words, without a shell.
    Program(Vec<&'a str>),
}

impl Touch {
    /// Whether it changes nothing.
    pub fn only_reads(&self) -> bool {
        match self {
            Touch::Read | Touch::Outside { .. } | Touch::Mcp { word: UsersWord::Reads, .. } => true,
            Touch::Note | Touch::Workflow | Touch::Mcp { .. } => false,
            Touch::Files { .. } | Touch::ReadOnly { .. } | Touch::Command(_) | Touch::Program(_) => false,
        }
    }

    /// What it may change in the workspace.
    pub fn changes(&self) -> Changes<'_> {
        match self {
            Touch::Read | Touch::Outside { .. } | Touch::Note | Touch::Workflow => Changes::Nothing,
            // Another touch says which file it is.
            Touch::ReadOnly { .. } => Changes::Nothing,
            Touch::Mcp { word: UsersWord::Reads, .. } => Changes::Nothing,
            Touch::Files { path: Some(path), .. } => Changes::File(path),
            Touch::Files { path: None, .. } | Touch::Command(_) | Touch::Program(_) | Touch::Mcp { .. } => {
                Changes::Anything
            }
        }
    }

    /// The one file that it changes, where that is known.
    pub fn file(&self) -> Option<&str> {
        match self.changes() {
            Changes::File(path) => Some(path),
            Changes::Nothing | Changes::Anything => None,
        }
    }

    /// The command that it runs in the sandbox.
    pub fn command(&self) -> Option<Command<'_>> {
        match self {
            Touch::Command(line) => Some(Command::Line(line)),
            Touch::Program(words) => Some(Command::Program(words.iter().map(String::as_str).collect())),
            Touch::Read | Touch::Outside { .. } | Touch::Note | Touch::Workflow | Touch::Files { .. } => None,
            Touch::ReadOnly { .. } | Touch::Mcp { .. } => None,
        }
    }
}

impl Command<'_> {
    /// The line that would run it in a shell.
    pub(super) fn line(&self) -> Cow<'_, str> {
        match self {
            Command::Line(line) => Cow::Borrowed(line),
            Command::Program(words) => Cow::Owned(quoted(words.iter().copied())),
        }
    }

    /// Whether it is proven to only read.
    ///
    /// # Errors
    /// Why it may do more.
    pub(super) fn proven_to_read(&self, readable: Readable<'_>) -> Result<(), String> {
        match self {
            Command::Line(line) => prove_read_only(line, readable),
            Command::Program(words) => prove(words, readable),
        }
    }
}
