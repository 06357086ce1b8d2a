//! Moves Sessions: to the trash, back from it, and to another workspace.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Place, Store, Summary, failed, make_private, write_whole};
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{SessionId, SettingsChanged, now};
use crate::protocol::remedy::{Remedy, Sessions};
use crate::storage::log::{Log, rename_new};

const MANIFEST: &str = "manifest.json";

/// A Session in the trash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trashed {
    /// When it was deleted.
    pub deleted: Timestamp,
    /// The folder to restore it to.
    folder: PathBuf,
    /// The Session's summary.
    pub summary: Summary,
}

impl Store {
    pub(super) fn trash_folder(&self) -> PathBuf {
        self.home.join("trash")
    }

    /// Moves a Session and all its files to the trash. No process may have it open.
    ///
    /// # Errors
    /// `SESSION_LOCKED`, `WRITE_FAILED`.
    pub fn delete(&self, place: &Place) -> Result<Trashed> {
        // A lock proves that no other process writes the Session. A damaged Session can be deleted too.
        let held = match Log::open(&place.log(), place.id.clone()) {
            Ok((log, _)) => Some(log),
            Err(e) if e.code == Code::CorruptLogLine => None,
            Err(e) => return Err(e),
        };
        let trashed = Trashed {
            deleted: now(),
            folder: place.folder.clone(),
            summary: Summary { id: place.id.to_string(), ..place.summary().unwrap_or_default() },
        };
        // Each deletion has its own folder, so that none replaces another.
        let stamp = trashed.deleted.as_millisecond();
        let to = self.trash_folder().join(format!("{}-{stamp}", place.id));
        let text = serde_json::to_string_pretty(&trashed).expect("a manifest is JSON");
        make_private(&to)
            .and_then(|()| write_whole(&to.join(MANIFEST), text.as_bytes()))
            .and_then(|()| move_all(place, &place.folder, &to))
            .map_err(|e| failed("move the session to the trash", &e))?;
        drop(held);
        Ok(trashed)
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
        make_private(&trashed.folder)
            .and_then(|()| move_all(&place, &from, &trashed.folder))
            .and_then(|()| fs::remove_dir_all(&from))
            .map_err(|e| failed("restore the session from the trash", &e))?;
        Ok(trashed)
    }

    /// Moves a Session to another workspace.
    ///
    /// # Errors
    /// `SESSION_LOCKED`, `CORRUPT_LOG_LINE`, `LOG_WRITE_FAILED`, `WRITE_FAILED`.
    pub fn relocate(&self, place: &Place, workspace: &Path) -> Result<()> {
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

fn manifest(folder: &Path) -> Option<Trashed> {
    serde_json::from_str(&fs::read_to_string(folder.join(MANIFEST)).ok()?).ok()
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
