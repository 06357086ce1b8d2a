//! Words of a line to the arguments that bash makes of them.

use super::place::{Ground, Piece};
use crate::shell::{Part, PartKind, Word};
use std::path::Path;

/// Variables whose value is harmless to print. The value itself is not known here.
const VARIABLES: [&str; 10] = ["HOME", "PATH", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "TERM", "?", "#"];

/// A word as its program gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: String,
    pub(super) is_quoted: bool,
    /// It holds the value of a variable that only the shell knows; `text` then has its name there.
    pub(super) has_unknown: bool,
}

/// A variable that a loop has set: it holds one plain word.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) name: String,
    pub(super) value: LoopValue,
}

/// What is known of the value of a loop's variable.
#[derive(Debug, Clone)]
pub(super) enum LoopValue {
    /// It is this word.
    Word(String),
    /// It is the name of a file below a folder that is judged in its place, and which this path names.
    Below(String),
}

/// The arguments that a word becomes. There is one, unless it has a glob.
pub(super) fn arguments(
    word: &Word<'_>,
    loops: &[Loop],
    folders: &[&Path],
    ground: &Ground<'_>,
) -> Result<Vec<Argument>, String> {
    let mut argument = Argument { text: String::new(), is_quoted: word.is_quoted(), has_unknown: false };
    let mut pieces = Vec::new();
    // Alone, these are the names and the last argument of commands.
    if ["[", "]", "!", "{}"].contains(&word.span.source) {
        return Ok(vec![Argument { text: word.span.source.to_owned(), ..argument }]);
    }
    for (i, part) in word.parts.iter().enumerate() {
        let source = part.span.source;
        let from = argument.text.len();
        match &part.kind {
            PartKind::Literal => {
                check_literal(source, &argument.text)?;
                argument.text += source;
            }
            PartKind::Single => argument.text += &part.text().ok_or_else(|| holds(source))?,
            PartKind::Escaped => {
                let quoted = &source[1..];
                if !quoted.chars().all(|c| c.is_ascii_punctuation() || c == ' ') {
                    return Err(holds(source));
                }
                argument.text += quoted;
            }
            PartKind::Parameter => parameter(source, &mut argument, loops, Stands::Beside, ground)?,
            PartKind::Substitution if is_arithmetic(source) => {
                argument.text += source;
                argument.has_unknown = true;
            }
            PartKind::Double(inner) => {
                let stands = if word.parts.len() == 1 && inner.len() == 1 { Stands::Alone } else { Stands::Beside };
                double(inner, &mut argument, loops, stands, ground)?;
            }
            PartKind::Glob if ["*", "?"].contains(&source) => {
                pieces.push(if source == "*" { Piece::Any } else { Piece::One });
                argument.text += source;
                continue;
            }
            PartKind::Unclosed { .. } if source != "\\" => return Err("a quote is not closed".into()),
            PartKind::Tilde if i == 0 && word.parts.get(1).is_none_or(|next| next.span.source.starts_with('/')) => {
                argument.text += ground.home.ok_or_else(|| holds(source))?;
            }
            PartKind::Continuation
            | PartKind::DollarQuote
            | PartKind::Glob
            | PartKind::Tilde
            | PartKind::Substitution
            | PartKind::Unclosed { .. } => return Err(holds(source)),
        }
        pieces.extend(argument.text[from..].chars().map(Piece::Char));
    }
    if word.brace.is_some() {
        return Err(holds("{"));
    }
    if argument.text.contains(char::is_control) {
        return Err(super::CONTROL.into());
    }
    if !pieces.iter().any(|piece| matches!(piece, Piece::Any | Piece::One)) {
        return Ok(vec![argument]);
    }
    if argument.has_unknown {
        return Err("names of files are looked for at a place that only the shell knows".into());
    }
    let mut all: Vec<String> = Vec::new();
    for folder in folders {
        all.extend(ground.expand(&pieces, folder)?);
    }
    if all.iter().any(|name| name.contains(char::is_control)) {
        return Err(super::CONTROL.into());
    }
    all.dedup();
    Ok(all.into_iter().map(|text| Argument { text, is_quoted: true, has_unknown: false }).collect())
}

/// Whether a variable is all of a word, and in quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Alone,
    Beside,
}

fn parameter(
    source: &str,
    argument: &mut Argument,
    loops: &[Loop],
    stands: Stands,
    ground: &Ground<'_>,
) -> Result<(), String> {
    let name = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(&source[1..]);
    match loops.iter().rev().find(|set| set.name == name).map(|set| &set.value) {
        Some(LoopValue::Word(value)) => {
            argument.text += value;
            return Ok(());
        }
        Some(LoopValue::Below(folder)) if stands == Stands::Alone => {
            argument.text += folder;
            return Ok(());
        }
        // Another file beside it was not judged.
        Some(LoopValue::Below(_)) => {
            argument.text += source;
            argument.has_unknown = true;
            return Ok(());
        }
        None => {}
    }
    if let Some(home) = ground.home.filter(|_| name == "HOME") {
        argument.text += home;
        return Ok(());
    }
    if !VARIABLES.contains(&name) {
        return Err(format!("it uses the variable `{}`, whose value is not known", source.escape_debug()));
    }
    argument.text += source;
    argument.has_unknown = true;
    Ok(())
}

/// `$((2 * 3))` of numbers alone. A name could stand for text that is evaluated in turn.
fn is_arithmetic(source: &str) -> bool {
    let inner = source.strip_prefix("$((").and_then(|rest| rest.strip_suffix("))"));
    inner.is_some_and(|inner| inner.chars().all(|c| c.is_ascii_digit() || " +-*/%()".contains(c)))
}

/// What is between double quotes.
fn double(
    inner: &[Part<'_>],
    argument: &mut Argument,
    loops: &[Loop],
    stands: Stands,
    ground: &Ground<'_>,
) -> Result<(), String> {
    for part in inner {
        let source = part.span.source;
        match &part.kind {
            PartKind::Literal => argument.text += source,
            PartKind::Escaped => argument.text += &source[1..],
            PartKind::Parameter => parameter(source, argument, loops, stands, ground)?,
            // It is reported behind the quote.
            PartKind::Unclosed { .. } => {}
            PartKind::Substitution if is_arithmetic(source) => {
                argument.text += source;
                argument.has_unknown = true;
            }
            PartKind::Substitution => return Err("it runs another command inside a word".into()),
            PartKind::Continuation
            | PartKind::Single
            | PartKind::Double(_)
            | PartKind::DollarQuote
            | PartKind::Glob
            | PartKind::Tilde => return Err("it holds an expansion".into()),
        }
    }
    Ok(())
}

/// Only characters that no shell has a meaning for where they stand.
fn check_literal(source: &str, before: &str) -> Result<(), String> {
    let mut before = before.chars().next_back();
    // `HEAD@{1}`, `@{upstream}`: without a comma or two dots, braces stand for themselves.
    let mut is_open = false;
    let mut rest = source.chars();
    while let Some(c) = rest.next() {
        let is_plain = match c {
            // `HEAD~1`: only at the start of a word, or after a colon or an equals sign, does the shell expand it.
            '~' | '^' => before.is_some_and(|before| before.is_ascii_alphanumeric() || "~^".contains(before)),
            // Nothing between braces stands for itself too: `xargs -I{}`.
            '{' if (before == Some('@') || rest.as_str().starts_with('}')) && !is_open => {
                is_open = true;
                true
            }
            '}' => std::mem::take(&mut is_open),
            c => c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c),
        };
        if !is_plain {
            return Err(holds(&c.to_string()));
        }
        before = Some(c);
    }
    if is_open { Err(holds("{")) } else { Ok(()) }
}

/// Why a line that holds this is not proven.
pub(super) fn holds(source: &str) -> String {
    match source.chars().next().unwrap_or_default() {
        '$' if source.starts_with("$(") => "it runs another command inside a word".into(),
        '`' => "it runs another command inside a word".into(),
        '<' | '>' if source.starts_with("<(") || source.starts_with(">(") => {
            "it runs another command inside a word".into()
        }
        first => format!("it holds `{}`, which the shell may expand", first.escape_debug()),
    }
}
