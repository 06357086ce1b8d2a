//! The YAML of a front matter, read into JSON values. YAML's events come from a parser; what is bounded here is the tree that
//! is built of them.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};

/// The most values. An alias counts as all that it stands for: a few of them could otherwise stand for millions.
const MAX_VALUES: usize = 5_000;
/// The deepest list in a list.
const MAX_DEPTH: usize = 32;

/// Why a text cannot be read.
#[derive(Debug, PartialEq)]
pub(super) struct Fault {
    /// From 1.
    pub(super) line: usize,
    pub(super) message: String,
}

/// Reads one document. An empty one is null.
///
/// # Errors
/// Where it is not YAML, has more than one document, or is beyond the bounds.
pub(super) fn read(yaml: &str) -> Result<Value, Fault> {
    let mut reader = Reader { events: Parser::new_from_str(yaml), anchors: HashMap::new(), values: 0, line: 1 };
    let mut whole = None;
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if whole.is_some() => return Err(reader.fault("there is more than one document")),
            Event::DocumentStart(..) => {
                let first = reader.next()?;
                whole = Some(reader.value(first, 0)?);
            }
            Event::StreamEnd => return Ok(whole.unwrap_or_default()),
            _ => return Err(reader.fault("a value stands outside of the document")),
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// The values with an anchor, and how many values each is made of.
    anchors: HashMap<usize, (Value, usize)>,
    values: usize,
    /// The line of the last event.
    line: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, message: &str) -> Fault {
        Fault { line: self.line, message: message.to_owned() }
    }

    fn next(&mut self) -> Result<Event<'a>, Fault> {
        match self.events.next() {
            Some(Ok((event, Span { start, .. }))) => {
                self.line = start.line().max(1);
                Ok(event)
            }
            Some(Err(e)) => Err(not_yaml(&e)),
            None => Ok(Event::StreamEnd),
        }
    }

    fn count(&mut self, more: usize) -> Result<(), Fault> {
        self.values += more;
        if self.values > MAX_VALUES { Err(self.fault("it has too many values")) } else { Ok(()) }
    }

    /// The value that begins with this event.
    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, Fault> {
        if depth > MAX_DEPTH {
            return Err(self.fault("its lists lie too deep in each other"));
        }
        let before = self.values;
        self.count(1)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => (scalar(text, style, tag.as_deref()), anchor),
            Event::SequenceStart(_, anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(self.fault("an alias stands in what it names"));
                };
                self.count(size)?;
                (value, 0)
            }
            _ => return Err(self.fault("a value is missing")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (value.clone(), self.values - before));
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Fault> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Value::Array(items)),
                item => items.push(self.value(item, depth + 1)?),
            }
        }
    }

    /// A mapping. The last of several equal keys counts; what `<<` merges counts least.
    fn map(&mut self, depth: usize) -> Result<Value, Fault> {
        let (mut fields, mut merged) = (Map::new(), Vec::new());
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                Event::Scalar(text, style, anchor, tag) => {
                    self.count(1)?;
                    let value = scalar(text.clone(), style, tag.as_deref());
                    if value.is_null() {
                        return Err(self.fault("a key is missing"));
                    }
                    if anchor > 0 {
                        self.anchors.insert(anchor, (value, 1));
                    }
                    (text, style)
                }
                _ => return Err(self.fault("a key is not a text")),
            };
            let first = self.next()?;
            let value = self.value(first, depth + 1)?;
            match (key, value) {
                ((key, ScalarStyle::Plain), Value::Object(more)) if key == "<<" => merged.push(more),
                ((key, ScalarStyle::Plain), Value::Array(more)) if key == "<<" => {
                    merged.extend(more.into_iter().filter_map(|it| match it {
                        Value::Object(more) => Some(more),
                        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
                    }));
                }
                ((key, _), value) => {
                    fields.insert(key.into_owned(), value);
                }
            }
        }
        for (key, value) in merged.into_iter().flatten() {
            fields.entry(key).or_insert(value);
        }
        Ok(Value::Object(fields))
    }
}

fn not_yaml(e: &ScanError) -> Fault {
    Fault { line: e.marker().line().max(1), message: e.info() }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is = |suffix: &str| tag.is_some_and(|it| it.is_yaml_core_schema_tag(suffix));
    let is_plain = match style {
        ScalarStyle::Plain => !is("str"),
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted | ScalarStyle::Literal | ScalarStyle::Folded => {
            is("int") || is("float") || is("bool") || is("null")
        }
    };
    match is_plain.then(|| plain(&text)).flatten() {
        Some(value) => value,
        None => Value::String(text.into_owned()),
    }
}

/// What a plain word stands for, unless it is a text. `no` is a word, as in YAML 1.2.
fn plain(word: &str) -> Option<Value> {
    match word {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(true.into()),
        "false" | "False" | "FALSE" => return Some(false.into()),
        _ => {}
    }
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, digits),
    };
    let separated = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    let is_number = !separated && digits.starts_with(|c: char| c.is_digit(radix));
    if is_number && (radix != 10 || digits == "0" || !digits.starts_with('0')) {
        let whole = format!("{sign}{}", digits.replace('_', ""));
        let positive = u64::from_str_radix(&whole, radix).map(Value::from);
        if let Ok(number) = positive.or_else(|_| i64::from_str_radix(&whole, radix).map(Value::from)) {
            return Some(number);
        }
    }
    // Rust reads `inf` and `nan` as numbers too.
    let is_float = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
    let float: f64 = word.parse().ok().filter(|it: &f64| is_float && it.is_finite())?;
    Some(float.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_value_is_read() {
        let yaml = "plain: a b # note\nquoted: 'it''s'\ndouble: \"a\\tb\\u00e9\"\nliteral: |\n  one\n   two\n\n  three\nfolded: >-\n  one\n  two\n\n  three\nkept: |+\n  one\n\nlist:\n  - a\n  - [b, 'c', {d: 1}]\n  -\n    e: {f: g}\nnothing:\nover\n";
        assert_eq!(read(yaml).expect_err("no colon").line, 23);
        let read = read(yaml.trim_end_matches("over\n")).expect("YAML");
        assert_eq!(
            read,
            json!({
                "plain": "a b", "quoted": "it's", "double": "a\tbé", "literal": "one\n two\n\nthree\n",
                "folded": "one two\nthree", "kept": "one\n\n", "list": ["a", ["b", "c", { "d": 1 }], { "e": { "f": "g" } }],
                "nothing": null,
            })
        );
    }

    #[test]
    fn a_plain_word_is_a_number_a_truth_nothing_or_itself() {
        for (word, value) in [
            ("no", json!("no")),
            ("on", json!("on")),
            ("True", json!(true)),
            ("~", json!(null)),
            ("8004", json!(8004)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1_000", json!(1000)),
            ("1__0", json!("1__0")),
            ("0x1F", json!(31)),
            ("0b102", json!("0b102")),
            ("007", json!(7.0)),
            ("1.0", json!(1.0)),
            ("1.0.2", json!("1.0.2")),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("inf", json!("inf")),
            ("1e999", json!("1e999")),
            ("18446744073709551615", json!(u64::MAX)),
            ("2026-01-02", json!("2026-01-02")),
            ("!!str 5", json!("5")),
            ("!!int '5'", json!(5)),
            ("!own 5", json!(5)),
            ("\"5\"", json!("5")),
        ] {
            assert_eq!(read(word), Ok(value), "{word}");
        }
        assert_eq!(read(""), Ok(Value::Null));
    }

    #[test]
    fn the_last_of_two_equal_keys_counts_and_a_merged_one_least() {
        let yaml =
            "base: &base {a: 1, b: 1}\nown:\n  b: 2\n  <<: *base\n  c: 3\n  c: 4\nboth:\n  <<: [{d: 5}, *base]\n";
        let read = read(yaml).expect("YAML");
        assert_eq!(read["own"], json!({ "a": 1, "b": 2, "c": 4 }));
        assert_eq!(read["both"], json!({ "a": 1, "b": 1, "d": 5 }));
    }

    #[test]
    fn a_tree_that_is_too_large_too_deep_or_turns_in_itself_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for at in 1..9 {
            let inner = vec![format!("*a{}", at - 1); 9].join(", ");
            bomb.push_str(&format!("a{at}: &a{at} [{inner}]\n"));
        }
        let long = format!("[{}]", "x, ".repeat(6_000));
        let deep = format!("{}x{}", "[".repeat(40), "]".repeat(40));
        for (yaml, message) in [
            (bomb.as_str(), "it has too many values"),
            (&long, "it has too many values"),
            (&deep, "its lists lie too deep in each other"),
            ("a: &a [1, *a]", "an alias stands in what it names"),
            ("? [a]\n: b", "a key is not a text"),
            (": b", "a key is missing"),
            ("a\n--- \nb", "there is more than one document"),
        ] {
            assert_eq!(read(yaml).map_err(|it| it.message), Err(message.to_owned()), "{}", &yaml[..yaml.len().min(40)]);
        }
    }
}
