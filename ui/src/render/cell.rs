//! One cell of the transcript as rows.

use pixir_core::changes::FileDiff;
use pixir_core::error::ErrorBody;
use pixir_core::event::{
    ChangeKind, Colouring, Delivery, Entry, Fact, FilesRestored, PlanItem, Printed, RestoreReason, Severity,
    StepStatus, ToolResult, TurnStatus, UserMessage,
};
use pixir_core::present::{human_duration, human_size};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::diff;
use super::markdown::{self, Look};
use super::sgr;
use super::split::Part;
use super::text::{Row, fit, plain, span_width, visible, width, wrap};
use super::thinking;
use crate::transcript::{Cell, Fold, Guess, Tool};

/// Lines of a result that a card shows before it is opened.
const PREVIEW: usize = 6;
/// And of what the person ran, who wants to see it.
const PERSONS_PREVIEW: usize = 30;
/// Lines that an open card shows of a call that runs.
const LIVE: usize = 200;
/// Rows that one line takes before its card is opened.
const LINE: usize = 3;
/// Lines of a diff that a card shows before it is opened.
const DIFF_PREVIEW: usize = 24;
/// Columns that text stands in, behind the marks.
const INDENT: usize = 2;

/// What a cell leans on besides itself.
pub(crate) struct Context<'a> {
    /// The answer that is being written.
    pub(crate) draft: &'a str,
    /// Output of a call that runs.
    pub(crate) live: &'a Printed,
    /// What a call changed, once that was loaded.
    pub(crate) diffs: Option<&'a [FileDiff]>,
    /// How much of it is shown, where that is not as for all.
    pub(crate) fold: Option<Fold>,
}

/// Whether two cells belong so closely together that nothing parts them.
pub(crate) fn joins(above: &Cell, below: &Cell) -> bool {
    match (above, below) {
        (Cell::Tool(a), Cell::Tool(b)) => is_short(a) && is_short(b),
        (_, Cell::Part(entry, part)) => {
            part.range.start > 0 && (part.goes_on || matches!(entry.fact, Fact::UserMessage(_)))
        }
        (_, Cell::Drafted(part)) => part.goes_on,
        (
            _,
            Cell::Recorded(_)
            | Cell::Thoughts(_)
            | Cell::Tail
            | Cell::Thinking(_)
            | Cell::Tool(_)
            | Cell::Error(_)
            | Cell::Notice(..)
            | Cell::Gone,
        ) => false,
    }
}

fn is_short(cell: &Tool) -> bool {
    matches!(cell.call().name.as_str(), "read" | "ls" | "find" | "grep" | "update_plan")
}

/// How high a cell will be, without laying it out.
pub(crate) fn estimate(cell: &Cell) -> Guess {
    let text = |length: usize, rows| Guess { columns: u32::try_from(length).unwrap_or(u32::MAX), rows };
    match cell {
        Cell::Recorded(entry) => match &entry.fact {
            Fact::UserMessage(it) => text(it.text.len(), 1),
            Fact::AssistantMessage(it) => text(it.text.len() + it.text.len() / 4, 2),
            Fact::Reasoning(_) => text(0, 2),
            Fact::PlanUpdated(it) => text(0, 2 + u16::try_from(it.items.len()).unwrap_or(u16::MAX - 2)),
            _ => text(0, 2),
        },
        Cell::Part(_, part) | Cell::Drafted(part) => text(part.range.len() + part.range.len() / 4, 1),
        Cell::Thinking(_) | Cell::Thoughts(_) | Cell::Tail => text(0, 2),
        Cell::Tool(tool) if is_short(tool) => text(0, 1),
        Cell::Tool(_) => text(0, 5),
        Cell::Error(_) | Cell::Notice(..) => text(0, 2),
        Cell::Gone => text(0, 0),
    }
}

/// The rows of a cell.
pub(crate) fn rows(cell: &Cell, context: &Context<'_>, look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    // Of a message that is folded its first row stands for all of it.
    if let (Some(Fold::Line), Some((text, is_begin))) = (context.fold, cell.message()) {
        let mut rows = if is_begin { rows(cell, &Context { fold: None, ..*context }, look) } else { Vec::new() };
        let first = rows.iter().position(|row| !row.line.spans.is_empty()).map_or(0, |at| at + 1);
        let more = text.trim().lines().count().saturating_sub(1);
        if rows.len() > first || more > 0 && is_begin {
            rows.truncate(first);
            let lines = if more == 1 { "line" } else { "lines" };
            let told = format!("  … {more} more {lines}");
            rows.push(Row::mark(Line::styled(told, theme.dim())));
        }
        return rows;
    }
    match cell {
        Cell::Recorded(entry) => recorded(entry, context, look),
        Cell::Part(entry, part) => match &entry.fact {
            Fact::AssistantMessage(it) => {
                let mut rows = message_part(&it.text, part, look);
                if it.partial && part.range.end == it.text.len() {
                    rows.push(broke_off(look));
                }
                rows
            }
            Fact::UserMessage(it) => said(it, part.range.clone(), look),
            _ => Vec::new(),
        },
        Cell::Drafted(part) => message_part(context.draft, part, look),
        // It is laid out where its text is.
        Cell::Tail => Vec::new(),
        Cell::Thoughts(all) => {
            let texts = all.iter().filter_map(|entry| match &entry.fact {
                Fact::Reasoning(it) => Some(it.text.trim()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n\n");
            thinking::whole(&text, context.fold.unwrap_or(look.thinking), look)
        }
        Cell::Thinking(it) => {
            let show = if it.is_live { thinking::live } else { thinking::whole };
            show(&it.text, context.fold.unwrap_or(look.thinking), look)
        }
        Cell::Tool(cell) => tool(cell, context, look),
        Cell::Error(it) => {
            let style = theme.fg(theme.error);
            let mut rows = wrap(
                &[Span::styled(visible(&it.message), style)],
                look.columns,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            rows.extend(fix(Some(it), look));
            rows
        }
        Cell::Notice(severity, text) => notice(*severity, text, look),
        Cell::Gone => Vec::new(),
    }
}

/// A part of an answer.
pub(crate) fn message_part(text: &str, part: &Part, look: &Look<'_>) -> Vec<Row> {
    if let Some(head) = &part.table {
        let table = format!("{}{}", &text[head.clone()], &text[part.range.clone()]);
        return indent(markdown::rows(&table, &look.inset(INDENT)));
    }
    let before = part.fence.map_or("", |at| &text[at..part.range.start]);
    indent(markdown::inside(&text[part.range.clone()], &look.inset(INDENT), before))
}

fn broke_off(look: &Look<'_>) -> Row {
    marked("  ", "⋯ it broke off here", look.theme.fg(look.theme.warning), look)
}

/// What a person said, or a part of it; the images that go with it stand behind the last.
fn said(it: &UserMessage, part: std::ops::Range<usize>, look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    let (mark, style) = match it.delivery {
        Delivery::Prompt | Delivery::FollowUp => ("❯ ", theme.fg(theme.user).add_modifier(Modifier::BOLD)),
        Delivery::Steer => ("» ", theme.fg(theme.user)),
    };
    let mark = if part.start == 0 { Span::styled(mark, style) } else { Span::raw("  ") };
    let text = &it.text[part.clone()];
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut rows = wrap(&[Span::styled(plain(text), style)], look.columns, &[mark], &[Span::raw("  ")]);
    if part.end == it.text.len() {
        rows.extend(it.attachments.iter().map(|image| {
            let told = format!("{} · {}", visible(&image.path), human_size(image.bytes));
            marked("  ▣ ", &told, theme.dim(), look)
        }));
    }
    rows
}

/// An entry of the Log as rows.
fn recorded(entry: &Entry, context: &Context<'_>, look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    // What was summed up is worth reading only to some.
    let in_full = context.fold.unwrap_or(look.details) == Fold::Full;
    match &entry.fact {
        Fact::UserMessage(it) => said(it, 0..it.text.len(), look),
        Fact::AssistantMessage(it) => {
            let mut rows = indent(markdown::rows(&it.text, &look.inset(INDENT)));
            if it.partial {
                rows.push(broke_off(look));
            }
            rows
        }
        Fact::Reasoning(it) => thinking::whole(&it.text, context.fold.unwrap_or(look.thinking), look),
        Fact::PlanUpdated(it) => plan(&it.items, look),
        Fact::SkillActivation(it) => {
            vec![marked("◆ ", &format!("skill {} is active", it.name), theme.fg(theme.tool), look)]
        }
        Fact::HistoryCompaction(it) => {
            let head = format!(
                "compacted: {} → {} tokens, {} entries replaced by a summary",
                it.tokens_before, it.tokens_after, it.entries_dropped
            );
            let mut rows = vec![marked("◆ ", &head, theme.fg(theme.warning), look)];
            if in_full {
                rows.extend(indent(markdown::rows(&it.summary, &look.inset(INDENT))));
            }
            rows
        }
        Fact::BranchSummary(it) => {
            let how = if it.strategy == "model" { "by the model" } else { "from the log" };
            let head = format!("the branch that was left is summed up here, {how}");
            let mut rows = vec![marked("◆ ", &head, theme.fg(theme.tool), look)];
            if in_full {
                rows.extend(indent(markdown::rows(&it.summary, &look.inset(INDENT))));
            }
            rows
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
            let mut rows = wrap(
                &[Span::styled(visible(&text), style)],
                look.columns,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            if it.status != TurnStatus::Interrupted {
                rows.extend(fix(it.error.as_ref(), look));
            }
            rows
        }
        Fact::LogRepaired(it) => {
            let text =
                format!("a damaged line of the session log stood here ({}); {} keeps it", it.reason, it.quarantine);
            notice(Severity::Warning, &text, look)
        }
        _ => Vec::new(),
    }
}

fn notice(severity: Severity, text: &str, look: &Look<'_>) -> Vec<Row> {
    let style = match severity {
        Severity::Info => look.theme.dim(),
        Severity::Warning => look.theme.fg(look.theme.warning),
    };
    wrap(&[Span::styled(visible(text), style)], look.columns, &[Span::styled("· ", style)], &[Span::raw("  ")])
}

fn restored(it: &FilesRestored, look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    let what = match (it.reason, it.of_turn) {
        (RestoreReason::Undo, Some(turn)) => format!("undid turn {turn}"),
        (RestoreReason::Redo, Some(turn)) => format!("redid turn {turn}"),
        (RestoreReason::Stayed, _) => "these files stayed as they are".to_owned(),
        _ => "set files back".to_owned(),
    };
    let mut rows = vec![marked("↺ ", &what, theme.fg(theme.warning), look)];
    for change in &it.changes {
        let (mark, style) = match change.kind {
            ChangeKind::Created => ("  + ", theme.fg(theme.added)),
            ChangeKind::Deleted => ("  − ", theme.fg(theme.removed)),
            ChangeKind::Modified => ("  ~ ", theme.fg(theme.text)),
        };
        let text = format!("{}  +{} −{}", plain(&change.path), change.added, change.removed);
        rows.push(marked(mark, &text, style, look));
    }
    for left in &it.left {
        rows.push(marked("  · ", &format!("{} stays: {}", plain(&left.path), plain(&left.why)), theme.dim(), look));
    }
    rows
}

fn indent(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        row.indent(INDENT);
    }
    rows
}

/// One line behind a mark, cut where it ends.
fn marked(mark: &'static str, text: &str, style: Style, look: &Look<'_>) -> Row {
    let line = Line::from(vec![
        Span::styled(mark, style),
        Span::styled(fit(text, look.columns.saturating_sub(width(mark))), style),
    ]);
    Row { gutter: width(mark), ..Row::text(line) }
}

fn fix(error: Option<&ErrorBody>, look: &Look<'_>) -> Vec<Row> {
    let text = error.map_or_else(String::new, |error| look.more.remedies.of(error));
    if text.is_empty() {
        return Vec::new();
    }
    wrap(
        &[Span::styled(visible(&text), look.theme.fg(look.theme.text))],
        look.columns,
        &[Span::styled("  fix: ", look.theme.dim())],
        &[Span::raw("       ")],
    )
}

fn plan(items: &[PlanItem], look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    let done = items.iter().filter(|i| i.status == StepStatus::Completed).count();
    let mut rows = vec![marked("▤ ", &format!("Plan · {done} of {}", items.len()), theme.fg(theme.accent), look)];
    rows.extend(items.iter().flat_map(|item| plan_item(item, look)));
    rows
}

/// One step of a plan.
pub(crate) fn plan_item(item: &PlanItem, look: &Look<'_>) -> Vec<Row> {
    let theme = look.theme;
    let (mark, style) = match item.status {
        StepStatus::Completed => ("✓ ", theme.dim().add_modifier(Modifier::CROSSED_OUT)),
        StepStatus::InProgress => ("▸ ", theme.bold()),
        StepStatus::Pending => ("· ", theme.fg(theme.text)),
    };
    let mark_style = if item.status == StepStatus::Completed { theme.fg(theme.success) } else { theme.dim() };
    let mark = Span::styled(format!("  {mark}"), mark_style);
    wrap(&[Span::styled(plain(&item.step), style)], look.columns, &[mark], &[Span::raw("    ")])
}

fn tool(cell: &Tool, context: &Context<'_>, look: &Look<'_>) -> Vec<Row> {
    let (card, is_whole) = card(cell, look);
    let mut rows = vec![card];
    let fold = context.fold.unwrap_or(look.details);
    if fold == Fold::Line || (cell.call().name == "update_plan" && fold == Fold::Some) {
        return rows;
    }
    if fold == Fold::Full {
        rows.extend(arguments(cell, is_whole, look));
    }
    match (cell.result(), context.diffs) {
        (None, _) => {
            // It is laid out again whenever more of it comes.
            let most = if fold == Fold::Full { LIVE } else { PREVIEW };
            rows.extend(block(&context.live.text, &context.live.colours, look, most, Side::Last, 0));
        }
        (Some(result), Some(diffs)) if result.error.is_none() && !diffs.is_empty() => {
            // What a command printed is no part of what it changed.
            if cell.is_command() {
                rows.extend(output(cell, result, look, fold));
            }
            rows.extend(changed(diffs, look, fold));
        }
        (Some(result), _) => rows.extend(output(cell, result, look, fold)),
    }
    rows
}

fn most(fold: Fold, preview: usize) -> usize {
    if fold == Fold::Full { usize::MAX } else { preview }
}

/// `✓ edit stats.sh  +1 −1  3ms`, and whether that says all of what it is about.
fn card(cell: &Tool, look: &Look<'_>) -> (Row, bool) {
    let theme = look.theme;
    let (mark, style) = match cell.result() {
        _ if cell.refused => ("⊘ ", theme.fg(theme.warning)),
        None => ("● ", theme.fg(theme.accent)),
        Some(result) if result.ok => ("✓ ", theme.fg(theme.success)),
        Some(_) => ("✗ ", theme.fg(theme.error)),
    };
    let mut tail: Vec<Span<'static>> = Vec::new();
    if let Some(answer) = cell.answer {
        tail.push(Span::styled(format!("  {answer}"), theme.dim()));
    }
    if let Some(result) = cell.result() {
        let (added, removed) = result.changes.iter().fold((0, 0), |(a, r), c| (a + c.added, r + c.removed));
        if added + removed > 0 {
            tail.push(Span::styled(format!("  +{added}"), theme.fg(theme.added)));
            tail.push(Span::styled(format!(" −{removed}"), theme.fg(theme.removed)));
        }
        if cell.is_command() && result.exit_code.is_some_and(|code| code != 0) {
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
    let name = &cell.call().name;
    let target = visible(&target(cell));
    let room = look.columns.saturating_sub(INDENT + width(name) + 1 + span_width(&tail));
    let mut spans = vec![
        Span::styled(mark, style),
        Span::styled(name.clone(), theme.fg(if cell.is_by_person() { theme.user } else { theme.tool })),
        Span::raw(" "),
        Span::styled(fit(&target, room), theme.fg(theme.text)),
    ];
    spans.extend(tail);
    (Row { gutter: width(mark), ..Row::text(Line::from(spans)) }, width(&target) <= room)
}

/// The argument that says most, on one line.
pub(crate) fn target(cell: &Tool) -> String {
    let text = |key: &str| cell.call().args[key].as_str().map(|t| t.replace('\n', " ⏎ "));
    match cell.call().name.as_str() {
        "bash" | "run" | "!" | "!!" => text("command").unwrap_or_default(),
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

/// What the card's one line could not say of the arguments; what a diff shows is left to it.
fn arguments(cell: &Tool, is_whole: bool, look: &Look<'_>) -> Vec<Row> {
    let Some(args) = cell.call().args.as_object() else { return Vec::new() };
    // What was not done is in no diff.
    let came_to_nothing = cell.refused || cell.result().is_some_and(|result| result.error.is_some());
    let shown = args.iter().filter(|(key, value)| match key.as_str() {
        "old_text" | "new_text" | "content" | "edits" => came_to_nothing,
        "command" => !is_whole || value.as_str().is_some_and(|text| text.contains('\n')),
        "path" | "pattern" | "query" | "name" | "job" | "questions" => !is_whole,
        // The plan is an entry of its own.
        "items" => false,
        _ => true,
    });
    let mut rows = Vec::new();
    shown.for_each(|(key, value)| argument(key, value, look, &mut rows));
    rows
}

/// One argument, or what it is made of.
fn argument(key: &str, value: &Value, look: &Look<'_>, rows: &mut Vec<Row>) {
    let label = Span::styled(format!("  {key}: "), look.theme.dim());
    let text = match value {
        Value::Array(items) => return items.iter().for_each(|item| argument(key, item, look, rows)),
        Value::Object(members) => return members.iter().for_each(|(key, value)| argument(key, value, look, rows)),
        Value::String(text) if text.contains('\n') => {
            rows.push(Row::text(Line::from(label)));
            return rows.extend(block(text, &[], look, usize::MAX, Side::First, 0));
        }
        Value::String(text) => visible(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let text = [Span::styled(text, look.theme.fg(look.theme.code))];
    rows.extend(wrap(&text, look.columns, &[label], &[Span::raw("    ")]));
}

fn changed(diffs: &[FileDiff], look: &Look<'_>, fold: Fold) -> Vec<Row> {
    let mut rows = Vec::new();
    let most = most(fold, DIFF_PREVIEW);
    let mut more = 0;
    for file in diffs {
        if diffs.len() > 1 {
            rows.push(marked("  ", &file.path, look.theme.dim(), look));
        }
        let room = most.saturating_sub(rows.len());
        let (lines, left) =
            diff::first_rows(&file.text, look.columns.saturating_sub(INDENT).min(140), look.theme, room);
        rows.extend(indent(lines));
        more += left;
    }
    if more > 0 {
        rows.push(marked("  ", &format!("… {more} more lines{}", look.more.details), look.theme.dim(), look));
    }
    rows
}

fn output(cell: &Tool, result: &ToolResult, look: &Look<'_>, fold: Fold) -> Vec<Row> {
    // The footer is on the card already.
    let text = result.output.rsplit_once('\n').map_or("", |(text, _)| text);
    if fold == Fold::Full {
        return block(text, &result.colours, look, usize::MAX, Side::First, 0);
    }
    if fold == Fold::Line || (is_short(cell) && result.ok) {
        return Vec::new();
    }
    // How the rest can be had is said to the model; of a success that was cut there is no end.
    let omitted = result.truncated.map_or(0, |cut| usize::try_from(cut.lines_omitted).unwrap_or(usize::MAX));
    let text =
        if omitted > 0 { text.rsplit_once("\n--- output truncated (").map_or(text, |(said, _)| said) } else { text };
    // What a command says last is what came of it.
    let is_last = !result.ok || (omitted == 0 && (cell.is_by_person() || cell.call().name == "bash"));
    let most = if cell.is_by_person() { PERSONS_PREVIEW } else { PREVIEW };
    block(text, &result.colours, look, most, if is_last { Side::Last } else { Side::First }, omitted.saturating_sub(1))
}

/// Which end of a long text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Last,
}

/// Lines behind a bar; those beyond `most`, and those that the text leaves out, are counted.
fn block(text: &str, colours: &[Colouring], look: &Look<'_>, most: usize, side: Side, left_out: usize) -> Vec<Row> {
    let theme = look.theme;
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let count = text.lines().count();
    let more = count.saturating_sub(most);
    // One line more costs no more than saying that there is one.
    let more = if more <= 1 { 0 } else { more };
    let (skipped, shown) = match side {
        Side::First => (0, count - more),
        Side::Last => (more, count - more),
    };
    let bar = || Span::styled("  │ ", theme.fg(theme.border));
    let style = if text.starts_with("[error]") { theme.fg(theme.error) } else { theme.dim() };
    // A line that is broken into many rows is no more worth than many lines.
    let room = most.saturating_mul(2);
    let longest = room.saturating_mul(look.columns).saturating_mul(4);
    let begin = text.as_ptr().addr();
    let all_rows_of = |line: &str| {
        let line = match side {
            Side::First => &line[..line.floor_char_boundary(longest)],
            Side::Last => &line[line.ceil_char_boundary(line.len().saturating_sub(longest))..],
        };
        if !colours.is_empty() && plain(line) == line {
            let start = line.as_ptr().addr() - begin;
            let mut spans = sgr::spans(line, start, colours, style, theme);
            // Blanks in front do not break.
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let mut left = blanks;
            for span in &mut spans {
                let here = (span.content.len() - span.content.trim_start_matches(' ').len()).min(left);
                span.content = format!("{}{}", "\u{a0}".repeat(here), &span.content[here..]).into();
                left -= here;
            }
            return wrap(&spans, look.columns, &[bar()], &[bar()]);
        }
        let line = plain(line);
        let body = line.trim_start_matches(' ');
        let kept = format!("{}{body}", "\u{a0}".repeat(line.len() - body.len()));
        wrap(&[Span::styled(kept, style)], look.columns, &[bar()], &[bar()])
    };
    // One line that is very long leaves room for the others.
    let rows_of = |line: &str| {
        let mut rows = all_rows_of(line);
        if most < usize::MAX && rows.len() > LINE {
            let told = format!("… more of this line{}", look.more.details);
            let cut = Row::mark(Line::from(vec![bar(), Span::styled(told, theme.dim())]));
            match side {
                Side::First => drop(rows.splice(LINE - 1.., [cut])),
                Side::Last => drop(rows.splice(..=rows.len() - LINE, [cut])),
            }
        }
        rows
    };
    let lines: Vec<&str> = text.lines().skip(skipped).take(shown).collect();
    let mut rows: Vec<Row> = Vec::new();
    let mut whole = 0;
    match side {
        Side::First => {
            for line in &lines {
                rows.extend(rows_of(line));
                if rows.len() > room {
                    rows.truncate(room);
                    break;
                }
                whole += 1;
            }
        }
        Side::Last => {
            let mut laid = Vec::new();
            let mut high = 0;
            for line in lines.iter().rev() {
                laid.push(rows_of(line));
                high += laid.last().map_or(0, Vec::len);
                if high > room {
                    break;
                }
                whole += 1;
            }
            rows.extend(laid.into_iter().rev().flatten().skip(high.saturating_sub(room)));
        }
    }
    let more = if count > whole { count - whole + left_out } else { 0 };
    if more > 0 {
        let lines = if more == 1 { "line" } else { "lines" };
        let text = format!("… {more} more {lines}{}", look.more.details);
        let note = Row::mark(Line::from(vec![bar(), Span::styled(text, theme.dim())]));
        let at = if side == Side::First { rows.len() } else { 0 };
        rows.insert(at, note);
    }
    rows
}
