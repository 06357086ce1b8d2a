//! Theme, folds and motion.

use crate::input::action::Action;
use crate::input::keymap::Keymap;
use crate::remedy::Remedies;
use crate::render::context::{Fold, MoreHints};
use crate::render::highlight::Highlighter;
use crate::theme::{Background, Depth, Theme};

/// How the interface looks.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    /// The name that the user gave: `auto` stands for several themes.
    pub(crate) theme_name: String,
    /// The terminal's background.
    pub(crate) background: Background,
    pub(crate) depth: Depth,
    pub(crate) highlighter: Highlighter,
    pub(crate) details: Fold,
    pub(crate) thinking: Fold,
    pub(crate) more: MoreHints,
    /// Grows whenever every cell has to be laid out again.
    pub(crate) generation: u64,
    /// The spinner moves.
    pub(crate) animate: bool,
    /// A screen reader reads the screen: no frames, no spinner, each line appears once.
    pub(crate) screen_reader: bool,
}

impl Look {
    pub(super) fn new(theme: Theme, depth: Depth, highlighter: Highlighter, keymap: &Keymap) -> Look {
        Look {
            theme_name: theme.name.clone(),
            theme,
            background: Background::Dark,
            depth,
            highlighter,
            details: Fold::Some,
            thinking: Fold::Line,
            more: more_hints(keymap),
            generation: 0,
            animate: true,
            screen_reader: false,
        }
    }

    /// Hints with the keys that are bound now.
    pub(crate) fn hint(&mut self, keymap: &Keymap, is_inline: bool) {
        self.more = more_hints(keymap);
        if is_inline {
            self.hint_for_inline(keymap);
        }
        // The hints stand in the rows of the transcript.
        self.generation += 1;
    }

    /// Hints for inline mode. Printed lines cannot unfold, so the hint first leads to the full screen.
    pub(crate) fn hint_for_inline(&mut self, keymap: &Keymap) {
        let scroll = keymap.key_of(Action::PageUp);
        self.more = more_hints(keymap);
        if let Some(scroll) = scroll {
            for hint in [&mut self.more.details, &mut self.more.thinking] {
                *hint = match hint.strip_prefix(" · ") {
                    Some(key) => format!(" · {scroll}, then {key}"),
                    None => format!(" · {scroll}"),
                };
            }
        }
    }
}

fn more_hints(keymap: &Keymap) -> MoreHints {
    let hint = |action| keymap.key_of(action).map_or_else(String::new, |key| format!(" · {key}"));
    MoreHints {
        details: hint(Action::CycleDetails),
        thinking: hint(Action::CycleThinking),
        remedies: Remedies::new(keymap),
    }
}
