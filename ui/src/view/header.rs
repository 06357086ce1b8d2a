//! The header: where pixir works on the left, and with what on the right.

use pixir_core::{PLAN_ROLE, Tier};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::mode_colour;
use crate::render::agents::breadcrumb;
use crate::render::text::{fit, span_width, visible, width};
use crate::state::{Connection, State};
use crate::terminal::canvas::Canvas;

/// Columns that the folder, the branch and the name get before the right side is abbreviated.
const LEFT: usize = 24;
const NAME: &str = " pixir ";

/// ` pixir  ~/src/slugify · main* · fix unicode        sonnet-5 · high · ask · sandbox ns `
pub(super) fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    let columns = usize::from(area.width);
    let between = || Span::styled(" · ", theme.fg(theme.border));
    let settings = &state.history.settings;
    let mode = match &settings.role {
        _ if state.session.read_only => "read-only".to_owned(),
        // While the Session plans, nothing is changed, whatever its mode is afterwards.
        Some(role) if role == PLAN_ROLE => role.clone(),
        Some(role) => format!("{} · {}", visible(role), settings.mode.name()),
        None => settings.mode.name().to_owned(),
    };
    let mode = Span::styled(mode, theme.fg(mode_colour(theme, state)));
    let model = model(state);
    let effort = settings.effort.as_deref().filter(|_| is_connected(state)).map(visible);
    // What is left for the sandbox, once the rest of the right side is there.
    let fixed = width(NAME) + 1 + width(&model) + 3 + width(&mode.content) + 1;
    let effort_width = effort.as_ref().map_or(0, |it| 3 + width(it));
    let sandbox = sandbox_name(state, columns.saturating_sub(fixed + effort_width + LEFT));
    let mut right: Vec<Span<'static>> = Vec::new();
    let sandbox_width = sandbox.map_or(0, |(text, _)| 3 + width(text));
    let room = columns.saturating_sub(width(NAME) + 5 + width(&mode.content) + sandbox_width);
    right.push(Span::styled(fit(&model, room.min((columns / 2).max(12))), theme.fg(theme.text)));
    if let Some(effort) = effort.filter(|_| columns >= fixed + effort_width + sandbox_width + 8) {
        right.extend([between(), Span::styled(effort, theme.dim())]);
    }
    right.extend([between(), mode]);
    if let Some((text, style)) = sandbox {
        right.extend([between(), Span::styled(text, style)]);
    }
    right.push(Span::raw(" "));
    let room = columns.saturating_sub(width(NAME) + 1 + span_width(&right) + 1);
    let mut left = vec![Span::styled(NAME, theme.fg(theme.accent).bold()), Span::raw(" ")];
    left.extend(place(state, room));
    let gap = columns.saturating_sub(span_width(&left) + span_width(&right));
    left.push(Span::raw(" ".repeat(gap)));
    left.extend(right);
    canvas.line(Line::from(left), area);
}

pub(super) fn is_connected(state: &State) -> bool {
    matches!(state.session.connection, Connection::Ready { .. }) && !state.history.settings.model.is_empty()
}

/// The model's name, without the server and the maker.
fn model(state: &State) -> String {
    match &state.session.connection {
        Connection::Failed(_) => "no model".to_owned(),
        Connection::Ready { .. } if state.history.settings.provider == "demo" => state.model_name(),
        Connection::Ready { .. } if is_connected(state) => {
            let model = state.history.settings.model.as_str();
            visible(model.rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(model))
        }
        Connection::Starting { .. } | Connection::Ready { .. } => "…".to_owned(),
    }
}

/// The workspace, the branch and the Session's name, as many as fit.
fn place(state: &State, room: usize) -> Vec<Span<'static>> {
    let theme = &state.look.theme;
    let path = &state.session.workspace;
    let folder = path.file_name().map_or_else(|| path.display().to_string(), |it| it.to_string_lossy().into_owned());
    // Only below the home folder is the way to it worth its room.
    let above = state.session.home.as_ref().and_then(|home| path.strip_prefix(home).ok()?.parent());
    let above = above.map_or_else(String::new, |it| match it.display().to_string() {
        it if it.is_empty() => "~/".to_owned(),
        it => format!("~/{it}/"),
    });
    let (above, folder) = (visible(&above), visible(&folder));
    // The mark says that something is not committed, as prompts of shells do.
    let mark = if state.session.has_changes { "*" } else { "" };
    let branch = state.session.branch.as_deref().map(|branch| format!("{}{mark}", visible(branch)));
    let inside = state.session.agents.is_inside().then(|| visible(&breadcrumb(&state.session.agents.at)));
    let name = inside.or_else(|| state.history.settings.name.as_deref().map(visible));
    // Whose screen this is matters more than the branch.
    let branch = branch.filter(|_| !state.session.agents.is_inside());
    let rest: usize = [&branch, &name].into_iter().flatten().map(|it| 3 + width(it)).sum();
    let above = if width(&above) + width(&folder) + rest <= room { above } else { String::new() };
    // Inside of an agent its name matters more than the folder, which is that of the Session.
    let is_tight = state.session.agents.is_inside() && width(&folder) + rest > room;
    let mut left = room;
    let mut spans = Vec::new();
    let mut add = |text: &str, style: Style| {
        let text = fit(text, left);
        left = left.saturating_sub(width(&text));
        spans.push(Span::styled(text, style));
    };
    if is_tight {
        add(name.as_deref().unwrap_or_default(), theme.fg(theme.accent));
        return spans;
    }
    add(&above, theme.dim());
    add(&folder, theme.fg(theme.text));
    for (text, style) in [(branch, theme.dim()), (name, theme.fg(theme.accent))] {
        if let Some(text) = text {
            add(" · ", theme.fg(theme.border));
            add(&text, style);
        }
    }
    spans
}

/// The sandbox, as long as there is room for it; that there is none is said in full.
pub(super) fn sandbox_name(state: &State, room: usize) -> Option<(&'static str, Style)> {
    let theme = &state.look.theme;
    let (long, short) = match state.session.sandbox? {
        Tier::Namespaces => ("sandbox ns", "ns"),
        Tier::Landlock => ("sandbox ll", "ll"),
        Tier::None => return Some(("no sandbox", theme.fg(theme.warning))),
    };
    Some((if room >= 3 + long.len() { long } else { short }, theme.dim()))
}
