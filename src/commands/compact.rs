//! `pixir compact`: replace the older part of a Session's conversation by a summary.

use clap::Args;
use pixir_core::event::HistoryCompaction;
use pixir_core::input::CompactOptions;
use pixir_core::{Code, Error, Event, Fact, Input, Live, Result};
use serde_json::json;

use crate::cli::{Attendance, Cli, block_on};
use crate::headless::request;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// What the summary should mind
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,
}

pub(super) fn run(cli: &Cli, args: &CompactArgs) -> Result<u8> {
    let (harness, place) = cli.locate(&args.id)?;
    let dry_run = cli.options.dry_run;
    let output = &cli.output;
    output.aside(&format!("session {} in {}", place.id, harness.workspace().display()));
    let input = Input::Compact { instructions: args.focus.clone(), dry_run, options: CompactOptions::default() };
    let (_, events) = block_on(async {
        let handle = if dry_run {
            // A read-only Session opens a damaged Log without an error; reading its entries reports the damage.
            cli.entries(&place)?;
            harness.open_read_only(&place.id)?
        } else {
            // The model of the Session writes the summary.
            cli.harness(harness.workspace(), Attendance::Unattended).await?.resume(&place.id)?
        };
        let answer = request(&handle, input).await;
        handle.close().await;
        answer
    })?;
    let mut made = None;
    for event in events {
        match event {
            Event::Live(event) => match event.live {
                Live::CompactionPreviewed(preview) => made = Some(preview.compaction),
                Live::Notice { message, .. } => output.aside(&message),
                _ => {}
            },
            Event::Recorded(entry) => {
                if let Fact::HistoryCompaction(it) = &entry.fact {
                    made = Some((**it).clone());
                }
            }
        }
    }
    let made = made.ok_or_else(|| Error::new(Code::CommandFailed, "nothing was compacted", "report this as a bug"))?;
    print(&made, dry_run, output);
    Ok(0)
}

fn print(it: &HistoryCompaction, dry_run: bool, output: &Output) {
    if output.is_json() {
        output.document(json!({ "ok": true, "dry_run": dry_run, "compaction": it }));
        return;
    }
    let would = if dry_run { "would compact" } else { "compacted" };
    let (before, after, entries) = (it.tokens_before, it.tokens_after, it.entries_dropped);
    output
        .line(&format!("{would}: {before} → {after} tokens (estimated), {entries} entries replaced by this summary:"));
    output.line("");
    output.line(it.summary.trim_end());
    for limitation in &it.limitations {
        output.aside(&format!("note: {limitation}"));
    }
    if dry_run {
        output.aside("nothing was changed; without --dry-run the session's model writes the summary where it can");
    }
}
