//! The words that differ between a line and the line that replaces it.

use std::ops::Range;

use text::edits::{DiffOp, edits_of_texts};

/// Longer lines are not compared by words, bytes.
const LONGEST: usize = 1_000;
/// Lines that share less than this part of their text, in percent, are told apart as a whole.
const LEAST_COMMON: usize = 30;

/// The parts that differ, in bytes of each line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// In the old line.
    pub old: Vec<Range<usize>>,
    /// In the new line.
    pub new: Vec<Range<usize>>,
}

/// Compares two lines by words. `None` if they have too little in common for that to help.
pub fn words(old: &str, new: &str) -> Option<Words> {
    let (old, new) = (old.trim_end_matches(['\n', '\r']), new.trim_end_matches(['\n', '\r']));
    if old.len().max(new.len()) > LONGEST {
        return None;
    }
    let (a, b) = (tokens(old), tokens(new));
    let left: Vec<&str> = a.iter().map(|at| &old[at.clone()]).collect();
    let right: Vec<&str> = b.iter().map(|at| &new[at.clone()]).collect();
    let (mut it, mut common) = (Words::default(), 0);
    let span = |tokens: &[Range<usize>], at: usize, len: usize| tokens[at].start..tokens[at + len - 1].end;
    for op in edits_of_texts(&left, &right) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                let same = left[old_index..old_index + len].iter();
                common += same.filter(|text| !text.trim().is_empty()).map(|text| text.len()).sum::<usize>();
            }
            DiffOp::Delete { old_index, old_len, .. } => push(&mut it.old, span(&a, old_index, old_len)),
            DiffOp::Insert { new_index, new_len, .. } => push(&mut it.new, span(&b, new_index, new_len)),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                push(&mut it.old, span(&a, old_index, old_len));
                push(&mut it.new, span(&b, new_index, new_len));
            }
        }
    }
    let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).map(char::len_utf8).sum::<usize>();
    (common * 100 >= dense(old).max(dense(new)) * LEAST_COMMON && common > 0).then_some(it)
}

/// Joins a part to the one before it if they touch.
fn push(parts: &mut Vec<Range<usize>>, part: Range<usize>) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}

/// Words, runs of blanks, and every other character by itself.
pub(super) fn tokens(text: &str) -> Vec<Range<usize>> {
    #[derive(PartialEq, Clone, Copy)]
    enum Of {
        Word,
        Blank,
        Other,
    }
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let mut before = Of::Other;
    for (at, c) in text.char_indices() {
        let of = match c {
            c if c.is_alphanumeric() || c == '_' => Of::Word,
            c if c.is_whitespace() => Of::Blank,
            _ => Of::Other,
        };
        let end = at + c.len_utf8();
        match tokens.last_mut() {
            Some(last) if of == before && of != Of::Other => last.end = end,
            _ => tokens.push(at..end),
        }
        before = of;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(old: &str, new: &str) -> Option<(Vec<String>, Vec<String>)> {
        let it = words(old, new)?;
        let of = |text: &str, parts: Vec<Range<usize>>| parts.into_iter().map(|at| text[at].to_owned()).collect();
        Some((of(old, it.old), of(new, it.new)))
    }

    #[test]
    fn only_the_words_that_differ_are_marked() {
        let (old, new) = changed("let tokens = lex(input).unwrap();\n", "let tokens = lex(input)?;\n").expect("alike");
        assert_eq!((old, new), (vec![".unwrap()".to_owned()], vec!["?".to_owned()]));
        assert_eq!(changed("ünï = 1", "ünï = 22"), Some((vec!["1".to_owned()], vec!["22".to_owned()])));
        assert_eq!(changed("nothing alike", "{ 1, 2 }"), None);
        assert_eq!(changed("", "x"), None);
    }
}
