//! Finds what commands change in the workspace by comparing its files before and after.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::workspace::Workspace;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use protocol::event::{FileChange, SessionId};
use storage::blobs::Blobs;
use tokio_util::sync::CancellationToken;

mod roots; // the workspace and the folders that are written as it is
mod rules; // ignore rules from before a command
mod seen; // the files as they were last seen
mod tracked; // the files that git tracks

pub(crate) use rules::Matcher;

use roots::Roots;

/// The most files that are watched.
const MAX_FILES: usize = 20_000;
/// The bytes of files larger than this are not stored; the files are still watched.
pub(super) const MAX_KEPT: u64 = 4 << 20;
/// The most bytes stored in all, before compression.
const MAX_KEPT_TOTAL: u64 = 256 << 20;
/// Unused bytes that the pack may hold before a new one is begun.
const SLACK: u64 = 64 << 20;
/// File times are coarse: a file that changed less than this before it was read may change again with the same time.
const COARSE: Duration = Duration::from_millis(50);

/// The files of a workspace as they were last seen, and the commands that run in it. The Sessions of a workspace share
/// one snapshot, so that a change is attributed once, to the call that made it.
///
/// A change between two comparisons is attributed to the command that ran. If several ran, pixir cannot know which one
/// made it: no call gets the change, and each gets a note. File tools and restores report their own writes.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSnapshot {
    /// File tools hold it shared, because they write in parallel. A comparison holds it exclusively, so that it sees no
    /// write that is not reported yet.
    writes: RwLock<()>,
    /// The number of running commands. It changes only while `writes` is held exclusively.
    commands: AtomicUsize,
    state: Mutex<State>,
    /// Separate from `state`: the runtime must not wait for a comparison.
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct State {
    seen: Roots,
    running: Vec<Running>,
}

/// The paths of the files of ignore rules in a workspace, if a look at it has just found them. Finding them is a walk.
pub type FoundRules<'a> = Option<&'a [PathBuf]>;

/// A running command, and what it changed so far.
#[derive(Debug)]
struct Running {
    key: CallKey,
    /// The folders beside the workspace that it may write.
    folders: Vec<Arc<Workspace>>,
    found: CommandChanges,
}

#[derive(Debug, Default)]
struct Ledger {
    /// Changes of calls whose result is not recorded yet.
    unrecorded: Vec<(CallKey, FileChange)>,
    /// Calls whose result was recorded while commands were running.
    ended: Vec<CallKey>,
}

/// A call among those of all Sessions. A call id is unique only within its Session.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallKey {
    session: Option<SessionId>,
    call_id: String,
}

/// What a command changed, and notes for its caller about that.
#[derive(Debug, Default)]
pub struct CommandChanges {
    pub changes: Vec<FileChange>,
    pub notes: Vec<String>,
}

impl CommandChanges {
    fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|it| it == note) {
            self.notes.push(note.to_owned());
        }
    }
}

/// One Session's access to the snapshot of its workspace.
#[derive(Debug, Clone, Default)]
pub struct SessionSnapshot {
    shared: Arc<WorkspaceSnapshot>,
    /// `None` for calls outside a Session.
    session: Option<SessionId>,
}

impl SessionSnapshot {
    /// Returns the same snapshot for another Session.
    pub fn for_session(&self, session: SessionId) -> SessionSnapshot {
        SessionSnapshot { shared: Arc::clone(&self.shared), session: Some(session) }
    }

    fn key(&self, call_id: &str) -> CallKey {
        CallKey { session: self.session.clone(), call_id: call_id.to_owned() }
    }

    /// Reads the workspace before a command runs, and stores the bytes of new and changed files.
    pub fn before(
        &self,
        call_id: &str,
        workspace: &Workspace,
        blobs: &Blobs,
        rules: FoundRules<'_>,
        cancel: &CancellationToken,
    ) {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        state.settle(None, &self.shared, workspace, blobs, rules);
        let folders = workspace.folders();
        let mut all = state.folders();
        all.extend(folders.iter().cloned());
        state.seen.refresh(workspace, &all, blobs, rules);
        // A call that was cancelled in the meantime runs no command.
        if !cancel.is_cancelled() {
            state.running.push(Running { key: self.key(call_id), folders, found: CommandChanges::default() });
        }
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
    }

    /// Returns what this call's command changed. The changes are noted first, so that they survive a caller that is
    /// dropped.
    pub fn after(&self, call_id: &str, workspace: &Workspace, blobs: &Blobs, rules: FoundRules<'_>) -> CommandChanges {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        let key = self.key(call_id);
        state.settle(Some(&key), &self.shared, workspace, blobs, rules);
        let ended = state.running.extract_if(.., |it| it.key == key).last();
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
        // The commands that still run must not find these changes again.
        if !state.running.is_empty() {
            let folders = state.folders();
            state.seen.refresh(workspace, &folders, blobs, rules);
        }
        ended.map(|it| it.found).unwrap_or_default()
    }

    /// Lets the caller write this file. No comparison runs until the guard is dropped.
    pub fn write<'a>(&'a self, path: &'a str, workspace: &'a Workspace, blobs: &'a Blobs) -> Writing<'a> {
        self.write_all(vec![path], workspace, blobs)
    }

    /// Lets the caller write these files. No comparison sees only some of the writes.
    pub fn write_all<'a>(&'a self, paths: Vec<&'a str>, workspace: &'a Workspace, blobs: &'a Blobs) -> Writing<'a> {
        let shared = &*self.shared;
        let beside_others = shared.writes.read();
        if shared.commands.load(Ordering::Relaxed) == 0 {
            return Writing { owner: self, paths, workspace, blobs, _no_comparison: beside_others };
        }
        drop(beside_others);
        let alone = shared.writes.write();
        let mut state = shared.state();
        let is_as_seen = |path: &&str| state.seen.is_as_seen(workspace, Path::new(path));
        // A command may have changed a file already; that change is attributed to the command.
        if !state.running.is_empty() && !paths.iter().all(is_as_seen) {
            state.settle(None, shared, workspace, blobs, None);
            let folders = state.folders();
            state.seen.refresh(workspace, &folders, blobs, None);
        }
        drop(state);
        Writing { owner: self, paths, workspace, blobs, _no_comparison: RwLockWriteGuard::downgrade(alone) }
    }

    /// Reports that the result of this call is recorded, together with its changes.
    pub fn recorded(&self, call_id: &str) {
        let key = self.key(call_id);
        let mut ledger = lock(&self.shared.ledger);
        ledger.unrecorded.retain(|(of, _)| *of != key);
        if self.shared.commands.load(Ordering::Relaxed) > 0 {
            ledger.ended.push(key);
        }
    }

    /// Returns the changes of this Session's calls whose result is not recorded, with their call ids. Waits for a write
    /// or a comparison in progress. Commands of the Session that still count as running are settled first.
    pub fn unrecorded(&self, workspace: &Workspace, blobs: &Blobs) -> Vec<(String, FileChange)> {
        let running: Vec<String> = {
            let _alone = self.shared.writes.write();
            let state = self.shared.state();
            let own = state.running.iter().filter(|it| it.key.session == self.session);
            own.map(|it| it.key.call_id.clone()).collect()
        };
        for call_id in running {
            self.after(&call_id, workspace, blobs, None);
        }
        let ledger = lock(&self.shared.ledger);
        let own = ledger.unrecorded.iter().filter(|(key, _)| key.session == self.session);
        own.map(|(key, change)| (key.call_id.clone(), change.clone())).collect()
    }

    /// Ends the Session's use of the snapshot. Nothing is attributed to it after this.
    pub fn leave(&self) {
        let _alone = self.shared.writes.write();
        let mut state = self.shared.state();
        state.running.retain(|it| it.key.session != self.session);
        self.shared.commands.store(state.running.len(), Ordering::Relaxed);
        lock(&self.shared.ledger).unrecorded.retain(|(key, _)| key.session != self.session);
    }
}

/// A write of one or several files that the snapshot is aware of.
pub struct Writing<'a> {
    owner: &'a SessionSnapshot,
    paths: Vec<&'a str>,
    workspace: &'a Workspace,
    blobs: &'a Blobs,
    _no_comparison: RwLockReadGuard<'a, ()>,
}

impl Writing<'_> {
    /// Notes the change for this call, so that it survives a caller that is dropped.
    pub fn made(&self, call_id: &str, change: FileChange) {
        lock(&self.owner.shared.ledger).unrecorded.push((self.owner.key(call_id), change));
    }
}

impl Drop for Writing<'_> {
    /// Updates the snapshot, so that running commands are not credited with this write.
    fn drop(&mut self) {
        if self.owner.shared.commands.load(Ordering::Relaxed) > 0 {
            let mut state = self.owner.shared.state();
            for path in &self.paths {
                state.seen.refresh_one(self.workspace, self.blobs, Path::new(path));
            }
        }
    }
}

impl WorkspaceSnapshot {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// The folders beside the workspace that running commands may write.
    fn folders(&self) -> Vec<Arc<Workspace>> {
        self.running.iter().flat_map(|it| it.folders.iter().cloned()).collect()
    }

    /// Compares the workspace with the snapshot, and attributes the differences to the command that ran. Of several commands of
    /// one Session that is the one that ends now: a step of a workflow, say, that ran beside others.
    fn settle(
        &mut self,
        ends: Option<&CallKey>,
        shared: &WorkspaceSnapshot,
        workspace: &Workspace,
        blobs: &Blobs,
        rules: FoundRules<'_>,
    ) {
        let ended = std::mem::take(&mut lock(&shared.ledger).ended);
        self.running.retain(|it| !ended.contains(&it.key));
        if self.running.is_empty() {
            // The user changed the files between two commands.
            return;
        }
        let folders = self.folders();
        let found = self.seen.compare(workspace, &folders, blobs, rules);
        let first = &self.running[0].key.session;
        let is_one_session = self.running.iter().all(|it| it.key.session == *first);
        let ending = self.running.iter().position(|it| Some(&it.key) == ends).unwrap_or(0);
        match self.running.as_mut_slice() {
            running if is_one_session => {
                let it = &mut running[ending];
                let changes = found.changes.iter().map(|change| (it.key.clone(), change.clone()));
                lock(&shared.ledger).unrecorded.extend(changes);
                it.found.changes.extend(found.changes);
                found.notes.iter().for_each(|note| it.found.note(note));
            }
            several => {
                let paths: Vec<&str> = found.changes.iter().map(|change| change.path.as_str()).collect();
                if !paths.is_empty() {
                    let note = format!(
                        "{} changed while a command of another session ran too; it is not known which of them did it, \
                         so undo leaves that as it is",
                        paths.join(", ")
                    );
                    several.iter_mut().for_each(|it| it.found.note(&note));
                }
            }
        }
    }
}

/// Returns the current time of the clock that stamps files. It advances in steps and is never ahead of the system
/// clock.
pub fn file_clock() -> SystemTime {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        let since = Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        UNIX_EPOCH + since
    }
    #[cfg(not(target_os = "linux"))]
    SystemTime::now()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
