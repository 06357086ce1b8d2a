//! The user's own editor, for a long draft or a merge by hand.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use pixir_core::OfThePerson;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// How long an editor may take to restore the terminal after it is asked to end.
const GRACE: Duration = Duration::from_millis(300);

/// Who gets the terminal until they end.
#[derive(Debug)]
pub(crate) enum Borrower {
    /// The user's editor, with the draft.
    Draft,
    /// The demo.
    Demo,
    /// The user's editor, with a file of the workspace, at a line counted from 1.
    File { path: String, line: u32 },
    /// The user's editor, with both versions of a file that an agent and the user changed.
    Merge { path: String, text: String },
}

/// A running editor, with the text and the terminal.
///
/// The text is in a temporary file that only the user can read. However the editor ends, the terminal modes are
/// restored and the file is deleted.
#[derive(Debug)]
pub(crate) struct Editing {
    /// The text to write. A file of the workspace, and a program that only shows something, have none.
    draft: Option<NamedTempFile>,
    name: String,
    child: Child,
    _guard: OfThePerson,
    /// The terminal modes before the editor started. An editor that is killed does not restore them.
    before: Option<Termios>,
}

impl Editing {
    /// Starts the editor on a text, in a file with this ending.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn begin(text: &str, suffix: &str, editor: &str) -> Result<Editing, String> {
        let unwritten = |e: io::Error| format!("cannot write the text to a file for the editor: {e}");
        let mut file = tempfile::Builder::new().prefix("pixir-").suffix(suffix).tempfile().map_err(unwritten)?;
        file.write_all(text.as_bytes()).map_err(unwritten)?;
        let place = [file.path().as_os_str().to_owned()];
        Editing::start(editor, &place, Some(file))
    }

    /// Starts the editor on a file, at a line counted from 1.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn open(path: &Path, line: u32, editor: &str) -> Result<Editing, String> {
        if !path.is_file() {
            return Err("the file is not there any more".to_owned());
        }
        let program = Path::new(editor.split_whitespace().next().unwrap_or("vi")).file_name();
        let mut with_line = path.as_os_str().to_owned();
        with_line.push(format!(":{line}"));
        // Most editors take the line as `+12`; these take it behind the path.
        let place = match program.and_then(OsStr::to_str) {
            Some("hx" | "helix" | "zed" | "subl") => vec![with_line],
            Some("code" | "codium" | "code-insiders") => vec!["--goto".into(), with_line],
            Some(_) | None => vec![format!("+{line}").into(), path.as_os_str().to_owned()],
        };
        Editing::start(editor, &place, None)
    }

    fn start(editor: &str, place: &[OsString], draft: Option<NamedTempFile>) -> Result<Editing, String> {
        let mut words = editor.split_whitespace();
        let name = words.next().unwrap_or("vi").to_owned();
        let before = tcgetattr(io::stdin()).ok();
        let started = OfThePerson::start(Command::new(&name).args(words).args(place).kill_on_drop(true));
        let (child, guard) = started.map_err(|e| format!("cannot start {name}: {e}; set VISUAL or EDITOR"))?;
        Ok(Editing { draft, name, child, before, _guard: guard })
    }

    /// Starts a program that only shows something, such as the demo.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) fn show(program: &Path, argument: &str) -> Result<Editing, String> {
        let before = tcgetattr(io::stdin()).ok();
        let started = OfThePerson::start(Command::new(program).arg(argument).kill_on_drop(true));
        let (child, guard) = started.map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        Ok(Editing { draft: None, name: format!("the {argument}"), child, before, _guard: guard })
    }

    /// Waits until the editor ends.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
    }

    /// The editor has stopped itself, to go back to the shell.
    pub(crate) fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.id().is_some_and(|id| matches!(waitid(WaitId::Pid(id), options), Ok(Some(_))))
    }

    /// Ends the editor. The text stays as it was before.
    pub(crate) async fn stop(mut self) {
        if let Some(id) = self.id() {
            let _ = kill_process(id, Signal::TERM);
        }
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }

    /// The text that the user has written; `None` if the program had none.
    ///
    /// # Errors
    /// Why the text stays unchanged, for the user.
    pub(crate) fn written(&self, ended: io::Result<ExitStatus>) -> Result<Option<String>, String> {
        let name = &self.name;
        let unchanged = if self.draft.is_some() { "; the text is unchanged" } else { "" };
        let status = ended.map_err(|e| format!("cannot wait for {name}: {e}{unchanged}"))?;
        if !status.success() {
            let how = status.code().map_or_else(|| status.to_string(), |code| format!("code {code}"));
            return Err(format!("{name} ended with {how}{unchanged}"));
        }
        let Some(draft) = &self.draft else { return Ok(None) };
        // Opened by path again, because many editors replace the file instead of writing into it.
        let mut text = String::new();
        std::fs::File::open(draft.path())
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|e| format!("cannot read what {name} has written: {e}"))?;
        Ok(Some(text))
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
