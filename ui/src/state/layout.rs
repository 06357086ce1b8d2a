//! The areas of the last frame, and the cost of drawing.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::layout::Rect;

use crate::terminal::Counts;

/// The areas of the last frame, for clicks.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) transcript: Rect,
    /// The button that leads to the end of the transcript.
    pub(crate) pill: Option<Rect>,
    pub(crate) approval: Option<Rect>,
    pub(crate) side: Option<Rect>,
    /// The screen is wide enough for the side panel.
    pub(crate) is_wide: bool,
    /// The HUD with the frame statistics is on.
    pub(crate) hud: bool,
}

/// The left button of the mouse, and the clicks before this one.
#[derive(Debug, Default)]
pub(crate) struct MouseState {
    pub(crate) last: Option<(Instant, u16, u16)>,
    pub(crate) clicks: u8,
    /// The row of the top overlay that was clicked last, until a key, the wheel or another overlay.
    pub(crate) row: Option<usize>,
    /// The user drags the scrollbar.
    pub(crate) on_bar: bool,
    /// While the button is held at an edge: -1 scrolls up, 1 scrolls down, 0 is no edge.
    pub(crate) edge: isize,
    /// The viewport followed the end before the selection began, and does so again when the button is released.
    pub(crate) followed: bool,
}

/// The cost of drawing, for the HUD.
#[derive(Debug, Default)]
pub(crate) struct FrameStats {
    /// Microseconds from the begin of a frame to its last byte, for the last frames.
    pub(crate) frames: VecDeque<u32>,
    /// Microseconds from a key to the last byte of the frame that shows it.
    pub(crate) echoes: VecDeque<u32>,
    pub(crate) counts: Counts,
    /// The resident memory of the process, bytes, while the HUD is on.
    pub(crate) resident: Option<u64>,
    /// Since when the loop's wake-ups are counted, and how many there were.
    wakes: Option<(Instant, u64)>,
}

impl FrameStats {
    const MAX_SAMPLES: usize = 240;

    /// The loop has woken up.
    pub(crate) fn note_wake(&mut self, now: Instant) {
        let (since, count) = self.wakes.unwrap_or((now, 0));
        // An average over more than a minute would hide what happens now.
        self.wakes = Some(if now - since > Duration::from_secs(60) { (now, 1) } else { (since, count + 1) });
    }

    /// Counts from now on.
    pub(crate) fn restart_wakes(&mut self) {
        self.wakes = None;
    }

    pub(crate) fn wakes_a_minute(&self, now: Instant) -> u64 {
        let Some((since, count)) = self.wakes else { return 0 };
        let seconds = now.saturating_duration_since(since).as_secs().max(1);
        count * 60 / seconds.max(10)
    }

    pub(crate) fn note(samples: &mut VecDeque<u32>, took: Duration) {
        if samples.len() == Self::MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }
}
