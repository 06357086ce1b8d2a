//! How many files are below some paths, and how large they are, counted up to a limit.

use std::fs;
use std::path::PathBuf;

use super::snapshot::MAX_KEPT;
use text::human::human_size;

/// The most entries that are counted. The user waits for the count.
const MAX_COUNTED: usize = 10_000;

/// The files below some paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Size {
    files: u64,
    bytes: u64,
    /// Some file is too large to be stored before it is deleted.
    has_large: bool,
    /// There are more than could be counted.
    is_cut: bool,
}

impl Size {
    /// Counts files, links and folders below these paths. Links are not followed.
    pub fn of(paths: Vec<PathBuf>) -> Size {
        let mut size = Size::default();
        let mut left = paths;
        let mut seen = 0;
        while let Some(path) = left.pop() {
            seen += 1;
            if seen > MAX_COUNTED {
                size.is_cut = true;
                break;
            }
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            if found.is_dir() {
                let room = MAX_COUNTED + 1 - seen.min(MAX_COUNTED);
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|it| it.path()).take(room));
                continue;
            }
            size.files += 1;
            size.bytes += found.len();
            size.has_large |= found.len() > MAX_KEPT;
        }
        size
    }

    /// `deletes 214 files, 31MB`; `None` if there is no file.
    pub fn deletes(&self) -> Option<String> {
        let files = match (self.files, self.is_cut) {
            (0, false) => return None,
            (n, true) => format!("more than {n} files, over {}", human_size(self.bytes)),
            (1, false) => format!("1 file, {}", human_size(self.bytes)),
            (n, false) => format!("{n} files, {}", human_size(self.bytes)),
        };
        let limit = if self.has_large { "; files above 4MB cannot be restored" } else { "" };
        Some(format!("deletes {files}{limit}"))
    }
}
