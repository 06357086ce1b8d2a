//! Syntax colours, computed on a thread of their own. Code is shown plain until they arrive.
//!
//! Code that streams in is coloured by complete lines. A line keeps its colours: those of later lines do not change it.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ratatui::style::Color;
use syntect::parsing::{ParseState, ScopeStack, SyntaxSet};

use crate::theme::Theme;

/// Longer lines get no colours, in bytes.
const MAX_LINE: usize = 4_000;
/// Longer texts get no colours, in bytes.
const MAX_TEXT: usize = 400_000;
/// The coloured texts in the cache before those that are not laid out any more leave it.
const MAX_CACHED: usize = 256;
/// How long a text stays in the full cache after the last layout that asked for it: longer than any layout takes.
const KEPT: Duration = Duration::from_mins(1);
/// How long a screen waits for more colours while others are computed, first and at most: it lays all of its text out anew
/// for those that have arrived.
const GATHERED: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
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

/// The state of a text in the cache.
enum Known {
    /// The worker computes its colours.
    Awaited,
    /// The language has no syntax.
    Colourless,
    Coloured {
        lines: Coloured,
        /// When they arrived, or a layout last asked for them.
        used: Instant,
    },
}

/// Texts with their colours, by a hash of the text.
struct Cache {
    of: HashMap<u64, Known>,
    /// The number of texts at which those leave that no layout asks for any more.
    room: usize,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { of: HashMap::new(), room: MAX_CACHED }
    }
}

impl Cache {
    fn insert(&mut self, key: u64, known: Known, now: Instant) {
        if self.of.len() >= self.room {
            // Texts without colours stay, so that no request is sent twice, and those of the last layouts, however many they
            // are: a layout that pushes its own texts out is never complete.
            self.of.retain(|_, known| match known {
                Known::Coloured { used, .. } => now.duration_since(*used) < KEPT,
                Known::Awaited | Known::Colourless => true,
            });
            self.room = MAX_CACHED.max(self.of.len() * 3 / 2);
        }
        self.of.insert(key, known);
    }
}

/// The coloured lines of a code that grows, or has just stopped to grow.
struct Growing {
    language: String,
    before: u64,
    /// The code whose lines are coloured, and the code whose colours are requested.
    code: String,
    requested: usize,
    lines: Vec<Vec<(Kind, String)>>,
}

/// Codes that have grown last. The parts of one answer follow each other.
const MAX_GROWING: usize = 8;

/// The cache of coloured texts, and the worker that fills it.
#[derive(Clone)]
pub(crate) struct Highlighter {
    cache: Arc<Mutex<Cache>>,
    growing: Arc<Mutex<VecDeque<Growing>>>,
    /// Some text was laid out without all of its colours since the caller last asked.
    was_short: Arc<AtomicBool>,
    /// The colours of a text that does not grow have arrived.
    has_whole: Arc<AtomicBool>,
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
    of: Of,
}

/// What a request is for.
#[derive(Clone, Copy)]
enum Of {
    /// A text that does not grow.
    Whole,
    /// The next lines of a text that grows, from this byte on.
    Growing(usize),
}

impl Highlighter {
    /// Nothing is loaded until the first request.
    pub(crate) fn new(ready: impl Fn() + Send + Sync + 'static) -> Highlighter {
        Highlighter {
            cache: Arc::default(),
            growing: Arc::default(),
            was_short: Arc::default(),
            has_whole: Arc::default(),
            worker: Arc::default(),
            ready: Arc::new(ready),
        }
    }

    /// A text was laid out without all of its colours since the last call.
    pub(crate) fn take_short(&self) -> bool {
        self.was_short.swap(false, Ordering::Relaxed)
    }

    /// Colours have arrived, since the last call, of a text that does not grow.
    pub(crate) fn take_whole(&self) -> bool {
        self.has_whole.swap(false, Ordering::Relaxed)
    }

    /// Colours of a whole text are on their way: requested, or here and not laid out yet.
    pub(crate) fn is_awaited(&self) -> bool {
        let is_working = self.worker.lock().is_some();
        let is_open = self.cache.lock().of.values().any(|it| matches!(it, Known::Awaited));
        is_working && is_open || self.has_whole.load(Ordering::Relaxed)
    }

    /// The colours of the complete lines of code that grows after `before`: of as many lines as are known.
    pub(crate) fn growing(&self, language: &str, before: &str, code: &str) -> Option<Coloured> {
        let closed = &code[..code.rfind('\n').map_or(0, |at| at + 1)];
        if language.is_empty() || closed.is_empty() || before.len() + code.len() > MAX_TEXT {
            return None;
        }
        let mut all = self.growing.lock();
        let text_before = hash(&before);
        let is_it =
            |it: &Growing| it.language == language && it.before == text_before && closed.starts_with(it.code.as_str());
        let at = match all.iter().position(is_it) {
            Some(at) => at,
            None => {
                all.truncate(MAX_GROWING - 1);
                let (language, code) = (language.to_owned(), String::new());
                all.push_front(Growing { language, before: text_before, code, requested: 0, lines: Vec::new() });
                0
            }
        };
        let it = &mut all[at];
        // One request at a time, so that the answers come in order.
        if it.requested <= it.code.len() && it.code.len() < closed.len() {
            it.requested = closed.len();
            let request = HighlightRequest {
                key: text_before,
                language: language.to_owned(),
                before: format!("{before}{}", it.code),
                code: closed[it.code.len()..].to_owned(),
                of: Of::Growing(it.code.len()),
            };
            let known = Arc::new(it.lines.clone());
            drop(all);
            self.request(request);
            return Some(known);
        }
        Some(Arc::new(it.lines.clone()))
    }

    /// The lines of this code that were coloured while it grew, and whether these are all.
    fn grown(&self, language: &str, before: &str, code: &str) -> Option<(Coloured, bool)> {
        let (all, before) = (self.growing.lock(), hash(&before));
        let is_it = |it: &&Growing| it.language == language && it.before == before && code.starts_with(&it.code);
        let it = all.iter().filter(|it| !it.lines.is_empty()).find(is_it)?;
        Some((Arc::new(it.lines.clone()), it.code.len() == code.len()))
    }

    /// The colours of code that continues after `before`. Until the worker has computed them, those of the lines that
    /// were coloured while the code grew.
    pub(crate) fn colours(&self, language: &str, before: &str, code: &str) -> Option<Coloured> {
        if language.is_empty() || before.len() + code.len() > MAX_TEXT {
            return None;
        }
        let key = hash(&(language, before, code));
        let mut cache = self.cache.lock();
        match cache.of.get_mut(&key) {
            Some(Known::Coloured { lines, used }) => {
                *used = Instant::now();
                return Some(Arc::clone(lines));
            }
            Some(Known::Colourless) => return None,
            Some(Known::Awaited) => {
                self.was_short.store(true, Ordering::Relaxed);
                return self.grown(language, before, code).map(|(lines, _)| lines);
            }
            None => {}
        }
        let grown = self.grown(language, before, code);
        if let Some((lines, true)) = grown {
            let now = Instant::now();
            cache.insert(key, Known::Coloured { lines: Arc::clone(&lines), used: now }, now);
            return Some(lines);
        }
        cache.insert(key, Known::Awaited, Instant::now());
        drop(cache);
        self.was_short.store(true, Ordering::Relaxed);
        let (language, before, code) = (language.to_owned(), before.to_owned(), code.to_owned());
        self.request(HighlightRequest { key, language, before, code, of: Of::Whole });
        grown.map(|(lines, _)| lines)
    }

    fn request(&self, request: HighlightRequest) {
        let mut worker = self.worker.lock();
        let sender = worker.get_or_insert_with(|| self.start());
        // If the worker has crashed, code stays plain.
        let _ = sender.send(request);
    }

    fn start(&self) -> Sender<HighlightRequest> {
        let (sender, requests) = channel::<HighlightRequest>();
        let (cache, ready) = (Arc::clone(&self.cache), Arc::clone(&self.ready));
        let (growing, has_whole) = (Arc::clone(&self.growing), Arc::clone(&self.has_whole));
        let spawned = thread::Builder::new().name("highlight".into()).spawn(move || {
            let syntaxes = two_face::syntax::extra_newlines();
            let mut checkpoints = Checkpoints::default();
            let [first, most] = GATHERED;
            let (mut told, mut wait) = (Instant::now(), first);
            // The colours that have arrived and are not laid out yet.
            let mut is_new = false;
            loop {
                if is_new && told.elapsed() >= wait {
                    (is_new, told, wait) = (false, Instant::now(), most.min(2 * wait));
                    ready();
                }
                let request = match requests.try_recv() {
                    Ok(request) => request,
                    Err(TryRecvError::Empty) => {
                        if std::mem::take(&mut is_new) {
                            ready();
                        }
                        (told, wait) = (Instant::now(), first);
                        let Ok(request) = requests.recv() else { return };
                        request
                    }
                    Err(TryRecvError::Disconnected) => return,
                };
                let colours = colour(&syntaxes, &mut checkpoints, &request);
                match request.of {
                    Of::Whole => {
                        let known = match colours {
                            Some(lines) => Known::Coloured { lines: Arc::new(lines), used: Instant::now() },
                            None => Known::Colourless,
                        };
                        cache.lock().of.insert(request.key, known);
                        has_whole.store(true, Ordering::Relaxed);
                    }
                    Of::Growing(from) => {
                        let Some(lines) = colours else { continue };
                        let mut all = growing.lock();
                        let is_it = |it: &&mut Growing| {
                            it.language == request.language
                                && it.before == request.key
                                && it.code.len() == from
                                && request.before.ends_with(&it.code)
                        };
                        if let Some(it) = all.iter_mut().find(is_it) {
                            it.code.push_str(&request.code);
                            it.lines.extend(lines);
                        }
                    }
                }
                is_new = true;
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
    /// The states after the last texts, by language and text, because code that grows goes on there.
    last: VecDeque<(u64, Checkpoint)>,
}

/// The most states after last texts.
const MAX_LAST: usize = 8;

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
    let here = hash(&(&request.language, &request.before));
    let last = checkpoints.last.iter().find(|(key, it)| *key == here && it.at == request.before.len());
    let last = last.map(|(_, it)| it.clone());
    let mut checkpoint = last.or_else(|| checkpoints.nearest(family, &request.before)).unwrap_or_else(start);
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
    let text = format!("{}{}", request.before, request.code);
    checkpoints.last.truncate(MAX_LAST - 1);
    checkpoints.last.push_front((hash(&(&request.language, &text)), checkpoint.clone()));
    if request.code.len() >= CHECKPOINT_EVERY / 4 {
        checkpoints.keep(family, &text, checkpoint);
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
    fn lines_of_growing_code_keep_the_colours_that_they_have_in_the_whole() {
        let (done, arrived) = channel();
        let highlighter = Highlighter::new(move || {
            let _ = done.send(());
        });
        let code = "/* a\nb */ fn main() {\n    let x = 1;\n}\n";
        let mut last = Vec::new();
        for end in 1..=code.len() {
            let known = highlighter.growing("rust", "", &code[..end]).map_or(Vec::new(), |it| it.to_vec());
            assert_eq!(known[..last.len()], last[..], "no line changes or disappears");
            last = known;
            if code[..end].ends_with('\n') {
                arrived.recv_timeout(std::time::Duration::from_secs(30)).expect("the worker answers");
            }
        }
        let grown = highlighter.growing("rust", "", code).expect("the lines are known");
        assert_eq!(grown.len(), 4);
        assert_eq!(highlighter.colours("rust", "", code).expect("at once"), grown, "nothing is computed twice");
        assert!(!highlighter.take_short());
        let fresh = Highlighter::new(|| ());
        assert!(fresh.colours("rust", "", code).is_none() && fresh.take_short());
    }

    /// Broken build: the cache makes room by what the screen shows, so the screen is laid out for ever (ce783d9e).
    #[test]
    fn a_layout_of_more_texts_than_the_cache_has_room_for_comes_to_its_end() {
        let (done, arrived) = channel();
        let highlighter = Highlighter::new(move || {
            let _ = done.send(());
        });
        let texts: Vec<String> = (0..4 * MAX_CACHED).map(|n| format!("let x = {n};\n")).collect();
        let lay_out = || texts.iter().filter(|it| highlighter.colours("rust", "", it).is_none()).count();
        let mut layouts = 1;
        while lay_out() > 0 {
            assert!(layouts < 2 * texts.len(), "it is laid out for ever");
            arrived.recv_timeout(Duration::from_secs(30)).expect("the worker answers");
            layouts += 1;
        }
    }

    #[test]
    fn texts_that_no_layout_asks_for_leave_a_full_cache() {
        let (mut cache, start) = (Cache::default(), Instant::now());
        let coloured = |used| Known::Coloured { lines: Arc::default(), used };
        for key in 0..1_000 {
            cache.insert(key, coloured(start), start);
        }
        assert_eq!(cache.of.len(), 1_000, "those of one layout stay");
        for key in 1_000..3_000 {
            let now = start + KEPT * u32::try_from(key - 999).expect("a small number");
            cache.insert(key, coloured(now), now);
        }
        assert!(cache.of.len() <= MAX_CACHED, "{} texts", cache.of.len());
    }

    #[test]
    fn code_that_goes_on_has_the_colours_that_it_has_in_the_whole() {
        let syntaxes = two_face::syntax::extra_newlines();
        let code: String = (0..400).map(|i| format!("/* {i}\n still */ fn f{i}() {{}} /*\n*/\n")).collect();
        let whole = HighlightRequest {
            key: 0,
            language: "rust".into(),
            before: String::new(),
            code: code.clone(),
            of: Of::Whole,
        };
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
                    &HighlightRequest { key: 0, language: "rust".into(), before, code, of: Of::Whole },
                )
                .expect("rust has a syntax"),
            );
            at = cut;
        }
        assert_eq!(got, wanted);
        assert!(!checkpoints.last.is_empty(), "each part goes on where the one before it ended");
    }
}
