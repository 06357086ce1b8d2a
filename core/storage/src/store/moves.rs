//! Moves Sessions: to the trash, back from it, and to another workspace.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Place, Store, Summary, failed, make_private, write_whole};
use crate::log::{Log, rename_new};
use crate::regular;
use crate::removal::remove_folder;
use protocol::error::{Code, Error, Result};
use protocol::event::{SessionId, SettingsChanged, now};
use protocol::remedy::{Remedy, Sessions};

const MANIFEST: &str = "manifest.json";

/// A Session in the trash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trashed {
    /// When it was deleted.
    #[serde(serialize_with = "protocol::event::to_the_millisecond")]
    pub deleted: Timestamp,
    /// The folder to restore it to.
    folder: PathBuf,
    /// The Session's summary.
    pub summary: Summary,
    /// Sessions that it had started, in the trash with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<String>,
}

impl Store {
    pub(super) fn trash_folder(&self) -> PathBuf {
        self.home.join("trash")
    }

    /// Moves a Session and all its files to the trash, with the Sessions that it has started. No process may have one of
    /// them open.
    ///
    /// # Errors
    /// `SESSION_LOCKED`, `WRITE_FAILED`.
    pub fn delete(&self, place: &Place) -> Result<Trashed> {
        let below = place.descendants();
        let held = hold(place, &below)?;
        let trashed = Trashed {
            deleted: now(),
            folder: place.folder.clone(),
            summary: Summary { id: place.id.to_string(), ..place.summary().unwrap_or_default() },
            agents: below.iter().map(|it| it.id.to_string()).collect(),
        };
        // Each deletion has its own folder, so that none replaces another.
        let stamp = trashed.deleted.as_millisecond();
        let to = self.trash_folder().join(format!("{}-{stamp}", place.id));
        let text = serde_json::to_string_pretty(&trashed).expect("a manifest is JSON");
        make_private(&to)
            .and_then(|()| write_whole(&to.join(MANIFEST), text.as_bytes()))
            // The Session itself comes last: as long as it is there, it can be deleted again.
            .and_then(|()| below.iter().try_for_each(|it| move_all(it, &it.folder, &to)))
            .and_then(|()| move_all(place, &place.folder, &to))
            .map_err(|e| failed("move the session to the trash", &e))?;
        drop(held);
        Ok(trashed)
    }

    /// Deletes a Session for good, with the Sessions that it has started. Contents of files that only it names stay until
    /// `gc` removes them.
    ///
    /// # Errors
    /// As [`Store::delete`].
    pub fn erase(&self, place: &Place) -> Result<()> {
        let trashed = self.delete(place)?;
        let folder = self.trash_folder().join(format!("{}-{}", place.id, trashed.deleted.as_millisecond()));
        remove_folder(&folder).map_err(|e| failed("delete the session", &e))
    }

    /// Restores a Session from the trash.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` when it is not in the trash, `WRITE_FAILED`, also when a Session with this id exists again.
    pub fn undelete(&self, id: &SessionId) -> Result<Trashed> {
        let mine = self.trashed_folders().into_iter().filter(|(_, it)| it.summary.id == id.as_str());
        let (from, trashed) = mine.max_by(|(_, a), (_, b)| a.deleted.cmp(&b.deleted)).ok_or_else(|| {
            Error::new(
                Code::SessionNotFound,
                format!("{id} is not in the trash"),
                Remedy::ListSessions { which: Sessions::Trash },
            )
            .with("input", id.as_str())
        })?;
        if let Some(there) = self.places().into_iter().find(|it| it.id == *id) {
            return Err(Error::new(
                Code::WriteFailed,
                format!("a session {id} exists again, in {}", there.folder.display()),
                Remedy::DeleteSession { id: id.to_string() },
            ));
        }
        let place = Place::new(&trashed.folder, id.clone());
        let below =
            trashed.agents.iter().filter_map(|id| Some(Place::new(&trashed.folder, SessionId::parse(id).ok()?)));
        make_private(&trashed.folder)
            .and_then(|()| below.into_iter().try_for_each(|it| move_all(&it, &from, &trashed.folder)))
            .and_then(|()| move_all(&place, &from, &trashed.folder))
            .and_then(|()| fs::remove_dir_all(&from))
            .map_err(|e| failed("restore the session from the trash", &e))?;
        Ok(trashed)
    }

    /// Moves a Session to another workspace, with the Sessions that it has started.
    ///
    /// # Errors
    /// `SESSION_LOCKED`, `CORRUPT_LOG_LINE`, `LOG_WRITE_FAILED`, `WRITE_FAILED`.
    pub fn relocate(&self, place: &Place, workspace: &Path) -> Result<()> {
        let below = place.descendants();
        drop(hold(place, &below)?);
        below.iter().try_for_each(|it| self.relocate_one(it, workspace))?;
        self.relocate_one(place, workspace)
    }

    fn relocate_one(&self, place: &Place, workspace: &Path) -> Result<()> {
        let (mut log, _) = Log::open(&place.log(), place.id.clone())?;
        let to = self.folder_of(workspace);
        if to != place.folder {
            make_private(&to)
                .and_then(|()| move_all(place, &place.folder, &to))
                .map_err(|e| failed("move the session", &e))?;
        }
        let change = SettingsChanged { workspace: Some(workspace.display().to_string()), ..SettingsChanged::default() };
        log.moved(&Place::new(&to, place.id.clone()).log());
        log.append(None, change.into())?;
        log.sync()
    }

    /// The Sessions in the trash, the last deleted first.
    pub fn trash(&self) -> Vec<Trashed> {
        let mut all: Vec<Trashed> = self.trashed_folders().into_iter().map(|(_, it)| it).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.deleted));
        all
    }

    fn trashed_folders(&self) -> Vec<(PathBuf, Trashed)> {
        let folders = fs::read_dir(self.trash_folder()).into_iter().flatten().flatten().map(|folder| folder.path());
        folders.filter_map(|folder| Some((folder.clone(), manifest(&folder)?))).collect()
    }
}

/// Locks a Session and those below it, which proves that no process writes one of them. A damaged one can be moved too.
fn hold(place: &Place, below: &[Place]) -> Result<Vec<Log>> {
    let mut held = Vec::new();
    for it in std::iter::once(place).chain(below) {
        match Log::open(&it.log(), it.id.clone()) {
            Ok((log, _)) => held.push(log),
            Err(e) if e.code == Code::CorruptLogLine => {}
            Err(e) => return Err(e),
        }
    }
    Ok(held)
}

fn manifest(folder: &Path) -> Option<Trashed> {
    serde_json::from_str(&regular::read_to_string(&folder.join(MANIFEST)).ok()?).ok()
}

/// Moves all files of a Session, its Log last, because the location of the Log is the location of the Session. After a
/// failure, files that were already moved stay moved.
fn move_all(place: &Place, from: &Path, to: &Path) -> std::io::Result<()> {
    let here = Place::new(from, place.id.clone());
    let there = Place::new(to, place.id.clone());
    let side = here.left_by_repairs().into_iter().map(|path| {
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        (path, to.join(name))
    });
    let all = std::iter::once((here.own_folder(), there.own_folder())).chain(side).chain([(here.log(), there.log())]);
    for (from, to) in all.filter(|(from, _)| from.exists()).collect::<Vec<_>>() {
        rename_new(&from, &to)?;
    }
    Ok(())
}
