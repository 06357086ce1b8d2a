//! A deleted file and an added one are one renamed file if their contents are the same, or mostly the same.

use std::collections::HashMap;

use super::{ChangedFile, Kind, Version, Versions};
use text::encoding::plain;

/// The part of the bytes that both must have, in percent; git's own default.
const LEAST: u64 = 50;
/// The most deleted, and the most added files that are compared by content.
const MOST: usize = 200;
/// Larger files are compared by their names in the store only, bytes.
const LARGEST: usize = 1 << 20;

/// Joins files that are renamed, by equal content first, then by similar content.
pub(super) fn join(files: &mut Vec<ChangedFile>, versions: &impl Versions) {
    join_exact(files);
    let of = |files: &[ChangedFile], kind: &Kind| -> Vec<usize> {
        files.iter().enumerate().filter(|(_, file)| file.kind == *kind).map(|(at, _)| at).collect()
    };
    let (gone, come) = (of(files, &Kind::Deleted), of(files, &Kind::Added));
    if gone.is_empty() || come.is_empty() || gone.len().max(come.len()) > MOST {
        return;
    }
    let shape = |file: &ChangedFile, version: &Version| {
        let bytes = versions.read(&file.path, version).ok()??;
        (bytes.len() <= LARGEST).then(|| Shape::of(&bytes)).flatten()
    };
    let shaped = |all: &[usize], old: bool| -> Vec<(usize, Shape)> {
        let version = |at: usize| if old { &files[at].old } else { &files[at].new };
        all.iter().filter_map(|at| Some((*at, shape(&files[*at], version(*at))?))).collect()
    };
    let (gone, come) = (shaped(&gone, true), shaped(&come, false));
    let mut scores: Vec<(u64, bool, usize, usize)> = Vec::new();
    for (from, old) in &gone {
        for (to, new) in &come {
            let score = old.likeness(new);
            if score >= LEAST {
                let has_name = name(&files[*from].path) == name(&files[*to].path);
                scores.push((score, has_name, *from, *to));
            }
        }
    }
    // The most alike first; of equals, those that keep their names.
    scores.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then((a.2, a.3).cmp(&(b.2, b.3))));
    let (mut taken, mut pairs) = (Vec::new(), Vec::new());
    for (_, _, from, to) in scores {
        if !taken.contains(&from) && !taken.contains(&to) {
            taken.extend([from, to]);
            pairs.push((from, to));
        }
    }
    merge(files, pairs);
    for file in files.iter_mut().filter(|file| matches!(file.kind, Kind::Renamed(_)) && file.counts.is_none()) {
        file.count(versions);
    }
}

/// Joins the files of which the path before is known already, with the lines that changed since.
pub(super) fn join_known<'a>(files: &mut Vec<ChangedFile>, origin: impl Fn(&str) -> Option<(&'a str, (u64, u64))>) {
    let place = |path: &str| files.iter().position(|file| file.kind == Kind::Deleted && file.path == path);
    let known = files.iter().enumerate().filter(|(_, file)| file.kind == Kind::Added).filter_map(|(to, file)| {
        let (from, counts) = origin(&file.path)?;
        Some((place(from)?, to, counts))
    });
    let known: Vec<(usize, usize, (u64, u64))> = known.collect();
    let paths: Vec<(String, (u64, u64))> =
        known.iter().map(|(_, to, counts)| (files[*to].path.clone(), *counts)).collect();
    merge(files, known.into_iter().map(|(from, to, _)| (from, to)).collect());
    for (path, counts) in paths {
        if let Some(file) = files.iter_mut().find(|file| file.path == path) {
            file.counts = Some(counts);
        }
    }
}

/// Joins files with the same content.
pub(super) fn join_exact(files: &mut Vec<ChangedFile>) {
    let mut gone: HashMap<String, Vec<usize>> = HashMap::new();
    let key = |version: &Version| match version {
        Version::Blob(name) | Version::Object(name) => Some(name.clone()),
        Version::Absent | Version::Disk | Version::Lost(_) => None,
    };
    for (at, file) in files.iter().enumerate().filter(|(_, file)| file.kind == Kind::Deleted) {
        if let Some(key) = key(&file.old) {
            gone.entry(key).or_default().push(at);
        }
    }
    let mut pairs = Vec::new();
    for (to, file) in files.iter().enumerate().filter(|(_, file)| file.kind == Kind::Added) {
        let Some(from) = key(&file.new).and_then(|key| gone.get_mut(&key)) else { continue };
        let best = from.iter().position(|at| name(&files[*at].path) == name(&file.path)).unwrap_or(0);
        if best < from.len() {
            pairs.push((from.remove(best), to));
        }
    }
    merge(files, pairs);
}

fn merge(files: &mut Vec<ChangedFile>, pairs: Vec<(usize, usize)>) {
    let mut is_gone = vec![false; files.len()];
    for (from, to) in pairs {
        let before = files[from].clone();
        let it = &mut files[to];
        it.counts = if before.old == it.new { Some((0, 0)) } else { None };
        it.binary = None;
        it.kind = Kind::Renamed(before.path);
        (it.old, it.old_mode) = (before.old, before.old_mode);
        is_gone[from] = true;
    }
    let mut at = 0..;
    files.retain(|_| !is_gone[at.next().unwrap_or_default()]);
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// How often a file has each of its lines. Bytes that are not text are cut into pieces of equal length.
struct Shape {
    size: u64,
    parts: HashMap<Vec<u8>, u64>,
}

impl Shape {
    /// None for an empty file, which is like no other.
    fn of(bytes: &[u8]) -> Option<Shape> {
        let mut parts: HashMap<Vec<u8>, u64> = HashMap::new();
        match plain(bytes) {
            Some(text) => text.split_inclusive('\n').for_each(|line| {
                *parts.entry(line.as_bytes().to_vec()).or_default() += 1;
            }),
            None => bytes.chunks(64).for_each(|chunk| *parts.entry(chunk.to_vec()).or_default() += 1),
        }
        (!bytes.is_empty()).then_some(Shape { size: bytes.len() as u64, parts })
    }

    /// The part of the larger file that both have, in percent.
    fn likeness(&self, other: &Shape) -> u64 {
        let (small, large) = (self.size.min(other.size), self.size.max(other.size));
        if small * 100 < large * LEAST {
            return 0;
        }
        let common = |(part, count): (&Vec<u8>, &u64)| {
            part.len() as u64 * (*count).min(other.parts.get(part).copied().unwrap_or(0))
        };
        self.parts.iter().map(common).sum::<u64>() * 100 / large
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::blobs::Blobs;

    fn file(blobs: &Blobs, path: &str, kind: Kind, text: &str) -> ChangedFile {
        let blob = Version::Blob(blobs.put(text.as_bytes()).expect("put").expect("small"));
        let (old, new) = if kind == Kind::Deleted { (blob, Version::Absent) } else { (Version::Absent, blob) };
        let counts = Some((text.lines().count() as u64, 0));
        ChangedFile {
            path: path.into(),
            kind,
            modes: None,
            counts,
            binary: None,
            folded: None,
            old,
            new,
            old_mode: None,
        }
    }

    /// Broken build: one that compares paths only, or takes the first that is alike and not the best.
    #[test]
    fn a_moved_file_is_found_by_its_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::new(folder.path().to_owned());
        let long: String = (0..60).map(|n| format!("line {n}\n")).collect();
        let edited = long.replace("line 7\n", "line seven\n");
        let half: String = long.lines().take(35).map(|line| format!("{line}\n")).collect();
        let mut files = vec![
            file(&blobs, "a/same.py", Kind::Deleted, "exactly this\n"),
            file(&blobs, "b/same.py", Kind::Added, "exactly this\n"),
            file(&blobs, "half.py", Kind::Added, &half),
            file(&blobs, "new.py", Kind::Added, &edited),
            file(&blobs, "old.py", Kind::Deleted, &long),
            file(&blobs, "other.py", Kind::Added, "nothing alike\n"),
        ];
        join(&mut files, &blobs);
        let shown: Vec<_> = files.iter().map(|it| (it.path.as_str(), it.kind.clone(), it.counts)).collect();
        let renamed = |from: &str| Kind::Renamed(from.to_owned());
        assert_eq!(
            shown,
            [
                ("b/same.py", renamed("a/same.py"), Some((0, 0))),
                ("half.py", Kind::Added, Some((35, 0))),
                ("new.py", renamed("old.py"), Some((1, 1))),
                ("other.py", Kind::Added, Some((1, 0))),
            ]
        );
    }
}
