//! `pixir [PROMPT]`: the terminal interface where there is a terminal, else one headless Turn.

use std::io::IsTerminal as _;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use clap::CommandFactory as _;
use pixir_core::error::nearest;
use pixir_core::provider::Waits;
use pixir_core::{Code, Error, Harness, Input, Remedy, Result};
use tokio::time::timeout;

use crate::args::{Args, Format, InputFormat};
use crate::cli::{Attendance, Cli, Signals, block_on};
use crate::headless::{self, AnswerSchema, Job, Judging, Narrate, host, slash};
use crate::open::Open;
use crate::start;
use crate::terminal;

mod attachments; // files that go with the prompt
mod stdin; // text that is piped to pixir

/// A wait for a server that takes longer is announced.
const SLOW: Duration = Duration::from_millis(500);

pub(super) fn run(cli: &Cli, prompt: Option<String>) -> Result<u8> {
    cli.start_diagnostics();
    reject_mistyped_command(prompt.as_deref())?;
    present(cli, &Open::New, prompt)
}

/// Opens a Session in the Presenter that the options and the terminal ask for.
pub(super) fn present(cli: &Cli, open: &Open, prompt: Option<String>) -> Result<u8> {
    let hosted = cli.options.input == InputFormat::Jsonl;
    if hosted && cli.output.format != Format::Jsonl {
        let fix = "leave out --json and --format; the answers are lines of JSON";
        return Err(Error::new(Code::Usage, "--input jsonl prints jsonl", fix));
    }
    let headless = is_headless(cli);
    if shows_a_screen(cli) {
        return terminal::run(cli, open, for_the_screen(cli, prompt)?);
    }
    let prompt = first_prompt(cli, prompt, headless, hosted)?;
    let schema = cli.options.output_schema.as_deref().map(AnswerSchema::read).transpose()?;
    if cli.options.session_id.is_some() && open.is_resumed() {
        let fix = "leave it out, or start a new session";
        return Err(Error::new(Code::Usage, "--session-id is for a new session", fix).with("input", "--session-id"));
    }
    let workspace = cli.workspace()?;
    cli.note_changed_project();
    block_on(async {
        // Signals are caught before the first await, so that even a slow start ends with a result.
        let mut signals = Signals::listen()?;
        let attendance = if hosted { Attendance::Attended } else { Attendance::Unattended };
        let harness = match connected(cli, &workspace, attendance, &mut signals).await? {
            Connected::Harness(harness) => *harness,
            Connected::Stopped(exit) => {
                let message = "pixir was stopped while it waited for a model's server";
                let error = Error::new(Code::CommandFailed, message, Remedy::Retry { after_s: None });
                cli.output.error_with_exit(&error, exit);
                return Ok(exit);
            }
        };
        if !open.is_resumed() && harness.providers().provider == "demo" && cli.options.provider.is_none() {
            // A script that calls pixir would take the demo's text for an answer.
            return Err(harness.providers().unconnected());
        }
        let asked = prompt.map(|prompt| slash::input(&harness, prompt, cli.options.dry_run)).transpose()?;
        let (skill, first) = asked.map_or((None, None), |it| (it.skill, Some(it.input)));
        let first = first.map(|input| attachments::add(&harness, input, &cli.options.attach)).transpose()?;
        let first = match (first, &schema) {
            (Some(Input::Prompt(message)), Some(schema)) => Some(Input::Prompt(schema.ask(message))),
            (first, _) => first,
        };
        let (root, handle) = open.open_alone(cli, &harness).await?;
        let job = Job {
            skills: cli.options.skill.clone().into_iter().chain(skill).collect(),
            resumed: open.is_resumed(),
            output: &cli.output,
            blobs: harness.blobs().clone(),
            narrate: Narrate::OnStderr,
            deadline: cli.config()?.limits.deadline.map(Duration::from_secs),
            schema,
            judging: Judging {
                by_rules: !hosted && cli.is_allowed_by_rules(),
                workspace: harness.workspace().to_owned(),
            },
            answer_file: cli.options.answer_file.clone(),
            store: harness.store().clone(),
            is_kept: !cli.options.ephemeral || open.is_resumed(),
        };
        let exit = match first {
            Some(input) if !hosted => headless::run(&handle, input, job, signals).await,
            first => host::run(&handle, first, job, signals).await,
        };
        // The Session above an agent has recorded its end.
        root.close().await;
        if cli.options.ephemeral && !open.is_resumed() {
            harness.store().erase(&harness.place(root.id()))?;
        }
        Ok(exit)
    })
}

fn is_headless(cli: &Cli) -> bool {
    cli.options.headless || cli.output.is_json()
}

/// Whether the terminal interface opens, rather than one headless Turn.
pub(super) fn shows_a_screen(cli: &Cli) -> bool {
    !is_headless(cli) && cli.options.input != InputFormat::Jsonl && terminal::is_possible(cli)
}

/// What comes of the wait for a model's server.
enum Connected {
    Harness(Box<Harness>),
    /// A signal has asked pixir to stop, with this exit code.
    Stopped(u8),
}

/// A Harness; pixir says when a server on this machine lets it wait.
async fn connected(cli: &Cli, workspace: &Path, attendance: Attendance, signals: &mut Signals) -> Result<Connected> {
    let waits = Waits::default();
    let mut words = waits.subscribe();
    let cli = Cli { waits: Some(waits), ..cli.clone() };
    let mut connecting = pin!(cli.harness(workspace, attendance));
    if let Ok(harness) = timeout(SLOW, &mut connecting).await {
        return harness.map(|it| Connected::Harness(Box::new(it)));
    }
    // What it said before now is news too.
    words.mark_changed();
    cli.output.aside("waiting for a model's server on this machine");
    loop {
        tokio::select! {
            biased;
            harness = &mut connecting => return harness.map(|it| Connected::Harness(Box::new(it))),
            exit = signals.next() => return Ok(Connected::Stopped(exit)),
            Ok(()) = words.changed() => {
                let said = words.borrow_and_update().clone();
                if !said.is_empty() {
                    cli.output.aside(&said);
                }
            }
        }
    }
}

/// The prompt of the terminal interface. It shows attached files as the user would name them there.
fn for_the_screen(cli: &Cli, prompt: Option<String>) -> Result<Option<String>> {
    let it = &cli.options;
    let only_headless = [
        ("--output-schema", it.output_schema.is_some()),
        ("-o", it.answer_file.is_some()),
        ("--ephemeral", it.ephemeral),
    ];
    if let Some((flag, _)) = only_headless.into_iter().find(|(_, is_given)| *is_given) {
        let value = if flag == "--ephemeral" { "" } else { " FILE" };
        let fix = Remedy::command(format!("pixir -p {flag}{value} PROMPT"));
        return Err(Error::new(Code::Usage, format!("{flag} is for headless runs"), fix).with("input", flag));
    }
    let files: Vec<String> = it.attach.iter().map(|path| format!("@{}", path.display())).collect();
    Ok(if files.is_empty() { prompt } else { Some(format!("{} {} ", prompt.unwrap_or_default(), files.join(" "))) })
}

/// What the run begins with. Only a host need not begin with anything: its prompts follow on stdin.
fn first_prompt(cli: &Cli, prompt: Option<String>, headless: bool, hosted: bool) -> Result<Option<String>> {
    let prompt = match prompt {
        Some(prompt) if hosted => prompt,
        Some(prompt) if prompt == "-" => stdin::all(cli)?.ok_or_else(no_prompt)?,
        Some(prompt) if headless => match stdin::beside(cli)? {
            Some(document) => format!("{prompt}\n\n<document source=\"stdin\">\n{}\n</document>", document.trim_end()),
            None => prompt,
        },
        Some(prompt) => prompt,
        None if hosted => return Ok(None),
        None if !headless && start::stdout_was_closed() => {
            let fix =
                Remedy::text("leave out `>&-`, or use ").and_flag("--headless").and_text(" with a file as stdout");
            return Err(Error::new(Code::WriteFailed, "stdout is closed, and the terminal interface draws there", fix));
        }
        None if headless => stdin::all(cli)?.ok_or_else(no_prompt)?,
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            let term = cli.environment.variable("TERM").unwrap_or_default();
            return Err(Error {
                message: format!("this terminal (TERM={term}) cannot show the terminal interface"),
                ..no_prompt()
            });
        }
        None => return Err(no_prompt()),
    };
    if prompt.trim().is_empty() { Err(no_prompt()) } else { Ok(Some(prompt)) }
}

fn no_prompt() -> Error {
    Error::new(
        Code::NoPrompt,
        "there is no prompt, and no terminal to type one in",
        Remedy::command("pixir --headless PROMPT").and_text(", or pipe the prompt to it"),
    )
}

/// A prompt of one word that is nearly a command is a mistyped command.
fn reject_mistyped_command(prompt: Option<&str>) -> Result<()> {
    // Shorter words resemble too many commands.
    let Some(word) = prompt.filter(|p| p.len() > 3 && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')) else {
        return Ok(());
    };
    if std::env::args().any(|arg| arg == "--") {
        return Ok(());
    }
    let command = Args::command();
    let names = command.get_subcommands().map(clap::Command::get_name).chain(["help"]);
    match nearest(word, names) {
        Some(near) => Err(Error::new(
            Code::UnknownCommand,
            format!("there is no command `{word}`"),
            Remedy::command(format!("pixir {near}"))
                .and_text(" (to send the word as a prompt: ")
                .and_command(format!("pixir -- {word}"))
                .and_text(")"),
        )
        .with("input", word)),
        None => Ok(()),
    }
}
