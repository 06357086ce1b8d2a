//! Syntax colours, worked out on a thread of their own; until they are there, code is shown plain.

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

/// Longer lines are not coloured, bytes.
const MAX_LINE: usize = 4_000;
/// Larger texts are not coloured, bytes.
const MAX_TEXT: usize = 400_000;
/// Coloured texts that are kept.
const MAX_KEPT: usize = 256;
/// Pieces of code of which places are kept, and how many of each.
const MAX_FAMILIES: usize = 64;
const MAX_PLACES: usize = 400;
/// Bytes between two places that are kept.
const KEEP_EVERY: usize = 4 << 10;

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
    /// What stands before, whose colours are not asked for.
    before: String,
    code: String,
}

impl Highlighter {
    /// Nothing is loaded before the first code is asked for.
    pub(crate) fn new(ready: impl Fn() + Send + Sync + 'static) -> Highlighter {
        Highlighter { known: Arc::default(), worker: Arc::default(), ready: Arc::new(ready) }
    }

    /// The colours of this code, which goes on after `before`, if they are known; if not, they will be.
    pub(crate) fn colours(&self, language: &str, before: &str, code: &str) -> Option<Coloured> {
        if language.is_empty() || before.len() + code.len() > MAX_TEXT {
            return None;
        }
        let key = hash(&(language, before, code));
        let mut known = self.known.lock();
        if let Some(there) = known.get(&key) {
            return there.clone();
        }
        if known.len() >= MAX_KEPT {
            known.retain(|_, colours| colours.is_none());
        }
        known.insert(key, None);
        drop(known);
        let job = Job { key, language: language.to_owned(), before: before.to_owned(), code: code.to_owned() };
        let mut worker = self.worker.lock();
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
            let mut places = Places::default();
            for job in jobs {
                let colours = colour(&syntaxes, &mut places, &job);
                known.lock().insert(job.key, colours.map(Arc::new));
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

/// Where the parser stands in a piece of code.
#[derive(Clone)]
struct Place {
    at: usize,
    state: ParseState,
    stack: ScopeStack,
}

/// Places in code that was read before, so that a long piece is not read from its start for each of its parts.
#[derive(Default)]
struct Places {
    /// By language and first line; each with the hash of what stands before it.
    of: HashMap<u64, Vec<(u64, Place)>>,
}

impl Places {
    /// The last known place in this text.
    fn nearest(&self, family: u64, text: &str) -> Option<Place> {
        let places = self.of.get(&family)?.iter().rev();
        let mut fits = places.filter(|(key, place)| text.get(..place.at).is_some_and(|start| hash(&start) == *key));
        fits.next().map(|(_, place)| place.clone())
    }

    fn keep(&mut self, family: u64, text: &str, place: Place) {
        if self.of.len() > MAX_FAMILIES {
            self.of.clear();
        }
        let places = self.of.entry(family).or_default();
        if places.last().is_none_or(|(_, last)| last.at < place.at) && places.len() < MAX_PLACES {
            places.push((hash(&&text[..place.at]), place));
        }
    }
}

fn colour(syntaxes: &SyntaxSet, places: &mut Places, job: &Job) -> Option<Vec<Vec<(Kind, String)>>> {
    let syntax = syntaxes.find_syntax_by_token(&job.language)?;
    let family = hash(&(&job.language, job.before.lines().next().or_else(|| job.code.lines().next())));
    let start = || Place { at: 0, state: ParseState::new(syntax), stack: ScopeStack::new() };
    let mut place = places.nearest(family, &job.before).unwrap_or_else(start);
    let mut kept_at = place.at;
    for line in job.before[place.at..].split_inclusive('\n') {
        read_line(syntaxes, &mut place, line, |_, _| ())?;
        if place.at - kept_at >= KEEP_EVERY {
            kept_at = place.at;
            places.keep(family, &job.before, place.clone());
        }
    }
    let mut lines = Vec::new();
    for line in job.code.split_inclusive('\n') {
        let mut pieces: Vec<(Kind, String)> = Vec::new();
        read_line(syntaxes, &mut place, line, |text, kind| match pieces.last_mut() {
            Some((last, joined)) if *last == kind => joined.push_str(text),
            _ if !text.is_empty() => pieces.push((kind, text.to_owned())),
            _ => {}
        })?;
        lines.push(pieces);
    }
    if job.code.len() >= KEEP_EVERY / 4 {
        places.keep(family, &format!("{}{}", job.before, job.code), place);
    }
    Some(lines)
}

fn read_line(syntaxes: &SyntaxSet, place: &mut Place, line: &str, mut put: impl FnMut(&str, Kind)) -> Option<()> {
    place.at += line.len();
    if line.len() > MAX_LINE {
        put(line.trim_end_matches('\n'), Kind::Plain);
        return Some(());
    }
    let mut from = 0;
    for (at, operation) in place.state.parse_line(line, syntaxes).ok()? {
        put(line[from..at].trim_end_matches('\n'), kind_of(&place.stack));
        from = at;
        place.stack.apply(&operation).ok()?;
    }
    put(line[from..].trim_end_matches('\n'), kind_of(&place.stack));
    Some(())
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
        assert!(highlighter.colours("rust", "", code).is_none());
        arrived.recv_timeout(std::time::Duration::from_secs(30)).expect("the worker answers");
        let lines = highlighter.colours("rust", "", code).expect("known now");
        let text: Vec<String> = lines.iter().map(|line| line.iter().map(|(_, t)| t.as_str()).collect()).collect();
        assert_eq!(text, ["// hi", "fn main() { let x = \"s\"; }"]);
        assert!(lines[1].iter().any(|(kind, text)| *kind == Kind::Function && text == "main"));
    }

    #[test]
    fn code_that_goes_on_has_the_colours_that_it_has_in_the_whole() {
        let syntaxes = two_face::syntax::extra_newlines();
        let code: String = (0..400).map(|i| format!("/* {i}\n still */ fn f{i}() {{}} /*\n*/\n")).collect();
        let whole = Job { key: 0, language: "rust".into(), before: String::new(), code: code.clone() };
        let wanted = colour(&syntaxes, &mut Places::default(), &whole).expect("rust is known");
        let mut places = Places::default();
        let (mut at, mut got) = (0, Vec::new());
        let mut cuts: Vec<usize> = code.match_indices('\n').map(|(at, _)| at + 1).step_by(61).collect();
        cuts.push(code.len());
        for cut in cuts {
            let (before, code) = (code[..at].to_owned(), code[at..cut].to_owned());
            got.extend(
                colour(&syntaxes, &mut places, &Job { key: 0, language: "rust".into(), before, code }).expect("it is"),
            );
            at = cut;
        }
        assert_eq!(got, wanted);
        assert!(!places.of.is_empty());
    }
}
