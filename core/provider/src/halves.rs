//! Characters that a server cut in two: JSON may escape the halves of a surrogate pair in different chunks.
//!
//! A half cannot stand in a Rust string, so a private character stands for it until the answer is complete.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Answer, AnswerPart, Chunk};

/// The private characters that stand for the 2,048 halves, first halves first.
const FIRST: u32 = 0x10_f000;
const SECOND: u32 = FIRST + 0x400;
const END: u32 = FIRST + 0x800;

/// Replaces each half without its other half by its private character. Returns `None` if there is none.
pub(super) fn mark(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut marked = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(next) = memchr::memchr(b'\\', &bytes[at..]) {
        at += next;
        let Some(half) = escaped(bytes, at).filter(|unit| (0xd800..0xe000).contains(unit)) else {
            // The character after a backslash never begins an escape of its own.
            at = (at + 2).min(bytes.len());
            continue;
        };
        let pair = half < 0xdc00 && escaped(bytes, at + 6).is_some_and(|unit| (0xdc00..0xe000).contains(&unit));
        if pair {
            at += 12;
            continue;
        }
        marked.push_str(&json[copied..at]);
        marked.extend(char::from_u32(FIRST + half - 0xd800));
        at += 6;
        copied = at;
    }
    (copied > 0).then(|| marked + &json[copied..])
}

/// Returns the UTF-16 code unit of a JSON escape (`\u` and four hexadecimal digits) at this place.
fn escaped(bytes: &[u8], at: usize) -> Option<u32> {
    let escape = bytes.get(at..at + 6).filter(|it| it.starts_with(b"\\u"))?;
    u32::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

/// Joins marked halves that meet. A half that stays alone becomes U+FFFD.
fn joined(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_half) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut first: Option<u32> = None;
    for c in text.chars() {
        let before = first.take();
        match (before, u32::from(c)) {
            (Some(high), low @ SECOND..END) => out.extend(char::from_u32(0x10000 + (high << 10) + (low - SECOND))),
            (before, code) => {
                out.extend(before.map(|_| char::REPLACEMENT_CHARACTER));
                match code {
                    FIRST..SECOND => first = Some(code - FIRST),
                    SECOND..END => out.push(char::REPLACEMENT_CHARACTER),
                    _ => out.push(c),
                }
            }
        }
    }
    out.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
    Cow::Owned(out)
}

fn is_half(c: char) -> bool {
    (FIRST..END).contains(&u32::from(c))
}

/// Joins the halves of an answer, chunk by chunk and as a whole.
#[derive(Default)]
pub(super) struct Joiner {
    /// An event of the answer had a half. Without one, the private characters are the server's own.
    is_needed: bool,
    /// First halves that wait for the next chunk of the same stream.
    waiting: BTreeMap<Strand, String>,
}

/// The texts of an answer that grow side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strand {
    Text,
    Reasoning,
    Args(usize),
}

impl Joiner {
    /// An event had a half.
    pub(super) fn expect_halves(&mut self) {
        self.is_needed = true;
    }

    /// Joins the halves of a chunk with the chunk before it.
    pub(super) fn chunk(&mut self, chunk: Chunk) -> Chunk {
        if !self.is_needed {
            return chunk;
        }
        match chunk {
            Chunk::Text(text) => Chunk::Text(self.next(Strand::Text, text)),
            Chunk::Reasoning(text) => Chunk::Reasoning(self.next(Strand::Reasoning, text)),
            Chunk::Call { index, name, args } => {
                Chunk::Call { index, name: joined(&name).into_owned(), args: self.next(Strand::Args(index), args) }
            }
        }
    }

    fn next(&mut self, strand: Strand, text: String) -> String {
        let mut text = self.waiting.remove(&strand).unwrap_or_default() + &text;
        if let Some(last) = text.pop() {
            if (FIRST..SECOND).contains(&u32::from(last)) {
                self.waiting.insert(strand, last.to_string());
            } else {
                text.push(last);
            }
        }
        joined(&text).into_owned()
    }

    /// Joins the halves of the whole answer.
    pub(super) fn answer(&self, mut answer: Answer) -> Answer {
        if !self.is_needed {
            return answer;
        }
        for part in &mut answer.parts {
            match part {
                AnswerPart::Reasoning { text, item } => {
                    join(text);
                    item.iter_mut().for_each(join_all);
                }
                AnswerPart::Text { text, phase } => {
                    join(text);
                    phase.iter_mut().for_each(join);
                }
                AnswerPart::Call(call) => {
                    join(&mut call.id);
                    join(&mut call.name);
                    join_all(&mut call.args);
                }
            }
        }
        answer
    }
}

fn join(text: &mut String) {
    if let Cow::Owned(whole) = joined(text) {
        *text = whole;
    }
}

fn join_all(value: &mut Value) {
    match value {
        Value::String(text) => join(text),
        Value::Array(values) => values.iter_mut().for_each(join_all),
        Value::Object(members) => members.values_mut().for_each(join_all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Parses JSON in which halves may stand alone; they become U+FFFD.
pub(super) fn parse(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(json).or_else(|e| {
        let mut value = serde_json::from_str(&mark(json).ok_or(e)?)?;
        join_all(&mut value);
        Ok(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_without_their_other_half_are_marked() {
        assert_eq!(mark(r#""plain \ud83c\udf89 \\ud83c \n \u00e9""#), None);
        assert_eq!(parse(r#""a\ud83cb""#).expect("parsed"), "a\u{fffd}b");
        assert_eq!(parse(r#""\udf89\ud83c""#).expect("parsed"), "\u{fffd}\u{fffd}");
        assert_eq!(parse(r#"{"a":["\\\ud83c"]}"#).expect("parsed")["a"][0], "\\\u{fffd}");
        assert!(parse(r#""\ud8"#).is_err());
    }

    #[test]
    fn halves_meet_over_chunks_of_one_strand_only() {
        let mut joiner = Joiner::default();
        joiner.expect_halves();
        let half = |json: &str| serde_json::from_str::<String>(&mark(json).expect("a half")).expect("JSON");
        let (first, second) = (half(r#""a\ud83c""#), half(r#""\udf89b""#));
        assert_eq!(joiner.chunk(Chunk::Text(first.clone())), Chunk::Text("a".into()));
        assert_eq!(joiner.chunk(Chunk::Reasoning(second.clone())), Chunk::Reasoning("\u{fffd}b".into()));
        assert_eq!(joiner.chunk(Chunk::Text(second.clone())), Chunk::Text("🎉b".into()));
        let whole = Answer { parts: vec![AnswerPart::text(first + &second)], ..Answer::default() };
        assert_eq!(joiner.answer(whole).text(), "a🎉b");
    }
}
