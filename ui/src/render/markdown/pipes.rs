//! Escapes a `|` in code, which would end the cell of a table.

use std::borrow::Cow;

use crate::render::split::is_delimiter;

/// Escapes every `|` in code inside of a table. Models do not escape them, and the rest of the row would be lost.
pub(super) fn with_pipes(source: Cow<'_, str>) -> Cow<'_, str> {
    if !source.contains('`') || !source.contains('|') {
        return source;
    }
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|below| is_delimiter(below.trim()));
    if !(0..lines.len()).any(is_head) {
        return source;
    }
    let (mut out, mut in_table, mut fence) = (String::with_capacity(source.len() + 16), false, None);
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match fence {
            None if mark.is_some() => fence = mark,
            Some(_) if fence == mark => fence = None,
            _ => {}
        }
        in_table = fence.is_none() && !bare.is_empty() && bare.contains('|') && (in_table || is_head(at));
        if in_table && bare.contains('`') {
            escape_pipes(line, &mut out);
        } else {
            out.push_str(line);
        }
    }
    out.into()
}

/// A row of a table, with every `|` between backticks escaped.
fn escape_pipes(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let ticks = &rest[open..][..rest[open..].bytes().take_while(|byte| *byte == b'`').count()];
        let (before, code) = rest.split_at(open + ticks.len());
        out.push_str(before);
        rest = code;
        if let Some(close) = code.find(ticks) {
            let mut was_escape = false;
            for c in code[..close].chars() {
                if c == '|' && !was_escape {
                    out.push('\\');
                }
                was_escape = c == '\\';
                out.push(c);
            }
            out.push_str(ticks);
            rest = &code[close + ticks.len()..];
        }
    }
    out.push_str(rest);
}
