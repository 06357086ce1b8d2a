//! Copying text to a clipboard, with a truthful report of where it went; reading a copied image.

use std::process::Stdio;

use pixir_core::OfThePerson;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How long a clipboard program may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
/// The longest text that terminals accept in OSC 52, in bytes.
const MAX_OSC: usize = 74_994;

/// The ways to a clipboard, detected from the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clipboards {
    /// Inside tmux.
    pub tmux: bool,
    /// Over SSH: the clipboard of this machine is not the user's.
    pub ssh: bool,
    /// A Wayland display.
    pub wayland: bool,
    /// An X11 display.
    pub x11: bool,
}

impl Clipboards {
    /// Reads the environment; `variable` tells whether a variable is set.
    pub fn of(variable: impl Fn(&str) -> bool) -> Clipboards {
        Clipboards {
            tmux: variable("TMUX"),
            ssh: variable("SSH_CONNECTION") || variable("SSH_TTY"),
            wayland: variable("WAYLAND_DISPLAY"),
            x11: variable("DISPLAY"),
        }
    }

    /// The names of the programs that copy to a clipboard, the best first.
    pub fn names(&self) -> Vec<&'static str> {
        self.programs().iter().map(|program| program[0]).collect()
    }

    /// Programs that copy their input to a clipboard, the best first.
    fn programs(&self) -> Vec<&'static [&'static str]> {
        let mut programs: Vec<&'static [&'static str]> = Vec::new();
        if !self.ssh {
            if cfg!(target_os = "macos") {
                programs.push(&["pbcopy"]);
            }
            if self.wayland {
                programs.push(&["wl-copy"]);
            }
            if self.x11 {
                programs.push(&["xclip", "-selection", "clipboard"]);
                programs.push(&["xsel", "--clipboard", "--input"]);
            }
        }
        if self.tmux {
            // -w also passes the text on to the terminal, if the user's tmux configuration allows that.
            programs.push(&["tmux", "load-buffer", "-w", "-"]);
        }
        programs
    }
}

/// The sequence that asks the terminal to copy the text. None if the text is too long for it.
pub(crate) fn osc52(text: &str) -> Option<String> {
    (text.len() <= MAX_OSC).then(|| format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text)))
}

/// Whether the text was sent to the terminal with OSC 52.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Osc52 {
    Sent,
    TooLong,
}

/// Copies the text with the first program that accepts it. Returns a report for the user.
pub(crate) async fn copy(text: &str, clipboards: &Clipboards, osc52: Osc52) -> String {
    let amount = amount(text);
    let mut accepted = None;
    for program in clipboards.programs() {
        if give(program, text).await.unwrap_or(false) {
            accepted = Some(program);
            break;
        }
    }
    match (accepted, osc52) {
        (Some(["tmux", ..]), _) => format!("copied {amount} to tmux (prefix ]), and to the terminal if tmux allows it"),
        (Some(program), _) => format!("copied {amount} with {}", program[0]),
        (None, Osc52::Sent) => format!("copied {amount}: sent to the terminal (OSC 52), which may ignore it"),
        (None, Osc52::TooLong) => {
            format!("not copied: {amount} exceed the terminal's limit, and there is no clipboard program")
        }
    }
}

/// Runs a program with the text as its input. None if the program cannot be started.
async fn give(program: &[&str], text: &str) -> Option<bool> {
    let (name, args) = program.split_first()?;
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let (mut child, _guard) = OfThePerson::start(&mut command).ok()?;
    let mut input = child.stdin.take()?;
    let run = async {
        let written = input.write_all(text.as_bytes()).await.is_ok();
        drop(input);
        written && child.wait().await.is_ok_and(|status| status.success())
    };
    Some(tokio::time::timeout(TIMEOUT, run).await.unwrap_or(false))
}

/// Reads the image in the clipboard of this machine, as PNG.
///
/// # Errors
/// A message for the user.
pub(crate) async fn image(clipboards: &Clipboards) -> Result<Vec<u8>, &'static str> {
    if clipboards.ssh {
        return Err(
            "over SSH the clipboard of your machine cannot be read; copy the file over, then mention it with @",
        );
    }
    let mut programs: Vec<&[&str]> = Vec::new();
    if cfg!(target_os = "macos") {
        programs.push(&["pngpaste", "-"]);
    }
    if clipboards.wayland {
        programs.push(&["wl-paste", "--no-newline", "--type", "image/png"]);
    }
    if clipboards.x11 {
        programs.push(&["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]);
    }
    let mut has_program = false;
    for program in programs {
        match read(program).await {
            Some(bytes) if !bytes.is_empty() => return Ok(bytes),
            Some(_) => has_program = true,
            None => {}
        }
    }
    Err(if has_program {
        "no image in the clipboard; paste the path of a file, or mention it with @"
    } else {
        "no program can read the clipboard: install wl-paste, xclip or pngpaste, paste a path, or mention a file with @"
    })
}

/// The output of a program, empty if it fails. None if the program cannot be started.
async fn read(program: &[&str]) -> Option<Vec<u8>> {
    let (name, args) = program.split_first()?;
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let (child, _guard) = OfThePerson::start(&mut command).ok()?;
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await.ok()?.ok()?;
    Some(if output.status.success() { output.stdout } else { Vec::new() })
}

/// `3 lines`, `14 characters`.
fn amount(text: &str) -> String {
    let lines = text.trim_end().lines().count();
    let characters = text.chars().count();
    match (lines, characters) {
        (0 | 1, 1) => "1 character".into(),
        (0 | 1, n) => format!("{n} characters"),
        (n, _) => format!("{n} lines"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_report_claims_only_what_is_known() {
        assert_eq!(
            copy("abc", &Clipboards::default(), Osc52::Sent).await,
            "copied 3 characters: sent to the terminal (OSC 52), which may ignore it"
        );
        assert!(copy("abc", &Clipboards::default(), Osc52::TooLong).await.contains("there is no clipboard program"));
        assert_eq!(osc52("hi"), Some("\x1b]52;c;aGk=\x1b\\".into()));
        assert_eq!(osc52(&"x".repeat(MAX_OSC + 1)), None);
        let over_ssh = Clipboards { ssh: true, x11: true, wayland: true, tmux: false };
        assert!(over_ssh.programs().is_empty(), "the clipboard of this machine is not the user's");
    }
}
