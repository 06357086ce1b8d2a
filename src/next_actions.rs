//! The commands that make sense after an error. Each is one line that a shell runs; words in capitals are placeholders.
//!
//! They are read from the text of the remedy, so that `next_actions` and `remediation` name the same commands.

use clap::{Arg, ArgAction, Command};
use pixir_core::Error;
use pixir_core::remedy::Remedy;

use crate::args::{formats, whole};
use crate::remedies;

/// A longer word of a call is a prompt, and stands as `PROMPT`.
const LONGEST: usize = 200;

/// Pairs of which a call takes one.
const EITHER: [(&str, &str); 2] = [("--write", "--mode"), ("--format", "--json")];

/// Words that a sentence goes on with behind a command.
const SENTENCE: [&str; 14] =
    ["a", "again", "and", "as", "for", "if", "in", "is", "or", "that", "the", "to", "which", "with"];

/// The commands after an error of this process.
pub(crate) fn after(error: &Error) -> Vec<String> {
    let given: Vec<String> = std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    let input = error.details.get("input").and_then(|it| it.as_str());
    let root = whole();
    let call = Call { root: &root, given: &given, input: input.unwrap_or_default() };
    let all = call.named_in(&remedies::word(&error.remedy));
    if all.is_empty() { vec![format!("{} --help", call.command().1)] } else { all }
}

/// The commands of a remedy for a Session.
pub(crate) fn for_session(remedy: &Remedy, id: &str) -> Vec<String> {
    let given = ["resume".to_owned(), id.to_owned()];
    Call { root: &whole(), given: &given, input: "" }.named_in(&remedies::word(remedy))
}

/// A call of pixir that failed.
struct Call<'a> {
    root: &'a Command,
    /// Its words, without the name of the program.
    given: &'a [String],
    /// The word that was wrong; empty if no word was.
    input: &'a str,
}

impl<'a> Call<'a> {
    /// The commands that a text names, and this call again with the flags that it names.
    fn named_in(&self, text: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        if text.contains("try again") {
            all.push(self.again(self.given.to_vec()));
        }
        let mut at = 0;
        if let Some((_, asked)) = text.split_once("did you mean ")
            && let Some((near, rest)) = asked.split_once('?')
            && let Some(corrected) = self.corrected(near.trim_matches('`'))
        {
            all.push(corrected);
            at = text.len() - rest.len();
        }
        // What to leave out or to check is no command.
        let adds = !["leave out", "check --", "without --"].iter().any(|it| text.contains(it));
        while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
            let starts_word = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "(`'".contains(c));
            let found = match rest {
                _ if !starts_word => None,
                _ if rest == "pixir" || rest.starts_with("pixir ") => self.command_at(rest),
                _ if rest.starts_with("export ") => exported(rest),
                _ if rest.starts_with('-') && adds => self.flag_at(rest),
                _ => None,
            };
            match found {
                Some((command, end)) => {
                    all.push(command);
                    at += end;
                }
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
        let mut once: Vec<String> = Vec::new();
        for command in all {
            if !once.contains(&command) {
                once.push(command);
            }
        }
        once
    }

    /// This call with the nearest word instead of the wrong one.
    fn corrected(&self, near: &str) -> Option<String> {
        // Of a command, the last word is the nearest.
        let near = near.strip_prefix("pixir ").map_or(near, |path| path.rsplit(' ').next().unwrap_or(path));
        if near.ends_with('…') || near.contains(' ') || self.input.is_empty() {
            return None;
        }
        let at = self.given.iter().position(|word| self.is_input(word))?;
        let mut words = self.given.to_vec();
        words[at] = words[at].replacen(self.input, near, 1);
        Some(self.again(words))
    }

    /// Whether this word has the wrong one: alone, or as one side of `--flag=value` and `KEY=VALUE`.
    fn is_input(&self, word: &str) -> bool {
        word == self.input
            || word.split_once('=').is_some_and(|(name, value)| name == self.input || value == self.input)
    }

    /// The command that a text begins with, as far as the parser knows it, and where it ends.
    fn command_at(&self, text: &str) -> Option<(String, usize)> {
        let mut words = vec!["pixir".to_owned()];
        let (mut at, mut command) = ("pixir".len(), self.root);
        // The value that the last flag still needs.
        let mut value: Option<String> = None;
        let (mut positionals, mut is_literal) = (0, false);
        while let Some(next) = Word::at(text, at) {
            let is_sentence = SENTENCE.contains(&next.text) || next.text.starts_with('#');
            let room = command.get_positionals().any(|it| it.get_num_args().is_some_and(|n| n.max_values() > 1))
                || positionals < command.get_positionals().count();
            let is_placeholder = next.text.chars().all(|c| c.is_ascii_uppercase() || "_/=".contains(c));
            if is_literal || (value.is_some() && !is_sentence && !next.text.starts_with('-')) {
                value = None;
            } else if next.text == "--" {
                is_literal = true;
            } else if next.text == "--help" {
                // The parser adds it only when it parses.
            } else if next.text.starts_with('-') {
                let Some(arg) = self.arg(command, next.text) else { break };
                words.extend(value.take());
                value = takes_value(arg).then(|| placeholder(arg));
            } else if let Some(below) = command.find_subcommand(next.text) {
                command = below;
            } else if room && (next.is_quoted || is_placeholder || (!std::ptr::eq(command, self.root) && !is_sentence))
            {
                positionals += 1;
            } else {
                break;
            }
            words.push(next.text.replace('…', if next.is_quoted { "PROMPT" } else { "VALUE" }));
            at = next.end;
            if next.is_last {
                break;
            }
        }
        words.extend(value);
        // `that pixir wrote`, `as pixir does`: the program, and no command.
        if words.len() == 1 && Word::at(text, at).is_some_and(|it| at == "pixir".len() && !it.text.starts_with('#')) {
            return None;
        }
        if command.is_subcommand_required_set() || (command.has_subcommands() && !std::ptr::eq(command, self.root)) {
            words.push("--help".to_owned());
        }
        Some((words.join(" "), at))
    }

    /// This call again with the flag that a text begins with, and where that ends.
    fn flag_at(&self, text: &str) -> Option<(String, usize)> {
        let flag = Word::at(text, 0)?;
        let arg = self.arg(self.command().0, flag.text).filter(|it| it.get_id() != "help")?;
        let mut end = flag.end;
        let mut added = vec![flag.text.to_owned()];
        if takes_value(arg) {
            let value = Word::at(text, end).filter(|it| !flag.is_last && !SENTENCE.contains(&it.text));
            end = value.as_ref().map_or(end, |it| it.end);
            added.push(value.map_or_else(|| placeholder(arg), |it| it.text.to_owned()));
        }
        let other = EITHER.iter().find_map(|(one, other)| match flag.text {
            it if it == *one => Some(*other),
            it if it == *other => Some(*one),
            _ => None,
        });
        let mut words = Vec::new();
        let mut given = self.given.iter().peekable();
        while let Some(word) = given.next() {
            let name = word.split('=').next().unwrap_or(word);
            let is_wrong = self.input.starts_with('-') && self.is_input(word);
            if is_wrong || name == flag.text || Some(name) == other {
                let had_value =
                    if is_wrong { takes_value(arg) } else { self.arg(self.root, name).is_some_and(takes_value) };
                if had_value && !word.contains('=') {
                    given.next_if(|it| !it.starts_with('-'));
                }
                continue;
            }
            words.push(word.clone());
        }
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, added);
        Some((self.again(words), end))
    }

    /// The command that this call named, and its path.
    fn command(&self) -> (&'a Command, String) {
        let (mut command, mut path) = (self.root, "pixir".to_owned());
        let mut words = self.given.iter().take_while(|word| *word != "--");
        while let Some(word) = words.next() {
            if word.starts_with('-') {
                // The value of a flag names no command.
                if !word.contains('=') && self.arg(command, word).is_some_and(takes_value) {
                    words.next();
                }
                continue;
            }
            let Some(below) = command.find_subcommand(word) else { break };
            command = below;
            path = format!("{path} {word}");
        }
        (command, path)
    }

    /// The argument that a flag names, of this command or of all.
    fn arg(&self, command: &'a Command, flag: &str) -> Option<&'a Arg> {
        let name = flag.split('=').next().unwrap_or(flag);
        let is_it = |arg: &&Arg| match name.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some_and(|letter| name.strip_prefix('-') == Some(letter.to_string().as_str())),
        };
        let own = command.get_arguments().find(is_it);
        own.or_else(|| self.root.get_arguments().filter(|it| it.is_global_set()).find(is_it))
    }

    /// The words as a line for a shell.
    fn again(&self, mut words: Vec<String>) -> String {
        let (_, path) = self.command();
        if formats(path.strip_prefix("pixir ").unwrap_or_default()) == ["plain"] {
            words.retain(|word| word != "--json");
        }
        let quoted = words.iter().map(|word| if word.len() > LONGEST { "PROMPT".to_owned() } else { quoted(word) });
        std::iter::once("pixir".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
    }
}

/// A word of a text.
struct Word<'a> {
    text: &'a str,
    is_quoted: bool,
    /// Where the text goes on.
    end: usize,
    /// Whether punctuation ends the command behind it.
    is_last: bool,
}

impl<'a> Word<'a> {
    fn at(text: &'a str, at: usize) -> Option<Word<'a>> {
        let rest = text.get(at..)?;
        let start = at + (rest.len() - rest.trim_start().len());
        let rest = text.get(start..).filter(|it| !it.is_empty())?;
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let whole = match quote.and_then(|c| rest[1..].find(c)) {
            Some(close) => &rest[..close + 2],
            None => rest.split_whitespace().next()?,
        };
        let word = whole.trim_end_matches([',', ';', ')', '?', ':', '`']);
        let behind = text.get(start + whole.len()..).unwrap_or_default();
        let is_last = word.len() < whole.len() || behind.starts_with([',', ';', ')', '?']);
        Some(Word { text: word, is_quoted: quote.is_some(), end: start + word.len(), is_last })
            .filter(|it| !it.text.is_empty())
    }
}

/// `export NAME=VALUE`, and where it ends.
fn exported(text: &str) -> Option<(String, usize)> {
    let word = Word::at(text, "export".len())?;
    word.text.contains('=').then(|| (format!("export {}", word.text.replace('…', "VALUE")), word.end))
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn placeholder(arg: &Arg) -> String {
    arg.get_value_names().and_then(|names| names.first()).map_or("VALUE".to_owned(), ToString::to_string)
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use pixir_core::event::{Mode, Toolset};
    use pixir_core::remedy::{Limit, McpNeed, ModelNeed, ServerSecret, Sessions};

    use super::*;

    fn named(given: &[&str], input: &str, text: &str) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
        Call { root: &whole(), given: &given, input }.named_in(text)
    }

    #[test]
    fn commands_are_read_from_sentences() {
        for (text, expected) in [
            ("pixir  # starts a new session", &["pixir"][..]),
            ("check the state folder (pixir doctor shows where it is)", &["pixir doctor"]),
            (
                "export OPENAI_API_KEY=…, or pixir auth login openai",
                &["export OPENAI_API_KEY=VALUE", "pixir auth login openai"],
            ),
            ("the stored key: pixir auth login openai with another", &["pixir auth login openai"]),
            ("pixir mcp accept fs, which shows what changed, and asks", &["pixir mcp accept fs"]),
            ("pixir mcp add --help", &["pixir mcp add --help"]),
            ("pixir mcp add NAME -- COMMAND", &["pixir mcp add NAME -- COMMAND"]),
            ("pixir doctr (to send the word: pixir -- doctr)", &["pixir -- doctr"]),
            ("the part of the window at which pixir compacts", &[]),
            ("use pixir agents, which work in copies", &["pixir agents --help"]),
        ] {
            assert_eq!(named(&[], "", text), expected, "{text}");
        }
    }

    /// Broken build: a command is renamed, and the remedy names the old one: the reader finds its group alone, or nothing.
    #[test]
    fn each_remedy_names_commands_that_the_parser_has() {
        let id = || "20260101T000000-aaaaaa".to_owned();
        let resume = format!("pixir resume {}", id());
        let read_only = format!("pixir resume --read-only {}", id());
        let repair = format!("pixir sessions repair {} --dry-run", id());
        let delete = format!("pixir sessions delete {} --yes", id());
        let fork = format!("pixir fork {}", id());
        let provider = || Some("openai".to_owned());
        let secret = Box::new(ServerSecret { server: "git".into(), variable: "TOKEN".into() });
        for (remedy, expected) in [
            (Remedy::Compact, &["pixir compact"][..]),
            (Remedy::NewSession, &["pixir"]),
            (Remedy::ShowTree, &["pixir tree"]),
            (Remedy::Undo, &["pixir undo"]),
            (Remedy::Redo, &["pixir redo"]),
            (Remedy::ShowRules, &["pixir permissions list"]),
            (Remedy::TrustWorkspace, &["pixir trust", "pixir -p x --trust-workspace"]),
            (Remedy::SetMode { mode: Mode::Auto }, &["pixir -p x --write"]),
            (Remedy::SetMode { mode: Mode::Ask }, &["pixir -p x --write", "pixir -p x --mode ask"]),
            (Remedy::SetToolset { toolset: Toolset::Run }, &["pixir -p x --toolset run"]),
            (Remedy::RaiseLimit { limit: Limit::Deadline }, &["pixir -p x --deadline SECONDS"]),
            (Remedy::RaiseLimit { limit: Limit::Rounds }, &["pixir -p x --max-rounds N"]),
            (Remedy::RaiseLimit { limit: Limit::Tokens }, &["pixir -p x --max-tokens N"]),
            (Remedy::RaiseLimit { limit: Limit::Cost }, &["pixir -p x --max-cost USD"]),
            (Remedy::ShowSkills, &["pixir skills list"]),
            (Remedy::UseSkill { name: "lint".into() }, &["pixir -p x --skill lint"]),
            (Remedy::ListSessions { which: Sessions::Here }, &["pixir sessions list"]),
            (Remedy::ListSessions { which: Sessions::All }, &["pixir sessions list --all"]),
            (Remedy::ListSessions { which: Sessions::Trash }, &["pixir sessions list --trash"]),
            (Remedy::Resume { id: id() }, &[&resume]),
            (Remedy::Fork { id: id() }, &[&fork]),
            (Remedy::OpenReadOnly { id: id() }, &[&read_only]),
            (Remedy::Repair { id: id() }, &[&repair]),
            (Remedy::DeleteSession { id: id() }, &[&delete]),
            (Remedy::ExportSession, &["pixir sessions export ID --to json"]),
            (Remedy::RunInSession, &["pixir --toolset run"]),
            (Remedy::SetWorkspace, &["pixir -p x --workspace DIR"]),
            (Remedy::ChooseModel { need: ModelNeed::Any }, &["pixir -p x --model NAME", "pixir models list"]),
            (Remedy::NameModel { provider: "openai".into() }, &["pixir -p x --model openai/NAME"]),
            (Remedy::SetBaseUrl { url: None }, &["pixir -p x --base-url URL"]),
            (Remedy::CheckEndpoint, &["pixir doctor"]),
            (Remedy::Login { provider: provider() }, &["pixir auth login openai"]),
            (Remedy::SignIn { provider: provider() }, &["pixir auth login openai --device"]),
            (Remedy::SetVariable { name: "OPENAI_API_KEY".into() }, &["export OPENAI_API_KEY=VALUE"]),
            (Remedy::ReplaceVariable { name: "OPENAI_API_KEY".into() }, &["export OPENAI_API_KEY=VALUE"]),
            (Remedy::ReplaceKey { provider: "openai".into() }, &["pixir auth login openai"]),
            (Remedy::mcp("", McpNeed::Add), &["pixir mcp add NAME -- COMMAND"]),
            (Remedy::mcp("git", McpNeed::Test), &["pixir mcp test git"]),
            (Remedy::mcp("git", McpNeed::Accept), &["pixir mcp accept git"]),
            (Remedy::mcp("git", McpNeed::Trust), &["pixir mcp trust git"]),
            (Remedy::StoreSecret(secret), &["export TOKEN=VALUE", "pixir mcp secret git TOKEN"]),
            (Remedy::CheckSetup, &["pixir doctor"]),
            (Remedy::CheckStateFolder, &["pixir doctor"]),
            (Remedy::ShowScriptSchema, &["pixir schema --script"]),
            (Remedy::ShowErrorCodes, &["pixir schema error_codes"]),
            (Remedy::Retry { after_s: Some(3) }, &["pixir -p x"]),
        ] {
            assert_eq!(named(&["-p", "x"], "", &remedies::word(&remedy)), expected, "{remedy:?}");
        }
    }

    #[test]
    fn a_flag_is_the_failed_call_with_it() {
        let call = &["-p", "--json", "fix it"];
        assert_eq!(named(call, "", "more --max-rounds"), ["pixir -p --json 'fix it' --max-rounds N"]);
        let limited = &["-p", "--max-rounds=1", "--", "-5 is wrong"];
        assert_eq!(named(limited, "", "more --max-rounds"), ["pixir -p --max-rounds N -- '-5 is wrong'"]);
        assert_eq!(named(&["-p", "--mode", "ask", "x"], "", "--write"), ["pixir -p x --write"]);
        assert_eq!(named(call, "", "leave out --json, or --format"), [""; 0]);
        let peer = &["--output-format", "json", "-p", "x"];
        assert_eq!(
            named(peer, "--output-format", "use --format json, or --format jsonl for a stream")[0],
            "pixir -p x --format json"
        );
        assert_eq!(named(&["--yolo", "x"], "--yolo", "use --write"), ["pixir x --write"]);
    }

    /// Broken build: the value of a flag counts as a command.
    #[test]
    fn the_command_of_a_call_is_its_own() {
        for (given, path) in [
            (&["-p", "x", "--provider", "demo"][..], "pixir"),
            (&["-m", "status", "sessions", "list", "--limit=1"], "pixir sessions list"),
            (&["resume", "last", "status"], "pixir resume"),
            (&["--", "doctor"], "pixir"),
        ] {
            let given: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(Call { root: &whole(), given: &given, input: "" }.command().1, path, "{given:?}");
        }
    }

    #[test]
    fn a_wrong_word_is_replaced_by_the_nearest() {
        assert_eq!(
            named(&["sessions", "list", "--limt=3"], "--limt", "did you mean --limit?"),
            ["pixir sessions list --limit=3"]
        );
        assert_eq!(named(&["sesions", "list"], "sesions", "did you mean pixir sessions?"), ["pixir sessions list"]);
        assert_eq!(named(&["skills", "show", "lnt"], "lnt", "did you mean lint?"), ["pixir skills show lint"]);
    }
}
