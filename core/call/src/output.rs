//! What a tool returned, before it is presented to the model.

use super::Context;
use super::blocked::Blocked;
use super::outcome::Outcome;
use super::present::{Budget, Capture, Overflow};
use files::guard::Taken;
use protocol::error::Error;
use protocol::event::{Attachment, ChangeKind, Fact, FileChange, ResultOrigin};

/// A tool's outcome: its streams, its exit code and its effects.
#[derive(Debug)]
pub struct Output {
    /// The tool's output.
    pub stdout: Capture,
    /// The stderr of the child process.
    pub stderr: Capture,
    /// The exit code: 0 if there is no child process, 128 + n after signal n.
    pub exit: i32,
    /// The exit code of each command of the last pipeline; empty if it has only one command.
    pub pipestatus: Vec<i32>,
    /// Files that the tool changed.
    pub changes: Vec<FileChange>,
    /// Facts that are recorded with the result: a new preview, a memory.
    pub facts: Vec<Fact>,
    /// The tool of an MCP server that answered.
    pub origin: Option<ResultOrigin>,
    /// Images for the model.
    pub attachments: Vec<Attachment>,
    /// The errors of a line's commands, each with the name of its command.
    pub errors: Vec<(String, Error)>,
    /// What the sandbox refused, if the tool failed because of that.
    pub blocked: Option<Blocked>,
    /// What the model reads if there is no output: `no match in 41 files`.
    pub nothing: String,
    /// Protected files that the tool's programs wrote, and that were taken back.
    pub taken: Vec<Taken>,
    /// Those of them that are as they were before, because the user did not keep what was written.
    pub put_back: Vec<String>,
    /// What came of the call, for the user.
    pub outcome: Outcome,
    /// If the output is a file's content: the command that read the file, unless the tool itself did.
    pub reader: Option<&'static str>,
}

impl Output {
    /// An empty output with this budget.
    pub fn new(ctx: &Context, budget: Budget) -> Output {
        let aside = ctx.overflow.clone().map(|it| Overflow { name: format!("{}.stderr", it.name), ..it });
        Output {
            stdout: Capture::new(budget, ctx.overflow.clone()),
            stderr: Capture::new(budget.stderr(), aside),
            exit: 0,
            pipestatus: Vec::new(),
            changes: Vec::new(),
            facts: Vec::new(),
            origin: None,
            attachments: Vec::new(),
            errors: Vec::new(),
            blocked: None,
            nothing: "no output".into(),
            taken: Vec::new(),
            put_back: Vec::new(),
            outcome: Outcome::Plain,
            reader: None,
        }
    }

    /// This output, of a call that ran a second time, with the changes of the first time.
    pub fn after(mut self, first: Output) -> Output {
        for old in first.changes {
            match self.changes.iter_mut().find(|new| new.path == old.path) {
                Some(new) => {
                    (new.before_blob, new.before_mode) = (old.before_blob, old.before_mode);
                    new.new_folders = old.new_folders.max(new.new_folders);
                    new.kind = match (old.kind, new.kind) {
                        (ChangeKind::Created, ChangeKind::Modified) => ChangeKind::Created,
                        (ChangeKind::Deleted, ChangeKind::Created) => ChangeKind::Modified,
                        (_, kind) => kind,
                    };
                    new.added += old.added;
                    new.removed += old.removed;
                }
                None => self.changes.push(old),
            }
        }
        self
    }

    /// An output with text from files.
    pub fn of_files(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, ctx.limits.typed());
        output.stdout.is_of_files();
        output.stdout.push(text.as_bytes());
        output
    }

    /// An output with a page of a file.
    pub fn page(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, ctx.limits.page());
        output.stdout.is_page();
        output.stdout.push(text.as_bytes());
        output
    }

    /// An output with this text.
    pub fn text(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, ctx.limits.typed());
        output.stdout.push(text.as_bytes());
        output
    }
}
