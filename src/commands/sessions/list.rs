//! `pixir sessions list`: list the Sessions of a workspace, of every workspace, or in the trash.

use clap::Args;
use pixir_core::store::Summary;
use pixir_core::{Harness, Result};
use serde_json::{Value, json};

use crate::args::Format;
use crate::cli::Cli;
use crate::output::{List, ListOptions, Output, chatter, count};

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List the sessions of every workspace
    #[arg(long)]
    all: bool,
    /// List the sessions in the trash
    #[arg(long, conflicts_with = "all")]
    trash: bool,
    /// Also list the sessions of agents, each below the session that started it
    #[arg(long, conflicts_with = "trash")]
    children: bool,
    #[command(flatten)]
    options: ListOptions,
}

/// Exits with 1 if a folder of Sessions cannot be read; the others are listed all the same.
pub(super) fn run(cli: &Cli, harness: &Harness, args: &ListArgs) -> Result<u8> {
    let output = &cli.output;
    if args.trash {
        return list_trash(harness, output, &args.options);
    }
    let mut sessions = if args.all { harness.store().list_all() } else { harness.sessions() };
    if args.children {
        sessions = with_children(harness, args.all, sessions);
    }
    let special = if args.all { harness.store().all_special_files() } else { harness.special_files() };
    for path in &special {
        output.aside(&format!("note: {} is not a file, and was skipped; move it away", path.display()));
    }
    let unread = if args.all { harness.store().unreadable_folders() } else { Vec::new() };
    for e in &unread {
        output.aside(&format!("note: {}", e.message));
    }
    let rows = sessions.iter().map(row).collect();
    let unreadable: Vec<&String> = unread.iter().map(|e| &e.message).collect();
    let beside = json!({ "skipped": special, "unreadable": unreadable });
    let columns = &["id", "last_activity", "model", "title"];
    let list = List { name: "sessions", key: "id", columns, rows, beside };
    let total = sessions.len();
    list.print(output, &args.options, |at| line(&sessions[at], args.all))?;
    if output.format == Format::Plain {
        hint(total, args);
    }
    Ok(u8::from(!unread.is_empty()))
}

/// The Sessions, each with those that it has started behind it. Those whose parent is gone come last.
fn with_children(harness: &Harness, all: bool, roots: Vec<Summary>) -> Vec<Summary> {
    let store = harness.store();
    let mut below = if all { store.agents_of_all() } else { store.agents(&store.folder_of(harness.workspace())) };
    below.reverse();
    let mut listed = Vec::new();
    let mut open: Vec<Summary> = roots.into_iter().rev().collect();
    while let Some(next) = open.pop() {
        let (own, others): (Vec<Summary>, Vec<Summary>) =
            below.into_iter().partition(|it| it.parent.as_deref() == Some(next.id.as_str()));
        below = others;
        open.extend(own.into_iter().rev());
        listed.push(next);
    }
    listed.extend(below);
    listed
}

fn row(it: &Summary) -> Value {
    let mut row = json!(it);
    row["title"] = it.title().into();
    row
}

fn line(it: &Summary, is_of_all: bool) -> String {
    let title: String = it.title().chars().take(60).collect();
    let place = if is_of_all { format!("  {}", it.workspace) } else { String::new() };
    let pinned = if it.pinned { "  (pinned)" } else { "" };
    let damaged = if it.damaged { "  (damaged)" } else { "" };
    let (when, turns) = (it.last_minute(), count(it.turns as usize, "turn"));
    let mark = if it.parent.is_some() { "↳ " } else { "" };
    format!("{mark}{}  {when}  {turns:>9}  {title}{place}{pinned}{damaged}", it.id)
}

fn hint(total: usize, args: &ListArgs) {
    chatter(match total {
        0 if args.all => "no sessions yet: pixir \"your first prompt\"",
        0 => "no sessions in this workspace yet: pixir \"your first prompt\" (--all lists every workspace)",
        _ => "pixir resume ID continues a session, pixir resume --last the first of these",
    });
}

fn list_trash(harness: &Harness, output: &Output, options: &ListOptions) -> Result<u8> {
    let trash = harness.store().trash();
    let rows = trash.iter().map(|it| {
        let mut row = json!(it);
        row["id"] = it.summary.id.as_str().into();
        row["title"] = it.summary.title().into();
        row
    });
    let columns = &["id", "deleted", "title"];
    let list = List { name: "trash", key: "id", columns, rows: rows.collect(), beside: json!({}) };
    list.print(output, options, |at| {
        let it = &trash[at];
        format!("{}  deleted {}  {}", it.summary.id, it.deleted.strftime("%Y-%m-%d %H:%M"), it.summary.title())
    })?;
    if output.format == Format::Plain {
        chatter(if trash.is_empty() { "the trash is empty" } else { "pixir sessions delete ID --undo restores one" });
    }
    Ok(0)
}
