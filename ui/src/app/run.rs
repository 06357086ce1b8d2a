//! The loop on the real terminal: wait, drain, update, draw. Keys come first, and without a change no frame is drawn.

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
    let mut drawn = draw(app, screen, presence)?;
    let (mut ticked, mut followed) = (drawn, drawn);
    let mut keys = Keyboard::new()?;
    let mut save_due = None;
    let mut stopped = false;
    let mut themes = super::themes::watch(app.themes_folder.as_deref());
    let mut last_event = None;
    let mut is_calm = false;
    loop {
        let frame_due = tokio::time::Instant::from_std(frame_due(drawn, last_event, is_calm));
        let tick_due = tokio::time::Instant::from_std(ticked + app.state.tick());
        let wants_frame = app.dirty && !screen.is_stalled();
        let mut key_at = None;
        let (was_dirty, mut is_tick) = (app.dirty, false);
        if save_due.is_none() && std::mem::take(&mut app.save_soon) {
            save_due = Some(tokio::time::Instant::now() + SAVE_AFTER);
        }
        tokio::select! {
            // Keys come first, so that a flood of Events cannot delay them.
            biased;
            events = keys.next() => match events {
                Some(events) => {
                    key_at = Some(Instant::now());
                    for event in events {
                        if let TerminalEvent::Reply(reply) = &event {
                            screen.on_reply(reply)?;
                        }
                        app.on_terminal(event).await;
                    }
                }
                // The terminal is gone.
                None => return Ok(Some(1)),
            },
            signal = signals.next() => match signal {
                Signal::End(number) => return Ok(Some(number)),
                Signal::Stop if can_suspend() => {
                    stopped = true;
                    screen.signal(presence.end())?;
                    screen.suspend()?;
                    presence.forget();
                    app.dirty = true;
                }
                Signal::Stop => {}
                // After a stop by pixir itself the terminal is already taken again.
                Signal::GoOn if std::mem::take(&mut stopped) => {}
                // SIGSTOP cannot be caught, and another program may have changed the terminal since.
                Signal::GoOn => {
                    screen.pause();
                    screen.resume()?;
                    presence.forget();
                    app.dirty = true;
                }
                Signal::Resized => app.dirty = true,
            },
            caught_up = screen.caught_up(), if screen.is_stalled() => caught_up?,
            () = tokio::time::sleep_until(tick_due), if app.state.is_animated() => {
                ticked = Instant::now();
                is_tick = true;
                app.state.activity.frame += 1;
                update::on_edge(&mut app.state);
                app.dirty = true;
            }
            () = tokio::time::sleep_until(frame_due), if wants_frame => {
                drawn = draw(app, screen, presence)?;
                (last_event, is_calm) = (None, false);
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
                last_event = Some(Instant::now());
                app.on_event(event).await;
            }
            event = agents::next_root_event(&mut app.root) => {
                last_event = Some(Instant::now());
                app.on_root_event(event).await;
            }
            Some(result) = app.results.recv() => app.on_background(result).await,
        }
        if app.state.layout.hud {
            app.state.stats.note_wake(Instant::now());
        }
        app.drain().await;
        if app.is_done() {
            return Ok(None);
        }
        if let Some(borrower) = app.lends_terminal.take() {
            screen.signal(presence.end())?;
            screen.pause();
            if let Some(number) = lend(app, &borrower, &mut signals).await {
                return Ok(Some(number));
            }
            screen.resume()?;
            presence.forget();
            app.dirty = true;
        }
        if std::mem::take(&mut app.state.terminal.suspend) {
            if can_suspend() {
                stopped = true;
                app.state.mouse.edge = 0;
                screen.signal(presence.end())?;
                screen.suspend()?;
                presence.forget();
            } else {
                app.state.say("there is no shell to return to");
            }
            app.dirty = true;
        }
        // A key is answered at once. Everything else waits for the next frame, or until nothing more happens.
        let is_urgent = std::mem::take(&mut app.is_urgent) || key_at.is_some();
        is_calm = is_tick && (is_calm || !was_dirty);
        let frame = match last_event {
            Some(_) => EVENT_FRAME,
            None if is_calm => CALM_FRAME,
            None => FRAME,
        };
        if app.dirty && !screen.is_stalled() && (is_urgent || drawn.elapsed() >= frame) {
            drawn = draw(app, screen, presence)?;
            (last_event, is_calm) = (None, false);
            if let Some(key_at) = key_at {
                FrameStats::note(&mut app.state.stats.echoes, drawn - key_at);
            }
        }
    }
}

/// When a change is drawn: a frame after the last one. Events of the Session are drawn earlier when no more of them
/// arrive; a clock or a spinner is not.
fn frame_due(drawn: Instant, last_event: Option<Instant>, is_calm: bool) -> Instant {
    let quiet = last_event.map(|at| (at + QUIET).max(drawn + QUIET_FRAME));
    let frame = if is_calm { CALM_FRAME } else { FRAME };
    quiet.map_or(drawn + frame, |quiet| quiet.min(drawn + FRAME))
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

fn draw(app: &mut App, screen: &mut Screen, presence: &mut Presence) -> io::Result<Instant> {
    app.dirty = false;
    if app.state.layout.hud {
        app.state.stats.resident = resident();
    }
    app.state.now = Now::read();
    screen.set_mouse(app.state.terminal.mouse_owner)?;
    // In inline mode a frame may have to wait until the terminal has reported its cursor.
    app.dirty = !screen.draw(&mut app.state)?;
    let presence_bytes = presence.update(&app.state, screen.features.name.as_deref());
    for bytes in std::mem::take(&mut app.signals).into_iter().chain([presence_bytes]) {
        screen.signal(&bytes)?;
    }
    app.load_wanted_diffs();
    let now = Instant::now();
    FrameStats::note(&mut app.state.stats.frames, now - app.state.now.at);
    app.state.stats.counts = screen.counts();
    Ok(now)
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
        let due = |ms: u64| frame_due(drawn, Some(drawn + at(ms)), false);
        assert_eq!(due(20), drawn + at(22), "long after a frame");
        assert_eq!(due(1), drawn + at(8), "directly after a frame");
        assert_eq!(due(32), drawn + at(33));
        assert_eq!(frame_due(drawn, None, false), drawn + at(33), "a new size");
        assert_eq!(frame_due(drawn, None, true), drawn + at(50), "a spinner waits for the next part of an answer");
        // Events that follow each other push the frame back, but not beyond the usual one.
        let latest = (0..33).map(due).max();
        assert_eq!(latest, Some(drawn + at(33)));
    }
}
