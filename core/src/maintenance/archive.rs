//! Exports a Session as one complete JSON document, and imports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::files::changes::blobs_of;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::SessionId;
use crate::protocol::remedy::Remedy;
use crate::storage::blobs::Blobs;
use crate::storage::log::{self, Damage};
use crate::storage::store::{Place, Store, Summary, blobs_named};

const KIND: &str = "pixir-session";

/// A whole Session. Lines are those of the Log, with their chains; files are Base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    kind: String,
    session_id: String,
    summary: Summary,
    /// Unreadable lines of the Log, which the document does not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    damage: Vec<Damage>,
    log: Vec<Box<RawValue>>,
    /// Blobs by name.
    #[serde(default)]
    blobs: BTreeMap<String, String>,
    /// Saved outputs by file name.
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    /// Files that repairs left, by file name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    aside: BTreeMap<String, String>,
    /// Whether blobs and outputs were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    without_files: bool,
}

/// What an import did, or its preview.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The Session's id, which does not change.
    pub session_id: String,
    /// Number of Entries.
    pub entries: usize,
    /// Number of blobs in the document.
    pub blobs: usize,
    /// Number of saved outputs in the document.
    pub outputs: usize,
    /// Whether the Session was already there with the same Log, so that nothing changed.
    pub already_there: bool,
}

/// Exports a Session as one document.
///
/// # Errors
/// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
pub fn export(place: &Place, blobs: &Blobs, with_files: bool) -> Result<String> {
    let contents = log::read(&place.log())?;
    let mut text = fs::read(place.log()).map_err(|e| {
        Error::new(Code::LogReadFailed, format!("read the session log: {e}"), "check the file's owner and permissions")
    })?;
    // A running Session may have appended lines since the Log was checked.
    text.truncate(usize::try_from(contents.position().bytes).unwrap_or(usize::MAX));
    let whole = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let lines = whole.filter_map(|line| RawValue::from_string(String::from_utf8(line.to_vec()).ok()?).ok());
    let mut document = Document {
        schema_version: 1,
        kind: KIND.into(),
        session_id: place.id.to_string(),
        summary: place.summary().unwrap_or_default(),
        damage: contents.damage,
        log: lines.collect(),
        blobs: BTreeMap::new(),
        outputs: BTreeMap::new(),
        aside: BTreeMap::new(),
        without_files: !with_files,
    };
    if with_files {
        let mut names: BTreeSet<String> =
            contents.entries.iter().flat_map(|entry| blobs_of(&entry.fact)).cloned().collect();
        // A newer build may name blobs in fields that this build does not know.
        for entry in contents.entries.iter().filter(|entry| !entry.is_understood()) {
            names.extend(blobs_named(entry.encode()?.as_bytes()).map(str::to_owned));
        }
        for name in names {
            // A lost blob cannot be exported; `diagnose` reports it.
            if let Ok(bytes) = blobs.get(&name) {
                document.blobs.insert(name, STANDARD.encode(bytes));
            }
        }
        for path in place.left_by_repairs() {
            if let (Some(name), Ok(bytes)) = (path.file_name().and_then(|n| n.to_str()), fs::read(&path)) {
                document.aside.insert(name.to_owned(), STANDARD.encode(bytes));
            }
        }
        for file in fs::read_dir(place.outputs()).into_iter().flatten().flatten() {
            if let (Ok(name), Ok(bytes)) = (file.file_name().into_string(), fs::read(file.path())) {
                document.outputs.insert(name, STANDARD.encode(bytes));
            }
        }
    }
    Ok(serde_json::to_string_pretty(&document).expect("a document is JSON"))
}

/// Imports a document into the folder of this workspace. Everything is checked before anything is written.
///
/// # Errors
/// `INVALID_ARGS` for another document or a changed one, `WRITE_FAILED` when another Session has its id.
pub fn import(text: &str, store: &Store, workspace: &Path, dry_run: bool) -> Result<Imported> {
    let bad = |why: String| Error::new(Code::InvalidArgs, why, Remedy::ExportSession);
    let document: Document =
        serde_json::from_str(text).map_err(|e| bad(format!("this file is not an exported session: {e}")))?;
    if document.kind != KIND || document.schema_version != 1 {
        return Err(bad("this file is not an exported session of a known version".into()));
    }
    let id = SessionId::parse(&document.session_id)?;
    let place = Place::new(&store.folder_of(workspace), id);
    let bytes: Vec<u8> = document.log.iter().flat_map(|line| [line.get().as_bytes(), b"\n"].concat()).collect();
    let decode = |(name, text): (&String, &String)| match STANDARD.decode(text) {
        Ok(bytes) => Ok((name.clone(), bytes)),
        Err(e) => Err(bad(format!("{name} is not base64: {e}"))),
    };
    let blobs: Vec<(String, Vec<u8>)> = document.blobs.iter().map(decode).collect::<Result<_>>()?;
    if let Some((name, _)) = blobs.iter().find(|(name, bytes)| crate::storage::blobs::name_of(bytes) != **name) {
        return Err(bad(format!("the file version {name} was changed")));
    }
    let outputs: Vec<(String, Vec<u8>)> = document.outputs.iter().map(decode).collect::<Result<_>>()?;
    let aside: Vec<(String, Vec<u8>)> = document.aside.iter().map(decode).collect::<Result<_>>()?;
    let is_bad = |name: &str| name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.');
    let own = format!("{}.", place.id);
    let strange = aside.iter().map(|(name, _)| name).filter(|name| !name.starts_with(&own));
    if let Some(name) = outputs.iter().map(|(name, _)| name).filter(|name| is_bad(name)).chain(strange).next() {
        return Err(bad(format!("`{}` is not a file name of this session", name.escape_debug())));
    }
    if aside.iter().any(|(name, _)| is_bad(name)) {
        return Err(bad("a file that a repair put aside has an invalid name".into()));
    }
    let mut it = Imported {
        session_id: document.session_id,
        entries: document.log.len(),
        blobs: blobs.len(),
        outputs: outputs.len(),
        already_there: false,
    };
    check(&bytes, &place.id, &bad)?;
    // An id is unique over all workspaces.
    if let Some(there) = store.places().into_iter().find(|other| other.id == place.id) {
        // The Session may have continued since the export.
        if fs::read(there.log()).is_ok_and(|there| there.starts_with(&bytes)) {
            it.already_there = true;
        } else {
            return Err(Error::new(
                Code::WriteFailed,
                format!("a different session has the id {}", place.id),
                Remedy::DeleteSession { id: place.id.to_string() },
            ));
        }
    }
    if dry_run {
        return Ok(it);
    }
    // An import restores lost blobs even when the Session is already there.
    blobs
        .iter()
        .try_for_each(|(_, bytes)| store.blobs().put(bytes).map(drop))
        .map_err(|e| Error::new(Code::WriteFailed, format!("write a file version: {e}"), Remedy::CheckStateFolder))?;
    if it.already_there {
        return Ok(it);
    }
    let write = || -> std::io::Result<()> {
        let private = |folder: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let new = |path: &Path, bytes: &[u8]| -> std::io::Result<()> {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        if !outputs.is_empty() {
            private(&place.outputs())?;
        }
        for (name, bytes) in &outputs {
            let path = place.outputs().join(name);
            if !path.exists() {
                new(&path, bytes)?;
            }
        }
        let path = place.log();
        let folder = path.parent().expect("a log lies in a folder");
        private(folder)?;
        for (name, bytes) in &aside {
            if !folder.join(name).exists() {
                new(&folder.join(name), bytes)?;
            }
        }
        let temporary = path.with_extension(format!("{:x}.tmp", uuid::Uuid::now_v7().as_u128()));
        new(&temporary, &bytes)?;
        fs::rename(temporary, path)
    };
    let recorded = Path::new(&document.summary.workspace);
    write().map_err(|e| Error::new(Code::WriteFailed, format!("write the session: {e}"), Remedy::CheckStateFolder))?;
    // From now on the Session works in this workspace.
    if recorded != workspace {
        store.relocate(&place, workspace)?;
    }
    Ok(it)
}

/// Checks that the lines are a complete Log of this Session, with an intact chain.
fn check(bytes: &[u8], id: &SessionId, bad: &dyn Fn(String) -> Error) -> Result<()> {
    let folder = tempfile::tempdir().map_err(|e| bad(format!("create a temporary folder: {e}")))?;
    let path = folder.path().join(format!("{id}.ndjson"));
    fs::write(&path, bytes).map_err(|e| bad(format!("write a temporary file: {e}")))?;
    let contents = log::read(&path)?;
    match contents.damage.first() {
        Some(damage) => Err(bad(format!("line {} of its log was changed ({})", damage.line, damage.reason))),
        None if contents.entries.is_empty() => Err(bad("its log is empty".into())),
        None => Ok(()),
    }
}
