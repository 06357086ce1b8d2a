//! A line, program by program, in order.

use std::path::{Component, Path, PathBuf};

use super::place::{self, Ground};
use super::words::{self, Argument, Loop, LoopValue};
use super::{IsAllowed, Judged, MAX_FOLDERS, MAX_PROGRAMS, Parse, TOO_MANY, judge_program, listed};
use crate::effects;
use crate::shell::{Operator, Part, PartKind, Token, TokenKind};

/// Goes through a line in order.
pub(super) struct Walk<'a> {
    pub(super) ground: &'a Ground<'a>,
    /// Programs that need no proof.
    pub(super) is_allowed: Option<&'a IsAllowed<'a>>,
    pub(super) parse: Parse,
    pub(super) loops: Vec<Loop>,
    /// The folders in one of which the next program runs.
    pub(super) now: Vec<PathBuf>,
    /// Where it runs instead if a `cd` before it has failed.
    pub(super) left: Vec<PathBuf>,
    /// Programs so far, as often as they run.
    pub(super) count: usize,
    /// Between parentheses.
    pub(super) is_subshell: bool,
    /// The shell's own name of its folder is the real path, so that `cd ..` leads to the folder above that.
    pub(super) is_at_real_path: bool,
}

impl<'a> Walk<'a> {
    /// The commands between operators.
    pub(super) fn list(&mut self, tokens: &[Token<'a>]) -> Result<(), String> {
        let mut from = 0;
        let mut fed_by: Option<Vec<Argument>> = None;
        let mut is_ended = true;
        while from < tokens.len() {
            let len = length(&tokens[from..]);
            let command = &tokens[from..from + len];
            if let Some(("for", rest)) = keyword(command) {
                from = self.repeat(tokens, from, rest)?;
                fed_by = None;
                is_ended = true;
                continue;
            }
            if let Some(("while", rest)) = keyword(command)
                && let Some(names) = fed_by.take()
            {
                from = self.read_each(tokens, from, rest, &names)?;
                is_ended = true;
                continue;
            }
            if let Some(behind) = self.subshell(tokens, from)? {
                // Redirections, and what joins it with the next command.
                let rest = &tokens[behind..];
                let len = rest.iter().position(|it| matches!(it.kind, TokenKind::Operator(_))).unwrap_or(rest.len());
                rest[..len].iter().try_for_each(|token| self.redirection(token))?;
                fed_by = None;
                is_ended = match rest.get(len).map(|it| &it.kind) {
                    None | Some(TokenKind::Operator(Operator::Semicolon | Operator::Newline)) => true,
                    Some(TokenKind::Operator(Operator::Pipe | Operator::And | Operator::Or)) => false,
                    Some(_) => return Err("what follows a parenthesis is not judged".into()),
                };
                self.rejoin()?;
                from = behind + len + 1;
                continue;
            }
            let operator = tokens.get(from + len).map(|it| it.kind.clone());
            from += len + 1;
            if command.is_empty() {
                // Empty lines, and the line behind an operator.
                match operator {
                    Some(TokenKind::Operator(Operator::Newline)) => continue,
                    Some(_) | None => return Err("a command is missing beside an operator".into()),
                }
            }
            let feeds = fed_by.take();
            let words = self.command(command, feeds.as_deref(), operator.as_ref())?;
            is_ended = true;
            match operator {
                Some(TokenKind::Operator(Operator::Pipe)) => {
                    let passes_on = feeds.as_deref().is_some_and(|feeds| listed::passes_on(feeds, &words));
                    // Messages of errors in the pipe are no names.
                    let merges = |token: &Token<'_>| {
                        matches!(token.kind, TokenKind::Redirection(_)) && token.span.source.contains('&')
                    };
                    let feeds = if passes_on { feeds } else { Some(words) };
                    (fed_by, is_ended) = (feeds.filter(|_| !command.iter().any(merges)), false);
                }
                Some(TokenKind::Operator(Operator::And)) => is_ended = false,
                Some(TokenKind::Operator(Operator::Or)) => {
                    is_ended = false;
                    self.rejoin()?;
                }
                Some(TokenKind::Operator(Operator::Semicolon | Operator::Newline)) | None => self.rejoin()?,
                Some(TokenKind::Operator(Operator::Background)) => {
                    return Err("it leaves a program running in the background".into());
                }
                Some(_) => return Err("it holds `|&`, which is not judged".into()),
            }
        }
        if is_ended { Ok(()) } else { Err("a command is missing beside an operator".into()) }
    }

    /// `(…)`: commands in a shell of their own, whose `cd` ends with it. Returns where the line goes on; `None` where no
    /// parenthesis stands here. Two of them at once are arithmetic.
    fn subshell(&mut self, tokens: &[Token<'a>], from: usize) -> Result<Option<usize>, String> {
        let is = |token: &Token<'_>, what: &str| token.kind == TokenKind::Parenthesis && token.span.source == what;
        if !is(&tokens[from], "(") {
            return Ok(None);
        }
        let not_judged = || "it holds `(`, which is not judged".to_owned();
        let length = tokens[from + 1..].iter().position(|it| is(it, ")")).ok_or_else(not_judged)?;
        let inner = &tokens[from + 1..from + 1 + length];
        if self.is_subshell || inner.is_empty() || inner.iter().any(|it| is(it, "(")) {
            return Err(not_judged());
        }
        let before = (self.now.clone(), self.left.clone(), self.is_at_real_path);
        self.is_subshell = true;
        let judged = self.list(inner);
        self.is_subshell = false;
        (self.now, self.left, self.is_at_real_path) = before;
        judged.map(|()| Some(from + length + 2))
    }

    /// `[[ … ]]`, as far as it is what `test` does: it evaluates no number, and compares with no pattern. Returns the tests
    /// between `&&` and `||`, each as a call of `[`.
    fn double_test(&self, tokens: &[Token<'a>]) -> Result<Vec<Vec<Argument>>, String> {
        let not_judged = || "it holds `[[`, which is not judged".to_owned();
        let (last, inner) = tokens.split_last().ok_or_else(not_judged)?;
        if last.span.source != "]]" {
            return Err(not_judged());
        }
        let evaluates = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "<", ">"];
        let is_plain = |token: &Token<'_>| match &token.kind {
            TokenKind::Word(word) => {
                // bash drops the end of a line behind `\\`, so that `]\\` and `]` end the test for it.
                !evaluates.contains(&token.span.source)
                    && !token.span.source.contains('\n')
                    && word.parts.iter().all(|it| it.kind != PartKind::Glob)
            }
            TokenKind::Redirection(_) | TokenKind::Operator(_) | TokenKind::Parenthesis | TokenKind::HereDocument => {
                false
            }
        };
        let joins = |token: &Token<'_>| matches!(token.kind, TokenKind::Operator(Operator::And | Operator::Or));
        let word = |text: &str| Argument { text: text.to_owned(), is_quoted: false, has_unknown: false };
        let test = |tokens: &[Token<'a>]| {
            if !tokens.iter().all(is_plain) || !is_one_test(tokens) {
                return Err(not_judged());
            }
            let words = self.words(tokens)?;
            Ok([word("[")].into_iter().chain(words).chain([word("]")]).collect())
        };
        inner.split(joins).map(test).collect()
    }

    /// Whatever became of a `cd`, the next command runs.
    fn rejoin(&mut self) -> Result<(), String> {
        for folder in std::mem::take(&mut self.left) {
            if !self.now.contains(&folder) {
                self.now.push(folder);
            }
        }
        if self.now.len() > MAX_FOLDERS { Err("it changes its folder too often to be judged".into()) } else { Ok(()) }
    }

    /// One command, behind its keywords. Returns its words.
    fn command(
        &mut self,
        tokens: &[Token<'a>],
        fed_by: Option<&[Argument]>,
        operator: Option<&TokenKind<'a>>,
    ) -> Result<Vec<Argument>, String> {
        let mut tokens = tokens;
        while let Some((word, rest)) = keyword(tokens) {
            match word {
                "if" | "then" | "elif" | "else" | "do" | "!" | "time" => {
                    // `cd` may or may not have succeeded in a condition.
                    self.rejoin()?;
                    tokens = rest;
                }
                "[[" => {
                    for words in self.double_test(rest)? {
                        self.count += 1;
                        if self.count > MAX_PROGRAMS {
                            return Err(TOO_MANY.into());
                        }
                        let folders: Vec<&Path> = self.now.iter().map(PathBuf::as_path).collect();
                        let verdict = judge_program(&words, &folders, None, self.ground);
                        let words = words.iter().map(|word| word.text.clone()).collect();
                        self.parse.programs.push(Judged { words, verdict });
                    }
                    return Ok(Vec::new());
                }
                "fi" => {
                    self.rejoin()?;
                    rest.iter().try_for_each(|token| self.redirection(token).map(drop))?;
                    return Ok(Vec::new());
                }
                _ => return Err(format!("it holds `{word}`, which is not judged")),
            }
            if tokens.is_empty() {
                // `then` on a line of its own.
                return Ok(Vec::new());
            }
            if matches!(keyword(tokens), Some(("for", _))) {
                return Err("a loop inside another command is not judged".into());
            }
        }
        let mut plain = Vec::new();
        for token in tokens {
            match &token.kind {
                TokenKind::Word(_) if plain.is_empty() && is_setting(token.span.source) => {}
                TokenKind::Word(_) => plain.push(token.clone()),
                TokenKind::Redirection(_)
                | TokenKind::Operator(_)
                | TokenKind::Parenthesis
                | TokenKind::HereDocument => {
                    if let Err(why) = self.redirection(token) {
                        self.parse.programs.push(Judged { words: self.words_as_they_stand(tokens), verdict: Err(why) });
                        return Ok(Vec::new());
                    }
                }
            }
        }
        self.count += 1;
        if self.count > MAX_PROGRAMS {
            return Err(TOO_MANY.into());
        }
        let words = match self.words(&plain) {
            Ok(words) => words,
            Err(_) if self.allows(&plain) => {
                self.parse.programs.push(Judged { words: self.words_as_they_stand(&plain), verdict: Ok(()) });
                return Ok(Vec::new());
            }
            Err(why) => {
                let shown = self.words_as_they_stand(&plain);
                // What the program would do matters more than how it is written.
                let texts: Vec<&str> = shown.iter().map(String::as_str).collect();
                let why = effects::of(&texts).unwrap_or(why);
                self.parse.programs.push(Judged { words: shown, verdict: Err(why) });
                return Ok(Vec::new());
            }
        };
        let is_name: Vec<bool> = plain.iter().map(|token| self.is_name_of_file(token)).collect();
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        // A glob before the name would move it.
        let takes_it = || words.len() == plain.len() && listed::takes_names(&texts, &is_name);
        let verdict = match words.first() {
            Some(_) if is_name.contains(&true) && !takes_it() => {
                Err(format!("{} with a name that is not known before is not judged", texts[0]))
            }
            Some(program) if program.text == "cd" && !program.is_quoted => self.change_folder(&words[1..], operator),
            Some(_) => {
                let folders: Vec<&Path> = self.now.iter().map(PathBuf::as_path).collect();
                let verdict = judge_program(&words, &folders, fed_by, self.ground);
                if verdict.is_err() && self.allows(&plain) { Ok(()) } else { verdict }
            }
            None => Err("it sets a variable, which is not judged".into()),
        };
        let texts = words.iter().map(|word| word.text.clone()).collect();
        self.parse.programs.push(Judged { words: texts, verdict });
        Ok(words)
    }

    /// Whether the user allows the program with these words, behind wrappers that only limit its time.
    fn allows(&self, tokens: &[Token<'_>]) -> bool {
        let text = |token: &Token<'_>| match &token.kind {
            TokenKind::Word(word) if word.brace.is_none() => {
                word.parts.iter().map(Part::text).collect::<Option<String>>()
            }
            TokenKind::Word(_)
            | TokenKind::Redirection(_)
            | TokenKind::Operator(_)
            | TokenKind::Parenthesis
            | TokenKind::HereDocument => None,
        };
        let words: Option<Vec<String>> = tokens.iter().map(text).collect();
        let (Some(is_allowed), Some(words)) = (self.is_allowed, words) else { return false };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let folders: Vec<&Path> = self.now.iter().map(PathBuf::as_path).collect();
        match words.as_slice() {
            [] => false,
            ["timeout", limit, rest @ ..] if !rest.is_empty() && is_duration(limit) => is_allowed(rest, &folders),
            words => is_allowed(words, &folders),
        }
    }

    /// `cd FOLDER`: the programs behind it run there, or where they would have run if it fails.
    fn change_folder(&mut self, args: &[Argument], operator: Option<&TokenKind<'a>>) -> Result<(), String> {
        let [to] = args else { return Err("cd without one folder is not judged".into()) };
        // The names are those of the folder in which they were listed, in every round.
        if self.loops.iter().any(|it| matches!(it.value, LoopValue::Below(_))) {
            return Err("a loop that changes its folder is not judged".into());
        }
        let has_parent = Path::new(&to.text).components().any(|it| it == Component::ParentDir);
        if to.has_unknown
            || to.text.is_empty()
            || to.text.starts_with('-')
            || (has_parent && !(self.is_at_real_path && self.now.iter().all(|from| self.stays_below(from, &to.text))))
        {
            return Err(format!("cd to `{}` is not judged", to.text));
        }
        let mut new = Vec::new();
        for folder in &self.now {
            match self.ground.locate_to_work(&to.text, folder)? {
                place::Found::Folder(real) => {
                    self.is_at_real_path &= real == place::plain(&folder.join(&to.text));
                    new.push(real);
                }
                // Then it fails.
                place::Found::Missing | place::Found::File => {}
            }
        }
        self.left.append(&mut self.now.clone());
        if new.is_empty() {
            new.clone_from(&self.now);
        }
        self.now = new;
        if operator != Some(&TokenKind::Operator(Operator::And)) {
            self.rejoin()?;
        }
        Ok(())
    }

    /// Whether a relative path with `..` never leaves the workspace on its way, or leads to another folder that is worked on.
    fn stays_below(&self, from: &Path, to: &str) -> bool {
        let Some(root) = self.ground.root_of(from) else { return false };
        // It leads from one root into another, by its text alone.
        if self.ground.root_of(&place::plain(&from.join(to))).is_some_and(|other| other != root) {
            return true;
        }
        let Ok(below) = from.strip_prefix(root) else { return false };
        let depth = Path::new(to).components().try_fold(below.components().count(), |depth, part| match part {
            Component::ParentDir => depth.checked_sub(1),
            Component::CurDir => Some(depth),
            Component::Normal(_) => Some(depth + 1),
            Component::Prefix(_) | Component::RootDir => None,
        });
        depth.is_some()
    }

    pub(super) fn words(&self, tokens: &[Token<'a>]) -> Result<Vec<Argument>, String> {
        let folders: Vec<&Path> = self.now.iter().map(PathBuf::as_path).collect();
        let mut all = Vec::new();
        for token in tokens {
            match &token.kind {
                TokenKind::Word(word) => all.extend(words::arguments(word, &self.loops, &folders, self.ground)?),
                TokenKind::Parenthesis => return Err("it holds `(`, which is not judged".into()),
                TokenKind::Redirection(_) | TokenKind::Operator(_) | TokenKind::HereDocument => {
                    return Err(words::holds(token.span.source));
                }
            }
        }
        Ok(all)
    }

    /// For a screen, where the arguments are not known.
    fn words_as_they_stand(&self, tokens: &[Token<'a>]) -> Vec<String> {
        let text = |token: &Token<'a>| match &token.kind {
            TokenKind::Word(word) => word
                .parts
                .iter()
                .map(|it| it.text())
                .collect::<Option<String>>()
                .unwrap_or_else(|| token.span.source.to_owned()),
            _ => token.span.source.to_owned(),
        };
        tokens.iter().map(text).collect()
    }
}

/// How many tokens belong to the command in front: those up to the next operator, but an operator within `[[ … ]]` joins tests
/// and no commands.
fn length(tokens: &[Token<'_>]) -> usize {
    let mut from = 0;
    while let Some((word, rest)) = keyword(&tokens[from..]) {
        match word {
            "if" | "then" | "elif" | "else" | "do" | "!" | "time" => from = tokens.len() - rest.len(),
            "[[" => {
                from += tokens[from..].iter().position(|it| it.span.source == "]]").unwrap_or(0);
                break;
            }
            _ => break,
        }
    }
    let behind = tokens[from..].iter().position(|it| matches!(it.kind, TokenKind::Operator(_)));
    behind.map_or(tokens.len(), |behind| from + behind)
}

/// `WORD`, `-f WORD` or `WORD == WORD`, each also behind `!`.
fn is_one_test(tokens: &[Token<'_>]) -> bool {
    let sources: Vec<&str> = tokens.iter().map(|it| it.span.source).skip_while(|it| *it == "!").collect();
    match sources.as_slice() {
        [_] => true,
        [operator, _] => operator.starts_with('-'),
        [_, operator, _] => ["=", "==", "!=", "=~", "-nt", "-ot", "-ef"].contains(operator),
        _ => false,
    }
}

/// `30`, `1.5s` or `10m`, as `timeout` takes it.
pub(super) fn is_duration(text: &str) -> bool {
    let number = text.trim_end_matches(['s', 'm']);
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// The reserved word of the shell that a command begins with, and what stands behind it.
pub(super) fn keyword<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'a str, &'t [Token<'a>])> {
    const KEYWORDS: [&str; 21] = [
        "if", "then", "elif", "else", "fi", "for", "do", "done", "while", "until", "case", "esac", "select",
        "function", "{", "}", "!", "[[", "]]", "time", "coproc",
    ];
    let (first, rest) = tokens.split_first()?;
    let TokenKind::Word(_) = first.kind else { return None };
    KEYWORDS.contains(&first.span.source).then_some((first.span.source, rest))
}

/// Variables that only change what programs print.
const HARMLESS_SETTINGS: [&str; 10] = [
    "LANG",
    "NO_COLOR",
    "CLICOLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "CI",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "PYTHONUNBUFFERED",
];

/// `LC_ALL=C` and its like before a program.
pub(super) fn is_setting(source: &str) -> bool {
    source.split_once('=').is_some_and(|(name, value)| {
        (HARMLESS_SETTINGS.contains(&name)
            || (name.starts_with("LC_") && name[3..].chars().all(|c| c.is_ascii_uppercase())))
            && value.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    })
}
