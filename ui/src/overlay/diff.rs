//! The diff: what a call, a Turn, a part of the conversation or the whole work tree changed, file by file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pixir_core::diff::{Across, Body, ChangedFile, Changes, Folded, Tag, TextPatch};
use pixir_core::event::Fact;
use pixir_core::history::History;
use pixir_core::input::HunkRevert;
use pixir_core::review::{Source, Sources};

use super::{Effect, Notification, OnHarness, Outcome, Request};

mod act; // what the keys do
mod comments; // comments on lines, and the message that they become
mod draw; // the frame, the list of files, the lines
mod files; // a changed file in one line
mod folders; // the files as a tree
mod places; // the rows of a file, unified or side by side
mod search; // text in the lines of a file

use comments::Field;
pub(crate) use comments::{Review, SavedComment};
pub(crate) use files::file_line;
use folders::Folders;
pub(crate) use places::Loaded;
use places::Place;
use search::Search;

/// Why nothing can be decided about a file of which only the start is compared.
const COMPARING: &str = "this file is still being compared; only its start is shown";

/// Work that the diff needs done outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Want {
    /// List the changed files.
    Changes { number: u64, source: Source },
    /// Find lines that moved between these files.
    Moves { number: u64, source: Source, files: Vec<ChangedFile> },
    /// Count the lines of these files; each has its index in the list.
    Counts { number: u64, source: Source, files: Vec<(usize, ChangedFile)> },
    /// Read the lines of one file; of a long one, the start at first.
    Patch { number: u64, source: Source, at: usize, file: Box<ChangedFile> },
    /// Read the lines of a file whose start was read.
    Whole { number: u64, source: Source, at: usize, file: Box<ChangedFile> },
}

/// A part of the diff that was read.
pub(crate) enum Part {
    Changes(Source, Changes),
    Moves(Arc<Across>),
    Counts(Vec<(usize, ChangedFile)>),
    /// The start of a long file; the whole follows.
    Start {
        source: Source,
        at: usize,
        file: Box<ChangedFile>,
        loaded: Arc<Loaded>,
    },
    Patch {
        at: usize,
        loaded: Arc<Loaded>,
    },
}

/// Where lines stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Columns {
    /// Side by side where there is room.
    #[default]
    Auto,
    Unified,
    Split,
}

#[derive(Debug)]
pub(crate) struct DiffView {
    sources: Vec<(Source, String)>,
    source: usize,
    /// The Entries that start Turns, for the source "since a prompt".
    turns: Vec<(u64, u32)>,
    /// Grows with each list, so that late results of an earlier one are dropped.
    number: u64,
    changes: Option<Changes>,
    loaded: HashMap<usize, Arc<Loaded>>,
    /// Lines that moved from one file to another.
    across: Arc<Across>,
    asked: HashSet<usize>,
    /// The list with this number is on its way.
    listing: Option<u64>,
    file: usize,
    /// The row that the user is on, and the first one on the screen.
    cursor: usize,
    top: usize,
    /// Columns that are scrolled away.
    left: usize,
    wraps: bool,
    columns: Columns,
    /// The last frame stood side by side.
    is_split: bool,
    /// The user unfolded or folded these files.
    folds: HashMap<String, bool>,
    folders: Folders,
    /// The list of files has the keys, and on a narrow screen the whole overlay.
    lists: bool,
    /// The list is hidden, on a wide screen.
    hides_list: bool,
    /// The first row of the list on the screen, where the wheel has taken it; `None` keeps the chosen file in sight.
    list_top: Option<usize>,
    search: Search,
    review: Review,
    field: Option<Field>,
    /// The user is asked whether the comments are to be sent.
    is_sending: bool,
    /// Hunks that the user keeps.
    kept: HashSet<String>,
    /// Go to this file and line when the list is there.
    wanted: Option<(String, usize)>,
    /// A file without lines makes way for a later one until the user does something; where none has lines, this one is
    /// shown.
    seeks: Option<usize>,
    /// The user has not chosen a source yet, so one without changes makes way.
    is_first: bool,
    /// A hunk could not be reverted, or something else could not be done.
    notice: Option<String>,
    /// What the last revert has done.
    reverted: Option<String>,
    /// The hunk that is being reverted.
    reverting: Option<HunkRevert>,
    /// The file of this hunk is protected, and the user is asked whether it may be written.
    protected: Option<HunkRevert>,
    /// No comment could be begun, so the letters of the one that the user writes must not act.
    is_deaf: bool,
    page: usize,
    areas: draw::Areas,
}

impl DiffView {
    /// For the conversation as it is. `call` is the result that the user looks at, `path` the file to open at.
    pub(crate) fn new(history: &History, call: Option<u64>, path: Option<String>, review: Review) -> DiffView {
        let all = Sources::of(history);
        let mut sources = Vec::new();
        if let Some(call) = call.or(all.calls.last().copied()) {
            sources.push((Source::Call(call), "this call".to_owned()));
        }
        let usual = sources.len();
        if let Some((seq, _)) = all.turns.last() {
            sources.push((Source::Turn(*seq), "this turn".to_owned()));
        }
        if let Some((seq, turn)) = all.turns.len().checked_sub(2).and_then(|at| all.turns.get(at)) {
            sources.push((Source::Since(Some(*seq)), format!("since prompt {turn}")));
        }
        match all.branch {
            Some(seq) => sources.push((Source::Since(Some(seq + 1)), "since the branch".to_owned())),
            None => sources.push((Source::Since(None), "this session".to_owned())),
        }
        sources.push((Source::Head, "git HEAD".to_owned()));
        let source = if call.is_some() { 0 } else { usual.min(sources.len() - 1) };
        let mut it = DiffView {
            sources,
            source,
            turns: all.turns,
            number: 0,
            changes: None,
            loaded: HashMap::new(),
            across: Arc::default(),
            asked: HashSet::new(),
            listing: None,
            file: 0,
            cursor: 0,
            top: 0,
            left: 0,
            wraps: false,
            columns: Columns::Auto,
            is_split: false,
            folds: HashMap::new(),
            folders: Folders::default(),
            lists: false,
            hides_list: false,
            list_top: None,
            search: Search::default(),
            review,
            field: None,
            is_sending: false,
            kept: HashSet::new(),
            seeks: path.is_none().then_some(0),
            wanted: path.map(|path| (path, 0)),
            is_first: call.is_none(),
            notice: None,
            reverted: None,
            reverting: None,
            protected: None,
            is_deaf: false,
            page: 1,
            areas: draw::Areas::default(),
        };
        if it.wanted.is_some() {
            // The side panel lists the files of the Session.
            it.source = it.sources.len() - 2;
        }
        it.read_reviews(history);
        it
    }

    /// For one Turn, or one restore of files, which begins with this Entry.
    pub(crate) fn of_turn(history: &History, seq: u64, path: Option<String>, review: Review) -> DiffView {
        let mut it = DiffView::new(history, None, path, review);
        let source = Source::Turn(seq);
        it.is_first = false;
        it.source = it.sources.iter().position(|(known, _)| *known == source).unwrap_or_else(|| {
            let turn = it.turns.iter().find(|(start, _)| *start == seq);
            let name = turn.map_or("these files".to_owned(), |(_, turn)| format!("turn {turn}"));
            it.sources.insert(0, (source, name));
            0
        });
        it
    }

    /// What has to be read for what is shown.
    pub(crate) fn wants(&mut self) -> Vec<Effect> {
        let source = self.sources[self.source].0.clone();
        let number = self.number;
        let Some(changes) = &self.changes else {
            let is_new = self.listing.replace(number) != Some(number);
            return if is_new {
                vec![OnHarness::ReadDiff(Want::Changes { number, source }).into()]
            } else {
                Vec::new()
            };
        };
        let mut wants = Vec::new();
        // The file on the screen, and the next one.
        for at in [self.file, self.file + 1] {
            if let Some(file) = changes.files.get(at).filter(|_| self.asked.insert(at)) {
                let (source, file) = (source.clone(), Box::new(file.clone()));
                wants.push(OnHarness::ReadDiff(Want::Patch { number, source, at, file }).into());
            }
        }
        wants
    }

    fn outcome(&mut self) -> Outcome {
        match self.wants() {
            wants if wants.is_empty() => Outcome::Stay,
            wants => Outcome::Ask(Request::Do(wants)),
        }
    }

    /// Lists the files again, and stays where the user is.
    pub(crate) fn read_again(&mut self, history: &History) {
        self.read_reviews(history);
        if let Some(path) = self.current().map(|file| file.path.clone()) {
            self.wanted = Some((path, self.cursor));
        }
        self.number += 1;
        self.changes = None;
        self.asked.clear();
    }

    fn read_reviews(&mut self, history: &History) {
        for entry in history.entries() {
            if let Fact::HunkReviewed(it) = &entry.fact {
                if it.kept {
                    self.kept.insert(it.hunk.clone());
                } else {
                    self.kept.remove(&it.hunk);
                }
            }
        }
    }

    /// Takes what was read for the list with this number, and returns what is read next. What was read for an earlier list is
    /// not shown.
    pub(crate) fn take(&mut self, number: u64, part: &Part) -> Vec<Effect> {
        let mut next = Vec::new();
        match part {
            Part::Changes(source, changes) => {
                // The list is on the screen at once; the lines of files that changed more than once are counted after it.
                let is_open = |file: &ChangedFile| file.counts.is_none() && file.binary.is_none();
                let uncounted = changes.files.iter().enumerate().filter(|(_, file)| is_open(file));
                let files: Vec<_> = uncounted.map(|(at, file)| (at, file.clone())).collect();
                if !files.is_empty() {
                    next.push(OnHarness::ReadDiff(Want::Counts { number, source: source.clone(), files }).into());
                }
                if changes.files.len() > 1 {
                    let (source, files) = (source.clone(), changes.files.clone());
                    next.push(OnHarness::ReadDiff(Want::Moves { number, source, files }).into());
                }
            }
            Part::Start { source, at, file, .. } => {
                let (source, at, file) = (source.clone(), *at, file.clone());
                next.push(OnHarness::ReadDiff(Want::Whole { number, source, at, file }).into());
            }
            Part::Moves(_) | Part::Counts(_) | Part::Patch { .. } => {}
        }
        if number == self.number {
            match part {
                Part::Changes(_, changes) => self.listed(changes.clone()),
                Part::Counts(files) => {
                    for (at, counted) in files {
                        if let Some(file) = self.changes.as_mut().and_then(|it| it.files.get_mut(*at)) {
                            *file = counted.clone();
                        }
                    }
                    self.read_folders();
                    self.seek_lines();
                }
                Part::Moves(across) => self.across = Arc::clone(across),
                Part::Start { at, loaded, .. } | Part::Patch { at, loaded } => self.read(*at, loaded),
            }
        }
        next.extend(self.wants());
        next
    }

    pub(super) fn learn(&mut self, notification: Notification<'_>) {
        match notification {
            Notification::Refused { why, is_protected } => {
                self.notice = Some(why.to_owned());
                self.protected = self.reverting.take().filter(|_| is_protected);
            }
            Notification::Recorded { entry, .. } => {
                if let (Fact::FilesRestored(it), Some(_)) = (&entry.fact, &self.reverting) {
                    self.reverting = None;
                    let files: Vec<&str> = it.changes.iter().map(|it| it.path.as_str()).collect();
                    self.reverted = Some(format!("reverted in {}; /undo takes it back", files.join(", ")));
                }
            }
            _ => {}
        }
    }

    fn listed(&mut self, changes: Changes) {
        // A Turn without changes is not worth a page while the Session has some.
        if self.is_first && changes.files.is_empty() && self.source + 2 < self.sources.len() {
            self.source += 1;
            self.number += 1;
            return;
        }
        self.is_first = false;
        let wanted = self.wanted.take();
        let is_there =
            |path: &str| changes.files.iter().position(|file| file.path == path || file.from() == Some(path));
        let at = wanted.as_ref().and_then(|(path, _)| is_there(path));
        self.loaded.clear();
        self.across = Arc::default();
        self.changes = Some(changes);
        self.read_folders();
        self.file = at.unwrap_or(self.file.min(self.files().len().saturating_sub(1)));
        (self.cursor, self.top) = (0, 0);
        if let (Some(_), Some((_, cursor))) = (at, wanted) {
            self.cursor = cursor;
        }
        self.seek_lines();
    }

    /// Goes on from a file that has no lines to read.
    fn seek_lines(&mut self) {
        let Some(otherwise) = self.seeks else { return };
        let has_lines = |at: usize| {
            let is_known_without = self.loaded.get(&at).is_some_and(|it| it.text().is_none());
            let file = self.files().get(at);
            !is_known_without && file.is_some_and(|it| it.binary.is_none() && it.folded != Some(Folded::Generated))
        };
        if self.files().is_empty() || has_lines(self.file) {
            return;
        }
        let next = (self.file + 1..self.files().len()).find(|at| has_lines(*at));
        match next {
            Some(at) => self.go_to_file(at),
            None => {
                self.seeks = None;
                self.go_to_file(otherwise);
            }
        }
    }

    fn read_folders(&mut self) {
        if let Some(changes) = &self.changes {
            self.folders.read(changes);
        }
    }

    fn read(&mut self, at: usize, loaded: &Arc<Loaded>) {
        // Where the user is in the start of the file, while the whole takes its place.
        let stood = self.loaded().filter(|it| at == self.file && it.is_start).and_then(|_| self.line_at(self.cursor));
        let Some(file) = self.changes.as_mut().and_then(|it| it.files.get_mut(at)) else { return };
        match &loaded.body {
            Body::Text(_) if loaded.is_start => {}
            Body::Text(_) => file.counts = Some(loaded.counts),
            Body::Binary(old, new) => file.binary = Some((*old, *new)),
            Body::Nothing(_) => {}
        }
        file.folded = file.folded.or(loaded.folded);
        let path = file.path.clone();
        if let Some(text) = loaded.text().filter(|_| !loaded.is_start) {
            self.review.follow(&path, text);
        }
        self.loaded.insert(at, Arc::clone(loaded));
        self.read_folders();
        if at == self.file {
            self.cursor = self.cursor.min(self.last_row());
            // The start has far fewer rows than this.
            let rows = 0..=self.last_row().min(20_000);
            match stood.and_then(|line| rows.into_iter().find(|row| self.line_at(*row) == Some(line))) {
                Some(row) => {
                    self.top = (self.top + row).saturating_sub(self.cursor);
                    self.cursor = row;
                }
                None if self.cursor == 0 => self.go_to_first_change(),
                None => {}
            }
            self.seek_lines();
        }
    }

    /// The version that a row's line is of, and its number there.
    fn line_at(&self, row: usize) -> Option<(Tag, u32)> {
        let line = self.text()?.lines.get(self.places().get(row)?.line()?)?;
        let number = if line.tag == Tag::Removed { line.old } else { line.new };
        Some((line.tag, number?))
    }

    /// Only the start of the file on the screen is compared.
    fn is_start(&self) -> bool {
        self.loaded().is_some_and(|it| it.is_start)
    }

    /// The comments, also the one that is written, as they are saved.
    pub(crate) fn saved_review(&self) -> Vec<SavedComment> {
        let written = self.field.as_ref().map(|field| &field.comment);
        let written = written.filter(|comment| !comment.text.trim().is_empty());
        let mut review = self.review.clone();
        if let Some(comment) = written {
            review.put(Field { comment: comment.clone() });
        }
        review.saved()
    }

    fn files(&self) -> &[ChangedFile] {
        self.changes.as_ref().map_or(&[], |it| &it.files)
    }

    fn current(&self) -> Option<&ChangedFile> {
        self.files().get(self.file)
    }

    fn loaded(&self) -> Option<&Arc<Loaded>> {
        self.loaded.get(&self.file)
    }

    fn text(&self) -> Option<&Arc<TextPatch>> {
        self.loaded().and_then(|it| it.text())
    }

    fn folded(&self) -> Option<Folded> {
        let file = self.current()?;
        let why = file.folded?;
        (*self.folds.get(&file.path).unwrap_or(&true)).then_some(why)
    }

    fn places(&self) -> &[Place] {
        match (self.folded(), self.loaded()) {
            (None, Some(loaded)) => loaded.places(self.is_split),
            _ => &[],
        }
    }

    fn last_row(&self) -> usize {
        self.places().len().saturating_sub(1)
    }

    // ─── Moving ───
    fn scroll_lines(&mut self, by: isize) {
        let last = self.last_row();
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    /// Moves the cursor in the list of files; the file that it comes to is shown.
    fn step_in_list(&mut self, by: isize) {
        let last = self.folders.len().saturating_sub(1);
        self.folders.cursor = self.folders.cursor.saturating_add_signed(by).min(last);
        if let Some(file) = self.folders.file(self.folders.cursor) {
            self.go_to_file(file);
        }
    }

    fn go_to_file(&mut self, at: usize) {
        let at = at.min(self.files().len().saturating_sub(1));
        if at != self.file {
            self.file = at;
            (self.cursor, self.top, self.left) = (0, 0, 0);
            self.go_to_first_change();
        }
    }

    fn go_to_first_change(&mut self) {
        if let Some(at) = self.places().iter().position(|place| place.is_change()) {
            self.cursor = at;
        }
    }

    /// The hunk that the cursor is in, and how many there are.
    fn hunk(&self) -> Option<(usize, usize)> {
        let hunk = self.places().get(self.cursor)?.hunk;
        Some((usize::try_from(hunk).ok()?, self.text()?.hunks.len()))
    }

    fn go_to_hunk(&mut self, at: usize) {
        let Ok(hunk) = u32::try_from(at) else { return };
        let places = self.places();
        let head = places.partition_point(|place| place.hunk < hunk);
        // Only the context stands between the head and the first change.
        if let Some(first) = places[head..].iter().position(|place| place.is_change()) {
            let end = places.partition_point(|place| place.hunk <= hunk);
            // A hunk that is on the screen as a whole is not moved.
            let is_seen = head >= self.top && end <= self.top + self.page;
            self.cursor = head + first;
            if !is_seen {
                self.top = head;
            }
        }
    }

    fn next_hunk(&mut self) {
        match self.hunk() {
            Some((at, count)) if at + 1 < count => self.go_to_hunk(at + 1),
            _ if self.is_start() && self.folded().is_none() => self.notice = Some(COMPARING.to_owned()),
            _ if self.file + 1 < self.files().len() => {
                self.go_to_file(self.file + 1);
                self.seeks = Some(self.file);
                self.seek_lines();
            }
            _ => {}
        }
    }

    fn previous_hunk(&mut self) {
        match self.hunk() {
            Some((at, _)) if at > 0 => self.go_to_hunk(at - 1),
            _ if self.file > 0 => {
                self.go_to_file(self.file - 1);
                if let Some(last) = self.text().map(|text| text.hunks.len().saturating_sub(1)) {
                    self.go_to_hunk(last);
                }
            }
            _ => {}
        }
    }

    fn switch_source(&mut self, at: usize) {
        self.source = at;
        self.is_first = false;
        self.number += 1;
        self.wanted = self.current().map(|file| (file.path.clone(), 0));
        self.changes = None;
        self.asked.clear();
        self.loaded.clear();
    }

    /// Another prompt for the source that begins with one.
    fn move_prompt(&mut self, by: isize) {
        let is_since =
            |source: &Source| matches!(source, Source::Since(Some(seq)) if self.turns.iter().any(|it| it.0 == *seq));
        let Some(at) = self.sources.iter().position(|(source, _)| is_since(source)) else { return };
        let Source::Since(Some(seq)) = self.sources[at].0 else { return };
        let now = self.turns.iter().position(|it| it.0 == seq).unwrap_or(0);
        let next = now.saturating_add_signed(by).min(self.turns.len() - 1);
        let (seq, turn) = self.turns[next];
        self.sources[at] = (Source::Since(Some(seq)), format!("since prompt {turn}"));
        self.switch_source(at);
    }
}
