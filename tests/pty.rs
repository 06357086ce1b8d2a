//! The real binary in a real terminal: a pty, and a parser with its screen.

use std::ffi::OsStr;
use std::io::{Read as _, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::{Mode, OFlags};

use crate::shell::Shell;
use crate::wait::{self, PATIENCE};

/// The time after which a key that had no effect is pressed again: longer than the pause that pixir requires after a
/// paste.
const AGAIN: Duration = Duration::from_millis(100);
/// The time after a line before another one is typed; longer than the pause that pixir requires.
const BEHIND_LINE: Duration = Duration::from_millis(60);
/// The time in which a person sees what has appeared; longer than the time for which pixir does not let keys decide about it.
const UNTIL_SEEN: Duration = Duration::from_millis(400);
/// The start of a frame that is written in full, and not as the difference to the one before it.
const WHOLE: &[u8] = b"\x1b[m\x1b]8;;\x1b\\\x1b[?25l";

struct Seen {
    /// The reader must not read from the program; `parked` is true once it has stopped.
    held: bool,
    parked: bool,
    /// The window is closed.
    gone: bool,
    parser: vt100::Parser,
    bytes: Vec<u8>,
    /// Bytes that are on the screen.
    shown: usize,
    /// A frame has begun and not ended; a terminal does not show it yet.
    in_frame: bool,
    closed: bool,
}

impl Seen {
    /// Shows the new bytes, except the first bytes of an incomplete character:
    /// the parser loses the text behind a character that it gets in two pieces.
    fn show(&mut self) {
        let Seen { parser, bytes, shown, .. } = self;
        let new = &bytes[*shown..];
        let lead = new.iter().rev().take(3).position(|byte| *byte >= 0xC0).map_or(new.len(), |at| new.len() - 1 - at);
        let is_cut = str::from_utf8(&new[lead..]).is_err_and(|why| why.error_len().is_none());
        let whole = if is_cut { lead } else { new.len() };
        parser.process(&new[..whole]);
        *shown += whole;
    }

    /// The screen shows one whole frame, and no part of the next.
    fn is_whole(&self) -> bool {
        !self.in_frame || self.closed
    }
}

/// Reads the screen of a terminal.
pub(crate) struct Reader(Arc<(Mutex<Seen>, Condvar)>);

impl Reader {
    /// The screen shows this text now.
    pub(crate) fn shows(&self, text: &str) -> bool {
        let it = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        it.is_whole() && it.parser.screen().contents().contains(text)
    }
}

type Keys = Arc<Mutex<Box<dyn Write + Send>>>;

/// The last query of a program that asks for the abilities of its terminal.
const ASKED: &[u8] = b"\x1b[c";
/// Begin and end of a synchronized frame.
const FRAME: (&[u8], &[u8]) = (b"\x1b[?2026h", b"\x1b[?2026l");
/// The query for the size in cells.
const SIZE: &[u8] = b"\x1b[18t";
/// The query for the cursor position.
const WHERE: &[u8] = b"\x1b[6n";
/// The replies of a modern terminal: synchronized updates, bracketed pastes, the kitty keyboard protocol, a dark
/// background.
pub(crate) const ANSWERS: &str = "\x1b[?2026;2$y\x1b[?2004;2$y\x1b[?2031;0$y\x1b[?0u\x1bP>|story 1.0\x1b\\\x1b]11;rgb:1010/1010/1010\x1b\\\x1b[?62;22c";

/// What a terminal answers.
struct Answers {
    /// Queries of its abilities.
    queries: bool,
    /// The query for its size: these bytes.
    size: &'static str,
}

/// A terminal with pixir in it.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Keys,
    /// When a whole line was sent last.
    line_sent: Option<Instant>,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    reader: Option<JoinHandle<()>>,
    /// The terminal settings before the program ran.
    modes: String,
}

impl Terminal {
    pub(crate) fn start(shell: &Shell, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::of(shell, env!("CARGO_BIN_EXE_pixir").as_ref(), args, &[], columns, rows)
    }

    /// A terminal that answers no query.
    pub(crate) fn mute(shell: &Shell, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::made(shell, env!("CARGO_BIN_EXE_pixir").as_ref(), args, &[], (columns, rows), false)
    }

    /// A terminal of this size of which the kernel knows another one, as in a container's exec. It answers no query but that
    /// for its size, and that with these bytes.
    pub(crate) fn unknown(
        shell: &Shell,
        environment: &[(&str, &str)],
        known: (u16, u16),
        size: (u16, u16),
        report: &'static str,
    ) -> Terminal {
        let program = env!("CARGO_BIN_EXE_pixir").as_ref();
        Terminal::placed(shell, program, &[], environment, (size, known), Answers { queries: false, size: report })
    }

    /// Another program in a terminal that answers no query.
    pub(crate) fn mute_of(shell: &Shell, program: &str, args: &[&str], columns: u16, rows: u16) -> Terminal {
        Terminal::made(shell, program.as_ref(), args, &[], (columns, rows), false)
    }

    /// Another program in a terminal of its own.
    pub(crate) fn of(
        shell: &Shell,
        program: &OsStr,
        args: &[&str],
        environment: &[(&str, &str)],
        columns: u16,
        rows: u16,
    ) -> Terminal {
        Terminal::made(shell, program, args, environment, (columns, rows), true)
    }

    fn made(
        shell: &Shell,
        program: &OsStr,
        args: &[&str],
        environment: &[(&str, &str)],
        size: (u16, u16),
        answers_questions: bool,
    ) -> Terminal {
        let answers = Answers { queries: answers_questions, size: "" };
        Terminal::placed(shell, program, args, environment, (size, size), answers)
    }

    fn placed(
        shell: &Shell,
        program: &OsStr,
        args: &[&str],
        environment: &[(&str, &str)],
        ((columns, rows), known): ((u16, u16), (u16, u16)),
        Answers { queries: answers_questions, size: size_report }: Answers,
    ) -> Terminal {
        let pair = native_pty_system()
            .openpty(PtySize { rows: known.1, cols: known.0, pixel_width: 0, pixel_height: 0 })
            .expect("a pty");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(shell.workspace());
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", shell.home());
        command.env("PIXIR_HOME", shell.home());
        command.env("TERM", "xterm-256color");
        command.env("COLORTERM", "truecolor");
        for (name, value) in environment {
            command.env(name, value);
        }
        let modes = format!("{:?}", pair.master.get_termios());
        let child = pair.slave.spawn_command(command).expect("the binary starts");
        drop(pair.slave);
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let keys: Keys = Arc::new(Mutex::new(pair.master.take_writer().expect("a writer")));
        let answers = Arc::clone(&keys);
        let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
        let seen = Arc::new((
            Mutex::new(Seen {
                held: false,
                parked: false,
                gone: false,
                parser: vt100::Parser::new(size(rows), size(columns), 0),
                bytes: Vec::new(),
                shown: 0,
                in_frame: false,
                closed: false,
            }),
            Condvar::new(),
        ));
        let for_thread = Arc::clone(&seen);
        let reader = thread::spawn(move || {
            // Every test reads frames in pieces, so that none depends on whole ones.
            let mut buffer = [0; 61];
            loop {
                {
                    let mut it = for_thread.0.lock().unwrap_or_else(PoisonError::into_inner);
                    it.parked = it.held;
                    for_thread.1.notify_all();
                    let it = for_thread.1.wait_while(it, |it| it.held).unwrap_or_else(PoisonError::into_inner);
                    if it.gone {
                        return;
                    }
                }
                let n = output.read(&mut buffer).unwrap_or(0);
                let mut it = for_thread.0.lock().unwrap_or_else(PoisonError::into_inner);
                it.bytes.extend_from_slice(&buffer[..n]);
                let [asked, wonders, measures, began, ended] = [ASKED, WHERE, SIZE, FRAME.0, FRAME.1].map(|it_says| {
                    let before = it.bytes.len().saturating_sub(n + it_says.len() - 1);
                    it.bytes[before..].windows(it_says.len()).rposition(|bytes| bytes == it_says).map(|at| before + at)
                });
                it.show();
                if wonders.is_some() && answers_questions {
                    let (row, column) = it.parser.screen().cursor_position();
                    let mut keys = answers.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = write!(keys, "\x1b[{};{}R", row + 1, column + 1).and_then(|()| keys.flush());
                }
                if measures.is_some() {
                    let mut keys = answers.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = keys.write_all(size_report.as_bytes()).and_then(|()| keys.flush());
                }
                if asked.is_some() && answers_questions {
                    let mut keys = answers.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = keys.write_all(ANSWERS.as_bytes()).and_then(|()| keys.flush());
                }
                if began.is_some() || ended.is_some() {
                    it.in_frame = began > ended;
                }
                it.closed = n == 0;
                for_thread.1.notify_all();
                if n == 0 {
                    return;
                }
            }
        });
        Terminal { child, master: pair.master, keys, line_sent: None, seen, reader: Some(reader), modes }
    }

    /// Every byte written so far.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).bytes.clone()
    }

    /// Bytes that pixir has written, including those that the terminal has not read.
    pub(crate) fn handed_over(&self) -> u64 {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", self.process())).expect("it runs");
        let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
        written.and_then(|n| n.parse().ok()).expect("a number")
    }

    /// The number of bytes written so far.
    pub(crate) fn written(&self) -> usize {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).bytes.len()
    }

    /// Row and column of the terminal's cursor; `None` while it is hidden.
    pub(crate) fn cursor(&self) -> Option<(usize, usize)> {
        let seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let screen = seen.parser.screen();
        let (row, column) = screen.cursor_position();
        (!screen.hide_cursor()).then_some((usize::from(row), usize::from(column)))
    }

    pub(crate) fn screen(&self) -> String {
        self.wait("a whole frame", Seen::is_whole)
    }

    /// Waits until the screen contains `text`.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(text, |it| it.is_whole() && it.parser.screen().contents().contains(text))
    }

    /// Waits until this number of bytes was written.
    pub(crate) fn wait_that_written(&self, what: &str, bytes: usize) {
        self.wait(what, |it| it.bytes.len() >= bytes);
    }

    /// Waits until these bytes were written.
    pub(crate) fn wait_for_bytes(&self, bytes: &str) {
        self.wait(bytes, |it| it.bytes.windows(bytes.len()).any(|seen| seen == bytes.as_bytes()));
    }

    /// Waits until `holds` is true for the screen.
    pub(crate) fn wait_that(&self, what: &str, holds: impl Fn(&str) -> bool) {
        self.wait(what, |it| it.is_whole() && holds(&it.parser.screen().contents()));
    }

    /// Waits until `holds` is true for the rows of the screen, also where a row that was too long for it ran on into the next.
    pub(crate) fn wait_that_rows(&self, what: &str, holds: impl Fn(&[String]) -> bool) {
        self.wait(what, |it| {
            let screen = it.parser.screen();
            it.is_whole() && holds(&screen.rows(0, screen.size().1.get()).collect::<Vec<_>>())
        });
    }

    /// Waits until the cursor is on a row with this text.
    pub(crate) fn wait_for_cursor_on(&self, text: &str) -> String {
        self.wait(&format!("the cursor on {text:?}"), |it| {
            let screen = it.parser.screen();
            let row = usize::from(screen.cursor_position().0);
            it.is_whole()
                && !screen.hide_cursor()
                && screen.contents().lines().nth(row).unwrap_or_default().contains(text)
        })
    }

    fn wait(&self, what: &str, mut holds: impl FnMut(&Seen) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        let mut it = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !holds(&it) {
            let left = until.saturating_duration_since(Instant::now());
            let screen = it.parser.screen();
            assert!(
                !left.is_zero() && !it.closed,
                "waited for {what:?} in vain; the cursor is {} at {:?}; the screen{}:\n{}",
                if screen.hide_cursor() { "hidden" } else { "shown" },
                screen.cursor_position(),
                if it.is_whole() { "" } else { ", in the middle of a frame" },
                screen.contents()
            );
            it = self.seen.1.wait_timeout(it, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        it.parser.screen().contents()
    }

    /// Sends keys as a person does: not within the time after a line in which more lines would be those of a paste.
    pub(crate) fn send(&mut self, keys: &str) {
        if let Some(left) = self.line_sent.and_then(|at| BEHIND_LINE.checked_sub(at.elapsed())) {
            wait::lapse(left);
        }
        self.send_at_once(keys);
        self.line_sent = Some(Instant::now()).filter(|_| keys.len() > 2 && keys.ends_with('\r'));
    }

    /// Sends keys that decide about something which has just appeared, as a person does who has seen it.
    pub(crate) fn decide(&mut self, keys: &str) {
        wait::lapse(UNTIL_SEEN);
        self.send(keys);
    }

    /// Sends keys as a program does that writes to the terminal.
    pub(crate) fn send_at_once(&mut self, keys: &str) {
        let mut writer = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(keys.as_bytes()).and_then(|()| writer.flush()).expect("the terminal takes keys");
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
        // The lock keeps the reader from showing a frame of the new size on a screen of the old one.
        let mut seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).expect("resize");
        let ((before, _), (row, column)) = (seen.parser.screen().size(), seen.parser.screen().cursor_position());
        // A terminal that becomes lower keeps the row of its cursor in sight.
        let over = (row + 1).saturating_sub(rows);
        if over > 0 {
            let lines = "\n".repeat(usize::from(over));
            let bytes = format!("\x1b[{before};1H{lines}\x1b[{};{}H", row + 1 - over, column + 1);
            seen.parser.process(bytes.as_bytes());
        }
        seen.parser.screen_mut().set_size(size(rows), size(columns));
    }

    /// Changes the size as most terminals do: rows that are too long for it are wrapped, the cursor stays on its
    /// character, and what does not fit any more leaves the screen at its top.
    pub(crate) fn resize_wrapping(&self, columns: u16, rows: u16) {
        let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
        let mut seen = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).expect("resize");
        let screen = seen.parser.screen();
        let ((_, before), (row, column)) = (screen.size(), screen.cursor_position());
        let mut wrapped: Vec<String> = Vec::new();
        let mut cursor = 0;
        for (at, text) in screen.rows(0, before.get()).enumerate() {
            if at == usize::from(row) {
                cursor = wrapped.len() + usize::from(column / columns);
            }
            let characters: Vec<char> = text.trim_end().chars().collect();
            let pieces = characters.chunks(usize::from(columns)).map(|piece| piece.iter().collect());
            wrapped.extend(if characters.is_empty() { vec![String::new()] } else { pieces.collect() });
        }
        while wrapped.last().is_some_and(String::is_empty) && wrapped.len() > cursor + 1 {
            wrapped.pop();
        }
        let gone = wrapped.len().saturating_sub(usize::from(rows)).min(cursor);
        let mut bytes = String::from("\x1b[H\x1b[J");
        for (at, text) in wrapped.iter().skip(gone).take(usize::from(rows)).enumerate() {
            bytes += &format!("\x1b[{};1H{text}", at + 1);
        }
        bytes += &format!("\x1b[{};{}H", cursor - gone + 1, column % columns + 1);
        seen.parser.screen_mut().set_size(size(rows), size(columns));
        seen.parser.process(bytes.as_bytes());
    }

    /// Sends keys again and again until they have had their effect.
    pub(crate) fn press_until(&mut self, keys: &str, what: &str, mut holds: impl FnMut() -> bool) {
        let pressed = wait::within(PATIENCE, || {
            self.send(keys);
            wait::within(AGAIN, &mut holds)
        });
        assert!(pressed, "pressed in vain until {what}; the screen:\n{}", self.screen());
    }

    /// What the screen shows, for a condition that is checked while keys are sent.
    pub(crate) fn reader(&self) -> Reader {
        Reader(Arc::clone(&self.seen))
    }

    /// Waits until pixir accepts keys again: it treats a key directly after a paste as a part of the paste. Ctrl+L
    /// shows the end of that, because it repaints the whole screen.
    pub(crate) fn settle(&mut self) {
        let settled = wait::within(PATIENCE, || {
            let before = self.written();
            self.send("\x0c");
            wait::within(AGAIN, || self.bytes()[before..].windows(WHOLE.len()).any(|bytes| bytes == WHOLE))
        });
        assert!(settled, "Ctrl+L never had an effect; the screen:\n{}", self.screen());
    }

    /// Waits until pixir has read every byte that was sent.
    pub(crate) fn wait_until_read(&self) {
        let name = self.master.tty_name().expect("the terminal has a name");
        wait::until("pixir has read what was sent", || {
            let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK;
            let other_end = rustix::fs::open(&name, flags, Mode::empty()).expect("the other end opens");
            rustix::io::ioctl_fionread(&other_end).expect("a terminal counts what waits in it") == 0
        });
    }

    /// Stops or continues reading from the program.
    pub(crate) fn hold(&self, held: bool) {
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).held = held;
        self.seen.1.notify_all();
    }

    /// Closes the window; returns the time until the program ends.
    pub(crate) fn vanish(mut self) -> Duration {
        self.hold(true);
        // The next bytes are the last that the reader takes.
        self.resize(79, 23);
        self.wait("the reader to park", |it| it.parked);
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).gone = true;
        self.hold(false);
        self.reader.take().expect("once").join().expect("the reader ends");
        let id = self.process();
        let began = Instant::now();
        drop(self.master);
        drop(self.keys);
        let is_gone = || !std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|it| !it.contains(") Z "));
        if !wait::within(PATIENCE, is_gone) {
            return PATIENCE;
        }
        let took = began.elapsed();
        let _ = self.child.wait();
        took
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.process_id().expect("it runs")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.process()).ok().and_then(rustix::process::Pid::from_raw).expect("it runs");
        rustix::process::kill_process(id, signal).expect("the signal is sent");
    }

    /// Claims another size, while the screen stays as it is.
    pub(crate) fn claim(&self, columns: u16, rows: u16) {
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).expect("resize");
    }

    /// Waits until the program has ended, also while nothing is read from it; returns the time that took.
    pub(crate) fn wait_until_ended(&mut self) -> Duration {
        let began = Instant::now();
        wait::until("the program ends", || self.child.try_wait().expect("it can be asked").is_some());
        began.elapsed()
    }

    /// Waits for the end; returns the exit code and the state of the terminal.
    pub(crate) fn end(mut self) -> Left {
        let status = wait::found(PATIENCE, || self.child.try_wait().expect("it can be asked")).unwrap_or_else(|| {
            let it = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
            panic!("the program does not end; the screen:\n{}", it.parser.screen().contents())
        });
        let is_as_before = self.modes == format!("{:?}", self.master.get_termios());
        drop(self.keys);
        drop(self.master);
        self.reader.take().expect("once").join().expect("the reader ends");
        let it = self.seen.0.lock().unwrap_or_else(PoisonError::into_inner);
        let screen = it.parser.screen();
        Left {
            code: status.exit_code(),
            is_as_before,
            screen: screen.contents(),
            alternate: screen.alternate_screen(),
            cursor_hidden: screen.hide_cursor(),
            mouse: screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None,
            paste: screen.bracketed_paste(),
            bytes: it.bytes.clone(),
        }
    }
}

/// The state of the terminal after pixir has ended.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: u32,
    is_as_before: bool,
    pub(crate) screen: String,
    alternate: bool,
    cursor_hidden: bool,
    mouse: bool,
    paste: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Left {
    /// Checks that the terminal settings are those from before.
    pub(crate) fn assert_settings_restored(&self) {
        assert!(self.is_as_before, "the terminal settings have changed: {self:?}");
    }

    /// Checks that every mode that was set is undone.
    pub(crate) fn assert_sane(&self) {
        self.assert_settings_restored();
        assert!(!self.alternate && !self.cursor_hidden && !self.mouse && !self.paste, "{self:?}");
        let bytes = String::from_utf8_lossy(&self.bytes);
        for (on, off, what) in [
            ("\x1b[>1u", "\x1b[<1u", "the keyboard protocol"),
            ("\x1b[>4;1m", "\x1b[>4m", "modified keys"),
            ("\x1b[?1004h", "\x1b[?1004l", "focus events"),
            ("\x1b[?7l", "\x1b[?7h", "lines that end at the edge"),
            ("\x1b[22;0t", "\x1b[23;0t", "the title"),
        ] {
            assert_eq!(bytes.matches(on).count(), bytes.matches(off).count(), "{what} is undone");
        }
        assert!(!bytes.contains("\x1b[3J"), "the scrollback is never cleared");
    }
}

/// Every line of the scrollback and of the screen after these bytes, in a terminal of this size.
pub(crate) fn scrollback(bytes: &[u8], columns: u16, rows: u16) -> Vec<String> {
    let size = |n: u16| std::num::NonZeroU16::new(n).expect("not zero");
    let mut parser = vt100::Parser::new(size(rows), size(columns), 10_000);
    parser.process(bytes);
    let screen = parser.screen_mut();
    screen.set_scrollback(usize::MAX);
    let first = |screen: &vt100::Screen| screen.contents().lines().next().unwrap_or_default().trim_end().to_owned();
    let mut lines: Vec<String> = Vec::new();
    for back in (1..=screen.scrollback()).rev() {
        screen.set_scrollback(back);
        lines.push(first(screen));
    }
    screen.set_scrollback(0);
    lines.extend(screen.contents().lines().map(|line| line.trim_end().to_owned()));
    lines
}

/// Sequences in these bytes that are not on the closed list of sequences that pixir writes.
pub(crate) fn foreign_sequences(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut strange = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(|c: char| c.is_control()) {
        rest = &rest[at..];
        let known = known(rest);
        match known {
            Some(length) => rest = &rest[length..],
            None => {
                strange.push(rest.chars().take(24).collect::<String>().escape_debug().to_string());
                rest = &rest[rest.chars().next().map_or(1, char::len_utf8)..];
            }
        }
    }
    strange
}

/// The length of the known sequence at the start of a text.
fn known(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    match (bytes[0], bytes.get(1)) {
        (b'\r' | b'\n' | 0x18, _) => Some(1),
        (0x1b, Some(b'[')) => {
            let end = bytes[2..].iter().position(|b| (0x40..=0x7e).contains(b))? + 2;
            let body = std::str::from_utf8(&bytes[2..end]).ok()?;
            let plain = body.bytes().all(|b| b.is_ascii_digit() || b == b';');
            let ours = match bytes[end] {
                // Colours, cursor, erasing to the end and a few cells, scrolling, margins.
                b'm' | b'H' | b'C' | b'D' | b'X' | b'S' | b'T' | b'r' => plain,
                b'K' | b'J' => body.is_empty(),
                b'n' => body == "6",
                b'h' | b'l' => ["?2026", "?2004", "?2031", "?1049", "?1000", "?1002", "?1004", "?1006", "?25", "?7"]
                    .contains(&body),
                b'u' => [">1", "<1", "?"].contains(&body),
                b'p' => body.ends_with('$'),
                b'q' => body == ">",
                b'c' => body.is_empty(),
                b't' => ["22;0", "23;0"].contains(&body),
                _ => false,
            };
            ours.then_some(end + 1)
        }
        (0x1b, Some(b']')) => {
            let end = text.find("\x1b\\")?;
            let body = &text[2..end];
            let is_clean = !body.chars().any(char::is_control);
            let ours = body == "11;?" || body.starts_with("2;") || body.starts_with("8;") || body.starts_with("52;c;");
            (is_clean && ours).then_some(end + 2)
        }
        _ => None,
    }
}
