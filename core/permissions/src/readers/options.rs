//! How a program tells options, their values and operands apart.

use super::words::Argument;

/// The options of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Letters behind one dash, as in `getopt(3)`: `n:` takes a value, glued or in the next word; `w::` takes one that is
    /// glued, and never the next word.
    pub(crate) short: &'static str,
    /// Words behind two dashes, as manuals write them: `lines=` takes a value, behind `=` or in the next word; `color[=]`
    /// takes one behind `=`, and never the next word.
    pub(crate) long: &'static str,
    pub(crate) parse: Parse,
}

/// Where a program looks for options, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parse {
    /// In each word up to `--`; letters may share a dash.
    Anywhere,
    /// The same up to the first operand.
    BeforeOperands,
    /// As the last, but each option is a word of its own, and a value that is glued to it is a number. These words may stand
    /// behind one dash too.
    Alone(&'static str),
    /// As the first, but a value is always the next word, and its option shares no dash.
    Apart,
    /// In each word; these words stand behind one dash, and `--` ends nothing.
    Tests(&'static str),
    /// Each word is an operand.
    Nowhere,
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No.
    Nothing,
    /// The rest of its word, or else the next word.
    Value,
    /// The rest of its word, if there is any.
    Glued,
}

/// The words of a program, taken apart.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    /// With their dashes, in order.
    pub(super) flags: Vec<(String, Option<&'a str>)>,
    pub(super) operands: Vec<&'a Argument>,
}

/// An option and its value.
pub(crate) type Flag = (String, Option<String>);

impl Taken<'_> {
    /// Whether one of these flags is given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.flags.iter().any(|(flag, _)| names.contains(&flag.as_str()))
    }
}

impl Options {
    /// Takes words apart.
    ///
    /// # Errors
    /// The first word that the program does not have as an option, or whose value is not known.
    pub(super) fn take<'a>(&self, args: &'a [Argument]) -> Result<Taken<'a>, &'a str> {
        let mut taken = Taken { flags: Vec::new(), operands: Vec::new() };
        let mut only_operands = self.parse == Parse::Nowhere;
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            let text = word.text.as_str();
            let flag = text.strip_prefix('-').filter(|flag| !flag.is_empty() && !only_operands);
            let Some(flag) = flag else {
                only_operands |= matches!(self.parse, Parse::BeforeOperands | Parse::Alone(_));
                taken.operands.push(word);
                continue;
            };
            if text == "--" && !matches!(self.parse, Parse::Tests(_)) {
                only_operands = true;
                continue;
            }
            if word.has_unknown {
                return Err(text);
            }
            match self.parse {
                Parse::Tests(words) => {
                    if !is_one_of(words, flag) && !is_number(flag) {
                        return Err(text);
                    }
                    taken.flags.push((text.to_owned(), None));
                    continue;
                }
                Parse::Alone(words) if is_one_of(words, flag) => {
                    taken.flags.push((text.to_owned(), None));
                    continue;
                }
                Parse::Anywhere | Parse::BeforeOperands | Parse::Alone(_) | Parse::Apart | Parse::Nowhere => {}
            }
            let mut next = || rest.next().filter(|it| !it.has_unknown).map(|it| it.text.as_str()).ok_or(text);
            match flag.strip_prefix('-') {
                Some(long) => {
                    let (name, glued) = long.split_once('=').map_or((long, None), |(name, it)| (name, Some(it)));
                    let value = match (self.word(name).ok_or(text)?, glued) {
                        (Takes::Nothing, Some(_)) => return Err(text),
                        (Takes::Value, None) => Some(next()?),
                        (Takes::Nothing | Takes::Glued, None) => None,
                        (Takes::Value | Takes::Glued, Some(value)) => Some(value),
                    };
                    taken.flags.push((format!("--{name}"), value));
                }
                None => self.letters(text, flag, &mut next, &mut taken.flags)?,
            }
        }
        Ok(taken)
    }

    /// Takes words apart that are all known; `None` where one of them is another option.
    pub(crate) fn take_known(&self, words: &[&str]) -> Option<(Vec<Flag>, Vec<String>)> {
        let argument = |text: &&str| Argument { text: (*text).to_owned(), is_quoted: false, has_unknown: false };
        let words: Vec<Argument> = words.iter().map(argument).collect();
        let Taken { flags, operands } = self.take(&words).ok()?;
        let flags = flags.into_iter().map(|(name, value)| (name, value.map(str::to_owned))).collect();
        Some((flags, operands.into_iter().map(|it| it.text.clone()).collect()))
    }

    /// Letters behind one dash.
    fn letters<'a>(
        &self,
        text: &'a str,
        flag: &'a str,
        next: &mut dyn FnMut() -> Result<&'a str, &'a str>,
        flags: &mut Vec<(String, Option<&'a str>)>,
    ) -> Result<(), &'a str> {
        for (at, letter) in flag.char_indices() {
            let glued = &flag[at + letter.len_utf8()..];
            let takes = self.letter(letter).ok_or(text)?;
            let is_apart = match self.parse {
                Parse::Alone(_) => at == 0 && (glued.is_empty() || (takes == Takes::Value && is_signed_number(glued))),
                Parse::Apart => takes == Takes::Nothing || flag.len() == letter.len_utf8(),
                Parse::Anywhere | Parse::BeforeOperands | Parse::Tests(_) | Parse::Nowhere => true,
            };
            if !is_apart {
                return Err(text);
            }
            let value = match takes {
                Takes::Nothing => None,
                Takes::Value if glued.is_empty() => Some(next()?),
                Takes::Value | Takes::Glued => Some(glued).filter(|it| !it.is_empty()),
            };
            flags.push((format!("-{letter}"), value));
            if takes != Takes::Nothing {
                break;
            }
        }
        Ok(())
    }

    /// What this letter takes; `None` where the program does not have it.
    fn letter(&self, letter: char) -> Option<Takes> {
        let at = self.short.find(letter).filter(|_| letter != ':')?;
        let colons = self.short[at + letter.len_utf8()..].chars().take_while(|it| *it == ':').count();
        Some([Takes::Nothing, Takes::Value, Takes::Glued][colons.min(2)])
    }

    /// What this word takes; `None` where the program does not have it.
    fn word(&self, name: &str) -> Option<Takes> {
        let mut all = self.long.split(' ').filter(|it| !it.is_empty()).map(taken_by);
        all.find(|(it, _)| *it == name).map(|(_, takes)| takes)
    }

    /// Every option with its dashes.
    pub(super) fn all(&self) -> Vec<(String, Takes)> {
        let letters = self.short.chars().filter_map(|it| Some((format!("-{it}"), self.letter(it)?)));
        let long = self.long.split(' ').filter(|it| !it.is_empty()).map(taken_by);
        let words = match self.parse {
            Parse::Alone(words) | Parse::Tests(words) => words,
            Parse::Anywhere | Parse::BeforeOperands | Parse::Apart | Parse::Nowhere => "",
        };
        let words = words.split(' ').filter(|it| !it.is_empty()).map(|it| (format!("-{it}"), Takes::Nothing));
        letters.chain(words).chain(long.map(|(name, takes)| (format!("--{name}"), takes))).collect()
    }
}

fn taken_by(long: &str) -> (&str, Takes) {
    match (long.strip_suffix("[=]"), long.strip_suffix('=')) {
        (Some(name), _) => (name, Takes::Glued),
        (None, Some(name)) => (name, Takes::Value),
        (None, None) => (long, Takes::Nothing),
    }
}

fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|it| it == word)
}

/// `-10k`, `-1`: a value of find.
fn is_number(text: &str) -> bool {
    let digits = text.trim_end_matches(|c: char| "ckMGbw".contains(c));
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// `8`, `+0x10`, `-5`.
fn is_signed_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.starts_with(|c: char| c.is_ascii_digit()) && digits.bytes().all(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<Argument> {
        text.iter().map(|it| Argument { text: (*it).to_owned(), is_quoted: false, has_unknown: false }).collect()
    }

    fn taken(options: &Options, text: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let words = words(text);
        let taken = options.take(&words).map_err(str::to_owned)?;
        let flag = |(name, value): &(String, Option<&str>)| value.map_or(name.clone(), |it| format!("{name} {it}"));
        Ok((taken.flags.iter().map(flag).collect(), taken.operands.iter().map(|it| it.text.clone()).collect()))
    }

    /// Broken build: an option whose value is optional takes the next word, which the program opens.
    #[test]
    fn a_value_is_taken_where_the_program_takes_it() {
        let options = |parse| Options { short: "aw::n:", long: "all width[=] lines=", parse };
        let anywhere = options(Parse::Anywhere);
        let (none, f) = (Vec::<String>::new(), vec!["f".to_owned()]);
        for (text, flags, operands) in [
            (&["-w", "f"][..], vec!["-w"], f.clone()),
            (&["-w8", "f"], vec!["-w 8"], f.clone()),
            (&["-n", "8", "f"], vec!["-n 8"], f.clone()),
            (&["-an8", "f"], vec!["-a", "-n 8"], f.clone()),
            (&["--width", "f"], vec!["--width"], f.clone()),
            (&["--width=8", "f"], vec!["--width 8"], f.clone()),
            (&["--lines", "8", "f"], vec!["--lines 8"], f.clone()),
            (&["f", "-n", "8"], vec!["-n 8"], f.clone()),
            (&["-a", "--", "f"], vec!["-a"], f),
            (&["--lines", "f"], vec!["--lines f"], none),
        ] {
            let flags = flags.into_iter().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(taken(&anywhere, text), Ok((flags, operands)), "{text:?}");
        }
        for text in [&["-x"][..], &["--al"], &["--all=1"], &["-n"], &["--lines"], &["-:"], &["--="]] {
            assert!(taken(&anywhere, text).is_err(), "{text:?}");
        }
        let before = options(Parse::BeforeOperands);
        let behind = ["p", "-n", "f"].map(str::to_owned).to_vec();
        assert_eq!(taken(&before, &["p", "-n", "f"]), Ok((Vec::new(), behind)));
        let alone = options(Parse::Alone("all"));
        assert!(taken(&alone, &["-an", "f"]).is_err() && taken(&alone, &["-name"]).is_err());
        assert_eq!(taken(&alone, &["-n-8", "-all"]), Ok((vec!["-n -8".to_owned(), "-all".to_owned()], Vec::new())));
        let apart = options(Parse::Apart);
        assert!(taken(&apart, &["-n8"]).is_err() && taken(&apart, &["-an", "8"]).is_err());
    }
}
