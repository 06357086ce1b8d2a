//! The end of pixir's own log file, filtered as the user types.

use std::path::Path;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Effect, Outcome, Paint, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::overlay::narrow::Narrow;
use crate::render::text::{fit, fit_path, from_home, visible, width, wrap_lines};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::terminal::key::KeyEvent;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (140, 40);

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    const ALL: [Level; 5] = [Level::Error, Level::Warn, Level::Info, Level::Debug, Level::Trace];

    fn name(self) -> &'static str {
        match self {
            Level::Error => "errors",
            Level::Warn => "warnings and errors",
            Level::Info => "info and above",
            Level::Debug => "debug and above",
            Level::Trace => "everything",
        }
    }
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// What was read of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogTail {
    pub(crate) path: String,
    pub(crate) lines: Vec<LogLine>,
    /// Why it could not be read.
    pub(crate) error: Option<String>,
}

#[derive(Debug)]
pub(crate) struct LogView {
    tail: Option<LogTail>,
    narrow: Narrow,
    /// The least important level that is shown.
    level: Level,
    /// The end of the file stays in sight.
    follows: bool,
    /// The first line on the screen, of those that match.
    top: usize,
    /// Rows of the list in the last frame.
    height: usize,
}

impl LogView {
    pub(crate) fn new(text: &str) -> LogView {
        let narrow = Narrow { letters: text.to_owned(), ..Narrow::default() };
        LogView { tail: None, narrow, level: Level::Trace, follows: true, top: 0, height: 0 }
    }

    /// Takes what was read of the file.
    pub(crate) fn show(&mut self, tail: &LogTail) {
        self.tail = Some(tail.clone());
    }

    /// The lines that match the level and the words, each of which must be in the line.
    fn matches(&self) -> Vec<&LogLine> {
        let words: Vec<String> = self.narrow.letters.split_whitespace().map(str::to_lowercase).collect();
        let lines = self.tail.iter().flat_map(|tail| &tail.lines);
        let is_match = |it: &&LogLine| {
            let text = it.text.to_lowercase();
            it.level <= self.level && words.iter().all(|word| text.contains(word))
        };
        lines.filter(is_match).collect()
    }
}

impl View for LogView {
    fn title(&self) -> &'static str {
        "Log"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Log, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::ReadLog]
    }

    fn follows(&self) -> bool {
        true
    }

    fn follow(&mut self) -> Vec<Effect> {
        vec![Effect::FollowLog]
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let is_typed = self.narrow.key(key);
        self.follows |= is_typed;
        is_typed.then_some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        match action {
            LayerAction::CloseOverlay | LayerAction::Choose => return Outcome::Close,
            LayerAction::CycleLogLevel => {
                let at = Level::ALL.iter().position(|it| *it == self.level).unwrap_or(0);
                self.level = Level::ALL[(at + 1) % Level::ALL.len()];
                self.follows = true;
            }
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::OverlayPageUp => self.scroll(-page),
            LayerAction::OverlayPageDown => self.scroll(page),
            LayerAction::OverlayStart => (self.top, self.follows) = (0, false),
            LayerAction::OverlayEnd => self.follows = true,
            _ => {}
        }
        Outcome::Stay
    }

    fn scroll(&mut self, by: isize) {
        let last = self.matches().len().saturating_sub(self.height);
        let from = if self.follows { last } else { self.top };
        self.top = from.saturating_add_signed(by).min(last);
        self.follows = self.top == last && by > 0;
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let level = [
            (LayerAction::CycleLogLevel, self.level.name()),
            (LayerAction::OverlayEnd, "follow"),
            (LayerAction::CloseOverlay, "close"),
        ];
        let keys = format!("type to filter · {}", paint.hints(&level));
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Log", &keys, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        let [head, list] = [
            Rect { y: list.y.saturating_sub(1), height: 1.min(list.height), ..list },
            Rect { height: list.height, ..list },
        ];
        self.height = usize::from(list.height);
        let columns = usize::from(list.width);
        let Some(tail) = &self.tail else {
            canvas.line(Line::styled("reading…", theme.dim()), Rect { height: 1.min(list.height), ..list });
            return;
        };
        let matches = self.matches();
        let last = matches.len().saturating_sub(self.height);
        let top = if self.follows { last } else { self.top.min(last) };
        let state = match &tail.error {
            Some(why) => format!("{} cannot be read: {why}", tail.path),
            None => {
                let follows = if self.follows { "following · " } else { "" };
                let count = format!("{} of {} lines · {follows}", matches.len(), tail.lines.len());
                let path =
                    fit_path(&from_home(Path::new(&tail.path), paint.home), columns.saturating_sub(width(&count)));
                count + &path
            }
        };
        canvas.line(Line::styled(fit(&visible(&state), columns), theme.dim()), head);
        if matches.is_empty() {
            let text = if !tail.lines.is_empty() {
                "No matches".to_owned()
            } else {
                "Nothing is logged: all went well. PIXIR_LOG=info logs each call from the next start.".to_owned()
            };
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], columns, &[], &[]);
            for (y, line) in (list.y..list.bottom()).zip(lines) {
                canvas.line(line, Rect { y, height: 1, ..list });
            }
        }
        for (y, it) in (list.y..list.bottom()).zip(matches.into_iter().skip(top)) {
            let row = Rect { y, height: 1, ..list };
            canvas.region("option", row, || it.text.clone());
            canvas.region_state(RegionState { focused: false, selected: false });
            canvas.line(line(it, columns, theme), row);
        }
        self.top = top;
    }
}

fn line(it: &LogLine, columns: usize, theme: &Theme) -> Line<'static> {
    let (mark, colour) = match it.level {
        Level::Error => ("✗ ", theme.error),
        Level::Warn => ("! ", theme.warning),
        Level::Info => ("· ", theme.text),
        Level::Debug | Level::Trace => ("  ", theme.dim),
    };
    let text = visible(&it.text);
    // The time of the day is enough; the date stands in the file.
    let text = match text.split_once('T') {
        Some((date, rest)) if date.len() == 10 => match rest.split_once("Z ") {
            Some((time, rest)) => format!("{} {}", time.get(..8).unwrap_or(time), rest.trim_start()),
            None => text,
        },
        _ => text,
    };
    Line::from(vec![
        Span::styled(mark, theme.fg(colour)),
        Span::styled(
            fit(&text, columns.saturating_sub(2)),
            theme.fg(if it.level <= Level::Info { theme.text } else { theme.dim }),
        ),
    ])
}
