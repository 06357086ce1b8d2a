//! `pixir replay` on the screen, as text, or into an asciicast.

use pixir_core::config::Surroundings;
use pixir_core::store::Place;
use pixir_core::{Code, Error, Fact, Result};
use pixir_ui::{Playback, ReplayOptions};
use serde_json::json;

use super::inspect::no_entry;
use crate::args::{Format, ReplayScreen, RunOptions};
use crate::cli::entries;
use crate::headless::narration::{self, Narrator};
use crate::output::{Output, chatter, safe};
use crate::terminal;

mod cast; // a Session as an asciicast

pub(crate) fn run(
    run: &RunOptions,
    around: &Surroundings,
    place: &Place,
    wish: ReplayScreen,
    on_screen: bool,
) -> Result<u8> {
    let speed = wish.speed.unwrap_or(1.0);
    if !(0.25..=64.0).contains(&speed) {
        return Err(Error::new(Code::Usage, format!("{speed} is no speed"), "--speed takes 0.25 to 64"));
    }
    let id = place.id.to_string();
    if let Some(seq) = wish.at {
        let last = pixir_core::log::read(&place.log())?.entries.last().map_or(0, |entry| entry.seq);
        if seq > last {
            return Err(no_entry(seq, last, place));
        }
    }
    let plays = !wish.step && wish.at.is_none() && wish.cast.is_none();
    let playback = if plays { Playback::Playing } else { Playback::Paused };
    let options = ReplayOptions { at: wish.at, playback, speed };
    if let Some(path) = &wish.cast {
        return crate::block_on(cast::cast(run, around, &id, options, &wish.size, path)).map(|()| 0);
    }
    if !on_screen {
        let fix = format!("pixir replay {id}  # as text; or --cast FILE");
        return Err(Error::new(Code::Usage, "there is no terminal to show it on", fix));
    }
    terminal::run_replay(run, around, &id, options)
}

/// The Log, told again.
pub(crate) fn text(place: &Place, from: u64, output: &Output) -> Result<()> {
    let entries = entries(place, output)?;
    let last = entries.last().map_or(0, |entry| entry.seq);
    if from > last {
        return Err(no_entry(from, last, place));
    }
    let mut narrator = Narrator::default();
    let mut told = 0;
    for entry in &entries {
        if output.is_closed() {
            return Ok(());
        }
        // What came before is only needed to understand what follows.
        let text = narrator.entry(&entry.fact).or_else(|| narration::broke(&entry.fact));
        if entry.seq < from {
            continue;
        }
        told += 1;
        match output.format {
            Format::Jsonl => output.line(&entry.encode()?),
            Format::Json => {}
            Format::Plain | Format::Tsv => {
                if let Some(text) = text {
                    output.line(&safe(&text));
                }
            }
        }
    }
    let mut result = json!({ "schemaVersion": 1, "ok": true, "session_id": place.id, "entries": told, "exit_code": 0 });
    match output.format {
        Format::Json => {
            let lines: Result<Vec<serde_json::Value>> = entries
                .iter()
                .filter(|entry| entry.seq >= from)
                .map(|entry| Ok(serde_json::from_str(&entry.encode()?).unwrap_or_default()))
                .collect();
            result["events"] = json!(lines?);
            output.document(&result);
        }
        Format::Jsonl => {
            result["type"] = json!("result");
            output.line(&result.to_string());
        }
        Format::Plain | Format::Tsv => {
            if entries.iter().all(|e| !matches!(e.fact, Fact::UserMessage(_))) {
                chatter("nothing was said in this session");
            }
        }
    }
    Ok(())
}
