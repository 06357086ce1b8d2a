//! `pixir man`: manual pages, from the definitions of the parser.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Args, Command};
use pixir_core::error::nearest;
use pixir_core::{Code, Error, Remedy, Result};

use super::schema::EXITS;
use crate::args::spelled_out;
use crate::cli::Cli;
use crate::output::chatter;

/// When the interface changed last. A page must have a date.
const DATE: &str = "2026-11-25";
/// The most characters of a line of text; longer ones are hard to compare.
const WIDTH: usize = 78;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Command to print the page of, such as sessions list. Default: pixir
    command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    to: Option<PathBuf>,
}

pub(super) fn run(cli: &Cli, args: &ManArgs) -> Result<u8> {
    let root = spelled_out();
    if let Some(folder) = &args.to {
        let mut pages = Vec::new();
        collect(&root, "pixir", &mut pages);
        if !cli.options.dry_run {
            write(&pages, folder).map_err(|e| {
                let message = format!("write the pages to {}: {e}", folder.display());
                Error::new(Code::WriteFailed, message, "name a folder that can be written")
                    .with("input", folder.display().to_string())
            })?;
        }
        let verb = if cli.options.dry_run { "would write" } else { "wrote" };
        chatter(&format!("{verb} {} pages to {}", pages.len(), folder.display()));
        return Ok(0);
    }
    let (mut command, mut name) = (&root, "pixir".to_owned());
    for word in &args.command {
        command = command.find_subcommand(word).ok_or_else(|| {
            let names = || command.get_subcommands().map(Command::get_name);
            let fix = nearest(word, names()).map_or_else(|| Remedy::command("pixir --help"), Remedy::nearest);
            Error::new(Code::UnknownCommand, format!("there is no command `{}`", word.escape_debug()), fix)
                .with("input", word.as_str())
        })?;
        name = format!("{name} {word}");
    }
    cli.output.bytes(page(command, &name).as_bytes());
    Ok(0)
}

fn write(pages: &[(String, String)], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|(name, page)| std::fs::write(folder.join(format!("{name}.1")), page))
}

/// The pages of a command and of those below it, with their names.
fn collect(command: &Command, name: &str, pages: &mut Vec<(String, String)>) {
    pages.push((name.replace(' ', "-"), page(command, name)));
    for below in command.get_subcommands() {
        collect(below, &format!("{name} {}", below.get_name()), pages);
    }
}

/// One page in the language of man(7); `name` has the words of the command.
fn page(command: &Command, name: &str) -> String {
    let file = name.replace(' ', "-");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut page = Page(format!(
        ".TH {} 1 {DATE} \"pixir {}\" \"User Commands\"\n",
        file.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    ));
    page.section("NAME");
    page.text(&format!("{file} - {about}"));
    page.section("SYNOPSIS");
    let groups = command.get_subcommands().next().is_some();
    let positionals: Vec<String> = command.get_positionals().map(positional).collect();
    let needs = if groups && positionals.is_empty() { " COMMAND" } else { "" };
    page.raw(&format!("{} [OPTIONS]{needs}", bold(name)));
    page.text(&positionals.join(" "));
    page.section("DESCRIPTION");
    page.text(&format!("{about}."));
    let described: Vec<&Arg> = command.get_positionals().collect();
    if !described.is_empty() {
        page.section("ARGUMENTS");
        described.iter().for_each(|arg| page.item(&positional(arg), &help(arg)));
    }
    for heading in [None, Some("Run options"), Some("Output options")] {
        let mut options = command.get_arguments().filter(|it| !it.is_positional() && !it.is_hide_set());
        let here: Vec<&Arg> = options.by_ref().filter(|it| it.get_help_heading() == heading).collect();
        if here.is_empty() {
            continue;
        }
        page.section(&heading.unwrap_or("Options").to_uppercase());
        here.iter().for_each(|arg| page.item(&option(arg), &help(arg)));
    }
    if groups {
        page.section("COMMANDS");
        for below in command.get_subcommands() {
            let about = below.get_about().map(ToString::to_string).unwrap_or_default();
            page.item(&bold(&format!("{name} {}", below.get_name())), &about);
        }
    }
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (notes, examples) = after.split_once("Examples:\n").unwrap_or((&after, ""));
    if !notes.trim().is_empty() {
        page.section("NOTES");
        page.verbatim(notes.trim_end());
    }
    if !examples.is_empty() {
        page.section("EXAMPLES");
        page.verbatim(examples);
    }
    page.section("EXIT STATUS");
    for (code, _, meaning, ..) in EXITS {
        page.item(&bold(&code.to_string()), meaning);
    }
    if name != "pixir" {
        page.section("SEE ALSO");
        page.raw(&format!("{}(1)", bold("pixir")));
    }
    page.0
}

fn positional(arg: &Arg) -> String {
    let name = arg.get_id().as_str().to_uppercase();
    let many = if matches!(arg.get_action(), ArgAction::Append) { "…" } else { "" };
    if arg.is_required_set() { format!("{name}{many}") } else { format!("[{name}{many}]") }
}

fn option(arg: &Arg) -> String {
    let long = arg.get_long().into_iter().chain(arg.get_visible_aliases().unwrap_or_default());
    let names = arg.get_short().map(|it| format!("-{it}")).into_iter().chain(long.map(|it| format!("--{it}")));
    let names: Vec<String> = names.map(|it| bold(&it)).collect();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let value = arg
        .get_value_names()
        .and_then(|it| it.first())
        .map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    if takes_value { format!("{} \\fI{}\\fR", names.join(", "), escaped(&value)) } else { names.join(", ") }
}

/// What an option is for, its values and its default.
fn help(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    let values = arg.get_possible_values();
    let told: Vec<String> = values
        .iter()
        .filter(|_| takes_value)
        .map(|it| match it.get_help() {
            Some(help) => format!("{} ({help})", it.get_name()),
            None => it.get_name().to_owned(),
        })
        .collect();
    if !told.is_empty() {
        text.push_str(&format!(". One of {}", told.join("; ")));
    }
    let default: Vec<String> = arg.get_default_values().iter().map(|it| it.to_string_lossy().into_owned()).collect();
    if takes_value && !default.is_empty() {
        text.push_str(&format!(". Default: {}", default.join(", ")));
    }
    text
}

/// Text that the language of manual pages reads as itself.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

/// A page that is being written, line by line.
struct Page(String);

impl Page {
    fn section(&mut self, name: &str) {
        self.raw(&format!(".SH \"{name}\""));
    }

    /// A line in the language itself.
    fn raw(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Text, which the reader's terminal fills.
    fn text(&mut self, text: &str) {
        let mut line = String::new();
        for word in text.split_whitespace().map(escaped) {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
        if !line.is_empty() {
            self.line(&line);
        }
    }

    /// One line of text. At its start, some characters would be commands.
    fn line(&mut self, line: &str) {
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        self.raw(&format!("{guard}{line}"));
    }

    fn item(&mut self, tag: &str, text: &str) {
        self.raw(&format!(".TP\n{tag}"));
        self.text(text);
    }

    /// Lines as they are.
    fn verbatim(&mut self, text: &str) {
        self.raw(".nf");
        for line in text.lines() {
            // A line without text would be a request for a gap.
            self.line(&if line.trim().is_empty() { "\\&".to_owned() } else { escaped(line) });
        }
        self.raw(".fi");
    }
}
