//! Syntax colours, worked out on a thread of their own; until they are there, code is shown plain.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ratatui::style::Color;
use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use crate::theme::Theme;

/// Longer lines are not coloured, bytes.
const MAX_LINE: usize = 4_000;
/// Larger texts are not coloured, bytes.
const MAX_TEXT: usize = 400_000;
/// Coloured texts that are kept.
const MAX_KEPT: usize = 256;

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Keyword,
    String,
    Comment,
    Number,
    Function,
    Type,
}

impl Kind {
    pub(crate) fn colour(self, theme: &Theme) -> Color {
        match self {
            Kind::Plain => theme.text,
            Kind::Keyword => theme.keyword,
            Kind::String => theme.string,
            Kind::Comment => theme.comment,
            Kind::Number => theme.number,
            Kind::Function => theme.function,
            Kind::Type => theme.r#type,
        }
    }
}

/// Lines of pieces.
pub(crate) type Coloured = Arc<Vec<Vec<(Kind, String)>>>;

/// Colours that are known, and a worker for those that are not.
#[derive(Clone)]
pub(crate) struct Highlighter {
    known: Arc<Mutex<HashMap<u64, Option<Coloured>>>>,
    worker: Arc<Mutex<Option<Sender<Job>>>>,
    /// Called from the worker when new colours are known.
    ready: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

struct Job {
    key: u64,
    language: String,
    code: String,
}

impl Highlighter {
    /// Nothing is loaded before the first code is asked for.
    pub(crate) fn new(ready: impl Fn() + Send + Sync + 'static) -> Highlighter {
        Highlighter { known: Arc::default(), worker: Arc::default(), ready: Arc::new(ready) }
    }

    /// The colours of this code, if they are known; if not, they will be.
    pub(crate) fn colours(&self, language: &str, code: &str) -> Option<Coloured> {
        if language.is_empty() || code.len() > MAX_TEXT {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (language, code).hash(&mut hasher);
        let key = hasher.finish();
        let mut known = lock(&self.known);
        if let Some(there) = known.get(&key) {
            return there.clone();
        }
        if known.len() >= MAX_KEPT {
            known.retain(|_, colours| colours.is_none());
        }
        known.insert(key, None);
        drop(known);
        let job = Job { key, language: language.to_owned(), code: code.to_owned() };
        let mut worker = lock(&self.worker);
        let sender = worker.get_or_insert_with(|| self.start());
        // A worker that broke leaves code plain.
        let _ = sender.send(job);
        None
    }

    fn start(&self) -> Sender<Job> {
        let (sender, jobs) = channel::<Job>();
        let (known, ready) = (Arc::clone(&self.known), Arc::clone(&self.ready));
        let spawned = thread::Builder::new().name("highlight".into()).spawn(move || {
            let syntaxes = two_face::syntax::extra_newlines();
            for job in jobs {
                let colours = colour(&syntaxes, &job.language, &job.code);
                lock(&known).insert(job.key, colours.map(Arc::new));
                ready();
            }
        });
        if let Err(e) = spawned {
            tracing::warn!("no thread for syntax colours: {e}");
        }
        sender
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn colour(syntaxes: &SyntaxSet, language: &str, code: &str) -> Option<Vec<Vec<(Kind, String)>>> {
    let syntax = syntaxes.find_syntax_by_token(language)?;
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut lines = Vec::new();
    for line in code.split_inclusive('\n') {
        if line.len() > MAX_LINE {
            lines.push(vec![(Kind::Plain, line.trim_end_matches('\n').to_owned())]);
            continue;
        }
        let mut pieces: Vec<(Kind, String)> = Vec::new();
        let mut from = 0;
        let mut put = |text: &str, kind| match pieces.last_mut() {
            Some((last, joined)) if *last == kind => joined.push_str(text),
            _ if !text.is_empty() => pieces.push((kind, text.to_owned())),
            _ => {}
        };
        for (at, operation) in state.parse_line(line, syntaxes).ok()? {
            put(line[from..at].trim_end_matches('\n'), kind_of(&stack));
            from = at;
            stack.apply(&operation).ok()?;
        }
        put(line[from..].trim_end_matches('\n'), kind_of(&stack));
        lines.push(pieces);
    }
    Some(lines)
}

/// The innermost scope that means something decides.
fn kind_of(stack: &ScopeStack) -> Kind {
    for scope in stack.scopes.iter().rev() {
        let name = scope.build_string();
        let kind = match name.split('.').next().unwrap_or_default() {
            "comment" => Kind::Comment,
            "string" => Kind::String,
            "constant" => Kind::Number,
            "keyword" | "storage" => Kind::Keyword,
            "entity" if name.starts_with("entity.name.function") => Kind::Function,
            "entity" => Kind::Type,
            "support" if name.starts_with("support.function") => Kind::Function,
            "support" => Kind::Type,
            "variable" if name.starts_with("variable.function") => Kind::Function,
            _ => continue,
        };
        return kind;
    }
    Kind::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_later_and_hold_every_character() {
        let (done, arrived) = channel();
        let highlighter = Highlighter::new(move || {
            let _ = done.send(());
        });
        let code = "// hi\nfn main() { let x = \"s\"; }\n";
        assert!(highlighter.colours("rust", code).is_none());
        arrived.recv_timeout(std::time::Duration::from_secs(30)).expect("the worker answers");
        let lines = highlighter.colours("rust", code).expect("known now");
        let text: Vec<String> = lines.iter().map(|line| line.iter().map(|(_, t)| t.as_str()).collect()).collect();
        assert_eq!(text, ["// hi", "fn main() { let x = \"s\"; }"]);
        assert!(lines[1].iter().any(|(kind, text)| *kind == Kind::Function && text == "main"));
    }
}
