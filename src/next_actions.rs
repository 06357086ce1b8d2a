//! The commands that make sense after an error. Each is one line that a shell runs; words in capitals are placeholders.
//!
//! They and the text in `remediation` are made of the same parts of the remedy.

use clap::{Arg, ArgAction, Command};
use pixir_core::Error;
use pixir_core::remedy::{Part, Remedy};

use crate::args::{formats, whole};
use crate::remedies;

/// A longer word of a call is a prompt, and stands as `PROMPT`.
const LONGEST: usize = 200;

/// Pairs of which a call takes one.
const EITHER: [(&str, &str); 2] = [("--write", "--mode"), ("--format", "--json")];

/// The commands after an error of this process.
pub(crate) fn after(error: &Error) -> Vec<String> {
    let given: Vec<String> = std::env::args_os().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    let input = error.details.get("input").and_then(|it| it.as_str());
    let root = whole();
    let call = Call { root: &root, given: &given, input: input.unwrap_or_default() };
    let all = call.actions(&remedies::parts(&error.remedy));
    if all.is_empty() { vec![format!("{} --help", call.command().1)] } else { all }
}

/// The commands of a remedy for a Session.
pub(crate) fn for_session(remedy: &Remedy, id: &str) -> Vec<String> {
    let given = ["resume".to_owned(), id.to_owned()];
    Call { root: &whole(), given: &given, input: "" }.actions(&remedies::parts(remedy))
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
    /// The commands of the parts, and this call again with their flags and names.
    fn actions(&self, parts: &[Part]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for part in parts {
            let action = match part {
                Part::Text(_) => None,
                Part::Command(line) => Some(line.replace('…', "VALUE")),
                Part::Flag(flag) => self.with_flag(flag),
                Part::Again(_) => Some(self.again(self.given.to_vec())),
                Part::Nearest(name) => self.corrected(name),
            };
            all.extend(action.filter(|it| !all.contains(it)));
        }
        all
    }

    /// This call with the nearest word instead of the wrong one.
    fn corrected(&self, near: &str) -> Option<String> {
        if self.input.is_empty() {
            return None;
        }
        let at = self.given.iter().position(|word| self.is_input(word))?;
        let mut words = self.given.to_vec();
        words[at] = words[at].replacen(self.input, near, 1);
        Some(self.again(words))
    }

    /// Whether this word has the wrong one: alone, as one side of `--flag=value` and `KEY=VALUE`, or as a slash command.
    fn is_input(&self, word: &str) -> bool {
        word == self.input
            || word.split_once('=').is_some_and(|(name, value)| name == self.input || value == self.input)
            || word.strip_prefix('/').is_some_and(|line| line.split_whitespace().next() == Some(self.input))
    }

    /// This call again with a flag, if its command has it.
    fn with_flag(&self, flag: &str) -> Option<String> {
        let (flag, value) = flag.split_once(' ').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        let arg = self.arg(self.command().0, flag).filter(|it| !it.is_hide_set())?;
        // A flag that can be given several times keeps the values that it has.
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let mut added = vec![flag.to_owned()];
        added.extend(value.map(unquoted));
        let other = EITHER.iter().find_map(|(one, other)| match flag {
            it if it == *one => Some(*other),
            it if it == *other => Some(*one),
            _ => None,
        });
        let mut words = Vec::new();
        let mut given = self.given.iter().peekable();
        while let Some(word) = given.next() {
            let name = word.split('=').next().unwrap_or(word);
            let is_wrong = self.input.starts_with('-') && self.is_input(word);
            if is_wrong || (name == flag && !is_list) || Some(name) == other {
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
        Some(self.again(words))
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

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The word that [`quoted`] made this of.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
        Some(inner) => inner.replace(r"'\''", "'"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pixir_core::event::{Mode, Toolset};
    use pixir_core::remedy::{Limit, McpNeed, ModelNeed, ServerSecret, Sessions};

    use super::*;

    fn named(given: &[&str], input: &str, remedy: &Remedy) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
        Call { root: &whole(), given: &given, input }.actions(&remedies::parts(remedy))
    }

    /// A repository can name its servers.
    ///
    /// Broken build: a name that has the signs of a shell stands in the command as it is.
    #[test]
    fn a_name_is_one_word_for_the_shell() {
        let test = Remedy::mcp("x; touch made", McpNeed::Test);
        assert_eq!(named(&["-p", "x"], "", &test), ["pixir mcp test 'x; touch made'"]);
        let set = Remedy::SetVariable { name: "A$(touch made)".into() };
        assert_eq!(named(&["-p", "x"], "", &set), ["export 'A$(touch made)'=VALUE"]);
    }

    /// Broken build: an action is looked for in the words.
    #[test]
    fn what_words_say_is_no_action() {
        let words = "try again, did you mean list? pixir doctor, or --write";
        assert_eq!(named(&["-p", "x"], "x", &words.into()), [""; 0]);
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
            (Remedy::SetMode { mode: Mode::Ask }, &["pixir -p x --write", "pixir -p x --allow RULE"]),
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
            assert_eq!(named(&["-p", "x"], "", &remedy), expected, "{remedy:?}");
        }
    }

    #[test]
    fn a_flag_is_the_failed_call_with_it() {
        let call = &["-p", "--json", "fix it"];
        let rounds = Remedy::RaiseLimit { limit: Limit::Rounds };
        assert_eq!(named(call, "", &rounds), ["pixir -p --json 'fix it' --max-rounds N"]);
        let limited = &["-p", "--max-rounds=1", "--", "-5 is wrong"];
        assert_eq!(named(limited, "", &rounds), ["pixir -p --max-rounds N -- '-5 is wrong'"]);
        assert_eq!(named(&["-p", "--mode", "ask", "x"], "", &Remedy::flag("--write")), ["pixir -p x --write"]);
        assert_eq!(named(&["sessions", "list"], "", &Remedy::flag("--write")), [""; 0], "it has no such flag");
        let formats = Remedy::flag("--format json").and_text(", or ").and_flag("--format jsonl");
        assert_eq!(
            named(&["--output-format", "json", "-p", "x"], "--output-format", &formats),
            ["pixir -p x --format json", "pixir -p x --format jsonl"]
        );
        assert_eq!(named(&["--yolo", "x"], "--yolo", &Remedy::flag("--write")), ["pixir x --write"]);
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
        let limit = Remedy::nearest("--limit");
        assert_eq!(named(&["sessions", "list", "--limt=3"], "--limt", &limit), ["pixir sessions list --limit=3"]);
        assert_eq!(named(&["sesions", "list"], "sesions", &Remedy::nearest("sessions")), ["pixir sessions list"]);
        assert_eq!(named(&["skills", "show", "lnt"], "lnt", &Remedy::nearest("lint")), ["pixir skills show lint"]);
        assert_eq!(named(&["-p", "/lnt all of it"], "lnt", &Remedy::nearest("lint")), ["pixir -p '/lint all of it'"]);
    }
}
