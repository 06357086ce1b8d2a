//! The text of a configuration file with the place of each value in it. A change replaces, adds or removes the bytes of one value, so
//! comments, order and layout stay.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use super::path::dotted;

/// A parsed file.
pub(super) struct Document<'a> {
    text: &'a str,
    root: Spanned<DeTable<'a>>,
    /// The places of all `[section]` and `[[section]]`, in the order of the file.
    headers: Vec<Range<usize>>,
}

/// A value that the file has.
struct Found<'a, 'b> {
    key: Range<usize>,
    value: &'b Spanned<DeValue<'a>>,
}

/// How the file writes a table.
enum Form {
    /// With a line of its own: `[limits]`.
    Header,
    /// As a value: `limits = { max_rounds = 3 }`.
    Inline,
    /// Only as a part of longer keys: `limits.max_rounds = 3`.
    Dotted,
    /// Only as a part of longer headers: `[mcp.github]` for `mcp`.
    Implied,
}

impl<'a> Document<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Document<'a>, Error> {
        let root = DeTable::parse(text)?;
        let mut headers = Vec::new();
        root.get_ref().iter().for_each(|(_, value)| note_headers(text, value, &mut headers));
        headers.sort_by_key(|it| it.start);
        Ok(Document { text, root, headers })
    }

    /// The text with the value at this path, which replaces the one that is there.
    pub(super) fn with(&self, path: &[String], value: &toml::Value) -> String {
        let value = value.to_string();
        match self.find(path) {
            Some(found) => self.replaced(found.value.span(), &value),
            None => self.added(path, &value),
        }
    }

    /// The text without the value at this path. A section that has nothing else goes with it.
    pub(super) fn without(&self, path: &[String]) -> String {
        let Some((found, (name, folder))) = self.find(path).zip(path.split_last()) else { return self.text.to_owned() };
        if let Some(Found { value, .. }) = self.find(folder)
            && let (Form::Inline, DeValue::Table(table)) = (self.form(value), value.get_ref())
        {
            // Without its last value an inline table says nothing.
            return if table.len() == 1 { self.without(folder) } else { self.replaced(entry(table, name, &found), "") };
        }
        let lines = self.line_start(found.key.start)..self.line_end(found.value.span().end);
        let header = self.headers.iter().rev().find(|it| it.start < lines.start);
        if let Some(header) = header {
            let section = self.line_end(header.end)..self.section_end(header.end);
            let is_blank = |range: Range<usize>| self.text[range].trim().is_empty();
            if is_blank(section.start..lines.start) && is_blank(lines.end..section.end) {
                return self.without_lines(self.line_start(header.start)..section.end);
            }
        }
        self.replaced(lines, "")
    }

    /// The text without a section and those below it.
    pub(super) fn without_section(&self, path: &[String]) -> String {
        let Some(found) = self.find(path) else { return self.text.to_owned() };
        let mut own = Vec::new();
        note_headers(self.text, found.value, &mut own);
        if own.is_empty() {
            return self.without(path);
        }
        own.sort_by_key(|it| std::cmp::Reverse(it.start));
        let mut text = self.text.to_owned();
        for header in own {
            text.replace_range(self.line_start(header.start)..self.section_end(header.end), "");
        }
        text
    }

    fn find(&self, path: &[String]) -> Option<Found<'a, '_>> {
        let (first, rest) = path.split_first()?;
        let (key, value) = self.root.get_ref().get_key_value(first.as_str())?;
        rest.iter().try_fold(Found { key: key.span(), value }, |at, name| {
            let (key, value) = at.value.get_ref().as_table()?.get_key_value(name.as_str())?;
            Some(Found { key: key.span(), value })
        })
    }

    fn form(&self, table: &Spanned<DeValue<'a>>) -> Form {
        let span = table.span();
        match self.text[span.clone()].as_bytes().first() {
            Some(b'{') => Form::Inline,
            Some(b'[') => Form::Header,
            _ if self.headers.iter().any(|it| it.start <= span.start && span.end <= it.end) => Form::Implied,
            _ => Form::Dotted,
        }
    }

    /// The text with a new value, in its section.
    fn added(&self, path: &[String], value: &str) -> String {
        // The innermost table that the file has and that can take the value.
        for depth in (1..path.len()).rev() {
            let Some(Found { value: table, .. }) = self.find(&path[..depth]) else { continue };
            let line = format!("{} = {value}", dotted(&path[depth..]));
            match self.form(table) {
                Form::Inline => {
                    let is_empty = table.get_ref().as_table().is_none_or(|it| it.is_empty());
                    let inside = &self.text[..table.span().end - 1];
                    let at = inside.trim_end().len();
                    let comma = if is_empty || inside.trim_end().ends_with(',') { " " } else { ", " };
                    let gap = if at == inside.len() { " " } else { "" };
                    return self.replaced(at..at, &format!("{comma}{line}{gap}"));
                }
                Form::Header if depth + 1 == path.len() => return self.in_section(Some(table.span().end), &line),
                Form::Dotted => {
                    let section = self.headers.iter().rev().find(|it| it.start < table.span().start);
                    let outer = (0..depth).rev().find(|&it| {
                        it == 0 || self.find(&path[..it]).is_some_and(|it| matches!(self.form(it.value), Form::Header))
                    });
                    let line = format!("{} = {value}", dotted(&path[outer.unwrap_or(0)..]));
                    return self.in_section(section.map(|it| it.end), &line);
                }
                Form::Header | Form::Implied => {}
            }
        }
        match path.split_last() {
            Some((name, [])) => self.in_section(None, &format!("{} = {value}", dotted(std::slice::from_ref(name)))),
            Some((name, folder)) => {
                let (gap, text) = (if self.text.is_empty() { "" } else { "\n" }, self.text);
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                format!("{text}{end}{gap}[{}]\n{} = {value}\n", dotted(folder), dotted(std::slice::from_ref(name)))
            }
            None => self.text.to_owned(),
        }
    }

    /// The text with a line at the end of the section whose header ends here, or before all sections.
    fn in_section(&self, header: Option<usize>, line: &str) -> String {
        let start = header.map_or(0, |end| self.line_end(end));
        let end = self.section_end(header.unwrap_or(0));
        let at = start + self.text[start..end].trim_end().len();
        let at = if at > start { self.line_end(at) } else { start };
        let before = if at > 0 && !self.text[..at].ends_with('\n') { "\n" } else { "" };
        // A line above the first section needs a blank line below it, if only comments or nothing stood there.
        let after = if at < self.text.len() && !self.text[at..].starts_with(['\n', '\r']) { "\n" } else { "" };
        self.replaced(at..at, &format!("{before}{line}\n{after}"))
    }

    /// The end of what belongs to the section that is open here. The comments right above the next header belong to that one.
    fn section_end(&self, at: usize) -> usize {
        let Some(next) = self.headers.iter().find(|it| it.start >= at) else { return self.text.len() };
        let mut end = self.line_start(next.start);
        while end > at && self.text[self.line_start(end - 1)..end].trim_start().starts_with('#') {
            end = self.line_start(end - 1);
        }
        end.max(at)
    }

    /// The start of the line that holds this byte.
    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |it| it + 1)
    }

    /// The start of the line after the one that holds this byte.
    fn line_end(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |it| at + it + 1)
    }

    fn replaced(&self, range: Range<usize>, by: &str) -> String {
        [&self.text[..range.start], by, &self.text[range.end..]].concat()
    }

    /// At the end of the file the blank lines above go as well: they only separated the removed lines.
    fn without_lines(&self, range: Range<usize>) -> String {
        if range.end < self.text.len() {
            return self.replaced(range, "");
        }
        let left = self.text[..range.start].trim_end();
        if left.is_empty() { String::new() } else { format!("{left}\n") }
    }
}

/// The places of the headers that make this value and those below it.
fn note_headers(text: &str, value: &Spanned<DeValue>, headers: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::Table(table) => {
            if text[value.span()].starts_with('[') {
                headers.push(value.span());
            }
            table.iter().for_each(|(_, below)| note_headers(text, below, headers));
        }
        DeValue::Array(all) => all.iter().for_each(|below| note_headers(text, below, headers)),
        _ => {}
    }
}

/// The place of one entry of an inline table, with the comma that goes with it.
fn entry(table: &DeTable, name: &str, found: &Found) -> Range<usize> {
    let start = found.key.start;
    let others = || table.iter().filter(|(key, _)| key.get_ref() != name);
    let next = others().map(|(key, _)| key.span().start).filter(|it| *it > start).min();
    let before = others().map(|(_, value)| value.span().end).filter(|it| *it < start).max();
    match (next, before) {
        (Some(next), _) => start..next,
        (None, Some(before)) => before..found.value.span().end,
        (None, None) => start..found.value.span().end,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{Index, subsequence};

    use super::*;
    use crate::edit::{pruned, remove};
    use crate::path::{get, insert, leaves};

    const SECTIONS: [&str; 5] = ["limits", "mcp.a", "mcp.a.env", "mcp", "screen"];
    const VALUES: [&str; 6] =
        [" = 1", "=\"x # = y\"", " = [\n  1,\n  2,\n]", " = { p = 1, q = \"=\" }", " = {}", ".x = 1"];

    /// An entry of a file: which key and value, and whether there is a comment above, one beside, and a blank line below.
    type Entry = (usize, usize, [bool; 3]);

    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        let keys = subsequence((0..4).collect::<Vec<usize>>(), 0..=4);
        keys.prop_flat_map(|keys| {
            keys.into_iter().map(|key| (Just(key), 0..VALUES.len(), any::<[bool; 3]>())).collect::<Vec<_>>()
        })
    }

    fn sections() -> impl Strategy<Value = Vec<(&'static str, Vec<Entry>)>> {
        let named = subsequence(SECTIONS.to_vec(), 0..=5).prop_shuffle();
        (entries(), named.prop_flat_map(|all| all.into_iter().map(|name| (Just(name), entries())).collect::<Vec<_>>()))
            .prop_map(|(top, below)| std::iter::once(("", top)).chain(below).collect())
    }

    /// A file whose comments have names: `#s` above a section, `#c1` on a line of its own, `#b1` beside a value.
    fn written(sections: &[(&str, Vec<Entry>)]) -> String {
        let (mut text, mut number) = (String::new(), 0);
        for (name, entries) in sections {
            if !name.is_empty() {
                text.push_str(&format!("#s{name}\n[{name}]\n"));
            }
            for (key, value, [above, beside, below]) in entries {
                number += 1;
                let above = if *above { format!("#c{number}\n") } else { String::new() };
                let beside = if *beside { format!("  #b{number}") } else { String::new() };
                let below = if *below { "\n" } else { "" };
                text.push_str(&format!("{above}k{key}{}{beside}\n{below}", VALUES[*value]));
            }
        }
        text
    }

    fn paths() -> Vec<Vec<String>> {
        let below = |key: usize| [format!("k{key}"), format!("k{key}.p"), format!("k{key}.x"), format!("k{key}.new")];
        let keys: Vec<String> = (0..4).flat_map(below).collect();
        let of_section = |name: &str| keys.iter().map(|key| format!("{name}.{key}")).collect::<Vec<_>>();
        let all = keys.iter().cloned().chain(SECTIONS.iter().copied().chain(["fresh", "mcp.b"]).flat_map(of_section));
        all.map(|path| path.split('.').map(str::to_owned).collect()).collect()
    }

    fn comments<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
        text.match_indices(mark).map(|(at, _)| text[at..].split_whitespace().next().unwrap_or_default()).collect()
    }

    fn table(text: &str) -> toml::Table {
        text.parse().unwrap_or_else(|e| panic!("{e}:\n{text}"))
    }

    /// Whether a table can have this path: no part of it is another value.
    fn fits(table: &toml::Table, path: &[String]) -> bool {
        (1..path.len()).all(|depth| get(table, &path[..depth]).is_none_or(toml::Value::is_table))
    }

    proptest! {
        /// Broken builds: a value with `#` or `=` in it ends there; a line goes into the section above or below; a dotted key gets
        /// a section of its own; a comment goes with the value below it.
        #[test]
        fn a_changed_key_changes_no_other_value_and_no_comment(sections in sections(), path in any::<Index>(), value in 7..9) {
            let (text, paths) = (written(&sections), paths());
            let path = path.get(&paths);
            let before = table(&text);
            prop_assume!(fits(&before, path) && get(&before, path).is_none_or(|it| !it.is_table()));
            let value = toml::Value::from(value);
            let changed = Document::parse(&text).expect("valid").with(path, &value);
            let mut wanted = before;
            insert(&mut wanted, path, value);
            prop_assert_eq!(table(&changed), wanted, "{}\n---\n{}", text, changed);
            for kind in ["#s", "#c", "#b"] {
                prop_assert_eq!(comments(&changed, kind), comments(&text, kind), "{}\n---\n{}", text, changed);
            }
        }

        /// Broken builds: the comment above a value goes with it; a section goes although it has more.
        #[test]
        fn a_removed_key_takes_no_other_value_and_no_comment_along(sections in sections(), path in any::<Index>()) {
            let text = written(&sections);
            let before = table(&text);
            let values: Vec<_> = leaves(&before).into_iter().filter(|(_, value)| !value.is_table()).collect();
            prop_assume!(!values.is_empty());
            let (path, _) = path.get(&values);
            let changed = Document::parse(&text).expect("valid").without(path);
            let mut wanted = before;
            remove(&mut wanted, path);
            let wanted = pruned(wanted);
            prop_assert_eq!(pruned(table(&changed)), wanted, "{}\n---\n{}", text, changed);
            for kind in ["#s", "#c"] {
                prop_assert_eq!(comments(&changed, kind), comments(&text, kind), "{}\n---\n{}", text, changed);
            }
        }

        /// Broken builds: a section below stays; the comment above the next section goes along.
        #[test]
        fn a_removed_section_takes_those_below_it_along_and_nothing_else(sections in sections()) {
            let text = written(&sections);
            for (name, _) in sections.iter().skip(1) {
                let path: Vec<String> = name.split('.').map(str::to_owned).collect();
                let changed = Document::parse(&text).expect("valid").without_section(&path);
                let mut wanted = table(&text);
                remove(&mut wanted, &path);
                prop_assert_eq!(pruned(table(&changed)), pruned(wanted), "{}\n---\n{}", text, changed);
                let kept = sections.iter().filter(|(it, _)| *it != *name && !it.starts_with(&format!("{name}.")));
                let left = comments(&changed, "#s");
                for (other, _) in kept.filter(|(it, _)| !it.is_empty()) {
                    prop_assert!(left.contains(&&*format!("#s{other}")), "{}\n---\n{}", text, changed);
                }
            }
        }
    }
}
