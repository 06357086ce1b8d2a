//! What a tool returned, before it is presented to the model.

use super::Context;
use super::present::{Budget, Capture, Overflow};
use crate::protocol::error::Error;
use crate::protocol::event::{Attachment, Fact, FileChange};

/// What a tool did.
#[derive(Debug)]
pub struct Output {
    /// What it printed.
    pub stdout: Capture,
    /// What went wrong meanwhile, in the child's words.
    pub stderr: Capture,
    /// 0 where there is no child; 128 + n after a signal.
    pub exit: i32,
    /// The exit code of each command of the last pipeline, when it had several.
    pub pipestatus: Vec<i32>,
    /// Files that it changed.
    pub changes: Vec<FileChange>,
    /// What it found out that is recorded with its result: a new plan, a memory.
    pub facts: Vec<Fact>,
    /// Images for the model to look at.
    pub attachments: Vec<Attachment>,
    /// What commands of a chain could not do, by their names.
    pub errors: Vec<(String, Error)>,
    /// stderr is presented although the whole succeeded.
    pub tell_stderr: bool,
    /// The command that read the file which the output is, where that is not the tool itself.
    pub reader: Option<&'static str>,
}

impl Output {
    /// Nothing yet; what is printed is bounded like this.
    pub(crate) fn new(ctx: &Context, budget: Budget) -> Output {
        let aside = ctx.overflow.clone().map(|it| Overflow { name: format!("{}.stderr", it.name), ..it });
        Output {
            stdout: Capture::new(budget, ctx.overflow.clone()),
            stderr: Capture::new(budget.stderr(), aside),
            exit: 0,
            pipestatus: Vec::new(),
            changes: Vec::new(),
            facts: Vec::new(),
            attachments: Vec::new(),
            errors: Vec::new(),
            tell_stderr: false,
            reader: None,
        }
    }

    /// The text of files.
    pub(crate) fn of_files(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, Budget::TYPED);
        output.stdout.is_of_files();
        output.stdout.push(text.as_bytes());
        output
    }

    /// Plain text, bounded like any other output.
    pub(crate) fn text(ctx: &Context, text: &str) -> Output {
        let mut output = Output::new(ctx, Budget::TYPED);
        output.stdout.push(text.as_bytes());
        output
    }
}
