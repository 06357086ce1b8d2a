//! The loop on the real terminal: wait, drain, update, draw. Keys come first, and without a change no frame is drawn.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use pixir_core::{EndSignals, Result};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use super::{App, ExitSummary, Launch, agents, next_event, replay_due};
use crate::app::editor::{Borrower, Editing};
use crate::app::presence::Presence;
use crate::state::{FrameStats, Now};
use crate::terminal::{Keyboard, Screen, TerminalEvent, can_suspend, stop_group};
use crate::update;

/// The shortest time between two frames that no key has asked for: 30 frames a second are enough to read text as it
/// arrives.
const FRAME: Duration = Duration::from_millis(33);
/// The same for an Event of the Session: those of an answer come once a frame, sometimes a little early.
const EVENT_FRAME: Duration = Duration::from_millis(28);
/// The same where only a clock or a spinner has moved: it is drawn with the next part of an answer, if one comes.
const CALM_FRAME: Duration = Duration::from_millis(50);
/// The same where nothing has happened for [`QUIET`]: an answer that pauses or ends is shown without waiting for the rest
/// of a frame.
const QUIET_FRAME: Duration = Duration::from_millis(8);
const QUIET: Duration = Duration::from_millis(2);
/// How long a signal that was meant for the editor may take to arrive after the editor has ended.
const LATE_SIGNAL: Duration = Duration::from_millis(20);
/// How often pixir looks whether the editor has stopped, beside the signal that says so.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often the log file is looked at while it is on the screen.
const FOLLOW: Duration = Duration::from_secs(1);
/// How long keys that wait are applied before a signal is looked for: a backlog of them may take seconds.
const SLICE: Duration = Duration::from_millis(10);
/// How long after a change the draft is saved.
const SAVE_AFTER: Duration = Duration::from_millis(200);

/// Runs the interface on the real terminal until the user quits or a signal arrives. The Sessions and all background tasks
/// run on `core`, so that none of them delays a key.
///
/// # Errors
/// An error of the terminal; inside, an error of the theme, the configuration or the first Session.
pub async fn run(launch: Launch, core: runtime::Handle) -> io::Result<Result<ExitSummary>> {
    let mode = launch.screen.mode;
    let mut app = match App::new(launch, core) {
        Ok(app) => app,
        Err(error) => return Ok(Err(error)),
    };
    let mut screen = Screen::take(app.state.terminal.mouse_owner, mode)?;
    let mut presence = Presence::default();
    let outcome = event_loop(&mut app, &mut screen, &mut presence).await;
    app.drain_before_exit().await;
    let _ = screen.finish(&mut app.state);
    let _ = screen.signal(presence.end());
    drop(screen);
    // A failed write means that the terminal is gone. The Session is still closed properly.
    let signal = outcome.unwrap_or_else(|e| {
        tracing::warn!("the terminal is gone: {e}");
        Some(1)
    });
    Ok(app.close(signal).await)
}

async fn event_loop(app: &mut App, screen: &mut Screen, presence: &mut Presence) -> io::Result<Option<u8>> {
    let mut signals = Signals::new()?;
    let mut stage = Stage { screen, presence, has_stopped: false };
    let mut pace = Pace { drawn: stage.draw(app)?, last_event: None, is_calm: false };
    let (mut ticked, mut followed) = (pace.drawn, pace.drawn);
    let mut keys = Keyboard::new()?;
    // Keys that were read and not applied yet.
    let mut backlog: VecDeque<TerminalEvent> = VecDeque::new();
    // When the first key arrived that the screen does not show yet.
    let mut key_at = None;
    let mut save_due = None;
    let mut themes = super::themes::watch(app.themes_folder.as_deref());
    loop {
        let frame_due = tokio::time::Instant::from_std(pace.due());
        let tick_due = tokio::time::Instant::from_std(ticked + app.state.tick());
        let wants_frame = app.dirty && !stage.screen.is_stalled();
        let (was_dirty, mut is_tick) = (app.dirty, false);
        if save_due.is_none() && std::mem::take(&mut app.save_soon) {
            save_due = Some(tokio::time::Instant::now() + SAVE_AFTER);
        }
        tokio::select! {
            biased;
            // A signal waits neither for a backlog of keys nor for a flood of Events.
            signal = signals.next() => match signal {
                Signal::End(number) => return Ok(Some(number)),
                Signal::Stop => _ = stage.suspend(app)?,
                Signal::GoOn => stage.go_on(app)?,
                Signal::Resized => {
                    stage.screen.ask_size()?;
                    app.dirty = true;
                }
            },
            () = std::future::ready(()), if !backlog.is_empty() => {}
            // Keys come next, so that a flood of Events cannot delay them.
            events = keys.next() => match events {
                Some(events) => {
                    key_at.get_or_insert_with(Instant::now);
                    backlog.extend(events);
                }
                // The terminal is gone.
                None => return Ok(Some(1)),
            },
            caught_up = stage.screen.caught_up(), if stage.screen.is_stalled() => caught_up?,
            () = tokio::time::sleep_until(tick_due), if app.state.is_animated() => {
                ticked = Instant::now();
                is_tick = true;
                app.state.activity.frame += 1;
                update::on_edge(&mut app.state);
                app.dirty = true;
            }
            () = tokio::time::sleep_until(frame_due), if wants_frame => {
                key_at = None;
                pace = Pace { drawn: stage.draw(app)?, last_event: None, is_calm: false };
                continue;
            }
            () = tokio::time::sleep_until(save_due.unwrap_or(frame_due)), if save_due.is_some() => {
                let is_under_way = app.save_draft_soon();
                save_due = (!is_under_way).then(|| tokio::time::Instant::now() + SAVE_AFTER);
                continue;
            }
            Some(()) = themes.recv() => {
                app.reload_theme();
                app.dirty = true;
            }
            () = tokio::time::sleep_until((followed + FOLLOW).into()), if app.state.follows_file() => {
                followed = Instant::now();
                app.follow_file().await;
            }
            () = replay_due(app.state.replay.as_ref()) => app.replay_step(),
            event = next_event(&mut app.watch) => {
                pace.last_event = Some(Instant::now());
                app.on_event(event).await;
            }
            event = agents::next_root_event(&mut app.root) => {
                pace.last_event = Some(Instant::now());
                app.on_root_event(event).await;
            }
            Some(result) = app.results.recv() => app.on_background(result).await,
        }
        if !backlog.is_empty() {
            let until = Instant::now() + SLICE;
            while let Some(event) = backlog.pop_front() {
                if let TerminalEvent::Reply(reply) = &event {
                    stage.screen.on_reply(reply)?;
                }
                app.on_terminal(event).await;
                if Instant::now() >= until {
                    break;
                }
            }
            key_at = key_at.filter(|_| app.dirty);
        }
        if app.state.layout.hud {
            app.state.stats.note_wake(Instant::now());
        }
        app.drain().await;
        if app.is_done() {
            return Ok(None);
        }
        if let Some(borrower) = app.lends_terminal.take() {
            stage.screen.signal(stage.presence.end())?;
            stage.screen.pause();
            if let Some(number) = lend(app, &borrower, &mut signals).await {
                return Ok(Some(number));
            }
            stage.take_again(app)?;
        }
        if std::mem::take(&mut app.state.terminal.suspend) {
            if stage.suspend(app)? {
                app.state.mouse.edge = 0;
            } else {
                app.state.say("there is no shell to return to");
                app.dirty = true;
            }
        }
        // A key is answered at once, with those that arrived with it. Everything else waits for the next frame, or until nothing
        // more happens.
        let is_urgent = backlog.is_empty() && (std::mem::take(&mut app.is_urgent) || key_at.is_some());
        pace.is_calm = is_tick && (pace.is_calm || !was_dirty);
        if app.dirty && !stage.screen.is_stalled() && (is_urgent || pace.allows_frame()) {
            pace = Pace { drawn: stage.draw(app)?, last_event: None, is_calm: false };
            if let Some(key_at) = key_at.take() {
                FrameStats::note(&mut app.state.stats.echoes, pace.drawn - key_at);
            }
        }
    }
}

/// When the next frame may be drawn.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// The last frame.
    drawn: Instant,
    /// The last Event of the Session since.
    last_event: Option<Instant>,
    /// Only a clock or a spinner has moved since.
    is_calm: bool,
}

impl Pace {
    /// When a change is drawn: a frame after the last one. Events of the Session are drawn earlier when no more of them
    /// arrive; a clock or a spinner is not.
    fn due(self) -> Instant {
        let quiet = self.last_event.map(|at| (at + QUIET).max(self.drawn + QUIET_FRAME));
        let frame = if self.is_calm { CALM_FRAME } else { FRAME };
        quiet.map_or(self.drawn + frame, |quiet| quiet.min(self.drawn + FRAME))
    }

    /// The last frame was long enough ago.
    fn allows_frame(self) -> bool {
        let frame = match self.last_event {
            Some(_) => EVENT_FRAME,
            None if self.is_calm => CALM_FRAME,
            None => FRAME,
        };
        self.drawn.elapsed() >= frame
    }
}

/// The terminal, which pixir gives away and takes again.
struct Stage<'a> {
    screen: &'a mut Screen,
    presence: &'a mut Presence,
    /// pixir has stopped itself, so the terminal is taken again already when the signal to continue arrives.
    has_stopped: bool,
}

impl Stage<'_> {
    fn draw(&mut self, app: &mut App) -> io::Result<Instant> {
        app.dirty = false;
        if app.state.layout.hud {
            app.state.stats.resident = resident();
        }
        app.state.now = Now::read();
        self.screen.set_mouse(app.state.terminal.mouse_owner)?;
        // In inline mode a frame may have to wait until the terminal has reported its cursor.
        app.dirty = !self.screen.draw(&mut app.state)?;
        let presence_bytes = self.presence.update(&app.state, self.screen.features.name.as_deref());
        for bytes in std::mem::take(&mut app.signals).into_iter().chain([presence_bytes]) {
            self.screen.signal(&bytes)?;
        }
        app.load_wanted_diffs();
        let now = Instant::now();
        FrameStats::note(&mut app.state.stats.frames, now - app.state.now.at);
        app.state.stats.counts = self.screen.counts();
        Ok(now)
    }

    /// Gives the terminal back to the shell until the user continues pixir. False if there is no shell.
    fn suspend(&mut self, app: &mut App) -> io::Result<bool> {
        if !can_suspend() {
            return Ok(false);
        }
        self.has_stopped = true;
        self.screen.signal(self.presence.end())?;
        self.screen.suspend()?;
        self.presence.forget();
        app.dirty = true;
        Ok(true)
    }

    /// pixir runs again after a stop.
    fn go_on(&mut self, app: &mut App) -> io::Result<()> {
        if std::mem::take(&mut self.has_stopped) {
            return Ok(());
        }
        // SIGSTOP cannot be caught, and another program may have changed the terminal since.
        self.screen.pause();
        self.take_again(app)
    }

    fn take_again(&mut self, app: &mut App) -> io::Result<()> {
        self.screen.resume()?;
        self.presence.forget();
        app.dirty = true;
        Ok(())
    }
}

/// Gives the terminal to the user's own editor, or to the demo. Returns the signal that ends pixir, if one arrives.
async fn lend(app: &mut App, borrower: &Borrower, signals: &mut Signals) -> Option<u8> {
    // Registered before the program starts, because it may stop itself at once.
    let mut of_child = signal(SignalKind::child()).ok()?;
    let mut editing = app.begin_editing(borrower)?;
    loop {
        tokio::select! {
            biased;
            ended = editing.ended() => {
                let written = editing.written(ended);
                drop(editing);
                app.end_editing(borrower, written);
                // Ctrl+C or Ctrl+Z pressed just before the editor ended was meant for the editor.
                while let Ok(signal) = tokio::time::timeout(LATE_SIGNAL, signals.next()).await {
                    if let Signal::End(number @ (1 | 15)) = signal {
                        return Some(number);
                    }
                }
                return None;
            }
            signal = signals.next() => match signal {
                // The terminal sends the signals of Ctrl+C, Ctrl+\ and Ctrl+Z to pixir as well, but they are for the
                // editor.
                Signal::End(2 | 3) | Signal::Stop | Signal::GoOn | Signal::Resized => {}
                Signal::End(number) => {
                    editing.stop().await;
                    return Some(number);
                }
            },
            _ = of_child.recv() => stop_with(&editing),
            // One signal can stand for several, and the state may follow it.
            () = tokio::time::sleep(LOOK_AGAIN) => stop_with(&editing),
            // Events are handled meanwhile, but no frame is drawn.
            () = app.listen() => {}
        }
    }
}

/// Stops pixir if the editor has stopped itself. `fg` continues both.
fn stop_with(editing: &Editing) {
    if editing.is_stopped() && can_suspend() {
        stop_group();
    }
}

/// The resident memory of the process, bytes.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

/// A signal to the process.
enum Signal {
    End(u8),
    Stop,
    GoOn,
    Resized,
}

struct Signals {
    end: EndSignals,
    stop: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
    resized: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let other = |it: rustix::process::Signal| signal(SignalKind::from_raw(it.as_raw()));
        Ok(Signals {
            end: EndSignals::listen()?,
            stop: other(rustix::process::Signal::TSTP)?,
            go_on: other(rustix::process::Signal::CONT)?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            number = self.end.next() => Signal::End(number),
            _ = self.stop.recv() => Signal::Stop,
            _ = self.go_on.recv() => Signal::GoOn,
            _ = self.resized.recv() => Signal::Resized,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: the end of an answer waits for the next of 30 frames a second.
    #[test]
    fn what_nothing_follows_is_drawn_within_8_ms_and_a_stream_30_times_a_second() {
        let at = |ms: u64| Duration::from_millis(ms);
        let drawn = Instant::now();
        let pace = |last_event, is_calm| Pace { drawn, last_event, is_calm }.due();
        let due = |ms: u64| pace(Some(drawn + at(ms)), false);
        assert_eq!(due(20), drawn + at(22), "long after a frame");
        assert_eq!(due(1), drawn + at(8), "directly after a frame");
        assert_eq!(due(32), drawn + at(33));
        assert_eq!(pace(None, false), drawn + at(33), "a new size");
        assert_eq!(pace(None, true), drawn + at(50), "a spinner waits for the next part of an answer");
        // Events that follow each other push the frame back, but not beyond the usual one.
        let latest = (0..33).map(due).max();
        assert_eq!(latest, Some(drawn + at(33)));
    }
}
