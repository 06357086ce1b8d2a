//! The preview of a Turn: what it was about, its answer, the files that it changed, and how it ended.

use pixir_core::text::human::human_duration;
use pixir_core::tree::{Node, Tree};
use ratatui::text::{Line, Span};

use super::list::age;
use crate::overlay::Paint;
use crate::render::context::RenderContext;
use crate::render::figures::{plus_minus, short};
use crate::render::markdown;
use crate::render::text::{fit, lines_of, plain, width, wrap_lines};
use crate::theme::Theme;

/// The most of a text that a preview lays out, bytes.
const MOST_TEXT: usize = 24 << 10;
/// The most files that a preview lists.
const MOST_FILES: usize = 40;
/// The most Turns of a folded chain that a preview lists.
const MOST_TURNS: usize = 200;

/// The preview of one node.
pub(super) fn node(
    tree: &Tree,
    at: usize,
    forks: &[String],
    now: i64,
    columns: usize,
    paint: Paint<'_>,
) -> Vec<Line<'static>> {
    let theme = paint.theme;
    let Some(node) = tree.nodes.get(at) else { return Vec::new() };
    let mut lines = wrap_lines(&[Span::styled(facts(node, now), theme.dim())], columns, &[], &[]);
    lines.extend(outcome(node, forks, columns, theme));
    lines.push(Line::default());
    let start = |text: &str| plain(&text[..text.floor_char_boundary(MOST_TEXT)]).into_owned();
    let prompt = [Span::styled(start(&node.text), theme.fg(theme.user))];
    lines.extend(wrap_lines(&prompt, columns, &[Span::styled("❯ ", theme.fg(theme.user))], &[Span::raw("  ")]));
    if !node.answer.is_empty() {
        lines.push(Line::default());
        let context = RenderContext::new(theme, paint.highlighter, columns);
        lines.extend(lines_of(markdown::rows(&start(&node.answer), &context)));
    }
    let files = tree.changes(at);
    if !files.is_empty() {
        lines.push(Line::default());
        let most = files.iter().map(|it| it.added + it.removed).max().unwrap_or(0);
        lines.extend(files.iter().take(MOST_FILES).map(|it| {
            let path = it.from.map_or_else(|| it.path.to_owned(), |from| format!("{from} → {}", it.path));
            diffstat(&format!("{} {path}", it.letter), (it.added, it.removed), most, columns, theme)
        }));
        if files.len() > MOST_FILES {
            lines.push(Line::styled(format!("… {} more files", files.len() - MOST_FILES), theme.dim()));
        }
    }
    lines
}

/// The preview of a folded chain: its prompts.
pub(super) fn chain(tree: &Tree, nodes: &[usize], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(format!("{} turns, folded", nodes.len()), theme.dim()), Line::default()];
    let all = nodes.iter().filter_map(|at| tree.nodes.get(*at));
    lines.extend(all.take(MOST_TURNS).map(|node| {
        let number = node.turn.map_or(String::new(), |turn| format!("{turn:>4} "));
        let room = columns.saturating_sub(width(&number));
        Line::from(vec![
            Span::styled(number, theme.dim()),
            Span::styled(markdown::first_line(&node.text, room), theme.fg(theme.text)),
        ])
    }));
    lines
}

/// `Turn 6 · 12s · 4 calls · 9.1k tokens · $0.02 · 2h ago`
fn facts(node: &Node, now: i64) -> String {
    let mut facts = vec![node.turn.map_or("Between turns".to_owned(), |turn| format!("Turn {turn}"))];
    if node.duration_ms >= 1_000 {
        facts.push(human_duration(std::time::Duration::from_millis(node.duration_ms)));
    }
    match node.tool_calls {
        0 => {}
        1 => facts.push("1 call".to_owned()),
        n => facts.push(format!("{n} calls")),
    }
    if node.tokens() > 0 {
        facts.push(format!("{} tokens", short(node.tokens())));
    }
    facts.extend(Some(node.cost.to_string()).filter(|it| !it.is_empty()));
    let ago = age(now - node.time.as_second());
    facts.push(if ago == "now" { "just now".to_owned() } else { format!("{ago} ago") });
    facts.join(" · ")
}

/// How it ended if it did not complete, and what else is special.
fn outcome(node: &Node, forks: &[String], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if node.has_failed() || node.was_interrupted() {
        let (mark, word, colour) =
            if node.was_interrupted() { ("■", "interrupted", theme.warning) } else { ("✗", "failed", theme.error) };
        let why = node.error.as_deref().map_or(String::new(), |why| format!(": {}", plain(why)));
        let text = [Span::styled(format!("{mark} {word}{why}"), theme.fg(colour))];
        lines.extend(wrap_lines(&text, columns, &[], &[Span::raw("  ")]));
    }
    let mut notes: Vec<String> = Vec::new();
    notes.extend(node.label.as_deref().map(|label| format!("⚑ {}", plain(label))));
    notes.extend(node.pinned.then(|| "⚲ pinned: a compaction keeps it word for word".to_owned()));
    notes.extend(node.compacted.then(|| "▣ the conversation was compacted here".to_owned()));
    notes.extend(node.in_trash.then(|| "✕ in the trash".to_owned()));
    notes.extend(forks.iter().map(|title| format!("↱ forked: {}", plain(title))));
    lines.extend(notes.into_iter().map(|note| Line::styled(fit(&note, columns), theme.fg(theme.heading))));
    lines
}

/// A file with the lines that were added and removed, and a bar of both. The file with the most changed lines has the
/// longest bar.
pub(super) fn diffstat(
    path: &str,
    (added, removed): (u64, u64),
    most: u64,
    columns: usize,
    theme: &Theme,
) -> Line<'static> {
    const BAR: usize = 8;
    let counts = plus_minus(added, removed);
    let room = columns.saturating_sub(counts.len().max(10) + BAR + 3);
    let path = plain(path);
    // The end of a path is its most specific part, so the start is cut.
    let skipped = path.chars().count().saturating_sub(room.saturating_sub(1));
    let shown = if width(&path) > room {
        format!("…{}", path.chars().skip(skipped).collect::<String>())
    } else {
        path.into_owned()
    };
    let blanks = room.saturating_sub(width(&shown)) + 1;
    let sum = (added + removed).max(1);
    // A few lines have a mark each; beyond that the bars are to scale.
    let bar = if most <= BAR as u64 { added + removed } else { ((added + removed) * BAR as u64).div_ceil(most) };
    let bar = usize::try_from(bar).map_or(BAR, |bar| bar.min(BAR));
    let share = usize::try_from((added * bar as u64).div_ceil(sum)).unwrap_or(bar).min(bar);
    let plus = if added > 0 { format!("+{added}") } else { String::new() };
    let minus = if removed > 0 { format!(" −{removed}") } else { String::new() };
    let pad = 10_usize.saturating_sub(width(&plus) + width(&minus));
    Line::from(vec![
        Span::styled(shown, theme.fg(theme.text)),
        Span::raw(" ".repeat(blanks + pad)),
        Span::styled(plus, theme.fg(theme.added)),
        Span::styled(minus, theme.fg(theme.removed)),
        Span::raw(" "),
        Span::styled("▪".repeat(share), theme.fg(theme.added)),
        Span::styled("▪".repeat(bar - share), theme.fg(theme.removed)),
    ])
}
