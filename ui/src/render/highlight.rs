//! Syntax colours, computed on a thread of their own. Code is shown plain until they arrive.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher as _};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use parking_lot::Mutex;
use ratatui::style::Color;
use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use crate::theme::Theme;

/// Longer lines get no colours, in bytes.
const MAX_LINE: usize = 4_000;
/// Longer texts get no colours, in bytes.
const MAX_TEXT: usize = 400_000;
/// The most coloured texts in the cache.
const MAX_CACHED: usize = 256;
/// The most texts with saved parser states, and the most states of each.
const MAX_FAMILIES: usize = 64;
const MAX_CHECKPOINTS: usize = 400;
/// The distance between two saved parser states, in bytes.
const CHECKPOINT_EVERY: usize = 4 << 10;

/// The syntactic kind of a piece of code.
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

/// Lines of coloured pieces.
pub(crate) type Coloured = Arc<Vec<Vec<(Kind, String)>>>;

/// The cache of coloured texts, and the worker that fills it.
#[derive(Clone)]
pub(crate) struct Highlighter {
    /// None while the worker computes the colours, and for a language without a syntax.
    cache: Arc<Mutex<HashMap<u64, Option<Coloured>>>>,
    worker: Arc<Mutex<Option<Sender<HighlightRequest>>>>,
    /// Called on the worker's thread when colours have arrived.
    ready: Arc<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

struct HighlightRequest {
    key: u64,
    language: String,
    /// The code before this text. Its colours are not needed.
    before: String,
    code: String,
}

impl Highlighter {
    /// Nothing is loaded until the first request.
    pub(crate) fn new(ready: impl Fn() + Send + Sync + 'static) -> Highlighter {
        Highlighter { cache: Arc::default(), worker: Arc::default(), ready: Arc::new(ready) }
    }

    /// The colours of code that continues after `before`. None until the worker has computed them.
    pub(crate) fn colours(&self, language: &str, before: &str, code: &str) -> Option<Coloured> {
        if language.is_empty() || before.len() + code.len() > MAX_TEXT {
            return None;
        }
        let key = hash(&(language, before, code));
        let mut cache = self.cache.lock();
        if let Some(there) = cache.get(&key) {
            return there.clone();
        }
        if cache.len() >= MAX_CACHED {
            // Entries without colours stay, so that no request is sent twice.
            cache.retain(|_, colours| colours.is_none());
        }
        cache.insert(key, None);
        drop(cache);
        let request =
            HighlightRequest { key, language: language.to_owned(), before: before.to_owned(), code: code.to_owned() };
        let mut worker = self.worker.lock();
        let sender = worker.get_or_insert_with(|| self.start());
        // If the worker has crashed, code stays plain.
        let _ = sender.send(request);
        None
    }

    fn start(&self) -> Sender<HighlightRequest> {
        let (sender, requests) = channel::<HighlightRequest>();
        let (cache, ready) = (Arc::clone(&self.cache), Arc::clone(&self.ready));
        let spawned = thread::Builder::new().name("highlight".into()).spawn(move || {
            let syntaxes = two_face::syntax::extra_newlines();
            let mut checkpoints = Checkpoints::default();
            for request in requests {
                let colours = colour(&syntaxes, &mut checkpoints, &request);
                cache.lock().insert(request.key, colours.map(Arc::new));
                ready();
            }
        });
        if let Err(e) = spawned {
            tracing::warn!("no thread for syntax colours: {e}");
        }
        sender
    }
}

fn hash(it: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish()
}

/// A state of the parser.
#[derive(Clone)]
struct Checkpoint {
    at: usize,
    state: ParseState,
    stack: ScopeStack,
}

/// Saved parser states, so that each part of a long code is not parsed from the start.
#[derive(Default)]
struct Checkpoints {
    /// By language and first line. Each state has the hash of the text before it.
    of: HashMap<u64, Vec<(u64, Checkpoint)>>,
}

impl Checkpoints {
    /// The last saved state that fits this text.
    fn nearest(&self, family: u64, text: &str) -> Option<Checkpoint> {
        let checkpoints = self.of.get(&family)?.iter().rev();
        let mut fits =
            checkpoints.filter(|(key, checkpoint)| text.get(..checkpoint.at).is_some_and(|start| hash(&start) == *key));
        fits.next().map(|(_, checkpoint)| checkpoint.clone())
    }

    fn keep(&mut self, family: u64, text: &str, checkpoint: Checkpoint) {
        if self.of.len() > MAX_FAMILIES {
            self.of.clear();
        }
        let checkpoints = self.of.entry(family).or_default();
        if checkpoints.last().is_none_or(|(_, last)| last.at < checkpoint.at) && checkpoints.len() < MAX_CHECKPOINTS {
            checkpoints.push((hash(&&text[..checkpoint.at]), checkpoint));
        }
    }
}

fn colour(
    syntaxes: &SyntaxSet,
    checkpoints: &mut Checkpoints,
    request: &HighlightRequest,
) -> Option<Vec<Vec<(Kind, String)>>> {
    let syntax = syntaxes.find_syntax_by_token(&request.language)?;
    let family = hash(&(&request.language, request.before.lines().next().or_else(|| request.code.lines().next())));
    let start = || Checkpoint { at: 0, state: ParseState::new(syntax), stack: ScopeStack::new() };
    let mut checkpoint = checkpoints.nearest(family, &request.before).unwrap_or_else(start);
    let mut saved_at = checkpoint.at;
    for line in request.before[checkpoint.at..].split_inclusive('\n') {
        read_line(syntaxes, &mut checkpoint, line, |_, _| ())?;
        if checkpoint.at - saved_at >= CHECKPOINT_EVERY {
            saved_at = checkpoint.at;
            checkpoints.keep(family, &request.before, checkpoint.clone());
        }
    }
    let mut lines = Vec::new();
    for line in request.code.split_inclusive('\n') {
        let mut pieces: Vec<(Kind, String)> = Vec::new();
        read_line(syntaxes, &mut checkpoint, line, |text, kind| match pieces.last_mut() {
            Some((last, joined)) if *last == kind => joined.push_str(text),
            _ if !text.is_empty() => pieces.push((kind, text.to_owned())),
            _ => {}
        })?;
        lines.push(pieces);
    }
    if request.code.len() >= CHECKPOINT_EVERY / 4 {
        checkpoints.keep(family, &format!("{}{}", request.before, request.code), checkpoint);
    }
    Some(lines)
}

fn read_line(
    syntaxes: &SyntaxSet,
    checkpoint: &mut Checkpoint,
    line: &str,
    mut put: impl FnMut(&str, Kind),
) -> Option<()> {
    checkpoint.at += line.len();
    if line.len() > MAX_LINE {
        put(line.trim_end_matches('\n'), Kind::Plain);
        return Some(());
    }
    let mut from = 0;
    for (at, operation) in checkpoint.state.parse_line(line, syntaxes).ok()? {
        put(line[from..at].trim_end_matches('\n'), kind_of(&checkpoint.stack));
        from = at;
        checkpoint.stack.apply(&operation).ok()?;
    }
    put(line[from..].trim_end_matches('\n'), kind_of(&checkpoint.stack));
    Some(())
}

/// The innermost scope with a meaning decides.
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
        assert!(highlighter.colours("rust", "", code).is_none());
        arrived.recv_timeout(std::time::Duration::from_secs(30)).expect("the worker answers");
        let lines = highlighter.colours("rust", "", code).expect("the colours are in the cache");
        let text: Vec<String> = lines.iter().map(|line| line.iter().map(|(_, t)| t.as_str()).collect()).collect();
        assert_eq!(text, ["// hi", "fn main() { let x = \"s\"; }"]);
        assert!(lines[1].iter().any(|(kind, text)| *kind == Kind::Function && text == "main"));
    }

    #[test]
    fn code_that_goes_on_has_the_colours_that_it_has_in_the_whole() {
        let syntaxes = two_face::syntax::extra_newlines();
        let code: String = (0..400).map(|i| format!("/* {i}\n still */ fn f{i}() {{}} /*\n*/\n")).collect();
        let whole = HighlightRequest { key: 0, language: "rust".into(), before: String::new(), code: code.clone() };
        let wanted = colour(&syntaxes, &mut Checkpoints::default(), &whole).expect("rust has a syntax");
        let mut checkpoints = Checkpoints::default();
        let (mut at, mut got) = (0, Vec::new());
        let mut cuts: Vec<usize> = code.match_indices('\n').map(|(at, _)| at + 1).step_by(61).collect();
        cuts.push(code.len());
        for cut in cuts {
            let (before, code) = (code[..at].to_owned(), code[at..cut].to_owned());
            got.extend(
                colour(
                    &syntaxes,
                    &mut checkpoints,
                    &HighlightRequest { key: 0, language: "rust".into(), before, code },
                )
                .expect("rust has a syntax"),
            );
            at = cut;
        }
        assert_eq!(got, wanted);
        assert!(!checkpoints.of.is_empty());
    }
}
