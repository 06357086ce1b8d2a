//! The rules that the user made, in one file of the state folder: outside of every Log and every workspace, because only
//! the user may write it.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::regular;
use crate::store::{make_private, write_whole};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Rule, Scope, SessionId};
use protocol::remedy::Remedy;
use protocol::rule::{Reach, SavedRule};

/// A longer file is not read, bytes.
const MOST: u64 = 4 << 20;

/// The file of rules: one JSON object a line.
#[derive(Debug, Clone)]
pub struct Rules {
    home: PathBuf,
}

/// A line that this build cannot read. It stays in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The number of the line, from 1.
    pub line: usize,
    /// It is surely an allow, which is then not in force. Any other may deny something, so calls ask.
    pub is_allow: bool,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// In the order in which they were made.
    pub saved: Vec<SavedRule>,
    /// What this build cannot read.
    pub unreadable: Vec<Unreadable>,
}

impl Loaded {
    /// The rules that hold in this Session of this workspace now.
    pub fn in_force(&self, session: Option<&SessionId>, workspace: &Path, now: Timestamp) -> Vec<SavedRule> {
        let holds = |it: &&SavedRule| it.is_in_time(now) && it.holds.includes(session, workspace);
        self.saved.iter().filter(holds).cloned().collect()
    }

    /// The same as the gate needs them: a line that may be a deny is a deny of something unknown.
    pub fn for_gate(&self, session: Option<&SessionId>, workspace: &Path) -> Vec<Rule> {
        let known = self.in_force(session, workspace, Timestamp::now()).into_iter().map(|it| it.rule);
        let unknown = self.unreadable.iter().find(|it| !it.is_allow).map(|_| Rule::Deny(Scope::Unknown));
        known.chain(unknown).collect()
    }

    /// What a user should know about lines that cannot be read.
    pub fn warning(&self) -> Option<String> {
        let lines: Vec<String> = self.unreadable.iter().map(|it| it.line.to_string()).collect();
        let asks = self.unreadable.iter().any(|it| !it.is_allow);
        let effect = if asks { "it may deny something, so calls ask" } else { "it is not in force" };
        (!lines.is_empty())
            .then(|| format!("rule {} cannot be read by this pixir and was skipped; {effect}", lines.join(", ")))
    }
}

impl Rules {
    pub fn new(home: &Path) -> Rules {
        Rules { home: home.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.home.join("rules.ndjson")
    }

    fn text(&self) -> io::Result<Vec<u8>> {
        match regular::open_to_read(&self.path()) {
            Ok(file) => {
                let mut bytes = Vec::new();
                file.take(MOST + 1).read_to_end(&mut bytes)?;
                if bytes.len() as u64 > MOST { Err(io::Error::other("it is too long")) } else { Ok(bytes) }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    /// Reads the file. What cannot be read may deny something.
    pub fn load(&self) -> Loaded {
        let Ok(bytes) = self.text() else {
            return Loaded { saved: Vec::new(), unreadable: vec![Unreadable { line: 1, is_allow: false }] };
        };
        let mut loaded = Loaded::default();
        for (at, line) in bytes.split(|b| *b == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty()) {
            match serde_json::from_slice::<SavedRule>(line) {
                Ok(SavedRule { rule: Rule::Allow(Scope::Unknown), .. }) => {
                    loaded.unreadable.push(Unreadable { line: at + 1, is_allow: true });
                }
                Ok(SavedRule { rule: Rule::Deny(Scope::Unknown), .. }) => {
                    loaded.unreadable.push(Unreadable { line: at + 1, is_allow: false });
                }
                Ok(saved) => loaded.saved.push(saved),
                Err(_) => {
                    let value: Option<Value> = serde_json::from_slice(line).ok();
                    let rule = value.as_ref().and_then(|value| value.get("rule")?.as_object());
                    let is_allow = rule.is_some_and(|it| it.contains_key("allow") && !it.contains_key("deny"));
                    loaded.unreadable.push(Unreadable { line: at + 1, is_allow });
                }
            }
        }
        loaded
    }

    /// Saves a rule, or returns the one that says the same.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn add(&self, rule: Rule, holds: Reach, expires: Option<Timestamp>) -> Result<SavedRule> {
        let _alone = self.lock()?;
        let same = |it: &SavedRule| it.rule == rule && it.holds == holds && it.expires == expires;
        if let Some(there) = self.load().saved.into_iter().find(same) {
            return Ok(there);
        }
        let id = format!("r{:06x}", uuid::Uuid::now_v7().as_u128() & 0xff_ffff);
        let saved = SavedRule { id, rule, holds, made: Timestamp::now(), expires };
        let mut bytes = self.text().map_err(|e| failed(&e))?;
        if bytes.last().is_some_and(|b| *b != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend(serde_json::to_vec(&saved).map_err(|e| failed(&e.into()))?);
        bytes.push(b'\n');
        self.write(&bytes)?;
        Ok(saved)
    }

    /// Removes a rule by its id, or a line that cannot be read as `line-N`.
    ///
    /// # Errors
    /// `NOT_FOUND`, `WRITE_FAILED`.
    pub fn revoke(&self, id: &str) -> Result<()> {
        let removed = self.retain(&|at, saved| match saved {
            Some(saved) => saved.id != id,
            None => id != format!("line-{at}"),
        })?;
        if removed > 0 {
            return Ok(());
        }
        let saved = self.load().saved;
        let fix = match nearest(id, saved.iter().map(|it| it.id.as_str())) {
            Some(near) => Remedy::any_of([Remedy::nearest(near), Remedy::ShowRules]),
            None => Remedy::ShowRules,
        };
        Err(Error::new(Code::NotFound, format!("there is no rule `{}`", id.escape_debug()), fix).with("input", id))
    }

    /// Removes the rules of a Session: another Log takes its id.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn forget(&self, id: &SessionId) -> Result<()> {
        let is_of = |it: &SavedRule| matches!(&it.holds, Reach::Session { session, .. } if session == id.as_str());
        if self.load().saved.iter().any(is_of) {
            self.retain(&|_, saved| !saved.is_some_and(is_of))?;
        }
        Ok(())
    }

    fn retain(&self, stays: &dyn Fn(usize, Option<&SavedRule>) -> bool) -> Result<usize> {
        let _alone = self.lock()?;
        let bytes = self.text().map_err(|e| failed(&e))?;
        let mut removed = 0;
        let mut left = Vec::new();
        for (at, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            if stays(at + 1, serde_json::from_slice(line).ok().as_ref()) {
                left.extend_from_slice(line);
            } else {
                removed += 1;
            }
        }
        if removed > 0 {
            self.write(&left)?;
        }
        Ok(removed)
    }

    /// Two processes must not overwrite each other's rule.
    fn lock(&self) -> Result<fs::File> {
        lock(&self.home, "rules.lock").map_err(|e| failed(&e))
    }

    fn write(&self, bytes: &[u8]) -> Result<()> {
        write_whole(&self.path(), bytes).map_err(|e| failed(&e))
    }
}

/// Waits for a file of the state folder that one process holds at a time.
pub fn lock(home: &Path, name: &str) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    make_private(home)?;
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(home.join(name))?;
    file.lock()?;
    Ok(file)
}

fn failed(e: &io::Error) -> Error {
    Error::new(Code::WriteFailed, format!("save the rules: {e}"), Remedy::CheckStateFolder)
}
