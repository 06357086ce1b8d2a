//! The grammar of the run language: words, pipes and the operators `&&`, `||` and `;`.
//!
//! Everything else in a shell's grammar is refused with an error that names it.

use std::borrow::Cow;
use std::fmt;

use permissions::shell::{self, After, Fault, LineEnd, Operator, Part, PartKind, Script, Span, TokenKind};
use protocol::error::{Code, Error, Result};

/// The longest line, bytes.
const MAX_LINE: usize = 64 << 10;
/// The most commands of one line.
const MAX_COMMANDS: usize = 64;

/// A whole line: pipelines, each with its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The pipelines, in order.
    pub pipelines: Vec<Pipeline>,
}

/// Commands connected by pipes: each reads the output of the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// The condition under which it runs.
    pub after: After,
    /// The commands; never empty.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its name and its arguments; never empty.
    pub words: Vec<Word>,
    /// Where its stderr goes.
    pub stderr: Stderr,
}

/// Where a command's stderr goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stderr {
    /// Into its own stream, which the model reads on failure.
    #[default]
    Apart,
    /// Into the output: `2>&1`.
    Joined,
    /// Discarded unless the line fails: `2>/dev/null`.
    Unwanted,
}

/// One argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its text, without quotes.
    pub text: String,
    /// The glob pattern, if the word has `*`, `?` or `[…]` outside quotes; quoted characters are escaped in it.
    pub glob: Option<String>,
}

impl Word {
    /// Whether the word is a glob.
    pub fn is_glob(&self) -> bool {
        self.glob.is_some()
    }
}

/// A glob pattern that matches exactly this text.
pub fn escaped(text: &str) -> String {
    let special = |c: char| "*?[]{}!\\".contains(c);
    text.chars()
        .map(|c| if special(c) { format!("[{c}]") } else { c.to_string() })
        .collect::<String>()
        .replace("[!]", "!")
}

/// Escapes braces, which globset reads as alternatives and a shell's pattern does not.
pub(crate) fn without_braces(pattern: &str) -> String {
    pattern.replace('{', "[{]").replace('}', "[}]")
}

/// A word while it is parsed.
#[derive(Default)]
struct Growing {
    text: String,
    pattern: String,
    /// The position of a `[` that is not closed yet.
    open: Option<usize>,
    is_glob: bool,
}

impl Growing {
    fn plain(&mut self, c: char) {
        self.text.push(c);
        match c {
            '*' | '?' => {
                self.is_glob = true;
                self.pattern.push(c);
            }
            // A `[` opens a set only if a `]` follows.
            '[' => {
                self.open.get_or_insert(self.pattern.len());
                self.pattern.push(c);
            }
            ']' => {
                self.is_glob |= self.open.take().is_some();
                self.pattern.push(c);
            }
            '{' | '}' | '\\' => self.pattern.push_str(&escaped(&c.to_string())),
            c => self.pattern.push(c),
        }
    }

    fn quoted(&mut self, text: &str) {
        self.text.push_str(text);
        self.pattern.push_str(&escaped(text));
    }

    fn word(mut self) -> Word {
        if let Some(at) = self.open {
            self.pattern.replace_range(at..=at, "[[]");
        }
        Word { text: self.text, glob: Some(self.pattern).filter(|_| self.is_glob) }
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Word {
        Word { text: text.to_owned(), glob: None }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self
            .words
            .iter()
            // Quotes would turn the glob into plain text.
            .map(|word| if word.is_glob() { word.text.clone() } else { shell::quote(&word.text) })
            .collect();
        f.write_str(&words.join(" "))
    }
}

impl Command {
    /// The texts of the words.
    pub fn texts(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.text.as_str()).collect()
    }

    /// The words quoted for a shell, globs included, so that a shell reads the same words.
    pub fn quoted(&self) -> String {
        shell::quoted(self.texts())
    }
}

/// Parses a line.
///
/// # Errors
/// `UNSUPPORTED_SYNTAX` with the position and an alternative. Nothing of the line runs in that case.
pub fn parse(line: &str) -> Result<Chain> {
    if line.len() > MAX_LINE {
        return Err(refuse("the line is longer than 64 KB", None, "stdin for long text"));
    }
    if line.contains('\0') {
        return Err(refuse("the line contains a NUL byte", None, "text without NUL"));
    }
    let script = Script::parse(line, LineEnd::NewlineOrCrlf);
    // Unsupported tokens are refused first, wherever they are, and misplaced operators after them.
    let items: Vec<Item> =
        (0..script.tokens.len()).map(|i| Accepting { line, script: &script }.item(i)).collect::<Result<_>>()?;
    let chain = chain(&script, items)?;
    if chain.pipelines.iter().map(|it| it.commands.len()).sum::<usize>() > MAX_COMMANDS {
        return Err(refuse("the line has more than 64 commands", None, "several calls"));
    }
    if chain.pipelines.is_empty() {
        let what = if line.trim().is_empty() { "the line is empty" } else { "the line has no command" };
        return Err(refuse(what, None, "help lists the commands"));
    }
    Ok(chain)
}

fn refuse(what: impl Into<String>, at: Option<usize>, fix: impl Into<protocol::remedy::Remedy>) -> Error {
    let mut error = Error::new(Code::UnsupportedSyntax, what, fix);
    if let Some(at) = at {
        error.message.push_str(&format!(" (at column {})", at + 1));
        error = error.with("column", at + 1);
    }
    error
}

/// A token that the run language accepts.
#[derive(Default)]
enum Item {
    Word(Word),
    Stderr(Stderr),
    #[default]
    Operator,
}

/// Decides which of the shell's tokens the run language accepts.
#[derive(Clone, Copy)]
struct Accepting<'s> {
    line: &'s str,
    script: &'s Script<'s>,
}

impl Accepting<'_> {
    fn item(self, i: usize) -> Result<Item> {
        let token = &self.script.tokens[i];
        let before = i.checked_sub(1).map(|i| &self.script.tokens[i]);
        let at = token.span.at;
        let is_in_word = before.is_some_and(|it| it.span.end() == at && matches!(it.kind, TokenKind::Word(_)));
        match &token.kind {
            TokenKind::Word(word) => {
                if before.is_none_or(|it| matches!(it.kind, TokenKind::Operator(_))) {
                    self.check_reserved(at)?;
                }
                self.word(word).map(Item::Word)
            }
            TokenKind::Redirection(_) => self.stderr(&token.span, is_in_word).map(Item::Stderr),
            TokenKind::Operator(Operator::PipeBoth) => Err(refuse("`|&` is not supported", Some(at), "2>&1 |")),
            TokenKind::Operator(Operator::Background) => {
                Err(refuse("`&` does not run anything in the background", Some(at), "job start <command>"))
            }
            TokenKind::Operator(
                Operator::Pipe | Operator::And | Operator::Or | Operator::Semicolon | Operator::Newline,
            ) => Ok(Item::Operator),
            TokenKind::Parenthesis if is_in_word => {
                let fix = "single quotes around text with parentheses";
                Err(refuse("parentheses are not supported outside of quotes", Some(at), fix))
            }
            TokenKind::Parenthesis => {
                let fix = "one line after the other, or bash -c '…'";
                Err(refuse("groups in parentheses are not supported", Some(at), fix))
            }
            TokenKind::HereDocument => Err(self.redirection(at)),
        }
    }

    /// Refuses `{`, `}` and `!`, which a shell reads as a group or a negation at the start of a command.
    fn check_reserved(self, at: usize) -> Result<()> {
        let is_word = |word: &str| {
            self.line[at..]
                .strip_prefix(word)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n']))
        };
        if is_word("{") || is_word("}") {
            let fix = "one line after the other, or bash -c '…'";
            return Err(refuse("groups in braces are not supported", Some(at), fix));
        }
        if is_word("!") {
            return Err(refuse("`!` is not supported", Some(at), "<command> && … or <command> || …"));
        }
        Ok(())
    }

    /// Accepts a redirection of stderr and refuses every other one.
    fn stderr(self, span: &Span<'_>, is_in_word: bool) -> Result<Stderr> {
        if is_in_word && span.source.starts_with(['<', '>']) {
            return Err(redirection_in_word(span.at));
        }
        let forms = [("2>&1", Stderr::Joined), ("2>/dev/null", Stderr::Unwanted), ("2> /dev/null", Stderr::Unwanted)];
        let Some((form, stderr)) = forms.into_iter().find(|(form, _)| span.source.starts_with(form)) else {
            return Err(self.redirection(span.at));
        };
        let rest = &self.line[span.end()..];
        if form == span.source && rest.chars().next().is_none_or(|c| " \t\r\n|&;".contains(c)) {
            Ok(stderr)
        } else {
            Err(refuse("a redirection is not supported here", Some(span.at), "2>&1 as a word of its own"))
        }
    }

    /// The error for a redirection.
    fn redirection(self, at: usize) -> Error {
        let redirection = self.line[at..].trim_start_matches(|c: char| c.is_ascii_digit());
        let at = Some(at);
        if redirection.starts_with("<<") {
            return refuse("here-documents are not supported", at, "pass the text as stdin of the call");
        }
        if redirection.starts_with('<') {
            return refuse("`<` is not supported", at, "cat <path> | <command>");
        }
        let target =
            redirection.trim_start_matches(['>', '&', '|', ' ']).split([' ', '\t', ';', '|', '&', '\n']).next();
        let fix = match target.filter(|t| !t.is_empty()) {
            Some("/dev/null") => "no redirection: long output is cut for you".to_owned(),
            // `write` leaves the workspace nowhere, so such a path would only be refused again.
            Some(target) if target.starts_with(['/', '~']) || target.starts_with("..") => {
                "<command> | write <path in the workspace>".to_owned()
            }
            Some(target) if redirection.starts_with(">>") => format!("<command> | write -a {target}"),
            Some(target) => format!("<command> | write {target}"),
            None => "<command> | write <path>".to_owned(),
        };
        refuse("redirections are not supported", at, fix)
    }

    fn word(self, word: &shell::Word<'_>) -> Result<Word> {
        let mut growing = Growing::default();
        for part in &word.parts {
            let at = part.span.at;
            if let Some(brace) = word.brace.filter(|brace| *brace < part.span.end()) {
                let fix = "each name written out, or single quotes around text with braces";
                return Err(refuse("`{…,…}` is not expanded", Some(brace), fix));
            }
            match &part.kind {
                PartKind::Literal | PartKind::Glob => part.span.source.chars().for_each(|c| growing.plain(c)),
                PartKind::Tilde if at == word.span.at => {
                    return Err(refuse("`~` is not expanded", Some(at), "a path in the workspace, or single quotes"));
                }
                PartKind::Tilde => growing.plain('~'),
                PartKind::Double(inner) => {
                    for part in inner {
                        growing.quoted(&self.text(part, Quotes::Double)?);
                    }
                }
                PartKind::Parameter => self.text(part, Quotes::None)?.chars().for_each(|c| growing.plain(c)),
                PartKind::Substitution if part.span.source.starts_with(['<', '>']) => {
                    return Err(if at == word.span.at { self.redirection(at) } else { redirection_in_word(at) });
                }
                PartKind::Escaped
                | PartKind::Continuation
                | PartKind::Single
                | PartKind::DollarQuote
                | PartKind::Substitution
                | PartKind::Unclosed { .. } => growing.quoted(&self.text(part, Quotes::None)?),
            }
        }
        Ok(growing.word())
    }

    /// The text of a part of a word; an error for an expansion, which needs a shell.
    fn text<'p>(self, part: &Part<'p>, quotes: Quotes) -> Result<Cow<'p, str>> {
        let Span { at, source } = part.span;
        match &part.kind {
            PartKind::Parameter | PartKind::DollarQuote | PartKind::Substitution => {
                self.check_expansion(at, quotes)?;
                // This is `$$` or a final `$`; the second dollar may still begin an expansion.
                self.check_expansion(at + 1, quotes)?;
                Ok(source.into())
            }
            PartKind::Unclosed { opened } => Err(self.unclosed(*opened)),
            PartKind::Glob | PartKind::Tilde => Ok(source.into()),
            PartKind::Literal | PartKind::Escaped | PartKind::Continuation | PartKind::Single | PartKind::Double(_) => {
                Ok(part.text().expect("it is the same wherever it stands"))
            }
        }
    }

    /// Refuses a command substitution or a variable at this position.
    fn check_expansion(self, at: usize, quotes: Quotes) -> Result<()> {
        let rest = &self.line[at..];
        let at = Some(at);
        if rest.starts_with('`') || rest.starts_with("$(") {
            let fix = "run the inner command first and use what it prints";
            return Err(refuse("command substitution is not supported", at, fix));
        }
        let is_name = |c: char| c.is_ascii_alphabetic() || "_{@*#?!-0123456789[".contains(c);
        let is_quote = |c: char| quotes == Quotes::None && "'\"".contains(c);
        if rest.strip_prefix('$').is_some_and(|rest| rest.starts_with(is_name) || rest.starts_with(is_quote)) {
            return Err(refuse("variables are not expanded", at, "the value itself, or single quotes for a literal $"));
        }
        Ok(())
    }

    /// The error for a quote that is never closed, or a backslash at the end of the line.
    fn unclosed(self, opened: usize) -> Error {
        let at = Some(opened);
        if self.line[opened..].starts_with('\'') {
            refuse("the quote `'` is not closed", at, "a second ' (an apostrophe goes into \"…\")")
        } else if self.line[opened..].starts_with('"') {
            refuse("the quote `\"` is not closed", at, "a second \"")
        } else {
            refuse("the line ends in a backslash", at, "single quotes around it")
        }
    }
}

fn redirection_in_word(at: usize) -> Error {
    refuse("redirections are not supported", Some(at), "<command> | write <path>")
}

/// The quotes around a dollar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Double,
}

/// Groups the accepted tokens into pipelines.
fn chain(script: &Script<'_>, mut items: Vec<Item>) -> Result<Chain> {
    let list = script.list();
    let mut pipelines = Vec::new();
    for pipeline in list.pipelines {
        let mut commands = Vec::new();
        for it in pipeline.commands {
            let places = script.tokens[it.tokens.clone()].iter().map(|token| token.span.at);
            commands.push(command(items[it.tokens].iter_mut().map(std::mem::take).zip(places))?);
        }
        pipelines.push(Pipeline { after: pipeline.after, commands });
    }
    let fix = "a command on both sides of it";
    match list.fault {
        Some(Fault::NothingBefore(operator, at)) => {
            Err(refuse(format!("there is no command before `{}`", operator.shown()), Some(at), fix))
        }
        Some(Fault::NothingAfter(operator, at)) => {
            Err(refuse(format!("there is no command after `{}`", operator.shown()), Some(at), fix))
        }
        None => Ok(Chain { pipelines }),
    }
}

fn command(items: impl Iterator<Item = (Item, usize)>) -> Result<Command> {
    let mut command = Command { words: Vec::new(), stderr: Stderr::Apart };
    for (item, at) in items {
        match item {
            Item::Word(_) if command.stderr != Stderr::Apart => {
                return Err(refuse("a word follows a redirection", Some(at), "2>&1 at the end of the command"));
            }
            Item::Word(word) => {
                if command.words.is_empty() {
                    check_first(&word, at)?;
                }
                command.words.push(word);
            }
            Item::Stderr(stderr) if !command.words.is_empty() => command.stderr = stderr,
            Item::Stderr(_) => return Err(refuse("a redirection has no command", Some(at), "<command> 2>&1")),
            Item::Operator => {}
        }
    }
    Ok(command)
}

/// Refuses a command that only a shell has, such as `cd` or `export`.
fn check_first(word: &Word, at: usize) -> Result<()> {
    let name = word.text.as_str();
    let fix = match name {
        "cd" | "pushd" | "popd" => "paths from the workspace's root; each command runs there",
        "if" | "for" | "while" | "until" | "case" | "do" | "then" | "function" | "[[" | "select" => {
            "a separate call for each command, or bash -c '…'"
        }
        "export" | "set" | "unset" | "alias" | "source" | "." | "eval" | "local" | "declare" | "read" | "trap" => {
            "bash -c '…', because no state carries over between commands"
        }
        "exec" | "command" | "builtin" => "the command alone",
        "[" => "test, without the brackets",
        _ => {
            let is_assignment = name.split_once('=').is_some_and(|(key, _)| {
                !key.is_empty()
                    && !key.starts_with(|c: char| c.is_ascii_digit())
                    && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            });
            if is_assignment {
                return Err(refuse("variables cannot be set", Some(at), format!("env {name} <command>")));
            }
            return Ok(());
        }
    };
    Err(refuse(format!("`{name}` is part of a shell, and this is not a shell"), Some(at), fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use permissions::shell::quote;

    fn words(line: &str) -> Vec<String> {
        let chain = parse(line).expect(line);
        chain.pipelines.into_iter().flat_map(|it| it.commands).flat_map(|it| it.words).map(|it| it.text).collect()
    }

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        for (line, expected) in [
            ("a b\tc", &["a", "b", "c"][..]),
            (r#"grep '|' f"#, &["grep", "|", "f"]),
            (r#"write f """#, &["write", "f", ""]),
            (r#"echo "a\"b" 'c;d'"#, &["echo", "a\"b", "c;d"]),
            (r#"foo"bar baz"qux"#, &["foobar bazqux"]),
            (r#"a\ b \| \\"#, &["a b", "|", "\\"]),
            (r#""\n" '\n'"#, &["\\n", "\\n"]),
            ("echo a \\\n b", &["echo", "a", "b"]),
            ("echo a # comment", &["echo", "a"]),
            ("echo a#b", &["echo", "a#b"]),
            ("grep 'x$' \"y$\" z$", &["grep", "x$", "y$", "z$"]),
            ("find . -name x{} a{2}", &["find", ".", "-name", "x{}", "a{2}"]),
            ("echo \"a\\$b\"", &["echo", "a$b"]),
        ] {
            assert_eq!(words(line), expected, "{line}");
        }
    }

    #[test]
    fn whatever_only_a_shell_can_do_is_refused_with_what_to_do_instead() {
        for (line, said) in [
            ("echo hi > f", "write f"),
            ("echo hi >> f", "write -a f"),
            ("echo hi>f", "write"),
            ("cat < f", "cat <path> |"),
            ("cat <<X", "stdin"),
            ("make &> log", "write log"),
            ("ls >/dev/null", "cut for you"),
            ("echo $(ls)", "inner command first"),
            ("echo `ls`", "inner command first"),
            ("echo $HOME", "single quotes"),
            ("echo \"${HOME}\"", "single quotes"),
            ("echo $1", "single quotes"),
            ("sleep 9 & ls", "job start"),
            ("sleep 9 &", "job start"),
            ("(ls)", "bash -c"),
            ("{ ls; }", "bash -c"),
            ("echo a(b)", "single quotes"),
            ("echo {a,b}", "written out"),
            ("echo {1..9}", "written out"),
            ("echo {a,'b'}", "written out"),
            ("echo {{a},b}", "written out"),
            ("echo $\"x\"", "single quotes"),
            ("echo $[1+2]", "single quotes"),
            ("ls ~/x", "workspace"),
            ("! ls", "||"),
            ("A=1 ls", "env A=1"),
            ("cd src", "workspace's root"),
            ("for i in a; do ls; done", "bash -c"),
            ("export A=1", "bash -c"),
            ("[ -f p ] && ls", "test"),
            ("echo it's fine | wc -l", "apostrophe"),
            ("\"unterminated | wc", "second \""),
            ("echo a |", "both sides"),
            ("echo a &&", "both sides"),
            ("; echo a", "both sides"),
            ("echo a ;; echo b", "both sides"),
            ("| wc", "both sides"),
            ("a | | b", "both sides"),
            ("a |& b", "2>&1 |"),
            ("", "help"),
            ("# only this", "help"),
            ("a 2>&1 b", "end of the command"),
            ("2>&1", "<command> 2>&1"),
            ("a\\", "single quotes"),
            ("echo 2>x", "write x"),
            ("make -j2>/dev/null", "write"),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.code, Code::UnsupportedSyntax, "{line}");
            assert!(error.remedy.plain().contains(said), "{line}: {:?}", error.remedy);
        }
        assert!(parse(&"a;".repeat(65)).is_err());
        assert!(parse(&"a".repeat(70_000)).is_err());
        let error = parse("echo it's").expect_err("a quote");
        assert!(error.message.ends_with("(at column 8)"), "{}", error.message);
    }

    #[test]
    fn pipes_bind_tighter_than_what_joins_pipelines() {
        let chain = parse("a | b && c || d | e; f\n\ng &&\n h 2>&1;").expect("a chain");
        let shape: Vec<(After, usize)> = chain.pipelines.iter().map(|it| (it.after, it.commands.len())).collect();
        assert_eq!(
            shape,
            [
                (After::Anything, 2),
                (After::Success, 1),
                (After::Failure, 2),
                (After::Anything, 1),
                (After::Anything, 1),
                (After::Success, 1)
            ]
        );
        assert_eq!(chain.pipelines[5].commands[0].stderr, Stderr::Joined);
    }

    proptest::proptest! {
        #[test]
        fn what_is_quoted_reads_back_as_it_was(argv in proptest::collection::vec("\\PC{0,12}|[ -~]{0,12}|[$`'\"\\\\|&;<>(){}*?~#!\n\t=]{0,8}", 1..6)) {
            let line = argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
            // The generated first word may be a shell keyword, which is refused.
            if check_first(&Word::from(argv[0].as_str()), 0).is_ok() {
                proptest::prop_assert_eq!(words(&line), argv);
            }
        }

        #[test]
        fn no_line_makes_it_panic(line in "\\PC{0,60}|[a-c $`'\"\\\\|&;<>(){}*?~#!\n\r\t=0-2]{0,60}") {
            let _ = parse(&line);
        }
    }
}
