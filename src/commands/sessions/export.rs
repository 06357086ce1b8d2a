//! `pixir sessions export`: export a Session as Markdown, as an HTML page, or as lossless JSON.

use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pixir_core::history::History;
use pixir_core::store::{Place, Store};
use pixir_core::text::human::human_size;
use pixir_core::{Code, Error, Harness, NewFile, Remedy, Result, archive, log};
use serde_json::json;

use super::summary_of;
use crate::args::Format;
use crate::cli::Cli;
use crate::output::Output;

mod document; // a Session as blocks
mod html; // blocks as one page
mod markdown; // blocks as Markdown

use document::{Document, Whole};

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
    let format = args.to.unwrap_or(default);
    let is_document = format == ExportFormat::Json && output.format != Format::Jsonl;
    if output.is_json() && args.output.is_none() && !is_document {
        let message = "this export is neither one JSON document nor lines of JSON";
        let fix = Remedy::text("leave out --json and --format, or name a file with ").and_flag("--output FILE");
        return Err(Error::new(Code::Usage, message, fix).with("input", "--to"));
    }
    let export = |write: &mut Write<'_>| -> Result<()> {
        if format == ExportFormat::Json {
            // Reading the Log reports damage; writing the archive does not.
            cli.report_damage(&place)?;
            return archive::export(&place, harness.blobs(), !args.no_files, write);
        }
        let whole = Whole::new(&place, summary_of(&place)?, History::fold(cli.entries(&place)?));
        let document = Document::new(&whole, harness.blobs());
        match format {
            ExportFormat::Md => markdown::render(&document, write),
            ExportFormat::Html | ExportFormat::Json => html::render(&document, write),
        }
    };
    let Some(file) = &args.output else {
        let mut lines = Lines { output, rest: String::new() };
        return export(&mut |text| {
            lines.write(text);
            Ok(())
        });
    };
    let mut bytes = 0;
    if dry_run {
        export(&mut |text| {
            bytes += text.len() as u64;
            Ok(())
        })?;
    } else {
        let mut new = Export::create(file, harness.store())?;
        export(&mut |text| {
            bytes += text.len() as u64;
            new.write(text)
        })?;
        new.finish()?;
    }
    let verb = if dry_run { "would write" } else { "wrote" };
    output.either(
        json!({ "ok": true, "dry_run": dry_run, "session_id": place.id, "file": file, "bytes": bytes }),
        &format!("{verb} {} ({})", file.display(), human_size(bytes)),
    );
    Ok(())
}

/// Writes a Session to a new file for the interface, and returns its bytes.
///
/// # Errors
/// `WRITE_FAILED` if there is a file already; errors of reading the Session.
pub(crate) fn to_file(harness: &Harness, place: &Place, to: pixir_ui::ExportFormat, file: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut new = Export::create(file, harness.store())?;
    let mut write = |text: &str| {
        bytes += text.len() as u64;
        new.write(text)
    };
    if to == pixir_ui::ExportFormat::Json {
        archive::export(place, harness.blobs(), true, &mut write)?;
    } else {
        let whole = Whole::new(place, summary_of(place)?, History::fold(log::read(&place.log())?.entries));
        let document = Document::new(&whole, harness.blobs());
        match to {
            pixir_ui::ExportFormat::Markdown => markdown::render(&document, &mut write)?,
            pixir_ui::ExportFormat::Html | pixir_ui::ExportFormat::Json => html::render(&document, &mut write)?,
        }
    }
    new.finish()?;
    Ok(bytes)
}

/// Takes the next piece of an export.
type Write<'a> = dyn FnMut(&str) -> Result<()> + 'a;

/// Prints an export in pieces. Stdout gets whole lines, and one line end after the last text.
struct Lines<'a> {
    output: &'a Output,
    /// The end of the text so far: what may still belong to the last line.
    rest: String,
}

/// Bytes that are printed at once.
const PIECE: usize = 64 << 10;

impl Lines<'_> {
    fn write(&mut self, text: &str) {
        self.rest.push_str(text);
        if self.rest.len() < PIECE {
            return;
        }
        // The line end itself is printed by `line`. Blank lines wait for the text after them, since an export ends in none.
        let whole = self.rest.trim_end().len();
        if let Some(end) = self.rest[..whole].rfind('\n') {
            let after = self.rest.split_off(end + 1);
            self.output.raw_line(&self.rest[..end]);
            self.rest = after;
        }
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            self.output.raw_line(self.rest.trim_end());
        }
    }
}

/// The file of an export. It gets its name only when it is whole.
struct Export<'a> {
    path: &'a Path,
    to: NewFile,
}

impl Export<'_> {
    fn create<'a>(path: &'a Path, store: &Store) -> Result<Export<'a>> {
        if path.exists() {
            return Err(failed(path, &ErrorKind::AlreadyExists.into()));
        }
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.is_dir() {
            return Err(failed(path, &io::Error::other("there is no such folder")));
        }
        let to = NewFile::create(path, &store.running()).map_err(|e| failed(path, &e))?;
        Ok(Export { path, to })
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.to.write_all(text.as_bytes()).map_err(|e| failed(self.path, &e))
    }

    fn finish(self) -> Result<()> {
        self.to.finish_new().map_err(|e| failed(self.path, &e))
    }
}

fn failed(file: &Path, e: &io::Error) -> Error {
    let exists = e.kind() == ErrorKind::AlreadyExists;
    let fix = if exists { "name a file that does not exist yet" } else { "name a file in a writable folder" };
    Error::new(Code::WriteFailed, format!("write {}: {e}", file.display()), fix)
        .with("input", file.display().to_string())
}
