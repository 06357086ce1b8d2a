//! `pixir agents adopt`: write what agents changed in their copies to the workspace.

use std::collections::BTreeMap;

use clap::Args;
use pixir_core::agent::AgentState;
use pixir_core::event::{Adoption, AgentEvent, FilePreview, RestorePreview, Standing};
use pixir_core::input::{OnConflict, RestoreOptions, has_marks};
use pixir_core::{Code, Error, Event, Fact, Handle, Input, Live, Remedy, Result};
use serde_json::json;

use crate::cli::{Cli, block_on};
use crate::headless::request;
use crate::next_actions::quoted;
use crate::output::count;

#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// Session id, a unique prefix of one, a name, or last
    id: String,
    /// The agent, as `agents tree` shows it. Default: each whose files wait
    name: Option<String>,
    /// Leave this file as it is in the workspace; it waits no more
    #[arg(long, value_name = "PATH")]
    keep: Vec<String>,
    /// Take the agent's version of this file, whatever changed in it since
    #[arg(long, value_name = "PATH")]
    take: Vec<String>,
    /// Write this text in place of both versions of a file of the workspace
    #[arg(long, value_name = "PATH=FILE")]
    merge: Vec<String>,
    /// Also write protected files, such as .git/hooks: they can run code or widen permissions
    #[arg(long)]
    allow_protected: bool,
}

/// What became of one agent's files.
enum Done {
    Planned(RestorePreview),
    Adopted(Adoption),
}

pub(super) fn run(cli: &Cli, args: &AdoptArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let (root, _) = place.lineage()?;
    let done = block_on(async {
        let handle = harness.open_for_maintenance(&root.id)?;
        let done = adopt(&handle, args, cli.options.dry_run).await;
        handle.close().await;
        done
    })?;
    let (mut documents, mut lines, mut left) = (Vec::new(), Vec::new(), 0);
    for (agent, done) in done {
        match done {
            Done::Planned(preview) => {
                left += if cli.options.dry_run { 0 } else { preview.files.len() };
                lines.push(format!("{agent}: {} wait", count(preview.files.len(), "file")));
                lines.extend(
                    preview.files.iter().map(|file| format!("  {}: {}\n{}", file.path, would(file), file.diff)),
                );
                documents.push(json!({ "agent": agent, "plan": preview }));
            }
            Done::Adopted(it) => {
                left += it.left.len();
                lines.push(format!("{agent}: {} in the workspace", count(it.changes.len(), "file")));
                lines.extend(it.changes.iter().map(|it| format!("  {}  +{} −{}", it.path, it.added, it.removed)));
                lines.extend(it.kept.iter().map(|path| format!("  {path}  stays as it is")));
                lines.extend(it.left.iter().map(|it| format!("  {}  waits: {}", it.path, it.why)));
                documents.push(json!({ "agent": agent, "adopted": it }));
            }
        }
    }
    if left > 0 {
        lines.push(
            "--keep PATH leaves a file as it is; --take PATH takes the agent's version; --merge PATH=FILE writes a text of yours"
                .to_owned(),
        );
    }
    let document =
        json!({ "ok": left == 0, "dry_run": cli.options.dry_run, "session_id": root.id, "agents": documents });
    cli.output.either(document, &lines.join("\n"));
    Ok(u8::from(left > 0))
}

async fn adopt(handle: &Handle, args: &AdoptArgs, dry_run: bool) -> Result<Vec<(String, Done)>> {
    let watch = handle.watch().await.ok_or_else(|| {
        Error::new(Code::SessionStartFailed, "the session has closed", Remedy::Retry { after_s: None })
    })?;
    let named = |it: &&AgentState| match &args.name {
        Some(name) => it.name() == name || it.path.join("/") == *name,
        None => it.waiting_files > 0,
    };
    let agents: Vec<Vec<String>> = watch.now.children.iter().filter(named).map(|it| it.path.clone()).collect();
    drop(watch);
    if agents.is_empty() {
        return Err(match &args.name {
            Some(name) => Error::new(
                Code::NotFound,
                format!("the session has no agent `{}`", name.escape_debug()),
                Remedy::text("one that this shows: ").and_command(format!("pixir agents tree {}", quoted(&args.id))),
            )
            .with("input", name.clone()),
            None => {
                let tree = format!("pixir agents tree {}", quoted(&args.id));
                let fix = Remedy::text("look at its agents: ").and_command(tree);
                Error::new(Code::NothingToDo, "no file of an agent's copy waits", fix)
            }
        });
    }
    let choices = args.keep.iter().map(|path| (path.clone(), OnConflict::Keep));
    let choices: BTreeMap<String, OnConflict> =
        choices.chain(args.take.iter().map(|path| (path.clone(), OnConflict::Overwrite))).collect();
    let written = args.merge.iter().map(|it| own_text(it)).collect::<Result<BTreeMap<String, String>>>()?;
    let mut all = Vec::new();
    for path in agents {
        let options = RestoreOptions {
            dry_run,
            choices: choices.clone(),
            written: written.clone(),
            protected: args.allow_protected,
            ..RestoreOptions::default()
        };
        let name = path.join("/");
        let answer = request(handle, Input::Adopt { path: path.clone(), options, later: false }).await;
        let (_, events) = match answer {
            // What is left is shown as it waits.
            Err(error) if error.code == Code::FileChanged => {
                let plan = RestoreOptions { dry_run: true, ..RestoreOptions::default() };
                request(handle, Input::Adopt { path, options: plan, later: false }).await?
            }
            other => other?,
        };
        let done = events.into_iter().rev().find_map(|event| match event {
            Event::Recorded(entry) => match &entry.fact {
                Fact::AgentEvent(event) if let AgentEvent::Adopted(it) = &**event => {
                    Some(Done::Adopted((**it).clone()))
                }
                _ => None,
            },
            Event::Live(event) => match event.live {
                Live::RestorePreviewed(preview) => Some(Done::Planned(preview)),
                _ => None,
            },
        });
        all.extend(done.map(|done| (name, done)));
    }
    Ok(all)
}

/// Reads `PATH=FILE`: the text that takes the place of a file of the workspace.
fn own_text(argument: &str) -> Result<(String, String)> {
    let fix = || Remedy::flag("--merge PATH=FILE").and_text(", where FILE has the whole text of PATH");
    let (path, file) = argument
        .split_once('=')
        .filter(|(path, file)| !path.is_empty() && !file.is_empty())
        .ok_or_else(|| Error::new(Code::InvalidArgs, format!("`--merge {argument}` names no file"), fix()))?;
    let text = std::fs::read_to_string(file)
        .map_err(|e| Error::new(Code::NotFound, format!("cannot read {file}: {e}"), fix()).with("input", file))?;
    if has_marks(&text) {
        let message = format!("{file} still has conflict marks");
        return Err(Error::new(Code::InvalidArgs, message, "decide for each marked place, and remove its marks"));
    }
    Ok((path.to_owned(), text))
}

/// What an adoption would do with a file.
fn would(file: &FilePreview) -> &str {
    match file.standing {
        Standing::Ready | Standing::AlreadyThere => "would be written",
        Standing::ChangedSince if file.merged.is_some() => "would be merged with what changed here since",
        Standing::ChangedSince => "waits: the same lines changed here (--keep PATH, --take PATH or --merge PATH=FILE)",
        Standing::Impossible => file.why.as_deref().unwrap_or("cannot be written"),
    }
}
