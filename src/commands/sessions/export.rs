//! `pixir sessions export`: a Session as Markdown, as a page, or as JSON.

use std::io::Write as _;
use std::path::Path;

use pixir_core::harness::Harness;
use pixir_core::history::History;
use pixir_core::store::Place;
use pixir_core::text::human::human_size;
use pixir_core::{Code, Error, Result, archive};
use serde_json::json;

use super::summary_of;
use crate::args::ExportForm;
use crate::cli::entries;
use crate::output::Output;

mod document; // a Session as blocks
mod html; // one page that needs nothing else
mod markdown; // text for people and programs

use document::Story;

pub(super) fn write_export(
    harness: &Harness,
    place: &Place,
    to: ExportForm,
    file: Option<&Path>,
    no_files: bool,
    dry_run: bool,
    output: &Output,
) -> Result<()> {
    let text = match to {
        ExportForm::Json => {
            entries(place, output)?;
            archive::export(place, harness.blobs(), !no_files)?
        }
        ExportForm::Md | ExportForm::Html => {
            let history = History::fold(entries(place, output)?);
            let story = Story::new(summary_of(place)?, &history, harness.blobs());
            if to == ExportForm::Html { html::render(&story) } else { markdown::render(&story) }
        }
    };
    let Some(file) = file else {
        output.line(text.trim_end());
        return Ok(());
    };
    if !dry_run {
        let new = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
        new.and_then(|mut new| new.write_all(text.as_bytes())).map_err(|e| {
            let fix = if e.kind() == std::io::ErrorKind::AlreadyExists {
                "another name: it is there already"
            } else {
                "a folder that can be written"
            };
            Error::new(Code::WriteFailed, format!("write {}: {e}", file.display()), fix)
                .with("input", file.display().to_string())
        })?;
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    output.either(
        &json!({ "schemaVersion": 1, "ok": true, "dry_run": dry_run, "session_id": place.id, "file": file, "bytes": text.len() }),
        &format!("{verb} {} ({})", file.display(), human_size(text.len() as u64)),
    );
    Ok(())
}
