//! The language of `run`: words, pipes and three ways to go on. Whatever else a shell would do is refused by name.

use std::fmt;

use crate::protocol::error::{Code, Error, Result};

/// The longest line, bytes.
const MAX_LINE: usize = 64 << 10;
/// The most commands of one line.
const MAX_COMMANDS: usize = 64;

/// A whole line: pipelines, each with what must have happened before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// In order.
    pub pipelines: Vec<Pipeline>,
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
    /// Whatever came of what was before.
    Anything,
    /// When the last that ran succeeded.
    Success,
    /// When the last that ran failed.
    Failure,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its name and its arguments; never empty.
    pub words: Vec<Word>,
    /// What becomes of its stderr.
    pub stderr: Stderr,
}

/// What becomes of a command's stderr.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stderr {
    /// It is kept apart, and told on failure.
    #[default]
    Apart,
    /// It joins the output: `2>&1`.
    Joined,
    /// Nobody wants it unless the line fails: `2>/dev/null`.
    Unwanted,
}

/// One argument.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    /// Its text, without quotes.
    pub text: String,
    /// It holds `*`, `?` or `[` outside of quotes: what a command that takes paths looks for, with what was quoted escaped.
    pub glob: Option<String>,
}

impl Word {
    /// Whether it stands for what fits it.
    pub fn is_glob(&self) -> bool {
        self.glob.is_some()
    }
}

/// A pattern that means these characters and nothing else.
pub(crate) fn escaped(text: &str) -> String {
    let special = |c: char| "*?[]{}!\\".contains(c);
    text.chars()
        .map(|c| if special(c) { format!("[{c}]") } else { c.to_string() })
        .collect::<String>()
        .replace("[!]", "!")
}

/// A pattern as a shell means it: braces are no alternatives there.
pub(crate) fn without_braces(pattern: &str) -> String {
    pattern.replace('{', "[{]").replace('}', "[}]")
}

/// A word that grows.
#[derive(Default)]
struct Growing {
    text: String,
    pattern: String,
    /// Where a set was opened that is not closed yet.
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
            // Only what is closed is a set.
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
            // A glob that was quoted would be none.
            .map(|word| if word.is_glob() { word.text.clone() } else { quote(&word.text) })
            .collect();
        f.write_str(&words.join(" "))
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

/// Reads a line.
///
/// # Errors
/// `UNSUPPORTED_SYNTAX` with the place, and what to do instead; nothing of the line has run then.
pub fn parse(line: &str) -> Result<Chain> {
    if line.len() > MAX_LINE {
        return Err(refuse("the line is longer than 64 KB", None, "give long text as stdin"));
    }
    if line.contains('\0') {
        return Err(refuse("the line holds a NUL byte", None, "text without NUL"));
    }
    let tokens = Scanner { line, at: 0 }.tokens()?;
    let chain = assemble(tokens, line)?;
    if chain.pipelines.iter().map(|it| it.commands.len()).sum::<usize>() > MAX_COMMANDS {
        return Err(refuse("the line has more than 64 commands", None, "several calls"));
    }
    Ok(chain)
}

fn refuse(what: impl Into<String>, at: Option<usize>, fix: impl Into<crate::protocol::remedy::Remedy>) -> Error {
    let mut error = Error::new(Code::UnsupportedSyntax, what, fix);
    if let Some(at) = at {
        error.message.push_str(&format!(" (at column {})", at + 1));
        error = error.with("column", at + 1);
    }
    error
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(Word),
    Op(Op),
    Stderr(Stderr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Pipe,
    And,
    Or,
    Semicolon,
    Newline,
}

impl Op {
    fn shown(self) -> &'static str {
        match self {
            Op::Pipe => "|",
            Op::And => "&&",
            Op::Or => "||",
            Op::Semicolon => ";",
            Op::Newline => "a new line",
        }
    }
}

/// Where a dollar stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoted {
    Not,
    Double,
}

struct Scanner<'a> {
    line: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.line[self.at..]
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn tokens(mut self) -> Result<Vec<(Token, usize)>> {
        let mut tokens = Vec::new();
        loop {
            while self.take(" ") || self.take("\t") || self.take("\\\n") {}
            let from = self.at;
            let Some(c) = self.rest().chars().next() else { return Ok(tokens) };
            if c == '#' {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                continue;
            }
            let token = if self.take("2>&1") {
                Token::Stderr(Stderr::Joined)
            } else if self.take("2>/dev/null") || self.take("2> /dev/null") {
                Token::Stderr(Stderr::Unwanted)
            } else if self.take("&&") {
                Token::Op(Op::And)
            } else if self.take("||") {
                Token::Op(Op::Or)
            } else if self.rest().starts_with("|&") {
                return Err(refuse("`|&` is not supported", Some(from), "2>&1 |"));
            } else if self.take("|") {
                Token::Op(Op::Pipe)
            } else if self.take(";") {
                Token::Op(Op::Semicolon)
            } else if self.take("\r\n") || self.take("\n") {
                Token::Op(Op::Newline)
            } else {
                self.refuse_operator(&tokens)?;
                Token::Word(self.word()?)
            };
            let joined = matches!(token, Token::Stderr(_)) && !self.is_at_end_of_word();
            if joined {
                return Err(refuse("a redirection is not supported here", Some(from), "2>&1 as a word of its own"));
            }
            tokens.push((token, from));
        }
    }

    fn is_at_end_of_word(&self) -> bool {
        self.rest().chars().next().is_none_or(|c| " \t\r\n|&;".contains(c))
    }

    /// What a shell would not take for the beginning of a word.
    fn refuse_operator(&self, before: &[(Token, usize)]) -> Result<()> {
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let redirect = &rest[digits..];
        let at = Some(self.at);
        if redirect.starts_with("<<") {
            return Err(refuse("here-documents are not supported", at, "pass the text as stdin of the call"));
        }
        if redirect.starts_with('<') && (digits > 0 || rest.starts_with('<')) {
            return Err(refuse("`<` is not supported", at, "cat <path> | <command>"));
        }
        if redirect.starts_with('>') || rest.starts_with("&>") {
            let target =
                redirect.trim_start_matches(['>', '&', '|', ' ']).split([' ', '\t', ';', '|', '&', '\n']).next();
            let fix = match target.filter(|t| !t.is_empty()) {
                Some("/dev/null") => "nothing: long output is cut for you".to_owned(),
                Some(target) if redirect.starts_with(">>") => format!("<command> | write -a {target}"),
                Some(target) => format!("<command> | write {target}"),
                None => "<command> | write <path>".to_owned(),
            };
            return Err(refuse("redirections are not supported", at, fix));
        }
        if rest.starts_with('&') {
            return Err(refuse("`&` does not run anything in the background", at, "job start <command>"));
        }
        if rest.starts_with(['(', ')']) {
            return Err(refuse(
                "groups in parentheses are not supported",
                at,
                "one line after the other, or bash -c '…'",
            ));
        }
        let is_first = before.last().is_none_or(|(token, _)| matches!(token, Token::Op(_)));
        let is_word =
            |word: &str| rest.strip_prefix(word).is_some_and(|r| r.is_empty() || r.starts_with([' ', '\t', '\n']));
        if is_first && (is_word("{") || is_word("}")) {
            return Err(refuse("groups in braces are not supported", at, "one line after the other, or bash -c '…'"));
        }
        if is_first && is_word("!") {
            return Err(refuse("`!` is not supported", at, "<command> && … or <command> || …"));
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Word> {
        let from = self.at;
        let mut word = Growing::default();
        while let Some(c) = self.rest().chars().next() {
            let at = self.at;
            match c {
                ' ' | '\t' | '\n' | '|' | ';' | '&' => break,
                '\r' if self.rest().starts_with("\r\n") => break,
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        None => {
                            return Err(refuse("the line ends in a backslash", Some(at), "single quotes around it"));
                        }
                        Some('\n') => {}
                        Some(next) => word.quoted(&next.to_string()),
                    }
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                '$' | '`' => {
                    self.refuse_expansion(Quoted::Not)?;
                    word.plain(c);
                    self.at += 1;
                }
                '>' | '<' => {
                    return Err(refuse("redirections are not supported", Some(at), "<command> | write <path>"));
                }
                '(' | ')' => {
                    let fix = "single quotes around text with parentheses";
                    return Err(refuse("parentheses are not supported outside of quotes", Some(at), fix));
                }
                '~' if at == from => {
                    return Err(refuse("`~` is not expanded", Some(at), "a path in the workspace, or single quotes"));
                }
                '{' => {
                    if self.is_brace_expansion() {
                        let fix = "each name written out, or single quotes around text with braces";
                        return Err(refuse("`{…,…}` is not expanded", Some(at), fix));
                    }
                    word.plain(c);
                    self.at += 1;
                }
                c => {
                    word.plain(c);
                    self.at += c.len_utf8();
                }
            }
        }
        Ok(word.word())
    }

    /// `{a,b}` and `{1..9}`, also with quotes and braces inside.
    fn is_brace_expansion(&self) -> bool {
        let (mut depth, mut quote, mut parts) = (0, None, false);
        let mut before = ' ';
        for c in self.rest().chars() {
            match (quote, c) {
                (Some(end), c) if c == end => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '{') => depth += 1,
                (None, '}') => {
                    depth -= 1;
                    if depth == 0 {
                        return parts;
                    }
                }
                (None, ',') => parts = true,
                (None, '.') if before == '.' => parts = true,
                (None, ' ' | '\t' | '\n' | '|' | ';' | '&') if before != '\\' => return false,
                (None, _) => {}
            }
            before = c;
        }
        false
    }

    fn single(&mut self, word: &mut Growing) -> Result<()> {
        let from = self.at;
        self.at += 1;
        let Some(len) = self.rest().find('\'') else {
            return Err(refuse(
                "the quote `'` is not closed",
                Some(from),
                "a second ' (an apostrophe goes into \"…\")",
            ));
        };
        let inner = self.rest()[..len].to_owned();
        word.quoted(&inner);
        self.at += len + 1;
        Ok(())
    }

    fn double(&mut self, word: &mut Growing) -> Result<()> {
        let from = self.at;
        self.at += 1;
        loop {
            let Some(c) = self.rest().chars().next() else {
                return Err(refuse("the quote `\"` is not closed", Some(from), "a second \""));
            };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') => self.at += 1,
                        Some(next @ ('"' | '\\' | '$' | '`')) => {
                            word.quoted(&next.to_string());
                            self.at += 1;
                        }
                        // Before anything else a backslash is a backslash.
                        Some(_) | None => word.quoted("\\"),
                    }
                }
                '$' | '`' => {
                    self.refuse_expansion(Quoted::Double)?;
                    word.quoted(&c.to_string());
                    self.at += 1;
                }
                c => {
                    word.quoted(&c.to_string());
                    self.at += c.len_utf8();
                }
            }
        }
    }

    /// `$NAME`, `${…}`, `$(…)` and backticks; a `$` that begins none of them is a `$`.
    fn refuse_expansion(&self, quoted: Quoted) -> Result<()> {
        let rest = self.rest();
        let at = Some(self.at);
        if rest.starts_with('`') || rest.starts_with("$(") {
            let fix = "run the inner command first and use what it prints";
            return Err(refuse("command substitution is not supported", at, fix));
        }
        let is_name = |c: char| c.is_ascii_alphabetic() || "_{@*#?!-0123456789".contains(c);
        if rest[1..].starts_with(is_name)
            || rest.starts_with("$[")
            || (quoted == Quoted::Not && (rest.starts_with("$'") || rest.starts_with("$\"")))
        {
            return Err(refuse("variables are not expanded", at, "the value itself, or single quotes for a literal $"));
        }
        Ok(())
    }
}

fn assemble(tokens: Vec<(Token, usize)>, line: &str) -> Result<Chain> {
    let mut pipelines: Vec<Pipeline> = Vec::new();
    let mut command = Command { words: Vec::new(), stderr: Stderr::Apart };
    let mut commands: Vec<Command> = Vec::new();
    let mut after = After::Anything;
    let mut last_op: Option<(Op, usize)> = None;
    for (token, at) in tokens {
        match token {
            Token::Word(_) if command.stderr != Stderr::Apart => {
                return Err(refuse("a word follows a redirection", Some(at), "2>&1 at the end of the command"));
            }
            Token::Word(word) => {
                if command.words.is_empty() {
                    check_first(&word, at)?;
                }
                command.words.push(word);
            }
            Token::Stderr(stderr) if !command.words.is_empty() => command.stderr = stderr,
            Token::Stderr(_) => return Err(refuse("a redirection has no command", Some(at), "<command> 2>&1")),
            Token::Op(op) => {
                let is_empty = command.words.is_empty();
                // Several new lines, and a new line after an operator, are as in a shell.
                if is_empty && op == Op::Newline && commands.is_empty() && after == After::Anything {
                    continue;
                }
                if is_empty && op == Op::Newline && last_op.is_some_and(|(it, _)| it != Op::Semicolon) {
                    continue;
                }
                if is_empty {
                    let what = format!("there is no command before `{}`", op.shown());
                    return Err(refuse(what, Some(at), "a command on both sides of it"));
                }
                commands.push(std::mem::replace(&mut command, Command { words: Vec::new(), stderr: Stderr::Apart }));
                if op != Op::Pipe {
                    pipelines.push(Pipeline { after, commands: std::mem::take(&mut commands) });
                    after = match op {
                        Op::And => After::Success,
                        Op::Or => After::Failure,
                        Op::Semicolon | Op::Newline | Op::Pipe => After::Anything,
                    };
                }
                last_op = Some((op, at));
            }
        }
    }
    if command.words.is_empty() {
        return match last_op {
            Some((op @ (Op::Pipe | Op::And | Op::Or), at)) => {
                let what = format!("there is no command after `{}`", op.shown());
                Err(refuse(what, Some(at), "a command on both sides of it"))
            }
            _ if pipelines.is_empty() => {
                let what = if line.trim().is_empty() { "the line is empty" } else { "the line has no command" };
                Err(refuse(what, None, "help lists the commands"))
            }
            _ => Ok(Chain { pipelines }),
        };
    }
    commands.push(command);
    pipelines.push(Pipeline { after, commands });
    Ok(Chain { pipelines })
}

/// What only a shell can do, under the name that it has there.
fn check_first(word: &Word, at: usize) -> Result<()> {
    let name = word.text.as_str();
    let fix = match name {
        "cd" | "pushd" | "popd" => "paths from the workspace's root; each command runs there",
        "if" | "for" | "while" | "until" | "case" | "do" | "then" | "function" | "[[" | "select" => {
            "several calls, or bash -c '…'"
        }
        "export" | "set" | "unset" | "alias" | "source" | "." | "eval" | "local" | "declare" | "read" | "trap" => {
            "bash -c '…': each command starts afresh"
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
    Err(refuse(format!("`{name}` belongs to a shell, and this is none"), Some(at), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // The first word may be one of a shell's own.
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
