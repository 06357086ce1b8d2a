//! The interface without a terminal: the same App, drawn into memory and driven by a script.

use std::time::Duration;

use pixir_core::event::{SessionId, Status};
use pixir_core::{Code, Error, Result};
use ratatui::buffer::Buffer;
use serde_json::{Value, json};
use tokio::runtime;

use crate::app::{App, Launch};
use crate::input::keys::Key;
use crate::state::{Connection, Now};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use crate::terminal::{Erasing, Painter, TerminalEvent, Updates};
use crate::view;

#[cfg(test)]
mod fuzz; // random keys, clicks, arrivals and frames against approvals
mod svg; // a frame as an SVG picture

/// A script fails after this time without any event.
const PATIENCE: Duration = Duration::from_secs(20);

/// A complete interface that is driven by a script and drawn into memory.
pub struct Driver {
    app: App,
    canvas: Canvas,
    size: (u16, u16),
    painter: Painter,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Driver {
    /// An interface of this size. Approvals can be decided as soon as they are drawn.
    ///
    /// # Errors
    /// `CONFIG_INVALID` if the theme does not exist, or a key has two meanings.
    pub fn new(launch: Launch, columns: u16, rows: u16) -> Result<Driver> {
        let mut app = App::new(launch, runtime::Handle::current())?;
        app.state.guard.delay = Duration::ZERO;
        let mut driver = Driver {
            app,
            canvas: Canvas::with_regions(),
            size: (columns, rows),
            painter: Painter::new(Erasing::PenColour),
        };
        driver.draw();
        Ok(driver)
    }

    /// Types text and presses named keys: `hello<Enter>`, `<Esc>`, `<C-c>`, `<A-y>`, `<S-Tab>`, `<PgUp>`; `<lt>` is
    /// `<`.
    ///
    /// # Panics
    /// If a key does not exist; [`parse`] reports that before.
    pub async fn keys(&mut self, script: &str) {
        for key in keys_of(script).unwrap_or_else(|why| panic!("{why}")) {
            self.app.press(key.event()).await;
            self.draw();
        }
    }

    /// Pastes text.
    pub async fn paste(&mut self, text: &str) {
        self.app.on_terminal(TerminalEvent::Paste(text.to_owned())).await;
        // The Session has to read a pasted image first.
        while self.app.state.pending.images > 0 && self.listen("an image to be read").await.is_ok() {}
        self.draw();
    }

    /// Feeds bytes as a terminal sends them: keys, the mouse, answers.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        let mut decoder = crate::terminal::decode::Decoder::default();
        let mut events = decoder.feed(bytes);
        events.extend(decoder.give_up());
        for it in events {
            self.app.on_terminal(it).await;
            self.draw();
        }
    }

    /// Waits until the interface is idle: no Turn runs, or one waits for an answer.
    ///
    /// # Panics
    /// If nothing happens for 20 s. The message has the screen.
    pub async fn until_idle(&mut self) {
        if let Err(why) = self.try_until_idle().await {
            panic!("{}", why.message);
        }
    }

    /// Like [`Driver::until_idle`], with an error instead of a panic.
    ///
    /// # Errors
    /// `COMMAND_FAILED` if nothing happens for 20 s. The message has the screen.
    pub async fn try_until_idle(&mut self) -> Result<()> {
        loop {
            self.app.settle().await;
            self.draw();
            let layers = &self.app.state.overlays;
            let asks = !self.app.state.approvals.is_empty() || layers.iter().any(|overlay| overlay.is_form());
            let waits = asks && self.app.state.session.status == Status::Asking;
            let open = self.app.is_done()
                || self.app.state.session.id.is_some()
                || matches!(self.app.state.session.connection, Connection::Failed(_));
            // A picture without the colours of its code would be one that no user sees for longer than a moment.
            let is_coloured = !self.app.state.look.highlighter.is_awaited();
            if self.app.running_tasks == 0 && open && is_coloured && (waits || !self.app.state.is_busy()) {
                break;
            }
            self.listen("nothing to move").await?;
        }
        self.app.save_draft();
        self.draw();
        Ok(())
    }

    /// Waits until the screen contains this text.
    ///
    /// # Panics
    /// If nothing happens for 20 s. The message has the screen.
    pub async fn until(&mut self, text: &str) {
        if let Err(why) = self.try_until(text).await {
            panic!("{}", why.message);
        }
    }

    /// Like [`Driver::until`], with an error instead of a panic.
    ///
    /// # Errors
    /// `COMMAND_FAILED` if nothing happens for 20 s. The message has the screen.
    pub async fn try_until(&mut self, text: &str) -> Result<()> {
        loop {
            self.draw();
            if self.screen().contains(text) {
                return Ok(());
            }
            self.listen(text).await?;
        }
    }

    /// Waits until the code on the screen has its colours, also while a Turn runs.
    ///
    /// # Errors
    /// `COMMAND_FAILED` if nothing happens for 20 s. The message has the screen.
    pub async fn try_until_coloured(&mut self) -> Result<()> {
        self.draw();
        while self.app.state.look.highlighter.is_awaited() {
            self.listen("the colours of the code").await?;
            self.draw();
        }
        Ok(())
    }

    async fn listen(&mut self, what: &str) -> Result<()> {
        if tokio::time::timeout(PATIENCE, self.app.listen()).await.is_err() {
            self.draw();
            return Err(Error::new(
                Code::CommandFailed,
                format!("waited for {what:?} in vain; the screen:\n{}", self.screen()),
                "fix the script, or the text that it expects",
            ));
        }
        Ok(())
    }

    fn draw(&mut self) {
        self.app.state.now = Now::read();
        view::draw(&mut self.app.state, &mut self.canvas, self.size);
        self.app.load_wanted_diffs();
    }

    /// Changes the size of the screen.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.draw();
    }

    /// Shows the next entry of a replay, and returns the pause before it. None at the end.
    pub fn replay_step(&mut self) -> Option<Duration> {
        let replay = self.app.state.replay.as_ref().filter(|it| it.shown() < it.len())?;
        let pause = replay.pause();
        crate::update::replay::step(&mut self.app.state);
        self.draw();
        Some(pause)
    }

    /// The bytes that a terminal would receive for the changes since the last call.
    pub fn paint(&mut self) -> String {
        let mut bytes = String::new();
        self.painter.paint(&mut self.canvas, Updates::Synchronized, &mut bytes);
        // The painter takes the frame, so it is drawn again for later reads.
        self.draw();
        bytes
    }

    /// The screen as text, without blanks at the ends of lines.
    pub fn screen(&self) -> String {
        self.canvas.to_text()
    }

    /// The screen as ANSI text, with its colours.
    pub fn coloured(&self) -> String {
        crate::terminal::to_ansi(&self.canvas)
    }

    /// The screen as an SVG picture.
    pub fn picture(&self) -> String {
        svg::picture(&self.canvas)
    }

    /// The elements of the screen: role, label, focus, selection, bounds.
    pub fn semantics(&self) -> Value {
        let caret = self.canvas.caret.map(|at| json!({ "column": at.x, "row": at.y }));
        let regions = self.canvas.regions.iter().flatten().map(|it| {
            json!({
                "role": it.role,
                "label": it.label,
                "focused": it.state.focused,
                "selected": it.state.selected,
                "bounds": { "column": it.area.x, "row": it.area.y, "columns": it.area.width, "rows": it.area.height },
            })
        });
        let size = json!({ "columns": self.size.0, "rows": self.size.1 });
        json!({ "schema": "pixir.screen/1", "size": size, "caret": caret, "regions": regions.collect::<Vec<_>>() })
    }

    /// The cells of the screen.
    pub fn buffer(&self) -> &Buffer {
        &self.canvas.grid.buffer
    }

    /// The user's draft.
    pub fn draft(&self) -> String {
        self.app.state.composer.text()
    }

    /// The Session's id, once it is open.
    pub fn session(&self) -> Option<&SessionId> {
        self.app.state.session.id.as_ref()
    }

    /// Whether the user has quit.
    pub fn is_done(&self) -> bool {
        self.app.is_done()
    }

    /// Takes the bytes for the terminal that draw nothing: the clipboard, a notification.
    pub fn signals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.app.signals)
    }

    /// Closes the Session.
    ///
    /// # Errors
    /// Why the first Session could not be opened.
    pub async fn close(self) -> Result<crate::ExitSummary> {
        self.app.close(None).await
    }
}

/// One line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Type this text, and press the keys named in it.
    Keys(String),
    /// Paste this text.
    Paste(String),
    /// Wait until the screen contains this text.
    Expect(String),
    /// Wait until the interface is idle.
    Idle,
    /// Resize the screen.
    Resize(u16, u16),
    /// Save this frame under this name.
    Frame(String),
}

/// The lines of a script: `keys …`, `paste …`, `expect …`, `idle`, `resize 80x24`, `frame NAME`; `#` begins a comment.
///
/// # Errors
/// `USAGE` with the number of the wrong line.
pub fn parse(text: &str) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut frames: Vec<&str> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line.trim_end(), ""));
        let wrong = |what: String, fix: &str| {
            Error::new(Code::Usage, format!("line {} of the script {what}: {line}", number + 1), fix)
        };
        let parsed = match word {
            "keys" => {
                if let Err(why) = keys_of(rest) {
                    return Err(wrong("names an unknown key".into(), &why));
                }
                Some(Line::Keys(rest.to_owned()))
            }
            "paste" => Some(Line::Paste(rest.replace("\\n", "\n"))),
            "expect" => Some(Line::Expect(rest.trim_end().to_owned())),
            "idle" => Some(Line::Idle),
            "resize" => size(rest.trim()).map(|(columns, rows)| Line::Resize(columns, rows)),
            "frame" => Some(Line::Frame(rest.trim().to_owned())).filter(|_| is_name(rest.trim())),
            _ => None,
        };
        let fix = "lines are keys TEXT, paste TEXT, expect TEXT, idle, resize 80x24 and frame NAME";
        let parsed = parsed.ok_or_else(|| wrong("means nothing".into(), fix))?;
        if let Line::Frame(_) = &parsed {
            if frames.contains(&rest.trim()) {
                return Err(wrong("repeats the name of a frame".into(), "give each frame its own name"));
            }
            frames.push(rest.trim());
        }
        lines.push(parsed);
    }
    Ok(lines)
}

/// `120x40`.
pub fn size(text: &str) -> Option<(u16, u16)> {
    let (columns, rows) = text.split_once('x')?;
    let number = |part: &str| part.parse().ok().filter(|n| (1..=1_000).contains(n));
    Some((number(columns)?, number(rows)?))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

/// `hello<Enter>`: characters, and keys by name.
///
/// # Errors
/// The name of an unknown key.
fn keys_of(script: &str) -> Result<Vec<Key>, String> {
    let mut keys = Vec::new();
    let mut rest = script;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|it| it.split_once('>'));
        let named = named.filter(|(name, _)| !name.is_empty() && !name.contains(char::is_whitespace));
        if let Some((name, after)) = named {
            keys.push(key_of(name).ok_or_else(|| format!("<{name}> is not a key; <lt> is a plain <"))?);
            rest = after;
        } else {
            keys.push(Key::of(KeyEvent::press(KeyCode::Char(c), KeyModifiers::NONE)));
            rest = &rest[c.len_utf8()..];
        }
    }
    Ok(keys)
}

/// `C-c`, `A-y`, `S-Tab`, `PgUp`, `lt`.
fn key_of(name: &str) -> Option<Key> {
    if name == "lt" {
        return Key::parse("<").ok();
    }
    let mut held = String::new();
    let mut name = name;
    while let Some((prefix, rest)) = name.split_once('-').filter(|(p, r)| p.len() == 1 && !r.is_empty()) {
        held.push_str(match prefix {
            "C" => "ctrl+",
            "A" => "alt+",
            "S" => "shift+",
            _ => return None,
        });
        name = rest;
    }
    Key::parse(&format!("{held}{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_line_by_line_and_a_wrong_line_is_named() {
        let lines = parse("# hi\nkeys go<Enter>\nexpect Done\nidle\nresize 60x20\nframe end\n").expect("valid");
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[3], Line::Resize(60, 20));
        for wrong in ["press x", "resize 0x4", "resize 80", "frame ../x", "frame", "keys a<Foo>", "keys <BS>"] {
            assert!(parse(&format!("idle\n{wrong}")).expect_err(wrong).message.starts_with("line 2"), "{wrong}");
        }
        assert!(parse("frame a\nframe a").expect_err("twice").message.starts_with("line 2"));
    }

    #[test]
    fn keys_have_names_and_the_rest_is_text() {
        let shown = |text| keys_of(text).expect("keys").iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(
            shown("a<Enter><C-c><A-Up><S-Tab><lt>x> <F1>if a<b and c> d").replace("Space", "_"),
            "a Enter Ctrl+C Alt+Up Shift+Tab < x > _ F1 i f _ a < b _ a n d _ c > _ d"
        );
    }
}
