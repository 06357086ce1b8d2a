//! Takes over the terminal and gives it back, with every mode undone on every way out.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crossterm::terminal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

mod burst; // unmarked pastes among the keys
pub(crate) mod canvas; // the surface of a frame
pub(crate) mod decode; // bytes as keys, pastes, mouse events and answers
mod inline; // the terminal's own history
pub(crate) mod key; // types for keys and the mouse
mod keyboard; // terminal input without a thread
mod out; // bytes to the terminal, without a wait
mod paint; // the bytes from one frame to the next
mod size; // the size, also where the kernel does not know it
pub(crate) mod width; // columns of a text

use canvas::Canvas;
pub(crate) use decode::{TerminalEvent, TerminalReply};
use inline::{Inline, Reflow, WHOLE};
pub(crate) use keyboard::Keyboard;
use out::Out;
pub(crate) use paint::{Counts, Erasing, Painter, Updates, to_ansi, to_printed};

/// pixir has taken the terminal. A static, because the panic hook reads it at any time.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The keyboard protocol in use.
static KEYS: AtomicU8 = AtomicU8::new(PLAIN_KEYS);
const PLAIN_KEYS: u8 = 0;
const KITTY_KEYS: u8 = 1;
const MODIFIED_KEYS: u8 = 2;
/// The kitty protocol: with it Shift+Enter differs from Enter.
const KITTY: &str = "\x1b[>1u";
const NO_KITTY: &str = "\x1b[<1u";

/// Wrapping off, bracketed paste on, focus reports on; the window title is saved. The alternate screen and the mouse
/// follow later, if they are wanted.
const TAKE: &str = "\x1b[22;0t\x1b[?7l\x1b[?2004h\x1b[?1004h";
const WHOLE_SCREEN: &str = "\x1b[?1049h";
/// Leaves the alternate screen. Some terminals share the scroll region between both screens, so it is reset first.
const OWN_LINES: &str = "\x1b[r\x1b[?1049l";
/// Buttons, drags, and SGR coordinates, which reach beyond column 223.
const MOUSE: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
const TELL_SCHEME: &str = "\x1b[?2031h";
const NO_MOUSE: &str = "\x1b[?1006l\x1b[?1002l\x1b[?1000l";
/// Queries the support of synchronized updates, bracketed paste, dark-light reports and the kitty protocol, and the
/// name.
const ASK: &str = "\x1b[?2026$p\x1b[?2004$p\x1b[?2031$p\x1b[?u\x1b[>q";
/// Queries the background colour. It is sent before the last query, which every terminal answers.
const ASK_BACKGROUND: &str = "\x1b]11;?\x1b\\";
const ASK_LAST: &str = "\x1b[c";
/// Undoes every mode. CAN (0x18) comes first: it aborts a sequence that an interrupted write has left unfinished.
const GIVE_BACK: &str =
    "\x18\x1b]8;;\x1b\\\x1b[m\x1b[?2031l\x1b[?1004l\x1b[?1006l\x1b[?1002l\x1b[?1000l\x1b[?2004l\x1b[?7h";
const GIVE_BACK_LAST: &str = "\x1b[?2026l\x1b[?25h\x1b[23;0t";

/// How long the terminal may take to accept the last bytes of one kind: the pending frame, the undone modes, the text
/// after the end. Together they stay below the second in which a signal ends pixir.
const LAST_WRITE: Duration = Duration::from_millis(250);
/// Rows of the text after the end that matter most.
const LAST_ROWS: usize = 24;
/// How often rows are printed for one frame of inline mode.
const PRINTS: usize = 10;
/// The most columns and cells that are drawn. A cell takes about 100 bytes.
const MOST_COLUMNS: u16 = 4_000;
const MOST_CELLS: u32 = 500_000;
/// How long after the last query a reply may still come. pixir waits this long for it before it ends, so that it does
/// not reach the shell; a reply that has come ends the wait.
const REPLY: Duration = Duration::from_secs(1);

/// What the terminal can do, as far as it has reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) synchronized: bool,
    pub(crate) kitty_keys: bool,
    /// It reports changes between dark and light.
    tells_scheme: bool,
    /// Its name and version.
    pub(crate) name: Option<String>,
    /// It has answered the last query.
    pub(crate) asked: bool,
}

impl Features {
    /// What the terminal does with rows that become too long. Only a few terminals cut them.
    fn reflow(&self) -> Reflow {
        let term = std::env::var("TERM").unwrap_or_default();
        let is_gnu_screen = term.starts_with("screen") && std::env::var_os("TMUX").is_none();
        match &self.name {
            Some(name) if name.starts_with("XTerm(") => Reflow::Never,
            _ if is_gnu_screen || term == "linux" => Reflow::Never,
            // xterm.js, as in VS Code, is the one terminal with synchronized updates that neither tells its name nor has
            // a TERM of its own.
            None if self.synchronized && term.starts_with("xterm") => Reflow::ShiftsCursor,
            Some(_) | None => Reflow::KeepsCursor,
        }
    }
}

/// The content of a [`Screen`], drawn frame by frame.
pub(crate) trait Scene {
    /// It needs the whole screen, and does not fit between the lines of the terminal's history.
    fn wants_whole_screen(&self, columns: u16, rows: u16) -> bool;
    /// The user asked to have everything painted again. True once per request.
    fn take_repaint(&mut self) -> bool;
    /// A screen reader reads the screen: the canvas has to record what lies where.
    fn is_read_out(&self) -> bool;
    /// Draws a whole screen of this size.
    fn draw(&mut self, canvas: &mut Canvas, size: (u16, u16));
    /// Draws for the terminal's history: on `settled` what is printed now and never changes again, on `open` the rest.
    /// False when more is left to print than fits in one frame.
    fn print(&mut self, settled: &mut Canvas, open: &mut Canvas, size: (u16, u16), extent: Extent) -> bool;
}

/// The receiver of clicks and the wheel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MouseOwner {
    /// pixir: clicks fold and focus, the wheel scrolls the transcript.
    #[default]
    Pixir,
    /// The terminal: the mouse selects text as usual.
    Terminal,
}

/// Where the interface is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ScreenMode {
    /// On a screen of its own, the alternate screen. The terminal's history is untouched.
    #[default]
    Whole,
    /// In the terminal's own history: finished entries are printed once, what may still change is drawn below them.
    Inline,
    /// Inline, for a screen reader: no frames and no spinner, and each line appears once.
    ScreenReader,
}

/// How much of the conversation a frame prints into the terminal's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The cells that cannot change any more.
    Settled,
    /// All cells, because this is the last frame.
    All,
}

/// The terminal while pixir owns it. Dropping it gives the terminal back; so does a panic of the thread that took it.
pub struct Screen {
    out: Out,
    painter: Painter,
    canvas: Canvas,
    /// The bytes of the frame in progress.
    bytes: String,
    mouse: MouseOwner,
    inline: Option<Inline>,
    /// The canvas of the rows that are printed into the terminal's history.
    settled: Canvas,
    pub(crate) features: Features,
    /// When the terminal was last asked what it can do.
    asked_at: Instant,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Screen {
    /// Takes the terminal: raw mode, paste, mouse and focus events, and in whole-screen mode the alternate screen. Then
    /// it queries what the terminal can do.
    ///
    /// # Errors
    /// An error of the terminal. There may be none.
    pub fn take(mouse: MouseOwner, mode: ScreenMode) -> io::Result<Screen> {
        let inline = mode != ScreenMode::Whole;
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if keyboard::is_of_the_screen() {
                    give_back(Late::Left);
                }
                before(panic);
            }));
        });
        keyboard::mark_screen_thread();
        let mut screen = Screen {
            out: Out::new(),
            painter: Painter::new(erasing()),
            canvas: Canvas::default(),
            bytes: String::new(),
            mouse,
            inline: inline.then(Inline::new),
            settled: Canvas::default(),
            features: Features::default(),
            asked_at: Instant::now(),
        };
        WHOLE.store(!inline, Ordering::SeqCst);
        screen.enter()?;
        screen.ask_size()?;
        // Older Linux consoles do not parse OSC sequences and print them as text.
        let background = if std::env::var_os("TERM").is_some_and(|it| it == "linux") { "" } else { ASK_BACKGROUND };
        screen.out.write(format!("{ASK}{background}{ASK_LAST}").as_bytes())?;
        Ok(screen)
    }

    fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        self.out.write(TAKE.as_bytes())?;
        match &mut self.inline {
            None => self.out.write(WHOLE_SCREEN.as_bytes())?,
            Some(inline) => {
                inline.forget();
                self.out.write(inline.ask().as_bytes())?;
            }
        }
        if self.mouse == MouseOwner::Pixir && self.inline.is_none() {
            self.out.write(MOUSE.as_bytes())?;
        }
        Ok(())
    }

    /// Asks the terminal for its size where neither the kernel nor the environment knows it. The reply is one of
    /// [`Screen::on_reply`]; without one, the usual size is drawn.
    pub(crate) fn ask_size(&mut self) -> io::Result<()> {
        if !self.out.misses_size() {
            return Ok(());
        }
        // Between the lines of the terminal's history, a report of the cursor has another meaning.
        if self.inline.is_none() {
            self.out.write(size::ASK_CORNER.as_bytes())?;
        }
        // The last report counts, and this one is exact.
        self.out.write(size::ASK.as_bytes())
    }

    /// Draws one frame, in one write. Bytes that the terminal has not accepted yet are kept. False when another frame
    /// has to follow: the terminal has not reported its cursor yet, or more rows have to be printed.
    pub(crate) fn draw(&mut self, scene: &mut impl Scene) -> io::Result<bool> {
        let (columns, rows) = self.out.size()?;
        if self.inline.is_some() {
            let wants_whole = scene.wants_whole_screen(columns, rows);
            self.turn_to(wants_whole)?;
            if !wants_whole {
                return self.draw_inline(scene, columns, rows, Extent::Settled);
            }
        }
        if scene.take_repaint() {
            self.painter.forget();
        }
        if scene.is_read_out() {
            self.canvas.regions.get_or_insert_default();
        }
        scene.draw(&mut self.canvas, (columns, rows));
        self.bytes.clear();
        let updates = if self.features.synchronized { Updates::Synchronized } else { Updates::Plain };
        self.painter.paint(&mut self.canvas, updates, &mut self.bytes);
        self.out.write(self.bytes.as_bytes())?;
        Ok(true)
    }

    /// Switches between the alternate screen and the terminal's own lines, which stay as they are meanwhile.
    fn turn_to(&mut self, whole: bool) -> io::Result<()> {
        if WHOLE.swap(whole, Ordering::SeqCst) == whole {
            return Ok(());
        }
        // A terminal with the kitty protocol keeps separate keyboard modes for its two screens.
        let has_own_keys = KEYS.load(Ordering::SeqCst) == KITTY_KEYS;
        if has_own_keys && !whole {
            self.out.write(NO_KITTY.as_bytes())?;
        }
        self.out.write(if whole { WHOLE_SCREEN } else { OWN_LINES }.as_bytes())?;
        if has_own_keys && whole {
            self.out.write(KITTY.as_bytes())?;
        }
        if self.mouse == MouseOwner::Pixir {
            self.out.write(if whole { MOUSE } else { NO_MOUSE }.as_bytes())?;
        }
        self.painter.begin_at(self.inline.as_ref().filter(|_| !whole).map_or(0, Inline::above));
        self.painter.forget();
        Ok(())
    }

    /// Draws the last frame. In inline mode the whole conversation stays in the terminal.
    pub(crate) fn finish(&mut self, scene: &mut impl Scene) -> io::Result<()> {
        if self.inline.is_none() {
            return Ok(());
        }
        let (columns, rows) = self.out.size()?;
        self.turn_to(false)?;
        // Each frame prints a limited number of rows.
        loop {
            if let Some(inline) = &mut self.inline {
                inline.assume();
            }
            if self.draw_inline(scene, columns, rows, Extent::All)? {
                break;
            }
        }
        self.write_pending();
        Ok(())
    }

    /// Writes the bytes that the terminal has not accepted yet, if no later frame repeats them.
    fn write_pending(&mut self) {
        let pending = std::mem::take(&mut self.out.pending);
        if self.inline.is_some() && !pending.is_empty() {
            self.out.write_all_within(&pending, LAST_WRITE);
        }
    }

    /// Prints finished rows into the history, and draws the rest below them.
    fn draw_inline(&mut self, scene: &mut impl Scene, columns: u16, rows: u16, extent: Extent) -> io::Result<bool> {
        let Some(inline) = &mut self.inline else { return Ok(true) };
        if inline.resized((columns, rows)) {
            self.painter.forget();
            self.out.write(inline.ask().as_bytes())?;
        }
        if !inline.has_place() {
            return Ok(false);
        }
        if scene.take_repaint() {
            self.painter.forget();
        }
        self.bytes.clear();
        let mut is_whole = false;
        // A part of the rows at a time, because a canvas takes much more memory than the bytes that it becomes.
        for _ in 0..PRINTS {
            is_whole = scene.print(&mut self.settled, &mut self.canvas, (columns, rows), extent);
            if inline.make_room(&self.settled, self.canvas.area().height, &mut self.bytes) {
                self.painter.begin_at(inline.above());
                self.painter.forget();
            }
            if is_whole || self.settled.area().height == 0 {
                break;
            }
        }
        inline.is_painted(&self.canvas);
        // Plain, because one synchronized update has to cover both the printed rows and the open part.
        self.painter.paint(&mut self.canvas, Updates::Plain, &mut self.bytes);
        if self.features.synchronized && !self.bytes.is_empty() {
            self.bytes.insert_str(0, "\x1b[?2026h");
            self.bytes.push_str("\x1b[?2026l");
        }
        self.out.write(self.bytes.as_bytes())?;
        Ok(is_whole)
    }

    /// The terminal has not accepted the last frame yet.
    pub(crate) fn is_stalled(&self) -> bool {
        !self.out.pending.is_empty()
    }

    /// Waits until the terminal has accepted the last frame.
    pub(crate) async fn caught_up(&mut self) -> io::Result<()> {
        self.out.flush().await
    }

    /// The counts of all output so far.
    pub(crate) fn counts(&self) -> Counts {
        self.painter.counts
    }

    /// Sends bytes that draw nothing: a notification, the clipboard, progress.
    pub(crate) fn signal(&mut self, bytes: &str) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.out.write(bytes.as_bytes())
    }

    /// Gives clicks and the wheel to pixir or to the terminal.
    pub(crate) fn set_mouse(&mut self, mouse: MouseOwner) -> io::Result<()> {
        if self.mouse == mouse {
            return Ok(());
        }
        self.mouse = mouse;
        if !WHOLE.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.out.write(if mouse == MouseOwner::Pixir { MOUSE } else { NO_MOUSE }.as_bytes())
    }

    /// Handles an answer of the terminal. A reported feature is used from now on.
    pub(crate) fn on_reply(&mut self, reply: &TerminalReply) -> io::Result<()> {
        match reply {
            TerminalReply::Mode { mode: 2026, supported } => self.features.synchronized = *supported,
            TerminalReply::Mode { mode: 2031, supported: true } => {
                self.features.tells_scheme = true;
                return self.out.write(TELL_SCHEME.as_bytes());
            }
            TerminalReply::Keyboard => self.features.kitty_keys = true,
            TerminalReply::Name(name) => self.features.name = Some(name.clone()),
            TerminalReply::Done if !self.features.asked => {
                self.features.asked = true;
                return self.choose_keys();
            }
            TerminalReply::Cursor { row, column } => {
                let reflow = self.features.reflow();
                match &mut self.inline {
                    Some(inline) => inline.on_cursor_report(*row, reflow),
                    None if *row > 1 && *column > 1 => self.out.hints.report(*column, *row),
                    // A terminal that does not move its cursor to the far corner.
                    None => {}
                }
            }
            TerminalReply::Size { columns, rows } => self.out.hints.report(*columns, *rows),
            TerminalReply::Mode { .. }
            | TerminalReply::Background(..)
            | TerminalReply::Scheme { .. }
            | TerminalReply::Done => {}
        }
        Ok(())
    }

    /// Turns on a protocol that distinguishes Shift+Enter from Enter: kitty's, else xterm's modifyOtherKeys. On a
    /// terminal with neither, Ctrl+J makes a new line.
    fn choose_keys(&mut self) -> io::Result<()> {
        let (kind, sequence) =
            if self.features.kitty_keys { (KITTY_KEYS, KITTY) } else { (MODIFIED_KEYS, "\x1b[>4;1m") };
        KEYS.store(kind, Ordering::SeqCst);
        self.out.write(sequence.as_bytes())
    }

    /// Gives the terminal back for a while. [`Screen::resume`] takes it again.
    pub(crate) fn pause(&mut self) {
        self.write_pending();
        give_back(Late::Left);
    }

    /// Takes the terminal again. Its content is unknown, so the next frame is painted from scratch.
    pub(crate) fn resume(&mut self) -> io::Result<()> {
        self.enter()?;
        self.ask_size()?;
        if self.features.asked {
            self.choose_keys()?;
        }
        if self.features.tells_scheme {
            self.out.write(TELL_SCHEME.as_bytes())?;
        }
        self.painter.forget();
        Ok(())
    }

    /// Stops the process group, as Ctrl+Z does in a shell. Returns when it continues.
    ///
    /// # Errors
    /// An error of the terminal when it is taken again.
    pub(crate) fn suspend(&mut self) -> io::Result<()> {
        self.pause();
        stop_group();
        self.resume()
    }
}

/// Prints a text after the interface has ended, where standard error is a terminal: as much of it as the terminal accepts
/// in a moment, because a terminal that accepts nothing must not keep pixir from ending. Its last rows, which have the command
/// that resumes the session, are printed also on a terminal that is too slow for the rest. False where it is none.
pub fn print_after(text: &str) -> bool {
    let Some(mut out) = Out::of(io::stderr()) else { return false };
    let last = text.rmatch_indices('\n').nth(LAST_ROWS).map_or(0, |(at, _)| at + 1);
    let (rest, end) = text.split_at(last);
    if !out.write_all_within(rest.as_bytes(), LAST_WRITE / 2) {
        // It ends within a row, or within a sequence.
        out.write_all_within("\x18\x1b[m\n…\n".as_bytes(), LAST_WRITE / 4);
    }
    out.write_all_within(end.as_bytes(), LAST_WRITE / 4);
    true
}

impl Drop for Screen {
    fn drop(&mut self) {
        // After the reply to the last query no late replies are expected.
        give_back(Late::Discarded { until: (!self.features.asked).then(|| self.asked_at + REPLY) });
    }
}

/// How the terminal erases. GNU screen uses the default background; tmux, which can have the same TERM, that of the
/// pen.
fn erasing() -> Erasing {
    let is_screen = std::env::var("TERM").is_ok_and(|it| it.starts_with("screen"));
    if !is_screen || std::env::var_os("TMUX").is_some() { Erasing::PenColour } else { Erasing::DefaultColour }
}

/// Stops pixir and the other processes of its group, as Ctrl+Z does in a shell. Returns when they continue.
pub(crate) fn stop_group() {
    // pixir catches SIGTSTP itself, so it stops the group with SIGSTOP, which no process can catch.
    let _ = pixir_core::between_starts(|| rustix::process::kill_current_process_group(rustix::process::Signal::STOP));
}

/// A shell can continue this process after it has stopped.
pub(crate) fn can_suspend() -> bool {
    // The group of the session leader has no parent shell that could continue it.
    let group = rustix::process::getpgrp();
    rustix::process::getsid(None).is_ok_and(|session| session != group)
}

/// What happens to input that arrives when the terminal has been given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// It is for the program that gets the terminal now.
    Left,
    /// At the end of the process, replies to queries are discarded; they are waited for until this moment.
    Discarded { until: Option<Instant> },
}

/// Undoes every mode, if the terminal is taken.
fn give_back(late: Late) {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let keys = match KEYS.swap(PLAIN_KEYS, Ordering::SeqCst) {
        KITTY_KEYS => NO_KITTY,
        MODIFIED_KEYS => "\x1b[>4m",
        _ => "",
    };
    let is_whole = WHOLE.load(Ordering::SeqCst);
    let own_lines = if is_whole { OWN_LINES } else { "" };
    // In inline mode the kitty protocol is on for both screens, and has to be turned off on each.
    let own_keys = if is_whole && keys == NO_KITTY && inline::IS_INLINE.load(Ordering::SeqCst) { keys } else { "" };
    // Clears the open part, so that the prompt of the shell follows the printed rows.
    let place = match inline::BEHIND.load(Ordering::SeqCst) {
        inline::UNKNOWN => String::new(),
        row => inline::cleared_from(row),
    };
    let bytes = format!("\x18{keys}{GIVE_BACK}{own_lines}{own_keys}{place}{GIVE_BACK_LAST}");
    Out::new().write_all_within(bytes.as_bytes(), LAST_WRITE);
    if let Late::Discarded { until } = late {
        keyboard::drain(until);
    }
    let _ = terminal::disable_raw_mode();
}

/// Registers a descriptor for readiness events.
#[expect(deprecated, reason = "a file of our own stays open as long as its watch; other kinds need `unsafe`")]
pub(crate) fn watched<T: AsRawFd>(file: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(file, interest)
}
