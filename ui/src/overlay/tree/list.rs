//! The rows of the tree: lanes, marks, badges, and figures that give way where there is little room.

use std::time::Duration;

use pixir_core::event::Cost;
use pixir_core::tree::{Node, Tree};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};

use crate::render::figures::{self, plus_minus, short};
use crate::render::lanes::{Row, What, strokes};
use crate::render::markdown::first_line;
use crate::render::text::{fit, plain, width};
use crate::theme::Theme;

/// The widths from which on a row shows more, in columns.
const SHOWS_AGE: usize = 40;
const SHOWS_COST: usize = 50;
const SHOWS_TOKENS: usize = 72;

/// Which figures the tree has at all, so that no column is empty.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    /// The widest changes, in columns.
    changes: usize,
    tokens: bool,
    cost: bool,
    /// Digits of the greatest number of a Turn.
    digits: usize,
}

impl Figures {
    pub(super) fn of(tree: &Tree) -> Figures {
        let mut figures = Figures { digits: 1, ..Figures::default() };
        tree.nodes.iter().for_each(|node| figures.take(node));
        figures
    }

    /// Makes room for a node.
    pub(super) fn take(&mut self, node: &Node) {
        self.changes = self.changes.max(width(&plus_minus(node.added, node.removed)));
        self.tokens |= node.tokens() > 0;
        self.cost |= node.cost.usd > 0.0;
        self.digits = self.digits.max(node.turn.map_or(0, |turn| turn.ilog10() as usize + 1));
    }
}

/// The figures of the nodes in a row: one, or those of a folded chain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) turns: usize,
    added: u64,
    removed: u64,
    tokens: u64,
    cost: Cost,
    /// Seconds since 1970.
    last: i64,
}

impl Sums {
    pub(super) fn of<'a>(nodes: impl Iterator<Item = &'a Node>) -> Sums {
        let mut sums = Sums { last: i64::MIN, ..Sums::default() };
        for node in nodes {
            sums.turns += 1;
            sums.added += node.added;
            sums.removed += node.removed;
            sums.tokens += node.tokens();
            sums.cost += node.cost;
            sums.last = sums.last.max(node.time.as_second());
        }
        sums
    }
}

/// What a row shows besides its node.
pub(super) struct About<'a> {
    /// The node of the row, the first one of a folded chain; `None` where lanes fork.
    pub(super) node: Option<&'a Node>,
    pub(super) sums: Sums,
    pub(super) figures: Figures,
    /// Seconds since 1970.
    pub(super) now: i64,
    /// The node is marked for a comparison.
    pub(super) marked: bool,
    /// Sessions that were forked from the node.
    pub(super) forks: usize,
    /// The text that is searched for is in the row.
    pub(super) found: bool,
    /// The Turn goes on.
    pub(super) runs: bool,
}

/// The colour of a lane.
pub(super) fn lane_colour(lane: usize, theme: &Theme) -> Color {
    match lane.checked_sub(1) {
        None => theme.accent,
        Some(side) => [theme.tool, theme.thinking, theme.warning, theme.success, theme.link, theme.heading][side % 6],
    }
}

/// How long ago something was, in at most three columns. A time in the future counts as now.
pub(super) fn age(seconds: i64) -> String {
    figures::age(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The lines at the left of a row, and its mark. Lanes that have no room are cut at the left.
pub(super) fn gutter(row: &Row, mark: Span<'static>, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let most = (columns / 6).max(3);
    let lane = usize::from(row.lane);
    let cut = (lane + 1).saturating_sub(most);
    let mut spans = Vec::new();
    let mut used = 0;
    for stroke in strokes(row) {
        if stroke.lane < cut {
            if spans.is_empty() {
                spans.push(Span::styled("‹ ", theme.dim()));
            }
            continue;
        }
        if stroke.text.is_empty() {
            spans.push(mark.clone());
            continue;
        }
        used += width(stroke.text);
        if used > most * 2 {
            break;
        }
        spans.push(Span::styled(stroke.text, theme.fg(lane_colour(stroke.lane, theme))));
    }
    spans
}

/// A row of the tree.
pub(super) fn line(row: &Row, about: &About<'_>, columns: usize, theme: &Theme) -> Line<'static> {
    let Some(node) = about.node else {
        return Line::from(gutter(row, Span::raw(""), columns, theme));
    };
    let colour = lane_colour(usize::from(row.lane), theme);
    let chain = matches!(row.what, What::Chain { .. });
    let mark = match (chain, node.is_head, node.on_path) {
        _ if node.in_trash => Span::styled("✕ ", theme.dim()),
        (true, ..) => Span::styled("┊ ", theme.fg(colour)),
        (_, true, _) => Span::styled("◉ ", theme.fg(theme.success)),
        (.., true) => Span::styled("● ", theme.fg(colour)),
        (..) => Span::styled("○ ", theme.fg(colour)),
    };
    let mut spans = gutter(row, mark, columns, theme);
    let digits = about.figures.digits;
    if chain {
        let text = format!("{:>digits$} {} turns", "…", about.sums.turns);
        let style = if about.found { theme.dim().underlined() } else { theme.dim() };
        spans.push(Span::styled(text, style));
    } else {
        let number = node.turn.map_or(String::new(), |turn| turn.to_string());
        spans.push(Span::styled(format!("{number:>digits$} "), theme.dim()));
    }
    let figures = figures(about, columns, theme);
    let of = |spans: &[Span<'_>]| spans.iter().map(|span| width(&span.content)).sum::<usize>();
    let room = |badges: &[Span<'_>]| columns.saturating_sub(of(&spans) + of(badges) + of(&figures));
    // The marks have their words where the text has room beside them.
    let words = if chain { Vec::new() } else { badges(node, about, true, theme) };
    let is_short = |room: usize| width(&first_line(&node.text, room + 1)) <= room;
    let badges = if chain || is_short(room(&words)) { words } else { badges(node, about, false, theme) };
    let room = room(&badges);
    if !chain {
        let style = match (node.is_request, node.on_path && !node.in_trash) {
            (false, _) => theme.dim(),
            (true, true) => theme.fg(theme.text),
            (true, false) => theme.fg(theme.dim),
        };
        let style = if about.found { theme.fg(theme.strong).underlined() } else { style };
        // The room that the text does not need keeps the figures at the right.
        let text = first_line(&node.text, room);
        spans.push(Span::styled(text, style));
    }
    spans.extend(badges);
    let gap = columns.saturating_sub(of(&spans) + of(&figures));
    spans.push(Span::raw(" ".repeat(gap)));
    spans.extend(figures);
    Line::from(spans)
}

/// What is special about a Turn.
fn badges(node: &Node, about: &About<'_>, words: bool, theme: &Theme) -> Vec<Span<'static>> {
    let mut badges = Vec::new();
    let mut push = |mark: &str, word: &str, style: Style| {
        let word = if words && !word.is_empty() { format!(" {word}") } else { String::new() };
        badges.push(Span::styled(format!("  {mark}{word}"), style));
    };
    if about.marked {
        push("◆", "marked", theme.fg(theme.accent));
    }
    if let Some(label) = &node.label {
        let label = fit(&plain(label), 24);
        // A name is never cut down to its mark: it is what the user looks for.
        push(&format!("⚑ {label}"), "", theme.fg(theme.heading));
    }
    if about.runs {
        push("▸", "running", theme.fg(theme.success));
    }
    if node.pinned {
        push("⚲", "pinned", theme.fg(theme.accent));
    }
    if node.has_failed() {
        push("✗", "failed", theme.fg(theme.error));
    }
    if node.was_interrupted() {
        push("■", "interrupted", theme.fg(theme.warning));
    }
    if node.compacted {
        push("▣", "compacted", theme.fg(theme.thinking));
    }
    match about.forks {
        0 => {}
        1 => push("↱", "forked", theme.fg(theme.tool)),
        n => push("↱", &format!("{n} forks"), theme.fg(theme.tool)),
    }
    badges
}

/// Changes, tokens, cost and age, at the right of a row.
fn figures(about: &About<'_>, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Sums { added, removed, tokens, cost, last, turns: _ } = about.sums;
    let mut spans = Vec::new();
    let figures = about.figures;
    if figures.changes > 0 && columns >= SHOWS_AGE {
        let blanks = (figures.changes + 3).saturating_sub(width(&plus_minus(added, removed)));
        spans.push(Span::raw(" ".repeat(blanks)));
        spans.extend(figures::plus_minus_spans("", (added, removed), theme));
    } else if added + removed > 0 {
        spans.push(Span::styled("  ✎", theme.fg(theme.added)));
    } else {
        spans.push(Span::raw("   "));
    }
    let mut column = |text: String, wide: usize| spans.push(Span::styled(format!("{text:>wide$}"), theme.dim()));
    if figures.tokens && columns >= SHOWS_TOKENS {
        column(if tokens > 0 { short(tokens) } else { String::new() }, 7);
    }
    if figures.cost && columns >= SHOWS_COST {
        column(cost.to_string(), 8);
    }
    if columns >= SHOWS_AGE {
        column(age(about.now - last), 5);
    }
    spans
}
