//! Two Turns compared: what was said on each branch, and the files as they stand there.

use pixir_core::changes::FileDiff;
use pixir_core::event::{ChangeKind, Cost};
use pixir_core::tree::{Comparison, Tree};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::preview::diffstat;
use crate::overlay::{Page, Paint};
use crate::render::context::RenderContext;
use crate::render::diff;
use crate::render::figures::{plus_minus, short};
use crate::render::markdown::first_line;
use crate::render::text::{fit, plain, width};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The most Turns of one side that are listed.
const MOST_TURNS: usize = 10;

/// A comparison on the screen.
#[derive(Debug)]
pub(super) struct Compared {
    left: usize,
    right: usize,
    comparison: Comparison,
    /// The diffs of the files from the left to the right, once they are made.
    files: Option<Vec<FileDiff>>,
    pub(super) page: Page,
}

impl Compared {
    pub(super) fn new(tree: &Tree, left: usize, right: usize) -> Compared {
        Compared { left, right, comparison: tree.compare(left, right), files: None, page: Page::default() }
    }

    /// The nodes that only one side has.
    pub(super) fn sides(&self) -> (&[usize], &[usize]) {
        (&self.comparison.left, &self.comparison.right)
    }

    pub(super) fn set_files(&mut self, files: Vec<FileDiff>) {
        self.files = Some(files);
        self.page = Page::default();
    }

    pub(super) fn title(&self, tree: &Tree) -> String {
        format!("Compare {} with {}", name(tree, self.left), name(tree, self.right))
    }

    pub(super) fn draw(&mut self, canvas: &mut Canvas, area: Rect, tree: &Tree, paint: Paint<'_>) {
        let Compared { left, right, comparison, files, page } = self;
        let theme = paint.theme;
        page.draw(canvas, area, paint, |columns| {
            let common = comparison.common.map_or("nothing".to_owned(), |node| name(tree, node));
            let mut lines = vec![Line::styled(format!("Both share the conversation up to {common}."), theme.dim())];
            for (side, nodes) in [(*left, &comparison.left), (*right, &comparison.right)] {
                lines.push(Line::default());
                lines.extend(said(tree, side, nodes, columns, theme));
            }
            lines.push(Line::default());
            match files {
                None => lines.push(Line::styled("comparing the files…", theme.dim())),
                Some(files) if files.is_empty() => {
                    lines.push(Line::styled("The files that tools changed are the same in both.", theme.dim()));
                }
                Some(files) => {
                    let context = RenderContext::new(theme, paint.highlighter, columns);
                    lines.extend(differences(files, (name(tree, *left), name(tree, *right)), &context));
                }
            }
            lines
        });
    }
}

/// `turn 6`, or the text of a node between two Turns.
fn name(tree: &Tree, node: usize) -> String {
    let Some(node) = tree.nodes.get(node) else { return String::new() };
    match (&node.label, node.turn) {
        (Some(label), _) => format!("“{}”", plain(label)),
        (None, Some(turn)) => format!("turn {turn}"),
        (None, None) => fit(&plain(&node.text), 30),
    }
}

/// What was said on one side only.
fn said(tree: &Tree, side: usize, nodes: &[usize], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let all = || nodes.iter().filter_map(|at| tree.nodes.get(*at));
    let (added, removed) = all().fold((0, 0), |(a, r), node| (a + node.added, r + node.removed));
    let tokens: u64 = all().map(pixir_core::tree::Node::tokens).sum();
    let mut cost = Cost::default();
    all().for_each(|node| cost += node.cost);
    let turns = if nodes.len() == 1 { "1 turn".to_owned() } else { format!("{} turns", nodes.len()) };
    let mut sums = vec![turns, plus_minus(added, removed), cost.to_string()];
    if tokens > 0 {
        sums.push(format!("{} tokens", short(tokens)));
    }
    sums.retain(|it| !it.is_empty());
    let head = format!("Only on the way to {}", name(tree, side));
    if nodes.is_empty() {
        return vec![Line::from(vec![Span::styled(head, theme.bold()), Span::styled("  nothing", theme.dim())])];
    }
    let mut lines = vec![Line::from(vec![
        Span::styled(head, theme.bold()),
        Span::styled(format!("  {}", sums.join(" · ")), theme.dim()),
    ])];
    for node in all().take(MOST_TURNS) {
        let number = node.turn.map_or("     ".to_owned(), |turn| format!("{turn:>4} "));
        let room = columns.saturating_sub(width(&number));
        lines.push(Line::from(vec![
            Span::styled(number, theme.dim()),
            Span::styled(first_line(&node.text, room), theme.fg(theme.user)),
        ]));
        if !node.answer.is_empty() {
            lines.push(Line::styled(
                format!("     {}", first_line(&node.answer, columns.saturating_sub(5))),
                theme.fg(theme.text),
            ));
        }
    }
    if nodes.len() > MOST_TURNS {
        lines.push(Line::styled(format!("     … {} more turns", nodes.len() - MOST_TURNS), theme.dim()));
    }
    lines
}

/// The files that differ: first all with their counts, then each diff.
fn differences(files: &[FileDiff], names: (String, String), context: &RenderContext<'_>) -> Vec<Line<'static>> {
    let (columns, theme) = (context.columns, context.theme);
    let count = if files.len() == 1 { "1 file".to_owned() } else { format!("{} files", files.len()) };
    let head = format!("Files from {} to {}", names.0, names.1);
    let mut lines =
        vec![Line::from(vec![Span::styled(head, theme.bold()), Span::styled(format!("  {count}"), theme.dim())])];
    let most = files.iter().map(|file| file.added + file.removed).max().unwrap_or(0);
    lines.extend(
        files.iter().map(|file| diffstat(&file.path, (file.added, file.removed), most, columns.min(100), theme)),
    );
    for file in files {
        let mark = match file.kind {
            ChangeKind::Created => Span::styled("A ", theme.fg(theme.added)),
            ChangeKind::Modified => Span::styled("M ", theme.fg(theme.warning)),
            ChangeKind::Deleted => Span::styled("D ", theme.fg(theme.removed)),
        };
        lines.push(Line::default());
        let path = Span::styled(fit(&plain(&file.path), columns.saturating_sub(2)), theme.bold());
        lines.push(Line::from(vec![mark, path]));
        // The frame takes four columns.
        let is_wide = columns + 4 >= usize::from(diff::SIDE_BY_SIDE);
        let rows = if is_wide { diff::beside(&file.text, context) } else { diff::lines(&file.text, context) };
        lines.extend(rows);
    }
    lines
}
