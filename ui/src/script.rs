//! The interface without a terminal: the same App, drawn into a buffer, pressed by a script.

use std::time::Duration;

use pixir_core::Result;
use pixir_core::event::Status;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::app::{App, Launch};
use crate::canvas::Canvas;
use crate::overlay::Overlay;
use crate::view;

/// How long nothing may happen before a script is told that it waits in vain.
const PATIENCE: Duration = Duration::from_secs(20);

/// A whole interface, its keys pressed by a script, its screen kept in memory.
pub struct Driver {
    app: App,
    canvas: Canvas,
    size: (u16, u16),
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// An interface of this size. Questions can be answered as soon as they were drawn.
    ///
    /// # Errors
    /// `CONFIG_INVALID` when there is no such theme.
    pub fn new(launch: Launch, columns: u16, rows: u16) -> Result<Driver> {
        let mut app = App::new(launch)?;
        app.state.arming = Duration::ZERO;
        Ok(Driver { app, canvas: Canvas::default(), size: (columns, rows) })
    }

    /// Types text and presses named keys: `hello<Enter>`, `<Esc>`, `<C-c>`, `<A-y>`, `<S-Tab>`, `<PgUp>`; `<lt>` is `<`.
    pub async fn keys(&mut self, script: &str) {
        let mut rest = script;
        while let Some(c) = rest.chars().next() {
            let named = rest
                .strip_prefix('<')
                .and_then(|r| r.split_once('>'))
                .and_then(|(name, after)| Some((key_of(name)?, after)));
            let key = match named {
                Some((key, after)) => {
                    rest = after;
                    key
                }
                None => {
                    rest = &rest[c.len_utf8()..];
                    KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)
                }
            };
            self.app.press(key).await;
            self.draw();
        }
    }

    /// Pastes text.
    pub fn paste(&mut self, text: &str) {
        crate::update::on_paste(&mut self.app.state, text);
        self.draw();
    }

    /// Waits until nothing moves any more: no Turn runs, or one waits for an answer.
    ///
    /// # Panics
    /// When nothing happens for 20 s; the message is the screen.
    pub async fn until_idle(&mut self) {
        loop {
            self.app.settle().await;
            self.draw();
            let is_question = |layer: &Box<dyn Overlay>| layer.is_question();
            let asks = !self.app.state.questions.is_empty() || self.app.state.overlays.iter().any(is_question);
            let waits = asks && self.app.state.status == Status::Asking;
            let open = self.app.is_done()
                || self.app.state.session.is_some()
                || matches!(self.app.state.connection, crate::state::Connection::Failed(_));
            if self.app.pending == 0 && open && (waits || !self.app.state.is_busy()) {
                break;
            }
            self.listen("until idle").await;
        }
        self.app.keep();
        self.draw();
    }

    /// Waits until the screen shows this.
    ///
    /// # Panics
    /// When nothing happens for 20 s; the message is the screen.
    pub async fn until(&mut self, text: &str) {
        loop {
            self.draw();
            if self.screen().contains(text) {
                return;
            }
            self.listen(text).await;
        }
    }

    async fn listen(&mut self, what: &str) {
        if tokio::time::timeout(PATIENCE, self.app.listen()).await.is_err() {
            self.draw();
            panic!("waited for {what:?} in vain; the screen:\n{}", self.screen());
        }
    }

    fn draw(&mut self) {
        self.canvas.begin(self.size.0, self.size.1);
        view::draw(&mut self.app.state, &mut self.canvas);
        self.app.fetch();
    }

    /// Changes the size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.draw();
    }

    /// The screen as text, without blanks at the ends of lines.
    pub fn screen(&self) -> String {
        self.canvas.to_text()
    }

    /// The screen with its colours.
    pub fn buffer(&self) -> &Buffer {
        &self.canvas.grid.buffer
    }

    /// The draft that is being written.
    pub fn draft(&self) -> String {
        self.app.state.composer.text()
    }

    /// The Session's id, once it is open.
    pub fn session(&self) -> Option<&pixir_core::event::SessionId> {
        self.app.state.session.as_ref()
    }

    /// Whether the person asked to quit.
    pub fn is_done(&self) -> bool {
        self.app.is_done()
    }

    /// Closes the Session.
    ///
    /// # Errors
    /// Why there was none.
    pub async fn close(self) -> Result<crate::Farewell> {
        self.app.close(None).await
    }
}

fn key_of(name: &str) -> Option<KeyEvent> {
    let (mut modifiers, mut name) = (KeyModifiers::NONE, name);
    while let Some((prefix, rest)) = name.split_once('-').filter(|(p, r)| p.len() == 1 && !r.is_empty()) {
        modifiers |= match prefix {
            "C" => KeyModifiers::CONTROL,
            "A" => KeyModifiers::ALT,
            "S" => KeyModifiers::SHIFT,
            _ => return None,
        };
        name = rest;
    }
    let code = match name {
        "lt" => KeyCode::Char('<'),
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        "Tab" => KeyCode::Tab,
        "Backspace" => KeyCode::Backspace,
        "Up" => KeyCode::Up,
        "Down" => KeyCode::Down,
        "Left" => KeyCode::Left,
        "Right" => KeyCode::Right,
        "Home" => KeyCode::Home,
        "End" => KeyCode::End,
        "PgUp" => KeyCode::PageUp,
        "PgDn" => KeyCode::PageDown,
        "Space" => KeyCode::Char(' '),
        "Delete" => KeyCode::Delete,
        name if name.len() > 1 && name.starts_with('F') => KeyCode::F(name[1..].parse().ok()?),
        one => KeyCode::Char(one.chars().next().filter(|c| c.len_utf8() == one.len())?),
    };
    Some(KeyEvent::new(code, modifiers))
}
