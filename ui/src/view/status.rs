//! The status line: the present activity or a message to the user, and the usage.

use std::time::{Duration, Instant};

use pixir_core::event::{JobStatus, Status};
use pixir_core::text::human::human_duration;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::input::action::Action;
use crate::overlay::Overlay;
pub(crate) use crate::render::amount::short;
use crate::render::text::{fit, visible, width};
use crate::state::{Focus, PendingConfirm, Retry, RetryLimit, State};
use crate::terminal::canvas::Canvas;
use crate::transcript::reading::find::Search;

/// After this time without data from the model, the status line says so.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a message replaces the present activity.
const TOAST: Duration = Duration::from_secs(4);
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];

pub(super) fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    if let Some(search) = &state.reading.search {
        return draw_search(search, state, canvas, area);
    }
    if let Some(search) = &state.composer.past_search {
        let has_match = search.letters.is_empty() || search.current().is_some();
        let older = state.keys.map.hints(&[(Action::SearchPast, "older · ")]);
        let line = Line::from(vec![
            Span::styled(" earlier prompts: ", theme.fg(theme.accent)),
            Span::styled(visible(&search.letters), theme.fg(if has_match { theme.text } else { theme.warning })),
            Span::styled(if has_match { "" } else { "  no matches" }, theme.fg(theme.warning)),
            Span::styled(format!("  {older}Enter use it · Esc back"), theme.dim()),
        ]);
        return canvas.line(line, area);
    }
    let columns = usize::from(area.width);
    let clock = state
        .activity
        .busy_since
        .map_or(String::new(), |since| format!(" {}", human_duration(whole(state.now.since(since)))));
    let spinner = if state.look.animate {
        SPINNER[usize::try_from(state.activity.frame).unwrap_or(0) % SPINNER.len()]
    } else {
        "●"
    };
    let toast = state.toast.as_ref().filter(|(_, since)| !state.is_animated() || state.now.since(*since) < TOAST);
    let stop = state.keys.map.and_hints(&[(Action::Escape, "interrupts")]);
    let again = |action, word: &str, colour| {
        let key = state.keys.map.key_of(action).unwrap_or_default();
        Span::styled(format!(" {key} again {word}"), theme.fg(colour))
    };
    let left = match (state.guard.confirm, toast, state.session.status) {
        (PendingConfirm::Quit, ..) => again(Action::StashOrQuit, "quits", theme.warning),
        (PendingConfirm::Tree, ..) => again(Action::Escape, "opens the tree", theme.accent),
        (PendingConfirm::Nothing, Some((text, _)), _) => {
            Span::styled(format!(" {}", visible(text)), theme.fg(theme.accent))
        }
        // No clock here: a screen reader would read it again and again.
        (PendingConfirm::Nothing, None, status) if status.is_busy() && state.look.screen_reader => {
            // The line is not written again where it moves down, because the screen reader would read it again.
            if state
                .printing
                .announced
                .as_ref()
                .is_some_and(|it| Some(it.turn) == state.activity.busy_since && it.has_moved)
            {
                return;
            }
            Span::styled(format!(" working{stop}"), theme.fg(theme.accent))
        }
        (PendingConfirm::Nothing, None, Status::Idle) if state.look.screen_reader && state.replay.is_none() => return,
        (PendingConfirm::Nothing, None, Status::Thinking) => {
            // The user sees nothing else of a long call while the model writes it.
            let doing = match &state.activity.writing_call {
                Some((name, bytes)) if *bytes >= 1_000 => format!("preparing {} ({}B)", visible(name), short(*bytes)),
                Some(_) | None if state.transcript.is_answering() => "answering".to_owned(),
                Some(_) | None => "thinking".to_owned(),
            };
            // The user cannot distinguish a silent server from a model that reasons, so the line shows how long no data
            // came.
            let silence = state.now.since(state.activity.last_heard);
            let (doing, clock) = match state.activity.retry.filter(|it| it.at > state.now.at) {
                Some(retry) => (countdown(retry, state.now.at), String::new()),
                None if silence < SILENCE => (doing, clock),
                None => (doing, format!("{clock} · no data for {}", human_duration(whole(silence)))),
            };
            Span::styled(format!(" {spinner} {doing}{clock}{stop}"), theme.fg(theme.accent))
        }
        (PendingConfirm::Nothing, None, Status::Compacting) => {
            let words = match state.activity.summary_words {
                0 => String::new(),
                words => format!(" ({words} words)"),
            };
            Span::styled(format!(" {spinner} summarizing{words}{clock}{stop}"), theme.fg(theme.accent))
        }
        (PendingConfirm::Nothing, None, Status::Working) => {
            Span::styled(format!(" {spinner} working{clock}{stop}"), theme.fg(theme.accent))
        }
        (PendingConfirm::Nothing, None, Status::Asking) if state.look.screen_reader => {
            let aside = state.overlays.last().is_some_and(Overlay::is_aside);
            Span::styled(if aside { " Tab answers the question" } else { " waiting for you" }, theme.fg(theme.warning))
        }
        (PendingConfirm::Nothing, None, Status::Asking) => {
            Span::styled(" ● waiting for you".to_owned(), theme.fg(theme.warning))
        }
        (PendingConfirm::Nothing, None, Status::Idle) => Span::styled(idle_hints(state), theme.dim()),
    };
    let mut right = if state.look.screen_reader { String::new() } else { usage_text(state) };
    // The usage gives way where both do not fit.
    if width(&left.content) + width(&right) + 2 > columns {
        right = right.split(" · ").next().unwrap_or_default().to_owned();
    }
    if width(&left.content) + width(&right) + 2 > columns {
        right.clear();
    }
    let left_width = columns.saturating_sub(width(&right) + 2);
    let left = Span::styled(fit(&left.content, left_width), left.style);
    let gap = columns.saturating_sub(width(&left.content) + width(&right) + 1);
    canvas.line(Line::from(vec![left, Span::raw(" ".repeat(gap)), Span::styled(right, theme.dim())]), area);
}

/// `retrying in 6s · gives up in 2m40s`
fn countdown(retry: Retry, now: Instant) -> String {
    // A second that has begun counts as a whole one, so that the countdown ends at one second.
    let left = |at: Instant| human_duration(Duration::from_secs(at.saturating_duration_since(now).as_secs() + 1));
    let limit = match retry.limit {
        RetryLimit::Until(at) => format!(" · gives up in {}", left(at)),
        RetryLimit::Last => " · last try".to_owned(),
        RetryLimit::Attempts { attempt, of } => format!(" · try {attempt} of {of}"),
        RetryLimit::Unknown => String::new(),
    };
    format!("retrying in {}{limit}", left(retry.at))
}

/// Hints for the keys that matter where the user is.
fn idle_hints(state: &State) -> String {
    let hint = |actions: &[(Action, &str)]| format!(" {}", state.keys.map.hints(actions));
    if state.reading.labels.is_some() {
        return " press a letter to copy · Esc cancels".to_owned();
    }
    // An overlay shows its own keys.
    if state.overlays.iter().any(|overlay| !overlay.is_aside()) {
        return String::new();
    }
    match state.focus {
        Focus::Composer if state.replay.is_some() => hint(&[
            (Action::PlayReplay, "play"),
            (Action::StepReplay, "next"),
            (Action::StepReplayBack, "previous"),
            (Action::QuitReplay, "quit"),
            (Action::NextReplayTurn, "turn"),
            (Action::SpeedUpReplay, "faster"),
            (Action::SlowDownReplay, "slower"),
        ]),
        Focus::Composer => " / commands · ? help".to_owned(),
        Focus::Approval => hint(&[
            (Action::FocusedAllowOnce, "once"),
            (Action::FocusedAllowAlways, "always"),
            (Action::FocusedDeny, "no"),
            (Action::FocusedDenyWithFeedback, "no, because…"),
            (Action::ExpandApproval, "show all"),
        ]),
        Focus::Transcript => hint(&[
            (Action::NextCell, "next"),
            (Action::PreviousCell, "previous"),
            (Action::NextPrompt, "prompt"),
            (Action::NextError, "error"),
            (Action::FindInTranscript, "find"),
            (Action::ShowCopyLabels, "copy"),
            (Action::FoldCell, "fold"),
            (Action::OutlineOfTranscript, "outline"),
            (Action::Escape, "back"),
        ]),
        Focus::Side => hint(&[
            (Action::NextSideTab, "tab"),
            (Action::WidenSide, "wider"),
            (Action::NarrowSide, "narrower"),
            (Action::Escape, "back"),
        ]),
    }
}

/// The search line.
fn draw_search(search: &Search, state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    let result = search.result();
    let result_style = if search.is_without_match() { theme.fg(theme.warning) } else { theme.dim() };
    let line = Line::from(vec![
        Span::styled(" find: ", theme.fg(theme.accent)),
        Span::styled(visible(&search.text), theme.fg(theme.text)),
        Span::styled(format!("  {result}"), result_style),
        Span::styled(
            if search.is_typed {
                "  Enter done · ↑↓ next · Esc back".to_owned()
            } else {
                let actions =
                    [(Action::NextMatch, "next"), (Action::PreviousMatch, "previous"), (Action::Escape, "done")];
                format!("  {}", state.keys.map.hints(&actions))
            },
            theme.dim(),
        ),
    ]);
    if search.is_typed {
        let x = area.x + 7 + u16::try_from(width(&search.text)).unwrap_or(0);
        canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    }
    canvas.line(line, area);
}

/// The time without fractions of a second.
pub(super) fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// `1 job · 42% of 128k · ↑12.4k ↓1.2k`
pub(crate) fn usage_text(state: &State) -> String {
    let history = &state.history;
    let used = history.last_input.unwrap_or_else(|| history.estimated_tokens());
    let mark = if history.last_input.is_some() { "" } else { "~" };
    let mut parts = Vec::new();
    match state.session.jobs.iter().filter(|job| job.status == JobStatus::Running).count() {
        0 => {}
        1 => parts.push("1 job".to_owned()),
        n => parts.push(format!("{n} jobs")),
    }
    match state.session.window {
        Some(window) if used > 0 => parts.push(format!("{mark}{}% of {}", used * 100 / window.max(1), short(window))),
        None if used > 0 => parts.push(format!("{mark}{} tokens", short(used))),
        Some(_) | None => {}
    }
    if history.usage.input > 0 {
        let cached =
            if history.usage.cached > 0 { format!(" ({} cached)", short(history.usage.cached)) } else { String::new() };
        parts.push(format!("↑{}{cached} ↓{}", short(history.usage.input), short(history.usage.output)));
    }
    let cost = history.cost.to_string();
    if !cost.is_empty() {
        parts.push(cost);
    }
    parts.join(" · ")
}
