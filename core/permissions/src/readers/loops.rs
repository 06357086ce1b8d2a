//! Loops: `for NAME in WORDS` and `… | while read NAME`.

use super::listed::{self, Split};
use super::walk::{Walk, keyword};
use super::words::{Argument, Loop, LoopValue};
use super::{MAX_PROGRAMS, TOO_MANY};
use crate::shell::{Operator, Token, TokenKind};

impl<'a> Walk<'a> {
    /// `for NAME in WORDS; do …; done`, judged with each of the words. Returns where the line goes on.
    pub(super) fn repeat(&mut self, tokens: &[Token<'a>], from: usize, rest: &[Token<'a>]) -> Result<usize, String> {
        let [name, is_in, values @ ..] = rest else { return Err(not_judged()) };
        let name = name.span.source;
        if !is_name(name) || is_in.span.source != "in" {
            return Err(not_judged());
        }
        if values.iter().any(|value| self.is_name_of_file(value)) {
            return Err("a loop over these words is not judged".into());
        }
        let values = self.words(values)?;
        let is_plain = |value: &Argument| {
            !value.has_unknown
                && !value.text.is_empty()
                && !value.text.starts_with('-')
                && !value.text.contains([' ', '\t', '\n', '*', '?', '[', '\\'])
        };
        if values.is_empty() || values.len() > MAX_PROGRAMS || !values.iter().all(is_plain) {
            return Err("a loop over these words is not judged".into());
        }
        let (body, end) = body(tokens, from)?;
        for (i, value) in values.iter().enumerate() {
            let programs = self.parse.programs.len();
            self.count += 1;
            if self.count > MAX_PROGRAMS {
                return Err(TOO_MANY.into());
            }
            self.loops.push(Loop { name: name.to_owned(), value: LoopValue::Word(value.text.clone()) });
            let outcome = self.list(body);
            self.loops.pop();
            outcome?;
            // One run of the loop is shown, unless another one is judged otherwise.
            if i > 0 && self.parse.programs[programs..].iter().all(|it| it.verdict.is_ok()) {
                self.parse.programs.truncate(programs);
            }
        }
        self.behind(tokens, end)
    }

    /// `while read -r NAME; do …; done` behind a program that lists names of files. Each of them lies below the folder that is
    /// listed, so the body is judged with that folder. Returns where the line goes on.
    pub(super) fn read_each(
        &mut self,
        tokens: &[Token<'a>],
        from: usize,
        rest: &[Token<'a>],
        names: &[Argument],
    ) -> Result<usize, String> {
        let condition: Vec<&str> = rest.iter().map(|token| token.span.source).collect();
        let (name, split) = match condition.as_slice() {
            ["IFS=", "read", "-r", name] if is_name(name) => (*name, Split::Lines),
            // It cuts blanks off, or takes backslashes away.
            ["read", "-r", name] | ["read", name] if is_name(name) => (*name, Split::Blanks),
            _ => return Err(not_judged()),
        };
        let (body, end) = body(tokens, from)?;
        for folder in &self.now {
            listed::check(names, split, folder, self.ground)?;
        }
        self.loops.push(Loop { name: name.to_owned(), value: LoopValue::Below(".".into()) });
        let outcome = self.list(body);
        self.loops.pop();
        outcome?;
        self.behind(tokens, end)
    }

    /// Whether a word has a variable that stands for a name of a file.
    pub(super) fn is_name_of_file(&self, token: &Token<'_>) -> bool {
        let mut names = self.loops.iter().filter(|it| matches!(it.value, LoopValue::Below(_)));
        names.any(|it| {
            token.span.source.contains(&format!("${}", it.name))
                || token.span.source.contains(&format!("${{{}", it.name))
        })
    }

    /// What stands behind the `done` at this place, on its own command: redirections. Returns where the line goes on.
    fn behind(&self, tokens: &[Token<'a>], end: usize) -> Result<usize, String> {
        let rest = &tokens[end + 1..];
        let len = rest.iter().position(|it| matches!(it.kind, TokenKind::Operator(_))).unwrap_or(rest.len());
        for token in &rest[..len] {
            self.redirection(token)?;
        }
        match rest.get(len).map(|it| &it.kind) {
            None => Ok(tokens.len()),
            Some(TokenKind::Operator(Operator::Semicolon | Operator::Newline)) => Ok(end + 1 + len + 1),
            // A pipe or `&&` behind it: the command there is judged like any other.
            Some(TokenKind::Operator(Operator::Pipe | Operator::And | Operator::Or))
                if end + 2 + len < tokens.len() =>
            {
                Ok(end + 1 + len + 1)
            }
            Some(_) => Err(not_judged()),
        }
    }
}

/// The body of the loop that begins here, without `do`, and where its `done` stands.
fn body<'t, 'a>(tokens: &'t [Token<'a>], from: usize) -> Result<(&'t [Token<'a>], usize), String> {
    let mut depth = 0;
    let mut at_command = true;
    let begin =
        from + tokens[from..].iter().position(|it| matches!(it.kind, TokenKind::Operator(_))).ok_or_else(not_judged)?;
    let mut end = None;
    for (i, token) in tokens.iter().enumerate().skip(begin) {
        match (&token.kind, token.span.source) {
            (TokenKind::Operator(_), _) => at_command = true,
            (_, "for" | "while" | "until" | "select" | "case") if at_command => {
                (depth, at_command) = (depth + 1, false);
            }
            (_, "done") if at_command && depth == 0 => {
                end = Some(i);
                break;
            }
            (_, "done") if at_command => depth -= 1,
            (_, word) => at_command = at_command && ["do", "then", "else", "if", "elif", "!"].contains(&word),
        }
    }
    let end = end.ok_or_else(not_judged)?;
    let mut body = &tokens[begin..end];
    while let Some((Token { kind: TokenKind::Operator(Operator::Semicolon | Operator::Newline), .. }, rest)) =
        body.split_first()
    {
        body = rest;
    }
    let Some(("do", _)) = keyword(body) else { return Err(not_judged()) };
    Ok((&body[1..], end))
}

/// The name of a variable that no program and no shell has a meaning for.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 16
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name != "histchars"
}

fn not_judged() -> String {
    "a loop of this kind is not judged".to_owned()
}
