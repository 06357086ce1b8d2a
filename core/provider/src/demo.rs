//! The built-in Provider: it explains that no model is connected, and its script fixes a bug in a sample project.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::script::{Pace, Script, Scripted};
use super::{Answer, AnswerPart, Chunk, Failure, Provider, Request};
use conversation::history::Piece;
use futures_util::future::BoxFuture;
use protocol::error::Code;
use protocol::event::Usage;

/// The prompt that the demo answers.
pub const PROMPT: &str = "The average is wrong. Find the bug, fix it and prove it with the tests.";
/// The name under which the demo is chosen.
pub const NAME: &str = "demo";
/// The name of the demo's model.
pub const MODEL: &str = "pixir-demo";

/// The sample project, written into an empty folder before the demo begins.
const SAMPLE: [(&str, &str); 3] = [
    ("README.md", include_str!("demo/README.md")),
    ("stats.sh", include_str!("demo/stats.sh")),
    ("tests/run.sh", include_str!("demo/run.sh")),
];

/// Writes the sample project.
///
/// # Errors
/// The file system's error.
pub fn write_sample(folder: &Path) -> io::Result<()> {
    for (name, text) in SAMPLE {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// Returns the script that works on the sample project.
pub fn script() -> Script {
    Scripted::parse(include_str!("demo/script.json")).expect("the embedded script is tested")
}

/// The rule that the demo brings along, so that its two edits are what the user decides about.
pub const RULE: &str = "bash(bash tests/run.sh)";

/// The model of the demo: a script, which has an answer too when the user does something else than the script expects.
#[derive(Debug)]
pub struct Guide(Scripted);

impl Guide {
    /// Follows this script.
    pub fn new(script: Script) -> Guide {
        Guide(Scripted::new(script))
    }

    /// The waits of its answers.
    pub fn pace(&self) -> Arc<Pace> {
        self.0.pace()
    }
}

impl Provider for Guide {
    fn writes_summaries(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            match self.0.answer(request, on_chunk).await {
                Err(failure) if failure.error.code == Code::ScriptMismatch => {
                    let text = include_str!("demo/elsewhere.md").trim_end().to_owned();
                    on_chunk(Chunk::Text(text.clone()));
                    let parts = vec![AnswerPart::text(text)];
                    Ok(Answer { parts, usage: Some(Usage::default()), ..Answer::default() })
                }
                answered => answered,
            }
        })
    }
}

/// The demo in the user's own workspace: it explains how to connect a model and calls no tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unconnected;

impl Provider for Unconnected {
    fn writes_summaries(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        request: &'a Request,
        on_chunk: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let asked = request.items.iter().rev().find_map(|item| {
                if let Piece::User { text, .. } = item.piece() { Some(text.into_owned()) } else { None }
            });
            let first: String = asked.unwrap_or_default().lines().next().unwrap_or_default().chars().take(60).collect();
            let text = format!(
                "{}\n\nYou said: “{first}”. This session keeps the message; choose a model and send another message to go on.",
                include_str!("demo/unconnected.md").trim_end()
            );
            on_chunk(Chunk::Text(text.clone()));
            Ok(Answer { parts: vec![AnswerPart::text(text)], usage: Some(Usage::default()), ..Answer::default() })
        })
    }
}
