//! Stored Sessions: their files, a summary of each that needs no opening, and the trash.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::blobs;
use crate::log::Log;
use crate::regular;
use crate::removal::remove_folder;
use crate::rules::Rules;
use crate::running::Running;
use crate::trust::Trust;
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{SessionId, SettingsChanged};
use protocol::remedy::{Remedy, Sessions};

mod family; // Sessions that a Session has started
mod gc; // removal of files that no Log refers to
mod index; // one summary for each Session, rebuilt from the Logs
mod moves; // moves to the trash, back, and to another workspace
mod prompts; // the prompt history

pub use gc::Garbage;
pub use gc::blobs_named;
pub use index::Summary;
pub use moves::Trashed;

/// The name of folders for temporary files of programs: a Session's, and that of the state folder for calls outside
/// Sessions.
pub const SCRATCH: &str = "tmp";
/// The folder of copies of workspaces.
pub(crate) const COPIES: &str = "copies";

/// The file of a Presenter's state over all Sessions.
const PRESENTER: &str = "presenter.json";

/// Everything that pixir stores under its home folder.
#[derive(Debug, Clone)]
pub struct Store {
    home: PathBuf,
}

/// The location of one Session's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The Session's id.
    pub id: SessionId,
    folder: PathBuf,
}

impl Place {
    /// A Session of this folder.
    pub fn new(folder: &Path, id: SessionId) -> Place {
        Place { id, folder: folder.to_owned() }
    }

    /// The path of its Log.
    pub fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.ndjson", self.id))
    }

    /// The folder of its other files.
    pub fn own_folder(&self) -> PathBuf {
        self.folder.join(self.id.as_str())
    }

    /// The folder of its saved outputs.
    pub fn outputs(&self) -> PathBuf {
        self.own_folder().join("out")
    }

    /// The folder of temporary files, which programs of the Session see as `/tmp`.
    pub fn scratch(&self) -> PathBuf {
        self.own_folder().join(SCRATCH)
    }

    /// The folder of what programs of the Session, and of those that it starts, write to caches.
    pub fn cover(&self) -> PathBuf {
        self.own_folder().join("caches")
    }

    /// The file that asks the process which has the Session open for the end of its agents. That process removes it.
    fn agents_stop_file(&self) -> PathBuf {
        self.own_folder().join("stop-agents")
    }

    /// The folder in which that request comes. It is there when this returns.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn folder_of_requests(&self) -> io::Result<PathBuf> {
        make_private(&self.own_folder())?;
        Ok(self.own_folder())
    }

    /// Asks the process that has the Session open for the end of its agents.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn ask_for_end_of_agents(&self) -> io::Result<()> {
        make_private(&self.own_folder())?;
        write_whole(&self.agents_stop_file(), &[])
    }

    /// Removes that request: the process that was asked takes it, or the one that asked takes it back. Returns whether it was
    /// there.
    pub fn take_back_end_of_agents(&self) -> bool {
        fs::remove_file(self.agents_stop_file()).is_ok()
    }

    fn presenter_file(&self) -> PathBuf {
        self.own_folder().join("presenter.json")
    }

    /// Reads the state that a Presenter saved, if any.
    pub fn presenter_state(&self) -> Option<String> {
        regular::read_to_string(&self.presenter_file()).ok()
    }

    /// Saves a Presenter's state for the next time, also after a crash. The file is written whole or not at all.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn keep_presenter_state(&self, state: &str) -> io::Result<()> {
        if state.is_empty() {
            return match fs::remove_file(self.presenter_file()) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                Ok(()) | Err(_) => Ok(()),
            };
        }
        make_private(&self.own_folder())?;
        write_whole(&self.presenter_file(), state.as_bytes())
    }

    /// The file whose presence pins the Session. It moves with the Session, and no two processes write it differently.
    fn pin_file(&self) -> PathBuf {
        self.own_folder().join("pinned")
    }

    /// Whether the user wants the Session at the top of lists.
    pub fn is_pinned(&self) -> bool {
        self.pin_file().exists()
    }

    /// Pins the Session to the top of lists, also while another process has it open.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn pin(&self) -> Result<()> {
        make_private(&self.own_folder())
            .and_then(|()| write_whole(&self.pin_file(), &[]))
            .map_err(|e| failed("pin the session", &e))
    }

    /// Undoes [`Place::pin`].
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn unpin(&self) -> Result<()> {
        match fs::remove_file(self.pin_file()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed("unpin the session", &e)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Files that repairs left beside the Log: torn ends and damaged Logs.
    pub fn left_by_repairs(&self) -> Vec<PathBuf> {
        let mine = format!("{}.", self.id);
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = names
            .filter(|entry| {
                let name = entry.file_name();
                name.to_str()
                    .and_then(|n| n.strip_prefix(&mine))
                    .is_some_and(|rest| rest.starts_with("torn-") || rest.starts_with("damaged-"))
            })
            .map(|entry| entry.path())
            .collect();
        found.sort();
        found
    }

    /// Returns the summary. If the index is out of date, the rest is read from the Log.
    pub fn summary(&self) -> Option<Summary> {
        index::one(&self.folder, &self.id)
    }
}

/// The Sessions of a folder that have a prompt, the latest first.
pub fn summaries(folder: &Path) -> Vec<Summary> {
    index::list(folder).into_iter().filter(|it| it.first_prompt.is_some() || it.damaged).collect()
}

impl Store {
    /// The store under this home folder. Nothing is created before it is needed.
    pub fn new(home: &Path) -> Store {
        Store { home: home.to_owned() }
    }

    /// The state folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The copies of workspaces in which the agents of this Session work.
    pub fn copies(&self, root: &SessionId) -> PathBuf {
        self.home.join(COPIES).join(root.as_str())
    }

    /// The prompt history over all Sessions, oldest first.
    pub fn prompts(&self) -> Vec<String> {
        prompts::read(&self.home)
    }

    /// Adds to the prompt history.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn keep_prompts(&self, texts: &[String]) -> io::Result<()> {
        prompts::add(&self.home, texts)
    }

    /// Reads the small state that a Presenter keeps over all Sessions, if any.
    pub fn presenter_state(&self) -> Option<String> {
        regular::read_to_string(&self.home.join(PRESENTER)).ok()
    }

    /// Saves it. The file is written whole or not at all.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn keep_presenter_state(&self, state: &str) -> io::Result<()> {
        make_private(&self.home)?;
        write_whole(&self.home.join(PRESENTER), state.as_bytes())
    }

    /// The blob store.
    pub fn blobs(&self) -> blobs::Blobs {
        blobs::Blobs::new(self.home.join("blobs"))
    }

    /// The rules that the user made.
    pub fn rules(&self) -> Rules {
        Rules::new(&self.home)
    }

    /// The workspaces that the user trusts.
    pub fn trust(&self) -> Trust {
        Trust::new(&self.home)
    }

    /// Notes of what running processes have started.
    pub fn running(&self) -> Running {
        Running::new(self.home.join("running"))
    }

    /// The folder of a workspace's Logs.
    pub fn folder_of(&self, workspace: &Path) -> PathBuf {
        self.home.join("sessions").join(slug(workspace))
    }

    /// The Sessions of a folder that have a prompt, the latest first. Those that another Session started are left out.
    pub fn list(&self, folder: &Path) -> Vec<Summary> {
        summaries(folder).into_iter().filter(|it| it.parent.is_none()).collect()
    }

    /// The Sessions of a folder that other Sessions started, the latest first.
    pub fn agents(&self, folder: &Path) -> Vec<Summary> {
        summaries(folder).into_iter().filter(|it| it.parent.is_some()).collect()
    }

    /// The same for the folders of all workspaces.
    pub fn agents_of_all(&self) -> Vec<Summary> {
        self.folders().iter().flat_map(|folder| self.agents(folder)).collect()
    }

    /// Sessions of all workspaces, the latest first.
    pub fn list_all(&self) -> Vec<Summary> {
        let mut all: Vec<Summary> = self.folders().iter().flat_map(|folder| self.list(folder)).collect();
        all.sort_by(|a, b| b.last_activity.cmp(&a.last_activity).then_with(|| b.id.cmp(&a.id)));
        all
    }

    /// Files of a folder that are named like Logs but are FIFOs, devices, sockets, folders or dangling links. They are
    /// never opened.
    pub fn special_files(&self, folder: &Path) -> Vec<PathBuf> {
        index::special_files(folder)
    }

    /// The same for the folders of all workspaces.
    pub fn all_special_files(&self) -> Vec<PathBuf> {
        self.folders().iter().flat_map(|folder| index::special_files(folder)).collect()
    }

    /// The errors of folders that cannot be read, so that their Sessions are in no list.
    pub fn unreadable_folders(&self) -> Vec<Error> {
        let all = std::iter::once(self.home.join("sessions")).chain(self.folders());
        let unread = all.filter_map(|folder| match fs::read_dir(&folder) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                let message = format!("the folder {} cannot be read: {e}", folder.display());
                Some(Error::new(Code::ReadFailed, message, Remedy::CheckStateFolder))
            }
            Ok(_) | Err(_) => None,
        });
        unread.collect()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home.join("sessions")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Finds a Session by its id, a unique prefix of it, its name, or `last`; in this folder first, then in all. One that
    /// another Session has started has the text of that one, `/` and its own name.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, with the nearest name; `NOT_UNIQUE` when a prefix fits several.
    pub fn find(&self, text: &str, near: &Path) -> Result<Place> {
        if let Ok(id) = SessionId::parse(text) {
            let folders = std::iter::once(near.to_owned()).chain(self.folders());
            let mut places = folders.map(|folder| Place::new(&folder, id.clone()));
            return places.find(|place| place.log().is_file()).ok_or_else(|| self.not_found(text, near));
        }
        if text == "last" {
            return match self.list(near).first() {
                Some(summary) => Ok(Place::new(near, SessionId::parse(&summary.id)?)),
                None => Err(Error::new(
                    Code::SessionNotFound,
                    "there is no session in this workspace yet",
                    Remedy::ListSessions { which: Sessions::All },
                )),
            };
        }
        for folders in [vec![near.to_owned()], self.folders()] {
            let found: Vec<(PathBuf, Summary)> = folders
                .iter()
                .flat_map(|folder| index::list(folder).into_iter().map(|summary| (folder.clone(), summary)))
                .filter(|(_, it)| (text.len() >= 4 && it.id.starts_with(text)) || it.name.as_deref() == Some(text))
                .collect();
            match found.as_slice() {
                [] => {}
                [(folder, summary)] => return Ok(Place::new(folder, SessionId::parse(&summary.id)?)),
                several => {
                    let ids: Vec<&str> = several.iter().map(|(_, it)| it.id.as_str()).collect();
                    return Err(Error::new(
                        Code::NotUnique,
                        format!("{} sessions match", ids.len()),
                        format!("one of: {}", ids.join(", ")),
                    ));
                }
            }
        }
        self.find_agent(text, near).unwrap_or_else(|| Err(self.not_found(text, near)))
    }

    fn not_found(&self, text: &str, near: &Path) -> Error {
        let known = self.list(near);
        let elsewhere = self.list_all();
        let names = known.iter().chain(&elsewhere).flat_map(|it| [Some(it.id.as_str()), it.name.as_deref()]).flatten();
        let shown: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
        let all = Remedy::ListSessions { which: Sessions::All };
        let fix = match nearest(&shown, names) {
            Some(near) => Remedy::any_of([Remedy::nearest(near), all]),
            None => all,
        };
        let code = Code::SessionNotFound;
        match SessionId::parse(text) {
            Ok(_) => Error::new(code, format!("there is no session {shown}"), fix).with("input", shown),
            // Text that does not look like an id may be hostile, so the message does not repeat it.
            Err(e) if known.iter().all(|it| it.name.is_none()) => Error::new(code, e.message, fix).with("input", shown),
            Err(_) => Error::new(code, "there is no session with that id or name", fix).with("input", shown),
        }
    }

    /// Names a Session; an empty name removes it.
    ///
    /// # Errors
    /// `SESSION_LOCKED` when another process writes it, `CORRUPT_LOG_LINE`, `LOG_WRITE_FAILED`.
    pub fn rename(&self, place: &Place, name: &str) -> Result<()> {
        let (mut log, _) = Log::open(&place.log(), place.id.clone())?;
        log.append(None, SettingsChanged { name: Some(name.to_owned()), ..SettingsChanged::default() }.into())?;
        log.sync()
    }

    /// Deletes a Session without a prompt that no process has open, and returns the state that its Presenter saved.
    pub fn abandoned(&self, folder: &Path) -> Option<String> {
        let silent = index::list(folder).into_iter().filter(|it| it.first_prompt.is_none() && it.head.is_none());
        silent.filter_map(|it| Some(Place::new(folder, SessionId::parse(&it.id).ok()?))).find_map(|place| {
            let state = place.presenter_state()?;
            let (log, contents) = Log::open(&place.log(), place.id.clone()).ok()?;
            // The index may be out of date, so the Log decides whether there is a prompt.
            if contents.entries.iter().any(|entry| entry.fact.is_conversation()) {
                return None;
            }
            fs::remove_file(log.path()).ok()?;
            remove_folder(&place.own_folder()).ok()?;
            Some(state)
        })
    }

    /// All Sessions, including those without a prompt.
    pub fn places(&self) -> Vec<Place> {
        self.folders()
            .iter()
            .flat_map(|folder| index::ids_in(folder).into_iter().map(|id| Place::new(folder, id)))
            .collect()
    }
}

pub use index::Indexed;

/// A readable, unique folder name for a workspace: its last component and a hash of the whole path.
fn slug(root: &Path) -> PathBuf {
    let name: String = root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_else(|| "root".into());
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(40)
        .collect();
    let hash = blobs::name_of(root.as_os_str().as_encoded_bytes());
    PathBuf::from(format!("{safe}-{}", &hash[..8]))
}

/// Creates a folder and its parents, for the owner alone.
pub fn make_private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Replaces a file atomically. Only the user can read it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("{:x}.tmp", uuid::Uuid::now_v7().as_u128()));
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn failed(what: &str, e: &io::Error) -> Error {
    Error::new(Code::WriteFailed, format!("{what}: {e}"), Remedy::CheckStateFolder)
}
