//! Context documents: what a Session's requests say before the conversation. They are collected once and recorded, so
//! that every resume sends the same bytes.

use std::io::Read;
use std::path::Path;

use crate::environment::{self, Posture};
use crate::imports::{self, Import};
use files::workspace::{Inside, Workspace};
use protocol::event::{ContextDocument, Surroundings};
use storage::regular;
use text::encoding::{Source, Utf8Reader};

/// Context files, in order of preference; the first that exists in a folder is read.
const CONTEXT_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];
/// The most bytes of one context file.
const MAX_FILE: usize = 32 << 10;
/// The most bytes of all context files.
const MAX_ALL: usize = 64 << 10;
/// The most folders from the root of the workspace down whose context files are read.
const MAX_FOLDERS: usize = 16;
/// The most imported files.
const MAX_IMPORTS: usize = 16;
/// How deep imported files may import others.
const MAX_DEPTH: u32 = 4;

/// Where context documents come from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    pub workspace: &'a Workspace,
    /// The folder of the user's settings.
    pub user_folder: Option<&'a Path>,
    /// The folder that pixir was started in.
    pub started_in: Option<&'a Path>,
    pub variables: &'a [(String, String)],
}

/// Collects the context documents of the workspace and the user: the environment, the user's context file, then those of
/// the workspace from its root down to the folder that pixir was started in. They are texts for the model and no
/// configuration, so they need no trust; the mode and the gate decide what the model may do about them.
pub fn collect(sources: Sources<'_>, posture: Posture) -> (Vec<ContextDocument>, Surroundings) {
    let Sources { workspace, user_folder, started_in, variables } = sources;
    let (environment, surroundings) = environment::collect(workspace, variables, posture);
    let mut collected = Collected { documents: vec![environment], left: MAX_ALL };
    if let Some(folder) = user_folder {
        collected.of_user(folder);
    }
    let mut reader = Reader { workspace, prefix: "", seen: Vec::new() };
    for folder in folders(workspace, started_in) {
        let found = CONTEXT_FILES.iter().find_map(|name| {
            let at = workspace.locate(&folder.join(name).display().to_string()).ok()?;
            Some((reader.read(&at)?, at))
        });
        if let Some((text, at)) = found {
            reader.seen.push(workspace.real(&at));
            collected.add(&at.display(), &text, &mut reader, folder, 0);
        }
    }
    (collected.documents, surroundings)
}

/// The folders from the root of the workspace down to where pixir was started, relative to the root.
fn folders<'a>(workspace: &Workspace, started_in: Option<&'a Path>) -> Vec<&'a Path> {
    let below = started_in.and_then(|folder| folder.strip_prefix(workspace.root()).ok()).unwrap_or(Path::new(""));
    let mut folders: Vec<&Path> = below.ancestors().take(MAX_FOLDERS).collect();
    folders.reverse();
    folders
}

/// The context file in a root: its name and its text, with one byte more than may be sent.
pub(crate) fn of_root(root: &Workspace) -> Option<(&'static str, String)> {
    let reader = Reader { workspace: root, prefix: "", seen: Vec::new() };
    CONTEXT_FILES.iter().find_map(|name| Some((*name, reader.read(&root.locate(name).ok()?)?)))
}

/// A text as a document, cut where it is too long.
pub(crate) fn document(source: &str, text: &str) -> ContextDocument {
    let mut collected = Collected { documents: Vec::new(), left: MAX_FILE };
    collected.push(source, text, &[]);
    collected.documents.remove(0)
}

struct Collected {
    documents: Vec<ContextDocument>,
    /// How many bytes may be added.
    left: usize,
}

/// Reads files beneath one folder, each once.
struct Reader<'a> {
    workspace: &'a Workspace,
    /// What stands before a path when it is shown.
    prefix: &'a str,
    /// The files that were read.
    seen: Vec<std::path::PathBuf>,
}

impl Reader<'_> {
    fn read(&self, at: &Inside) -> Option<String> {
        let (file, ..) = self.workspace.open_file(at).ok()?;
        text_of(file)
    }
}

/// The text of a file, and one byte more than may be sent, so that a cut is noticed.
fn text_of(file: impl Read) -> Option<String> {
    let mut file = Utf8Reader::new(Source::File, file);
    let mut bytes = Vec::new();
    file.by_ref().take(MAX_FILE as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(match file.encoding().filter(|it| !it.is_utf8()) {
        Some(encoding) => format!("[decoded from {encoding}]\n{text}"),
        None => text.into_owned(),
    })
}

impl Collected {
    /// The user may keep this file anywhere, so a symlink leads where it leads; what it imports lies beneath its folder.
    fn of_user(&mut self, folder: &Path) {
        let path = folder.join(CONTEXT_FILES[0]);
        let Some(text) = regular::open_to_read(&path).ok().and_then(text_of) else { return };
        let shown = path.display().to_string();
        let prefix = format!("{}/", folder.display());
        match Workspace::open(folder) {
            Ok(workspace) => {
                let seen = vec![CONTEXT_FILES[0].into()];
                self.add(&shown, &text, &mut Reader { workspace: &workspace, prefix: &prefix, seen }, Path::new(""), 0);
            }
            Err(_) => self.push(&shown, &text, &[]),
        }
    }

    /// Adds a file and then those that it imports. `folder` is where the file is.
    fn add(&mut self, shown: &str, text: &str, reader: &mut Reader<'_>, folder: &Path, depth: u32) {
        let mut notes = Vec::new();
        let mut imported = Vec::new();
        for Import { path } in imports::of(text) {
            let given = folder.join(&path).display().to_string();
            let Ok(at) = reader.workspace.locate(&given) else {
                notes.push(format!("{path} lies outside"));
                continue;
            };
            let real = reader.workspace.real(&at);
            if reader.seen.contains(&real) {
                continue;
            }
            if !imports::is_document(&path) {
                // Most such words are no files at all: a name, a package.
                if reader.workspace.is_file(&at) {
                    notes.push(format!("{path} is no document"));
                }
            } else if depth >= MAX_DEPTH || reader.seen.len() >= MAX_IMPORTS {
                notes.push(format!("{path}: too many imports"));
            } else if let Some(text) = reader.read(&at) {
                reader.seen.push(real);
                imported.push((at, text));
            } else {
                notes.push(format!("{path} is missing, or leads elsewhere"));
            }
        }
        self.push(shown, text, &notes);
        for (at, text) in imported {
            let folder = at.as_path().parent().unwrap_or(Path::new("")).to_owned();
            let shown = format!("{}{}", reader.prefix, at.display());
            self.add(&shown, &text, reader, &folder, depth + 1);
        }
    }

    fn push(&mut self, source: &str, text: &str, notes: &[String]) {
        let mut end = text.len().min(MAX_FILE).min(self.left);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let cut = if end < text.len() { "\n…[the rest of this file was left out]" } else { "" };
        let notes: String = notes.iter().map(|note| format!("\n[not imported: {note}]")).collect();
        self.left -= end;
        let text = visible(&format!("{}{cut}{notes}", text[..end].trim_end()));
        self.documents.push(ContextDocument { source: source.to_owned(), text });
    }
}

/// Removes Unicode tag characters: they can carry text that the user does not see, so the model must not see it either.
fn visible(text: &str) -> String {
    text.chars().filter(|c| !('\u{e0000}'..='\u{e007f}').contains(c)).collect()
}
