//! Above the composer: a question, what waits to be said, and calls that take their time.

use std::time::Duration;

use pixir_core::event::{Plan, Rule};
use pixir_core::present::{human_duration, human_size};
use ratatui::text::{Line, Span};

use super::status::whole;
use crate::input::keymap::Keymap;
use crate::render::text::{fit, visible, wrap_lines};
use crate::render::{cell, diff};
use crate::state::{Focus, Question, State};
use crate::theme::Theme;
use crate::transcript::{Cell, LayoutKey, Tool};

/// After so long a running call is shown beside the line, wherever the transcript stands; and at most so many.
const SLOW: Duration = Duration::from_secs(2);
const MOST_RUNNING: usize = 4;

/// Above the composer: what waits, the question, how work goes.
pub(super) fn lines(state: &mut State, width: u16, most: usize) -> (Vec<Line<'static>>, bool) {
    let columns = usize::from(width.saturating_sub(2));
    let (mut lines, all_in_sight) = question_lines(state, columns, most).unwrap_or_default();
    let theme = &state.theme;
    let take_back = state.keymap.key_of("take-back");
    let waits =
        state.queue.steer.iter().map(|t| ("» now  ", t)).chain(state.queue.follow_up.iter().map(|t| ("▸ next ", t)));
    for (mark, text) in waits.take(4) {
        let start: String = text.chars().take(columns).map(|c| if c == '\n' { ' ' } else { c }).collect();
        lines.push(Line::from(vec![
            Span::styled(format!(" {mark}"), theme.fg(theme.accent)),
            Span::styled(fit(&visible(&start), columns.saturating_sub(24)), theme.dim()),
            Span::styled(format!("  {take_back}"), theme.dim()),
        ]));
    }
    // What is only told again takes no time now.
    if state.questions.is_empty() && state.replay.is_none() {
        lines.extend(running_lines(state, columns));
    }
    (lines, all_in_sight)
}

/// Calls that take their time, with how long they have taken.
fn running_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    // A card that is in sight says so itself.
    let in_sight = |tool: &Tool| {
        let is_it =
            |at| matches!(state.transcript.cell(at), Some(Cell::Tool(it)) if it.call().call_id == tool.call().call_id);
        !state.wants_whole_screen() || state.viewport.shown().iter().any(|it| is_it(it.cell))
    };
    let slow = state.transcript.running().into_iter().filter(|tool| !in_sight(tool)).filter_map(|tool| {
        let began = Duration::from_millis(u64::try_from(tool.began()).ok()?);
        let took = state.now.wall.checked_sub(began).filter(|took| *took >= SLOW)?;
        let text = fit(&visible(&cell::target(tool)), columns.saturating_sub(24));
        Some(Line::from(vec![
            Span::styled(" ● ", state.theme.fg(state.theme.accent)),
            Span::styled(format!("{} ", tool.call().name), state.theme.fg(state.theme.tool)),
            Span::styled(text, state.theme.dim()),
            Span::styled(format!("  {}", human_duration(whole(took))), state.theme.fg(state.theme.text)),
        ]))
    });
    slow.take(MOST_RUNNING).collect()
}

/// The card of a question, and whether all of what would be done is in sight.
fn question_lines(state: &mut State, columns: usize, most: usize) -> Option<(Vec<Line<'static>>, bool)> {
    let (theme, of) = (&state.theme, state.questions.len());
    let focused = state.focus == Focus::Question;
    let question = state.questions.first_mut()?;
    let answers = answer_lines(question, focused, columns, theme, &state.keymap);
    let it = &question.approval;
    let bar = || Span::styled(" ┃ ", theme.fg(theme.warning));
    let count = if of > 1 { format!("  1 of {of}") } else { String::new() };
    let head = Line::from(vec![
        Span::styled(" ┏ ", theme.fg(theme.warning)),
        Span::styled(asks(&it.tool), theme.bold()),
        Span::styled(count, theme.dim()),
    ]);
    let key = LayoutKey { columns: columns.saturating_sub(3), generation: state.generation };
    let body = question.laid.lines(key, |columns| plan_lines(&it.plan, columns, theme));
    let room = most.saturating_sub(1 + answers.len()).max(1);
    // Where there is little room, what would be done is worth more than why it is asked.
    let tight = body.len() + 2 > room;
    let all = body.len() <= room;
    let mut shown = body[..if all { body.len() } else { room - 1 }].to_vec();
    if !all {
        let more = body.len() - shown.len();
        let what = match question.read {
            true => "read to its end".to_owned(),
            false => format!("{}, to read and allow", state.keymap.to_all_of_question()),
        };
        let text = format!("… {more} more lines · {what}");
        shown.push(Line::styled(fit(&text, columns.saturating_sub(3)), theme.fg(theme.warning)));
    }
    let mut lines = if tight { vec![head] } else { vec![Line::default(), head] };
    lines.extend(shown.into_iter().map(|mut line| {
        line.spans.insert(0, bar());
        line
    }));
    if !tight {
        let why = fit(&format!("asks because {}", visible(&it.reason)), columns.saturating_sub(3));
        lines.push(Line::from(vec![bar(), Span::styled(why, theme.dim())]));
    }
    lines.extend(answers);
    Some((lines, all))
}

/// Everything that a plan would do: its target, whole, then its diff.
pub(crate) fn plan_lines(plan: &Plan, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrap_lines(&[Span::styled(visible(&plan.target), theme.fg(theme.code))], columns, &[], &[]);
    if let Some(text) = &plan.diff {
        lines.extend(diff::lines(text, columns, theme));
    }
    let step_line = |step: &Plan| {
        let first = [Span::styled(format!("{} ", step.would), theme.fg(theme.tool))];
        let size = match (step.bytes_before, step.bytes) {
            (Some(before), Some(after)) => format!("  {} → {}", human_size(before), human_size(after)),
            (None, Some(after)) => format!("  new, {}", human_size(after)),
            (_, None) => String::new(),
        };
        let target = [Span::styled(visible(&step.target), theme.fg(theme.text)), Span::styled(size, theme.dim())];
        wrap_lines(&target, columns, &first, &[Span::raw("  ")])
    };
    // What it comes to stands before what may be long.
    if plan.steps.len() > 1 {
        lines.extend(plan.steps.iter().flat_map(&step_line));
    }
    for step in &plan.steps {
        if plan.steps.len() == 1 || step.diff.is_some() {
            lines.extend(step_line(step));
        }
        lines.extend(step.diff.iter().flat_map(|text| diff::lines(text, columns, theme)));
    }
    for note in &plan.notes {
        lines.extend(wrap_lines(&[Span::styled(visible(note), theme.dim())], columns, &[], &[]));
    }
    lines
}

fn answer_lines(
    question: &Question,
    focused: bool,
    columns: usize,
    theme: &Theme,
    keymap: &Keymap,
) -> Vec<Line<'static>> {
    let it = &question.approval;
    let colour = theme.warning;
    let corner = Span::styled(" ┗ ", theme.fg(colour));
    let mut answers = Vec::new();
    if question.feedback.is_some() {
        answers.push(Span::styled("say what to do instead, then Enter · Esc back", theme.fg(theme.accent)));
    } else {
        let always = it.rule.as_ref().map(|rule| match rule {
            _ if columns < 62 => "always",
            Rule::FileChanges => "always: file changes",
            Rule::Command(_) => "always: this command",
        });
        for (anywhere, here, label) in [
            ("allow-once", "question-allow-once", Some("once")),
            ("allow-always", "question-allow-always", always),
            ("deny", "question-deny", Some("no")),
            ("deny-feedback", "question-deny-feedback", Some(if columns < 62 { "no…" } else { "no, because…" })),
        ] {
            let key = keymap.key_of(if focused { here } else { anywhere });
            if let Some(label) = label.filter(|_| !key.is_empty()) {
                answers.push(Span::styled(key, theme.fg(theme.accent)));
                // An answer stays on one line: its blanks do not break.
                answers.push(Span::styled(format!("\u{a0}{}", label.replace(' ', "\u{a0}")), theme.fg(theme.text)));
                answers.push(Span::raw("  "));
            }
        }
    }
    wrap_lines(&answers, columns, &[corner], &[Span::raw("   ")])
}

fn asks(tool: &str) -> String {
    match tool {
        "bash" => "Allow this command?".to_owned(),
        "run" => "Allow this line?".to_owned(),
        "edit" => "Allow this edit?".to_owned(),
        "write" => "Allow this file to be written?".to_owned(),
        other => format!("Allow {}?", visible(other)),
    }
}
