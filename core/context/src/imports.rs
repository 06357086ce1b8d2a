//! `@path` in a context file: the names of other documents that belong to it.

/// The most names that one file may have.
const MOST: usize = 64;
/// The longest name, bytes.
const MAX_PATH: usize = 512;
/// The endings of documents. A file with another ending could be a key or code, which the user did not mean to send.
const DOCUMENTS: [&str; 6] = ["md", "mdc", "markdown", "txt", "rst", "adoc"];

/// A word of a text that names a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The path, as it stands behind the `@`.
    pub(super) path: String,
}

/// The names in a text, outside of code blocks and code spans, each once.
pub(super) fn of(text: &str) -> Vec<Import> {
    let mut imports: Vec<Import> = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'));
        let len = mark.map_or(0, |mark| trimmed.chars().take_while(|c| *c == mark).count());
        match (fence, mark) {
            (None, Some(mark)) if len >= 3 => fence = Some((mark, len)),
            (Some((open, least)), Some(mark)) if mark == open && len >= least => fence = None,
            (None, _) if !line.starts_with("    ") && !line.starts_with('\t') => {
                for word in outside_of_code(line).split_whitespace() {
                    if let Some(path) = named(word)
                        && imports.len() < MOST
                        && !imports.iter().any(|it| it.path == path)
                    {
                        imports.push(Import { path: path.to_owned() });
                    }
                }
            }
            (None | Some(_), _) => {}
        }
    }
    imports
}

/// Whether a path names a document by its ending.
pub(super) fn is_document(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| DOCUMENTS.contains(&ending.to_ascii_lowercase().as_str()))
}

/// A line without its code spans.
fn outside_of_code(line: &str) -> String {
    let mut outside = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        let len = rest[at..].bytes().take_while(|byte| *byte == b'`').count();
        outside.push_str(&rest[..at]);
        let behind = &rest[at + len..];
        // A span ends at a row of as many backticks; without one it is no span.
        match closing(behind, len) {
            Some(end) => {
                outside.push(' ');
                rest = &behind[end + len..];
            }
            None => {
                outside.push_str(&rest[at..at + len]);
                rest = behind;
            }
        }
    }
    outside + rest
}

fn closing(text: &str, len: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let row = bytes[at..].iter().take_while(|byte| **byte == b'`').count();
        if row == len {
            return Some(at);
        }
        at += row.max(1);
    }
    None
}

/// The path that a word names: it begins with `@`, and has a dot or a slash in it.
fn named(word: &str) -> Option<&str> {
    let path = word.trim_start_matches(['(', '[', '"', '\'', '*', '_']).strip_prefix('@')?;
    let path = path.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '*']);
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_path = path.contains(['.', '/']) && path.len() <= MAX_PATH && !path.contains(['@', '\0']);
    is_path.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        of(text).into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn names_are_found_in_prose_and_not_in_code() {
        assert_eq!(
            paths("See @docs/a.md, and (@./b.md). Also **@c.txt**; @docs/a.md again"),
            ["docs/a.md", "b.md", "c.txt"]
        );
        assert_eq!(paths("`@a.md` and ``x ` @b.md`` but @c.md and ` @d.md"), ["c.md", "d.md"]);
        assert_eq!(paths("```\n@a.md\n~~~\n@b.md\n```\n@c.md\n    @d.md\n~~~\n@e.md"), ["c.md"]);
        assert_eq!(paths("mail me@x.org, ask @alice, use @types/node, not @ or @@x.md"), ["types/node"]);
        assert!(is_document("docs/A.MD") && !is_document(".env") && !is_document("types/node"));
        assert_eq!(paths(&"@a/b ".repeat(9)), ["a/b"]);
        assert_eq!(of(&(0..200).map(|n| format!("@{n}.md ")).collect::<String>()).len(), MOST);
    }
}
