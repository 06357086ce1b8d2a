//! Errors of the file system in words: what stands at the path, and what to do instead.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use icu_normalizer::ComposingNormalizerBorrowed;

use super::inside::Base;
use super::{Inside, Workspace};
use protocol::error::{Code, Error};

impl Workspace {
    pub(super) fn io(&self, verb: &str, at: &Inside, e: &io::Error) -> Error {
        let shown = at.display();
        let shown = shown.escape_debug();
        let input = at.display();
        match e.kind() {
            io::ErrorKind::PermissionDenied if leads_out(e) => {
                let mut error = self.outside(&input);
                let root = if at.base == Base::Folder { "its folder" } else { "the workspace" };
                error.message = format!("`{shown}` leads outside {root} through a symlink");
                error
            }
            io::ErrorKind::NotFound if at.base == Base::Outputs => {
                let message = format!("the saved output `{shown}` is no longer stored");
                Error::new(Code::ResourceMissing, message, "repeat the call that printed it").with("input", input)
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let (what, fix) = self.missing(at);
                Error::new(Code::NotFound, what.unwrap_or_else(|| format!("there is no `{shown}`")), fix)
                    .with("input", input)
            }
            _ => {
                let code = if verb == "write" { Code::WriteFailed } else { Code::ReadFailed };
                Error::new(code, format!("{verb} `{shown}`: {e}"), remedy_of(e)).with("input", input)
            }
        }
    }

    /// What is known of a path at which nothing can be opened, and what to do instead.
    fn missing(&self, at: &Inside) -> (Option<String>, String) {
        let parent = at.path.parent().unwrap_or(Path::new(""));
        let name = at.path.file_name().unwrap_or_default();
        let folder = Inside { path: parent.to_owned(), base: at.base };
        let listed = self.raw_names(&folder).unwrap_or_default();
        let shown = at.display();
        let shown = shown.escape_debug();
        if listed.iter().any(|it| it == name) {
            let target = self.opened(at).ok().and_then(|(dir, path)| dir.read_link_contents(path).ok());
            let target =
                target.map_or(String::new(), |it| format!(" to `{}`", it.display().to_string().escape_debug()));
            let message = format!("`{shown}` is a symlink{target}, where nothing is");
            return (Some(message), "another path; ls -l in bash shows where it leads".to_owned());
        }
        let alike = |it: &&OsString| it.to_string_lossy() == name.to_string_lossy() || looks_like(it, name);
        if let Some(other) = listed.iter().find(alike) {
            let bytes: String = other.as_bytes().iter().flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
            let message = format!("`{shown}` is missing; a file there looks the same and is spelt `{bytes}`");
            return (Some(message), format!("the same spelling, or in bash $'{bytes}'"));
        }
        let texts: Vec<&str> = listed.iter().filter_map(|it| it.to_str()).collect();
        let near = protocol::error::nearest(&name.to_string_lossy(), texts);
        let fix = match near {
            Some(near) => format!("{} (did you mean that?)", parent.join(near).display()),
            None => "find or ls to see which files exist".to_owned(),
        };
        (None, fix)
    }

    fn raw_names(&self, at: &Inside) -> io::Result<Vec<OsString>> {
        let at = &self.followed(at);
        let (dir, path) = self.opened_folder(at)?;
        Ok(dir.read_dir(path)?.flatten().map(|entry| entry.file_name()).collect())
    }
}

/// The error about a path where no regular file stands.
pub(super) fn not_regular(at: &Inside, folder: bool) -> Error {
    let (what, fix) = if folder { ("a folder", "ls to list it") } else { ("not a regular file", "a regular file") };
    Error::new(Code::NotRegularFile, format!("`{}` is {what}", at.display()), fix).with("input", at.display())
}

/// The error about a file or folder in which the kernel shows its state.
pub(super) fn of_kernel(at: &Inside, kind: &str) -> Error {
    let shown = at.display();
    let message =
        format!("`{shown}` is on {kind}, where files have no size and no end; pixir neither reads nor searches there");
    Error::new(Code::NotRegularFile, message, format!("cat or ls in bash for one file: cat {shown}"))
        .with("input", shown)
}

/// cap-std sets no errno when a path leaves the root; a refusal by the kernel has one.
pub(super) fn leads_out(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::PermissionDenied && e.raw_os_error().is_none()
}

/// What to do about an error of the file system.
fn remedy_of(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull => "make room on the disk, then repeat it",
        io::ErrorKind::QuotaExceeded => "make room within the user's quota, then repeat it",
        io::ErrorKind::ReadOnlyFilesystem => {
            "a folder on a file system that can be written; this one is mounted read-only"
        }
        io::ErrorKind::InvalidFilename => "a shorter name: a name has at most 255 bytes, and a path 4,096",
        io::ErrorKind::FileTooLarge => "a smaller file: there is a limit on the size of files here",
        io::ErrorKind::StaleNetworkFileHandle => "mount the file system again: its server has lost it",
        _ => "check the path and its permissions",
    }
}

/// Whether two names show the same letters in other forms of Unicode: é as one character, or as e with a mark.
fn looks_like(one: &OsStr, other: &OsStr) -> bool {
    let (Some(one), Some(other)) = (one.to_str(), other.to_str()) else { return false };
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    !one.is_ascii() && !other.is_ascii() && nfc.normalize(one) == nfc.normalize(other)
}
