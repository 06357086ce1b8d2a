//! The terminal, taken and given back: every mode that is set is undone on every way out.

use std::cell::Cell;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste, EnableFocusChange,
    EnableMouseCapture, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, SetTitle,
};
use crossterm::{cursor, execute, queue, terminal};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::state::State;
use crate::view;

/// Whether the terminal is ours now; the panic hook asks, for a panic can come at any time.
static TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread draws: when it panics, the interface is over. Elsewhere a panic ends one piece of work.
    static DRAWS: Cell<bool> = const { Cell::new(false) };
}

/// The terminal while it is ours. Dropping it gives it back, and so does a panic of the thread that took it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

impl Screen {
    /// Takes the terminal: raw mode, alternate screen, paste, mouse and focus events.
    ///
    /// # Errors
    /// What the terminal says; there may be none.
    pub fn take(title: &str) -> io::Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                if DRAWS.get() {
                    give_back();
                }
                before(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        DRAWS.set(true);
        let mut out = BufWriter::with_capacity(64 << 10, io::stdout());
        // Terminals without the keyboard protocol ignore it; Ctrl+J and \Enter work everywhere.
        queue!(
            out,
            EnterAlternateScreen,
            EnableBracketedPaste,
            EnableMouseCapture,
            EnableFocusChange,
            PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES),
            SetTitle(title)
        )?;
        out.flush()?;
        Ok(Screen { terminal: Terminal::new(CrosstermBackend::new(out))? })
    }

    /// Draws one frame in one write, inside a synchronized update.
    pub(crate) fn draw(&mut self, state: &mut State) -> io::Result<()> {
        if std::mem::take(&mut state.repaint) {
            self.terminal.clear()?;
        }
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| view::draw(state, frame))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Undoes every mode that was set; harmless when nothing was.
fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let mut out = io::stdout();
    let _ = execute!(
        out,
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableFocusChange,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = terminal::disable_raw_mode();
}
