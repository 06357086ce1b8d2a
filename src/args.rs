//! The options that all commands share. Help, `pixir schema` and completions are made from them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand as _, ValueEnum};

use crate::commands::Command;

mod flags; // flags that only set a setting
mod heeded; // which command takes which options and formats
mod peers; // flags of other programs, and ours
mod reject; // errors of the parser

use flags::SettingFlags;
pub(crate) use heeded::{check, formats, spelled_out, whole};
pub(crate) use reject::reject;

/// A terminal coding assistant
#[derive(Debug, Parser)]
#[command(
    name = "pixir",
    version,
    max_term_width = 100,
    disable_help_subcommand = false,
    subcommand_negates_reqs = true
)]
#[command(after_help = "Examples:
  pixir                                 open the terminal interface in this folder
  pixir \"why does the build fail?\"      open it and send this prompt
  pixir demo                            see it work, without a key or a network
  pixir -p --json \"summarise\"           run one turn and print one JSON document
  git diff | pixir -p \"review this\"     the same, with a document from stdin
  pixir resume --last                   continue the latest session")]
pub(crate) struct Args {
    /// First prompt; without one, the terminal interface opens with an empty composer. - is the text on stdin
    pub(crate) prompt: Option<String>,

    /// Continue the latest session of this workspace; the same as `pixir resume --last`
    #[arg(long = "continue", short = 'c')]
    pub(crate) goes_on: bool,

    #[command(flatten)]
    pub(crate) run: RunOptions,

    #[command(flatten)]
    pub(crate) output: OutputOptions,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Parses the command line.
///
/// # Errors
/// Those of the parser; also help and the version, which are to be printed.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let mut words = std::env::args_os().skip(1);
    // The version alone needs no table of all arguments, which is most of the work of such a start.
    if let (Some("--version" | "-V"), None) = (words.next().as_ref().and_then(|word| word.to_str()), words.next()) {
        let only_version = clap::Command::new("pixir").version(env!("CARGO_PKG_VERSION"));
        only_version.try_get_matches()?;
    }
    // So is the table of all commands, for a start that names none. What does not fit is told with all of them.
    let names_command = |word: &OsStr| word.to_str().is_some_and(|word| word == HELP || Command::has_subcommand(word));
    if !std::env::args_os().skip(1).any(|word| names_command(&word))
        && let Ok(WithoutCommand { prompt, goes_on, run, output }) = WithoutCommand::try_parse()
        // Only lists have rows; what is wrong with it is told with all commands.
        && output.format != Some(Format::Tsv)
        // A run without a screen takes no option of the screen.
        && !(run.headless && (run.theme.is_some() || run.inline))
    {
        return Ok(Args { prompt, goes_on, run, output, command: None });
    }
    let given = for_help(std::env::args_os().collect());
    let mut matches = heeded::with_own_options(Args::command(), Some(&given)).try_get_matches_from(given)?;
    check(&matches)?;
    Args::from_arg_matches_mut(&mut matches)
}

/// The parser's own `help` takes names alone; [`reject()`] reads the format from the words that were given.
fn for_help(given: Vec<OsString>) -> Vec<OsString> {
    if given.get(1).is_none_or(|word| word != HELP) {
        return given;
    }
    let mut names = Vec::new();
    let mut words = given.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--json") => {}
            Some("--format" | "--error-format") => drop(words.next()),
            Some(it) if it.starts_with("--format=") || it.starts_with("--error-format=") => {}
            Some(_) | None => names.push(word),
        }
    }
    names
}

/// The command that the parser itself adds.
const HELP: &str = "help";

/// The arguments of a start that names no command. Where it is accepted, [`Args`] reads the same.
#[derive(Debug, Parser)]
#[command(name = "pixir")]
struct WithoutCommand {
    prompt: Option<String>,

    #[arg(long = "continue", short = 'c')]
    goes_on: bool,

    #[command(flatten)]
    run: RunOptions,

    #[command(flatten)]
    output: OutputOptions,
}

/// How a Session runs.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RunOptions {
    /// Run one turn without the terminal interface, then exit. Text on stdin is the prompt, or joined to it
    #[arg(long, short = 'p', visible_alias = "print", global = true)]
    pub(crate) headless: bool,
    /// What a headless run reads from stdin: one prompt as text, or Inputs of a program, one JSON object per line
    #[arg(long, global = true, value_enum, default_value = "text")]
    pub(crate) input: InputFormat,
    /// Model to use, as NAME or PROVIDER/NAME
    #[arg(long, short = 'm', global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Provider to use, or script:FILE for a scripted model
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Wire format of the server at --base-url: responses, chat or anthropic
    #[arg(long, global = true, value_name = "D", value_parser = ["responses", "chat", "anthropic"])]
    pub(crate) dialect: Option<String>,
    /// Server to use, such as http://127.0.0.1:8080/v1; PIXIR_API_KEY holds its key
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Reasoning effort: none, minimal, low, medium, high, xhigh or max
    #[arg(long, global = true, value_name = "LEVEL", value_parser = ["none", "minimal", "low", "medium", "high", "xhigh", "max"])]
    pub(crate) effort: Option<String>,
    /// Confine programs by at most: ns (namespaces), ll (Landlock) or none (then each asks)
    #[arg(long, global = true, value_name = "TIER", value_parser = ["ns", "ll", "none"])]
    pub(crate) sandbox: Option<String>,
    /// Record the model's answers in a new FILE; --provider script:FILE replays them
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Permission mode: read-only, ask or auto
    #[arg(long, global = true, value_name = "MODE", value_parser = ["read-only", "ask", "auto"])]
    pub(crate) mode: Option<String>,
    /// Allow changes without asking; the same as --mode auto
    #[arg(long, global = true, conflicts_with = "mode")]
    pub(crate) write: bool,
    /// Rule for this run: what it names runs without asking, such as 'bash(cargo test *)', and a headless run refuses what none names; repeatable
    #[arg(long, global = true, value_name = "RULE")]
    pub(crate) allow: Vec<String>,
    /// Let tools and programs read this folder outside the workspace, for this run; FOLDER:rw works on it as on the workspace, for this session; repeatable
    #[arg(long, global = true, value_name = "FOLDER[:rw]")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Setting for this run, such as limits.max_rounds=20; repeatable, stronger than environment and files
    #[arg(long = "config", global = true, value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Trust this workspace for this run: its configuration, skills, prompt templates, roles, workflows and MCP servers are in force
    #[arg(long, global = true)]
    pub(crate) trust_workspace: bool,
    /// Tools to offer the model: typed, run, both or none
    #[arg(long, global = true, value_name = "TOOLSET", value_parser = ["typed", "run", "both", "none"])]
    pub(crate) toolset: Option<String>,
    /// Folder to work in, instead of the current one
    #[arg(long, short = 'C', global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Role of the session, such as plan, which changes nothing; `pixir agents list` shows them
    #[arg(long, global = true, value_name = "ROLE")]
    pub(crate) agent: Option<String>,
    /// Skill to activate before the prompt
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// Image or text file to send with the prompt; repeatable
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Instructions for the model, behind those of the context files
    #[arg(long, global = true, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,
    /// JSON Schema that the answer of a headless run must fit; after a second answer that does not, it exits with 14
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,
    /// Write the answer of a headless run to FILE as well, as a whole or not at all
    #[arg(long = "answer-file", short = 'o', global = true, value_name = "FILE")]
    pub(crate) answer_file: Option<PathBuf>,
    /// Id of the new session, such as 20261121T203012-0a1b2c
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) session_id: Option<String>,
    /// Delete the new session when the headless run ends
    #[arg(long, global = true)]
    pub(crate) ephemeral: bool,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    /// Show what would change, and change nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Never wait for an answer from the user; a call that needs approval is refused
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Theme of the terminal interface
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// Print the conversation into the terminal's scrollback instead of using the whole screen
    #[arg(long, global = true)]
    pub(crate) inline: bool,
}

/// How results and errors are printed.
#[derive(Debug, Clone, Default, ClapArgs)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputOptions {
    /// Format of the result on stdout
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<Format>,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Format of JSON errors on stderr
    #[arg(long, global = true, value_enum, default_value = "envelope")]
    pub(crate) error_format: ErrorFormat,
}

impl OutputOptions {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format.unwrap_or_default() }
    }

    /// A program that sends its Inputs as lines gets lines.
    pub(crate) fn answering(self, input: InputFormat) -> OutputOptions {
        match (input, self.json, self.format) {
            (InputFormat::Jsonl, false, None) => OutputOptions { format: Some(Format::Jsonl), ..self },
            (InputFormat::Text | InputFormat::Jsonl, ..) => self,
        }
    }
}

/// Formats of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    #[default]
    Plain,
    /// One JSON document
    Json,
    /// One JSON object per line: the events of a run and then its result, the rows of a list, or the document
    Jsonl,
    /// Tab-separated lines below a header, for lists
    Tsv,
}

/// What a headless run reads from stdin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// One prompt
    #[default]
    Text,
    /// Inputs, one JSON object per line; answers and events are printed as --format jsonl does
    Jsonl,
}

/// Formats of a JSON error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// `error` is an object with kind, message and details
    #[default]
    Envelope,
    /// `error` is the message
    Flat,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Broken build: a command that `names_command` does not find becomes a prompt.
    #[test]
    fn every_command_is_found_by_its_name() {
        let mut all = whole();
        all.build();
        for command in all.get_subcommands() {
            for name in std::iter::once(command.get_name()).chain(command.get_all_aliases()) {
                assert!(name == HELP || Command::has_subcommand(name), "{name}");
            }
        }
    }

    /// Broken build: a flag or a command that neither the help nor the schema shows.
    #[test]
    fn no_flag_and_no_command_is_hidden() {
        fn hidden(command: &clap::Command, path: &str, all: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let names = arg.get_all_aliases().unwrap_or_default().len();
                let shown = arg.get_visible_aliases().unwrap_or_default().len();
                if arg.is_hide_set() || names != shown {
                    all.push(format!("{path} {}", arg.get_id()));
                }
            }
            for below in command.get_subcommands() {
                let path = format!("{path} {}", below.get_name());
                if below.is_hide_set() {
                    all.push(path.clone());
                }
                hidden(below, &path, all);
            }
        }
        let mut all = Vec::new();
        hidden(&Args::command(), "pixir", &mut all);
        assert_eq!(all, [""; 0]);
    }

    /// Broken build: an option is in one of the two tables only.
    #[test]
    fn a_start_without_a_command_has_the_options_of_all_starts() {
        let options = |command: clap::Command| {
            let mut names: Vec<String> = command.get_arguments().map(|it| it.get_id().to_string()).collect();
            names.sort();
            names
        };
        let version = |names: Vec<String>| names.into_iter().filter(|name| name != "version").collect::<Vec<_>>();
        assert_eq!(options(WithoutCommand::command()), version(options(Args::command())));
        let words = ["pixir", "--headless", "--json", "--allow", "bash(ls)", "--max-cost", "$1", "--", "why -x"];
        let short = WithoutCommand::try_parse_from(words).expect("it fits");
        let mut matches = whole().try_get_matches_from(words).expect("it fits");
        let long = Args::from_arg_matches_mut(&mut matches).expect("it fits");
        assert_eq!(
            format!("{:?} {:?} {:?}", short.prompt, short.run, short.output),
            format!("{:?} {:?} {:?}", long.prompt, long.run, long.output)
        );
    }
}
