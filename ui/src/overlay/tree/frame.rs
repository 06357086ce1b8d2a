//! The tree, drawn: the rows, the preview, the line below them.

use pixir_core::input::Summarize;
use pixir_core::tree::Node;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::find::Filter;
use super::{Face, Question, TreeView, list, preview};
use crate::input::action::{LayerAction, SessionKind};
use crate::overlay::{Page, Paint, View, panel};
use crate::render::text::{fit, plain, width};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// The narrowest screen that has room for a preview beside the tree, in columns.
const BESIDE: u16 = 96;
/// The smallest panel that has room for a preview below the tree, in columns and rows.
const BELOW: (u16, u16) = (70, 14);
/// A narrower panel shows the preview in the rows that the tree leaves free, if there are so many.
const FREE: u16 = 6;

impl TreeView {
    pub(super) fn paint(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let title = self.heading(area.width);
        let inner = panel(canvas, area, &title, &self.hints(paint), theme);
        (self.rows, self.preview_area) = (Rect::default(), Rect::default());
        if self.tree.nodes.is_empty() && !matches!(self.face, Face::Forest) {
            let text = "No turns yet. Each message that you send becomes one.";
            canvas.line(Line::styled(text, theme.dim()), Rect { height: 1.min(inner.height), ..inner });
            return;
        }
        let [body, foot] = split_foot(inner, self.foot(usize::from(inner.width), theme).is_some());
        if let Some(line) = self.foot(usize::from(inner.width), theme) {
            canvas.line(line, foot);
        }
        match &mut self.face {
            Face::Forest => {
                self.rows = body;
                self.forest.draw(canvas, body, self.now, theme);
            }
            Face::Compared(compared) => compared.draw(canvas, body, &self.tree, paint),
            Face::Preview => self.draw_preview(canvas, body, paint),
            Face::Tree => {
                // As many rows as there are nodes and forks, whatever is folded or filtered.
                let rows = self.tree.nodes.len() + self.counts.1;
                let (list, preview, rule) = match self.plot.is_empty() {
                    true => (body, None, None),
                    false => areas(body, u16::try_from(rows).unwrap_or(u16::MAX)),
                };
                self.draw_list(canvas, list, theme);
                if let (Some(preview), Some(rule)) = (preview, rule) {
                    draw_rule(canvas, rule, theme);
                    self.draw_preview(canvas, preview, paint);
                }
            }
        }
    }

    fn draw_list(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        self.rows = area;
        if self.plot.is_empty() {
            let text = match self.filter {
                Filter::Removed => "The trash is empty.".to_owned(),
                other => format!("No turns to show: the filter is “{}”.", other.name()),
            };
            canvas.line(Line::styled(text, theme.dim()), Rect { height: 1.min(area.height), ..area });
            return;
        }
        let visible = self.plot.visible(usize::from(area.height));
        let marked = self.marked.and_then(|seq| self.tree.node_of(seq));
        for (y, at) in (area.y..area.bottom()).zip(visible) {
            let Some(row) = self.plot.row(at) else { continue };
            let (own, node, sums) = self.plot.sums(at, &self.tree);
            let about = list::About {
                node,
                sums,
                figures: self.figures,
                now: self.now,
                // Neither a marked Turn nor one with forks is folded into a chain.
                marked: own.is_some() && marked == own,
                forks: own.and_then(|node| self.forks.get(&node)).map_or(0, Vec::len),
                found: self.search.as_ref().is_some_and(|search| search.rows.contains(&at)),
                runs: self.runs(node),
            };
            let place = Rect { y, height: 1, ..area };
            let line = list::line(row, &about, usize::from(area.width), theme);
            if at == self.plot.chosen {
                canvas.tint(place, theme.selected());
            }
            if node.is_some() {
                canvas.region("option", place, || line.to_string().trim_end().to_owned());
                canvas.region_state(RegionState { focused: false, selected: at == self.plot.chosen });
            }
            canvas.line(line, place);
        }
    }

    fn draw_preview(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        if self.previewed != Some(self.plot.chosen) {
            self.previewed = Some(self.plot.chosen);
            self.preview = Page::default();
        }
        self.preview_area = area;
        let (tree, plot, forks, now) = (&self.tree, &self.plot, &self.forks, self.now);
        self.preview.draw(canvas, area, paint, |columns| match plot.nodes(plot.chosen).as_slice() {
            [] => Vec::new(),
            [node] => preview::node(tree, *node, forks.get(node).map_or(&[], Vec::as_slice), now, columns, paint),
            nodes => preview::chain(tree, nodes, columns, paint.theme),
        });
    }

    /// Whether this Turn is running.
    fn runs(&self, node: Option<&Node>) -> bool {
        self.is_running && node.is_some_and(|node| node.is_head && node.outcome.is_none())
    }

    fn heading(&self, columns: u16) -> String {
        let count = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });
        match &self.face {
            Face::Forest => format!("Sessions · {}", count(self.forest.len(), "session", "sessions")),
            Face::Compared(compared) => compared.title(&self.tree),
            Face::Preview => "Tree · preview".to_owned(),
            Face::Tree => {
                let (here, branches, all) = self.counts;
                let filter = match self.filter {
                    Filter::All => String::new(),
                    other => format!(" · only {}", other.name()),
                };
                if branches <= 1 {
                    format!("Tree · {}{filter}", count(all, "turn", "turns"))
                } else if columns >= 90 {
                    let branches = count(branches, "branch", "branches");
                    format!(
                        "Tree · {} on this branch · {branches} · {all} turns in all{filter}",
                        count(here, "turn", "turns")
                    )
                } else {
                    format!("Tree · {here} of {all} turns · {}{filter}", count(branches, "branch", "branches"))
                }
            }
        }
    }

    /// The line above the hints: what is asked, typed or said, the state of the summary, and the position.
    fn foot(&self, columns: usize, theme: &Theme) -> Option<Line<'static>> {
        if matches!(self.face, Face::Compared(_)) {
            return None;
        }
        let (at, of) = match self.face {
            Face::Forest => self.forest.position(),
            Face::Tree | Face::Preview | Face::Compared(_) => self.plot.position(),
        };
        let position = if of == 0 { String::new() } else { format!("{at}/{of}") };
        let left = match (&self.naming, self.question, &self.search) {
            (Some(name), ..) => Span::styled(format!("Label: {}▏", plain(name)), theme.fg(theme.text)),
            (None, Some(Question::Fork), _) => Span::styled("Fork a new session from here?", theme.fg(theme.warning)),
            (None, Some(Question::Remove), _) => {
                let turns = self.branch_size();
                let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
                let text = format!("Move this branch ({turns}) to the trash?");
                Span::styled(text, theme.fg(theme.warning))
            }
            (None, None, Some(search)) => {
                let caret = if search.is_typed { "▏" } else { "" };
                let found = match search.hits.len() {
                    _ if search.text.is_empty() => String::new(),
                    0 => "   No matches".to_owned(),
                    1 => "   1 match".to_owned(),
                    n => format!("   {n} matches"),
                };
                Span::styled(format!("/{}{caret}{found}", plain(&search.text)), theme.fg(theme.text))
            }
            (None, None, None) => match (&self.note, self.summarize) {
                (Some(note), _) => Span::styled(note.clone(), theme.fg(theme.warning)),
                (None, Summarize::No) => Span::raw(""),
                (None, Summarize::Deterministic) => {
                    Span::styled("Summary of the branch you leave: from the log", theme.fg(theme.accent))
                }
                (None, Summarize::Model) => {
                    Span::styled("Summary of the branch you leave: by the model", theme.fg(theme.accent))
                }
            },
        };
        let room = columns.saturating_sub(width(&position) + 1);
        let left = Span::styled(fit(&left.content, room), left.style);
        let blanks = columns.saturating_sub(width(&left.content) + width(&position));
        Some(Line::from(vec![left, Span::raw(" ".repeat(blanks)), Span::styled(position, theme.dim())]))
    }

    /// The Turns of the branch that begins with the chosen one.
    fn branch_size(&self) -> usize {
        let Some(root) = self.plot.node() else { return 0 };
        let mut inside = vec![false; self.tree.nodes.len()];
        for at in root..self.tree.nodes.len() {
            inside[at] = at == root || self.tree.parents[at].is_some_and(|parent| inside[parent]);
        }
        inside.into_iter().filter(|it| *it).count()
    }

    /// The keys that matter now, those that are needed most first.
    fn hints(&self, paint: Paint<'_>) -> String {
        let close = (LayerAction::CloseOverlay, "close");
        if self.is_typing() {
            let done = if self.naming.is_some() { "Enter save" } else { "Enter search" };
            return format!("{done} · Esc cancel");
        }
        let cancel = (LayerAction::CloseOverlay, "cancel");
        match self.question {
            Some(Question::Fork) => return paint.hints(&[(LayerAction::Choose, "fork"), cancel]),
            Some(Question::Remove) => return paint.hints(&[(LayerAction::Choose, "move to the trash"), cancel]),
            None => {}
        }
        let back = (LayerAction::CloseOverlay, "back");
        match self.face {
            Face::Compared(_) => paint.hints(&[back, (LayerAction::OverlayPageDown, "page down")]),
            Face::Preview => paint.hints(&[(LayerAction::Choose, "go here"), back]),
            Face::Forest => paint.hints(&[(LayerAction::Choose, "open"), (LayerAction::ToggleForest, "tree"), back]),
            Face::Tree if self.tree.nodes.is_empty() => paint.hints(&[(LayerAction::ToggleForest, "sessions"), close]),
            Face::Tree if self.session == SessionKind::Replay => {
                paint.hints(&[(LayerAction::Choose, "go here"), (LayerAction::FindInTree, "search"), close])
            }
            Face::Tree if self.plot.is_empty() => {
                paint.hints(&[(LayerAction::CycleTreeFilter, "filter"), (LayerAction::ToggleForest, "sessions"), close])
            }
            Face::Tree => {
                let on_chain = self.plot.is_on_chain();
                let in_trash = self.plot.node().is_some_and(|node| self.tree.nodes[node].in_trash);
                let mut keys = Vec::new();
                if on_chain {
                    keys.push((LayerAction::Choose, "unfold"));
                } else if in_trash {
                    keys.push((LayerAction::RestoreBranch, "restore"));
                } else {
                    keys.extend([
                        (LayerAction::Choose, "go here"),
                        (LayerAction::EditAgain, "edit again"),
                        (LayerAction::ForkHere, "fork"),
                    ]);
                }
                keys.extend([(LayerAction::FindInTree, "search"), (LayerAction::OverlayHelp, "keys"), close]);
                keys.extend([
                    (LayerAction::MarkNode, "mark"),
                    (LayerAction::CompareNodes, "compare"),
                    (LayerAction::CycleTreeFilter, "filter"),
                    (LayerAction::ToggleForest, "sessions"),
                    (LayerAction::ToggleTreePreview, "preview"),
                    (LayerAction::RemoveBranch, "delete"),
                ]);
                paint.hints(&keys)
            }
        }
    }
}

/// The areas of the list, of the preview, and of the line between them.
fn areas(body: Rect, rows: u16) -> (Rect, Option<Rect>, Option<Rect>) {
    if body.width >= BESIDE {
        let list = body.width * 11 / 20;
        let rule = Rect { x: body.x + list, width: 1, ..body };
        let preview = Rect { x: rule.x + 2, width: body.width - list - 2, ..body };
        return (Rect { width: list - 1, ..body }, Some(preview), Some(rule));
    }
    let rows = rows.max(4);
    let is_roomy = body.width >= BELOW.0 && body.height >= BELOW.1;
    if is_roomy || rows.saturating_add(1 + FREE) <= body.height {
        let list = if is_roomy { rows.min(body.height * 3 / 5) } else { rows };
        let rule = Rect { y: body.y + list, height: 1, ..body };
        let preview = Rect { y: rule.y + 1, height: body.height - list - 1, ..body };
        return (Rect { height: list, ..body }, Some(preview), Some(rule));
    }
    (body, None, None)
}

fn draw_rule(canvas: &mut Canvas, rule: Rect, theme: &Theme) {
    if canvas.is_bare {
        return;
    }
    let style = theme.fg(theme.border);
    if rule.width == 1 {
        for y in rule.y..rule.bottom() {
            canvas.line(Line::styled("│", style), Rect { y, height: 1, ..rule });
        }
    } else {
        canvas.line(Line::styled("─".repeat(usize::from(rule.width)), style), rule);
    }
}

/// The rows, and the last line below them.
fn split_foot(inner: Rect, has_foot: bool) -> [Rect; 2] {
    let rows = if has_foot && inner.height > 1 { inner.height - 1 } else { inner.height };
    [Rect { height: rows, ..inner }, Rect { y: inner.y + rows, height: inner.height - rows, ..inner }]
}
