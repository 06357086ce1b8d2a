//! Characters to tokens, as bash reads them.

use super::{LineEnd, Operator, Part, PartKind, Script, Span, Token, TokenKind, Word};

/// The deepest nesting within one expansion; what is deeper counts as never closed.
const MAX_DEPTH: usize = 64;

/// Redirections, longest first. Digits before them name a file descriptor.
const REDIRECTIONS: [&str; 12] = ["<<<", "<<-", "&>>", "<<", "<&", "<>", ">>", ">&", ">|", "&>", "<", ">"];

pub(super) fn script(source: &str, line_end: LineEnd) -> Script<'_> {
    let mut lexer = Lexer { source, at: 0, line_end };
    let mut script = Script { tokens: Vec::new(), comments: Vec::new() };
    let mut has_document = false;
    loop {
        lexer.skip_blanks();
        let at = lexer.at;
        let Some(first) = lexer.rest().chars().next() else { return script };
        if first == '#' {
            lexer.at += lexer.rest().find('\n').unwrap_or(lexer.rest().len());
            script.comments.push(lexer.span(at));
            continue;
        }
        let kind = if let Some(operator) = lexer.operator() {
            TokenKind::Operator(operator)
        } else if lexer.is_redirection() {
            let operator = lexer.rest().trim_start_matches(|c: char| c.is_ascii_digit());
            has_document |= operator.starts_with("<<") && !operator.starts_with("<<<");
            TokenKind::Redirection(lexer.redirection())
        } else if matches!(first, '(' | ')') {
            lexer.at += 1;
            TokenKind::Parenthesis
        } else {
            TokenKind::Word(lexer.word())
        };
        let is_end_of_line = kind == TokenKind::Operator(Operator::Newline);
        script.tokens.push(Token { span: lexer.span(at), kind });
        if is_end_of_line && has_document && !lexer.rest().is_empty() {
            let from = std::mem::replace(&mut lexer.at, source.len());
            script.tokens.push(Token { span: lexer.span(from), kind: TokenKind::HereDocument });
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line_end: LineEnd,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.at + ahead).copied()
    }

    fn span(&self, from: usize) -> Span<'a> {
        Span { at: from, source: &self.source[from..self.at] }
    }

    fn part(&self, from: usize, kind: PartKind<'a>) -> Part<'a> {
        Part { span: self.span(from), kind }
    }

    /// The part at the end of the source that says what is still open there.
    fn unclosed(&self, opened: usize) -> Part<'a> {
        self.part(self.at, PartKind::Unclosed { opened })
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.byte(0), self.byte(1)) {
                (Some(b' ' | b'\t'), _) => self.at += 1,
                (Some(b'\\'), Some(b'\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    fn is_at_crlf(&self) -> bool {
        self.line_end == LineEnd::NewlineOrCrlf && self.rest().starts_with("\r\n")
    }

    fn operator(&mut self) -> Option<Operator> {
        let (operator, len) = match (self.byte(0)?, self.byte(1)) {
            (b'\n', _) => (Operator::Newline, 1),
            (b'\r', _) if self.is_at_crlf() => (Operator::Newline, 2),
            (b'|', Some(b'|')) => (Operator::Or, 2),
            (b'|', Some(b'&')) => (Operator::PipeBoth, 2),
            (b'|', _) => (Operator::Pipe, 1),
            (b'&', Some(b'&')) => (Operator::And, 2),
            (b'&', Some(b'>')) => return None,
            (b'&', _) => (Operator::Background, 1),
            (b';', _) => (Operator::Semicolon, 1),
            _ => return None,
        };
        self.at += len;
        Some(operator)
    }

    fn is_at_process_substitution(&self) -> bool {
        matches!((self.byte(0), self.byte(1)), (Some(b'<' | b'>'), Some(b'(')))
    }

    fn is_redirection(&self) -> bool {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        match self.byte(digits) {
            Some(b'<' | b'>') => digits > 0 || !self.is_at_process_substitution(),
            Some(b'&') => digits == 0 && self.byte(1) == Some(b'>'),
            _ => false,
        }
    }

    fn redirection(&mut self) -> Option<Word<'a>> {
        self.at += self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += REDIRECTIONS.iter().find(|it| self.rest().starts_with(*it)).map_or(1, |it| it.len());
        let end = self.at;
        self.skip_blanks();
        let is_word = self.byte(0).is_some_and(|byte| byte != b'#') && !self.is_at_end_of_word();
        if !is_word {
            self.at = end;
        }
        is_word.then(|| self.word())
    }

    fn is_at_end_of_word(&self) -> bool {
        match self.byte(0) {
            None | Some(b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')') => true,
            Some(b'<' | b'>') => !self.is_at_process_substitution(),
            Some(b'\r') => self.is_at_crlf(),
            Some(_) => false,
        }
    }

    /// A word. It is not empty: the lexer stands at a character that begins one.
    fn word(&mut self) -> Word<'a> {
        let start = self.at;
        let mut parts: Vec<Part<'a>> = Vec::new();
        let mut braces = Braces::default();
        while !self.is_at_end_of_word() {
            let from = self.at;
            let kind = match self.byte(0).expect("it is not at the end") {
                b'\'' => {
                    self.at += 1;
                    match self.rest().find('\'') {
                        Some(len) => {
                            self.at += len + 1;
                            PartKind::Single
                        }
                        None => {
                            self.at = self.source.len();
                            PartKind::Unclosed { opened: from }
                        }
                    }
                }
                b'"' => {
                    let inner = self.double();
                    let is_closed = inner.last().is_none_or(|last| !matches!(last.kind, PartKind::Unclosed { .. }));
                    parts.push(self.part(from, PartKind::Double(inner)));
                    if !is_closed {
                        parts.push(self.unclosed(from));
                    }
                    continue;
                }
                b'\\' => {
                    self.at += 1;
                    let quoted = self.rest().chars().next();
                    self.at += quoted.map_or(0, char::len_utf8);
                    match quoted {
                        None => PartKind::Unclosed { opened: from },
                        Some('\n') => PartKind::Continuation,
                        Some(_) => PartKind::Escaped,
                    }
                }
                b'*' | b'?' | b'[' | b']' => {
                    self.at += 1;
                    PartKind::Glob
                }
                b'~' if from == start || matches!(self.source.as_bytes()[from - 1], b'=' | b':') => {
                    self.at += 1;
                    PartKind::Tilde
                }
                b'<' | b'>' => {
                    self.at += 1;
                    self.close_group(from, PartKind::Substitution, &mut parts);
                    continue;
                }
                b'$' | b'`' if self.expansion(Quotes::None, &mut parts) => continue,
                byte => {
                    braces.see(byte, self.source, from);
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    match parts.last_mut() {
                        Some(Part { span, kind: PartKind::Literal }) => {
                            span.source = &self.source[span.at..self.at];
                            continue;
                        }
                        Some(_) | None => PartKind::Literal,
                    }
                }
            };
            parts.push(self.part(from, kind));
        }
        let span = self.span(start);
        Word { span, parts, brace: braces.first(span) }
    }

    /// What is between two double quotes; it ends with `Unclosed` where the second is missing.
    fn double(&mut self) -> Vec<Part<'a>> {
        let opened = self.at;
        self.at += 1;
        let mut parts: Vec<Part<'a>> = Vec::new();
        loop {
            let from = self.at;
            let kind = match (self.byte(0), self.byte(1)) {
                (None, _) => {
                    parts.push(self.unclosed(opened));
                    return parts;
                }
                (Some(b'"'), _) => {
                    self.at += 1;
                    return parts;
                }
                (Some(b'\\'), Some(b'\n')) => {
                    self.at += 2;
                    PartKind::Continuation
                }
                (Some(b'\\'), Some(b'"' | b'\\' | b'$' | b'`')) => {
                    self.at += 2;
                    PartKind::Escaped
                }
                (Some(b'$' | b'`'), _) if self.expansion(Quotes::Double, &mut parts) => continue,
                // A backslash before any other character is a backslash.
                (Some(_), _) => {
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    match parts.last_mut() {
                        Some(Part { span, kind: PartKind::Literal }) => {
                            span.source = &self.source[span.at..self.at];
                            continue;
                        }
                        Some(_) | None => PartKind::Literal,
                    }
                }
            };
            parts.push(self.part(from, kind));
        }
    }

    /// Takes what begins with `$` or a backtick; a `$` that begins nothing is left.
    fn expansion(&mut self, quotes: Quotes, parts: &mut Vec<Part<'a>>) -> bool {
        let from = self.at;
        let kind = match (self.byte(0), self.byte(1), quotes) {
            (Some(b'`'), ..) | (_, Some(b'('), _) => PartKind::Substitution,
            (_, Some(b'{' | b'['), _) => PartKind::Parameter,
            (_, Some(b'\'' | b'"'), Quotes::None) => PartKind::DollarQuote,
            (_, Some(byte), _) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                self.at += 1 + self.rest().bytes().skip(1).take_while(is_name).count();
                parts.push(self.part(from, PartKind::Parameter));
                return true;
            }
            (_, Some(byte), _) if byte.is_ascii_digit() || b"@*#?!-$".contains(&byte) => {
                self.at += 2;
                parts.push(self.part(from, PartKind::Parameter));
                return true;
            }
            // A shell drops the line continuation first, and then it may find a name.
            (_, Some(b'\\'), _) if self.byte(2) == Some(b'\n') => {
                self.at += 1;
                parts.push(self.part(from, PartKind::Parameter));
                return true;
            }
            _ => return false,
        };
        if self.byte(0) == Some(b'$') {
            self.at += 1;
        }
        self.close_group(from, kind, parts);
        true
    }

    /// Takes everything up to what closes the bracket or quote at which the lexer stands, or the rest of the source.
    ///
    /// A comment or a `case` inside may hide where the group really ends. That is no danger: each kind of part that is
    /// made here makes the whole line unproven.
    fn close_group(&mut self, from: usize, kind: PartKind<'a>, parts: &mut Vec<Part<'a>>) {
        let is_ansi = self.byte(0) == Some(b'\'');
        let mut open: Vec<u8> = Vec::new();
        while let Some(byte) = self.byte(0) {
            self.at += 1;
            let inside = open.last().copied();
            match (inside, byte) {
                (_, b'\\') => self.at += self.rest().chars().next().map_or(0, char::len_utf8),
                (Some(end), byte) if byte == end => {
                    open.pop();
                }
                (Some(b'\''), _) => {}
                (Some(b'"'), b'(' | b'{' | b'[') if self.source.as_bytes()[self.at - 2] != b'$' => {}
                (Some(b'"'), b'\'') => {}
                (_, b'(') => open.push(b')'),
                (_, b'{') => open.push(b'}'),
                (_, b'[') => open.push(b']'),
                (_, b'"' | b'`') => open.push(byte),
                (_, b'\'') if is_ansi && open.is_empty() => open.push(byte),
                (_, b'\'') => self.at += self.rest().find('\'').map_or(self.rest().len(), |len| len + 1),
                (Some(_) | None, _) => {}
            }
            if open.is_empty() {
                parts.push(self.part(from, kind));
                return;
            }
            if open.len() > MAX_DEPTH {
                break;
            }
        }
        self.at = self.source.len();
        parts.push(self.part(from, kind));
        parts.push(self.unclosed(from));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// What may make a brace expansion of a word: its braces and separators that are not quoted.
#[derive(Default)]
struct Braces {
    marks: Vec<(usize, Mark)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Close,
    /// A comma or `..`.
    Separator,
}

impl Braces {
    /// Words with more are not searched; they count as expanding.
    const MAX_MARKS: usize = 256;

    fn see(&mut self, byte: u8, source: &str, at: usize) {
        let mark = match byte {
            b'{' => Mark::Open,
            b'}' => Mark::Close,
            b',' => Mark::Separator,
            b'.' if at > 0 && source.as_bytes()[at - 1] == b'.' => Mark::Separator,
            _ => return,
        };
        self.marks.push((at, mark));
    }

    /// Where the first expansion of a word begins, found as bash finds it (`brace_gobbler` in its `braces.c`).
    fn first(&self, word: Span<'_>) -> Option<usize> {
        let opens = |(at, mark): (usize, Mark)| (mark == Mark::Open).then_some(at);
        if self.marks.len() > Self::MAX_MARKS {
            return self.marks.iter().copied().find_map(opens);
        }
        (0..self.marks.len()).find_map(|i| {
            // `{}` at the start of a word is left alone.
            let at = opens(self.marks[i]).filter(|at| *at > word.at || !word.source.starts_with("{}"))?;
            let (mut depth, mut has_separator) = (0, false);
            for (_, mark) in &self.marks[i + 1..] {
                match mark {
                    Mark::Close if depth == 0 && has_separator => return Some(at),
                    // It closes nothing: it is text.
                    Mark::Close if depth == 0 => {}
                    Mark::Close => depth -= 1,
                    Mark::Open => depth += 1,
                    Mark::Separator => has_separator |= depth == 0,
                }
            }
            None
        })
    }
}
