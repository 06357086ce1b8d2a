//! What completes the word at the caret: a list above the composer.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::composer::Completion;
use crate::render::text::{fit, visible, width};
use crate::state::State;
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// The most rows on the screen.
const ROWS: usize = 8;
/// The widest list, in columns.
const WIDEST: u16 = 100;
/// Columns of the names.
const NAMES: usize = 30;

pub(super) fn draw(state: &mut State, canvas: &mut Canvas, composer: Rect) {
    let completions = state.composer.completions();
    if completions.is_empty() {
        return;
    }
    // The header and one row of the conversation stay visible.
    let kept = if canvas.area().height > composer.bottom() + 1 || !state.printing.inline { 2 } else { 0 };
    let rows = u16::try_from(completions.len().min(ROWS)).unwrap_or(8).min(composer.y.saturating_sub(kept));
    let selected = state.composer.selected(&completions);
    let top = selected.map_or(0, |at| (at + 1).saturating_sub(usize::from(rows)));
    let columns = composer.width.saturating_sub(4).min(WIDEST);
    let area = Rect { x: composer.x + 2, y: composer.y.saturating_sub(rows), width: columns, height: rows };
    canvas.fill(area, state.look.theme.base());
    for (row, (at, completion)) in (area.y..area.bottom()).zip(completions.iter().enumerate().skip(top)) {
        let line = line(completion, usize::from(columns), state);
        let at_row = Rect { y: row, height: 1, ..area };
        let is_selected = selected == Some(at);
        let style = if is_selected { state.look.theme.selected() } else { Style::new().bg(state.look.theme.panel) };
        canvas.tint(at_row, style);
        canvas.region("option", at_row, || line.to_string());
        canvas.region_state(RegionState { focused: false, selected: is_selected });
        canvas.line(line, at_row);
    }
}

fn line(completion: &Completion, columns: usize, state: &State) -> Line<'static> {
    let theme = &state.look.theme;
    match completion {
        Completion::Command(slash, spec) => {
            let name = format!("/{} {}", slash.name, slash.args);
            match spec.when.unavailable(state.session_kind(), state.turn_state()) {
                Some(why) => {
                    let about = format!("{why} · {}", spec.about);
                    described(&name, &about, "", columns, (theme.dim(), theme.dim()), theme)
                }
                None => {
                    let key = state.keys.map.key_of(spec.action).unwrap_or_default();
                    described(&name, spec.about, &key, columns, (theme.fg(theme.accent), theme.fg(theme.text)), theme)
                }
            }
        }
        Completion::Offer(offer) => {
            let name = format!("/{} {}", offer.name, offer.hint);
            let kind = offer.kind.name();
            described(&name, &offer.about, kind, columns, (theme.fg(theme.accent), theme.fg(theme.text)), theme)
        }
        Completion::Argument(candidate) => {
            let styles = (theme.fg(theme.accent), theme.fg(theme.text));
            described(&visible(&candidate.value), &visible(&candidate.about), "", columns, styles, theme)
        }
        Completion::File(path) => {
            let (folder, name) =
                path.trim_end_matches('/').rsplit_once('/').map_or(("", path.as_str()), |(f, n)| (f, n));
            let name = if path.ends_with('/') && !name.ends_with('/') { format!("{name}/") } else { name.to_owned() };
            Line::from(vec![
                Span::styled(format!(" {}", visible(&name)), theme.fg(theme.accent)),
                Span::styled(
                    format!("  {}", fit(&visible(folder), columns.saturating_sub(width(&name) + 4))),
                    theme.dim(),
                ),
            ])
        }
    }
}

/// A name, what it does, and at the right its key.
fn described(
    name: &str,
    about: &str,
    tail: &str,
    columns: usize,
    (of_name, of_about): (Style, Style),
    theme: &Theme,
) -> Line<'static> {
    let name = fit(&format!(" {name}"), NAMES.min(columns));
    let pad = " ".repeat(NAMES.saturating_sub(width(&name)));
    let room = columns.saturating_sub(NAMES + width(tail) + 3);
    let about = fit(about, room);
    let gap = " ".repeat(room.saturating_sub(width(&about)) + 2);
    Line::from(vec![
        Span::styled(name, of_name),
        Span::raw(pad),
        Span::styled(about, of_about),
        Span::raw(gap),
        Span::styled(tail.to_owned(), theme.dim()),
    ])
}
