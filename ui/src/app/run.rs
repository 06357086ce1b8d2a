//! The loop on the real terminal: wait, drain, update, draw. Input goes first; nothing is drawn when nothing changed.

use std::io;
use std::time::{Duration, Instant};

use pixir_core::Result;
use tokio::signal::unix::{SignalKind, signal};

use super::{App, Farewell, Launch, next_event, replay_due};
use crate::app::presence::Presence;
use crate::state::{Gauge, Now};
use crate::terminal::{Heard, Keyboard, Screen, can_suspend};
use crate::update;

/// The shortest time between two frames that only news asked for: text that comes at 30 frames a second is read as it comes.
const FRAME: Duration = Duration::from_millis(33);
/// How long a signal that was meant for an editor may take to arrive.
const LATE: Duration = Duration::from_millis(20);
/// How soon after a change the draft is safe.
const KEEP_AFTER: Duration = Duration::from_millis(200);

/// Runs the interface on the real terminal until the person quits or a signal comes.
///
/// # Errors
/// What the terminal says; inside, what the theme or the configuration says.
pub async fn run(launch: Launch) -> io::Result<Result<Farewell>> {
    let mut app = match App::new(launch) {
        Ok(app) => app,
        Err(error) => return Ok(Err(error)),
    };
    let mut screen = Screen::take(app.state.mouse, app.state.inline)?;
    let mut presence = Presence::default();
    let outcome = steer(&mut app, &mut screen, &mut presence).await;
    app.hear_out().await;
    let _ = screen.finish(&mut app.state);
    let _ = screen.signal(presence.end());
    drop(screen);
    // A terminal that cannot be written to any more is gone; what was begun is brought to its end all the same.
    let signal = outcome.unwrap_or_else(|e| {
        tracing::warn!("the terminal is gone: {e}");
        Some(1)
    });
    Ok(app.close(signal).await)
}

async fn steer(app: &mut App, screen: &mut Screen, presence: &mut Presence) -> io::Result<Option<u8>> {
    let mut signals = Signals::new()?;
    let mut drawn = draw(app, screen, presence)?;
    let mut ticked = drawn;
    let mut keys = Keyboard::new()?;
    let mut keep_due = None;
    let mut stopped = false;
    let mut themes = super::themes::watch(app.themes_folder.as_deref());
    loop {
        let frame_due = tokio::time::Instant::from_std(drawn + FRAME);
        let tick_due = tokio::time::Instant::from_std(ticked + app.state.tick());
        let wants_frame = app.dirty && !screen.is_stalled();
        let mut by_hand = None;
        if keep_due.is_none() && std::mem::take(&mut app.keep_soon) {
            keep_due = Some(tokio::time::Instant::now() + KEEP_AFTER);
        }
        tokio::select! {
            biased;
            heard = keys.next() => match heard {
                Some(heard) => {
                    by_hand = Some(Instant::now());
                    for it in heard {
                        if let Heard::Reply(reply) = &it {
                            screen.hear(reply)?;
                        }
                        app.hear_terminal(it).await;
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
                // After a stop of our own the terminal is taken again already.
                Signal::GoOn if std::mem::take(&mut stopped) => {}
                // Somebody stopped it without asking, and may have changed the terminal meanwhile.
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
                app.state.frame += 1;
                update::on_edge(&mut app.state);
                app.dirty = true;
            }
            () = tokio::time::sleep_until(frame_due), if wants_frame => {
                drawn = draw(app, screen, presence)?;
                continue;
            }
            () = tokio::time::sleep_until(keep_due.unwrap_or(frame_due)), if keep_due.is_some() => {
                keep_due = None;
                app.keep();
                continue;
            }
            Some(()) = themes.recv() => {
                app.reload_theme();
                app.dirty = true;
            }
            () = replay_due(app.state.replay.as_ref()) => app.tell_on(),
            event = next_event(&mut app.watch) => app.hear_session(event).await,
            Some(news) = app.news.recv() => app.hear(news).await,
        }
        app.drain().await;
        if app.is_done() {
            return Ok(None);
        }
        if std::mem::take(&mut app.wants_editor) {
            screen.signal(presence.end())?;
            screen.pause();
            if let Some(number) = edit(app, &mut signals).await {
                return Ok(Some(number));
            }
            screen.resume()?;
            presence.forget();
            app.dirty = true;
        }
        if std::mem::take(&mut app.state.suspend) {
            if can_suspend() {
                stopped = true;
                app.state.press.edge = 0;
                screen.signal(presence.end())?;
                screen.suspend()?;
                presence.forget();
            } else {
                app.state.say("there is no shell to go back to");
            }
            app.dirty = true;
        }
        // A key is answered at once; news waits for its frame.
        let is_urgent = std::mem::take(&mut app.is_urgent) || by_hand.is_some();
        if app.dirty && !screen.is_stalled() && (is_urgent || drawn.elapsed() >= FRAME) {
            drawn = draw(app, screen, presence)?;
            if let Some(heard) = by_hand {
                Gauge::note(&mut app.state.gauge.echoes, drawn - heard);
            }
        }
    }
}

/// The draft, in the person's own editor; the terminal is theirs meanwhile. The signal that ended it all, if one did.
async fn edit(app: &mut App, signals: &mut Signals) -> Option<u8> {
    // Before it begins: an editor may stop itself at once.
    let mut of_child = signal(SignalKind::child()).ok()?;
    let mut editing = app.begin_editing()?;
    loop {
        tokio::select! {
            biased;
            ended = editing.ended() => {
                let written = editing.written(ended);
                drop(editing);
                app.end_editing(written);
                // What was pressed in its last moment was the editor's as well.
                while let Ok(signal) = tokio::time::timeout(LATE, signals.next()).await {
                    if let Signal::End(number @ (1 | 15)) = signal {
                        return Some(number);
                    }
                }
                return None;
            }
            signal = signals.next() => match signal {
                // What is pressed in an editor is the editor's.
                Signal::End(2 | 3) | Signal::Stop | Signal::GoOn | Signal::Resized => {}
                Signal::End(number) => {
                    editing.stop().await;
                    return Some(number);
                }
            },
            _ = of_child.recv() => {
                // It goes to the shell, and so does who waits for it; whoever brings one back brings both.
                if editing.is_stopped() && can_suspend() {
                    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::STOP);
                }
            }
            // What is said meanwhile is taken in; nothing is drawn.
            () = app.listen() => {}
        }
    }
}

fn draw(app: &mut App, screen: &mut Screen, presence: &mut Presence) -> io::Result<Instant> {
    app.dirty = false;
    app.state.now = Now::read();
    screen.set_mouse(app.state.mouse)?;
    // A terminal that has not said yet where it stands is asked again at the next frame.
    app.dirty = !screen.draw(&mut app.state)?;
    let told = presence.update(&app.state, screen.features.name.as_deref());
    for bytes in std::mem::take(&mut app.signals).into_iter().chain([told]) {
        screen.signal(&bytes)?;
    }
    app.fetch();
    let now = Instant::now();
    Gauge::note(&mut app.state.gauge.frames, now - app.state.now.at);
    app.state.gauge.counts = screen.counts();
    Ok(now)
}

/// What the system wants of the process.
enum Signal {
    End(u8),
    Stop,
    GoOn,
    Resized,
}

struct Signals {
    end: [(u8, tokio::signal::unix::Signal); 4],
    stop: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
    resized: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Signals> {
        let of = |number: u8| Ok::<_, io::Error>((number, signal(SignalKind::from_raw(i32::from(number)))?));
        let other = |it: rustix::process::Signal| signal(SignalKind::from_raw(it.as_raw()));
        Ok(Signals {
            end: [of(1)?, of(2)?, of(3)?, of(15)?],
            stop: other(rustix::process::Signal::TSTP)?,
            go_on: other(rustix::process::Signal::CONT)?,
            resized: signal(SignalKind::window_change())?,
        })
    }

    async fn next(&mut self) -> Signal {
        let [(hup, a), (int, b), (quit, c), (term, d)] = &mut self.end;
        tokio::select! {
            biased;
            _ = a.recv() => Signal::End(*hup),
            _ = b.recv() => Signal::End(*int),
            _ = c.recv() => Signal::End(*quit),
            _ = d.recv() => Signal::End(*term),
            _ = self.stop.recv() => Signal::Stop,
            _ = self.go_on.recv() => Signal::GoOn,
            _ = self.resized.recv() => Signal::Resized,
        }
    }
}
