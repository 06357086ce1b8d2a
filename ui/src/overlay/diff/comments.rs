//! Comments on lines. They keep their lines when a file is edited again, and become one message with exact places.

use pixir_core::diff::{Anchor, Line, Tag, TextPatch};
use serde::{Deserialize, Serialize};

use crate::overlay::narrow::cut_word;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};

/// A comment on a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(super) path: String,
    anchor: Anchor,
    /// The line is one that the change removed.
    is_old: bool,
    /// The line was edited since, so its number is the last one that is known.
    pub(super) is_outdated: bool,
    pub(super) text: String,
    /// The version of the text that the line was last found in.
    version: String,
}

impl Comment {
    pub(super) fn saved(&self) -> SavedComment {
        let Comment { path, anchor, is_old, text, is_outdated: _, version: _ } = self;
        SavedComment { path: path.clone(), anchor: anchor.clone(), is_old: *is_old, text: text.clone() }
    }

    /// Whether it stands under this line of a diff.
    pub(super) fn is_on(&self, path: &str, line: Line) -> bool {
        let at = if self.is_old { (line.tag == Tag::Removed).then_some(line.old) } else { new_of(line).map(Some) };
        self.path == path && at.flatten().is_some_and(|at| at + 1 == self.anchor.line)
    }
}

fn new_of(line: Line) -> Option<u32> {
    if line.tag == Tag::Removed { None } else { line.new }
}

/// The comments that were not sent yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Review {
    pub(super) comments: Vec<Comment>,
}

/// A comment as it is saved for after a crash. Its line is found again by its text and its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedComment {
    path: String,
    anchor: Anchor,
    is_old: bool,
    text: String,
}

/// A field in which a comment is written.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) comment: Comment,
}

/// What a key did in the field.
pub(super) enum Typing {
    Goes,
    Done,
    Left,
    No,
}

impl Field {
    pub(super) fn key(&mut self, key: KeyEvent) -> Typing {
        let text = &mut self.comment.text;
        match key.code {
            KeyCode::Enter => return Typing::Done,
            KeyCode::Esc => return Typing::Left,
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => text.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(text),
            KeyCode::Char(c) if key.modifiers.is_typing() => text.push(c),
            _ => return Typing::No,
        }
        Typing::Goes
    }

    pub(super) fn paste(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        self.comment.text.push_str(&lines.join(" "));
    }
}

impl Review {
    pub(crate) fn is_empty(&self) -> bool {
        self.comments.is_empty()
    }

    /// The number of comments.
    pub(crate) fn len(&self) -> usize {
        self.comments.len()
    }

    /// What is saved of them.
    pub(crate) fn saved(&self) -> Vec<SavedComment> {
        self.comments.iter().map(Comment::saved).collect()
    }

    /// Saved comments, whose files are not read yet.
    pub(crate) fn restored(saved: Vec<SavedComment>) -> Review {
        let comments = saved.into_iter().map(|SavedComment { path, anchor, is_old, text }| Comment {
            path,
            anchor,
            is_old,
            is_outdated: false,
            text,
            version: String::new(),
        });
        Review { comments: comments.collect() }
    }

    /// A field for a line, with the comment that is already there.
    pub(super) fn field(&self, path: &str, text: &TextPatch, line: Line) -> Option<Field> {
        if let Some(there) = self.comments.iter().find(|it| it.is_on(path, line)) {
            return Some(Field { comment: there.clone() });
        }
        let is_old = line.tag == Tag::Removed;
        let (version, at) = if is_old { (&text.old, line.old) } else { (&text.new, line.new) };
        let anchor = Anchor::new(version.text(), at? + 1)?;
        let version = version.text().to_owned();
        let comment =
            Comment { path: path.to_owned(), anchor, is_old, is_outdated: false, text: String::new(), version };
        Some(Field { comment })
    }

    /// Saves what was written; an empty comment is removed.
    pub(super) fn put(&mut self, field: Field) {
        let mut comment = field.comment;
        comment.text = comment.text.trim().to_owned();
        self.comments
            .retain(|it| (&it.path, it.anchor.line, it.is_old) != (&comment.path, comment.anchor.line, comment.is_old));
        if !comment.text.is_empty() {
            self.comments.push(comment);
            self.comments.sort_by(|a, b| (&a.path, a.anchor.line).cmp(&(&b.path, b.anchor.line)));
        }
    }

    pub(super) fn remove(&mut self, path: &str, line: Line) {
        self.comments.retain(|it| !it.is_on(path, line));
    }

    /// Finds the lines again in the file as it is now.
    pub(super) fn follow(&mut self, path: &str, text: &TextPatch) {
        for it in self.comments.iter_mut().filter(|it| it.path == path) {
            let now = if it.is_old { text.old.text() } else { text.new.text() };
            if it.version == now {
                continue;
            }
            let found = it.anchor.moved(&it.version, now).or_else(|| it.anchor.find(now));
            it.is_outdated = found.is_none();
            if let Some(line) = found {
                it.anchor = it.anchor.at(now, line);
                now.clone_into(&mut it.version);
            }
        }
    }

    /// All comments as one message, each with its place and the line that it is about.
    pub(super) fn message(&self, source: &str) -> String {
        let what =
            if self.comments.len() == 1 { "A comment".to_owned() } else { format!("{} comments", self.comments.len()) };
        let mut message = format!("{what} on the diff ({source}):\n");
        for Comment { path, anchor, is_old, is_outdated, text, .. } in &self.comments {
            let which = match (is_old, is_outdated) {
                (true, _) => " (removed)",
                (false, true) => " (edited since)",
                (false, false) => "",
            };
            message.push_str(&format!("\n{path}:{}{which}\n> {}\n{text}\n", anchor.line, anchor.text));
        }
        message.truncate(message.trim_end().len());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: `follow` does nothing, or looks for the line by its number.
    #[test]
    fn comments_stay_on_their_lines_when_the_file_is_edited_again() {
        let text = TextPatch::new("one\n", "one\ntwo\nthree\n");
        let mut review = Review::default();
        for (line, words) in [(1, "why two?"), (2, "and three?")] {
            let mut field = review.field("a.txt", &text, text.lines[line]).expect("a line");
            field.paste(words);
            review.put(field);
        }
        review.follow("a.txt", &TextPatch::new("one\n", "zero\none\ntwo\n3\n"));
        assert_eq!(
            review.message("this turn"),
            "2 comments on the diff (this turn):\n\na.txt:3\n> two\nwhy two?\n\na.txt:3 (edited since)\n> three\nand three?"
        );
    }
}
