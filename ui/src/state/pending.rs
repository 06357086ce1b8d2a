//! Unfinished interactions of the user, and the guard against keys that were meant for something else.

use std::time::{Duration, Instant};

use pixir_core::event::Mode;

use crate::overlay::Overlay;
use crate::overlay::diff::Review;
use crate::overlay::tree::PendingMove;

/// How long an approval must have been on the screen before a key decides about it.
const DECISION_DELAY: Duration = Duration::from_millis(250);

/// Work that waits for an answer from outside.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// A move of the head, until the preview of its file changes has arrived and the user has confirmed it.
    pub(crate) head_move: Option<PendingMove>,
    /// The instructions of `/compact`, until its preview arrives.
    pub(crate) compaction: Option<Option<String>>,
    /// A slash command that waits until templates and skills are read.
    pub(crate) slash: Option<String>,
    /// The slash command that ran last, as long as what it asked for can be refused.
    pub(crate) command: Option<SlashCommand>,
    /// What an overlay asked for last, as long as that can be refused.
    pub(crate) request: Option<OverlayRequest>,
    /// Comments on the diff that were not sent yet.
    pub(crate) review: Review,
    /// The Provider and the model that were connected last, until a Session uses them.
    pub(crate) connected: Option<(String, String)>,
    /// The mode that the user has asked for last, until the Session has it or refuses it.
    pub(crate) mode: Option<Mode>,
    /// Images that are being read, for the draft or for a message on its way.
    pub(crate) images: usize,
}

/// A slash command as it was typed.
#[derive(Debug)]
pub(crate) struct SlashCommand {
    pub(crate) text: String,
    /// What it asked for, as [`Effect::asks`](super::Effect::asks) names it.
    pub(crate) asks: Vec<&'static str>,
}

/// What an overlay asked for.
#[derive(Debug)]
pub(crate) struct OverlayRequest {
    /// As [`Effect::asks`](super::Effect::asks) names it.
    pub(crate) asks: Vec<&'static str>,
    /// The overlay that closed when it asked, until the user does something else.
    pub(crate) closed: Option<Overlay>,
}

/// The action of a second press of the same key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PendingConfirm {
    #[default]
    Nothing,
    Quit,
    /// The Turn was interrupted, and may still end: quitting is not asked for yet.
    Interrupted,
    Tree,
    /// The agents that run in the background are stopped.
    Agents,
}

/// Protects an approval or overlay that has just appeared from keys that the user pressed for something else.
#[derive(Debug)]
pub(crate) struct Guard {
    /// How long something must be on the screen, and no other key be pressed, before a key can decide about it.
    pub(crate) delay: Duration,
    /// The last time at which the user did something that was not a decision.
    pub(crate) quiet_since: Instant,
    /// The number of overlays, and since when the top one is on the screen.
    pub(crate) top_overlay_since: Option<(usize, Instant)>,
    pub(crate) confirm: PendingConfirm,
    /// Enter was the last key, and the top one of so many overlays still waits for the rows to choose from.
    pub(crate) early_choice: Option<usize>,
}

impl Guard {
    pub(super) fn new(now: Instant) -> Guard {
        Guard {
            delay: DECISION_DELAY,
            quiet_since: now,
            top_overlay_since: None,
            confirm: PendingConfirm::Nothing,
            early_choice: None,
        }
    }
}
