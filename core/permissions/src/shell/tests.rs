use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::{After, Fault, LineEnd, Operator, Part, PartKind, Script, TokenKind, Word};

fn parse(line: &str) -> Script<'_> {
    Script::parse(line, LineEnd::Newline)
}

/// Pieces of lines: what a shell has a meaning for, and what only looks as if it had.
const ATOMS: &[&str] = &[
    "a", "b", "ls", "-n", "1", "2", "é", " ", " ", " ", "\t", "\n", "\r", "\r\n", "\\\n", "\\ ", "\\", "'", "\"",
    "'q r'", "\"d e\"", "''", "\"\"", "#", "|", "||", "&&", ";", "&", "|&", "(", ")", "<", ">", "<<", "<(", ">&", "&>",
    "2>&1", "$", "$a", "$(", "${", "$'", "$\"", "$[", "$$", "`", "{", "}", "{a,b}", "{1..3}", ",", ".", "..", "*", "?",
    "[", "]", "~", "=", ":", "^", "!", "%", "@", "+", "a=1", "\u{a0}", "\u{85}", "\u{1680}", "\u{2003}", "\u{2007}",
    "\u{2028}", "\u{202f}", "\u{205f}", "\u{3000}", "\u{200b}", "\u{feff}", "\u{b}", "\u{c}",
];

fn lines() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(ATOMS), 1..14).prop_map(|atoms| atoms.concat())
}

/// Every byte of a word belongs to one part.
fn covered(word: &Word<'_>) -> String {
    let inner = |part: &Part<'_>| match &part.kind {
        PartKind::Double(parts) => {
            let inside: String = parts.iter().map(|part| part.span.source).collect();
            let is_closed = !matches!(parts.last(), Some(Part { kind: PartKind::Unclosed { .. }, .. }));
            format!("\"{inside}{}", if is_closed { "\"" } else { "" })
        }
        PartKind::Literal
        | PartKind::Escaped
        | PartKind::Continuation
        | PartKind::Single
        | PartKind::DollarQuote
        | PartKind::Glob
        | PartKind::Tilde
        | PartKind::Parameter
        | PartKind::Substitution
        | PartKind::Unclosed { .. } => part.span.source.to_owned(),
    };
    word.parts.iter().map(inner).collect()
}

/// Spaces, tabs and line continuations only.
fn is_blank(between: &str) -> bool {
    between.replace("\\\n", "").chars().all(|c| c == ' ' || c == '\t')
}

proptest! {
    #[test]
    fn no_byte_is_lost_and_only_blanks_comments_and_continuations_are_no_token(
        line in prop_oneof![lines(), "\\PC{0,60}", "[\0-\u{7f}]{0,60}"],
        line_end in proptest::sample::select(vec![LineEnd::Newline, LineEnd::NewlineOrCrlf]),
    ) {
        let script = Script::parse(&line, line_end);
        let mut spans = script.comments.clone();
        for token in &script.tokens {
            spans.push(token.span);
            if let TokenKind::Word(word) = &token.kind {
                prop_assert_eq!(covered(word), token.span.source);
            }
        }
        spans.sort_by_key(|span| span.at);
        let mut end = 0;
        for span in spans {
            prop_assert!(!span.source.is_empty());
            prop_assert!(is_blank(&line[end..span.at]));
            prop_assert_eq!(&line[span.at..span.end()], span.source);
            end = span.end();
        }
        prop_assert!(is_blank(&line[end..]));
    }
}

/// The text of a word; `None` where only a running shell knows it.
fn text(word: &Word<'_>) -> Option<String> {
    if word.brace.is_some() { None } else { word.parts.iter().map(Part::text).collect() }
}

/// `NAME=…`, `NAME+=…` or `NAME[…]=…`
fn is_assignment(word: &Word<'_>) -> bool {
    let source = word.span.source.replace("\\\n", "");
    let name = source.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(source.len());
    if name == 0 || source.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let mut rest = &source[name..];
    if rest.starts_with('[') {
        rest = rest.find(']').map_or("", |end| &rest[end + 1..]);
    }
    rest.strip_prefix('+').unwrap_or(rest).starts_with('=')
}

/// The commands that bash runs for a line when every one of them succeeds; `None` where that is not known from the line alone.
fn foreseen(line: &str) -> Option<Vec<Vec<String>>> {
    const RESERVED: [&str; 3] = ["{", "}", "!"];
    let script = parse(line);
    let list = script.list();
    let is_known = |kind: &TokenKind<'_>| match kind {
        TokenKind::Word(word) => text(word).is_some(),
        TokenKind::Operator(operator) => !matches!(operator, Operator::Background | Operator::PipeBoth),
        TokenKind::Redirection(_) | TokenKind::Parenthesis | TokenKind::HereDocument => false,
    };
    if list.fault.is_some() || line.contains('\0') || !script.tokens.iter().all(|token| is_known(&token.kind)) {
        return None;
    }
    let mut commands = Vec::new();
    for pipeline in &list.pipelines {
        for command in &pipeline.commands {
            let words = script.tokens[command.tokens.clone()].iter().filter_map(|token| match &token.kind {
                TokenKind::Word(word) => Some(word),
                _ => None,
            });
            let words: Vec<String> = words.skip_while(|word| is_assignment(word)).filter_map(text).collect();
            // Bash has a meaning of its own for these (`%` is a job), and an empty name is no command.
            let is_special =
                |first: &String| first.is_empty() || first.starts_with('%') || RESERVED.contains(&first.as_str());
            if words.first().is_some_and(is_special) {
                return None;
            }
            if pipeline.after != After::Failure {
                commands.push(words);
            }
        }
    }
    commands.retain(|words| !words.is_empty());
    commands.sort();
    Some(commands)
}

/// The commands that bash runs for each of these lines, in a folder that it must leave empty.
fn run_by_bash(lines: &[String]) -> Vec<Vec<Vec<String>>> {
    const WATCHED: &str = r#"
        exec 3>&1 >/dev/null 2>&1
        PATH=/nowhere
        # One write for each command: two of a pipeline write at once, and printf writes line by line.
        command_not_found_handle() { builtin printf '%s\0' "$#" "${@//$'\n'/$'\1'}" >&3; }
        enable -n . : [ test echo
        while IFS= builtin read -r -d '' line; do builtin eval -- "$line"; builtin printf 'end\0' >&3; done
    "#;
    let folder = tempfile::tempdir().expect("a folder");
    let mut bash = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", WATCHED])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/home/nowhere")
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash starts");
    let input: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\0"].concat()).collect();
    let mut stdin = bash.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || stdin.write_all(&input).expect("bash reads"));
    let output = bash.wait_with_output().expect("bash ends");
    writer.join().expect("the writer ends");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "something was written");
    let text = String::from_utf8(output.stdout).expect("text");
    let mut ran = Vec::new();
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut fields = text.split_terminator('\0');
    while let Some(field) = fields.next() {
        if field == "end" {
            commands.sort();
            ran.push(std::mem::take(&mut commands));
        } else {
            let count: usize = field.parse().expect("a number of words");
            commands.push(fields.by_ref().take(count).map(|word| word.replace('\u{1}', "\n")).collect());
        }
    }
    ran
}

proptest! {
    // The message names the line; making the others go away would take minutes.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 16, max_shrink_iters: 0, ..ProptestConfig::default() })]
    #[test]
    fn words_and_commands_are_those_that_bash_runs(lines in proptest::collection::vec(lines(), 400)) {
        let (lines, foreseen): (Vec<String>, Vec<_>) =
            lines.into_iter().filter_map(|line| foreseen(&line).map(|commands| (line, commands))).unzip();
        prop_assert!(!lines.is_empty());
        let ran = run_by_bash(&lines);
        prop_assert_eq!(ran.len(), lines.len());
        for ((line, foreseen), ran) in lines.iter().zip(foreseen).zip(ran) {
            prop_assert_eq!(foreseen, ran, "{:?}", line);
        }
    }
}

#[test]
fn every_construct_has_a_kind_of_its_own() {
    let kinds = |line: &'static str| match &parse(line).tokens[0].kind {
        TokenKind::Word(word) => {
            let name = |part: &Part<'_>| format!("{:?}", part.kind).split(['(', ' ']).next().unwrap_or("").to_owned();
            let parts: Vec<String> = word.parts.iter().map(name).collect();
            format!("{}{}", parts.join(" "), if word.brace.is_some() { " expands" } else { "" })
        }
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or("").to_owned(),
    };
    for (line, expected) in [
        ("a.b", "Literal"),
        ("a'b'\"c\"", "Literal Single Double"),
        (r"a\ b", "Literal Escaped Literal"),
        ("a\\\nb", "Literal Continuation Literal"),
        ("~/x", "Tilde Literal"),
        ("a=~", "Literal Tilde"),
        ("HEAD~1", "Literal"),
        ("*.rs", "Glob Literal"),
        ("[ab]", "Glob Literal Glob"),
        ("$a-b", "Parameter Literal"),
        ("${a:-'}'}b", "Parameter Literal"),
        ("$(a \")\" (b))c", "Substitution Literal"),
        ("$((1+(2)))", "Substitution"),
        ("`a \\` b`c", "Substitution Literal"),
        ("<(a)b", "Substitution Literal"),
        ("$'a\\'b'", "DollarQuote"),
        ("$\"a$(b)\"", "DollarQuote"),
        ("a$", "Literal"),
        ("{a,b}", "Literal expands"),
        ("{1..3}", "Literal expands"),
        ("{{a},b}", "Literal expands"),
        ("{a}{}", "Literal"),
        // A brace that closes nothing is text for bash.
        ("{a},b}", "Literal expands"),
        ("{},b}", "Literal"),
        ("x{2},y{3}", "Literal"),
        ("{'a,b'}", "Literal Single Literal"),
        ("'a", "Unclosed"),
        ("\"a", "Double Unclosed"),
        ("a\\", "Literal Unclosed"),
        ("$(a", "Substitution Unclosed"),
        ("2>&1", "Redirection"),
        ("<<X", "Redirection"),
        ("(", "Parenthesis"),
    ] {
        assert_eq!(kinds(line), expected, "{line}");
    }
    let document = parse("cat <<X\n$(touch P)\nX");
    assert_eq!(document.tokens.last().map(|token| &token.kind), Some(&TokenKind::HereDocument));
}

#[test]
fn an_operator_without_a_command_is_a_fault_and_keeps_what_came_before() {
    for (line, fault, commands) in [
        ("a; ; b", Some(Fault::NothingBefore(Operator::Semicolon, 3)), 1),
        ("a | \n", Some(Fault::NothingAfter(Operator::Pipe, 2)), 1),
        ("&& a", Some(Fault::NothingBefore(Operator::And, 0)), 0),
        ("a &&\n\n b;", None, 2),
        ("# nothing", None, 0),
    ] {
        let list = parse(line).list();
        assert_eq!(list.fault, fault, "{line}");
        assert_eq!(list.pipelines.iter().map(|it| it.commands.len()).sum::<usize>(), commands, "{line}");
    }
}

#[test]
fn long_and_deep_lines_need_neither_time_nor_stack() {
    for piece in ["(", "$(", "${", "`", "\"$(", "{a,", "{", "<<X ", "'", "$'", "\\", "a|", "a ", "[", "a=", "<(", "#"] {
        let line = piece.repeat(200_000 / piece.len());
        let script = parse(&line);
        assert_eq!(script.tokens.first().map_or(0, |token| token.span.at), 0, "{piece}");
        let _ = script.list();
    }
}
