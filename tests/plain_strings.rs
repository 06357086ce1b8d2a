//! The core's messages fit every Presenter: they name no slash command, no flag and no key, and every error code
//! exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use pixir_core::Code;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;

use crate::shell::Shell;

/// Words that look like flags or commands of pixir in these files, and why they are not.
const ALLOWED: [(&str, &[&str], &str); 13] = [
    ("permissions/src/terminal.rs", &["--headless", "--script", "--help"], "flags of editors and monitors"),
    ("permissions/src/rules/grave.rs", &["--force", "--dry-run"], "flags of git, npm and cargo"),
    (
        "permissions/src/rules/lasting.rs",
        &["--all", "--dry-run", "--force", "--help", "--list", "--print", "--stdin", "--yes"],
        "flags of other programs",
    ),
    ("permissions/src/network.rs", &["--raw"], "a flag of kubectl"),
    ("permissions/src/effects.rs", &["--output", "--force"], "flags of sort and git push"),
    ("permissions/src/readers/arguments.rs", &["--format"], "a flag of git log"),
    ("permissions/src/readers/tests.rs", &["--format", "--output"], "flags of git log and sort"),
    ("process/src/ports.rs", &["/status"], "a file of /proc"),
    ("provider/src/browser_login.rs", &["/auth"], "a page of OpenRouter"),
    ("run/src/commands.rs", &["--help"], "each command of the run language has it"),
    ("run/src/commands/files.rs", &["--help"], "the same"),
    ("run/src/commands/job.rs", &["--timeout"], "a flag of the command `job` of the run language"),
    ("run/src/commands/writing.rs", &["--all"], "a flag of the command `edit` of the run language"),
];

/// The vocabulary of a Presenter, which no string of the core may contain.
struct Presented {
    /// `/tree`
    slash: BTreeSet<String>,
    /// `--model`
    flags: BTreeSet<String>,
    /// `pixir resume`
    commands: BTreeSet<String>,
    keys: [&'static str; 6],
}

impl Presented {
    fn gather() -> Presented {
        let actions = pixir_ui::reference();
        let slash = actions.as_array().expect("actions").iter().filter_map(|it| it["command"].as_str());
        let slash = slash.map(|it| it.split(' ').next().unwrap_or(it).to_owned()).collect();
        let (mut flags, mut commands) = (BTreeSet::from(["--help".to_owned()]), BTreeSet::new());
        let schema = Shell::new(&[]).run(["schema"]).document();
        for command in schema["commands"]["commands"].as_array().expect("commands") {
            commands.insert(format!("pixir {}", command["name"].as_str().expect("a name")));
        }
        collect_flags(&schema["commands"], &mut flags);
        Presented { slash, flags, commands, keys: ["Esc", "Shift+", "Ctrl+", "Alt+", "Enter", "F1"] }
    }

    /// The words of a Presenter in a text.
    fn in_text<'a>(&'a self, text: &str) -> Vec<&'a str> {
        let words = self.slash.iter().chain(&self.flags).chain(&self.commands).map(String::as_str);
        words.chain(self.keys).filter(|word| contains_word(text, word)).collect()
    }
}

fn collect_flags(command: &Value, flags: &mut BTreeSet<String>) {
    let args = command["args"].as_array().into_iter().flatten().filter_map(|arg| arg["name"].as_str());
    flags.extend(args.filter(|name| name.starts_with("--")).map(str::to_owned));
    command["commands"].as_array().into_iter().flatten().for_each(|it| collect_flags(it, flags));
}

/// Whether the text contains the word by itself. `src/tree`, `/trees` and `</tree>` do not contain `/tree`.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '<');
        let before = text[..at].chars().next_back().is_none_or(|c| !joins(c));
        let after = text[at + word.len()..].chars().next();
        before && (word.ends_with('+') || after.is_none_or(|c| !joins(c) || c == '.'))
    })
}

/// Every string literal of the code that ships; attributes and doc comments are not among them.
fn literals(tokens: TokenStream, found: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(it) if it.as_char() == '#' => {
                tokens.next_if(|it| matches!(it, TokenTree::Punct(it) if it.as_char() == '!'));
                let attribute = tokens.next_if(|it| matches!(it, TokenTree::Group(_)));
                if attribute.is_some_and(|it| it.to_string().replace(' ', "") == "[cfg(test)]") {
                    skip_item(&mut tokens);
                }
            }
            TokenTree::Group(it) => literals(it.stream(), found),
            TokenTree::Literal(it) => {
                let text = it.to_string();
                if text.contains('"') {
                    // A line break separates words.
                    found.push(text.replace("\\n", " ").replace("\\t", " "));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

fn skip_item(tokens: &mut impl Iterator<Item = TokenTree>) {
    tokens.find(|token| match token {
        TokenTree::Group(it) => it.delimiter() == Delimiter::Brace,
        TokenTree::Punct(it) => it.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    });
}

fn literals_of(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    literals(TokenStream::from_str(source).expect("a source is Rust"), &mut found);
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() {
                return sources(&path);
            }
            let is_source = path.extension().is_some_and(|it| it == "rs");
            let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).expect("a source is text"));
            is_source.then(|| read(path)).into_iter().collect()
        })
        .collect()
}

#[test]
fn no_string_of_the_core_names_a_slash_command_a_flag_or_a_key() {
    let presented = Presented::gather();
    assert!(
        presented.slash.len() > 20 && presented.flags.len() > 30 && presented.commands.len() > 10,
        "tables are read"
    );
    let core = root().join("core");
    let mut wrong = Vec::new();
    let mut unused: BTreeSet<&str> = ALLOWED.iter().map(|(file, ..)| *file).collect();
    for (path, source) in sources(&core) {
        let name = path.strip_prefix(&core).expect("inside").display().to_string();
        let allowed = ALLOWED.iter().find(|(file, ..)| name == *file);
        for literal in literals_of(&source) {
            for word in presented.in_text(&literal) {
                match allowed {
                    Some((file, words, _)) if words.contains(&word) => {
                        unused.remove(file);
                    }
                    Some(_) | None => wrong.push(format!("core/{name}: {word} in {literal}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "use a Remedy, which each Presenter words:\n{}", wrong.join("\n"));
    assert!(unused.is_empty(), "these exceptions are not needed: {unused:?}");
}

#[test]
fn the_scan_sees_a_bad_string_and_no_comment_attribute_or_test() {
    let presented = Presented::gather();
    let source = r####"
        /// Esc and `/tree` may stand in a comment.
        #[expect(dead_code, reason = "see /help")]
        fn shipped() { say(format!("try /tree, or --model {name}"), r#"press "Esc" or Shift+Tab"#, b"pixir resume ID"); }
        const FINE: &str = "src/tree, /models?limit=1, git --no-pager, enter a name, Escape";
        #[cfg(test)]
        mod tests { const ASSERTED: &str = "/undo"; }
        const AFTER: &str = "/redo";
    "####;
    let found: Vec<&str> = literals_of(source).iter().flat_map(|it| presented.in_text(it)).collect();
    assert_eq!(found, ["/tree", "--model", "Esc", "Shift+", "pixir resume", "/redo"]);
}

#[test]
fn every_error_code_is_produced_or_reserved() {
    let folders = ["core", "src", "ui/src"];
    let sources: Vec<_> = folders.iter().flat_map(|folder| sources(&root().join(folder))).collect();
    // The table of codes and the table of their exit codes name every code; neither produces an error.
    let tables = ["protocol/src/error.rs", "src/output.rs"];
    let shipped = sources.iter().filter(|(path, _)| !tables.iter().any(|table| path.ends_with(table)));
    let shipped: Vec<&str> = shipped.map(|(_, text)| text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)).collect();
    for code in Code::ALL {
        let name = format!("Code::{code:?}");
        let is_produced = shipped.iter().any(|text| {
            text.match_indices(&name).any(|(at, _)| {
                let is_compared = text[..at].ends_with("== ") || text[..at].ends_with("!= ");
                !is_compared && !text[at + name.len()..].starts_with(char::is_alphanumeric)
            })
        });
        assert_ne!(is_produced, Code::RESERVED.contains(code), "{}: produced xor reserved", code.name());
    }
}

/// Phrases that make a reader look for the actor or the noun, and how many of them are left. The number may only become
/// smaller: who mends one lowers it here.
const PUZZLES: [(&str, &[&str], &[&str], usize); 5] = [
    ("a person without a name", &["nobody", "somebody", "whoever"], &[], 0),
    ("an idiom", &["becomes of", "without a word", "of no use"], &[], 1),
    ("`is no` with a noun", &["is no", "are no"], &["longer", "more", "one"], 285),
    ("`stands` for a place", &["stands for", "stands there", "stands in", "stands behind"], &[], 93),
    (
        "a passive without an actor",
        &["is told", "are told", "is said", "are said", "is looked at", "are looked at"],
        &[],
        68,
    ),
];

/// How often one of the phrases stands in a line as words, and not before one of the exceptions.
fn puzzles_in(line: &str, phrases: &[&str], but_before: &[&str]) -> usize {
    let line = line.to_lowercase();
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let of_phrase = |phrase: &&str| {
        let found = line.match_indices(*phrase).filter(|(at, _)| {
            let (before, behind) = (&line[..*at], &line[at + phrase.len()..]);
            let next = behind.trim_start();
            let is_excepted = but_before.iter().any(|it| next.starts_with(it));
            // "is no" needs a noun.
            let is_cut = !but_before.is_empty() && !is_word(next.chars().next());
            !is_word(before.chars().next_back()) && !is_word(behind.chars().next()) && !is_excepted && !is_cut
        });
        found.count()
    };
    phrases.iter().map(of_phrase).sum()
}

#[test]
fn sentences_that_puzzle_become_fewer() {
    let folders = ["core", "src", "ui/src"];
    let sources: Vec<_> = folders.iter().flat_map(|folder| sources(&root().join(folder))).collect();
    for (what, phrases, but_before, left) in PUZZLES {
        let lines = sources.iter().flat_map(|(path, text)| text.lines().map(move |line| (path, line)));
        let found: Vec<String> = lines
            .filter(|(_, line)| puzzles_in(line, phrases, but_before) > 0)
            .map(|(path, line)| format!("{}: {}", path.display(), line.trim()))
            .collect();
        assert!(
            found.len() <= left,
            "{what}: {} lines, at most {left}. Name the actor and use the noun:\n{}",
            found.len(),
            found.join("\n")
        );
        assert!(found.len() == left, "{what}: only {} lines are left; write that number into PUZZLES", found.len());
    }
}

#[test]
fn the_scan_for_puzzles_sees_words_and_exceptions() {
    assert_eq!(puzzles_in("Nobody, or somebody else", &["nobody", "somebody"], &[]), 2);
    assert_eq!(puzzles_in("the antibody_nobody1", &["nobody"], &[]), 0);
    let but = ["longer", "more", "one"];
    assert_eq!(puzzles_in("it is no file, this is no longer one, and there is no.", &["is no"], &but), 1);
}
