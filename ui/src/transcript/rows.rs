//! One cell as rows.

use pixir_core::agent::AgentState;
use pixir_core::call_info::CallKind;
use pixir_core::changes::FileDiff;
use pixir_core::error::ErrorBody;
use pixir_core::event::{ChangeKind, Colouring, FilesRestored, Printed, Severity, ToolResult, TurnStatus};
use pixir_core::{Entry, Fact};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::runs::ShownRun;
use super::{Cell, Guess, PlanAbove, Tool};
use crate::render::context::{Fold, Medium, RenderContext};
use crate::render::figures::{plus_minus, short};
use crate::render::split::Part;
use crate::render::text::{Row, fit, plain, visible, width, wrap};
use crate::render::{markdown, sgr, thinking};
use card::card;
pub(crate) use card::{has_failed, is_answer, target, verb};
use footer::Lines;
use plan::Extent;

mod agent; // calls that start agents, and their answers
mod changed; // diffs, or a list of many files
mod card; // one line about a call
mod footer; // the end of a Turn
mod looked; // a run of calls that only read
mod plan; // the plan of the model
mod prompt; // messages of the user
pub(crate) mod workflow; // runs of workflows

pub(crate) use plan::item_rows as plan_item;

/// Lines of a result in a card that is not open.
const PREVIEW: usize = 6;
/// Lines of the output of a user's command, which the user wants to see.
const USER_PREVIEW: usize = 30;
/// Lines of a running call in an open card.
const LIVE: usize = 200;
/// Rows of one long line in a card that is not open.
const LINE: usize = 3;
/// Lines of a diff in a card that is not open.
const DIFF_PREVIEW: usize = 24;
/// The columns left of the text, for the mark.
const INDENT: usize = 2;

/// The inputs of a cell's rows besides the cell itself.
pub(crate) struct CellData<'a> {
    /// The text of the streaming answer.
    pub(crate) draft: &'a str,
    /// The output of a call that runs.
    pub(crate) live: &'a Printed,
    /// The diffs of a call, once they are loaded.
    pub(crate) diffs: Option<&'a [FileDiff]>,
    /// The fold of this cell, if it differs from the rest.
    pub(crate) fold: Option<Fold>,
    /// The answer broke off, and the model was asked again.
    pub(crate) is_replaced: bool,
    /// The run of calls that begins with this cell.
    pub(crate) run: Option<&'a ShownRun>,
    /// The agent that the call started.
    pub(crate) agent: Option<&'a AgentState>,
    /// A plan with the same steps came before this one.
    pub(crate) plan_above: Option<PlanAbove>,
    /// The lines that the Turn has changed, for its end.
    pub(crate) lines: Lines,
}

/// No empty row separates these two cells.
pub(crate) fn joins(above: &Cell, below: &Cell) -> bool {
    match (above, below) {
        (Cell::Tool(a), Cell::Tool(_)) => is_short(a),
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
            | Cell::Workflow(_)
            | Cell::Error(_)
            | Cell::Notice(..)
            | Cell::Gone,
        ) => false,
    }
}

fn is_short(cell: &Tool) -> bool {
    matches!(cell.call().about().kind, CallKind::Read | CallKind::Search | CallKind::Plan)
}

/// Estimates the height of a cell without layout. A byte counts as a column, and Markdown as a quarter longer than its
/// text.
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
        Cell::Tool(_) | Cell::Workflow(_) => text(0, 5),
        Cell::Error(_) | Cell::Notice(..) => text(0, 2),
        Cell::Gone => text(0, 0),
    }
}

/// The rows of a cell.
pub(crate) fn rows(cell: &Cell, data: &CellData<'_>, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    // The first row of a folded message stands for all of it.
    if let (Some(Fold::Line), Some((text, is_begin))) = (data.fold, cell.message()) {
        let mut rows = if is_begin { rows(cell, &CellData { fold: None, ..*data }, context) } else { Vec::new() };
        let first = rows.iter().position(|row| !row.line.spans.is_empty()).map_or(0, |at| at + 1);
        let more = text.trim().lines().count().saturating_sub(1);
        if rows.len() > first || more > 0 && is_begin {
            rows.truncate(first);
            let lines = if more == 1 { "line" } else { "lines" };
            let note = format!("  … {more} more {lines}");
            rows.push(Row::mark(Line::styled(note, theme.dim())));
        }
        return rows;
    }
    match cell {
        Cell::Recorded(entry) => recorded(entry, data, context),
        Cell::Part(entry, part) => match &entry.fact {
            Fact::AssistantMessage(it) => {
                let rows = message_part(&it.text, part, context);
                if it.partial { broken(rows, part.range.end == it.text.len(), data, context) } else { rows }
            }
            Fact::UserMessage(it) => prompt::rows(it, part.range.clone(), context),
            _ => Vec::new(),
        },
        Cell::Drafted(part) => message_part(data.draft, part, context),
        // `Transcript::tail_rows` lays it out, because only the transcript has the draft's text.
        Cell::Tail => Vec::new(),
        Cell::Thoughts(all) => {
            let texts = all.iter().filter_map(|entry| match &entry.fact {
                Fact::Reasoning(it) => Some(it.text.trim()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n\n");
            thinking::whole(&text, data.fold.unwrap_or(context.thinking), context)
        }
        Cell::Thinking(it) => {
            let show = if it.is_live { thinking::live } else { thinking::whole };
            show(&it.text, data.fold.unwrap_or(context.thinking), context)
        }
        Cell::Tool(cell) => tool(cell, data, context),
        Cell::Workflow(card) => workflow::rows(card, context),
        Cell::Error(it) => {
            let style = theme.fg(theme.error);
            let mut rows = wrap(
                &[Span::styled(visible(&it.message), style)],
                context.measure,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            rows.extend(fix(Some(it), context));
            rows
        }
        Cell::Notice(severity, text) => notice(*severity, text, context),
        Cell::Gone => Vec::new(),
    }
}

/// A part of an answer.
pub(crate) fn message_part(text: &str, part: &Part, context: &RenderContext<'_>) -> Vec<Row> {
    if let Some(head) = &part.table {
        let table = format!("{}{}", &text[head.clone()], &text[part.range.clone()]);
        return indent(markdown::rows(&table, &context.inset(INDENT)));
    }
    let before = part.fence.map_or("", |at| &text[at..part.range.start]);
    indent(markdown::inside(&text[part.range.clone()], &context.inset(INDENT), before))
}

/// An answer that broke off, or a part of it: struck through if the model was asked again, and a note at its end.
fn broken(mut rows: Vec<Row>, is_end: bool, data: &CellData<'_>, context: &RenderContext<'_>) -> Vec<Row> {
    if data.is_replaced {
        rows.iter_mut().for_each(|row| strike(row, context));
    }
    if is_end {
        let note = if data.is_replaced {
            "⋯ cut off here; the model was asked again"
        } else {
            "⋯ the answer was cut off here"
        };
        rows.push(marked("  ", note, context.theme.fg(context.theme.warning), context));
    }
    rows
}

/// Strikes the words of a row through. Blanks around them, such as the ground of a code block, stay as they are.
fn strike(row: &mut Row, context: &RenderContext<'_>) {
    let dim = context.theme.dim().add_modifier(Modifier::CROSSED_OUT);
    let mut at = 0;
    for span in &mut row.line.spans {
        let is_gutter = at < row.gutter.saturating_sub(row.lead);
        at += width(&span.content);
        if !is_gutter && !span.content.trim().is_empty() {
            span.style = span.style.patch(dim);
        }
    }
}

/// An entry of the Log as rows.
fn recorded(entry: &Entry, data: &CellData<'_>, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    // A summary shows its text only when it is open.
    let in_full = data.fold.unwrap_or(context.details) == Fold::Full;
    match &entry.fact {
        Fact::UserMessage(it) => prompt::rows(it, 0..it.text.len(), context),
        Fact::AssistantMessage(it) => {
            let rows = indent(markdown::rows(&it.text, &context.inset(INDENT)));
            if it.partial { broken(rows, true, data, context) } else { rows }
        }
        Fact::Reasoning(it) => thinking::whole(&it.text, data.fold.unwrap_or(context.thinking), context),
        Fact::PlanUpdated(it) => {
            let is_printed = matches!(context.medium, Medium::History | Medium::Reader);
            let extent = match data.plan_above {
                Some(PlanAbove::Stands) if !in_full => Extent::Progress,
                Some(PlanAbove::Gone) if !in_full && is_printed => Extent::Progress,
                Some(_) | None => Extent::Whole,
            };
            plan::rows(&it.items, extent, context)
        }
        Fact::HistoryCompaction(it) => {
            let author = it.model.as_deref().map_or_else(|| "from the log".to_owned(), |model| format!("by {model}"));
            let edited = if it.edited { ", edited by you" } else { "" };
            let (before, after) = (short(it.tokens_before), short(it.tokens_after));
            let count = it.entries_dropped;
            let head = format!(
                "Compacted {before} → {after} tokens · {count} entries in a summary {author}{edited} · Enter opens it"
            );
            let mut rows = vec![marked("▣ ", &head, theme.fg(theme.warning), context)];
            if in_full {
                let notes = it.limitations.iter().map(|text| format!("{text}. ")).collect::<String>();
                if !notes.is_empty() {
                    rows.extend(indent(markdown::rows(notes.trim_end(), &context.inset(INDENT))));
                }
                rows.extend(indent(markdown::rows(&it.summary, &context.inset(INDENT))));
            }
            rows
        }
        Fact::BranchSummary(it) => {
            let mut rows = headline(&entry.fact, context);
            if in_full {
                rows.extend(indent(markdown::rows(&it.summary, &context.inset(INDENT))));
            }
            rows
        }
        Fact::FilesRestored(it) => restored(&entry.fact, it, context),
        Fact::TurnEnded(it) if it.status == TurnStatus::Completed => footer::footer(it, data.lines, context),
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
                context.measure,
                &[Span::styled("■ ", style)],
                &[Span::raw("  ")],
            );
            if it.status != TurnStatus::Interrupted {
                rows.extend(fix(it.error.as_deref(), context));
            }
            rows.extend(footer::footer(it, data.lines, context));
            rows
        }
        Fact::LogRepaired(_) => {
            let text = entry.fact.headline().map_or_else(String::new, |it| it.to_string());
            notice(Severity::Warning, &text, context)
        }
        Fact::AgentEvent(it) => agent::rows(it, data, context),
        // The card of the run has a cell of its own.
        Fact::WorkflowEvent(_) => Vec::new(),
        fact => headline(fact, context),
    }
}

/// The row of a Fact that is not drawn in another way.
fn headline(fact: &Fact, context: &RenderContext<'_>) -> Vec<Row> {
    let style = context.theme.fg(context.theme.tool);
    fact.headline().iter().map(|it| marked("◆ ", &plain(&it.to_string()), style, context)).collect()
}

fn notice(severity: Severity, text: &str, context: &RenderContext<'_>) -> Vec<Row> {
    let style = match severity {
        Severity::Info => context.theme.dim(),
        Severity::Warning => context.theme.fg(context.theme.warning),
    };
    wrap(&[Span::styled(visible(text), style)], context.measure, &[Span::styled("· ", style)], &[Span::raw("  ")])
}

fn restored(fact: &Fact, it: &FilesRestored, context: &RenderContext<'_>) -> Vec<Row> {
    let theme = context.theme;
    let title = fact.headline().map_or_else(String::new, |it| it.title);
    let mut rows = vec![marked("↺ ", &title, theme.fg(theme.warning), context)];
    for change in &it.changes {
        let (mark, style) = match change.kind {
            ChangeKind::Created => ("  + ", theme.fg(theme.added)),
            ChangeKind::Deleted => ("  − ", theme.fg(theme.removed)),
            ChangeKind::Modified => ("  ~ ", theme.fg(theme.text)),
        };
        let text = format!("{}  {}", plain(&change.path), plus_minus(change.added, change.removed));
        rows.push(marked(mark, &text, style, context));
    }
    for left in &it.left {
        rows.push(marked("  · ", &format!("{} stays: {}", plain(&left.path), plain(&left.why)), theme.dim(), context));
    }
    rows
}

fn indent(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        row.indent(INDENT);
    }
    rows
}

/// A mark and one line of text, cut at the right edge.
fn marked(mark: &'static str, text: &str, style: Style, context: &RenderContext<'_>) -> Row {
    let line = Line::from(vec![
        Span::styled(mark, style),
        Span::styled(fit(text, context.columns.saturating_sub(width(mark))), style),
    ]);
    Row { gutter: width(mark), ..Row::text(line) }
}

fn fix(error: Option<&ErrorBody>, context: &RenderContext<'_>) -> Vec<Row> {
    let text = error.map_or_else(String::new, |error| context.more.remedies.of(error));
    if text.is_empty() {
        return Vec::new();
    }
    wrap(
        &[Span::styled(visible(&text), context.theme.fg(context.theme.text))],
        context.measure,
        &[Span::styled("  fix: ", context.theme.dim())],
        &[Span::raw("       ")],
    )
}

fn tool(cell: &Tool, data: &CellData<'_>, context: &RenderContext<'_>) -> Vec<Row> {
    let fold = data.fold.unwrap_or(context.details);
    let mut rows: Vec<Row> = data.run.map(|run| looked::line(run, context)).into_iter().collect();
    let is_plan = cell.call().about().kind == CallKind::Plan;
    // The plan stands in a cell of its own.
    let is_needless = cell.is_plan_without_fault() && fold != Fold::Full;
    if data.run.is_some_and(|run| !run.is_open) || is_needless {
        return rows;
    }
    if let Some(agent) = agent::card(cell, data, fold, context) {
        rows.extend(agent);
        return rows;
    }
    let (card, is_whole) = card(cell, context);
    rows.push(card);
    if fold == Fold::Line || (is_plan && fold == Fold::Some) {
        return rows;
    }
    if fold == Fold::Full {
        rows.extend(arguments(cell, is_whole, context));
    }
    // The result of a refused call is written for the model.
    if let Some(refusal) = cell.refusal().filter(|_| fold != Fold::Full) {
        let text = [Span::styled(visible(refusal), context.theme.fg(context.theme.warning))];
        rows.extend(wrap(&text, context.measure, &[Span::raw("  ")], &[Span::raw("  ")]));
        return rows;
    }
    match (cell.result(), data.diffs) {
        (None, _) => {
            // Limited even in an open card, because the rows are laid out again with each piece of output.
            let most = if fold == Fold::Full { LIVE } else { PREVIEW };
            rows.extend(block(&data.live.text, &data.live.colours, context, most, Side::Last, 0));
        }
        (Some(result), _) if result.error.is_none() && changed::are_many(cell, &result.changes, fold) => {
            // That it printed nothing is no news beside what it has changed.
            if !result.output.starts_with("no output\n") {
                rows.extend(output(cell, result, context, fold));
            }
            rows.extend(changed::list(&result.changes, context));
        }
        (Some(result), Some(diffs)) if result.error.is_none() && !diffs.is_empty() => {
            // The output of a command is worth showing besides the diff.
            if cell.is_command() {
                rows.extend(output(cell, result, context, fold));
            }
            rows.extend(changed::diffs(diffs, context, fold));
        }
        (Some(result), _) => rows.extend(output(cell, result, context, fold)),
    }
    rows
}

fn most(fold: Fold, preview: usize) -> usize {
    if fold == Fold::Full { usize::MAX } else { preview }
}

/// The arguments that neither the card's line nor a diff shows.
fn arguments(cell: &Tool, is_whole: bool, context: &RenderContext<'_>) -> Vec<Row> {
    let Value::Object(args) = cell.call().args.value() else { return Vec::new() };
    let about = cell.call().about();
    // A call that did not succeed has no diff.
    let came_to_nothing = cell.refused || cell.result().is_some_and(|result| result.error.is_some());
    let target_is_shown = is_whole && !about.target.contains('\n');
    let shown = args.iter().filter(|(key, value)| {
        let in_target = value.as_str().is_some_and(|text| about.target.contains(text));
        match (about.details.contains(key), in_target) {
            (true, _) => true,
            (false, true) => !target_is_shown,
            // The plan has a cell of its own.
            (false, false) => came_to_nothing && about.kind != CallKind::Plan,
        }
    });
    let mut rows = Vec::new();
    shown.for_each(|(key, value)| argument(key, value, context, &mut rows));
    rows
}

/// One argument, or an item of it.
fn argument(key: &str, value: &Value, context: &RenderContext<'_>, rows: &mut Vec<Row>) {
    let label = Span::styled(format!("  {key}: "), context.theme.dim());
    let text = match value {
        Value::Array(items) => return items.iter().for_each(|item| argument(key, item, context, rows)),
        Value::Object(members) => return members.iter().for_each(|(key, value)| argument(key, value, context, rows)),
        Value::String(text) if text.contains('\n') => {
            rows.push(Row::text(Line::from(label)));
            return rows.extend(block(text, &[], context, usize::MAX, Side::First, 0));
        }
        Value::String(text) => visible(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    let text = [Span::styled(text, context.theme.fg(context.theme.code))];
    rows.extend(wrap(&text, context.columns, &[label], &[Span::raw("    ")]));
}

fn output(cell: &Tool, result: &ToolResult, context: &RenderContext<'_>, fold: Fold) -> Vec<Row> {
    // The last line is the footer, and the card already shows its facts.
    let text = result.output.rsplit_once('\n').map_or("", |(text, _)| text);
    if fold == Fold::Full {
        return block(text, &result.colours, context, usize::MAX, Side::First, 0);
    }
    if fold == Fold::Line || (is_short(cell) && (result.ok || is_answer(&cell.call().about(), result))) {
        return Vec::new();
    }
    // Hints about a saved output are for the model. A cut success has no end to show.
    let omitted = result.truncated.map_or(0, |cut| usize::try_from(cut.lines_omitted).unwrap_or(usize::MAX));
    let text =
        if omitted > 0 { text.rsplit_once("\n--- output truncated (").map_or(text, |(said, _)| said) } else { text };
    // The card itself names the only question.
    let question = card::target(cell);
    let is_named = cell.call().about().kind == CallKind::Ask;
    let text = text.strip_prefix(&question).filter(|_| is_named).map_or(text, |rest| rest.trim_start_matches('\n'));
    // An error alone is said without its form and its advice, which are for the model.
    let is_alone = text.starts_with("[error] ") && text.trim_end().lines().count() == 1;
    if let Some(error) = result.error.as_ref().filter(|_| is_alone) {
        let bar = [Span::styled("  │ ", context.theme.fg(context.theme.border))];
        let said = Span::styled(plain(&error.message).into_owned(), context.theme.fg(context.theme.error));
        return wrap(&[said], context.columns, &bar, &bar);
    }
    // The outcome of a command is in its last lines.
    let is_last = !result.ok || (omitted == 0 && cell.is_command());
    let most = if cell.is_by_user() { USER_PREVIEW } else { PREVIEW };
    block(
        text,
        &result.colours,
        context,
        most,
        if is_last { Side::Last } else { Side::First },
        omitted.saturating_sub(1),
    )
}

/// Which end of a long text is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Last,
}

/// Lines after a bar. A note counts the lines beyond `most`, and those that the text itself leaves out.
fn block(
    text: &str,
    colours: &[Colouring],
    context: &RenderContext<'_>,
    most: usize,
    side: Side,
    left_out: usize,
) -> Vec<Row> {
    let theme = context.theme;
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let count = text.lines().count();
    let more = count.saturating_sub(most);
    // Showing one more line takes no more room than the note.
    let more = if more <= 1 { 0 } else { more };
    let (skipped, shown) = match side {
        Side::First => (0, count - more),
        Side::Last => (more, count - more),
    };
    let bar = || Span::styled("  │ ", theme.fg(theme.border));
    let style = if text.starts_with("[error]") { theme.fg(theme.error) } else { theme.dim() };
    // A line that wraps into many rows gets no more room than many lines. Of a very long line, only as many bytes are
    // laid out as can fill that room, at four bytes a character.
    let room = most.saturating_mul(2);
    let longest = room.saturating_mul(context.columns).saturating_mul(4);
    // Colours are stored by their byte offset in the whole text.
    let begin = text.as_ptr().addr();
    let all_rows_of = |line: &str| {
        let line = match side {
            Side::First => &line[..line.floor_char_boundary(longest)],
            Side::Last => &line[line.ceil_char_boundary(line.len().saturating_sub(longest))..],
        };
        if !colours.is_empty() && plain(line) == line {
            let start = line.as_ptr().addr() - begin;
            let mut spans = sgr::spans(line, start, colours, style, theme);
            // Wrapping would remove leading blanks, so they become no-break spaces.
            let blanks = line.len() - line.trim_start_matches(' ').len();
            let mut left = blanks;
            for span in &mut spans {
                let here = (span.content.len() - span.content.trim_start_matches(' ').len()).min(left);
                span.content = format!("{}{}", "\u{a0}".repeat(here), &span.content[here..]).into();
                left -= here;
            }
            return wrap(&spans, context.columns, &[bar()], &[bar()]);
        }
        let line = plain(line);
        let body = line.trim_start_matches(' ');
        let unbroken = format!("{}{body}", "\u{a0}".repeat(line.len() - body.len()));
        wrap(&[Span::styled(unbroken, style)], context.columns, &[bar()], &[bar()])
    };
    // A very long line leaves room for the others.
    let rows_of = |line: &str| {
        let mut rows = all_rows_of(line);
        if most < usize::MAX && rows.len() > LINE {
            let note = format!("… more of this line{}", context.more.details);
            let cut = Row::mark(Line::from(vec![bar(), Span::styled(note, theme.dim())]));
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
            let mut from_end = Vec::new();
            let mut high = 0;
            for line in lines.iter().rev() {
                from_end.push(rows_of(line));
                high += from_end.last().map_or(0, Vec::len);
                if high > room {
                    break;
                }
                whole += 1;
            }
            rows.extend(from_end.into_iter().rev().flatten().skip(high.saturating_sub(room)));
        }
    }
    let more = if count > whole { count - whole + left_out } else { 0 };
    if more > 0 {
        let lines = if more == 1 { "line" } else { "lines" };
        let text = format!("… {more} more {lines}{}", context.more.details);
        let note = Row::mark(Line::from(vec![bar(), Span::styled(text, theme.dim())]));
        let at = if side == Side::First { rows.len() } else { 0 };
        rows.insert(at, note);
    }
    rows
}
