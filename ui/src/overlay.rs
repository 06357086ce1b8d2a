//! Layers over the transcript: the top one has the keys. Their steps stay inside them; what they want comes out as an Act.
//!
//! A new one is a file here, its `mod` line, and a line in the action table that opens it.

use std::fmt::Debug;

use pixir_core::Input;
use pixir_core::changes::FileDiff;
use pixir_core::event::JobState;
use pixir_core::history::History;
use pixir_core::skills::Skill;
use pixir_core::store::Summary;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType};

use crate::render::highlight::Highlighter;
use crate::render::text::width;
use crate::state::{Effect, State};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;
use crate::transcript::LayoutKey;

pub(crate) mod approval; // a question in full
pub(crate) mod compaction; // a summary before it is applied
pub(crate) mod diff; // what was changed
pub(crate) mod form; // questions of the model
pub(crate) mod help; // keys and commands
pub(crate) mod jobs; // what runs in the background
pub(crate) mod narrow; // one row of many, narrowed by typing
pub(crate) mod outline; // the conversation, turn by turn
pub(crate) mod palette; // everything that can be done
pub(crate) mod picker; // one of many
pub(crate) mod restore; // files that are to be set back
pub(crate) mod tree; // turns and branches

/// What a layer wants done.
pub(crate) type Act = Box<dyn FnOnce(&mut State) -> Vec<Effect>>;

/// What a layer makes of a key.
pub(crate) enum Reply {
    Stay,
    Close,
    Act(Act),
    CloseAndAct(Act),
}

/// The command, as if it had been typed.
pub(crate) fn command(text: impl Into<String>) -> Act {
    let text = text.into();
    Box::new(move |state| crate::update::run_slash(state, &text))
}

/// The Input, to the Session.
pub(crate) fn send(input: Input) -> Act {
    Box::new(move |_| vec![Effect::Send(input)])
}

/// What layers are told; each takes what is for it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Told<'a> {
    /// Sessions of the workspace; the one that is open; whose forks were asked for.
    Sessions {
        all: &'a [Summary],
        current: Option<&'a str>,
        forks_of: Option<&'a str>,
    },
    Models {
        all: &'a [String],
        current: &'a str,
    },
    Skills(&'a [Skill]),
    Diffs {
        turn: &'a [FileDiff],
        session: &'a [FileDiff],
    },
    Jobs(&'a [JobState]),
    /// Names and pins have changed.
    Labels(&'a History),
    /// A call has its result, or the whole Turn has ended: nobody waits for an answer any more.
    CallEnded(&'a str),
    TurnEnded,
}

/// What drawing leans on.
#[derive(Clone, Copy)]
pub(crate) struct Paint<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) highlighter: &'a Highlighter,
    /// Grows when anything looks otherwise than before.
    pub(crate) generation: u64,
}

/// A layer.
pub(crate) trait Overlay: Debug {
    /// What it is, in a word or two.
    fn title(&self) -> &'static str;
    /// A key, while this layer is on top.
    fn key(&mut self, key: KeyEvent) -> Reply;
    /// The wheel, or a page of rows.
    fn scroll(&mut self, by: isize);
    /// Draws it over everything below.
    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>);

    /// What is asked for when it opens.
    fn wants(&self, _: &State) -> Vec<Effect> {
        Vec::new()
    }
    /// Something came that may be for it.
    fn hear(&mut self, _: Told<'_>) {}
    /// It is of no use any more after this.
    fn is_over(&self, _: Told<'_>) -> bool {
        false
    }
    /// Text that was pasted.
    fn paste(&mut self, _: &str) {}
    /// Done when the person leaves it without choosing.
    fn on_close(&mut self) -> Option<Act> {
        None
    }
    /// An Enter that was meant for something else is not for it: it has to be in sight for a moment.
    fn must_be_seen(&self) -> bool {
        false
    }
    /// Somebody waits for an answer that it gives.
    fn is_question(&self) -> bool {
        false
    }
    /// It came up while somebody wrote: the line keeps the keys until it is turned to.
    fn is_aside(&self) -> bool {
        false
    }
    /// It is turned to.
    fn turn_to(&mut self) {}
    /// It has the keys, but whoever wrote before it came up goes on writing.
    fn give_way(&mut self) {}
    /// The call whose question it has shown to its end.
    fn has_shown(&self) -> Option<&str> {
        None
    }
}

/// Lines that are laid out once for a width and a look.
#[derive(Debug, Default)]
pub(crate) struct Laid(Option<(LayoutKey, Vec<Line<'static>>)>);

impl Laid {
    pub(crate) fn lines(&mut self, key: LayoutKey, make: impl FnOnce(usize) -> Vec<Line<'static>>) -> &[Line<'static>] {
        if self.0.as_ref().is_none_or(|(known, _)| *known != key) {
            self.0 = Some((key, make(key.columns)));
        }
        self.0.as_ref().map_or(&[], |(_, lines)| lines)
    }
}

/// Text that can be scrolled.
#[derive(Debug, Default)]
pub(crate) struct Page {
    top: usize,
    /// Lines below the first page, and lines of a page, as it was last drawn.
    most: usize,
    height: usize,
    text: Laid,
}

impl Page {
    pub(crate) fn scroll(&mut self, by: isize) {
        self.top = self.top.saturating_add_signed(by).min(self.most);
    }

    /// The last line is in sight.
    pub(crate) fn is_at_end(&self) -> bool {
        self.top >= self.most
    }

    /// The usual keys of a page; false when it was none of them.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::PageUp => self.scroll(-self.page()),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.page()),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = self.most,
            _ => return false,
        }
        true
    }

    /// A line of the page before stays in sight.
    fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    /// Draws the lines that are in sight of those that are made for so many columns; they are kept until the width or the
    /// look is another, or the page is.
    pub(crate) fn draw(
        &mut self,
        canvas: &mut Canvas,
        area: Rect,
        paint: Paint<'_>,
        make: impl FnOnce(usize) -> Vec<Line<'static>>,
    ) {
        let key = LayoutKey { columns: usize::from(area.width), generation: paint.generation };
        let lines = self.text.lines(key, make);
        self.height = usize::from(area.height);
        self.most = lines.len().saturating_sub(usize::from(area.height));
        self.top = self.top.min(self.most);
        for (row, line) in (area.y..area.bottom()).zip(lines.iter().skip(self.top)) {
            canvas.line(line, Rect { y: row, height: 1, ..area });
        }
    }
}

/// A framed area with a title above and keys below, cleared.
pub(crate) fn panel(canvas: &mut Canvas, area: Rect, title: &str, keys: &str, theme: &Theme) -> Rect {
    let keys = whole_items(keys, usize::from(area.width).saturating_sub(4));
    if canvas.is_bare {
        canvas.fill(area, theme.base());
        canvas.line(Line::styled(title.to_owned(), theme.bold()), Rect { height: area.height.min(1), ..area });
        let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        canvas.line(Line::styled(keys, theme.dim()), last);
        return Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(2), ..area };
    }
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.fg(theme.accent))
        .style(theme.base())
        .title(Line::styled(format!(" {title} "), theme.bold()))
        .title_bottom(Line::styled(format!(" {keys} "), theme.dim()));
    let inner = block.inner(area);
    canvas.fill(area, theme.base());
    canvas.render_widget(block, area);
    Rect {
        x: inner.x + u16::from(inner.width > 2),
        width: inner.width.saturating_sub(2).max(u16::from(inner.width > 0)),
        ..inner
    }
}

/// As many keys as fit; the first are the ones that are needed most.
fn whole_items(keys: &str, columns: usize) -> String {
    let mut shown = String::new();
    for item in keys.split(" · ") {
        let gap = if shown.is_empty() { "" } else { " · " };
        if width(&shown) + width(gap) + width(item) > columns {
            break;
        }
        shown.push_str(gap);
        shown.push_str(item);
    }
    shown
}

/// At most this large, in the middle.
pub(crate) fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (width, height) = (width.min(area.width), height.min(area.height));
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
