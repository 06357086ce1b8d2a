//! Vim keys: the edit that a key stands for, given a text and a caret. Nothing here changes the text.

use std::ops::Range;

mod text; // places in a text that motions and objects name

use text::{
    below, class, find, first_word, line, lines_from, next_word, object, settled, swap_case, word_before, word_end,
};

/// The vim mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Keys type text.
    #[default]
    Insert,
    /// Keys are commands.
    Normal,
    /// Keys are commands on the text from this position to the caret.
    Visual(usize),
}

/// The effect of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Go(usize),
    /// Replaces a range of the text, then moves the caret.
    Put {
        range: Range<usize>,
        text: String,
        caret: usize,
    },
    Undo,
    Redo,
    /// Up from the first line, and down from the last: earlier and later prompts.
    Older,
    Newer,
}

/// The keys of an unfinished command, the last cut, and the last character search.
#[derive(Debug, Default)]
pub(super) struct Vim {
    pub(super) mode: Mode,
    begun: String,
    cut: String,
    /// The cut consists of whole lines.
    cut_lines: bool,
    found: Option<(char, char)>,
}

/// A complete command.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Move(usize, Motion),
    On(char, usize, Target),
    Plain(usize, char),
    Replace(usize, char),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Motion {
    Key(char),
    First,
    Find(char, char),
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    Motion(Motion),
    Line,
    Object(char, char),
}

enum Parsed {
    Begun,
    Wrong,
    Whole(Command),
}

impl Vim {
    /// Leaves insert mode; the caret moves one back, as in vim. True if the key did nothing else.
    pub(super) fn escape(&mut self, text: &[char], at: usize) -> Option<usize> {
        let was = std::mem::replace(&mut self.mode, Mode::Normal);
        let had_begun = !std::mem::take(&mut self.begun).is_empty();
        match was {
            Mode::Insert => Some(at.saturating_sub(usize::from(at > line(text, at).start))),
            Mode::Visual(_) => Some(at),
            Mode::Normal => had_begun.then_some(at),
        }
    }

    /// Opens a new line.
    pub(super) fn insert(&mut self) {
        self.mode = Mode::Insert;
        self.begun.clear();
    }

    /// Handles a character as a command.
    pub(super) fn key(&mut self, text: &[char], at: usize, c: char) -> Act {
        self.begun.push(c);
        match parse(&self.begun, self.mode != Mode::Normal) {
            Parsed::Begun => Act::Nothing,
            Parsed::Wrong => {
                self.begun.clear();
                Act::Nothing
            }
            Parsed::Whole(command) => {
                self.begun.clear();
                self.run(text, at, command)
            }
        }
    }

    fn run(&mut self, text: &[char], at: usize, command: Command) -> Act {
        let at = if self.mode == Mode::Normal { settled(text, at) } else { at };
        match command {
            Command::Move(count, motion) => {
                let visual = matches!(self.mode, Mode::Visual(_));
                let here = line(text, at);
                match self.moved(text, at, count, motion) {
                    Some(to) if visual => Act::Go(to.min(text.len())),
                    Some(to) => Act::Go(settled(text, to)),
                    None if motion == Motion::Key('k') && here.start == 0 && !visual => Act::Older,
                    None if motion == Motion::Key('j') && here.end == text.len() && !visual => Act::Newer,
                    None => Act::Nothing,
                }
            }
            Command::On(verb, count, target) => {
                let (range, is_lines) = match target {
                    Target::Line => (lines_from(text, at, count), true),
                    Target::Object(around, kind) => match object(text, at, around, kind) {
                        Some(range) => (range, false),
                        None => return Act::Nothing,
                    },
                    Target::Motion(motion) => {
                        // `cw` leaves the blanks after the word, unlike `dw`.
                        let on_word = text.get(at).is_some_and(|c| !c.is_whitespace());
                        let to_end = verb == 'c' && motion == Motion::Key('w') && on_word;
                        let motion = if to_end { Motion::Key('e') } else { motion };
                        // At the end of a word, this word counts.
                        let is_end = to_end && text.get(at + 1).is_none_or(|c| class(*c) != class(text[at]));
                        let count = count - usize::from(is_end);
                        if count == 0 {
                            return self.on(verb, text, at, at..at + 1, false);
                        }
                        match self.span(text, at, count, motion) {
                            Some(it) => it,
                            None => return Act::Nothing,
                        }
                    }
                };
                self.on(verb, text, at, range, is_lines)
            }
            Command::Replace(count, c) => {
                let end = at + count;
                if end > line(text, at).end {
                    return Act::Nothing;
                }
                Act::Put { range: at..end, text: c.to_string().repeat(count), caret: end - 1 }
            }
            Command::Plain(count, c) => self.plain(text, at, count, c),
        }
    }

    fn plain(&mut self, text: &[char], at: usize, count: usize, c: char) -> Act {
        let here = line(text, at);
        if let Mode::Visual(from) = self.mode {
            let (from, to) = (from.min(at), (from.max(at) + 1).min(text.len()));
            self.mode = Mode::Normal;
            return match c {
                'd' | 'x' => self.on('d', text, from, from..to, false),
                'c' | 's' => self.on('c', text, from, from..to, false),
                'y' => self.on('y', text, from, from..to, false),
                _ => Act::Go(at),
            };
        }
        let end = (at + count).min(here.end);
        match c {
            'i' => self.writes(at),
            'a' => self.writes((at + 1).min(here.end)),
            'I' => self.writes(first_word(text, &here)),
            'A' => self.writes(here.end),
            'o' => {
                self.insert();
                Act::Put { range: here.end..here.end, text: "\n".into(), caret: here.end + 1 }
            }
            'O' => {
                self.insert();
                Act::Put { range: here.start..here.start, text: "\n".into(), caret: here.start }
            }
            'v' => {
                self.mode = Mode::Visual(at);
                Act::Nothing
            }
            'x' => self.on('d', text, at, at..end, false),
            's' => self.on('c', text, at, at..end, false),
            'X' => self.on('d', text, at, at.saturating_sub(count).max(here.start)..at, false),
            'D' => self.on('d', text, at, at..here.end, false),
            'C' => self.on('c', text, at, at..here.end, false),
            'S' => self.on('c', text, at, here, false),
            'Y' => self.on('y', text, at, lines_from(text, at, count), true),
            'u' => Act::Undo,
            'U' => Act::Redo,
            'p' | 'P' => self.put(text, at, count, c == 'p'),
            'J' if here.end < text.len() => {
                Act::Put { range: here.end..here.end + 1, text: " ".into(), caret: here.end }
            }
            '~' => {
                let swapped: String = text[at..end].iter().map(|c| swap_case(*c)).collect();
                Act::Put { range: at..end, text: swapped, caret: settled(text, end) }
            }
            _ => Act::Nothing,
        }
    }

    fn writes(&mut self, at: usize) -> Act {
        self.insert();
        Act::Go(at)
    }

    /// Deletes, changes or copies a range.
    fn on(&mut self, verb: char, text: &[char], at: usize, range: Range<usize>, is_lines: bool) -> Act {
        if range.is_empty() && verb != 'c' && !is_lines {
            return Act::Nothing;
        }
        let mut cut: String = text[range.clone()].iter().collect();
        if is_lines && !cut.ends_with('\n') {
            cut.push('\n');
        }
        (self.cut, self.cut_lines) = (cut, is_lines);
        match verb {
            'y' => Act::Go(range.start.min(at)),
            'c' => {
                self.insert();
                // Changing whole lines leaves one empty line.
                let end = if is_lines && text[range.clone()].last() == Some(&'\n') { range.end - 1 } else { range.end };
                Act::Put { caret: range.start, range: range.start..end, text: String::new() }
            }
            _ => {
                // The last line is deleted with the line end before it.
                let has_end = !range.is_empty() && text[range.end - 1] == '\n';
                let is_last = is_lines && range.end == text.len() && range.start > 0 && !has_end;
                let start = if is_last { range.start - 1 } else { range.start };
                let rest: Vec<char> = text[..start].iter().chain(&text[range.end..]).copied().collect();
                let caret = if is_lines { line(&rest, start.min(rest.len())).start } else { settled(&rest, start) };
                Act::Put { range: start..range.end, text: String::new(), caret }
            }
        }
    }

    fn put(&self, text: &[char], at: usize, count: usize, behind: bool) -> Act {
        let put = self.cut.repeat(count);
        let length = put.chars().count();
        let here = line(text, at);
        if length == 0 {
            return Act::Nothing;
        }
        if !self.cut_lines {
            let to = if behind { (at + 1).min(here.end) } else { at };
            return Act::Put { range: to..to, text: put, caret: to + length - 1 };
        }
        if behind {
            let put = format!("\n{}", put.strip_suffix('\n').unwrap_or(&put));
            return Act::Put { range: here.end..here.end, text: put, caret: here.end + 1 };
        }
        Act::Put { range: here.start..here.start, text: put, caret: here.start }
    }

    /// The target of a motion. None if there is none.
    fn moved(&mut self, text: &[char], at: usize, count: usize, motion: Motion) -> Option<usize> {
        let here = line(text, at);
        let again = |mut to: usize, step: fn(&[char], usize) -> usize| {
            (0..count).for_each(|_| to = step(text, to));
            to
        };
        Some(match motion {
            Motion::First => line(text, 0).start,
            Motion::Find(kind, c) => {
                self.found = Some((kind, c));
                find(text, at, count, kind, c, 1)?
            }
            Motion::Key(key) => match key {
                'h' => at.saturating_sub(count).max(here.start),
                'l' | ' ' => (at + count).min(here.end),
                'j' | 'k' => below(text, at, count, key == 'j')?,
                'w' => again(at, next_word),
                'b' => again(at, word_before),
                'e' => again(at, word_end),
                '0' => here.start,
                '^' => first_word(text, &here),
                '$' => here.end,
                'G' => line(text, text.len()).start,
                ';' | ',' => {
                    let (kind, c) = self.found?;
                    let kind = if key == ';' { kind } else { swap_case(kind) };
                    // The search has already found the character beside the caret.
                    find(text, at, count, kind, c, 2)?
                }
                _ => return None,
            },
        })
    }

    /// The range of a motion, and whether it covers whole lines.
    fn span(&mut self, text: &[char], at: usize, count: usize, motion: Motion) -> Option<(Range<usize>, bool)> {
        let to = self.moved(text, at, count, motion)?;
        let (from, mut to) = (at.min(to), at.max(to));
        let is_lines = matches!(motion, Motion::First | Motion::Key('j' | 'k' | 'G'));
        if is_lines {
            let (first, last) = (line(text, from), line(text, to));
            return Some((first.start..(last.end + 1).min(text.len()), true));
        }
        let found = match motion {
            Motion::Key(';') => self.found.map(|(kind, _)| kind),
            Motion::Key(',') => self.found.map(|(kind, _)| swap_case(kind)),
            Motion::Find(kind, _) => Some(kind),
            _ => None,
        };
        if motion == Motion::Key('e') || found.is_some_and(|kind| kind.is_lowercase()) {
            to = (to + 1).min(text.len());
        }
        // `dw` on the last word of a line does not join the next line.
        let end = line(text, at).end;
        if motion == Motion::Key('w') && to > end && at < end {
            to = end;
        }
        Some((from..to, false))
    }
}

/// `3dw`, `ci"`, `fx`, `2j`.
fn parse(keys: &str, is_visual: bool) -> Parsed {
    let mut rest = keys;
    let first = number(&mut rest);
    let mut letters = rest.chars();
    let Some(c) = letters.next() else { return Parsed::Begun };
    rest = letters.as_str();
    if is_visual && "dxcsyv".contains(c) {
        return Parsed::Whole(Command::Plain(first.unwrap_or(1), c));
    }
    match c {
        'd' | 'c' | 'y' => {
            let second = number(&mut rest);
            let count = first.unwrap_or(1).saturating_mul(second.unwrap_or(1)).min(MOST);
            let mut letters = rest.chars();
            match (letters.next(), letters.next()) {
                (None, _) => Parsed::Begun,
                (Some(same), _) if same == c => Parsed::Whole(Command::On(c, count, Target::Line)),
                (Some('i' | 'a'), None) => Parsed::Begun,
                (Some(around @ ('i' | 'a')), Some(kind)) => {
                    Parsed::Whole(Command::On(c, count, Target::Object(around, kind)))
                }
                _ => match motion(rest) {
                    Ok(Some(motion)) => Parsed::Whole(Command::On(c, count, Target::Motion(motion))),
                    Ok(None) => Parsed::Begun,
                    Err(()) => Parsed::Wrong,
                },
            }
        }
        'r' => match rest.chars().next() {
            Some(c) => Parsed::Whole(Command::Replace(first.unwrap_or(1), c)),
            None => Parsed::Begun,
        },
        c if "iaIAoOvxsXDCSYuUpPJ~".contains(c) => Parsed::Whole(Command::Plain(first.unwrap_or(1), c)),
        _ => match motion(&format!("{c}{rest}")) {
            Ok(Some(motion)) => Parsed::Whole(Command::Move(first.unwrap_or(1), motion)),
            Ok(None) => Parsed::Begun,
            Err(()) => Parsed::Wrong,
        },
    }
}

/// The largest count.
const MOST: usize = 9_999;

/// A count at the start. 0 alone is a motion.
fn number(rest: &mut &str) -> Option<usize> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || rest.starts_with('0') {
        return None;
    }
    let (number, after) = rest.split_at(digits);
    *rest = after;
    Some(number.parse().unwrap_or(MOST).min(MOST))
}

/// None if the command is not complete.
fn motion(keys: &str) -> Result<Option<Motion>, ()> {
    let mut letters = keys.chars();
    let (Some(c), next) = (letters.next(), letters.next()) else { return Ok(None) };
    match c {
        'g' => match next {
            None => Ok(None),
            Some('g') => Ok(Some(Motion::First)),
            Some(_) => Err(()),
        },
        'f' | 'F' | 't' | 'T' => Ok(next.map(|to| Motion::Find(c, to))),
        c if "hl jkwbe0^$G;,".contains(c) => Ok(Some(Motion::Key(c))),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies keys to a text in which `|` marks the caret.
    fn does(before: &str, keys: &str) -> String {
        let mut at = before.chars().position(|c| c == '|').expect("a caret");
        let mut text: Vec<char> = before.chars().filter(|c| *c != '|').collect();
        let mut vim = Vim { mode: Mode::Normal, ..Vim::default() };
        for c in keys.chars() {
            press(&mut vim, &mut text, &mut at, c);
        }
        let mut after: String = text.iter().take(at).collect();
        after.push('|');
        after.extend(text.iter().skip(at));
        after
    }

    fn press(vim: &mut Vim, text: &mut Vec<char>, at: &mut usize, c: char) {
        if vim.mode == Mode::Insert {
            if c == '␛' {
                *at = vim.escape(text, *at).unwrap_or(*at);
            } else {
                text.insert(*at, c);
                *at += 1;
            }
            return;
        }
        match vim.key(text, *at, c) {
            Act::Go(to) => *at = to,
            Act::Put { range, text: put, caret } => {
                text.splice(range, put.chars());
                *at = caret;
            }
            Act::Nothing | Act::Undo | Act::Redo | Act::Older | Act::Newer => {}
        }
    }

    #[test]
    fn keys_do_what_they_do_in_vim() {
        for (before, keys, after) in [
            ("|one two three", "w", "one |two three"),
            ("|one two three", "2w", "one two |three"),
            ("one two |three", "bb", "|one two three"),
            ("|one two", "ee", "one tw|o"),
            ("one |two", "0", "|one two"),
            ("|one two", "$", "one tw|o"),
            ("|one\ntwo\nthree", "j", "one\n|two\nthree"),
            ("|one\ntwo\nthree", "G", "one\ntwo\n|three"),
            ("one\ntwo\nth|ree", "gg", "|one\ntwo\nthree"),
            ("|one two", "dw", "|two"),
            ("|one two\nthree", "wdw", "one| \nthree"),
            ("|one two", "cwnew␛", "ne|w two"),
            ("|one two three", "d2w", "|three"),
            ("|one two three", "2dw", "|three"),
            ("one |two three", "D", "one| "),
            ("one\n|two\nthree", "dd", "one\n|three"),
            ("one\n|two", "dd", "|one"),
            ("|one\ntwo", "ddp", "two\n|one"),
            ("|one\ntwo", "yyP", "|one\none\ntwo"),
            ("|one two", "ywP", "one| one two"),
            ("say \"h|i there\" now", "ci\"yo␛", "say \"y|o\" now"),
            ("f(a, (b|), c)", "dib", "f(a, (|), c)"),
            ("f(a|, (b), c)", "dab", "|f"),
            ("one t|wo three", "diw", "one | three"),
            ("one t|wo three", "daw", "one |three"),
            ("|a,b,c", "fc", "a,b,|c"),
            ("|a,b,c", "f,;", "a,b|,c"),
            ("|a,b,c", "dt,", "|,b,c"),
            ("|a,b,c", "df,", "|b,c"),
            ("|ab,c,d", "t,;", "ab,|c,d"),
            ("ab,c,|d", "dT,", "ab,c,|d"),
            ("|abc", "rx", "|xbc"),
            ("|abc", "x", "|bc"),
            ("ab|c", "x", "a|b"),
            ("|abc", "A!␛", "abc|!"),
            ("|one", "otwo␛", "one\ntw|o"),
            ("|one", "Ozero␛", "zer|o\none"),
            ("|one two", "vey", "|one two"),
            ("|one two", "ved", "| two"),
            ("|one\ntwo", "J", "one| two"),
            ("|abc", "~", "A|bc"),
            ("|one", "ccx␛", "|x"),
            ("|one\ntwo", "dj", "|"),
            ("|", "x", "|"),
            ("|one", "zq9dd", "|"),
            ("|a b c", "cwx␛", "|x b c"),
            ("on|e two", "cwx␛", "on|x two"),
            ("|a b c d", "c2wx␛", "|x c d"),
            ("|axbxc", "fx;d,", "a|xc"),
            ("x\n|one\n", "dd", "x\n|"),
            ("a\n|", "dd", "|a"),
            ("|ß", "~", "|ß"),
        ] {
            assert_eq!(does(before, keys), after, "{keys} on {before:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn whatever_is_pressed_the_caret_stays_in_the_text(
            text in "[ab .\n(\"]{0,24}", keys in "[hjklwbe0$^Gg;,dcyxXDCSYpPJvrftTF\"(i3␛a]{0,24}",
        ) {
            let (mut text, mut at): (Vec<char>, usize) = (text.chars().collect(), 0);
            let mut vim = Vim { mode: Mode::Normal, ..Vim::default() };
            for c in keys.chars() {
                press(&mut vim, &mut text, &mut at, c);
                prop_assert!(at <= text.len());
            }
        }
    }
}
