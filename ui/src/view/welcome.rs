//! The first screen of an empty Session: the model, or how to connect one here; the folder, suggestions, the last Sessions.

use std::time::Duration;

use pixir_core::provider::Providers;
use ratatui::text::{Line, Span};

use crate::overlay::connect::Way;
use crate::render::text::{fit, from_home, visible, width, wrap_lines};
use crate::state::{Connection, State};

/// From this many rows on there is room for more than the ways to a model.
const ROOMY: usize = 11;
/// From this size on, columns and rows, it stands in the middle.
pub(super) const CENTRED: (u16, u16) = (110, 30);
/// Its columns there.
pub(super) const MEASURE: u16 = 84;
/// What a user can begin with.
const SUGGESTIONS: [(&str, &str); 3] = [
    ("Explain how this project is built and tested", ""),
    ("Find a bug in it, fix it, and prove it with a test", ""),
    ("/init", "write AGENTS.md for this repository"),
];

/// The lines of the welcome for this many columns and rows.
pub(super) fn lines(state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = if rows < ROOMY { few(state, columns, rows) } else { whole(state, columns, rows) };
    lines.truncate(rows);
    lines
}

/// The model, and what to begin with where there is room for that.
fn few(state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let mut lines = connection(state, columns, rows);
    let more = suggestions(state, columns);
    if lines.len() + more.len() <= rows {
        lines.extend(more);
    }
    lines
}

/// What to begin with, below a blank line; nothing before a model answers.
fn suggestions(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let is_connected = matches!(state.session.connection, Connection::Ready { .. }) && !state.offers_connection();
    if !is_connected || state.session.is_demo {
        return Vec::new();
    }
    // They are words to type, and no menu to choose from.
    let mut lines = vec![Line::default(), Line::styled("  Ask, for example", theme.dim())];
    for (what, about) in SUGGESTIONS {
        let gap = if about.is_empty() { "" } else { "  " };
        let room = columns.saturating_sub(4 + width(what) + gap.len());
        lines.push(Line::from(vec![
            Span::styled(if state.look.screen_reader { "    " } else { "  · " }, theme.fg(theme.accent)),
            Span::styled(fit(what, columns.saturating_sub(4)), theme.fg(theme.text)),
            Span::styled(format!("{gap}{}", fit(about, room)), theme.dim()),
        ]));
    }
    lines
}

fn whole(state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let about = "A coding assistant that asks before it changes your files.";
    let mut lines = vec![Line::from(vec![
        Span::styled(if state.look.screen_reader { "" } else { "▞▚ " }, theme.fg(theme.accent)),
        Span::styled("pixir", theme.fg(theme.accent).bold()),
    ])];
    lines.extend(wrap_lines(&[Span::styled(about, theme.dim())], columns, &[], &[]));
    lines.push(Line::default());
    lines.extend(connection(state, columns, rows));
    let mut more: Vec<Line<'static>> = Vec::new();
    if !state.session.is_demo && !matches!(state.session.connection, Connection::Failed(_)) {
        more.push(Line::default());
        more.push(folder(state, columns));
    }
    more.extend(suggestions(state, columns));
    if !state.session.recent.is_empty() {
        more.push(Line::default());
        more.extend(recent(state, columns));
    }
    // What does not fit is left out as a whole.
    if lines.len() + more.len() > rows {
        more.truncate(rows.saturating_sub(lines.len()));
    }
    lines.extend(more);
    lines
}

/// The model that answers, or the ways to one.
fn connection(state: &State, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let mut lines = Vec::new();
    let mut say = |mark: &'static str, colour, text: String| {
        lines.extend(wrap_lines(
            &[Span::styled(text, theme.fg(theme.text))],
            columns,
            &[Span::styled(mark, theme.fg(colour))],
            &[Span::raw("  ")],
        ));
    };
    match &state.session.connection {
        Connection::Starting { said } if said.is_empty() => say("… ", theme.dim, "connecting to a model".into()),
        Connection::Starting { said } => say("… ", theme.dim, format!("connecting to a model: {}", visible(said))),
        Connection::Ready { demo: false, why, server } => say("✓ ", theme.success, format!("{server} ({why})")),
        Connection::Ready { demo: true, why, .. } if why == Providers::GIVEN => {
            let text = "This is the demo: a script answers as the model; the tools and the files are real.";
            say("○ ", theme.warning, text.into());
        }
        Connection::Ready { demo: true, why, .. } => {
            say("○ ", theme.warning, format!("No model is connected: {why}."));
            let is_small = rows < ROOMY;
            lines.extend(ways(state, columns, is_small));
            if !is_small {
                let text = "Press a digit; nothing needs a restart. ANTHROPIC_API_KEY, OPENAI_API_KEY or \
                            OPENROUTER_API_KEY in the environment does it too.";
                lines.extend(wrap_lines(
                    &[Span::styled(text, theme.dim())],
                    columns,
                    &[Span::raw("  ")],
                    &[Span::raw("  ")],
                ));
            }
        }
        Connection::Failed(e) => {
            say("■ ", theme.error, e.message.clone());
            say("  ", theme.dim, format!("fix: {}", state.look.more.remedies.word(&e.remedy)));
            if state.session.can_connect {
                lines.extend(ways(state, columns, rows < ROOMY));
            }
        }
    }
    lines
}

/// The ways to a model, with their digits: one a line, or two where rows are few.
fn ways(state: &State, columns: usize, is_small: bool) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    // A digit is a part of the message once there is one.
    let digits = if state.composer.is_empty() { theme.fg(theme.accent) } else { theme.dim() };
    let one = |number: usize, way: Way| {
        vec![Span::styled(format!("  {}  ", number + 1), digits), Span::styled(way.title(), theme.fg(theme.text))]
    };
    if is_small {
        let half = columns / 2;
        return Way::ALL
            .chunks(2)
            .enumerate()
            .map(|(row, pair)| {
                let mut spans = Vec::new();
                for (at, way) in pair.iter().enumerate() {
                    let title = fit(way.title(), half.saturating_sub(4));
                    spans.push(Span::styled(format!(" {} ", row * 2 + at + 1), digits));
                    let gap = " ".repeat(half.saturating_sub(3 + width(&title)));
                    spans.push(Span::styled(format!("{title}{gap}"), theme.fg(theme.text)));
                }
                Line::from(spans)
            })
            .collect();
    }
    let line = |(number, way): (usize, Way)| {
        let mut spans = one(number, way);
        let gap = 30_usize.saturating_sub(5 + width(way.title()));
        let room = columns.saturating_sub(30);
        if room >= 12 {
            spans.push(Span::styled(format!("{}{}", " ".repeat(gap), fit(way.about(), room)), theme.dim()));
        }
        Line::from(spans)
    };
    Way::ALL.into_iter().enumerate().map(line).collect()
}

fn folder(state: &State, columns: usize) -> Line<'static> {
    let theme = &state.look.theme;
    let branch = state.session.branch.as_ref().map_or(String::new(), |branch| format!(" · {branch}"));
    let path = from_home(&state.session.workspace, state.session.home.as_deref());
    let text = format!("{path}{branch}");
    Line::from(vec![
        Span::styled("  in ", theme.dim()),
        Span::styled(fit(&visible(&text), columns.saturating_sub(5)), theme.fg(theme.text)),
    ])
}

/// The last Sessions, one a line.
fn recent(state: &State, columns: usize) -> Vec<Line<'static>> {
    let theme = &state.look.theme;
    let mut lines = vec![Line::styled("  Recent, with /resume", theme.dim())];
    for it in &state.session.recent {
        let seconds = u64::try_from(it.last_activity.as_second()).unwrap_or(0);
        let age = age(state.now.wall.saturating_sub(Duration::from_secs(seconds)));
        let room = columns.saturating_sub(4 + width(&age) + 2);
        let title = fit(&visible(it.title()), room);
        lines.push(Line::from(vec![
            Span::styled("  · ", theme.fg(theme.accent)),
            Span::styled(title, theme.fg(theme.text)),
            Span::styled(format!("  {age}"), theme.dim()),
        ]));
    }
    lines
}

/// `2h`: how long ago something was.
fn age(time: Duration) -> String {
    match time.as_secs() {
        0..60 => "now".to_owned(),
        60..3_600 => format!("{}m", time.as_secs() / 60),
        3_600..86_400 => format!("{}h", time.as_secs() / 3_600),
        86_400..172_800 => "yesterday".to_owned(),
        seconds => format!("{}d", seconds / 86_400),
    }
}
