//! Workflows: a graph of steps that is checked before anything runs, carried out by a scheduler, and resumed from its journal.
//!
//! A run is a Session whose Turn the scheduler carries out in place of a model. Every agent of it is a child Session. What the
//! graph says is data: nothing of it is evaluated, and no output of a step decides how another one ended.
#![forbid(unsafe_code)]

use serde::Serialize;
use serde_json::Value;

use protocol::error::{Code, Error};
use protocol::remedy::Remedy;

mod source; // the text of a file as a tree of values with lines
mod template; // text with paths in it
mod expression; // conditions
pub mod graph; // a workflow that was read
mod read; // the tree of a file as a workflow
mod check; // what a workflow refers to is there
mod checked; // a workflow without faults
mod inline; // other workflows in place of steps
mod schedule; // which step runs when
mod journal; // what the Log of a run knows
pub mod run; // carrying out a run
mod plan; // what a run would be
pub mod tool; // the tool by which a model runs one
mod view; // a run as a Presenter shows it

pub use checked::{Checked, Known};
pub use context::workflows::WorkflowFile;
pub use journal::Journal;
pub use plan::{PlannedStep, WorkflowPlan};
pub use run::Rehearsed;
pub use view::{RunView, StepView};

/// The most bytes of faults that an error tells.
const MAX_TOLD: usize = 2_000;

/// A fault of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The line of the file; 0 where there is none.
    pub line: usize,
    /// What it is about: `steps.build.needs`.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: String,
    /// The name of its error code.
    pub code: &'static str,
}

impl Fault {
    fn new(line: usize, at: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Fault {
        let code = Code::WorkflowInvalid.name();
        Fault { line, at: at.into(), message: message.into(), fix: fix.into(), code }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.at.is_empty() {
            write!(f, "{}: ", self.at)?;
        }
        write!(f, "{}. Use: {}", self.message, self.fix)
    }
}

/// A workflow's text as data.
///
/// # Errors
/// Every fault of its TOML, or the first one of its JSON.
pub fn as_data(text: &str) -> Result<Value, Vec<Fault>> {
    source::parse(text).map(|node| node.value())
}

/// All faults of a workflow as one error.
pub fn invalid(name: &str, faults: &[Fault]) -> Error {
    // A user and a model correct all that they read, so they read as many as have room.
    let mut told = String::new();
    let mut left = faults.len();
    for fault in faults.iter().map(Fault::to_string) {
        if !told.is_empty() && told.len() + fault.len() > MAX_TOLD {
            break;
        }
        told.push_str(if told.is_empty() { "" } else { "; " });
        told.push_str(&fault);
        left -= 1;
    }
    let more = if left > 0 { format!(", and {left} more") } else { String::new() };
    let all = serde_json::to_value(faults).unwrap_or_default();
    // The faults of a file that the user does not trust are no work for the user yet.
    if let Some(fault) = faults.iter().find(|it| it.code == Code::WorkspaceUntrusted.name()) {
        let message = format!("the workflow {name} cannot be run: {}: {}", fault.at, fault.message);
        return Error::new(Code::WorkspaceUntrusted, message, Remedy::TrustWorkspace).with("faults", all);
    }
    let fix = if faults.len() == 1 { "correct it" } else { "correct every fault" };
    Error::new(Code::WorkflowInvalid, format!("the workflow {name} cannot be used: {told}{more}"), fix)
        .with("faults", all)
}
