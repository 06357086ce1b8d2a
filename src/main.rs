//! The front door: arguments → Harness → a Presenter; an error → an exit code.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ErrorKind as ClapKind};
use clap::{CommandFactory as _, Parser as _};
use pixir_core::error::nearest;
use pixir_core::event::{Mode, Toolset};
use pixir_core::provider::choose::Providers;
use pixir_core::store::Store;
use pixir_core::{Code, Error, Input, Result};

mod args; // every command and flag
mod cli; // arguments and environment → Harness
mod commands; // one file per command
mod headless; // the Presenter without a screen
mod output; // the one writer to stdout
mod remedies; // what to do about an error, in words
mod terminal; // the terminal Presenter, launched

use args::{AuthCommand, Cli, Command, Format, ModelsCommand, OutputOptions, ToolsCommand};
use cli::Asker;
use headless::{Job, Story};
use output::{Output, exit_code};

/// The most that is read from stdin as a prompt, bytes.
const MAX_STDIN: u64 = 10 << 20;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return ExitCode::from(usage(&e)),
    };
    let output = Output::new(&cli.out);
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!("panic: {panic}\n{}", std::backtrace::Backtrace::force_capture())
    }));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli, &output))).unwrap_or_else(|_| {
        Err(Error::new(
            Code::CommandFailed,
            "pixir broke off because of a fault of its own",
            "pixir.log in the state folder has the details; please report it",
        ))
    });
    let code = outcome.unwrap_or_else(|error| {
        if output.format == Format::Jsonl {
            output.failed_result(&error);
        }
        output.error(&error);
        exit_code(error.code)
    });
    ExitCode::from(code)
}

fn run(cli: Cli, output: &Output) -> Result<u8> {
    pixir_core::process::adopt_orphans();
    let around = cli::surroundings();
    let Cli { prompt, run, command, .. } = cli;
    match command {
        Some(Command::Schema { events, script }) => {
            let document = match (events, script) {
                (true, _) => commands::schema::events(),
                (_, true) => commands::schema::scripts(),
                (false, false) => {
                    let toolset = run.toolset.as_deref().map_or(Ok(Toolset::Both), Toolset::parse)?;
                    commands::schema::contract(toolset)
                }
            };
            output.document(&document);
            Ok(0)
        }
        Some(Command::Doctor { online }) => block_on(async {
            let providers = match cli::config(&around) {
                Ok(config) => {
                    let wishes = cli::wishes(&run);
                    Providers::find(&wishes, &config, &around).await
                }
                Err(e) => Err(e),
            };
            Ok(commands::doctor::run(&around, providers, online, output).await)
        }),
        Some(Command::Models { command: ModelsCommand::List { online } }) => block_on(async {
            let providers = Providers::find(&cli::wishes(&run), &cli::config(&around)?, &around).await?;
            commands::models::list(&providers, run.provider.as_deref(), online, output).await.map(|()| 0)
        }),
        Some(Command::Tui { script, size, frames, screen, demo }) => {
            cli::diagnostics(&around);
            let job = commands::tui::Job { script, size, frames, screen, demo };
            commands::tui::run(&run, &around, job, output)
        }
        Some(Command::Themes { command }) => commands::themes::run(command, &run, &around, output),
        Some(Command::Auth { command }) => {
            let config = cli::config(&around)?;
            match command {
                AuthCommand::Login { provider, options } => {
                    block_on(commands::auth::login(provider, options, &config, &around, run.dry_run, output))
                        .map(|()| 0)
                }
                AuthCommand::Status { provider } => commands::auth::status(provider, &config, &around, output),
                AuthCommand::Logout { provider } => {
                    commands::auth::logout(provider, &config, &around, run.dry_run, output).map(|()| 0)
                }
            }
        }
        Some(Command::Sessions { command }) => {
            commands::sessions::run(command, &cli::offline(&run, &around)?, run.dry_run, output)
        }
        Some(Command::Tree { id, all }) => {
            let (harness, place) = cli::visit(&run, &around, &id)?;
            commands::tree::show_tree(&harness, &place, all, output).map(|()| 0)
        }
        Some(Command::Fork { id, at }) => {
            let (harness, place) = cli::visit(&run, &around, &id)?;
            block_on(commands::fork::fork(&harness, &place, at, run.dry_run, output)).map(|()| 0)
        }
        Some(Command::Undo { id, turn, restore }) => {
            let (harness, place) = cli::visit(&run, &around, &id)?;
            let make = |wish| Input::Undo { turn, wish };
            let since = &restore.changed_since;
            block_on(commands::restore::restore(&harness, &place, since, run.dry_run, make, output)).map(|()| 0)
        }
        Some(Command::Redo { id, restore }) => {
            let (harness, place) = cli::visit(&run, &around, &id)?;
            let make = |wish| Input::Redo { wish };
            let since = &restore.changed_since;
            block_on(commands::restore::restore(&harness, &place, since, run.dry_run, make, output)).map(|()| 0)
        }
        Some(Command::Inspect { id, seq }) => {
            let harness = cli::offline(&run, &around)?;
            let providers = Providers::configured(&cli::config(&around)?, &around)?;
            commands::inspect::show_request(&harness, &providers, &harness.find(&id)?, seq, output).map(|()| 0)
        }
        Some(Command::Replay { id, from, screen: wish }) => {
            cli::diagnostics(&around);
            let (harness, place) = cli::visit(&run, &around, &id)?;
            let on_screen = terminal::is_possible(&around) && from.is_none() && output.format == Format::Plain;
            if wish.is_wanted() || on_screen {
                return commands::replay::run(&run, &around, &place, wish, on_screen);
            }
            drop(harness);
            commands::replay::text(&place, from.unwrap_or(0), output).map(|()| 0)
        }
        Some(Command::Diagnose { id }) => {
            let harness = cli::offline(&run, &around)?;
            let providers = Providers::configured(&cli::config(&around)?, &around)?;
            commands::diagnose::show_diagnosis(harness.store(), &providers, &harness.find(&id)?, output)
        }
        Some(Command::Gc { yes, trash_days }) => {
            let store = Store::new(&around.home);
            commands::gc::gc(&store, trash_days, yes, run.dry_run, output).map(|()| 0)
        }
        Some(Command::Tools { command }) => {
            let harness = cli::offline(&run, &around)?;
            match command {
                ToolsCommand::List => {
                    let toolset = run.toolset.as_deref().map_or(Ok(Toolset::Both), Toolset::parse)?;
                    commands::tools::list(&harness, toolset, output);
                }
                ToolsCommand::Show { name } => commands::tools::show(&harness, &name, output)?,
                ToolsCommand::Run { name, args } => {
                    let mode = if run.write { Mode::Auto } else { Mode::ReadOnly };
                    return block_on(commands::tools::run(&harness, &name, &args, mode, run.dry_run, output));
                }
            }
            Ok(0)
        }
        Some(Command::Run { line, raw, stdin, timeout, propagate_exit }) => {
            let stdin = if stdin { Some(commands::run::stdin()?) } else { None };
            let harness = cli::offline(&run, &around)?;
            let mode = if run.write { Mode::Auto } else { Mode::ReadOnly };
            let dry_run = run.dry_run;
            let job = commands::run::Job { line, stdin, timeout, raw, propagate_exit, mode, dry_run };
            block_on(commands::run::run(&harness, job, output))
        }
        Some(Command::Demo) => {
            cli::diagnostics(&around);
            commands::demo::run(&run, &around, output)
        }
        Some(Command::Resume { id, prompt, last, read_only }) => {
            cli::diagnostics(&around);
            let (id, prompt) = match (last, id) {
                // With --last the first word is not an id but what is wanted next.
                (true, word) => {
                    let words: Vec<String> = word.into_iter().chain(prompt).collect();
                    (None, Some(words.join(" ")).filter(|w| !w.is_empty()))
                }
                (false, id) => (id, prompt),
            };
            let open = match id {
                Some(id) => terminal::Open::Resume(cli::here(&run, &around, &id)?),
                None => terminal::Open::Latest,
            };
            let open = if read_only { open.read_only() } else { open };
            present(&run, &around, open, prompt, output)
        }
        None => {
            cli::diagnostics(&around);
            check_command(prompt.as_deref())?;
            present(&run, &around, terminal::Open::New, prompt, output)
        }
    }
}

/// The terminal interface where there is a terminal; one Turn where that was asked for.
fn present(
    run: &args::RunOptions,
    around: &pixir_core::config::Surroundings,
    open: terminal::Open,
    prompt: Option<String>,
    output: &Output,
) -> Result<u8> {
    if !run.headless && terminal::is_possible(around) && !output.is_json() {
        return terminal::run(run, around, open, prompt);
    }
    let prompt = match prompt {
        Some(prompt) => prompt,
        None if run.headless || output.is_json() => stdin_prompt()?,
        None if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => {
            let term = around.variable("TERM").unwrap_or_default();
            return Err(Error {
                message: format!("a terminal like this one (TERM={term}) shows no screen"),
                ..no_prompt()
            });
        }
        None => return Err(no_prompt()),
    };
    if prompt.trim().is_empty() {
        return Err(no_prompt());
    }
    let workspace = cli::workspace(run)?;
    block_on(async {
        // From here on a signal ends in a result, whatever it comes upon.
        let signals = headless::Signals::listen();
        let harness = cli::harness(run, around, &workspace, Asker::Nobody).await?;
        if !open.is_resumed() && harness.providers().provider == "demo" && run.provider.is_none() {
            // A program would take the words of the demo for an answer.
            let fix = "pixir auth login anthropic, export ANTHROPIC_API_KEY=…, or --base-url URL (pixir doctor says what was found)";
            return Err(Error::new(Code::AuthRequired, "no model is connected", fix));
        }
        let handle = open.open(&harness)?;
        let job = Job {
            prompt,
            skill: run.skill.clone(),
            resumed: open.is_resumed(),
            output,
            blobs: harness.blobs().clone(),
            story: Story::Aside,
        };
        Ok(headless::run(&handle, job, signals).await)
    })
}

fn no_prompt() -> Error {
    Error::new(
        Code::NoPrompt,
        "there is no prompt, and no terminal to type one",
        "pixir --headless \"your prompt\", or pipe the prompt to it",
    )
}

fn stdin_prompt() -> Result<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(no_prompt());
    }
    let mut bytes = Vec::new();
    stdin.lock().take(MAX_STDIN + 1).read_to_end(&mut bytes).map_err(|e| {
        Error::new(Code::StdinError, format!("read the prompt from stdin: {e}"), "give it as an argument")
    })?;
    if bytes.len() as u64 > MAX_STDIN {
        return Err(Error::new(
            Code::StdinError,
            "the prompt on stdin is larger than 10 MB",
            "put it into a file and name the file",
        ));
    }
    String::from_utf8(bytes).map_err(|_| {
        Error::new(Code::StdinError, "the prompt on stdin is not UTF-8 text", "convert it, or name a file")
    })
}

/// One word that is nearly a command was meant as one.
fn check_command(prompt: Option<&str>) -> Result<()> {
    // A very short word is like too many others.
    let Some(word) = prompt.filter(|p| p.len() > 3 && p.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')) else {
        return Ok(());
    };
    if std::env::args().any(|arg| arg == "--") {
        return Ok(());
    }
    let command = Cli::command();
    let known = command.get_subcommands().map(clap::Command::get_name).chain(["help"]);
    match nearest(word, known) {
        Some(near) => Err(Error::new(
            Code::UnknownCommand,
            format!("there is no command `{word}`"),
            format!("pixir {near} (to send the word as a prompt: pixir -- {word})"),
        )
        .with("input", word)),
        None => Ok(()),
    }
}

/// Help and version are results; everything else that the parser says is a usage error like any other.
fn usage(e: &clap::Error) -> u8 {
    match e.kind() {
        ClapKind::DisplayHelp | ClapKind::DisplayVersion => {
            let _ = e.print();
            return 0;
        }
        ClapKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = e.print();
            return 2;
        }
        _ => {}
    }
    let context = |kind| e.get(kind).map(ToString::to_string);
    let code = match e.kind() {
        ClapKind::UnknownArgument => Code::UnknownFlag,
        ClapKind::InvalidSubcommand => Code::UnknownCommand,
        _ => Code::Usage,
    };
    let rendered = e.to_string();
    // What is missing stands on lines of its own.
    let said: Vec<&str> = rendered.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let first = said.join(" ").trim_start_matches("error: ").to_owned();
    let wrong = context(ContextKind::InvalidArg).or_else(|| context(ContextKind::InvalidSubcommand));
    let fix = match (code, &wrong) {
        (Code::UnknownFlag, Some(flag)) => near_flag(flag),
        _ => context(ContextKind::SuggestedSubcommand)
            .or_else(|| context(ContextKind::SuggestedValue))
            .map(|near| format!("did you mean {near}?")),
    };
    let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("pixir");
    let command: Vec<&str> =
        usage.split_whitespace().take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    let fix = fix.unwrap_or_else(|| format!("{} --help", command.join(" ")));
    let mut error = Error::new(code, first, fix);
    if let Some(input) = wrong {
        error = error.with("input", input);
    }
    // The parser failed, so the wish for a format is read from the words themselves.
    let words: Vec<String> = std::env::args().skip(1).take_while(|w| w != "--").collect();
    let asked = |name: &str| {
        words.contains(&format!("--format={name}")) || words.windows(2).any(|w| w[0] == "--format" && w[1] == name)
    };
    let json = words.iter().any(|w| w == "--json") || asked("json") || asked("jsonl");
    let output = Output::new(&OutputOptions { json, ..OutputOptions::default() });
    if asked("jsonl") {
        output.failed_result(&error);
    }
    output.error(&error);
    exit_code(code)
}

/// The flag that was most likely meant.
fn near_flag(wrong: &str) -> Option<String> {
    let command = Cli::command();
    let flags: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long().map(|long| format!("--{long}"))).collect();
    nearest(wrong, flags.iter().map(String::as_str)).map(|near| format!("did you mean {near}?"))
}

/// Runs async work to its end. What still computes on other threads then is not waited for.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Threads that have nothing to do end soon, so that an idle screen is not woken by their going later.
        .thread_keep_alive(Duration::from_millis(300))
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}
