//! The text of a workflow as a tree of values, each with its line. TOML and JSON make the same tree.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Fault;

/// The most bytes of a file.
pub(crate) const MAX_BYTES: usize = 256 << 10;
/// The deepest nesting of a file.
const MAX_DEPTH: usize = 32;

/// A value of the file, and the line that it begins in; 0 where the text has no lines of its own.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) kind: NodeKind,
}

#[derive(Debug, Clone)]
pub(super) enum NodeKind {
    Table(BTreeMap<String, Node>),
    List(Vec<Node>),
    /// Text, a number or a truth value.
    Plain(Value),
}

impl Node {
    /// The value without its lines.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            NodeKind::Table(table) => {
                Value::Object(table.iter().map(|(key, it)| (key.clone(), it.value())).collect::<Map<_, _>>())
            }
            NodeKind::List(list) => list.iter().map(Node::value).collect(),
            NodeKind::Plain(value) => value.clone(),
        }
    }

    /// What it is, in the words of an error.
    pub(super) fn is_a(&self) -> &'static str {
        match &self.kind {
            NodeKind::Table(_) => "a table",
            NodeKind::List(_) => "a list",
            NodeKind::Plain(Value::String(_)) => "text",
            NodeKind::Plain(Value::Bool(_)) => "a truth value",
            NodeKind::Plain(Value::Number(_)) => "a number",
            NodeKind::Plain(_) => "empty",
        }
    }
}

/// The most faults of TOML that are named: behind one that confuses the reader, others are only its echo.
const MAX_FAULTS: usize = 20;

/// Reads a workflow's text: JSON if it begins with `{`, else TOML.
pub(super) fn parse(text: &str) -> Result<Node, Vec<Fault>> {
    if text.len() > MAX_BYTES {
        let message = format!("the workflow is larger than {} KB", MAX_BYTES >> 10);
        return Err(vec![Fault::new(0, "", message, "split it, and use the parts with kind = \"workflow\"")]);
    }
    let lines = Lines::of(text);
    match text.trim_start().starts_with('{') {
        true => of_json(text, text, &lines, 0).map_err(|fault| vec![fault]),
        false => of_toml(text, &lines),
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        Lines(std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect())
    }

    /// The line of this byte, from 1.
    fn line(&self, at: usize) -> usize {
        self.0.partition_point(|begin| *begin <= at)
    }
}

fn too_deep(line: usize) -> Fault {
    Fault::new(line, "", format!("values are nested deeper than {MAX_DEPTH}"), "a flatter value")
}

// ─── TOML ───

fn of_toml(text: &str, lines: &Lines) -> Result<Node, Vec<Fault>> {
    let (table, errors) = toml::de::DeTable::parse_recoverable(text);
    let mut faults: Vec<Fault> = Vec::new();
    let mut errors: Vec<(usize, toml::de::Error)> =
        errors.into_iter().map(|e| (e.span().map_or(0, |span| span.start), e)).collect();
    errors.sort_by_key(|(at, _)| *at);
    for (at, e) in errors {
        let line = lines.line(at);
        let message = e.message().lines().next().unwrap_or("it is no TOML").to_owned();
        // The first fault of a line is what is wrong with it.
        if faults.len() < MAX_FAULTS && faults.iter().all(|fault| fault.line != line) {
            faults.push(Fault::new(line, "", message, "valid TOML, or JSON that begins with `{`"));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let line = lines.line(table.span().start);
    of_table(table.get_ref(), line, lines, 0).map_err(|fault| vec![fault])
}

fn of_table(table: &toml::de::DeTable<'_>, line: usize, lines: &Lines, depth: usize) -> Result<Node, Fault> {
    if depth > MAX_DEPTH {
        return Err(too_deep(line));
    }
    let mut all = BTreeMap::new();
    for (key, value) in table {
        // The key stands where the user looks for it; a table's own span is its header.
        let at = lines.line(key.span().start);
        all.insert(key.get_ref().to_string(), of_value(value.get_ref(), at, lines, depth + 1)?);
    }
    Ok(Node { line, kind: NodeKind::Table(all) })
}

fn of_value(value: &toml::de::DeValue<'_>, line: usize, lines: &Lines, depth: usize) -> Result<Node, Fault> {
    use toml::de::DeValue;
    if depth > MAX_DEPTH {
        return Err(too_deep(line));
    }
    let plain = |value: Value| Ok(Node { line, kind: NodeKind::Plain(value) });
    match value {
        DeValue::String(text) => plain(Value::from(text.as_ref())),
        DeValue::Boolean(it) => plain(Value::from(*it)),
        DeValue::Integer(it) => match i64::from_str_radix(it.as_str(), it.radix()) {
            Ok(number) => plain(Value::from(number)),
            Err(_) => Err(Fault::new(line, "", format!("the number {} is too large", it.as_str()), "a smaller one")),
        },
        DeValue::Float(it) => match it.as_str().parse::<f64>() {
            Ok(number) if number.is_finite() => plain(Value::from(number)),
            Ok(_) | Err(_) => Err(Fault::new(line, "", format!("{} is no finite number", it.as_str()), "a number")),
        },
        DeValue::Datetime(it) => plain(Value::from(it.to_string())),
        DeValue::Array(list) => {
            let all = list.iter().map(|it| of_value(it.get_ref(), lines.line(it.span().start), lines, depth + 1));
            Ok(Node { line, kind: NodeKind::List(all.collect::<Result<_, _>>()?) })
        }
        DeValue::Table(table) => of_table(table, line, lines, depth),
    }
}

// ─── JSON ───

fn of_json(part: &str, whole: &str, lines: &Lines, depth: usize) -> Result<Node, Fault> {
    let at = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
    let skipped = part.len() - part.trim_start().len();
    let line = lines.line(at + skipped);
    if depth > MAX_DEPTH {
        return Err(too_deep(line));
    }
    let faulty = |e: &serde_json::Error| {
        let text = e.to_string();
        let message = text.split(" at line ").next().unwrap_or_default().to_owned();
        Fault::new(line + e.line().saturating_sub(1), "", message, "valid JSON")
    };
    let kind = match part.trim_start().bytes().next() {
        Some(b'{') => {
            let Pairs(raw) = serde_json::from_str(part).map_err(|e| faulty(&e))?;
            let mut table = BTreeMap::new();
            for (key, it) in raw {
                let node = of_json(it.get(), whole, lines, depth + 1)?;
                let line = node.line;
                if table.insert(key.clone().into_owned(), node).is_some() {
                    let message = format!("`{}` is there twice", key.escape_debug());
                    return Err(Fault::new(line, "", message, "one value for each key"));
                }
            }
            NodeKind::Table(table)
        }
        Some(b'[') => {
            let raw: Vec<&RawValue> = serde_json::from_str(part).map_err(|e| faulty(&e))?;
            let all = raw.into_iter().map(|it| of_json(it.get(), whole, lines, depth + 1));
            NodeKind::List(all.collect::<Result<_, _>>()?)
        }
        _ => NodeKind::Plain(serde_json::from_str(part).map_err(|e| faulty(&e))?),
    };
    Ok(Node { line, kind })
}

/// The keys and values of an object, as they stand in the text: a map would keep the last of two equal keys.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
        struct Seen;
        impl<'de> Visitor<'de> for Seen {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    all.push(pair);
                }
                Ok(Pairs(all))
            }
        }
        deserializer.deserialize_map(Seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(text: &str, keys: &[&str]) -> usize {
        let mut node = &parse(text).expect("it is read");
        for key in keys {
            node = match &node.kind {
                NodeKind::Table(table) => &table[*key],
                NodeKind::List(list) => &list[key.parse::<usize>().expect("an index")],
                NodeKind::Plain(_) => panic!("{key} of a plain value"),
            };
        }
        node.line
    }

    #[test]
    fn toml_and_json_have_the_same_values_and_their_own_lines() {
        let toml = "version = 1\n[[steps]]\nid = \"a\"\n[[steps]]\nid = \"b\"\nneeds = [\n  \"a\",\n]\n";
        let json =
            "{\n \"version\": 1,\n \"steps\": [\n  {\"id\": \"a\"},\n  {\"id\": \"b\",\n   \"needs\": [\"a\"]}]}";
        assert_eq!(parse(toml).expect("toml").value(), parse(json).expect("json").value());
        assert_eq!(line_of(toml, &["steps", "1", "id"]), 5);
        assert_eq!(line_of(toml, &["steps", "1", "needs", "0"]), 7);
        assert_eq!(line_of(json, &["steps", "1", "needs"]), 6);
    }

    #[test]
    fn broken_text_is_a_fault_with_its_line() {
        let lines_of = |text: &str| parse(text).expect_err("no value").iter().map(|it| it.line).collect::<Vec<_>>();
        assert_eq!(lines_of("version = 1\nname = \n"), [2]);
        assert_eq!(
            lines_of("version = 1\nname = \n[[steps]]\nid = a\nargv = [\"true\"]\n[[steps]\nid = \"b\"\n"),
            [2, 4, 6]
        );
        assert_eq!(lines_of("{\n\"a\": 1,\n\"b\": }\n"), [3]);
        let twice = parse("{\n\"a\": 1,\n\"a\": 2}").expect_err("a key twice").remove(0);
        assert_eq!((twice.line, twice.message.as_str()), (3, "`a` is there twice"));
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        assert!(parse(&deep).expect_err("too deep")[0].message.contains("deeper"));
        let deep = format!("a = {}{}", "[".repeat(50_000), "]".repeat(50_000));
        assert!(parse(&deep).is_err());
    }
}
