//! The loop on the real terminal: wait, drain, update, draw. Input goes first; nothing is drawn when nothing changed.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::Event as TerminalEvent;
use pixir_core::Result;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::{App, Farewell, Launch, next_event};
use crate::terminal::Screen;

/// The shortest time between two frames that only news asked for.
const FRAME: Duration = Duration::from_millis(16);
/// How often what is animated moves.
const TICK: Duration = Duration::from_millis(120);
/// How soon after a change the draft is safe.
const KEEP_AFTER: Duration = Duration::from_millis(200);

/// Runs the interface on the real terminal until the person quits or a signal comes.
///
/// # Errors
/// What the terminal says; inside, what the theme or the configuration says.
pub async fn run(launch: Launch) -> io::Result<Result<Farewell>> {
    let title = format!("pixir · {}", launch.workspace.file_name().map_or_else(|| "/".into(), |n| n.to_string_lossy()));
    let mut app = match App::new(launch) {
        Ok(app) => app,
        Err(error) => return Ok(Err(error)),
    };
    let mut screen = Screen::take(&title)?;
    let outcome = steer(&mut app, &mut screen).await;
    drop(screen);
    let signal = outcome?;
    Ok(app.close(signal).await)
}

async fn steer(app: &mut App, screen: &mut Screen) -> io::Result<Option<u8>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    screen.draw(&mut app.state)?;
    app.dirty = false;
    let mut drawn = Instant::now();
    let mut keys = keyboard()?;
    let mut keep_due = None;
    loop {
        let frame_due = tokio::time::Instant::from_std(drawn + if app.dirty { FRAME } else { TICK });
        let wants_frame = app.dirty || app.state.is_animated();
        let mut by_hand = false;
        if keep_due.is_none() && std::mem::take(&mut app.keep_soon) {
            keep_due = Some(tokio::time::Instant::now() + KEEP_AFTER);
        }
        tokio::select! {
            biased;
            event = keys.recv() => match event {
                Some(event) => {
                    by_hand = true;
                    app.hear_terminal(event).await;
                }
                // The terminal is gone.
                None => return Ok(Some(1)),
            },
            _ = terminate.recv() => return Ok(Some(15)),
            _ = hangup.recv() => return Ok(Some(1)),
            _ = interrupt.recv() => return Ok(Some(2)),
            () = tokio::time::sleep_until(frame_due), if wants_frame => {
                if !app.dirty {
                    app.state.frame += 1;
                }
                app.dirty = true;
                screen.draw(&mut app.state)?;
                app.dirty = false;
                drawn = Instant::now();
                continue;
            }
            () = tokio::time::sleep_until(keep_due.unwrap_or(frame_due)), if keep_due.is_some() => {
                keep_due = None;
                app.keep();
                continue;
            }
            event = next_event(&mut app.watch) => app.hear_session(event).await,
            Some(news) = app.news.recv() => app.hear(news).await,
        }
        while let Ok(event) = keys.try_recv() {
            by_hand = true;
            app.hear_terminal(event).await;
        }
        app.drain().await;
        if app.is_done() {
            return Ok(None);
        }
        // A key is answered at once; news waits for its frame.
        if app.dirty && (by_hand || drawn.elapsed() >= FRAME) {
            screen.draw(&mut app.state)?;
            app.dirty = false;
            drawn = Instant::now();
        }
    }
}

/// Reads the terminal on a thread of its own, which sleeps until there is something to read.
fn keyboard() -> io::Result<mpsc::UnboundedReceiver<TerminalEvent>> {
    let (tell, keys) = mpsc::unbounded_channel();
    std::thread::Builder::new().name("keyboard".into()).spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            if tell.send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(keys)
}
