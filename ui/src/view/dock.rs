//! The dock above the composer: the approval, queued messages, and calls that take long.

use std::time::Duration;

use pixir_core::event::{Approval, Preview, Rule, Scope};
use pixir_core::text::human::human_duration;
use ratatui::text::{Line, Span};

use super::status::whole;
use crate::input::action::Action;
use crate::input::keymap::Keymap;
use crate::render::context::{LayoutKey, RenderContext};
use crate::render::preview;
use crate::render::text::{fit, visible, wrap_lines};
use crate::state::{Focus, PendingApproval, State};
use crate::theme::Theme;
use crate::transcript::{Cell, Tool, rows};

/// A call that runs for longer than this appears in the dock, unless its card is on the screen.
const SLOW: Duration = Duration::from_secs(2);
const MAX_RUNNING: usize = 4;

/// The lines of the dock, and whether the whole preview of the approval is among them. `most` rows are free.
pub(super) fn lines(state: &mut State, width: u16, most: usize) -> (Vec<Line<'static>>, bool) {
    let columns = usize::from(width.saturating_sub(2));
    let (mut lines, shows_whole_preview) = approval_lines(state, columns, most).unwrap_or_default();
    let theme = &state.look.theme;
    let take_back = state.keys.map.key_of(Action::TakeBack).unwrap_or_default();
    let queued = state
        .session
        .queue
        .steer
        .iter()
        .map(|t| ("» now  ", t))
        .chain(state.session.queue.follow_up.iter().map(|t| ("▸ next ", t)));
    for (mark, text) in queued.take(4) {
        let start: String = text.chars().take(columns).map(|c| if c == '\n' { ' ' } else { c }).collect();
        lines.push(Line::from(vec![
            Span::styled(format!(" {mark}"), theme.fg(theme.accent)),
            Span::styled(fit(&visible(&start), columns.saturating_sub(24)), theme.dim()),
            Span::styled(format!("  {take_back}"), theme.dim()),
        ]));
    }
    // In a replay no call runs.
    if state.approvals.is_empty() && state.replay.is_none() {
        lines.extend(running_lines(state, columns));
    }
    (lines, shows_whole_preview)
}

/// Slow calls, with the time that they have taken so far.
fn running_lines(state: &State, columns: usize) -> Vec<Line<'static>> {
    // A visible card shows the time itself.
    let is_visible = |tool: &Tool| {
        let is_it =
            |at| matches!(state.transcript.cell(at), Some(Cell::Tool(it)) if it.call().call_id == tool.call().call_id);
        !state.wants_whole_screen() || state.viewport.shown().iter().any(|it| is_it(it.cell))
    };
    let slow = state.transcript.running().into_iter().filter(|tool| !is_visible(tool)).filter_map(|tool| {
        let began = Duration::from_millis(u64::try_from(tool.began()).ok()?);
        let took = state.now.wall.checked_sub(began).filter(|took| *took >= SLOW)?;
        let text = fit(&visible(&rows::target(tool)), columns.saturating_sub(24));
        Some(Line::from(vec![
            Span::styled(" ● ", state.look.theme.fg(state.look.theme.accent)),
            Span::styled(format!("{} ", tool.call().name), state.look.theme.fg(state.look.theme.tool)),
            Span::styled(text, state.look.theme.dim()),
            Span::styled(format!("  {}", human_duration(whole(took))), state.look.theme.fg(state.look.theme.text)),
        ]))
    });
    slow.take(MAX_RUNNING).collect()
}

/// The card of the first approval, and whether its preview fits as a whole.
fn approval_lines(state: &mut State, columns: usize, most: usize) -> Option<(Vec<Line<'static>>, bool)> {
    let (theme, of) = (&state.look.theme, state.approvals.len());
    let focused = state.focus == Focus::Approval;
    let pending = state.approvals.first_mut()?;
    let answers = answer_lines(pending, focused, columns, theme, &state.keys.map);
    let it = &pending.approval;
    let bar = || Span::styled(" ┃ ", theme.fg(theme.warning));
    let count = if of > 1 { format!("  1 of {of}") } else { String::new() };
    let head = Line::from(vec![
        Span::styled(" ┏ ", theme.fg(theme.warning)),
        Span::styled(question(it), theme.bold()),
        Span::styled(count, theme.dim()),
    ]);
    let key = LayoutKey { columns: columns.saturating_sub(3), generation: state.look.generation };
    let highlighter = &state.look.highlighter;
    let body = pending
        .preview
        .lines(key, |columns| preview::lines(&it.preview, &RenderContext::new(theme, highlighter, columns)));
    let room = most.saturating_sub(1 + answers.len()).max(1);
    // With little room, the preview is worth more than the reason.
    let tight = body.len() + 2 > room;
    let all = body.len() <= room;
    let mut shown = body[..if all { body.len() } else { room - 1 }].to_vec();
    if !all {
        let more = body.len() - shown.len();
        let hint = if pending.is_read {
            "read to the end".to_owned()
        } else {
            format!("{} to read all before you can allow it", state.keys.map.keys_to_expand_approval())
        };
        let text = format!("… {more} more lines · {hint}");
        shown.push(Line::styled(fit(&text, columns.saturating_sub(3)), theme.fg(theme.warning)));
    }
    let mut lines = if tight { vec![head] } else { vec![Line::default(), head] };
    lines.extend(shown.into_iter().map(|mut line| {
        line.spans.insert(0, bar());
        line
    }));
    if !tight {
        let why = fit(&format!("reason: {}", visible(&it.reason)), columns.saturating_sub(3));
        lines.push(Line::from(vec![bar(), Span::styled(why, theme.dim())]));
    }
    lines.extend(answers);
    Some((lines, all))
}

fn answer_lines(
    pending: &PendingApproval,
    focused: bool,
    columns: usize,
    theme: &Theme,
    keymap: &Keymap,
) -> Vec<Line<'static>> {
    let it = &pending.approval;
    let colour = theme.warning;
    let corner = Span::styled(" ┗ ", theme.fg(colour));
    let mut answers = Vec::new();
    if pending.is_in_feedback() {
        answers.push(Span::styled("write what to do instead, then Enter · Esc back", theme.fg(theme.accent)));
    } else {
        let always = it.rule.as_ref().map(|rule| match rule {
            _ if columns < 62 => "always",
            Rule::Allow(Scope::FileChanges) => "always: file changes",
            Rule::Allow(Scope::Command(_)) => "always: this command",
            Rule::Allow(Scope::Network) => "always: the network",
            Rule::Allow(Scope::Reads(_)) => "always: this folder",
            // A Session offers only the rules above.
            Rule::Allow(Scope::Pattern(_) | Scope::Files(_) | Scope::Unknown) | Rule::Deny(_) => "always",
        });
        // Other calls have fewer rules to choose from; the key works there too.
        let is_command = columns >= 62 && matches!(it.rule, Some(Rule::Allow(Scope::Command(_))));
        for (anywhere, here, label) in [
            (Action::AllowOnce, Action::FocusedAllowOnce, Some("once")),
            (Action::AllowAlways, Action::FocusedAllowAlways, always),
            (Action::ChooseRule, Action::FocusedChooseRule, is_command.then_some("rule…")),
            (Action::Deny, Action::FocusedDeny, Some("no")),
            (
                Action::DenyWithFeedback,
                Action::FocusedDenyWithFeedback,
                Some(if columns < 62 { "no…" } else { "no, because…" }),
            ),
        ] {
            let key = keymap.key_of(if focused { here } else { anywhere });
            if let (Some(label), Some(key)) = (label, key) {
                answers.push(Span::styled(key, theme.fg(theme.accent)));
                // Non-breaking blanks keep a key and its label on one line.
                answers.push(Span::styled(format!("\u{a0}{}", label.replace(' ', "\u{a0}")), theme.fg(theme.text)));
                answers.push(Span::raw("  "));
            }
        }
    }
    wrap_lines(&answers, columns, &[corner], &[Span::raw("   ")])
}

fn question(approval: &Approval) -> String {
    let Preview { would, steps, .. } = &*approval.preview;
    match (would.as_str(), steps.as_slice()) {
        // A line of the run language previews each of its commands; a command line of the shell has no steps.
        ("run" | "run in the background", []) => "Allow this command?".to_owned(),
        ("run", _) => "Allow this line?".to_owned(),
        ("edit", _) => "Allow this edit?".to_owned(),
        ("write" | "create", _) => "Allow writing this file?".to_owned(),
        ("delete", _) => "Allow deleting this file?".to_owned(),
        ("move", _) => "Allow moving this file?".to_owned(),
        ("patch", _) => "Allow these changes?".to_owned(),
        _ => format!("Allow {}?", visible(&approval.tool)),
    }
}
