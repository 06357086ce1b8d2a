//! `pixir sessions export`: export a Session as Markdown, as an HTML page, or as lossless JSON.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pixir_core::history::History;
use pixir_core::text::human::human_size;
use pixir_core::{Code, Error, Harness, Result, archive};
use serde_json::json;

use super::summary_of;
use crate::cli::Cli;

mod document; // a Session as blocks
mod html; // blocks as one page
mod markdown; // blocks as Markdown

use document::Document;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Session id, a unique prefix of one, a name, or last
    id: String,
    /// Format of the export. Default: md, or json with --json
    #[arg(long, value_enum)]
    to: Option<ExportFormat>,
    /// New file to write, instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave file versions and saved outputs out of the JSON
    #[arg(long)]
    no_files: bool,
}

/// Formats of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// Markdown
    Md,
    /// One self-contained page
    Html,
    /// Everything, for `pixir sessions import`
    Json,
}

pub(super) fn run(cli: &Cli, harness: &Harness, args: &ExportArgs) -> Result<()> {
    let output = &cli.output;
    let dry_run = cli.options.dry_run;
    let place = harness.find(&args.id)?;
    // With --output, --json is about the report of the export, not about the export.
    let default = if output.is_json() && args.output.is_none() { ExportFormat::Json } else { ExportFormat::Md };
    let document = || -> Result<Document> {
        let history = History::fold(cli.entries(&place)?);
        Ok(Document::new(summary_of(&place)?, &history, harness.blobs()))
    };
    let text = match args.to.unwrap_or(default) {
        ExportFormat::Md => markdown::render(&document()?),
        ExportFormat::Html => html::render(&document()?),
        ExportFormat::Json => {
            // Reading the entries reports damage; writing the archive does not.
            cli.entries(&place)?;
            archive::export(&place, harness.blobs(), !args.no_files)?
        }
    };
    let Some(file) = &args.output else {
        output.line(text.trim_end());
        return Ok(());
    };
    if !dry_run {
        write_new(file, &text)?;
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": place.id, "file": file, "bytes": text.len() }),
        &format!("{verb} {} ({})", file.display(), human_size(text.len() as u64)),
    );
    Ok(())
}

fn write_new(file: &Path, text: &str) -> Result<()> {
    let new = OpenOptions::new().write(true).create_new(true).open(file);
    new.and_then(|mut new| new.write_all(text.as_bytes())).map_err(|e| {
        let exists = e.kind() == ErrorKind::AlreadyExists;
        let fix = if exists { "name a file that does not exist yet" } else { "name a file in a writable folder" };
        Error::new(Code::WriteFailed, format!("write {}: {e}", file.display()), fix)
            .with("input", file.display().to_string())
    })
}
