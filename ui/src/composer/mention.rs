//! Mentions: `@` and a few letters find files of the workspace. The list of files respects `.gitignore`.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use ignore::{DirEntry, WalkBuilder, WalkState};

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use pixir_core::{Border, has_blocking_rules};

use super::is_image_name;

/// The most paths that are offered.
const OFFERED: usize = 50;
/// The most files that are listed. In a larger workspace only these are searched.
const MOST: usize = 400_000;
/// This many files are listed quickly, so they are offered while the rest is being listed.
const FIRST: usize = 3_000;

/// A mention at the caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mention {
    pub(crate) letters: String,
}

impl Mention {
    /// The mention before this column, in characters. An `@` inside of a word is an email address.
    pub(crate) fn at(line: &str, column: usize) -> Option<Mention> {
        let before: Vec<char> = line.chars().take(column).collect();
        let at = before.iter().rposition(|c| *c == '@')?;
        let letters: String = before[at + 1..].iter().collect();
        let free = at == 0 || !is_word(before[at - 1]);
        (free && !letters.contains([' ', '"'])).then_some(Mention { letters })
    }
}

/// The paths that a text mentions, each once: `@path`, or `@"a path"`.
fn all(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, _) in text.match_indices('@') {
        if text[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest
                .split(char::is_whitespace)
                .next()
                .unwrap_or_default()
                .trim_end_matches([',', '.', ';', ':', '?', '!', ')']),
        };
        if !path.is_empty() && !found.iter().any(|it| it == path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// The images that a text mentions.
pub(crate) fn images(text: &str) -> Vec<String> {
    all(text).into_iter().filter(|path| is_image_name(path)).collect()
}

/// The mentions of images in a line, in characters.
pub(super) fn images_in(line: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices('@') {
        if line[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let rest = &line[at + 1..];
        let (path, len) = match rest.strip_prefix('"') {
            Some(quoted) => match quoted.find('"') {
                Some(end) => (&quoted[..end], end + 3),
                None => continue,
            },
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (&rest[..end], end + 1)
            }
        };
        if is_image_name(path) {
            let from = line[..at].chars().count();
            found.push(from..from + line[at..at + len].chars().count());
        }
    }
    found
}

/// An `@` after this character belongs to an email address.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The files of a workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    paths: Arc<Vec<Box<str>>>,
    /// The list is complete.
    pub(crate) is_whole: bool,
}

impl Index {
    /// Lists the files. Ignored files and `.git` are left out.
    pub(crate) fn read(workspace: &Path) -> Index {
        let (sender, paths) = mpsc::channel();
        let count = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
        walk(workspace).threads(threads).build_parallel().run(|| {
            let (sender, count) = (sender.clone(), &count);
            Box::new(move |entry| {
                if let Some(path) = entry.ok().and_then(|entry| path_of(&entry, workspace)) {
                    let _ = sender.send(path);
                }
                if count.fetch_add(1, Ordering::Relaxed) < MOST { WalkState::Continue } else { WalkState::Quit }
            })
        });
        drop(sender);
        Index::of(paths.into_iter().collect(), true)
    }

    /// Lists only the first part.
    pub(crate) fn begin(workspace: &Path) -> Index {
        let mut walk = walk(workspace).build();
        let entries = walk.by_ref().take(FIRST).flatten();
        let paths = entries.filter_map(|entry| path_of(&entry, workspace)).collect();
        Index::of(paths, walk.next().is_none())
    }

    fn of(mut paths: Vec<Box<str>>, is_whole: bool) -> Index {
        paths.sort_unstable();
        Index { paths: Arc::new(paths), is_whole }
    }

    /// The paths that match these letters, best first.
    pub(crate) fn find(&self, letters: &str) -> Vec<String> {
        if letters.is_empty() {
            // Paths with fewer folders come first.
            let mut near: Vec<&str> = self
                .paths
                .iter()
                .map(AsRef::as_ref)
                .filter(|path| path.trim_end_matches('/').matches('/').count() == 0)
                .collect();
            near.truncate(OFFERED);
            return near.into_iter().map(str::to_owned).collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        // Each letter means itself: names have `!`, `^` and `$` in them.
        let pattern = Pattern::new(letters, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let mut buffer = Vec::new();
        let mut found: Vec<(u32, usize, &str)> = self
            .paths
            .iter()
            .filter_map(|path| {
                Some((pattern.score(Utf32Str::new(path, &mut buffer), &mut matcher)?, path.len(), path.as_ref()))
            })
            .collect();
        let best = |it: &(u32, usize, &str)| (std::cmp::Reverse(it.0), it.1);
        if found.len() > OFFERED {
            found.select_nth_unstable_by_key(OFFERED, best);
            found.truncate(OFFERED);
        }
        found.sort_unstable_by(|a, b| best(a).cmp(&best(b)).then(a.2.cmp(b.2)));
        found.into_iter().map(|(.., path)| path.to_owned()).collect()
    }
}

fn walk(workspace: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(workspace);
    let is_readable = |it: &DirEntry| !it.file_type().is_some_and(|it| it.is_dir()) || !has_blocking_rules(it.path());
    let border = Border::default();
    walk.hidden(false).filter_entry(move |it| it.file_name() != ".git" && is_readable(it) && border.encloses(it));
    // The walk would read those of its root before it could skip them.
    if workspace.ancestors().any(has_blocking_rules) {
        walk.ignore(false).git_ignore(false).git_exclude(false).parents(false);
    }
    walk
}

/// The path as it is offered. A folder ends with a slash.
fn path_of(entry: &DirEntry, workspace: &Path) -> Option<Box<str>> {
    let path = entry.path().strip_prefix(workspace).ok().and_then(Path::to_str)?;
    if path.is_empty() || path.chars().any(char::is_control) {
        return None;
    }
    let is_folder = entry.file_type().is_some_and(|it| it.is_dir());
    Some(if is_folder { format!("{path}/") } else { path.to_owned() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_at_sign_is_a_mention_only_where_a_word_could_begin() {
        let at = |line: &str| Mention::at(line, line.chars().count()).map(|it| it.letters);
        assert_eq!(at("see @src/ma"), Some("src/ma".into()));
        assert_eq!(at("@"), Some(String::new()));
        assert_eq!(at("看@main"), Some("main".into()), "also behind a character that is no letter of a word");
        assert_eq!(at("me@example.org"), None);
        assert_eq!(at("see @main.rs and"), None);
    }

    #[test]
    fn what_a_text_mentions_is_known_when_it_is_sent() {
        assert_eq!(all("see @a.png, and @\"my shot.png\"? me@b.png @a.png"), ["a.png", "my shot.png"]);
    }

    #[test]
    fn mentions_of_images_are_found_in_a_line() {
        assert_eq!(images_in("über @a.png and @\"my shot.webp\"x @b.rs me@c.png @d.png"), [5..11, 16..31, 48..54]);
        assert_eq!(images_in("@a.png and @b.txt").first(), Some(&(0..6)));
    }

    #[test]
    fn a_few_letters_find_a_file_among_very_many() {
        let paths =
            (0..100_000).map(|n| format!("src/module{}/part{n}.rs", n % 100).into()).chain(["src/main.rs".into()]);
        let index = Index::of(paths.collect(), true);
        assert_eq!(index.find("smain")[0], "src/main.rs");
        assert_eq!(index.find("part99999")[0], "src/module99/part99999.rs");
        assert_eq!(index.find("part").len(), OFFERED);
    }
}
