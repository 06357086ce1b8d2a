//! The agent without a face: Sessions, Turns, Providers, tools, and an append-only Log that is the truth.
//!
//! A Presenter sends [`Input`]s to a [`session::Handle`] and hears [`Event`]s; it never owns History, permissions or tools.
//! Nothing here draws, prints or reads the environment, and two harnesses in one process do not know each other. The one
//! global is [`process`]'s table of children, because a process has only one.
#![warn(missing_docs)]

pub mod protocol; // what crosses the boundary

pub use call::present;
pub use config::credentials;
pub use context::{compaction, library, prompt, skills};
pub use conversation::{history, tree, usage};
pub use files::{changes, restore, workspace};
pub use maintenance::{archive, diagnose, inspect};
pub use process::jobs;
pub use protocol::{error, event, input, now, remedy};
pub use session::watch;
pub use storage::{blobs, log, store};

// The conversation.
pub mod context; // what the model is sent
pub mod conversation; // what a Log means
pub mod harness; // one workspace's Sessions: start, resume, look, tend
pub mod maintenance; // work on Sessions at rest
pub mod session; // one conversation: the single writer of its Log
mod turn; // ask the model, run its tools, repeat

// Who answers, and what it may do.
pub mod call; // the way of a tool call
pub mod permissions; // may this call run?
pub mod provider; // trait Provider and its dialects
pub mod run; // the run language: one line is a whole workflow
pub mod tools; // trait Tool, the registry, one path for every call

// What they lean on.
pub mod config; // settings, read once and passed in
pub mod files;
pub mod process; // processes that are stopped together
pub mod storage;
pub mod text; // text at the edges // Logs, and what is stored beside them // the workspace and its versions

pub use error::{Code, Error, ErrorKind, Result};
pub use event::{Entry, Event, Fact, Live};
pub use input::{Accepted, Decision, Input};
pub use remedy::Remedy;
