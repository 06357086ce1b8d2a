//! The Sessions of the workspace: each with its forks and its children under it.

use std::collections::HashMap;

use pixir_core::event::Cost;
use pixir_core::store::Summary;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::list::age;
use crate::render::text::{fit, plain, width};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// A Session in the forest.
#[derive(Debug)]
struct Session {
    id: String,
    title: String,
    /// The lines that lead to it.
    lines: String,
    /// `↱` for a fork, `↳` for a child of another Session.
    mark: &'static str,
    /// Seconds since 1970.
    last: i64,
    turns: u32,
    cost: Cost,
    is_current: bool,
}

/// All Sessions of the workspace, once they are loaded.
#[derive(Debug, Default)]
pub(super) struct Forest {
    sessions: Option<Vec<Session>>,
    chosen: usize,
    top: usize,
    height: usize,
}

impl Forest {
    pub(super) fn set(&mut self, all: &[Summary], own: &str) {
        let at_of: HashMap<&str, usize> = all.iter().enumerate().map(|(at, it)| (it.id.as_str(), at)).collect();
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
        let mut roots = Vec::new();
        for (at, it) in all.iter().enumerate() {
            let above = it.forked_from.as_deref().or(it.parent.as_deref());
            match above.and_then(|id| at_of.get(id)).filter(|above| **above != at) {
                Some(above) => below[*above].push(at),
                None => roots.push(at),
            }
        }
        // The latest is first, and under its parent the oldest.
        below.iter_mut().for_each(|it| it.reverse());
        let mut sessions = Vec::with_capacity(all.len());
        let mut seen = vec![false; all.len()];
        let mut stack: Vec<(usize, String, String)> =
            roots.into_iter().rev().map(|at| (at, String::new(), String::new())).collect();
        // Logs that name each other as their parent have no root; they come last.
        let mut rest = 0..all.len();
        while let Some((at, lines, indent)) =
            stack.pop().or_else(|| rest.next().map(|at| (at, String::new(), String::new())))
        {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let it = &all[at];
            let children = &below[at];
            for (n, child) in children.iter().enumerate().rev() {
                let is_last = n + 1 == children.len();
                let (corner, rest) = if is_last { ("╰─", "  ") } else { ("├─", "│ ") };
                stack.push((*child, format!("{indent}{corner}"), format!("{indent}{rest}")));
            }
            let mark = match (&it.forked_from, &it.parent) {
                (Some(_), _) => "↱ ",
                (None, Some(_)) => "↳ ",
                (None, None) => "",
            };
            sessions.push(Session {
                id: it.id.clone(),
                title: plain(it.title()).into_owned(),
                lines,
                mark,
                last: it.last_activity.as_second(),
                turns: it.turns,
                cost: it.cost,
                is_current: it.id == own,
            });
        }
        self.chosen = sessions.iter().position(|it| it.is_current).unwrap_or(0);
        self.sessions = Some(sessions);
    }

    /// The Session that the cursor is on, and whether it is the open one.
    pub(super) fn chosen(&self) -> Option<(&str, bool)> {
        self.sessions.as_ref()?.get(self.chosen).map(|it| (it.id.as_str(), it.is_current))
    }

    pub(super) fn step(&mut self, by: isize) {
        let last = self.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    pub(super) fn page(&mut self, by: isize) {
        self.step(isize::try_from(self.height.max(2) - 1).unwrap_or(1) * by);
    }

    pub(super) fn click(&mut self, below: usize) -> bool {
        let row = self.top + below;
        let is_there = row < self.len();
        if is_there {
            self.chosen = row;
        }
        is_there
    }

    pub(super) fn len(&self) -> usize {
        self.sessions.as_ref().map_or(0, Vec::len)
    }

    /// The number of the chosen Session, from 1, and how many there are.
    pub(super) fn position(&self) -> (usize, usize) {
        ((self.chosen + 1).min(self.len()), self.len())
    }

    pub(super) fn draw(&mut self, canvas: &mut Canvas, area: Rect, now: i64, theme: &Theme) {
        self.height = usize::from(area.height);
        let (lowest, highest) = ((self.chosen + 1).saturating_sub(self.height), self.chosen);
        self.top = self.top.clamp(lowest, highest);
        let note = match &self.sessions {
            None => Some("loading…"),
            Some(all) if all.is_empty() => Some("No sessions yet."),
            Some(_) => None,
        };
        if let Some(note) = note {
            canvas.line(Line::styled(note, theme.dim()), Rect { height: 1.min(area.height), ..area });
            return;
        }
        let columns = usize::from(area.width);
        let rows = self.sessions.iter().flatten().enumerate().skip(self.top);
        for (y, (at, it)) in (area.y..area.bottom()).zip(rows) {
            let row = Rect { y, height: 1, ..area };
            if at == self.chosen {
                canvas.tint(row, theme.selected());
            }
            canvas.region("option", row, || it.title.clone());
            canvas.region_state(RegionState { focused: false, selected: at == self.chosen });
            let turns = if it.turns == 1 { "1 turn".to_owned() } else { format!("{} turns", it.turns) };
            let turns = if columns >= 50 { format!("{turns:>11}") } else { String::new() };
            let cost = if columns >= 60 { format!("{:>8}", it.cost.to_string()) } else { String::new() };
            let figures = format!("{turns}{cost}{:>5}", age(now - it.last));
            let dot = if it.is_current { "◉ " } else { "● " };
            let used = width(&it.lines) + width(it.mark) + 2 + width(&figures);
            let title = fit(&it.title, columns.saturating_sub(used + 1));
            let blanks = columns.saturating_sub(used + width(&title));
            let style = if it.is_current { theme.fg(theme.success) } else { theme.fg(theme.accent) };
            canvas.line(
                Line::from(vec![
                    Span::styled(it.lines.clone(), theme.dim()),
                    Span::styled(dot, style),
                    Span::styled(it.mark, theme.fg(theme.tool)),
                    Span::styled(title, if it.is_current { theme.bold() } else { theme.fg(theme.text) }),
                    Span::raw(" ".repeat(blanks)),
                    Span::styled(figures, theme.dim()),
                ]),
                row,
            );
        }
    }
}
