//! A Presenter in sixty lines: it starts a Session, sends a prompt, prints the answer and allows every call.
//!
//! `cargo run --example embed -- "what is in this folder?"` answers with a scripted Provider, so it needs no key.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints")]

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use pixir_core::provider::Providers;
use pixir_core::provider::script::Scripted;
use pixir_core::{Decision, Environment, Event, Fact, Harness, Input, Live, Options, Result, SessionDefaults};

/// What the Provider answers: a call that needs permission, then a text.
const SCRIPT: &str = r#"{ "steps": [
    { "calls": [{ "name": "bash", "args": { "command": "ls && touch seen" } }] },
    { "text": "That is all." }
] }"#;

fn main() -> ExitCode {
    // A program that runs commands is also the launcher of their sandbox.
    if let Some(exit) = pixir_core::run_as_launcher(std::env::args_os()) {
        return exit;
    }
    converse().map_or_else(
        |e| {
            eprintln!("{e}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

#[tokio::main]
async fn converse() -> Result<()> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What is in this folder?".into());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = tempfile::tempdir().expect("a temporary folder");
    let settings = Environment { home: home.path().to_owned(), ..Environment::default() };
    let providers = Arc::new(Providers::only("script", "demo", Arc::new(Scripted::new(Scripted::parse(SCRIPT)?))));
    // Approvals are put to a Presenter that can answer them; this one can.
    let options = Options { can_ask: true, ..Options::default() };
    let harness = Harness::new(folder.path(), &settings, providers, options, SessionDefaults::default())?;

    let session = harness.start()?;
    let mut watch = session.watch().await.expect("the Session has just started");
    let accepted = session.request(Input::Prompt(prompt.into())).await?;
    println!("turn {}", accepted.turn.expect("a prompt begins a Turn"));
    while let Some(event) = watch.next().await {
        match event {
            Event::Live(event) => match event.live {
                Live::TextDelta { text } => print!("{text}"),
                Live::CallPrepared { info, .. } => println!("• {}", info.title),
                Live::ApprovalRequested(approval) => {
                    let decide = Input::Decide { call_id: approval.call_id, decision: Decision::Allow, word: None };
                    session.request(decide).await?;
                }
                _ => {}
            },
            Event::Recorded(entry) => match &entry.fact {
                Fact::ToolResult(result) => println!("{}", result.output),
                Fact::TurnEnded(end) => {
                    println!("\n{}", end.status.name());
                    break;
                }
                _ => {}
            },
        }
        std::io::stdout().flush().expect("stdout is open");
    }
    session.close().await;
    Ok(())
}
