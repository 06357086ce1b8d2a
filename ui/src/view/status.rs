//! The last line: what goes on, or a word to the person, and what it cost.

use std::time::Duration;

use pixir_core::event::{JobStatus, Status};
use pixir_core::present::human_duration;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::render::text::{fit, visible, width};
use crate::state::{Focus, Primed, State};
use crate::terminal::canvas::Canvas;
use crate::transcript::reading::find::Search;

/// After so long without a word from the model the person is told.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a word to the person hides what is going on.
const TOAST: Duration = Duration::from_secs(4);
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];

pub(super) fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    if let Some(search) = &state.search {
        return draw_search(search, state, canvas, area);
    }
    if let Some(search) = &state.past_search {
        let is_found = search.letters.is_empty() || search.found().is_some();
        let before = state.keymap.hints(&[("search-past", "before · ")]);
        let line = Line::from(vec![
            Span::styled(" sent before: ", theme.fg(theme.accent)),
            Span::styled(visible(&search.letters), theme.fg(if is_found { theme.text } else { theme.warning })),
            Span::styled(if is_found { "" } else { "  not found" }, theme.fg(theme.warning)),
            Span::styled(format!("  {before}Enter take it · Esc back"), theme.dim()),
        ]);
        return canvas.line(line, area);
    }
    let columns = usize::from(area.width);
    let clock =
        state.busy_since.map_or(String::new(), |since| format!(" {}", human_duration(whole(state.now.since(since)))));
    let spinner = if state.moves { SPINNER[usize::try_from(state.frame).unwrap_or(0) % SPINNER.len()] } else { "●" };
    let toast = state.toast.as_ref().filter(|(_, since)| !state.is_animated() || state.now.since(*since) < TOAST);
    let stop = state.keymap.and_hints(&[("escape", "interrupts")]);
    let again =
        |id, word: &str, colour| Span::styled(format!(" {} again {word}", state.keymap.key_of(id)), theme.fg(colour));
    let left = match (state.primed, toast, state.status) {
        (Primed::Quit, ..) => again("stash-or-quit", "quits", theme.warning),
        (Primed::Tree, ..) => again("escape", "opens the tree", theme.accent),
        (Primed::Nothing, Some((text, _)), _) => Span::styled(format!(" {}", visible(text)), theme.fg(theme.accent)),
        // Said once: a clock would be read out again and again.
        (Primed::Nothing, None, Status::Thinking | Status::Working) if state.is_read_aloud => {
            // Written again where the line moves down, it would be read again.
            if state.announced.as_ref().is_some_and(|it| Some(it.turn) == state.busy_since && it.has_moved) {
                return;
            }
            Span::styled(format!(" working{stop}"), theme.fg(theme.accent))
        }
        (Primed::Nothing, None, Status::Idle) if state.is_read_aloud && state.replay.is_none() => return,
        (Primed::Nothing, None, Status::Thinking) => {
            // A long call takes a while to write, and nothing else is seen of it.
            let doing = match &state.writing {
                Some((name, bytes)) if *bytes >= 1_000 => format!("preparing {} ({}B)", visible(name), short(*bytes)),
                Some(_) | None if state.transcript.is_answering() => "answering".to_owned(),
                Some(_) | None => "thinking".to_owned(),
            };
            // A server that says nothing looks like a model that thinks; the difference is worth a word.
            let silence = state.now.since(state.heard);
            let wait =
                state.tries_again.map(|at| at.saturating_duration_since(state.now.at)).filter(|it| !it.is_zero());
            let (doing, silence) = match wait {
                Some(wait) => (format!("trying again in {} s", wait.as_secs() + 1), Duration::ZERO),
                None => (doing, silence),
            };
            let clock = if wait.is_some() {
                String::new()
            } else if silence < SILENCE {
                clock
            } else {
                format!("{clock} · nothing for {}", human_duration(whole(silence)))
            };
            Span::styled(format!(" {spinner} {doing}{clock}{stop}"), theme.fg(theme.accent))
        }
        (Primed::Nothing, None, Status::Working) => {
            Span::styled(format!(" {spinner} working{clock}{stop}"), theme.fg(theme.accent))
        }
        (Primed::Nothing, None, Status::Asking) => {
            Span::styled(" ● waiting for your answer".to_owned(), theme.fg(theme.warning))
        }
        (Primed::Nothing, None, Status::Idle) => Span::styled(idle_hints(state), theme.dim()),
    };
    let mut right = if state.is_read_aloud { String::new() } else { usage_text(state) };
    // Where both do not fit, what is happening is worth more than what it cost.
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

/// Keys that are of use where the person is.
fn idle_hints(state: &State) -> String {
    let hint = |ids: &[(&str, &str)]| format!(" {}", state.keymap.hints(ids));
    if state.labels.is_some() {
        return " press a letter to copy · Esc leaves".to_owned();
    }
    // A layer says itself what its keys are.
    if state.overlays.iter().any(|layer| !layer.is_aside()) {
        return String::new();
    }
    match state.focus {
        Focus::Composer if state.replay.is_some() => hint(&[
            ("replay-play", "play"),
            ("replay-forward", "on"),
            ("replay-back", "back"),
            ("replay-quit", "quit"),
            ("replay-next-turn", "turn"),
            ("replay-faster", "faster"),
            ("replay-slower", "slower"),
        ]),
        Focus::Composer => " / commands · ? help".to_owned(),
        Focus::Question => hint(&[
            ("question-allow-once", "once"),
            ("question-allow-always", "always"),
            ("question-deny", "no"),
            ("question-deny-feedback", "no, because…"),
            ("question-expand", "all of it"),
        ]),
        Focus::Transcript => hint(&[
            ("cell-next", "next"),
            ("cell-previous", "before"),
            ("next-prompt", "prompt"),
            ("next-error", "error"),
            ("transcript-find", "find"),
            ("copy-labels", "copy"),
            ("fold", "fold"),
            ("transcript-outline", "outline"),
            ("escape", "back"),
        ]),
        Focus::Side => {
            hint(&[("side-next", "tab"), ("side-wider", "wider"), ("side-narrower", "narrower"), ("escape", "back")])
        }
    }
}

/// The line in which is typed what is searched for.
fn draw_search(search: &Search, state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.theme;
    let told = search.told();
    let told_style = if told == "not found" { theme.fg(theme.warning) } else { theme.dim() };
    let line = Line::from(vec![
        Span::styled(" find: ", theme.fg(theme.accent)),
        Span::styled(visible(&search.text), theme.fg(theme.text)),
        Span::styled(format!("  {told}"), told_style),
        Span::styled(
            if search.is_typed {
                "  Enter keep · ↑↓ others · Esc back".to_owned()
            } else {
                let ids = [("next-match", "next"), ("previous-match", "before"), ("escape", "done")];
                format!("  {}", state.keymap.hints(&ids))
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

/// Without what is less than a second.
pub(super) fn whole(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// `1 job · 42% of 128k · ↑12.4k ↓1.2k`
pub(crate) fn usage_text(state: &State) -> String {
    let history = &state.history;
    let used = history.last_input.unwrap_or_else(|| history.estimated_tokens());
    let mark = if history.last_input.is_some() { "" } else { "~" };
    let mut parts = Vec::new();
    match state.jobs.iter().filter(|job| job.status == JobStatus::Running).count() {
        0 => {}
        1 => parts.push("1 job".to_owned()),
        n => parts.push(format!("{n} jobs")),
    }
    match state.window {
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

pub(crate) fn short(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3).replace(".0k", "k"),
        _ => format!("{:.1}M", n as f64 / 1e6).replace(".0M", "M"),
    }
}
