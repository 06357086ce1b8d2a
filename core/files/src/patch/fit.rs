//! The place of each hunk in a file, and the text that results.
//!
//! Bytes outside the lines that a hunk removes and adds never change. Lines are compared exactly first, and then without
//! trailing blanks; a difference in indentation is a misfit.

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
    let (bom, body) = text.strip_prefix(BOM).map_or(("", text), |body| (BOM, body));
    let mut file = File::of(body);
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
    // A diff of the file's bytes holds the BOM as a part of the first line.
    let changed = changed.strip_prefix(BOM).map(str::to_owned).unwrap_or(changed);
    Ok(format!("{bom}{changed}"))
}

/// How strictly lines are compared.
#[derive(Debug, Clone, Copy)]
enum Strictness {
    Exact,
    /// Blanks at the end of a line do not count, and neither does its return.
    TrailingBlanks,
}

struct File<'a> {
    body: &'a str,
    /// The lines with their ends.
    lines: Vec<&'a str>,
    removed: Vec<bool>,
    /// Lines that are added before the line with this index.
    added: BTreeMap<usize, Vec<(String, &'static str)>>,
    /// Behind the last change so far. The next hunk is expected from here on.
    cursor: usize,
    /// How far the hunks so far lie behind the line numbers of the patch.
    offset: isize,
}

impl<'a> File<'a> {
    fn of(body: &'a str) -> File<'a> {
        let lines: Vec<&str> = body.split_inclusive('\n').collect();
        File { body, removed: vec![false; lines.len()], lines, added: BTreeMap::new(), cursor: 0, offset: 0 }
    }

    fn text(&self, i: usize) -> &'a str {
        self.lines[i].strip_suffix('\n').unwrap_or(self.lines[i])
    }

    fn is_same(&self, i: usize, wanted: &str, strictness: Strictness) -> bool {
        let text = self.text(i);
        let wanted = if i == 0 { wanted.strip_prefix(BOM).unwrap_or(wanted) } else { wanted };
        match strictness {
            Strictness::Exact => text == wanted,
            Strictness::TrailingBlanks => text.trim_end() == wanted.trim_end(),
        }
    }

    /// Finds the place of a hunk and notes its changes.
    fn place(&mut self, hunk: &Hunk) -> Result<(), Error> {
        let (from, has_heading) = self.below_headings(hunk)?;
        let mut lines = hunk.lines.as_slice();
        let mut found = self.find(hunk, lines, from, has_heading);
        // Empty lines at the end may only separate the hunk from the next one.
        while matches!(&found, Err(error) if error.code == Code::NoMatch)
            && let Some((last, rest)) = lines.split_last()
            && last.is_empty
            && !rest.is_empty()
        {
            lines = rest;
            found = self.find(hunk, lines, from, has_heading).or(found);
        }
        let at = found?;
        let has_old = lines.iter().any(|line| line.side != Side::New);
        if let Some(said) = hunk.at.filter(|_| has_old) {
            self.offset = at.cast_signed() - said.saturating_sub(1).cast_signed();
        }
        self.change(lines, at);
        Ok(())
    }

    /// Where the search for a hunk begins: at its innermost heading.
    fn below_headings(&self, hunk: &Hunk) -> Result<(usize, bool), Error> {
        let mut from = self.cursor;
        for (i, heading) in hunk.headings.iter().enumerate() {
            let is_it = |at: &usize| self.text(*at).trim() == heading.trim();
            let below = (from..self.lines.len()).find(is_it);
            let found = below.or_else(|| (0..from.min(self.lines.len())).find(is_it));
            let Some(found) = found else {
                return Err(no_match(self.body, heading, &format!("the line `@@ {heading}` names does")));
            };
            from = if i + 1 < hunk.headings.len() { found + 1 } else { found };
        }
        Ok((from, !hunk.headings.is_empty()))
    }

    fn find(&self, hunk: &Hunk, lines: &[Line], from: usize, has_heading: bool) -> Result<usize, Error> {
        let wanted: Vec<&str> = lines.iter().filter(|it| it.side != Side::New).map(|it| it.text.as_str()).collect();
        let numbered = hunk.at.map(|at| at.saturating_add_signed(self.offset));
        if wanted.is_empty() {
            let at = match numbered {
                // A hunk that only adds has the number of the line before it.
                Some(at) => at,
                None if has_heading => from + 1,
                None => self.lines.len(),
            };
            return Ok(at.min(self.lines.len()));
        }
        let expected = numbered.map(|at| at.saturating_sub(1));
        let mut places = self.places(&wanted, Strictness::Exact);
        if places.is_empty() {
            places = self.places(&wanted, Strictness::TrailingBlanks);
        }
        if hunk.ends_file {
            let at_end = |at: &&usize| **at + wanted.len() == self.lines.len();
            if let Some(at) = places.iter().find(at_end) {
                return Ok(*at);
            }
        }
        if let Some(at) = expected.filter(|at| places.contains(at)) {
            return Ok(at);
        }
        let below: Vec<usize> = places.iter().copied().filter(|at| *at >= from).collect();
        match (below.as_slice(), places.as_slice()) {
            ([at], _) | ([], [at]) => Ok(*at),
            ([at, ..], _) if has_heading => Ok(*at),
            ([], []) => Err(no_match(self.body, &wanted.join("\n"), "its old lines do")),
            ([], several) | (several, _) => Err(not_unique(several)),
        }
    }

    /// Where these lines stand, apart from lines that another hunk removes.
    fn places(&self, wanted: &[&str], strictness: Strictness) -> Vec<usize> {
        let last = (self.lines.len() + 1).saturating_sub(wanted.len());
        let fits = |at: &usize| {
            wanted.iter().enumerate().all(|(i, text)| !self.removed[*at + i] && self.is_same(*at + i, text, strictness))
        };
        (0..last).filter(fits).collect()
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
                    self.cursor = here;
                }
                Side::New => {
                    let end = match (line.open, folds && self.has_return_near(here)) {
                        (true, _) => "",
                        (false, true) => "\r\n",
                        (false, false) => "\n",
                    };
                    self.added.entry(here).or_default().push((line.text.clone(), end));
                    self.cursor = here;
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

fn not_unique(places: &[usize]) -> Error {
    let lines: Vec<usize> = places.iter().map(|at| at + 1).collect();
    let listed = lines.iter().take(20).map(usize::to_string).collect::<Vec<_>>().join(", ");
    let more = if lines.len() > 20 { ", …" } else { "" };
    Error::new(
        Code::NotUnique,
        format!("its old lines occur {} times, at lines {listed}{more}", lines.len()),
        "include more lines around them, or name the line above them with @@",
    )
    .with("lines", lines)
}
