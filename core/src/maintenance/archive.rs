//! A Session as one JSON document that loses nothing, and back.

use std::collections::BTreeMap;
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
use crate::storage::store::{Place, Store, Summary};

const KIND: &str = "pixir-session";

/// A whole Session. Lines stand as they are in the Log, chains included; files are base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    kind: String,
    session_id: String,
    summary: Summary,
    /// What could not be read of the Log, and so is not in here.
    #[serde(default, skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    damage: Vec<Damage>,
    log: Vec<Box<RawValue>>,
    /// File versions by name.
    #[serde(default)]
    blobs: BTreeMap<String, String>,
    /// Long outputs by file name.
    #[serde(default)]
    outputs: BTreeMap<String, String>,
    /// What repairs have put aside, by file name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    aside: BTreeMap<String, String>,
    /// Versions and outputs were left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    without_files: bool,
}

/// What an import has made, or would make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The Session's id, the same as before.
    pub session_id: String,
    /// Entries of its Log.
    pub entries: usize,
    /// File versions that came with it.
    pub blobs: usize,
    /// Long outputs that came with it.
    pub outputs: usize,
    /// It was there already, with the same Log; nothing was changed.
    pub already_there: bool,
}

/// Writes a Session as one document.
///
/// # Errors
/// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`.
pub fn export(place: &Place, blobs: &Blobs, with_files: bool) -> Result<String> {
    let contents = log::read(&place.log())?;
    let mut text = fs::read(place.log()).map_err(|e| {
        Error::new(Code::LogReadFailed, format!("read the session log: {e}"), "check the file's owner and permissions")
    })?;
    // What was judged is what is written; a running Session may have gone on meanwhile.
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
        for name in contents.entries.iter().flat_map(|entry| blobs_of(&entry.fact)) {
            // What is lost already cannot be exported; diagnose says so.
            if !document.blobs.contains_key(name)
                && let Ok(bytes) = blobs.get(name)
            {
                document.blobs.insert(name.clone(), STANDARD.encode(bytes));
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

/// Makes a Session of such a document, in the folder of this workspace. Everything is checked before anything is made.
///
/// # Errors
/// `INVALID_ARGS` when it is no such document or was changed, `WRITE_FAILED` when another Session has its id.
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
    // An id is one Session, in whichever workspace.
    if let Some(there) = store.places().into_iter().find(|other| other.id == place.id) {
        // It may have gone on since.
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
    // Versions that were lost come back also where the Session itself is there.
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
    // It works here from now on.
    if recorded != workspace {
        store.relocate(&place, workspace)?;
    }
    Ok(it)
}

/// The lines must be a whole Log of this Session, each proven by its chain.
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
