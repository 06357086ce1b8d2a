//! Rewrites a damaged Log: readable lines keep their numbers, and placeholders replace damaged lines. The damaged Log
//! stays in a quarantine file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use super::chain::{self, Chain};
use super::disk::{Disk, RealDisk, append_all};
use super::read::{Damage, Reader, Verdict};
use super::{open_locked, unreadable, write_failed};
use protocol::error::{Code, Error, Result};
use protocol::event::{Entry, Fact, LogRepaired, SessionId, now};
use protocol::remedy::Remedy;

/// The changes of a repair, or of its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// How many Entries stay. Each keeps its `seq`.
    pub kept: u64,
    /// Lines that are removed or get a new chain.
    pub damage: Vec<Damage>,
    /// The number of lines that repeat the line before.
    pub duplicates: u64,
    /// Bytes after the last whole line.
    pub torn: u64,
    /// The number of placeholders. They let every other Entry keep its `seq`.
    pub placeholders: u64,
    /// The file that contains the Log as it was before the repair.
    pub quarantine: PathBuf,
}

impl Repair {
    /// Whether the Log needs a repair.
    pub fn is_needed(&self) -> bool {
        !self.damage.is_empty() || self.torn > 0 || self.duplicates > 0
    }
}

/// Repairs a Log under its lock and keeps the damaged Log next to it. At every moment one of the two files has the
/// Log's name.
///
/// # Errors
/// `SESSION_LOCKED`, `LOG_READ_FAILED`, `LOG_WRITE_FAILED`; `CORRUPT_LOG_LINE` when no line can be read.
pub fn repair(path: &Path, session_id: &SessionId, dry_run: bool) -> Result<Repair> {
    repair_on(Arc::new(RealDisk), path, session_id, dry_run)
}

pub(super) fn repair_on(disk: Arc<dyn Disk>, path: &Path, id: &SessionId, dry_run: bool) -> Result<Repair> {
    let file = open_locked(&*disk, path, id)?;
    let quarantine = free_name(&*disk, path);
    let name = quarantine.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut whole = Rewritten::new(id.clone(), name);
    let mut reader = Reader::of(Some(id));
    reader
        .run(&*file, &mut |line| {
            let it = &mut whole;
            let number = line.number;
            match (line.verdict, line.entry) {
                (Verdict::Proven | Verdict::Unproven, Some(entry)) => it.keep(&entry, line.bytes),
                (Verdict::ChainDamaged, Some(entry)) => {
                    it.damage(number, "its chain value was changed");
                    it.keep(&entry, line.bytes);
                }
                (Verdict::AfterGap(reason), Some(entry)) => {
                    it.damage(number, &reason);
                    it.keep(&entry, line.bytes);
                }
                (Verdict::Duplicate, _) => it.plan.duplicates += 1,
                (Verdict::Torn, _) => {}
                (Verdict::Damaged(reason), _) => it.damage(number, &reason),
                (Verdict::Proven | Verdict::Unproven | Verdict::ChainDamaged | Verdict::AfterGap(_), None) => {}
            }
        })
        .and_then(|()| file.len())
        .map(|len| whole.plan.torn = len.saturating_sub(reader.bytes()))
        .map_err(|e| unreadable(path, &e))?;
    if whole.plan.kept == 0 {
        return Err(Error::new(
            Code::CorruptLogLine,
            format!("no line of the session log {} is readable", path.display()),
            Remedy::DeleteSession { id: id.to_string() },
        ));
    }
    // A new chain is always recorded.
    if whole.plan.placeholders == 0 && !whole.plan.damage.is_empty() {
        whole.stand_in();
    }
    whole.plan.quarantine = quarantine;
    let plan = whole.plan;
    if dry_run || !plan.is_needed() {
        return Ok(plan);
    }
    let folder = path.parent().expect("a log lies in a folder");
    let write = || -> std::io::Result<()> {
        let temporary = path.with_extension("repaired");
        // An interrupted repair may have left the file. This process holds the lock, so no other repair uses it.
        let _ = disk.remove(&temporary);
        let new = disk.create(&temporary)?;
        new.try_lock()?;
        append_all(&*new, whole.text.as_bytes())?;
        new.sync()?;
        disk.link(path, &plan.quarantine)?;
        disk.sync_folder(folder)?;
        disk.replace(&temporary, path)?;
        disk.sync_folder(folder)
    };
    write().map_err(|e| write_failed(path, &e))?;
    Ok(plan)
}

fn free_name(disk: &dyn Disk, path: &Path) -> PathBuf {
    let mut names = (1_u32..).map(|n| path.with_extension(format!("damaged-{n}")));
    names.find(|name| disk.open(name).is_err()).expect("some name is free")
}

struct Rewritten {
    id: SessionId,
    text: String,
    chain: Chain,
    next_seq: u64,
    pending: String,
    quarantine: String,
    plan: Repair,
}

impl Rewritten {
    fn new(id: SessionId, quarantine: String) -> Rewritten {
        Rewritten {
            id,
            text: String::new(),
            chain: Chain::default(),
            next_seq: 0,
            pending: String::new(),
            quarantine,
            plan: Repair::default(),
        }
    }

    fn damage(&mut self, line: u64, reason: &str) {
        self.pending = reason.to_owned();
        self.plan.damage.push(Damage { line, reason: reason.to_owned() });
    }

    /// Copies a line unchanged except for its chain, after placeholders for the lines that are missing before it.
    fn keep(&mut self, entry: &Entry, bytes: &[u8]) {
        if entry.seq < self.next_seq {
            return;
        }
        while self.next_seq < entry.seq {
            self.stand_in();
        }
        let open = std::str::from_utf8(bytes).ok().and_then(chain::split).map(|(open, _)| open);
        if let Some(open) = open {
            self.plan.kept += 1;
            self.push(format!("{open}}}"));
        }
    }

    fn stand_in(&mut self) {
        let fact: Fact = LogRepaired { reason: self.pending.clone(), quarantine: self.quarantine.clone() }.into();
        let seq = self.next_seq;
        let it =
            Entry { id: Uuid::now_v7(), session_id: self.id.clone(), seq, ts: now(), turn: None, fact, beyond: None };
        self.plan.placeholders += 1;
        self.push(it.encode().expect("two texts are JSON"));
    }

    fn push(&mut self, mut line: String) {
        self.chain = chain::seal(self.chain, &mut line);
        self.text.push_str(&line);
        self.next_seq += 1;
    }
}
