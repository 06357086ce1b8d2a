//! The place of each hunk in a file, and the text that results.
//!
//! Bytes outside the lines that a hunk removes and adds never change. A line that a hunk removes is compared byte for byte,
//! apart from its end; of a line that stays, blanks at its end do not count. The old lines must stand in one place, or what
//! the patch says besides (a heading, a true line number, the end of the file) must leave one.

use std::collections::BTreeMap;

use super::{Hunk, Line, Side};
use crate::near_miss::no_match;
use protocol::error::{Code, Error};

const BOM: &str = "\u{feff}";

/// A hunk that has no place in the file.
#[derive(Debug)]
pub struct Misfit {
    /// Its number among the hunks of the file, from 1.
    pub hunk: usize,
    /// Its first line in the patch.
    pub line: usize,
    pub error: Error,
}

/// The text after all hunks.
///
/// # Errors
/// Each hunk that does not fit: `NO_MATCH`, `NOT_UNIQUE`.
pub fn fit(text: &str, hunks: &[Hunk]) -> Result<String, Vec<Misfit>> {
    // A diff of the file's bytes holds the BOM as a part of the first line, and may remove it.
    let mut old_lines = hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.side != Side::New);
    let names_bom = old_lines.any(|line| line.text.starts_with(BOM));
    let (bom, body) = match text.strip_prefix(BOM) {
        Some(body) if !names_bom => (BOM, body),
        Some(_) | None => ("", text),
    };
    let mut file = File::of(body);
    file.has_true_numbers = hunks.iter().all(|hunk| file.agrees_with_number(hunk));
    let mut misfits = Vec::new();
    for (i, hunk) in hunks.iter().enumerate() {
        if let Err(error) = file.place(hunk) {
            misfits.push(Misfit { hunk: i + 1, line: hunk.line, error });
        }
    }
    if !misfits.is_empty() {
        return Err(misfits);
    }
    let keeps_end = !hunks.iter().flat_map(|hunk| &hunk.lines).any(|line| line.open);
    let changed = file.finished(keeps_end);
    let is_double = !bom.is_empty() && changed.starts_with(BOM);
    Ok(if is_double { changed } else { format!("{bom}{changed}") })
}

/// How strictly lines are compared.
#[derive(Debug, Clone, Copy)]
enum Strictness {
    /// All but their ends: a patch leaves out the returns of a file.
    Exact,
    /// Besides, blanks at the end of a line that stays do not count.
    TrailingBlanks,
}

struct File<'a> {
    body: &'a str,
    /// The lines with their ends.
    lines: Vec<&'a str>,
    removed: Vec<bool>,
    /// Lines that are added before the line with this index.
    added: BTreeMap<usize, Vec<(String, &'static str)>>,
    /// No line number of the patch is known to be wrong, so each may decide between several places.
    has_true_numbers: bool,
}

impl<'a> File<'a> {
    fn of(body: &'a str) -> File<'a> {
        let lines: Vec<&str> = body.split_inclusive('\n').collect();
        File { body, removed: vec![false; lines.len()], lines, added: BTreeMap::new(), has_true_numbers: true }
    }

    fn text(&self, i: usize) -> &'a str {
        self.lines[i].strip_suffix('\n').unwrap_or(self.lines[i])
    }

    fn is_same(&self, i: usize, line: &Line, strictness: Strictness) -> bool {
        let text = self.text(i);
        let wanted = line.text.as_str();
        let without_return = if wanted.ends_with('\r') { text } else { text.strip_suffix('\r').unwrap_or(text) };
        if without_return == wanted {
            return true;
        }
        match (strictness, line.side) {
            (Strictness::TrailingBlanks, Side::Both) => text.trim_end() == wanted.trim_end(),
            (Strictness::TrailingBlanks, Side::Old | Side::New) | (Strictness::Exact, _) => false,
        }
    }

    /// Whether the old lines of a hunk, if they stand in one place, stand where its number says.
    fn agrees_with_number(&self, hunk: &Hunk) -> bool {
        let Some(said) = hunk.at else { return true };
        match self.places_of(&hunk.lines).as_slice() {
            [at] => at + 1 == said,
            _ => true,
        }
    }

    /// Finds the place of a hunk and notes its changes.
    fn place(&mut self, hunk: &Hunk) -> Result<(), Error> {
        let headings = self.headings(hunk)?;
        let mut lines = hunk.lines.as_slice();
        let mut found = self.find(hunk, lines, &headings);
        // Empty lines at the end may be lines of the file, or only separate the hunk from the next one.
        while matches!(&found, Err(error) if error.code == Code::NoMatch)
            && let Some((last, rest)) = lines.split_last()
            && last.is_empty
            && !rest.is_empty()
        {
            lines = rest;
            found = self.find(hunk, lines, &headings).or(found);
        }
        // So they do not decide between several places.
        let certain = &lines[..lines.iter().rposition(|line| !line.is_empty).map_or(0, |last| last + 1)];
        if let Ok(at) = found
            && certain.len() < lines.len()
            && certain.iter().any(|line| line.side != Side::New)
        {
            found = match self.find(hunk, certain, &headings) {
                Ok(other) if other != at => Err(not_unique("its old lines occur", &[at.min(other), at.max(other)])),
                found => found,
            };
        }
        let at = found?;
        self.change(lines, at);
        Ok(())
    }

    /// The lines that the headings of a hunk name: each line that reads as the innermost one does, below the others.
    fn headings(&self, hunk: &Hunk) -> Result<Vec<usize>, Error> {
        let mut above: Option<Vec<usize>> = None;
        for heading in &hunk.headings {
            let named: Vec<usize> =
                (0..self.lines.len()).filter(|at| self.text(*at).trim() == heading.trim()).collect();
            if named.is_empty() {
                return Err(no_match(self.body, heading, &format!("the line `@@ {heading}` names does")));
            }
            above = Some(match above {
                None => named,
                Some(above) => self.below(&above, &named),
            });
        }
        Ok(above.unwrap_or_default())
    }

    /// Those of these lines that belong to one of the headings, or else those that stand below one.
    fn below(&self, headings: &[usize], lines: &[usize]) -> Vec<usize> {
        let kept = |is_kept: &dyn Fn(usize, usize) -> bool| -> Vec<usize> {
            lines.iter().copied().filter(|line| headings.iter().any(|heading| is_kept(*heading, *line))).collect()
        };
        let own = kept(&|heading, line| self.belongs(heading, line));
        if own.is_empty() { kept(&|heading, line| line > heading) } else { own }
    }

    /// Whether a line is the heading, stands right below it, or is indented deeper up to there.
    fn belongs(&self, heading: usize, line: usize) -> bool {
        let indent = |at: usize| self.text(at).len() - self.text(at).trim_start().len();
        // The rest of a signature, and the brace below it, are not indented deeper.
        let goes_on = |at: usize| {
            let text = self.text(at).trim_start();
            text.is_empty() || text.starts_with([')', ']', '{']) || indent(at) > indent(heading)
        };
        line == heading || line == heading + 1 || (line > heading && (heading + 1..=line).all(goes_on))
    }

    fn find(&self, hunk: &Hunk, lines: &[Line], headings: &[usize]) -> Result<usize, Error> {
        let said = hunk.at.filter(|_| self.has_true_numbers);
        let wanted: Vec<&str> = lines.iter().filter(|it| it.side != Side::New).map(|it| it.text.as_str()).collect();
        if wanted.is_empty() {
            return match (said, headings) {
                // A hunk that only adds has the number of the line before it.
                (Some(at), _) if at <= self.lines.len() => Ok(at),
                (_, [heading]) => Ok(heading + 1),
                (_, [_, _, ..]) => Err(not_unique("the line that `@@` names occurs", headings)),
                (_, []) if hunk.ends_file || self.lines.is_empty() => Ok(self.lines.len()),
                (_, []) => Err(Error::new(Code::NoMatch, "it does not say where its lines belong", SAY_WHERE)),
            };
        }
        let mut places = self.places_of(lines);
        if places.is_empty() {
            return Err(no_match(self.body, &wanted.join("\n"), "its old lines do"));
        }
        if hunk.ends_file {
            let is_end = |at: &usize| (at + wanted.len()..self.lines.len()).all(|i| self.text(i).trim().is_empty());
            let ending: Vec<usize> = places.iter().copied().filter(is_end).collect();
            if ending.is_empty() {
                let message =
                    format!("its old lines are not the end of the file; they stand at lines {}", listed(&places));
                let fix = "leave out *** End of File, or include the last lines of the file";
                return Err(Error::new(Code::NoMatch, message, fix).with("closest_line", places[0] + 1));
            }
            places = ending;
        }
        if places.len() > 1 && !headings.is_empty() {
            let below = self.below(headings, &places);
            places = if below.is_empty() { places } else { below };
        }
        match places.as_slice() {
            [at] => Ok(*at),
            several => said
                .and_then(|said| said.checked_sub(1))
                .filter(|said| several.contains(said))
                .ok_or_else(|| not_unique("its old lines occur", several)),
        }
    }

    /// Where the old ones of these lines stand, apart from lines that another hunk removes.
    fn places_of(&self, lines: &[Line]) -> Vec<usize> {
        let wanted: Vec<&Line> = lines.iter().filter(|it| it.side != Side::New).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let last = (self.lines.len() + 1).saturating_sub(wanted.len());
        let places = |strictness: Strictness| -> Vec<usize> {
            let fits = |at: &usize| {
                let is_there = |(i, line): (usize, &&Line)| !self.removed[i] && self.is_same(i, line, strictness);
                (*at..).zip(&wanted).all(is_there)
            };
            (0..last).filter(fits).collect()
        };
        let exact = places(Strictness::Exact);
        if exact.is_empty() { places(Strictness::TrailingBlanks) } else { exact }
    }

    fn change(&mut self, lines: &[Line], at: usize) {
        let folds = self.folds_returns(lines, at);
        let mut here = at;
        for line in lines {
            match line.side {
                Side::Both => here += 1,
                Side::Old => {
                    self.removed[here] = true;
                    here += 1;
                }
                Side::New => {
                    let end = match (line.open, folds && self.has_return_near(here)) {
                        (true, _) => "",
                        (false, true) => "\r\n",
                        (false, false) => "\n",
                    };
                    self.added.entry(here).or_default().push((line.text.clone(), end));
                }
            }
        }
    }

    /// Whether the file has returns that the patch leaves out.
    fn folds_returns(&self, lines: &[Line], at: usize) -> bool {
        let old: Vec<&Line> = lines.iter().filter(|line| line.side != Side::New).collect();
        let lacks = |(here, line): (usize, &&Line)| self.text(here).ends_with('\r') && !line.text.ends_with('\r');
        if (at..).zip(&old).any(lacks) {
            return true;
        }
        old.is_empty() && !lines.iter().any(|line| line.text.ends_with('\r'))
    }

    /// Whether a line that is added here ends in `\r\n`, like the line before it or else the one after it.
    fn has_return_near(&self, here: usize) -> bool {
        let near = [here.checked_sub(1), Some(here), here.checked_sub(2)];
        let ended = near.into_iter().flatten().filter_map(|i| self.lines.get(i)).find(|line| line.ends_with('\n'));
        ended.is_some_and(|line| line.ends_with("\r\n"))
    }

    /// The text after all changes. If `keeps_end`, the patch does not say whether the last line ends with a newline.
    fn finished(&self, keeps_end: bool) -> String {
        let mut text = String::with_capacity(self.body.len());
        let newline = if self.lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        let mut last_is_added = false;
        let mut push = |line: &str, end: &str, is_added: bool| {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push_str(newline);
            }
            text.push_str(line);
            text.push_str(end);
            last_is_added = is_added;
        };
        for i in 0..=self.lines.len() {
            for (line, end) in self.added.get(&i).into_iter().flatten() {
                push(line, end, true);
            }
            if let Some(line) = self.lines.get(i).filter(|_| !self.removed[i]) {
                push(line, "", false);
            }
        }
        let was_open = !self.body.is_empty() && !self.body.ends_with('\n');
        if keeps_end && last_is_added && was_open {
            let len = text.strip_suffix('\n').map_or(text.len(), |rest| rest.strip_suffix('\r').unwrap_or(rest).len());
            text.truncate(len);
        }
        text
    }
}

/// How a hunk can say where it belongs.
const SAY_WHERE: &str = "the line above them, marked by a blank or named by @@; or *** End of File below them";

fn not_unique(what: &str, places: &[usize]) -> Error {
    let lines: Vec<usize> = places.iter().map(|at| at + 1).collect();
    let message = format!("{what} {} times, at lines {}", lines.len(), listed(places));
    let fix = "include more lines around them, or name the line above them with @@";
    Error::new(Code::NotUnique, message, fix).with("lines", lines)
}

fn listed(places: &[usize]) -> String {
    let listed = places.iter().take(20).map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(", ");
    if places.len() > 20 { listed + ", …" } else { listed }
}
