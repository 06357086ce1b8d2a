//! Search in the text of stored Sessions, and the last words and calls of one, without opening it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};

use serde_json::Value;

use storage::regular;
use storage::store::Place;

/// A line of a Log that is longer is not searched, bytes.
const LONGEST: usize = 4 << 20;
/// Characters of an excerpt before the words that were found, and after.
const BEFORE: usize = 30;
const AFTER: usize = 120;
/// The most bytes that are read for the last words of a Session.
const END: u64 = 256 << 10;

/// Where the words are in a Session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The Turn.
    pub turn: Option<u32>,
    /// The text around the first of the words, as one line.
    pub excerpt: String,
}

/// A message of a Session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The user said it, and not the model.
    pub by_user: bool,
    /// The text.
    pub text: String,
}

/// Finds the last Entry that has all these words, in lower case, in its texts: messages, calls and results.
/// `goes_on` is asked before each line. A Log that cannot be read has none.
pub fn find(place: &Place, words: &[String], goes_on: &dyn Fn() -> bool) -> Option<Found> {
    let file = regular::open_to_read(&place.log()).ok()?;
    let mut lines = BufReader::with_capacity(256 << 10, file);
    let mut line = Vec::new();
    let mut found = None;
    loop {
        line.clear();
        if !goes_on() || lines.read_until(b'\n', &mut line).ok()? == 0 {
            return found;
        }
        if line.len() <= LONGEST
            && let Some(it) = in_line(&line, words)
        {
            found = Some(it);
        }
    }
}

fn in_line(line: &[u8], words: &[String]) -> Option<Found> {
    // Most lines have none of the words, so the cheap test comes before the JSON. Words that JSON escapes are only in the
    // parsed text.
    let raw = String::from_utf8_lossy(line).to_lowercase();
    let is_plain = |word: &String| word.chars().all(|c| !c.is_control() && c != '"' && c != '\\');
    if words.iter().any(|word| is_plain(word) && !raw.contains(word.as_str())) {
        return None;
    }
    let entry: Value = serde_json::from_slice(line).ok()?;
    let mut texts = Vec::new();
    collect(&entry["data"], &mut texts);
    let text = texts.join(" ");
    let lower = text.to_lowercase();
    if !words.iter().all(|word| lower.contains(word.as_str())) {
        return None;
    }
    let first = words.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
    let turn = entry["turn"].as_u64().and_then(|turn| u32::try_from(turn).ok());
    Some(Found { turn, excerpt: excerpt(&text, &lower, first) })
}

/// The texts of a value, without the names of its fields.
fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(all) => all.iter().for_each(|it| collect(it, texts)),
        Value::Object(fields) => fields.values().for_each(|it| collect(it, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text around this byte of its lower case, as one line.
fn excerpt(text: &str, lower: &str, at: usize) -> String {
    // Lower case has the same number of characters in nearly all texts.
    let character = lower[..at].chars().count();
    let from = character.saturating_sub(BEFORE);
    let part: String = text.chars().skip(from).take(BEFORE + AFTER).collect();
    let one_line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    if from > 0 { format!("…{one_line}") } else { one_line }
}

/// The last messages of a Session, oldest first. Only the end of its Log is read.
pub fn last_words(place: &Place, most: usize) -> Vec<Said> {
    let text = end_of_log(place);
    let said = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        let by_user = match entry["type"].as_str()? {
            "user_message" => true,
            "assistant_message" => false,
            _ => return None,
        };
        let text = entry["data"]["text"].as_str().filter(|it| !it.trim().is_empty())?;
        Some(Said { by_user, text: text.to_owned() })
    };
    let mut all: Vec<Said> = text.lines().rev().filter_map(said).take(most).collect();
    all.reverse();
    all
}

/// A message or a call of a Session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// What the Session was asked.
    Prompt(String),
    /// What the model answered.
    Answer(String),
    /// A call of a tool.
    Call {
        /// What the call is about, on one line.
        title: String,
        /// Whether it succeeded; `None` while it has no result.
        ok: Option<bool>,
    },
}

/// The last messages and calls of a Session, oldest first. Only the end of its Log is read.
pub fn last_steps(place: &Place, most: usize) -> Vec<Step> {
    let text = end_of_log(place);
    let mut results: HashMap<String, bool> = HashMap::new();
    let mut all = Vec::new();
    for line in text.lines().rev() {
        if all.len() == most {
            break;
        }
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let data = &entry["data"];
        let said = || data["text"].as_str().filter(|it| !it.trim().is_empty()).map(str::to_owned);
        match entry["type"].as_str().unwrap_or_default() {
            "user_message" => all.extend(said().map(Step::Prompt)),
            "assistant_message" => all.extend(said().map(Step::Answer)),
            "tool_result" => {
                let call = data["call_id"].as_str().unwrap_or_default().to_owned();
                results.insert(call, data["ok"].as_bool().unwrap_or(false));
            }
            "tool_call" => {
                let title = data["info"]["title"].as_str().or(data["name"].as_str()).unwrap_or_default();
                let ok = data["call_id"].as_str().and_then(|id| results.get(id)).copied();
                all.push(Step::Call { title: title.lines().next().unwrap_or_default().to_owned(), ok });
            }
            _ => {}
        }
    }
    all.reverse();
    all
}

/// The last lines of a Log; empty if it cannot be read.
fn end_of_log(place: &Place) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = regular::open_to_read(&place.log())?;
        let from = file.metadata()?.len().saturating_sub(END);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(END).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(if from == 0 { text } else { text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()) })
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event::SessionId;

    #[test]
    fn words_are_found_in_texts_and_not_in_the_names_of_fields() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = SessionId::now();
        let place = Place::new(folder.path(), id);
        let line = |kind: &str, turn: u32, text: &str| {
            serde_json::json!({"type": kind, "turn": turn, "data": {"text": text}}).to_string() + "\n"
        };
        let log = [
            line("user_message", 1, "Where is the Tokenizer?"),
            line("assistant_message", 1, "The tokenizer is\nin lex.rs"),
            line("user_message", 2, "Thanks"),
        ];
        std::fs::write(place.log(), log.concat()).expect("write");
        let found = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            find(&place, &words, &|| true)
        };
        let expected = Found { turn: Some(1), excerpt: "The tokenizer is in lex.rs".into() };
        assert_eq!(found(&["tokenizer", "lex"]), Some(expected));
        assert_eq!(found(&["user_message"]), None);
        assert_eq!(found(&["text"]), None);
        assert_eq!(find(&place, &["thanks".into()], &|| false), None, "a cancelled search finds nothing");
        let last: Vec<String> = last_words(&place, 2).into_iter().map(|it| it.text).collect();
        assert_eq!(last, ["The tokenizer is\nin lex.rs", "Thanks"]);
    }
}
