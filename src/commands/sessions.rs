//! `pixir sessions`: list, show, rename, delete, move, export, import, verify, repair.

use pixir_core::event::SessionId;
use pixir_core::harness::Harness;
use pixir_core::store::{Place, Summary};
use pixir_core::{Code, Error, Result};

use crate::args::{ExportForm, SessionsCommand};
use crate::output::Output;

mod delete;
mod export;
mod import;
mod list;
mod relocate;
mod rename;
mod repair;
mod show;
mod verify;

use delete::{delete, undelete};
use export::write_export;
use import::import;
use list::{Wanted, list, list_trash};
use relocate::relocate;
use rename::rename;
use repair::repair;
use show::show;
use verify::verify;

/// One of them; the exit code.
pub(crate) fn run(command: SessionsCommand, harness: &Harness, dry_run: bool, output: &Output) -> Result<u8> {
    match command {
        SessionsCommand::List { all, trash, limit, cursor, select } => {
            let wanted = Wanted { all, limit, cursor, select };
            if trash { list_trash(harness, output) } else { list(harness, &wanted, output)? }
        }
        SessionsCommand::Show { id } => show(harness, &harness.find(&id)?, output)?,
        SessionsCommand::Rename { id, name } => rename(harness, &harness.find(&id)?, &name, dry_run, output)?,
        SessionsCommand::Delete { id, yes, undo } => {
            // What is destroyed is named in full.
            let id = SessionId::parse(&id)
                .map_err(|e| Error { message: format!("name it by its whole id; {}", e.message), ..e })?;
            if undo { undelete(harness, &id, dry_run, output)? } else { delete(harness, &id, yes, dry_run, output)? }
        }
        SessionsCommand::Export { id, to, output: file, no_files } => {
            let whole = if output.is_json() && file.is_none() { ExportForm::Json } else { ExportForm::Md };
            let to = to.unwrap_or(whole);
            write_export(harness, &harness.find(&id)?, to, file.as_deref(), no_files, dry_run, output)?;
        }
        SessionsCommand::Move { id } => relocate(harness, &harness.find(&id)?, dry_run, output)?,
        SessionsCommand::Import { file } => import(harness, &file, dry_run, output)?,
        SessionsCommand::Verify { id, all } => {
            let places = match id {
                Some(id) => vec![harness.find(&id)?],
                None if all => harness.store().places(),
                None => Vec::new(),
            };
            return verify(&places, output);
        }
        SessionsCommand::Repair { id } => repair(&harness.find(&id)?, dry_run, output)?,
    }
    Ok(0)
}

fn summary_of(place: &Place) -> Result<Summary> {
    place.summary().ok_or_else(|| {
        Error::new(Code::LogReadFailed, "the session log cannot be read", format!("pixir diagnose {}", place.id))
    })
}
