//! Looks on the disk: a pixir that is killed while a command runs takes nothing back, so the next one does.
//!
//! The note of a look is written before the command starts, and removed once all is taken back. While the command runs its time
//! is set anew, so that a later pixir knows when the first one ended: what changed after that, the user may have changed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::item::{Item, Items, Kind};
use super::{Did, Guard, IsPlain, Listed, Place, Taken};
use crate::workspace::Workspace;
use storage::blobs::Blobs;
use storage::running::{Left, Note, Subject};

/// How often a running command's note gets the time anew.
pub const BEAT: Duration = Duration::from_secs(10);
/// How long after the last time a change can still be the command's.
const AFTERMATH: Duration = Duration::from_secs(15);

/// The largest file whose bytes a note has, and the most bytes of all.
const LARGEST: usize = 64 << 10;
const MOST_BYTES: usize = 1 << 20;

#[derive(Serialize, Deserialize)]
struct Written {
    workspace: PathBuf,
    places: Vec<WrittenPlace>,
}

#[derive(Serialize, Deserialize)]
struct WrittenPlace {
    at: PathBuf,
    is_outside: bool,
    named: Vec<PathBuf>,
    git: Vec<PathBuf>,
    items: Vec<WrittenItem>,
    cut: Vec<PathBuf>,
    repositories: BTreeSet<PathBuf>,
}

#[derive(Serialize, Deserialize)]
struct WrittenItem {
    path: PathBuf,
    /// Of a symlink.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<PathBuf>,
    is_folder: bool,
    is_file: bool,
    mode: u32,
    stamp: [i64; 6],
    /// One character for each byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
}

/// The note of a look; dropping it removes it.
#[derive(Debug)]
pub struct OnDisk(Note);

impl OnDisk {
    /// Says that the command still runs.
    pub fn beat(&self) {
        self.0.touch();
    }
}

impl Guard {
    /// Writes the look to the disk. A name that is not text cannot be written, and is left out.
    pub fn on_disk(&self, workspace: &Workspace) -> OnDisk {
        let places = self.places.iter().map(WrittenPlace::of).collect();
        let written = Written { workspace: workspace.root().to_owned(), places };
        let text = serde_json::to_vec(&written).unwrap_or_default();
        OnDisk(workspace.notes().note(Subject::Guard, &text))
    }
}

impl WrittenPlace {
    fn of(place: &Place) -> WrittenPlace {
        let is_text = |path: &&PathBuf| path.to_str().is_some();
        let items = place.before.items.all.iter().filter(|(path, _)| path.to_str().is_some());
        // Without the bytes of large files: a note is written before each command.
        let mut left = MOST_BYTES;
        let items = items.map(|(path, item)| {
            let len = item.bytes.as_ref().map_or(0, |it| it.len());
            let is_kept = len <= LARGEST && len <= left;
            left -= if is_kept { len } else { 0 };
            WrittenItem::of(path, item, is_kept)
        });
        WrittenPlace {
            at: place.at.clone(),
            is_outside: place.is_outside,
            named: place.named.iter().filter(is_text).cloned().collect(),
            git: place.git.clone(),
            items: items.collect(),
            cut: place.before.items.cut.iter().filter(is_text).cloned().collect(),
            repositories: place.before.repositories.iter().filter(is_text).cloned().collect(),
        }
    }

    fn read(self) -> Option<Place> {
        let dir = Dir::open_ambient_dir(&self.at, ambient_authority()).ok()?;
        let all = self.items.into_iter().map(|it| (it.path.clone(), it.read())).collect();
        let items = Items { all, cut: self.cut };
        let before = Listed { items, repositories: self.repositories };
        let (at, is_outside, named, git) = (self.at, self.is_outside, self.named, self.git);
        let (kept, is_cut, rules) = (Vec::new(), AtomicBool::new(false), Mutex::default());
        Some(Place { dir, at, is_outside, kept, named, git, is_cut, rules, before })
    }
}

impl WrittenItem {
    fn of(path: &Path, item: &Item, with_bytes: bool) -> WrittenItem {
        let target = match &item.kind {
            Kind::Link(target) => target.to_str().map(PathBuf::from),
            Kind::Folder | Kind::File | Kind::Other => None,
        };
        WrittenItem {
            path: path.to_owned(),
            target,
            is_folder: item.kind == Kind::Folder,
            is_file: item.kind == Kind::File,
            mode: item.mode,
            stamp: item.stamp,
            bytes: item
                .bytes
                .as_ref()
                .filter(|_| with_bytes)
                .map(|bytes| bytes.iter().map(|byte| char::from(*byte)).collect()),
        }
    }

    fn read(self) -> Item {
        let kind = match self.target {
            Some(target) => Kind::Link(target),
            None if self.is_folder => Kind::Folder,
            None if self.is_file => Kind::File,
            None => Kind::Other,
        };
        let bytes = self.bytes.map(|text| text.chars().map(|it| u8::try_from(u32::from(it)).unwrap_or(b'?')).collect());
        Item { kind, mode: self.mode, stamp: self.stamp, links: 1, bytes: bytes.map(|it: Vec<u8>| Arc::from(it)) }
    }
}

/// Takes back what the commands of a killed pixir did to protected files of this workspace, and tells that in sentences. What was
/// changed later stays, and a sentence names it.
pub fn finish(left: &[Left], workspace: &Workspace, blobs: &Blobs, is_plain: IsPlain) -> Vec<String> {
    let mut told = Vec::new();
    for it in left.iter().filter(|it| it.subject == Subject::Guard) {
        let Ok(written) = serde_json::from_slice::<Written>(&it.text) else {
            it.settled();
            continue;
        };
        if written.workspace != workspace.root() {
            continue;
        }
        let until = it.last_seen() + AFTERMATH;
        let guard =
            Guard { places: written.places.into_iter().filter_map(WrittenPlace::read).collect(), own_writes: 0 };
        let found = guard.found(workspace, is_plain);
        let (of_command, later): (Vec<Taken>, Vec<Taken>) =
            found.into_iter().partition(|it| changed(workspace.root(), it) <= until);
        let spared: BTreeSet<PathBuf> = later.iter().map(|it| PathBuf::from(&it.path)).collect();
        let taken =
            if of_command.is_empty() { Vec::new() } else { guard.take_back_but(&spared, workspace, blobs, is_plain) };
        told.extend(taken.iter().map(|it| format!("pixir was killed while a command ran: {}", it.told())));
        told.extend(later.iter().map(|it| {
            format!(
                "{} is protected, and was {} since a pixir was killed: by you, or by its command; look at it before you use it",
                it.path,
                match it.did {
                    Did::Wrote => "made",
                    Did::Changed => "changed",
                    Did::Removed => "removed",
                }
            )
        }));
        it.settled();
    }
    told
}

/// When a file was changed last; for one that is gone, when its folder was.
fn changed(root: &Path, taken: &Taken) -> SystemTime {
    let path = root.join(&taken.path);
    let at = path.ancestors().find_map(|it| fs::symlink_metadata(it).ok());
    at.map_or(UNIX_EPOCH, |it| UNIX_EPOCH + Duration::from_secs(u64::try_from(it.ctime()).unwrap_or(0)))
}
