//! Stored Sessions, as a command finds them by the words of its user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pixir_core::store::Place;
use pixir_core::{Code, Entry, Error, Harness, Remedy, Result, log};

use super::Cli;
use crate::args::RunOptions;
use crate::next_actions::quoted;

impl Cli {
    /// A Session of this workspace.
    pub(crate) fn session_here(&self, id: &str) -> Result<Place> {
        let harness = self.offline_harness()?;
        let place = harness.find(id)?;
        if place == harness.place(&place.id) {
            return Ok(place);
        }
        let folder = place.summary().map_or(String::new(), |it| it.workspace);
        let fix = if Path::new(&folder).is_dir() {
            Remedy::command(format!("pixir resume {} --workspace {}", place.id, quoted(&folder)))
        } else {
            Remedy::command(format!("pixir sessions move {}", place.id))
                .and_text("  # its folder is gone; this moves it here")
        };
        Err(Error::new(Code::SessionNotFound, format!("that session belongs to another workspace: {folder}"), fix)
            .with("workspace", folder))
    }

    /// A Session of any workspace, with a Harness for its own workspace.
    pub(crate) fn locate(&self, id: &str) -> Result<(Harness, Place)> {
        let harness = self.offline_harness()?;
        let place = harness.find(id)?;
        if place == harness.place(&place.id) {
            return Ok((harness, place));
        }
        let workspace = place.summary().map(|it| PathBuf::from(it.workspace));
        let there = Cli { options: RunOptions { workspace, ..self.options.clone() }, ..self.clone() };
        Ok((there.offline_harness()?, place))
    }

    /// The readable entries of a Session's Log. Damage is reported beside the result.
    pub(crate) fn entries(&self, place: &Place) -> Result<Vec<Arc<Entry>>> {
        let contents = log::read(&place.log())?;
        self.note_damage(place, &contents);
        Ok(contents.entries)
    }

    /// Checks the Log of a Session without keeping its entries, and notes damage as [`Cli::entries`] does.
    pub(crate) fn report_damage(&self, place: &Place) -> Result<()> {
        self.note_damage(place, &log::scan(&place.log(), &mut drop)?);
        Ok(())
    }

    fn note_damage(&self, place: &Place, contents: &log::Contents) {
        if let Some(damage) = contents.damage.first() {
            self.output.aside(&format!(
                "note: line {} of this session's log is damaged ({}); pixir sessions repair {} --dry-run",
                damage.line, damage.reason, place.id
            ));
        }
    }
}
