//! One entry of the transcript as lines.

use std::rc::Rc;

use pixir_core::changes::FileDiff;
use pixir_core::event::{
    ChangeKind, Delivery, Fact, FilesRestored, PlanItem, RestoreReason, Severity, StepStatus, ToolResult, TurnStatus,
};
use pixir_core::present::human_duration;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::diff;
use super::markdown::{self, Look};
use super::text::{fit, plain, visible, width, wrap};
use crate::transcript::{Cell, Draft, LayoutKey, ToolCell};

/// Lines of a result that a card shows before it is opened.
const PREVIEW: usize = 6;
/// Lines of a diff that a card shows before it is opened.
const DIFF_PREVIEW: usize = 24;
/// Columns that text stands in, behind the marks.
const INDENT: usize = 2;

/// Whether two cells belong so closely together that nothing parts them.
pub(crate) fn joins_next(above: &Cell, below: &Cell) -> bool {
    matches!((above, below), (Cell::Tool(a), Cell::Tool(b)) if is_short(a) && is_short(b))
}

fn is_short(cell: &ToolCell) -> bool {
    matches!(cell.call().name.as_str(), "read" | "ls" | "find" | "grep" | "update_plan")
}

/// The lines of a cell.
pub(crate) fn lines(cell: &Cell, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    match cell {
        Cell::Recorded(entry) => recorded(&entry.fact, look),
        Cell::Thinking { text } => thinking(text, look, false),
        Cell::Tool(cell) => tool(cell, look),
        Cell::Error(it) => {
            let style = theme.fg(theme.error);
            let mut lines = wrap(
                &[Span::styled(visible(&it.message), style)],
                look.columns,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            lines.extend(fix(Some(&it.remediation), look));
            lines
        }
        Cell::Notice { severity, text } => notice(*severity, text, look),
    }
}

/// An entry of the Log as lines.
fn recorded(fact: &Fact, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    match fact {
        Fact::UserMessage(it) => {
            let (mark, style) = match it.delivery {
                Delivery::Prompt | Delivery::FollowUp => ("❯ ", theme.fg(theme.user).add_modifier(Modifier::BOLD)),
                Delivery::Steer => ("» ", theme.fg(theme.user)),
            };
            wrap(
                &[Span::styled(plain(&it.text), style)],
                look.columns,
                &[Span::styled(mark, style)],
                &[Span::raw("  ")],
            )
        }
        Fact::AssistantMessage(it) => {
            let mut lines = indent(markdown::lines(&it.text, &look.inset(INDENT)));
            if it.partial {
                lines.push(marked("  ", "⋯ it broke off here", theme.fg(theme.warning), look));
            }
            lines
        }
        Fact::Reasoning(it) => thinking(&it.text, look, false),
        Fact::PlanUpdated(it) => plan(&it.items, look),
        Fact::SkillActivation(it) => {
            vec![marked("◆ ", &format!("skill {} is active", it.name), theme.fg(theme.tool), look)]
        }
        Fact::HistoryCompaction(it) => {
            let head = format!(
                "compacted: {} → {} tokens, {} entries replaced by a summary",
                it.tokens_before, it.tokens_after, it.entries_dropped
            );
            let mut lines = vec![marked("◆ ", &head, theme.fg(theme.warning), look)];
            if look.details {
                lines.extend(indent(markdown::lines(&it.summary, &look.inset(INDENT))));
            }
            lines
        }
        Fact::BranchSummary(it) => {
            let how = if it.strategy == "model" { "by the model" } else { "from the log" };
            let head = format!("the branch that was left is summed up here, {how}");
            let mut lines = vec![marked("◆ ", &head, theme.fg(theme.tool), look)];
            if look.details {
                lines.extend(indent(markdown::lines(&it.summary, &look.inset(INDENT))));
            }
            lines
        }
        Fact::FilesRestored(it) => restored(it, look),
        Fact::TurnEnded(it) => {
            let (text, style) = match it.status {
                TurnStatus::Interrupted => ("interrupted".to_owned(), theme.fg(theme.warning)),
                TurnStatus::Completed
                | TurnStatus::Incomplete
                | TurnStatus::PartialFailed
                | TurnStatus::Failed
                | TurnStatus::TimedOut => {
                    let why = it.error.as_ref().map_or(it.status.name(), |e| e.message.as_str());
                    (why.to_owned(), theme.fg(theme.error))
                }
            };
            let mut lines = wrap(
                &[Span::styled(visible(&text), style)],
                look.columns,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            if it.status != TurnStatus::Interrupted {
                lines.extend(fix(it.error.as_ref().map(|e| e.remediation.as_str()), look));
            }
            lines
        }
        Fact::LogRepaired(it) => {
            let text =
                format!("a damaged line of the session log stood here ({}); {} keeps it", it.reason, it.quarantine);
            notice(Severity::Warning, &text, look)
        }
        _ => Vec::new(),
    }
}

fn notice(severity: Severity, text: &str, look: &Look<'_>) -> Vec<Line<'static>> {
    let style = match severity {
        Severity::Info => look.theme.dim(),
        Severity::Warning => look.theme.fg(look.theme.warning),
    };
    wrap(&[Span::styled(visible(text), style)], look.columns, &[Span::styled("· ", style)], &[Span::raw("  ")])
}

fn restored(it: &FilesRestored, look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let what = match (it.reason, it.of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("undid turn {turn}"),
        (RestoreReason::Redo, Some(turn)) => format!("redid turn {turn}"),
        (RestoreReason::Stayed, _) => "these files stayed as they are".to_owned(),
        _ => "set files back".to_owned(),
    };
    let mut lines = vec![marked("↺ ", &what, theme.fg(theme.warning), look)];
    for change in &it.changes {
        let (mark, style) = match change.kind {
            ChangeKind::Created => ("  + ", theme.fg(theme.added)),
            ChangeKind::Deleted => ("  − ", theme.fg(theme.removed)),
            ChangeKind::Modified => ("  ~ ", theme.fg(theme.text)),
        };
        let text = format!("{}  +{} −{}", plain(&change.path), change.added, change.removed);
        lines.push(marked(mark, &text, style, look));
    }
    for left in &it.left {
        lines.push(marked("  · ", &format!("{} stays: {}", plain(&left.path), plain(&left.why)), theme.dim(), look));
    }
    lines
}

/// The answer that is being written: what is settled was laid out before, the rest is laid out now.
pub(crate) fn draft_lines(draft: &mut Draft, look: &Look<'_>, key: LayoutKey) -> Rc<Vec<Line<'static>>> {
    let (thought, said) = (draft.thinking.len(), draft.text.len());
    if let Some((known, t, s, lines)) = &draft.whole
        && (*known, *t, *s) == (key, thought, said)
    {
        return Rc::clone(lines);
    }
    let lines = Rc::new(lay_out_draft(draft, look, key));
    draft.whole = Some((key, thought, said, Rc::clone(&lines)));
    lines
}

fn lay_out_draft(draft: &mut Draft, look: &Look<'_>, key: LayoutKey) -> Vec<Line<'static>> {
    let mut lines = vec![Line::default()];
    if !draft.thinking.is_empty() {
        lines.extend(thinking(&draft.thinking, look, true));
    }
    draft.thinking_rows = lines.len();
    if draft.text.is_empty() {
        return lines;
    }
    if !draft.thinking.is_empty() {
        lines.push(Line::default());
    }
    let inner = look.inset(INDENT);
    let (known_to, mut kept) = match draft.lines.take() {
        Some((known, to, kept)) if known == key && to <= draft.settled => (to, kept),
        _ => (0, Vec::new()),
    };
    if draft.settled > known_to {
        let newly = indent(markdown::lines(&draft.text[known_to..draft.settled], &inner));
        if !kept.is_empty() && !newly.is_empty() {
            kept.push(Line::default());
        }
        kept.extend(newly);
    }
    lines.extend(kept.iter().cloned());
    // Code that still grows is shown plain: its colours would be out of date before they are known.
    let growing = Look { colours: false, ..inner };
    let tail = indent(markdown::lines(&draft.text[draft.settled..], &growing));
    if !kept.is_empty() && !tail.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(tail);
    draft.lines = Some((key, draft.settled, kept));
    lines
}

fn indent(lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
    lines
        .into_iter()
        .map(|mut line| {
            if !line.spans.is_empty() {
                line.spans.insert(0, Span::raw("  "));
            }
            line
        })
        .collect()
}

/// One line behind a mark, cut where it ends.
fn marked(mark: &'static str, text: &str, style: Style, look: &Look<'_>) -> Line<'static> {
    Line::from(vec![
        Span::styled(mark, style),
        Span::styled(fit(text, look.columns.saturating_sub(width(mark))), style),
    ])
}

fn fix(remediation: Option<&str>, look: &Look<'_>) -> Vec<Line<'static>> {
    let Some(text) = remediation.filter(|t| !t.is_empty()) else { return Vec::new() };
    wrap(
        &[Span::styled(visible(text), look.theme.fg(look.theme.text))],
        look.columns,
        &[Span::styled("  fix: ", look.theme.dim())],
        &[Span::raw("       ")],
    )
}

fn thinking(text: &str, look: &Look<'_>, live: bool) -> Vec<Line<'static>> {
    let style = look.theme.fg(look.theme.thinking).add_modifier(Modifier::ITALIC);
    let whole = wrap(
        &[Span::styled(plain(text.trim()), style)],
        look.columns,
        &[Span::styled("✻ ", style)],
        &[Span::raw("  ")],
    );
    if look.thinking || whole.len() <= 1 {
        return whole;
    }
    if live {
        // While it grows, its newest lines are what is of interest.
        return whole[whole.len().saturating_sub(3)..].to_vec();
    }
    let first: String = markdown::first_line(text, look.columns.saturating_sub(20));
    vec![Line::from(vec![
        Span::styled("✻ ", style),
        Span::styled(first, style),
        Span::styled(format!("  +{} lines · Alt+T", whole.len() - 1), look.theme.dim()),
    ])]
}

fn plan(items: &[PlanItem], look: &Look<'_>) -> Vec<Line<'static>> {
    let theme = look.theme;
    let done = items.iter().filter(|i| i.status == StepStatus::Completed).count();
    let mut lines = vec![marked("▤ ", &format!("Plan · {done} of {}", items.len()), theme.fg(theme.accent), look)];
    for item in items {
        let (mark, style) = match item.status {
            StepStatus::Completed => ("✓ ", theme.dim().add_modifier(Modifier::CROSSED_OUT)),
            StepStatus::InProgress => ("▸ ", theme.bold()),
            StepStatus::Pending => ("· ", theme.fg(theme.text)),
        };
        let mark = Span::styled(
            format!("  {mark}"),
            if item.status == StepStatus::Completed { theme.fg(theme.success) } else { theme.dim() },
        );
        lines.extend(wrap(&[Span::styled(plain(&item.step), style)], look.columns, &[mark], &[Span::raw("    ")]));
    }
    lines
}

fn tool(cell: &ToolCell, look: &Look<'_>) -> Vec<Line<'static>> {
    let mut lines = vec![card(cell, look)];
    let open = cell.expanded.unwrap_or(look.details);
    if cell.call().name == "update_plan" && !open {
        return lines;
    }
    match (cell.result(), &cell.diffs) {
        (None, _) => lines.extend(block(&cell.live, look, if open { usize::MAX } else { PREVIEW }, End::Last)),
        (Some(result), Some(diffs)) if result.error.is_none() && !diffs.is_empty() => {
            lines.extend(changed(diffs, look, open))
        }
        (Some(result), _) => lines.extend(output(cell, result, look, open)),
    }
    lines
}

/// `✓ edit stats.sh  +1 −1  3ms`
fn card(cell: &ToolCell, look: &Look<'_>) -> Line<'static> {
    let theme = look.theme;
    let (mark, style) = match cell.result() {
        _ if cell.refused => ("⊘ ", theme.fg(theme.warning)),
        None => ("● ", theme.fg(theme.accent)),
        Some(result) if result.ok => ("✓ ", theme.fg(theme.success)),
        Some(_) => ("✗ ", theme.fg(theme.error)),
    };
    let mut tail: Vec<Span<'static>> = Vec::new();
    if let Some(result) = cell.result() {
        let (added, removed) = result.changes.iter().fold((0, 0), |(a, r), c| (a + c.added, r + c.removed));
        if added + removed > 0 {
            tail.push(Span::styled(format!("  +{added}"), theme.fg(theme.added)));
            tail.push(Span::styled(format!(" −{removed}"), theme.fg(theme.removed)));
        }
        if cell.call().name == "bash" && result.exit_code.is_some_and(|code| code != 0) {
            tail.push(Span::styled(format!("  exit {}", result.exit_code.unwrap_or_default()), theme.fg(theme.error)));
        }
        if result.plan.is_some() {
            tail.push(Span::styled("  dry run", theme.fg(theme.warning)));
        }
        let took = human_duration(std::time::Duration::from_millis(result.duration_ms));
        if result.duration_ms > 0 {
            tail.push(Span::styled(format!("  {took}"), theme.dim()));
        }
    }
    let room = look
        .columns
        .saturating_sub(INDENT + width(&cell.call().name) + 1 + tail.iter().map(|s| width(&s.content)).sum::<usize>());
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(cell.call().name.clone(), theme.fg(theme.tool)),
        Span::raw(" "),
        Span::styled(fit(&visible(&target(cell)), room), theme.fg(theme.text)),
    ];
    spans.extend(tail);
    Line::from(spans)
}

/// The argument that says most.
fn target(cell: &ToolCell) -> String {
    let text = |key: &str| cell.call().args[key].as_str().map(|t| t.replace('\n', " ⏎ "));
    match cell.call().name.as_str() {
        "bash" | "run" => text("command").unwrap_or_default(),
        "recall" => text("query").unwrap_or_default(),
        "skill_view" => text("name").unwrap_or_default(),
        "job_output" | "job_kill" => cell.call().args["job"].as_u64().map_or("all".into(), |job| job.to_string()),
        "ask_user" => {
            let questions = cell.call().args["questions"].as_array().into_iter().flatten();
            questions.filter_map(|it| it["question"].as_str()).collect::<Vec<_>>().join(" · ").replace('\n', " ⏎ ")
        }
        "grep" | "find" => {
            let place = text("path").map_or(String::new(), |path| format!(" in {path}"));
            format!("{}{place}", text("pattern").unwrap_or_default())
        }
        "ls" => text("path").unwrap_or_else(|| ".".into()),
        "update_plan" => {
            let items = cell.call().args["items"].as_array().map_or(0, Vec::len);
            format!("{items} steps")
        }
        _ => text("path").unwrap_or_default(),
    }
}

fn changed(diffs: &[FileDiff], look: &Look<'_>, open: bool) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for file in diffs {
        if diffs.len() > 1 {
            lines.push(marked("  ", &file.path, look.theme.dim(), look));
        }
        lines.extend(indent(diff::lines(&file.text, look.columns.saturating_sub(INDENT).min(140), look.theme)));
    }
    let more = lines.len().saturating_sub(DIFF_PREVIEW);
    if !open && more > 1 {
        lines.truncate(DIFF_PREVIEW);
        lines.push(marked("  ", &format!("… {more} more lines · Ctrl+O"), look.theme.dim(), look));
    }
    lines
}

fn output(cell: &ToolCell, result: &ToolResult, look: &Look<'_>, open: bool) -> Vec<Line<'static>> {
    // The footer is on the card already.
    let text = result.output.rsplit_once('\n').map_or("", |(text, _)| text);
    let quiet = is_short(cell) && result.ok;
    match (open, quiet) {
        (false, true) => Vec::new(),
        (true, _) => block(text, look, usize::MAX, End::First),
        (false, false) => block(text, look, PREVIEW, if result.ok { End::First } else { End::Last }),
    }
}

/// Which end of a long text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

fn block(text: &str, look: &Look<'_>, most: usize, end: End) -> Vec<Line<'static>> {
    let theme = look.theme;
    let text = plain(text.trim_end());
    if text.is_empty() {
        return Vec::new();
    }
    let all: Vec<&str> = text.lines().collect();
    let more = all.len().saturating_sub(most);
    // One line more costs no more than saying that there is one.
    let (shown, more) = if more <= 1 {
        (all.as_slice(), 0)
    } else if end == End::First {
        (&all[..most], more)
    } else {
        (&all[more..], more)
    };
    let bar = || Span::styled("  │ ", theme.fg(theme.border));
    let style = if text.starts_with("[error]") { theme.fg(theme.error) } else { theme.dim() };
    let note = || Line::from(vec![bar(), Span::styled(format!("… {more} more lines · Ctrl+O"), theme.dim())]);
    let mut lines = Vec::new();
    if more > 0 && end == End::Last {
        lines.push(note());
    }
    for line in shown {
        let body = line.trim_start_matches(' ');
        let kept = format!("{}{body}", "\u{a0}".repeat(line.len() - body.len()));
        lines.extend(wrap(&[Span::styled(kept, style)], look.columns, &[bar()], &[bar()]));
    }
    if more > 0 && end == End::First {
        lines.push(note());
    }
    lines
}
