//! The notes of a model as Markdown, while it is still writing them as JSON.

use std::iter::Peekable;
use std::str::Chars;

/// What the notes say so far. Text around the object, and an unfinished name, are left out.
pub(super) fn so_far(json: &str) -> String {
    let Some(start) = json.find('{') else { return String::new() };
    let mut chars = json[start..].chars().peekable();
    let mut text = String::new();
    let (mut name, mut depth, mut is_list) = (String::new(), 0_usize, false);
    // A name is followed by a colon; until it arrives, a text after a comma or a brace may be one.
    let mut may_be_name = true;
    while let Some(c) = chars.next() {
        match c {
            '{' => (depth, may_be_name) = (depth + 1, true),
            '}' => depth = depth.saturating_sub(1),
            '[' => (is_list, may_be_name) = (true, depth > 1),
            ']' => is_list = false,
            ',' => may_be_name = !is_list || depth > 1,
            ':' => may_be_name = false,
            '"' => {
                let said = string(&mut chars);
                while chars.next_if(|c| c.is_whitespace()).is_some() {}
                let is_name = may_be_name && matches!(chars.peek(), Some(':') | None);
                if is_name && depth == 1 {
                    name = title(&said);
                } else if !is_name {
                    add(&mut text, &mut name, &said, is_list);
                }
            }
            _ => {}
        }
    }
    text.trim_start().to_owned()
}

/// Adds a text, under its name if it is the first of it.
fn add(text: &mut String, name: &mut String, said: &str, is_list: bool) {
    if said.trim().is_empty() {
        return;
    }
    let name = std::mem::take(name);
    match (name.is_empty(), is_list) {
        (false, true) => text.push_str(&format!("\n\n**{name}:**\n\n- {said}")),
        (false, false) => text.push_str(&format!("\n\n**{name}:** {said}")),
        (true, true) => text.push_str(&format!("\n- {said}")),
        (true, false) => text.push_str(&format!(" {said}")),
    }
}

/// `open_tasks` as `Open tasks`.
fn title(name: &str) -> String {
    let spaced = name.replace('_', " ");
    let mut chars = spaced.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The rest of a string, up to its end or to what has arrived.
fn string(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('u') => {
                    let code: String = chars.by_ref().take(4).collect();
                    text.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                Some('r' | 'b' | 'f') | None => {}
                Some(other) => text.push(other),
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::so_far;

    #[test]
    fn notes_are_read_at_every_moment() {
        let all = "Here:\n{\"goal\": \"fix \\\"it\\\"\", \"open_tasks\": [\"a\", {\"path\": \"b.rs\"}], \"next_step\": \"c\"}";
        assert_eq!(so_far(all), "**Goal:** fix \"it\"\n\n**Open tasks:**\n\n- a\n- b.rs\n\n**Next step:** c");
        // The reader survives every beginning of the JSON, and notes that it has shown stay shown.
        let mut before = String::new();
        for end in (0..=all.len()).filter(|end| all.is_char_boundary(*end)) {
            let now = so_far(&all[..end]);
            assert!(now.len() >= before.len(), "{before:?} then {now:?}");
            before = now;
        }
        assert_eq!(so_far("{\"goal\": \"half of"), "**Goal:** half of");
    }
}
