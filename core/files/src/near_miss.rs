//! The place in a file that a text nearly matches, for the error of a change that does not fit.

use protocol::error::{Code, Error};

/// How much of a line is compared in the search for the closest line, characters.
const MAX_COMPARED: usize = 200;
/// How many lines are compared in the search for the closest line.
const MAX_LINES: usize = 2_000;
/// The most line comparisons in the search for the closest place of several lines.
const MAX_STEPS: usize = 2_000_000;
/// The most lines of the file that the error shows.
const MAX_SHOWN: usize = 40;

/// The error for a text that does not occur in a file. It shows the lines of the file that are nearest to it, so that the
/// model does not have to read them. `what` is the subject with its verb: `old_text does`.
pub fn no_match(text: &str, wanted: &str, what: &str) -> Error {
    let missing =
        |what: String, fix: String, line: usize| Error::new(Code::NoMatch, what, fix).with("closest_line", line);
    if let Some(at) = same_but_for_blanks(text, wanted) {
        let end = at + wanted.trim_matches('\n').lines().count().saturating_sub(1);
        let what = format!(
            "{what} not occur in the file; lines {at} to {end} differ from it only in whitespace. They are:\n{}",
            lines_as_they_are(text, at, end)
        );
        return missing(what, "copy the whitespace exactly".into(), at);
    }
    if let Some((from, to)) = closest_place(text, wanted) {
        let what = format!(
            "{what} not occur in the file; the closest lines are {from} to {to}. They are:\n{}",
            lines_as_they_are(text, from, to)
        );
        return missing(what, "copy the lines exactly".into(), from);
    }
    let line: String = wanted
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or(wanted)
        .trim()
        .chars()
        .take(MAX_COMPARED)
        .collect();
    // Comparing costs the product of both lengths, so only a bounded number of lines of similar length is compared.
    let alike = |other: &str| (line.len() / 2..=line.len() * 2 + 2).contains(&other.trim().len());
    let closest = text
        .lines()
        .enumerate()
        .filter(|(_, other)| alike(other))
        .take(MAX_LINES)
        .map(|(i, other)| (strsim::normalized_damerau_levenshtein(other.trim(), &line), i + 1, other))
        .filter(|(likeness, _, _)| *likeness > 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match closest {
        Some((_, number, other)) => missing(
            format!("{what} not occur in the file"),
            format!("copy the exact text; the closest line is {number}: {}", other.trim_end()),
            number,
        ),
        None => Error::new(
            Code::NoMatch,
            format!("{what} not occur in the file, and no line is similar"),
            "read the file first",
        ),
    }
}

/// These lines of a file, from 1, without numbers, so that they can be copied.
fn lines_as_they_are(text: &str, from: usize, to: usize) -> String {
    let lines: Vec<&str> = text.lines().skip(from - 1).take((to + 1 - from).min(MAX_SHOWN)).collect();
    let more = if to + 1 - from > MAX_SHOWN { "\n…" } else { "" };
    format!("{}{more}", lines.join("\n"))
}

/// The number of the line, from 1, where the text occurs if differences in whitespace are ignored.
fn same_but_for_blanks(text: &str, wanted: &str) -> Option<usize> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = wanted.trim_matches('\n').lines().map(words).collect();
    if wanted.iter().all(String::is_empty) {
        return None;
    }
    let lines: Vec<String> = text.lines().map(words).collect();
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
}

/// The lines, from 1, that share the most with a text of several lines: at least half of those that are not blank.
fn closest_place(text: &str, wanted: &str) -> Option<(usize, usize)> {
    let wanted: Vec<&str> = wanted.trim_matches('\n').lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if wanted.len() < 2 || lines.len() < wanted.len() || lines.len() * wanted.len() > MAX_STEPS {
        return None;
    }
    let shared = |window: &[&str]| window.iter().zip(&wanted).filter(|(a, b)| a == b && !a.is_empty()).count();
    let best =
        lines.windows(wanted.len()).map(shared).enumerate().max_by_key(|(at, shared)| (*shared, usize::MAX - at))?;
    let said = wanted.iter().filter(|line| !line.is_empty()).count();
    (best.1 * 2 >= said && best.1 > 0).then(|| (best.0 + 1, best.0 + wanted.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_shows_the_nearest_lines_of_the_file() {
        let text = "fn a() {\n    one();\n    two();\n}\n";
        let several = no_match(text, "    one();\n    three();\n}", "old_text does");
        assert_eq!(
            several.message,
            "old_text does not occur in the file; the closest lines are 2 to 4. They are:\n    one();\n    two();\n}"
        );
        let one = no_match(text, "    one;", "old_text does");
        assert_eq!(one.details["closest_line"], 2);
        assert!(no_match(text, "nothing of this kind", "old_text does").message.ends_with("no line is similar"));
    }
}
