//! A Session told again on the screen: how much of its Log is shown, and when the next entry comes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::event::{Entry, Fact};
use pixir_core::history::{History, starts_turn};
use ratatui::layout::Rect;

/// How a Session is to be told again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Telling {
    /// Begin with everything up to this entry; without, with the first that is seen.
    pub at: Option<u64>,
    /// It runs by itself; else it waits for the person at each step.
    pub plays: bool,
    /// How many times faster than it was, from 0.25 to 64.
    pub speed: f64,
}

/// Pauses are no longer than this, before they are made shorter by the speed.
const LONGEST: Duration = Duration::from_secs(2);
/// The slowest and the fastest.
const SPEEDS: (f64, f64) = (0.25, 64.0);

/// A Log, and how much of it is shown.
#[derive(Debug)]
pub(crate) struct Replay {
    entries: Vec<Arc<Entry>>,
    /// Where Turns begin.
    beginnings: Vec<usize>,
    /// So many entries are shown.
    shown: usize,
    speed: f64,
    /// When the next one comes, while it plays.
    due: Option<Instant>,
    /// Where the bar was drawn.
    pub(crate) bar: Option<Rect>,
}

impl Replay {
    pub(crate) fn new(entries: Vec<Arc<Entry>>, telling: Telling) -> Replay {
        let speed = telling.speed.clamp(SPEEDS.0, SPEEDS.1);
        let begins = |(at, entry): (usize, &Arc<Entry>)| starts_turn(&entry.fact).then_some(at);
        let beginnings = entries.iter().enumerate().filter_map(begins).collect();
        let mut it = Replay { entries, beginnings, shown: 0, speed, due: None, bar: None };
        it.shown = match telling.at {
            Some(_) => it.count_to(telling.at),
            None => it.next_stop(0),
        };
        if telling.plays {
            it.play(true);
        }
        it
    }

    /// What has been told so far.
    pub(crate) fn history(&self) -> History {
        History::fold(self.entries[..self.shown].iter().cloned())
    }

    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The newest entry that is shown.
    pub(crate) fn newest(&self) -> Option<&Entry> {
        self.shown.checked_sub(1).map(|at| &*self.entries[at])
    }

    /// The newest there is.
    pub(crate) fn last(&self) -> Option<&Entry> {
        self.entries.last().map(|entry| &**entry)
    }

    /// How many entries there are up to this one.
    pub(crate) fn count_to(&self, seq: Option<u64>) -> usize {
        seq.map_or(0, |seq| self.entries.partition_point(|entry| entry.seq <= seq))
    }

    pub(crate) fn is_playing(&self) -> bool {
        self.due.is_some()
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    /// Turns that have begun, and all of them.
    pub(crate) fn turns(&self) -> (usize, usize) {
        (self.beginnings.partition_point(|at| *at < self.shown), self.beginnings.len())
    }

    /// Whether a Turn begins among these entries.
    pub(crate) fn begins_in(&self, entries: std::ops::Range<usize>) -> bool {
        let next = self.beginnings.partition_point(|at| *at < entries.start);
        self.beginnings.get(next).is_some_and(|at| *at < entries.end)
    }

    /// Behind the beginning of the next Turn, or the end.
    pub(crate) fn next_turn(&self) -> usize {
        let (begun, _) = self.turns();
        self.beginnings.get(begun).map_or(self.entries.len(), |at| at + 1)
    }

    /// Behind the beginning of this Turn, or of the one before where this has just begun.
    pub(crate) fn turn_before(&self) -> usize {
        let before = self.beginnings.partition_point(|at| at + 1 < self.shown);
        before.checked_sub(1).map_or(0, |n| self.beginnings[n] + 1)
    }

    /// How long it was until the next entry, made shorter.
    pub(crate) fn pause(&self) -> Duration {
        let (Some(before), Some(next)) = (self.newest(), self.entries.get(self.shown)) else { return Duration::ZERO };
        let gap = next.ts.as_millisecond().saturating_sub(before.ts.as_millisecond());
        let gap = Duration::from_millis(u64::try_from(gap).unwrap_or(0)).min(LONGEST);
        gap.div_f64(self.speed)
    }

    /// Plays from here on, or stops; at the end it begins anew.
    pub(crate) fn play(&mut self, plays: bool) {
        if plays && self.shown == self.entries.len() {
            self.shown = 0;
        }
        self.due = plays.then(|| Instant::now() + self.pause());
    }

    /// The next entry, shown from now on.
    pub(crate) fn advance(&mut self) -> Option<Arc<Entry>> {
        let entry = self.entries.get(self.shown).cloned();
        self.shown += usize::from(entry.is_some());
        if self.due.is_some() {
            self.due = (self.shown < self.entries.len()).then(|| Instant::now() + self.pause());
        }
        entry
    }

    /// Shows so many; whoever looks somewhere else does not want it to run on.
    pub(crate) fn show(&mut self, count: usize) {
        self.shown = count.min(self.entries.len());
        self.due = None;
    }

    pub(crate) fn faster(&mut self, by: f64) {
        self.speed = (self.speed * by).clamp(SPEEDS.0, SPEEDS.1);
        if self.due.is_some() {
            self.due = Some(Instant::now() + self.pause());
        }
    }

    /// Behind the next entry that changes what is seen.
    pub(crate) fn next_stop(&self, from: usize) -> usize {
        let rest = self.entries.get(from..).unwrap_or_default();
        let stop = rest.iter().position(|entry| is_seen(&entry.fact));
        stop.map_or(self.entries.len(), |at| from + at + 1)
    }

    /// Behind the entry before that changes what is seen.
    pub(crate) fn stop_before(&self, from: usize) -> usize {
        let before = &self.entries[..from.saturating_sub(1)];
        before.iter().rposition(|entry| is_seen(&entry.fact)).map_or(0, |at| at + 1)
    }
}

/// It shows in the transcript.
fn is_seen(fact: &Fact) -> bool {
    fact.is_conversation() || matches!(fact, Fact::HeadMoved(_) | Fact::PlanUpdated(_))
}
