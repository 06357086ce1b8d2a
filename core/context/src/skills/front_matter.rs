//! The front matter of a file: the YAML between two lines of `---`. Many real files are not quite YAML, so what a strict
//! reader would refuse is read field by field, and each such place is a finding.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::finding::Finding;
use super::text::one_line;
use super::yaml;

/// A longer front matter is not parsed as YAML, bytes.
const MAX_YAML: usize = 64 << 10;
/// The most characters of a parser's message.
const MAX_MESSAGE: usize = 160;

/// A file, taken apart.
#[derive(Debug, Default)]
pub struct Document {
    /// The fields of the front matter.
    pub fields: Map<String, Value>,
    /// The line of each field, from 1.
    pub lines: BTreeMap<String, usize>,
    /// The text after the front matter.
    pub body: String,
    /// The line that the body begins with, from 1.
    pub(crate) body_line: usize,
    pub findings: Vec<Finding>,
}

/// A field with its value, as it is written.
struct Chunk<'a> {
    key: &'a str,
    /// From 1.
    line: usize,
    lines: &'a [&'a str],
}

/// Takes a file apart. The text has plain line ends.
pub(crate) fn read(text: &str) -> Document {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut findings = Vec::new();
    let first = lines.iter().position(|line| !line.trim().is_empty());
    let Some(first) = first.filter(|first| is_fence(lines[*first])) else {
        let fix = "begin the file with a line `---`, `name:`, `description:`, and another line `---`";
        let what = if first.is_none() { "the file is empty" } else { "the file has no front matter" };
        findings.push(Finding::fault(1, what, fix));
        return Document { body: text.to_owned(), body_line: 1, findings, ..Document::default() };
    };
    if first > 0 {
        findings.push(Finding::fault(first + 1, "the front matter begins late", "remove the blank lines before `---`"));
    }
    let from = first + 1;
    let closed = lines[from..].iter().position(|line| is_fence(line) || line.trim_end() == "...").map(|at| from + at);
    let parsed = closed.map(|end| parse(&lines[from..end].join("\n")));
    // A rule in the body looks like the end of a front matter that was never closed.
    let is_prose = |end: usize| prose_begins(&lines[from..end], closed.is_none()).map(|at| from + at);
    let (end, body_from) = match (closed, &parsed) {
        (Some(end), Some(Err(_))) if is_prose(end).is_some() => (is_prose(end).unwrap_or(end), None),
        (Some(end), _) => (end, Some(end + 1)),
        (None, _) => (is_prose(lines.len()).unwrap_or(lines.len()), None),
    };
    if body_from.is_none() {
        let fix = "put a line `---` after its last field";
        findings.push(Finding::fault(from, "the front matter is never closed", fix));
    }
    let yaml = &lines[from..end];
    let chunks = chunks(yaml, from);
    let mut places = BTreeMap::new();
    for chunk in &chunks {
        if places.insert(chunk.key.to_owned(), chunk.line).is_some() {
            let message = format!("`{}` is there twice; the last one counts", shown(chunk.key));
            findings.push(Finding::fault(chunk.line, message, "remove one of them"));
        }
    }
    let parsed = if body_from.is_some() { parsed } else { Some(parse(&yaml.join("\n"))) };
    let fields = match parsed.unwrap_or_else(|| Ok(Map::new())) {
        Ok(fields) => fields,
        Err((line, message)) => {
            let message = format!("the front matter is not valid YAML, so it was read line by line: {message}");
            let fix = "put the value in double quotes, or on lines of its own below `>-`";
            findings.push(Finding::fault(from + line, message, fix));
            by_lines(&chunks)
        }
    };
    let body_from = body_from.unwrap_or(end).min(lines.len());
    let body = lines[body_from..].join("\n");
    Document { fields, lines: places, body, body_line: body_from + 1, findings }
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

fn shown(key: &str) -> String {
    one_line(key, 40)
}

/// Parses YAML.
///
/// # Errors
/// The line in it, from 1, and what is wrong.
fn parse(yaml: &str) -> Result<Map<String, Value>, (usize, String)> {
    if yaml.len() > MAX_YAML {
        return Err((1, format!("it is longer than {} KB", MAX_YAML >> 10)));
    }
    match yaml::read(yaml) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err((1, "it must be a list of `key: value`".to_owned()))
        }
        Err(fault) => Err((fault.line, one_line(&fault.message, MAX_MESSAGE))),
    }
}

/// The key of a field that begins on this line, and what follows its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    is_key.then_some((key, rest))
}

/// The fields, each with the lines that belong to it.
fn chunks<'a>(yaml: &'a [&'a str], from: usize) -> Vec<Chunk<'a>> {
    let starts: Vec<(usize, &str)> =
        yaml.iter().enumerate().filter_map(|(at, line)| Some((at, key_of(line)?.0))).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([yaml.len()]);
    starts.iter().zip(ends).map(|((at, key), end)| Chunk { key, line: from + at + 1, lines: &yaml[*at..end] }).collect()
}

/// Where prose begins that no front matter has: text behind a blank line that is no field, or where nothing closes the front
/// matter a heading.
fn prose_begins(lines: &[&str], is_open: bool) -> Option<usize> {
    (1..lines.len()).find(|at| {
        let line = lines[*at];
        // Fields begin with a small letter, sentences do not.
        let is_key = key_of(line).is_some_and(|(key, _)| !key.starts_with(char::is_uppercase));
        let is_field = is_key || line.starts_with([' ', '\t', '-']);
        let is_heading = is_open && (line.starts_with("# ") || line.starts_with("## "));
        !line.trim().is_empty() && !is_field && (lines[*at - 1].trim().is_empty() || is_heading)
    })
}

/// Reads each field by itself: as YAML where it is some, else as it stands.
fn by_lines(chunks: &[Chunk<'_>]) -> Map<String, Value> {
    let read = |chunk: &Chunk<'_>| {
        let text = chunk.lines.join("\n");
        let alone = if text.len() <= MAX_YAML { parse(&text).ok() } else { None };
        alone.and_then(|mut alone| alone.remove(chunk.key)).unwrap_or_else(|| plain(chunk.lines))
    };
    chunks.iter().map(|chunk| (chunk.key.to_owned(), read(chunk))).collect()
}

/// The value of a field that is no YAML.
fn plain(lines: &[&str]) -> Value {
    let first = lines.first().and_then(|line| key_of(line)).map_or("", |(_, rest)| rest.trim());
    let rest = lines.get(1..).unwrap_or_default();
    let mut header = first.chars();
    if let Some(style @ ('|' | '>')) = header.next()
        && header.all(|c| matches!(c, '+' | '-' | '0'..='9'))
    {
        let joined = rest.iter().map(|line| line.trim()).collect::<Vec<_>>();
        let between = if style == '|' { "\n" } else { " " };
        return Value::String(joined.join(between).trim().to_owned());
    }
    let items: Vec<&str> = rest.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    if first.is_empty() && !items.is_empty() && items.iter().all(|item| item.starts_with("- ")) {
        return items.iter().map(|item| Value::String(unquoted(item[2..].trim()).to_owned())).collect();
    }
    let text = [first].into_iter().chain(items).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Value::String(unquoted(&text).to_owned())
}

fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote) {
            return inside.strip_suffix(quote).unwrap_or(inside);
        }
    }
    text
}
