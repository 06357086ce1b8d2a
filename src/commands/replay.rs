//! `pixir replay`: replay a Session from its Log, on the screen, as text, as events, or as an asciicast.

use std::path::PathBuf;

use clap::Args;
use pixir_core::event::AgentEvent;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Fact, Remedy, Result};
use pixir_ui::{Playback, ReplayOptions};
use serde_json::{Value, json};

use self::agents::Agents;
use super::inspect::no_entry;
use crate::args::Format;
use crate::cli::{Cli, block_on};
use crate::headless::narration::Narrator;
use crate::output::{chatter, versioned};
use crate::terminal;

mod agents; // what agents did, from their own Logs
mod cast; // a Session as an asciicast

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Session id, a unique prefix of one, a name, or last
    #[arg(default_value = "last")]
    id: String,
    /// Print the session as text, starting with this entry
    #[arg(long, value_name = "SEQ", conflicts_with_all = ["step", "speed", "at", "cast"])]
    from: Option<u64>,
    /// Wait for a key before each step
    #[arg(long, conflicts_with = "speed")]
    step: bool,
    /// Speed factor, from 0.25 to 64; pauses are shortened to 2 seconds before it applies
    #[arg(long, value_name = "N")]
    speed: Option<f64>,
    /// Show everything up to this entry, then wait
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// Write an asciicast to this new file (- for stdout) instead of the screen; asciinema plays it
    #[arg(long, value_name = "FILE", conflicts_with = "step")]
    cast: Option<PathBuf>,
    /// Columns and rows of the cast
    #[arg(long, value_name = "SIZE", default_value = "120x40", requires = "cast")]
    size: String,
}

impl ReplayArgs {
    fn asks_for_the_screen(&self) -> bool {
        self.step || self.speed.is_some() || self.at.is_some() || self.cast.is_some()
    }
}

pub(super) fn run(cli: &Cli, args: &ReplayArgs) -> Result<u8> {
    cli.start_diagnostics();
    let (_, place) = cli.locate(&args.id)?;
    let has_screen = !cli.options.headless && terminal::is_possible(cli) && cli.output.format == Format::Plain;
    if !args.asks_for_the_screen() && (args.from.is_some() || !has_screen) {
        return print(cli, &place, args.from.unwrap_or(0));
    }
    let speed = args.speed.unwrap_or(1.0);
    if !(0.25..=64.0).contains(&speed) {
        return Err(Error::new(
            Code::Usage,
            format!("--speed {speed} is out of range"),
            Remedy::text("from 0.25 to 64: ").and_flag("--speed N"),
        ));
    }
    if let Some(seq) = args.at {
        let last = pixir_core::log::read(&place.log())?.entries.last().map_or(0, |entry| entry.seq);
        if seq > last {
            return Err(no_entry(seq, last, &place));
        }
    }
    let id = place.id.to_string();
    let plays = !args.step && args.at.is_none() && args.cast.is_none();
    let playback = if plays { Playback::Playing } else { Playback::Paused };
    let options = ReplayOptions { at: args.at, playback, speed };
    if let Some(path) = &args.cast {
        return block_on(cast::write(cli, &id, options, &args.size, path)).map(|()| 0);
    }
    if !has_screen {
        let fix = Remedy::text("print it as text: ")
            .and_command(format!("pixir replay {id}"))
            .and_text(", or use ")
            .and_flag("--cast FILE");
        return Err(Error::new(Code::Usage, "there is no terminal to replay the session on", fix));
    }
    terminal::run_replay(cli, &id, options)
}

/// Prints the entries as text, as events, or in one document.
fn print(cli: &Cli, place: &Place, from: u64) -> Result<u8> {
    let output = &cli.output;
    let entries = cli.entries(place)?;
    let last = entries.last().map_or(0, |entry| entry.seq);
    if from > last {
        return Err(no_entry(from, last, place));
    }
    let mut narrator = Narrator::default();
    let mut agents = Agents::of(place, "");
    let mut events: Vec<Value> = Vec::new();
    let mut printed = 0;
    for entry in &entries {
        if output.is_closed() {
            return Ok(0);
        }
        // The narrator reads the earlier entries too: a result is narrated with its call.
        let text = narrator.entry(&entry.fact).or_else(|| Narrator::ending(&entry.fact));
        if entry.seq < from {
            continue;
        }
        printed += 1;
        match (output.format, text) {
            (Format::Jsonl, _) => output.line(&entry.encode()?),
            (Format::Json, _) => events.push(serde_json::from_str(&entry.encode()?).unwrap_or_default()),
            (Format::Plain | Format::Tsv, text) => {
                // What an agent did stands before its end.
                if let Fact::AgentEvent(event) = &entry.fact
                    && let AgentEvent::Ended(it) = &**event
                {
                    agents.tell_turn(&it.session_id, output);
                }
                text.iter().for_each(|text| output.line(text));
            }
        }
    }
    if matches!(output.format, Format::Plain | Format::Tsv) {
        agents.tell_rest(output);
    }
    let mut result = json!({ "ok": true, "session_id": place.id, "entries": printed, "exit_code": 0 });
    match output.format {
        Format::Json => {
            result["events"] = json!(events);
            result["agents"] = json!(agents.json()?);
            output.document(result);
        }
        Format::Jsonl => {
            result["type"] = json!("result");
            output.line(&versioned(result).to_string());
        }
        Format::Plain | Format::Tsv => {
            if entries.iter().all(|entry| !matches!(entry.fact, Fact::UserMessage(_))) {
                chatter("this session has no messages");
            }
        }
    }
    Ok(0)
}
