//! A replay: how much of a Session's Log is shown, and when the next entry is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::history::{History, starts_turn};
use pixir_core::{Entry, Fact};
use ratatui::layout::Rect;

/// How to replay a Session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayOptions {
    /// Begin with everything up to this entry. None begins with the first entry that is visible.
    pub at: Option<u64>,
    /// Whether the replay runs by itself or waits for the user at each step.
    pub playback: Playback,
    /// How many times faster than the original, from 0.25 to 64.
    pub speed: f64,
}

/// The longest pause between two entries at speed 1.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The slowest and the fastest speed.
const SPEEDS: (f64, f64) = (0.25, 64.0);

/// Whether a replay runs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Playback {
    /// It runs by itself.
    Playing,
    /// It waits for the user.
    Paused,
}

/// A Log, and how much of it is shown.
#[derive(Debug)]
pub(crate) struct Replay {
    entries: Vec<Arc<Entry>>,
    /// The indices of the entries that begin Turns.
    beginnings: Vec<usize>,
    /// How many entries are shown.
    shown: usize,
    speed: f64,
    /// When the next entry is due, while the replay runs.
    due: Option<Instant>,
    /// Where the bar is on the screen.
    pub(crate) bar: Option<Rect>,
}

impl Replay {
    pub(crate) fn new(entries: Vec<Arc<Entry>>, options: ReplayOptions) -> Replay {
        let speed = options.speed.clamp(SPEEDS.0, SPEEDS.1);
        let begins = |(at, entry): (usize, &Arc<Entry>)| starts_turn(&entry.fact).then_some(at);
        let beginnings = entries.iter().enumerate().filter_map(begins).collect();
        let mut it = Replay { entries, beginnings, shown: 0, speed, due: None, bar: None };
        it.shown = match options.at {
            Some(_) => it.count_to(options.at),
            None => it.next_stop(0),
        };
        if options.playback == Playback::Playing {
            it.play();
        }
        it
    }

    /// The History of the entries that are shown.
    pub(crate) fn history(&self) -> History {
        History::fold(self.entries[..self.shown].iter().cloned())
    }

    pub(crate) fn shown(&self) -> usize {
        self.shown
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The last entry that is shown.
    pub(crate) fn newest(&self) -> Option<&Entry> {
        self.shown.checked_sub(1).map(|at| &*self.entries[at])
    }

    /// The last entry of the Log.
    pub(crate) fn last(&self) -> Option<&Entry> {
        self.entries.last().map(|entry| &**entry)
    }

    /// The count of entries up to this number.
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

    /// The number of Turns that have begun, and of all Turns.
    pub(crate) fn turns(&self) -> (usize, usize) {
        (self.beginnings.partition_point(|at| *at < self.shown), self.beginnings.len())
    }

    /// Whether a Turn begins among these entries.
    pub(crate) fn begins_in(&self, entries: std::ops::Range<usize>) -> bool {
        let next = self.beginnings.partition_point(|at| *at < entries.start);
        self.beginnings.get(next).is_some_and(|at| *at < entries.end)
    }

    /// The count of entries that ends with the first entry of the next Turn, or all.
    pub(crate) fn next_turn(&self) -> usize {
        let (begun, _) = self.turns();
        self.beginnings.get(begun).map_or(self.entries.len(), |at| at + 1)
    }

    /// The count of entries that ends with the first entry of this Turn; if only that is shown, of the previous Turn.
    pub(crate) fn previous_turn(&self) -> usize {
        let before = self.beginnings.partition_point(|at| at + 1 < self.shown);
        before.checked_sub(1).map_or(0, |n| self.beginnings[n] + 1)
    }

    /// The pause before the next entry, at the current speed.
    pub(crate) fn pause(&self) -> Duration {
        let (Some(before), Some(next)) = (self.newest(), self.entries.get(self.shown)) else { return Duration::ZERO };
        let gap = next.ts.as_millisecond().saturating_sub(before.ts.as_millisecond());
        let gap = Duration::from_millis(u64::try_from(gap).unwrap_or(0)).min(MAX_PAUSE);
        gap.div_f64(self.speed)
    }

    /// Plays from here on; from the start if the replay is at its end.
    pub(crate) fn play(&mut self) {
        if self.shown == self.entries.len() {
            self.shown = 0;
        }
        self.due = Some(Instant::now() + self.pause());
    }

    /// Waits for the user from here on.
    pub(crate) fn stop(&mut self) {
        self.due = None;
    }

    /// Shows the next entry, and returns it.
    pub(crate) fn advance(&mut self) -> Option<Arc<Entry>> {
        let entry = self.entries.get(self.shown).cloned();
        self.shown += usize::from(entry.is_some());
        if self.due.is_some() {
            self.due = (self.shown < self.entries.len()).then(|| Instant::now() + self.pause());
        }
        entry
    }

    /// Shows the first `count` entries, and pauses: a user who looks elsewhere does not want the replay to run on.
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

    /// The count of entries that ends with the next visible one.
    pub(crate) fn next_stop(&self, from: usize) -> usize {
        let rest = self.entries.get(from..).unwrap_or_default();
        let stop = rest.iter().position(|entry| is_visible(&entry.fact));
        stop.map_or(self.entries.len(), |at| from + at + 1)
    }

    /// The count of entries that ends with the previous visible one.
    pub(crate) fn previous_stop(&self, from: usize) -> usize {
        let before = &self.entries[..from.saturating_sub(1)];
        before.iter().rposition(|entry| is_visible(&entry.fact)).map_or(0, |at| at + 1)
    }
}

/// The entry is visible in the transcript.
fn is_visible(fact: &Fact) -> bool {
    fact.is_conversation() || matches!(fact, Fact::HeadMoved(_) | Fact::PlanUpdated(_))
}
