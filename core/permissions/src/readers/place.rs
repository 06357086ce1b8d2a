//! Where a word that names a file leads.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType};

use crate::Readable;

/// The most file system calls of one judgement: this bounds its time.
const MOST_CALLS: usize = 20_000;
/// The most symlinks in one path, as in the kernel.
const MOST_LINKS: usize = 40;
/// The longest path that the kernel takes, bytes.
const LONGEST: usize = 4_000;

/// Where the judged command may read, and what of the judgement's time is left.
pub(super) struct Ground<'a> {
    /// Its paths are absolute and without symlinks.
    readable: Readable<'a>,
    /// The home folder, as the shell puts it in place of `~` and `$HOME`.
    pub(super) home: Option<&'a str>,
    /// The kernel keeps the command to what is judged here.
    pub(super) is_confined: bool,
    /// The workspace, or the folder besides it, in whose repository git runs: the environment of an unasked program names one.
    /// By its number, the workspace first.
    git: Cell<Option<usize>>,
    /// The user trusts where the repository leads.
    pub(super) trusts_leads: bool,
    calls: Cell<usize>,
    /// The workspace, opened for its lists of names.
    dir: OnceCell<Option<Dir>>,
    /// Names that were found for a pattern, with the pattern.
    found: RefCell<Vec<(String, String)>>,
}

/// Which names of files a reader of a list gets as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// Each is one plain word.
    Words,
    /// Each is one line.
    Lines,
    /// None is taken for a flag.
    NoFlags,
    Any,
}

impl Names {
    /// Whether this name is one of them.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check(self, name: &str) -> Result<(), String> {
        let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-~#()[]{}!&$;^".contains(c);
        let (is_good, what) = match self {
            Names::Any => return Ok(()),
            Names::NoFlags => (true, "a name"),
            Names::Words => (name.chars().all(is_plain), "one plain word"),
            Names::Lines => (!name.contains(char::is_control), "one line"),
        };
        if is_good && !name.starts_with('-') {
            Ok(())
        } else {
            Err(format!("the name `{}` is not {what}", name.escape_debug()))
        }
    }
}

/// What stands at a path.
#[derive(Debug)]
pub(super) enum Found {
    File,
    Folder(PathBuf),
    Missing,
}

impl<'a> Ground<'a> {
    pub(super) fn new(readable: Readable<'a>) -> Ground<'a> {
        let Readable { home, is_confined, trusts_leads, .. } = readable;
        // The value of a variable outside of quotes is split at blanks, and names are looked for in it.
        let is_plain = |home: &&str| {
            home.starts_with('/') && home.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        };
        let home = home.filter(is_plain);
        let (calls, dir, found) = (Cell::new(MOST_CALLS), OnceCell::new(), RefCell::default());
        Ground { readable, home, is_confined, git: Cell::default(), trusts_leads, calls, dir, found }
    }

    /// The workspace, in which the first program starts.
    pub(super) fn workspace(&self) -> &'a Path {
        self.readable.workspace
    }

    /// The workspace, or the folder besides it, that holds this path.
    pub(super) fn root_of(&self, path: &Path) -> Option<&'a Path> {
        self.readable.root_of(path)
    }

    /// The root in whose repository git runs.
    pub(super) fn git(&self) -> Option<&'a Path> {
        self.readable.roots().nth(self.git.get()?)
    }

    /// Notes that git runs in the repository of this root.
    ///
    /// # Errors
    /// It runs in that of another one too.
    pub(super) fn runs_git_in(&self, root: &Path) -> Result<(), String> {
        let number = self.readable.roots().position(|it| it == root);
        match self.git.replace(number) {
            Some(other) if Some(other) != number => Err("it runs git in two repositories".to_owned()),
            Some(_) | None => Ok(()),
        }
    }

    /// The folders besides the workspace, and what else outside it may be read.
    fn others(&self) -> impl Iterator<Item = &'a PathBuf> {
        self.readable.folders.iter().chain(self.readable.others)
    }

    /// What the command has for this path. A name that was found may lie outside by now, and is not told.
    fn as_written(&self, text: &str) -> String {
        let found = self.found.borrow();
        found.iter().find(|(name, _)| name == text).map_or(text, |(_, pattern)| pattern).to_owned()
    }

    /// The names in a folder, which are those of a folder in the workspace whatever another program puts at its path.
    fn names(&self, folder: &Path) -> Result<Vec<(OsString, FileType)>, String> {
        let unread = || "a folder cannot be read here".to_owned();
        let open = |root: &Path| Dir::open_ambient_dir(root, ambient_authority()).ok();
        // Only pixir writes to the folder of saved outputs.
        if let Some(outputs) = self.readable.outputs.filter(|outputs| folder.starts_with(outputs)) {
            return self.names_below(&open(outputs).ok_or_else(unread)?, folder.strip_prefix(outputs).ok());
        }
        if let Some(other) = self.others().find(|other| folder.starts_with(other)) {
            return self.names_below(&open(other).ok_or_else(unread)?, folder.strip_prefix(other).ok());
        }
        let workspace = self.readable.workspace;
        let dir = self.dir.get_or_init(|| open(workspace));
        self.names_below(dir.as_ref().ok_or_else(unread)?, folder.strip_prefix(workspace).ok())
    }

    fn names_below(&self, dir: &Dir, path: Option<&Path>) -> Result<Vec<(OsString, FileType)>, String> {
        let unread = || "a folder cannot be read here".to_owned();
        let path = path.ok_or_else(unread)?;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let mut all = Vec::new();
        for entry in dir.read_dir(path).map_err(|_| unread())?.flatten() {
            self.spend()?;
            all.push((entry.file_name(), entry.file_type().map_err(|_| unread())?));
        }
        Ok(all)
    }

    /// Counts one file system call.
    pub(super) fn spend(&self) -> Result<(), String> {
        let left = self.calls.get().checked_sub(1).ok_or("it names too many files to be judged")?;
        self.calls.set(left);
        Ok(())
    }

    /// Follows a path from a folder, as the kernel would. It opens nothing.
    ///
    /// # Errors
    /// It leads out of the workspace, to a special file, or where pixir cannot look.
    pub(super) fn locate(&self, text: &str, folder: &Path) -> Result<Found, String> {
        let outside = || format!("`{}` may lie outside the workspace", self.as_written(text));
        if text.len() > LONGEST || text.contains('\0') {
            return Err(outside());
        }
        let by_alias = self.readable.alias.and_then(|alias| Path::new(text).strip_prefix(alias).ok());
        let by_alias = by_alias.map(|below| self.readable.workspace.join(below));
        let path = by_alias.as_deref().unwrap_or(Path::new(text));
        let mut at = if path.is_absolute() { PathBuf::from("/") } else { folder.to_owned() };
        let mut rest = parts(path);
        let mut links = 0;
        let mut kind = None;
        while let Some(part) = rest.pop() {
            if part == ".." {
                at.pop();
            } else {
                at.push(&part);
            }
            if !self.contains(&at) && !self.is_above(&at) {
                return Err(outside());
            }
            self.spend()?;
            let metadata = match fs::symlink_metadata(&at) {
                Ok(metadata) => metadata,
                // What is not there cannot lead anywhere.
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let leads_back = rest.iter().any(|part| part == "..");
                    return if leads_back || !self.contains(&at) { Err(outside()) } else { Ok(Found::Missing) };
                }
                // The rest names nothing below a file; as a revision of git it may name much.
                Err(e) if e.kind() == ErrorKind::NotADirectory && !rest.iter().any(|part| part == "..") => {
                    return if self.contains(&at) { Ok(Found::Missing) } else { Err(outside()) };
                }
                Err(_) => return Err(outside()),
            };
            if metadata.is_symlink() {
                links += 1;
                let target = fs::read_link(&at).map_err(|_| outside())?;
                if links > MOST_LINKS || target.as_os_str().len() > LONGEST {
                    return Err(outside());
                }
                at.pop();
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                rest.extend(parts(&target));
                kind = None;
                continue;
            }
            kind = Some(metadata);
        }
        if !self.contains(&at) {
            return Err(outside());
        }
        match kind {
            None => Ok(Found::Folder(at)),
            Some(metadata) => what(&metadata, at, &self.as_written(text)),
        }
    }

    fn contains(&self, at: &Path) -> bool {
        at.starts_with(self.readable.workspace)
            || self.readable.outputs.is_some_and(|outputs| at.starts_with(outputs))
            || self.others().any(|other| at.starts_with(other))
    }

    fn is_above(&self, at: &Path) -> bool {
        self.readable.workspace.starts_with(at)
            || self.readable.outputs.is_some_and(|outputs| outputs.starts_with(at))
            || self.others().any(|other| other.starts_with(at))
    }

    /// Follows a path to a folder in which programs run: one of the workspace, or of a folder that is worked on as that is.
    ///
    /// # Errors
    /// As [`Ground::locate`].
    pub(super) fn locate_to_work(&self, text: &str, folder: &Path) -> Result<Found, String> {
        match self.locate(text, folder)? {
            Found::Folder(real) if self.root_of(&real).is_none() => Err(format!("`{text}` lies outside the workspace")),
            found => Ok(found),
        }
    }

    /// Checks that every name below a folder is one of these and every symlink there leads to the workspace.
    ///
    /// # Errors
    /// It is not so, or the folder is too large to look.
    pub(super) fn check_names(&self, folder: &Path, names: Names) -> Result<(), String> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for (name, kind) in self.names(&folder)? {
                let shown = || format!("`{}`", name.to_string_lossy().escape_debug());
                match name.to_str() {
                    Some(name) => names.check(name)?,
                    None if names == Names::Any => {}
                    None if names == Names::NoFlags && !name.as_encoded_bytes().starts_with(b"-") => {}
                    None => return Err(format!("the name {} is not text", shown())),
                }
                if kind.is_dir() {
                    folders.push(folder.join(&name));
                } else if kind.is_symlink() {
                    self.locate(
                        name.to_str().ok_or_else(|| format!("{} may lead outside the workspace", shown()))?,
                        &folder,
                    )?;
                } else if !kind.is_file() {
                    return Err(format!("{} is a FIFO, a socket or a device", shown()));
                }
            }
        }
        Ok(())
    }

    /// The names that a word with `*` and `?` stands for, as bash finds them; the word itself where there are none.
    ///
    /// # Errors
    /// A folder of the pattern leads out of the workspace, or a name could be taken for a flag.
    pub(super) fn expand(&self, pattern: &[Piece], folder: &Path) -> Result<Vec<String>, String> {
        let text: String = pattern.iter().map(Piece::text).collect();
        let mut levels: Vec<Vec<Piece>> = vec![Vec::new()];
        for piece in pattern {
            match piece {
                Piece::Char('/') => levels.push(Vec::new()),
                piece => levels.last_mut().expect("there is one").push(*piece),
            }
        }
        let mut found = vec![String::new()];
        for (i, level) in levels.iter().enumerate() {
            let plain = |pieces: &[Piece]| pieces.iter().map(Piece::text).collect::<String>();
            let join = |before: &str, name: &str| if i == 0 { name.to_owned() } else { format!("{before}/{name}") };
            if !level.iter().any(|piece| matches!(piece, Piece::Any | Piece::One)) {
                found = found.iter().map(|before| join(before, &plain(level))).collect();
                continue;
            }
            let mut next = Vec::new();
            for before in &found {
                let at = if i == 0 {
                    "."
                } else if before.is_empty() {
                    "/"
                } else {
                    before
                };
                let Found::Folder(real) = self.locate(at, folder)? else { continue };
                if level.first() == Some(&Piece::Char('.')) && matches(level, "..") {
                    return Err(format!("`{text}` may stand for the folder above"));
                }
                for (name, _) in self.names(&real)? {
                    let Some(name) = name.to_str() else { return Err("a name is not text".into()) };
                    if matches(level, name) && (!name.starts_with('.') || level.first() == Some(&Piece::Char('.'))) {
                        next.push(join(before, name));
                    }
                }
            }
            next.sort();
            found = next;
        }
        self.found.borrow_mut().extend(found.iter().map(|name| (name.clone(), text.clone())));
        found.retain(|name| !matches!(self.locate(name, folder), Ok(Found::Missing)));
        // The shell then passes on what is written, which is judged like any other word.
        if found.is_empty() {
            return Ok(vec![text]);
        }
        match found.iter().find(|name| name.starts_with('-')) {
            Some(name) => Err(format!("the file name `{}` would be a flag", name.escape_debug())),
            None => Ok(found),
        }
    }
}

/// A piece of a word in which a shell looks for file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Char(char),
    /// `*`
    Any,
    /// `?`
    One,
}

impl Piece {
    fn text(&self) -> char {
        match self {
            Piece::Char(c) => *c,
            Piece::Any => '*',
            Piece::One => '?',
        }
    }
}

/// The path that a shell takes this one for: `..` takes the name before it away, whatever that is.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// In time proportional to the product of both lengths.
fn matches(pattern: &[Piece], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(Piece::Any) => {
                star = Some((p, n));
                p += 1;
            }
            Some(Piece::One) => (p, n) = (p + 1, n + 1),
            Some(Piece::Char(c)) if *c == name[n] => (p, n) = (p + 1, n + 1),
            Some(Piece::Char(_)) | None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|piece| *piece == Piece::Any)
}

fn what(metadata: &Metadata, at: PathBuf, text: &str) -> Result<Found, String> {
    if metadata.is_dir() {
        Ok(Found::Folder(at))
    } else if metadata.is_file() {
        Ok(Found::File)
    } else {
        Err(format!("`{text}` is a FIFO, a socket or a device"))
    }
}

/// The parts of a path, last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect::<Vec<_>>().into_iter().rev().collect()
}
