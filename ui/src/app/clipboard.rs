//! Putting a text where it can be pasted, and saying what really happened; taking an image that was copied.

use std::process::Stdio;

use pixir_core::process::OfThePerson;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// How long a program may take to put something into the clipboard, or to give what is in it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);
/// The most that terminals take, bytes of text.
const MAX_OSC: usize = 74_994;

/// What the environment says of ways to a clipboard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ways {
    /// Inside tmux.
    pub tmux: bool,
    /// Over the network: a clipboard of this machine is not the person's.
    pub ssh: bool,
    /// A Wayland, or an X11 display.
    pub wayland: bool,
    /// An X11 display.
    pub x11: bool,
}

impl Ways {
    /// As variables say.
    pub fn of(variable: impl Fn(&str) -> bool) -> Ways {
        Ways {
            tmux: variable("TMUX"),
            ssh: variable("SSH_CONNECTION") || variable("SSH_TTY"),
            wayland: variable("WAYLAND_DISPLAY"),
            x11: variable("DISPLAY"),
        }
    }

    /// Programs that put their input into a clipboard, the best first.
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
            // -w hands it on to the terminal, where tmux is allowed to.
            programs.push(&["tmux", "load-buffer", "-w", "-"]);
        }
        programs
    }
}

/// The sequence that asks the terminal to take it; none when it is too long for that.
pub(crate) fn osc52(text: &str) -> Option<String> {
    (text.len() <= MAX_OSC).then(|| format!("\x1b]52;c;{}\x1b\\", STANDARD.encode(text)))
}

/// Gives it to the first program that takes it; says which, or what else became of it.
pub(crate) async fn copy(text: &str, ways: &Ways, sent: bool) -> String {
    let what = amount(text);
    let mut taken = None;
    for program in ways.programs() {
        if give(program, text).await.is_some_and(|gave| gave) {
            taken = Some(program);
            break;
        }
    }
    match (taken, sent) {
        (Some(["tmux", ..]), _) => format!("copied {what}: tmux has it (prefix ]), and the terminal if tmux may"),
        (Some(program), _) => format!("copied {what}: {} took it", program[0]),
        (None, true) => format!("copied {what}: sent to the terminal (OSC 52), which may ignore it"),
        (None, false) => format!("{what} are too many for this terminal, and no clipboard program was found"),
    }
}

async fn give(program: &[&str], text: &str) -> Option<bool> {
    let (name, args) = program.split_first()?;
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let (mut child, _guard) = OfThePerson::start(&mut command).ok()?;
    let mut input = child.stdin.take()?;
    let taken = async {
        let written = input.write_all(text.as_bytes()).await.is_ok();
        drop(input);
        written && child.wait().await.is_ok_and(|status| status.success())
    };
    Some(tokio::time::timeout(PATIENCE, taken).await.unwrap_or(false))
}

/// The image that is in the clipboard of this machine, as PNG.
///
/// # Errors
/// Why there is none, for the person.
pub(crate) async fn image(ways: &Ways) -> Result<Vec<u8>, &'static str> {
    if ways.ssh {
        return Err("the clipboard is on your own machine, not here; copy the file over, then @ its name");
    }
    let mut programs: Vec<&[&str]> = Vec::new();
    if cfg!(target_os = "macos") {
        programs.push(&["pngpaste", "-"]);
    }
    if ways.wayland {
        programs.push(&["wl-paste", "--no-newline", "--type", "image/png"]);
    }
    if ways.x11 {
        programs.push(&["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]);
    }
    let mut was_asked = false;
    for program in programs {
        match take(program).await {
            Some(bytes) if !bytes.is_empty() => return Ok(bytes),
            Some(_) => was_asked = true,
            None => {}
        }
    }
    Err(if was_asked {
        "no image was found in the clipboard; a path that is pasted, or @ and its name, goes as well"
    } else {
        "nothing here reads the clipboard: install wl-paste or xclip (pngpaste), paste a path, or type @ and its name"
    })
}

/// What it gives, which may be nothing; none when there is no such program.
async fn take(program: &[&str]) -> Option<Vec<u8>> {
    let (name, args) = program.split_first()?;
    let mut command = Command::new(name);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let (child, _guard) = OfThePerson::start(&mut command).ok()?;
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.ok()?.ok()?;
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
    async fn only_what_can_be_known_is_claimed() {
        assert_eq!(
            copy("abc", &Ways::default(), true).await,
            "copied 3 characters: sent to the terminal (OSC 52), which may ignore it"
        );
        assert!(copy("abc", &Ways::default(), false).await.contains("no clipboard program"));
        assert_eq!(osc52("hi"), Some("\x1b]52;c;aGk=\x1b\\".into()));
        assert_eq!(osc52(&"x".repeat(MAX_OSC + 1)), None);
        let over_ssh = Ways { ssh: true, x11: true, wayland: true, tmux: false };
        assert!(over_ssh.programs().is_empty(), "another machine's clipboard is nobody's");
    }
}
