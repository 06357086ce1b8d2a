//! A table whose head is still being written, so that no pipes are on the screen for a moment.

use std::borrow::Cow;

use crate::render::split::is_delimiter;

/// A growing text that ends in the head of a table, with the row below the head that makes it one; `None` if it ends in
/// something else.
pub(crate) fn begun_table(source: &str) -> Option<Cow<'_, str>> {
    let text = source.trim_end_matches([' ', '\n']);
    let paragraph = text.rfind("\n\n").map_or(0, |at| at + 2);
    let mut lines = text[paragraph..].lines();
    let head = lines.next().filter(|it| it.starts_with('|'))?;
    // The row below the head, as far as it is written.
    let below = lines.next().unwrap_or_default();
    let is_open = below.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' '));
    let cells = cells(head);
    if !is_open || lines.next().is_some() || is_delimiter(below) && self::cells(below) == cells {
        return None;
    }
    if cells == 0 {
        return Some(source[..paragraph].into());
    }
    Some(format!("{}{head}\n|{}\n", &source[..paragraph], "---|".repeat(cells)).into())
}

fn cells(row: &str) -> usize {
    let row = row.trim().trim_matches('|');
    if row.is_empty() { 0 } else { row.split('|').count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_table_is_one_from_its_first_letter_on() {
        let whole = |text: &str| begun_table(text).map(Cow::into_owned);
        for (text, shown) in [
            ("Numbers:\n\n|", "Numbers:\n\n"),
            ("Numbers:\n\n| a", "Numbers:\n\n| a\n|---|\n"),
            ("| a | b |\n", "| a | b |\n|---|---|\n"),
            ("| a | b |\n|--", "| a | b |\n|---|---|\n"),
        ] {
            assert_eq!(whole(text).as_deref(), Some(shown), "{text:?}");
        }
        for text in ["", "a | b", "Numbers", "| a | b |\n|---|---|", "| a | b |\n| c", "| a |\n|---|\n| 1 |"] {
            assert_eq!(whole(text), None, "{text:?}");
        }
    }
}
