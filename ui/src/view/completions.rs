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
/// Columns of the names.
const NAMES: usize = 30;

/// The rows of a list of so many completions, with the edge above it.
pub(super) fn height(completions: usize) -> usize {
    if completions == 0 { 0 } else { completions.min(ROWS) + 1 }
}

pub(super) fn draw(state: &mut State, canvas: &mut Canvas, composer: Rect) {
    let completions = state.composer.completions(state.uses.counts());
    if completions.is_empty() {
        return;
    }
    // The header and one row of the conversation stay visible.
    let kept = if canvas.area().height > composer.bottom() + 1 || !state.printing.inline { 2 } else { 0 };
    let room = composer.y.saturating_sub(kept);
    let wanted = u16::try_from(height(completions.len())).unwrap_or(u16::MAX);
    // The edge above the rows gives way before a row does.
    let edge = u16::from(wanted <= room);
    let rows = wanted.min(room + 1) - 1;
    let selected = state.composer.selected(&completions);
    let top = selected.map_or(0, |at| (at + 1).saturating_sub(usize::from(rows)));
    let columns = composer.width;
    let area = Rect { y: composer.y.saturating_sub(rows), height: rows, ..composer };
    if edge == 1 {
        let above = Rect { y: area.y.saturating_sub(1), height: 1, ..area };
        canvas.fill(above, state.look.theme.base());
        let place = match selected {
            Some(at) => format!(" {} of {} ", at + 1, completions.len()),
            None => format!(" {} ", completions.len()),
        };
        let rule = "─".repeat(usize::from(columns).saturating_sub(width(&place) + 1));
        let theme = &state.look.theme;
        let line = vec![
            Span::styled(rule, theme.fg(theme.border)),
            Span::styled(place, theme.dim()),
            Span::styled("─", theme.fg(theme.border)),
        ];
        canvas.line(Line::from(line), above);
    }
    canvas.fill(area, state.look.theme.base());
    // The names of one list are of one kind. Those of a list of numbers need little room.
    let wide =
        completions.iter().map(|it| if let Completion::Argument(it) = it { width(&it.value) + 3 } else { NAMES });
    let names = wide.max().unwrap_or(NAMES).min(NAMES).min(usize::from(columns) * 2 / 5);
    for (row, (at, completion)) in (area.y..area.bottom()).zip(completions.iter().enumerate().skip(top)) {
        let line = line(completion, names, usize::from(columns), state);
        let at_row = Rect { y: row, height: 1, ..area };
        let is_selected = selected == Some(at);
        let style = if is_selected { state.look.theme.selected() } else { state.look.theme.base() };
        canvas.tint(at_row, style);
        canvas.region("option", at_row, || line.to_string());
        canvas.region_state(RegionState { focused: false, selected: is_selected });
        canvas.line(line, at_row);
    }
}

fn line(completion: &Completion, names: usize, columns: usize, state: &State) -> Line<'static> {
    let theme = &state.look.theme;
    match completion {
        Completion::Command(slash, spec) => {
            let name = format!("/{} {}", slash.name, slash.args);
            match spec.when.unavailable(state.session_kind(), state.turn_state()) {
                Some(why) => {
                    let about = format!("{why} · {}", spec.about);
                    described(&name, &about, "", (names, columns), (theme.dim(), theme.dim()), theme)
                }
                None => {
                    let key = state.keys.map.key_of(spec.action).unwrap_or_default();
                    described(
                        &name,
                        spec.about,
                        &key,
                        (names, columns),
                        (theme.fg(theme.accent), theme.fg(theme.text)),
                        theme,
                    )
                }
            }
        }
        Completion::Offer(offer) => {
            let name = format!("/{} {}", offer.name, offer.hint);
            let kind = offer.kind.name();
            described(
                &name,
                &offer.about,
                kind,
                (names, columns),
                (theme.fg(theme.accent), theme.fg(theme.text)),
                theme,
            )
        }
        Completion::Argument(candidate) => {
            let styles = (theme.fg(theme.accent), theme.fg(theme.text));
            described(&visible(&candidate.value), &visible(&candidate.about), "", (names, columns), styles, theme)
        }
        Completion::File(path) => {
            let of_folder = path.trim_end_matches('/').rsplit_once('/').filter(|_| !path.contains("://"));
            let (folder, name) = of_folder.unwrap_or(("", path.as_str()));
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
    (names, columns): (usize, usize),
    (of_name, of_about): (Style, Style),
    theme: &Theme,
) -> Line<'static> {
    // A blank stays before the description.
    let name = fit(&format!(" {name}"), names.saturating_sub(1).min(columns));
    let pad = " ".repeat(names.saturating_sub(width(&name)));
    let room = columns.saturating_sub(names + width(tail) + 3);
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
