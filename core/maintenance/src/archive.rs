//! Exports a Session as one complete JSON document, and imports it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use files::changes::blobs_of;
use protocol::error::{Code, Error, Result};
use protocol::event::SessionId;
use protocol::remedy::Remedy;
use storage::blobs::Blobs;
use storage::log::{self, Damage};
use storage::store::{Place, Store, Summary, blobs_named};

const KIND: &str = "pixir-session";

/// A whole Session as it is read. Lines are those of the Log, with their chains; files are Base64. Texts stay where they
/// are in the file, because a Log can be large.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    schema_version: u32,
    kind: String,
    session_id: String,
    summary: Summary,
    #[serde(borrow)]
    log: Vec<&'a RawValue>,
    /// Blobs by name.
    #[serde(borrow, default)]
    blobs: BTreeMap<String, &'a RawValue>,
    /// Saved outputs by file name.
    #[serde(borrow, default)]
    outputs: BTreeMap<String, &'a RawValue>,
    /// Files that repairs left, by file name.
    #[serde(borrow, default)]
    aside: BTreeMap<String, &'a RawValue>,
    /// Sessions that it has started, as documents of their own.
    #[serde(borrow, default)]
    agents: Vec<&'a RawValue>,
}

/// The same as it is written: lines and files are read one by one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Export<'a> {
    schema_version: u32,
    kind: &'a str,
    session_id: &'a str,
    summary: Summary,
    /// Unreadable lines of the Log, which the document does not contain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damage: Vec<Damage>,
    log: Lines<'a>,
    blobs: Files<'a>,
    outputs: Files<'a>,
    #[serde(skip_serializing_if = "Files::is_empty")]
    aside: Files<'a>,
    /// Sessions that it has started.
    #[serde(skip_serializing_if = "Agents::is_empty")]
    agents: Agents<'a>,
    /// Whether blobs and outputs were left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    without_files: bool,
}

/// The whole lines of a Log.
struct Lines<'a> {
    path: &'a Path,
    /// A running Session may have appended lines since the Log was checked.
    bytes: u64,
}

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let file = fs::File::open(self.path).map_err(S::Error::custom)?;
        let mut lines = BufReader::with_capacity(BUFFER, file.take(self.bytes));
        let mut sequence = serializer.serialize_seq(None)?;
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).map_err(S::Error::custom)? > 0 {
            let text = std::str::from_utf8(&line).unwrap_or_default().trim_end_matches('\n');
            // A line that is no JSON is damage, which the document names.
            if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
                sequence.serialize_element(raw)?;
            }
            line.clear();
        }
        sequence.end()
    }
}

/// Files by name, read when they are written.
struct Files<'a> {
    names: BTreeSet<String>,
    read: Box<ReadFile<'a>>,
}

/// Reads one file. A lost one is left out; `diagnose` reports it.
type ReadFile<'a> = dyn Fn(&str) -> Option<Vec<u8>> + 'a;

impl<'a> Files<'a> {
    fn none() -> Files<'a> {
        Files { names: BTreeSet::new(), read: Box::new(|_| None) }
    }

    /// Files of one folder, by their own names.
    fn of(paths: impl Iterator<Item = PathBuf>, folder: &'a Path) -> Files<'a> {
        let name = |path: PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
        Files { names: paths.filter_map(name).collect(), read: Box::new(|name| fs::read(folder.join(name)).ok()) }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for name in &self.names {
            if let Some(bytes) = (self.read)(name) {
                map.serialize_entry(name, &STANDARD.encode(bytes))?;
            }
        }
        map.end()
    }
}

/// Sessions that a Session has started, read when they are written.
struct Agents<'a> {
    places: Vec<Place>,
    blobs: &'a Blobs,
    with_files: bool,
}

impl Agents<'_> {
    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

impl Serialize for Agents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        for place in &self.places {
            let files = Sources::of(place);
            let document =
                document(place, &files, self.blobs, self.with_files).map_err(|e| S::Error::custom(e.message))?;
            sequence.serialize_element(&document)?;
        }
        sequence.end()
    }
}

/// Where the files of a Session are.
struct Sources {
    log: PathBuf,
    outputs: PathBuf,
    folder: PathBuf,
}

impl Sources {
    fn of(place: &Place) -> Sources {
        let log = place.log();
        Sources { folder: log.parent().expect("a log lies in a folder").to_owned(), outputs: place.outputs(), log }
    }
}

/// Passes a document on in pieces of whole characters.
struct Pieces<'a> {
    buffer: Vec<u8>,
    write: &'a mut dyn FnMut(&str) -> Result<()>,
    failed: Option<Error>,
}

/// The size of a piece, bytes.
const BUFFER: usize = 256 << 10;

impl Pieces<'_> {
    fn pass_on(&mut self) -> io::Result<()> {
        // JSON is written character by character, so no piece ends within one.
        let text = std::str::from_utf8(&self.buffer).map_err(io::Error::other)?;
        let passed = (self.write)(text);
        self.buffer.clear();
        passed.map_err(|e| {
            let message = e.message.clone();
            self.failed = Some(e);
            io::Error::other(message)
        })
    }
}

impl io::Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.pass_on()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on()
    }
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
    /// Number of Sessions below it that are in the document.
    #[serde(skip_serializing_if = "protocol::is_zero")]
    pub agents: usize,
    /// Whether the Session was already there with the same Log, so that nothing changed.
    pub already_there: bool,
}

/// Exports a Session with those that it has started as one document, which `write` gets in pieces. The memory in use does not grow with the Log.
///
/// # Errors
/// `SESSION_NOT_FOUND`, `LOG_READ_FAILED`, and those of `write`.
pub fn export(place: &Place, blobs: &Blobs, with_files: bool, write: &mut dyn FnMut(&str) -> Result<()>) -> Result<()> {
    let files = Sources::of(place);
    let document = document(place, &files, blobs, with_files)?;
    let mut pieces = Pieces { buffer: Vec::with_capacity(2 * BUFFER), write, failed: None };
    let written = serde_json::to_writer_pretty(&mut pieces, &document).map_err(io::Error::from);
    written.and_then(|()| pieces.pass_on()).map_err(|e| {
        let lost = || {
            let fix = "check the file's owner and permissions";
            Error::new(Code::LogReadFailed, format!("read the session log: {e}"), fix)
        };
        pieces.failed.take().unwrap_or_else(lost)
    })
}

/// The document of one Session and those that it has started.
fn document<'a>(place: &'a Place, files: &'a Sources, blobs: &'a Blobs, with_files: bool) -> Result<Export<'a>> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    let mut unreadable = None;
    let contents = log::scan(&place.log(), &mut |entry| {
        if !with_files {
            return;
        }
        names.extend(blobs_of(&entry.fact).into_iter().cloned());
        // A newer build may name blobs in fields that this build does not know.
        if !entry.is_understood() {
            match entry.encode() {
                Ok(line) => names.extend(blobs_named(line.as_bytes()).map(str::to_owned)),
                Err(e) => unreadable = Some(e),
            }
        }
    })?;
    if let Some(e) = unreadable {
        return Err(e);
    }
    let Sources { log, outputs, folder } = files;
    let (mut saved, mut aside) = (Files::none(), Files::none());
    if with_files {
        let there = fs::read_dir(outputs).into_iter().flatten().flatten();
        saved = Files::of(there.map(|file| file.path()), outputs);
        aside = Files::of(place.left_by_repairs().into_iter(), folder);
    }
    let position = contents.position();
    Ok(Export {
        schema_version: 1,
        kind: KIND,
        session_id: place.id.as_str(),
        summary: place.summary().unwrap_or_default(),
        damage: contents.damage,
        log: Lines { path: log, bytes: position.bytes },
        blobs: Files { names, read: Box::new(|name| blobs.get(name).ok()) },
        outputs: saved,
        aside,
        agents: Agents { places: place.children(), blobs, with_files },
        without_files: !with_files,
    })
}

/// Imports a document into the folder of this workspace. Everything is checked before anything is written.
///
/// # Errors
/// `INVALID_ARGS` for another document or a changed one, `WRITE_FAILED` when another Session has its id.
pub fn import(text: String, store: &Store, workspace: &Path, dry_run: bool) -> Result<Imported> {
    let agents: Vec<String> = serde_json::from_str::<Document<'_>>(&text)
        .map(|document| document.agents.iter().map(|it| it.get().to_owned()).collect())
        .unwrap_or_default();
    // What is wrong with one of them is found before anything is written.
    if !dry_run {
        for agent in &agents {
            import(agent.clone(), store, workspace, true)?;
        }
    }
    let mut it = import_one(text, store, workspace, dry_run)?;
    for agent in agents {
        it.agents += 1 + import(agent, store, workspace, dry_run)?.agents;
    }
    Ok(it)
}

/// Imports one Session, without those that it has started.
fn import_one(text: String, store: &Store, workspace: &Path, dry_run: bool) -> Result<Imported> {
    let bad = |why: String| Error::new(Code::InvalidArgs, why, Remedy::ExportSession);
    let document: Document<'_> =
        serde_json::from_str(&text).map_err(|e| bad(format!("this file is not an exported session: {e}")))?;
    if document.kind != KIND || document.schema_version != 1 {
        return Err(bad("this file is not an exported session of a known version".into()));
    }
    let id = SessionId::parse(&document.session_id)?;
    let place = Place::new(&store.folder_of(workspace), id);
    let lines = || document.log.iter().flat_map(|line| [line.get().as_bytes(), b"\n".as_slice()]);
    let decode = |(name, text): (&String, &&RawValue)| {
        let base64: Cow<'_, str> =
            serde_json::from_str(text.get()).map_err(|e| bad(format!("{name} is not a text: {e}")))?;
        STANDARD.decode(base64.as_ref()).map_err(|e| bad(format!("{name} is not base64: {e}")))
    };
    // Decoded twice, here and when they are written, so that only one file at a time is in memory.
    for file in &document.blobs {
        if storage::blobs::name_of(&decode(file)?) != *file.0 {
            return Err(bad(format!("the file version {} was changed", file.0)));
        }
    }
    for file in document.outputs.iter().chain(&document.aside) {
        decode(file)?;
    }
    let (outputs, aside) = (&document.outputs, &document.aside);
    let is_bad = |name: &str| name.is_empty() || name.contains(['/', '\0']) || name.starts_with('.');
    let own = format!("{}.", place.id);
    let strange = aside.keys().filter(|name| !name.starts_with(&own));
    if let Some(name) = outputs.keys().filter(|name| is_bad(name)).chain(strange).next() {
        return Err(bad(format!("`{}` is not a file name of this session", name.escape_debug())));
    }
    if aside.keys().any(|name| is_bad(name)) {
        return Err(bad("a file that a repair put aside has an invalid name".into()));
    }
    let mut it = Imported {
        session_id: document.session_id.clone(),
        entries: document.log.len(),
        blobs: document.blobs.len(),
        outputs: outputs.len(),
        agents: 0,
        already_there: false,
    };
    check(lines(), &place.id, &bad)?;
    // An id is unique over all workspaces.
    if let Some(there) = store.places().into_iter().find(|other| other.id == place.id) {
        // The Session may have continued since the export.
        if starts_with(&there.log(), lines()).unwrap_or(false) {
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
    for file in &document.blobs {
        let put = store.blobs().put(&decode(file)?);
        put.map_err(|e| Error::new(Code::WriteFailed, format!("write a file version: {e}"), Remedy::CheckStateFolder))?;
    }
    if it.already_there {
        return Ok(it);
    }
    // What the user once allowed to a Session of this id was not allowed to this document.
    store.rules().forget(&place.id)?;
    let write = || -> io::Result<()> {
        let private = |folder: &Path| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        let new = |path: &Path, bytes: &[u8]| -> io::Result<()> {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        if !outputs.is_empty() {
            private(&place.outputs())?;
        }
        for file in outputs {
            let path = place.outputs().join(file.0);
            if !path.exists() {
                new(&path, &decode(file).map_err(|e| io::Error::other(e.message))?)?;
            }
        }
        let path = place.log();
        let folder = path.parent().expect("a log lies in a folder");
        private(folder)?;
        for file in aside {
            let path = folder.join(file.0);
            if !path.exists() {
                new(&path, &decode(file).map_err(|e| io::Error::other(e.message))?)?;
            }
        }
        let temporary = path.with_extension(format!("{:x}.tmp", uuid::Uuid::now_v7().as_u128()));
        let mut file =
            BufWriter::new(fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?);
        lines().try_for_each(|part| file.write_all(part))?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(temporary, path)
    };
    let recorded = PathBuf::from(&document.summary.workspace);
    write().map_err(|e| Error::new(Code::WriteFailed, format!("write the session: {e}"), Remedy::CheckStateFolder))?;
    // The Session is opened to be moved; the document does not have to be in memory as well.
    drop(text);
    // From now on the Session works in this workspace.
    if recorded != workspace {
        store.relocate(&place, workspace)?;
    }
    Ok(it)
}

/// Checks that the lines are a complete Log of this Session, with an intact chain.
fn check<'a>(mut lines: impl Iterator<Item = &'a [u8]>, id: &SessionId, bad: &dyn Fn(String) -> Error) -> Result<()> {
    let folder = tempfile::tempdir().map_err(|e| bad(format!("create a temporary folder: {e}")))?;
    let path = folder.path().join(format!("{id}.ndjson"));
    let file = fs::File::create(&path).map(BufWriter::new);
    let written = file.and_then(|mut file| lines.try_for_each(|part| file.write_all(part)).and_then(|()| file.flush()));
    written.map_err(|e| bad(format!("write a temporary file: {e}")))?;
    let mut entries = 0_u64;
    let contents = log::scan(&path, &mut |_| entries += 1)?;
    match contents.damage.first() {
        Some(_) if entries == 0 => Err(bad("its log is empty".into())),
        Some(damage) => Err(bad(format!("line {} of its log was changed ({})", damage.line, damage.reason))),
        None => Ok(()),
    }
}

/// Whether a file begins with these bytes.
fn starts_with<'a>(path: &Path, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<bool> {
    let mut file = BufReader::with_capacity(BUFFER, fs::File::open(path)?);
    let mut there = Vec::new();
    for part in parts {
        there.resize(part.len(), 0);
        match file.read_exact(&mut there) {
            Ok(()) if there == part => {}
            Ok(()) => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}
