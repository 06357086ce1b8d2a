//! The status line: the present activity or a message to the user, and the usage.

use std::time::{Duration, Instant};

use pixir_core::event::Status;
use pixir_core::text::human::human_duration;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::gauge;
use crate::input::action::{Action, LayerAction};
use crate::overlay::Overlay;
use crate::render::figures::short;
use crate::render::text::{fit, span_width, visible, width, wrap_lines};
use crate::state::{Focus, PendingConfirm, Retry, RetryLimit, State};
use crate::terminal::canvas::Canvas;
use crate::transcript::Mark;
use crate::transcript::reading::find::Search;

/// After this time without data from the model, the status line says so.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a message replaces the present activity.
const TOAST: Duration = Duration::from_secs(4);
/// Columns of the status line that hints leave to the gauge.
const MIN_GAUGE: usize = 22;
/// The most rows of a message.
const MOST_ROWS: usize = 4;
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];

/// The message to the user, if nothing else has the status line.
fn message(state: &State) -> Option<&str> {
    let is_over = |since: Instant| state.is_animated() && state.now.since(since) >= TOAST;
    let (text, _) = state.toast.as_ref().filter(|(_, since)| !is_over(*since))?;
    Some(text)
}

/// A message that is longer than a row, on rows of its own; none for one that fits.
fn wrapped(state: &State, columns: u16) -> Vec<Line<'static>> {
    let text = message(state).map(visible).unwrap_or_default();
    let is_free = matches!(state.guard.confirm, PendingConfirm::Nothing | PendingConfirm::Interrupted)
        && state.reading.search.is_none()
        && state.composer.past_search.is_none();
    if !is_free || width(&text) + 2 <= usize::from(columns) {
        return Vec::new();
    }
    let (style, blank) = (state.look.theme.fg(state.look.theme.accent), [Span::raw(" ")]);
    let mut lines = wrap_lines(&[Span::styled(text, style)], usize::from(columns.saturating_sub(1)), &blank, &blank);
    if lines.len() > MOST_ROWS {
        lines.truncate(MOST_ROWS);
        if let Some(last) = lines.last_mut() {
            last.push_span(Span::styled(" …", style));
        }
    }
    lines
}

/// The rows that the status line needs: more than one for a long message.
pub(super) fn rows(state: &State, columns: u16) -> u16 {
    u16::try_from(wrapped(state, columns).len()).unwrap_or(1).max(1)
}

pub(super) fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    if let Some(search) = &state.reading.search {
        return draw_search(search, state, canvas, area);
    }
    let long = wrapped(state, area.width);
    if !long.is_empty() {
        for (y, line) in (area.y..area.bottom()).zip(long) {
            canvas.line(line, Rect { y, height: 1, ..area });
        }
        return;
    }
    if let Some(search) = &state.composer.past_search {
        let has_match = search.letters.is_empty() || search.current().is_some();
        let hints = [(Action::OlderPrompt, "older"), (Action::TakePrompt, "use it"), (Action::LeavePast, "back")];
        let hints = state.keys.map.hints(&hints);
        let line = Line::from(vec![
            Span::styled(" earlier prompts: ", theme.fg(theme.accent)),
            Span::styled(visible(&search.letters), theme.fg(if has_match { theme.text } else { theme.warning })),
            Span::styled(if has_match { "" } else { "  no matches" }, theme.fg(theme.warning)),
            Span::styled(format!("  {hints}"), theme.dim()),
        ]);
        return canvas.line(line, area);
    }
    let columns = usize::from(area.width);
    // Of what has only begun no time is shown.
    let busy = state.activity.busy_since.map(|since| whole(state.now.since(since)));
    let clock = match busy.filter(|it| *it >= Duration::from_secs(1)) {
        Some(time) => format!(" {}", human_duration(time)),
        None => String::new(),
    };
    let spinner = if state.look.animate {
        SPINNER[usize::try_from(state.activity.frame).unwrap_or(0) % SPINNER.len()]
    } else {
        "●"
    };
    // On an agent's screen an empty line leads back, and the agent goes on.
    let goes_back = state.session.agents.is_inside() && state.composer.is_empty();
    let stop = if goes_back { "back to main" } else { "interrupts" };
    let stop = state.keys.map.and_hints(&[(Action::Escape, stop)]);
    let running = state.session.agents.running();
    let again = |action, word: &str, colour| {
        let key = state.keys.map.key_of(action).unwrap_or_default();
        Span::styled(format!(" {key} again {word}"), theme.fg(colour))
    };
    let confirm = match state.guard.confirm {
        PendingConfirm::Quit => Some(again(Action::StashOrQuit, "quits", theme.warning)),
        PendingConfirm::Agents if running > 0 => {
            let what =
                if running == 1 { "stops the agent that runs".to_owned() } else { format!("stops {running} agents") };
            Some(again(Action::Escape, &what, theme.warning))
        }
        PendingConfirm::Tree => Some(again(Action::Escape, "opens the tree", theme.accent)),
        PendingConfirm::Nothing | PendingConfirm::Agents | PendingConfirm::Interrupted => None,
    };
    let left = match (confirm, message(state), state.status()) {
        (Some(confirm), ..) => confirm,
        (None, Some(text), _) => Span::styled(format!(" {}", visible(text)), theme.fg(theme.accent)),
        // No clock here: a screen reader would read it again and again.
        (None, None, status) if status.is_busy() && state.look.screen_reader => {
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
        (None, None, Status::Idle) if state.look.screen_reader && state.replay.is_none() => {
            return;
        }
        (None, None, Status::Thinking) => {
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
        (None, None, Status::Compacting) => {
            let words = match state.activity.summary_words {
                0 => String::new(),
                words => format!(" ({words} words)"),
            };
            Span::styled(format!(" {spinner} summarizing{words}{clock}{stop}"), theme.fg(theme.accent))
        }
        (None, None, Status::Working) => {
            Span::styled(format!(" {spinner} working{clock}{stop}"), theme.fg(theme.accent))
        }
        (None, None, Status::Asking) if state.look.screen_reader => {
            let aside = state.overlays.last().is_some_and(Overlay::is_aside);
            Span::styled(if aside { " Tab answers the question" } else { " waiting for you" }, theme.fg(theme.warning))
        }
        (None, None, Status::Asking) => Span::styled(" ● waiting for you".to_owned(), theme.fg(theme.warning)),
        (None, None, Status::Idle) if state.look.screen_reader => {
            Span::styled(format!(" {}", hints(state, columns)), theme.dim())
        }
        (None, None, Status::Idle) => Span::raw(""),
    };
    // The user at rest sees the keys that work here. While something happens, that comes first.
    let is_idle = left.content.is_empty();
    if state.look.screen_reader {
        return canvas.line(Line::from(left), area);
    }
    let (left, right) = if is_idle {
        let hints = hints(state, columns.saturating_sub(MIN_GAUGE));
        let left = gauge::spans(state, columns.saturating_sub(width(&hints) + 4));
        (left, vec![Span::styled(hints, theme.dim())])
    } else {
        let left = Span::styled(fit(&left.content, columns.saturating_sub(1)), left.style);
        let room = columns.saturating_sub(width(&left.content) + 3);
        let reads = matches!(state.focus, Focus::Transcript | Focus::Side) || !state.overlays.is_empty();
        let right = if reads {
            // Beside a long message there may be no room for a single hint.
            let hints = Some(hints(state, room)).filter(|it| width(it) <= room).unwrap_or_default();
            vec![Span::styled(hints, theme.dim())]
        } else {
            gauge::spans(state, room)
        };
        (vec![left], right)
    };
    let mut line = if is_idle { vec![Span::raw(" ")] } else { Vec::new() };
    line.extend(left);
    let gap = columns.saturating_sub(span_width(&line) + span_width(&right) + 1);
    line.push(Span::raw(" ".repeat(gap)));
    line.extend(right);
    canvas.line(Line::from(line), area);
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

/// The keys that matter where the user is, as many as fit: those of the layer that gets the keys.
fn hints(state: &State, columns: usize) -> String {
    let map = &state.keys.map;
    let all = |actions: &[(Action, &str)]| map.hints(actions);
    if state.reading.labels.is_some() {
        return "press a letter to copy · Esc cancels".to_owned();
    }
    let hints = match state.focus {
        _ if state.overlays.iter().any(|overlay| !overlay.is_aside()) => of_overlay(state),
        Focus::Composer if state.replay.is_some() => all(&[
            (Action::PlayReplay, "play"),
            (Action::StepReplay, "next"),
            (Action::StepReplayBack, "previous"),
            (Action::QuitReplay, "quit"),
            (Action::NextReplayTurn, "turn"),
            (Action::SpeedUpReplay, "faster"),
            (Action::SlowDownReplay, "slower"),
        ]),
        Focus::Composer if completes(state) => {
            let keys =
                if state.composer.path_letters().is_some() { "Enter take it" } else { "Enter run · Tab complete" };
            format!("{keys} · Up, Down others · Esc close")
        }
        Focus::Composer => {
            let tree = map.and_hints(&[(Action::OpenTree, "tree")]);
            let diff = if state.transcript.has_mark(Mark::Change, 0..state.transcript.len()) {
                map.and_hints(&[(Action::OpenDiff, "diff")])
            } else {
                String::new()
            };
            let agents = if state.session.agents.is_inside() && state.composer.is_empty() {
                map.and_hints(&[(Action::Escape, "back to main")])
            } else if state.session.agents.is_empty() {
                String::new()
            } else {
                map.and_hints(&[(Action::OpenAgents, "agents")])
            };
            let leave = match state.session.is_demo {
                true => map.and_hints(&[(Action::QuitWhenEmpty, "leaves the demo")]),
                false => String::new(),
            };
            format!("/ commands{agents}{tree}{diff} · ? help{leave}")
        }
        Focus::Approval => all(&[
            (Action::FocusedAllowOnce, "allow"),
            (Action::FocusedAllowAlways, "always…"),
            (Action::FocusedDeny, "refuse"),
            (Action::FocusedDenyWithFeedback, "refuse and say why"),
            (Action::ExpandApproval, "show all"),
        ]),
        Focus::Transcript => all(&[
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
        Focus::Side => all(&[
            (Action::NextSideTab, "tab"),
            (Action::WidenSide, "wider"),
            (Action::NarrowSide, "narrower"),
            (Action::Escape, "back"),
        ]),
    };
    // Whole hints only; the first ones and the last one, which leads back or to help, matter most.
    let mut items: Vec<&str> = hints.split(" · ").collect();
    while items.len() > 1 && items.iter().map(|it| width(it) + 3).sum::<usize>() > columns + 3 {
        items.remove(items.len() - 2);
    }
    items.join(" · ")
}

/// A list of completions stands above the composer.
fn completes(state: &State) -> bool {
    state.overlays.is_empty() && !state.composer.completions(state.uses.counts()).is_empty()
}

/// How to leave the top overlay, and how to see its keys. Over a field, a letter would be typed.
fn of_overlay(state: &State) -> String {
    let map = &state.keys.map;
    let close = map.hints(&[(LayerAction::CloseOverlay, "close")]);
    let key = match state.overlays.last() {
        // It is what the key would open.
        Some(Overlay::Help(_)) | None => None,
        Some(overlay) if overlay.view().is_typing() => map.key_beside_text(LayerAction::OverlayHelp),
        Some(_) => map.key_of(LayerAction::OverlayHelp),
    };
    match key {
        Some(key) if close.is_empty() => format!("{key} keys of this view"),
        Some(key) => format!("{close} · {key} keys of this view"),
        None => close,
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
