//! One shell line, parsed: what permissions judge, what the run language accepts and what a screen shows.
//!
//! The grammar is that of bash. Parsing never fails and loses no byte: whatever it does not understand is a token
//! or a part of its own kind, and each reader decides by an allow-list of kinds.

use std::borrow::Cow;
use std::ops::Range;

mod lex; // characters to tokens
#[cfg(test)]
mod tests; // compared with bash itself

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// In order. Between two tokens there are only spaces, tabs, comments and line continuations.
    pub tokens: Vec<Token<'a>>,
    /// The comments, without their line ends.
    pub comments: Vec<Span<'a>>,
}

/// What ends a line of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    /// A newline; a carriage return is a character like others. This is bash.
    Newline,
    /// Also a carriage return with a newline behind it, outside of quotes. This is the run language.
    NewlineOrCrlf,
}

/// A stretch of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// Where it begins in the source, bytes.
    pub at: usize,
    /// Its bytes, as they stand in the source.
    pub source: &'a str,
}

impl Span<'_> {
    /// Where it ends in the source, bytes.
    pub fn end(&self) -> usize {
        self.at + self.source.len()
    }
}

/// A word, a redirection or what stands between commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its bytes.
    pub span: Span<'a>,
    /// What it is.
    pub kind: TokenKind<'a>,
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenKind<'a> {
    /// A word.
    Word(Word<'a>),
    /// A redirection, with its target where there is one.
    Redirection(Option<Word<'a>>),
    /// What joins or ends commands.
    Operator(Operator),
    /// `(` or `)` outside of quotes.
    Parenthesis,
    /// Everything after the line that begins a here-document. It is not parsed.
    HereDocument,
}

/// What joins or ends commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `|`
    Pipe,
    /// `|&`
    PipeBoth,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;`
    Semicolon,
    /// `&`
    Background,
    /// The end of a line.
    Newline,
}

impl Operator {
    /// For a message.
    pub fn shown(self) -> &'static str {
        match self {
            Operator::Pipe => "|",
            Operator::PipeBoth => "|&",
            Operator::And => "&&",
            Operator::Or => "||",
            Operator::Semicolon => ";",
            Operator::Background => "&",
            Operator::Newline => "a new line",
        }
    }
}

/// A word before any expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'a> {
    /// Its bytes, with its quotes.
    pub span: Span<'a>,
    /// What it is made of, in order and without a gap.
    pub parts: Vec<Part<'a>>,
    /// Where the first brace expansion (`{a,b}`, `{1..9}`) begins in the source, bytes.
    pub brace: Option<usize>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its bytes.
    pub span: Span<'a>,
    /// What it is.
    pub kind: PartKind<'a>,
}

/// What a part of a word is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind<'a> {
    /// Characters that stand for themselves.
    Literal,
    /// A backslash and the character that it quotes.
    Escaped,
    /// A backslash and a newline, which stand for nothing.
    Continuation,
    /// `'…'`
    Single,
    /// `"…"`, with what is between the quotes.
    Double(Vec<Part<'a>>),
    /// `$'…'` or `$"…"`
    DollarQuote,
    /// `*`, `?`, `[` or `]` outside of quotes.
    Glob,
    /// `~` where a shell may expand it: at the start of a word, and after `=` or `:`.
    Tilde,
    /// `$NAME`, `${…}`, `$1`, `$?`, `$[…]`
    Parameter,
    /// `$(…)`, `` `…` ``, `<(…)`, `>(…)`
    Substitution,
    /// Something was opened that is never closed: a quote, an expansion, or a backslash at the very end.
    Unclosed {
        /// Where it was opened in the source, bytes.
        opened: usize,
    },
}

impl<'a> Part<'a> {
    /// The text that it stands for; `None` where only a running shell knows.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        let source = self.span.source;
        match &self.kind {
            PartKind::Literal => Some(source.into()),
            PartKind::Escaped => Some(source[1..].into()),
            PartKind::Continuation => Some("".into()),
            PartKind::Single => Some(source[1..source.len() - 1].into()),
            PartKind::Double(parts) => parts.iter().map(Part::text).collect::<Option<String>>().map(Cow::from),
            PartKind::DollarQuote
            | PartKind::Glob
            | PartKind::Tilde
            | PartKind::Parameter
            | PartKind::Substitution
            | PartKind::Unclosed { .. } => None,
        }
    }
}

impl Word<'_> {
    /// Any of it is quoted.
    pub(crate) fn is_quoted(&self) -> bool {
        let is_quoted = |part: &Part<'_>| {
            matches!(part.kind, PartKind::Single | PartKind::Double(_) | PartKind::DollarQuote | PartKind::Escaped)
        };
        self.parts.iter().any(is_quoted)
    }
}

/// Commands of which each reads what the one before it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// When it runs.
    pub after: After,
    /// Never empty.
    pub commands: Vec<Command>,
}

/// When a pipeline runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// Whatever became of the pipeline before it.
    Anything,
    /// When the last pipeline that ran succeeded.
    Success,
    /// When the last pipeline that ran failed.
    Failure,
}

/// One command: some of a script's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Which; never empty, and none of them is an operator.
    pub tokens: Range<usize>,
}

/// The pipelines of a script, up to its first fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// In order.
    pub pipelines: Vec<Pipeline>,
    /// Why the rest of the script is not in `pipelines`.
    pub fault: Option<Fault>,
}

/// An operator without a command beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no command before the operator that stands here, bytes.
    NothingBefore(Operator, usize),
    /// There is no command after the operator that stands here, bytes.
    NothingAfter(Operator, usize),
}

impl<'a> Script<'a> {
    /// Parses a line, in time linear in its length and without recursion.
    pub fn parse(source: &'a str, line_end: LineEnd) -> Script<'a> {
        lex::script(source, line_end)
    }

    /// Groups the tokens into pipelines. Reserved words (`if`, `{`, `!`) are words like others here.
    pub fn list(&self) -> List {
        let mut list = List { pipelines: Vec::new(), fault: None };
        let mut commands = Vec::new();
        let (mut from, mut after) = (0, After::Anything);
        let mut last: Option<(Operator, usize)> = None;
        for (i, token) in self.tokens.iter().enumerate() {
            let TokenKind::Operator(operator) = token.kind else { continue };
            let tokens = std::mem::replace(&mut from, i + 1)..i;
            if tokens.is_empty() {
                // Lines may be empty, and a command may stand on the line after its operator.
                if operator == Operator::Newline {
                    continue;
                }
                list.fault = Some(Fault::NothingBefore(operator, token.span.at));
                break;
            }
            commands.push(Command { tokens });
            last = Some((operator, token.span.at));
            let next = match operator {
                Operator::Pipe | Operator::PipeBoth => continue,
                Operator::And => After::Success,
                Operator::Or => After::Failure,
                Operator::Semicolon | Operator::Background | Operator::Newline => After::Anything,
            };
            list.pipelines.push(Pipeline { after, commands: std::mem::take(&mut commands) });
            after = next;
        }
        if list.fault.is_none() && from < self.tokens.len() {
            commands.push(Command { tokens: from..self.tokens.len() });
        } else if let Some((operator, at)) = last
            && list.fault.is_none()
            && matches!(operator, Operator::Pipe | Operator::PipeBoth | Operator::And | Operator::Or)
        {
            list.fault = Some(Fault::NothingAfter(operator, at));
        }
        if !commands.is_empty() {
            list.pipelines.push(Pipeline { after, commands });
        }
        list
    }
}

/// A word in the form that reads back as exactly this text, plain where it can be.
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-^".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// A command line of these words, for a screen and for rules.
pub fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}
