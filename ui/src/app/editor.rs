//! The person's own editor, for a draft that is long.

use std::io::{self, Read as _, Write as _};
use std::process::ExitStatus;
use std::time::Duration;

use pixir_core::process::OfThePerson;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tempfile::NamedTempFile;
use tokio::process::{Child, Command};

/// How long an editor has to leave the terminal as it found it, when it is told to end.
const GRACE: Duration = Duration::from_millis(300);

/// An editor that has the draft, and the terminal.
///
/// The draft lies in a file of its own that only the person can read, and is gone afterwards. However the editor ends, the
/// terminal is set as it was before.
#[derive(Debug)]
pub(crate) struct Editing {
    file: NamedTempFile,
    name: String,
    child: Child,
    _guard: OfThePerson,
    before: Option<Termios>,
}

impl Editing {
    /// Opens the draft in it.
    ///
    /// # Errors
    /// Why it could not, for the person.
    pub(crate) fn begin(draft: &str, editor: &str) -> Result<Editing, String> {
        let unwritten = |e: io::Error| format!("the draft could not be written for the editor: {e}");
        let mut file = tempfile::Builder::new().prefix("pixir-").suffix(".md").tempfile().map_err(unwritten)?;
        file.write_all(draft.as_bytes()).map_err(unwritten)?;
        let mut words = editor.split_whitespace();
        let name = words.next().unwrap_or("vi").to_owned();
        let before = tcgetattr(io::stdin()).ok();
        let started = OfThePerson::start(Command::new(&name).args(words).arg(file.path()).kill_on_drop(true));
        let (child, guard) = started.map_err(|e| format!("{name} could not be started: {e}; set VISUAL or EDITOR"))?;
        Ok(Editing { file, name, child, before, _guard: guard })
    }

    /// Returns when it has ended.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
    }

    /// It has stopped itself, to go back to the shell.
    pub(crate) fn is_stopped(&self) -> bool {
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.id().is_some_and(|id| matches!(waitid(WaitId::Pid(id), look), Ok(Some(_))))
    }

    /// Ends it; what was written in it is lost, and the draft is as it was.
    pub(crate) async fn stop(mut self) {
        if let Some(id) = self.id() {
            let _ = kill_process(id, Signal::TERM);
        }
        let _ = tokio::time::timeout(GRACE, self.child.wait()).await;
    }

    /// What was written, or why it does not count.
    pub(crate) fn written(&self, ended: io::Result<ExitStatus>) -> Result<String, String> {
        let name = &self.name;
        let status = ended.map_err(|e| format!("{name} was lost: {e}; the draft is as it was"))?;
        if !status.success() {
            let how = status.code().map_or_else(|| status.to_string(), |code| format!("code {code}"));
            return Err(format!("{name} ended with {how}; the draft is as it was"));
        }
        // Many editors write a new file in the place of the old one.
        let mut text = String::new();
        std::fs::File::open(self.file.path())
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|e| format!("what {name} has written could not be read: {e}"))?;
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
