//! The HUD: what drawing costs, each figure beside its budget.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::input::action::Action;
use crate::overlay::panel;
use crate::render::figures::{percentile, short};
use crate::state::State;
use crate::terminal::canvas::Canvas;

const COLUMNS: u16 = 52;

/// A figure: its name, value and budget, and whether it is within.
struct Figure {
    name: &'static str,
    value: String,
    budget: &'static str,
    is_within: bool,
}

pub(super) fn draw(state: &State, canvas: &mut Canvas, area: Rect) {
    let theme = &state.look.theme;
    let figures = figures(state);
    let rows = u16::try_from(figures.len()).unwrap_or(u16::MAX).saturating_add(2);
    let wide = COLUMNS.min(area.width);
    let at = Rect { x: area.right() - wide, y: area.y, width: wide, height: rows.min(area.height) };
    let key = state.keys.map.key_of(Action::ToggleHud).unwrap_or_default();
    let inner = panel(canvas, at, "HUD", &format!("{key} close"), theme);
    for (y, it) in (inner.y..inner.bottom()).zip(figures) {
        let colour = if it.is_within { theme.text } else { theme.warning };
        let line = Line::from(vec![
            Span::styled(format!("{:<14}", it.name), theme.dim()),
            Span::styled(format!("{:<20}", it.value), theme.fg(colour)),
            Span::styled(it.budget, theme.dim()),
        ]);
        canvas.line(line, Rect { y, height: 1, ..inner });
    }
}

/// The budgets are those of docs/performance.md.
fn figures(state: &State) -> Vec<Figure> {
    let stats = &state.stats;
    let counts = stats.counts;
    let figure = |name, value, budget, is_within| Figure { name, value, budget, is_within };
    let milliseconds = |micros: u32| format!("{:.2}", f64::from(micros) / 1e3);
    let both = |samples: &std::collections::VecDeque<u32>| {
        let (p50, p99) = (percentile(samples.iter().copied(), 50), percentile(samples.iter().copied(), 99));
        (format!("p50 {}  p99 {}", milliseconds(p50), milliseconds(p99)), p99)
    };
    let (frames, slowest_frame) = both(&stats.frames);
    let (echoes, slowest_echo) = both(&stats.echoes);
    let a_frame = counts.bytes / counts.frames.max(1);
    let (cells, rows, bytes) = state.transcript.cached();
    let resident = stats.resident.map_or("not measured here".to_owned(), |it| format!("{:.1} MB", it as f64 / 1e6));
    let awake = stats.wakes_a_minute(state.now.at);
    vec![
        figure("frame ms", frames, "p99 ≤ 8", slowest_frame <= 8_000),
        figure("key to paint", echoes, "p99 ≤ 4 ms", slowest_echo <= 4_000),
        figure("bytes a frame", format!("{a_frame}, {} in all", short(counts.bytes)), "≤ 4k", a_frame <= 4_096),
        figure("frames", short(counts.frames), "≤ 30 a second", true),
        figure("laid out", format!("{cells} of {}", state.transcript.len()), "those in view", true),
        figure(
            "row cache",
            format!("{:.2} MB, {} rows", bytes as f64 / 1e6, short(rows)),
            "≤ 8 MB",
            bytes <= 8_000_000,
        ),
        figure("wake-ups", format!("{awake} a minute"), "0 when idle", true),
        figure("memory", resident, "≤ 25 MB idle", stats.resident.is_none_or(|it| it <= 25_000_000)),
    ]
}
