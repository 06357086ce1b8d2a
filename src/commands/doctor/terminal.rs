//! What `pixir doctor` says about the terminal: what its variables announce, and what it answers.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pixir_ui::Clipboards;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use super::{Finding, pass, warn};
use crate::cli::Cli;

/// How long the terminal may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// Characters that pixir draws, or that models write, with the columns that pixir gives them.
const GLYPHS: [(&str, usize); 5] = [("│", 1), ("✓", 1), ("❯", 1), ("日", 2), ("😀", 2)];

/// What the environment says.
pub(super) fn announced(cli: &Cli) -> Vec<Finding> {
    let term = cli.environment.variable("TERM").unwrap_or("(not set)");
    if !std::io::stdout().is_terminal() {
        return vec![pass("terminal", format!("stdout is not a terminal (TERM={term}); use --headless"))];
    }
    let mut findings = vec![if term == "dumb" {
        warn("terminal", "TERM=dumb", "use --headless, or a terminal that can move its cursor")
    } else {
        pass("terminal", format!("TERM={term}"))
    }];
    let truecolor = cli.environment.variable("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
    findings.push(if truecolor {
        pass("colour", "24-bit")
    } else {
        warn(
            "colour",
            "COLORTERM does not announce 24-bit colour; themes use 256 colours",
            "export COLORTERM=truecolor, if the terminal supports it",
        )
    });
    findings.push(clipboard(cli));
    if cli.environment.variable("TMUX").is_some() {
        findings.push(passthrough());
    }
    findings
}

fn clipboard(cli: &Cli) -> Finding {
    let routes = Clipboards::of(|name| cli.environment.variable(name).is_some());
    let is_installed = |program: &str| {
        std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
    };
    let programs = routes.names();
    match programs.iter().find(|it| is_installed(it)) {
        Some(program) => pass("clipboard", format!("{program}, and OSC 52")),
        None if programs.is_empty() => pass("clipboard", "OSC 52: the terminal copies"),
        None => warn(
            "clipboard",
            format!("OSC 52 alone: none of {} is installed", programs.join(", ")),
            &format!("install {}, or allow OSC 52 in the terminal", programs[0]),
        ),
    }
}

/// Whether tmux passes sequences on to the terminal around it.
fn passthrough() -> Finding {
    let fix = "tmux set -g allow-passthrough on";
    let asked = Command::new("tmux")
        .args(["show-options", "-gwv", "allow-passthrough"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match asked.as_ref().map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned()).as_deref() {
        Ok("on" | "all") => pass("tmux", "it passes sequences on to the terminal"),
        Ok("off") => warn("tmux", "it does not pass sequences on, so images and OSC 52 end there", fix),
        Ok(_) | Err(_) => warn("tmux", "it does not say whether it passes sequences on to the terminal", fix),
    }
}

/// What the terminal answers when it is asked. Only where no interface reads the keys.
pub(super) fn answered(cli: &Cli) -> Vec<Finding> {
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !is_terminal || cli.environment.variable("TERM").is_none_or(|term| term == "dumb") {
        return Vec::new();
    }
    let Ok(said) = ask() else { return Vec::new() };
    findings(&said)
}

fn findings(said: &str) -> Vec<Finding> {
    let replies = Replies::read(said);
    if !replies.is_complete {
        let ms = PATIENCE.as_millis();
        let fix = "a terminal that answers device attributes (CSI c); over a slow line this is no fault";
        return vec![warn("answers", format!("the terminal did not answer within {ms} ms"), fix)];
    }
    let wrong: Vec<String> = GLYPHS
        .iter()
        .zip(&replies.columns)
        .filter(|((_, expected), columns)| expected != *columns)
        .map(|((glyph, expected), columns)| format!("{glyph} takes {columns}, not {expected}"))
        .collect();
    vec![
        match replies.synchronized {
            true => pass("frames", "synchronized updates"),
            false => warn(
                "frames",
                "no synchronized updates: a frame can be seen half drawn",
                "a terminal with mode 2026, such as kitty, foot, Ghostty, WezTerm or iTerm2",
            ),
        },
        match replies.kitty {
            true => pass("keys", "the kitty keyboard protocol"),
            false => warn(
                "keys",
                "no kitty keyboard protocol: Shift+Enter may be Enter",
                "Ctrl+J begins a new line everywhere",
            ),
        },
        match (wrong.is_empty(), replies.columns.len() == GLYPHS.len()) {
            (true, true) => pass("glyphs", "as wide as pixir takes them to be"),
            (true, false) => warn(
                "glyphs",
                "the terminal does not say where its cursor is",
                "a terminal that reports its cursor (CSI 6 n)",
            ),
            (false, _) => warn(
                "glyphs",
                wrong.join("; "),
                "set ambiguous characters to narrow in the terminal; pixir sets the cursor again behind them",
            ),
        },
    ]
}

/// What a terminal has answered.
#[derive(Debug, Default)]
struct Replies {
    synchronized: bool,
    kitty: bool,
    /// Columns of each of [`GLYPHS`], as far as the cursor was reported.
    columns: Vec<usize>,
    /// The last query was answered.
    is_complete: bool,
}

impl Replies {
    fn read(said: &str) -> Replies {
        let mut it = Replies::default();
        for reply in said.split("\x1b[").skip(1) {
            let end = reply.find(|c: char| c.is_ascii_alphabetic());
            let Some((parameters, kind)) = end.map(|at| (&reply[..at], &reply[at..=at])) else { continue };
            match kind {
                // 1 and 2: it is set or not, and known; 3: always set.
                "y" if parameters.starts_with("?2026;") => {
                    it.synchronized =
                        parameters.contains(";1") || parameters.contains(";2") || parameters.contains(";3");
                }
                "u" => it.kitty |= parameters.starts_with('?'),
                "R" => {
                    let column = parameters.split_once(';').and_then(|(_, column)| column.parse::<usize>().ok());
                    it.columns.extend(column.map(|column| column.saturating_sub(1)));
                }
                "c" => it.is_complete = true,
                _ => {}
            }
        }
        it
    }
}

/// Asks the terminal, and reads until the last query is answered or the time is up. What was typed meanwhile is lost.
fn ask() -> std::io::Result<String> {
    let mut tty = File::options().read(true).write(true).open("/dev/tty")?;
    let before = tcgetattr(&tty)?;
    let _restored = Restored { tty: tty.try_clone()?, modes: before.clone() };
    let mut silent = before;
    silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
    silent.special_codes[SpecialCodeIndex::VMIN] = 0;
    silent.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&tty, OptionalActions::Now, &silent)?;
    let mut queries = "\x1b[?2026$p\x1b[?u".to_owned();
    for (glyph, _) in GLYPHS {
        queries.push_str(&format!("\r{glyph}\x1b[6n"));
    }
    queries.push_str("\r\x1b[K\x1b[c");
    tty.write_all(queries.as_bytes())?;
    tty.flush()?;
    let until = Instant::now() + PATIENCE;
    let mut said = Vec::new();
    while !Replies::read(&String::from_utf8_lossy(&said)).is_complete {
        let left = until.saturating_duration_since(Instant::now());
        let limit = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        if left.is_zero() || poll(&mut [PollFd::new(&tty.as_fd(), PollFlags::IN)], Some(&limit))? == 0 {
            break;
        }
        let mut some = [0; 256];
        match tty.read(&mut some)? {
            0 => break,
            n => said.extend_from_slice(&some[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Gives the terminal its modes back.
struct Restored {
    tty: File,
    modes: Termios,
}

impl Drop for Restored {
    fn drop(&mut self) {
        // There is no other terminal to say so on.
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.modes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(said: &str) -> Vec<String> {
        findings(said).iter().map(|it| format!("{} {:?} {}", it.name, it.grade, it.message)).collect()
    }

    #[test]
    fn each_answer_is_a_fact_and_a_silent_terminal_is_told_of() {
        let whole = "\x1b[?2026;2$y\x1b[?0u\x1b[1;2R\x1b[1;2R\x1b[1;2R\x1b[1;3R\x1b[1;3R\x1b[?62;22c";
        assert_eq!(
            row(whole),
            [
                "frames Pass synchronized updates",
                "keys Pass the kitty keyboard protocol",
                "glyphs Pass as wide as pixir takes them to be"
            ]
        );
        let old = "\x1b[?2026;0$y\x1b[1;2R\x1b[1;3R\x1b[1;2R\x1b[1;3R\x1b[1;3R\x1b[?1;2c";
        assert_eq!(
            row(old),
            [
                "frames Warn no synchronized updates: a frame can be seen half drawn",
                "keys Warn no kitty keyboard protocol: Shift+Enter may be Enter",
                "glyphs Warn ✓ takes 2, not 1"
            ]
        );
        assert_eq!(row("\x1b[?1;2c")[2], "glyphs Warn the terminal does not say where its cursor is");
        assert_eq!(row(""), ["answers Warn the terminal did not answer within 500 ms"]);
    }
}
