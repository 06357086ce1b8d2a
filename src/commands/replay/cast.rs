//! A Session as an asciicast: a header, then the output to a terminal, with times.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use pixir_core::text::clean::clean_json;
use pixir_core::{Code, Error, Result};
use pixir_ui::ReplayOptions;
use pixir_ui::script::{self, Driver};
use pixir_ui::theme::Depth;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::output::chatter;
use crate::terminal;

/// How long the last frame stays on the screen.
const LAST_FRAME: Duration = Duration::from_secs(2);

/// Writes the whole Session to a new file, or to stdout if the path is `-`.
pub(super) async fn write(cli: &Cli, id: &str, options: ReplayOptions, size: &str, path: &Path) -> Result<()> {
    let (columns, rows) = script::size(size).ok_or_else(|| {
        Error::new(Code::Usage, format!("`{size}` is not a size"), "columns and rows, such as 120x40")
    })?;
    let failed = |e: std::io::Error| {
        let fix = "name a new file in an existing folder, or - for stdout";
        Error::new(Code::WriteFailed, format!("write {}: {e}", path.display()), fix)
    };
    let is_stdout = path == Path::new("-");
    if cli.options.dry_run && !is_stdout {
        if path.exists() {
            return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
        }
        let document = json!({ "ok": true, "dry_run": true, "session_id": id, "file": path });
        cli.output.either(document, &format!("would write {}", path.display()));
        return Ok(());
    }
    let mut launch = terminal::replay_launch(cli, id, options)?;
    // The cast is played on another terminal, so this one does not limit its colours.
    launch.look.depth = Depth::True;
    let mut driver = Driver::new(launch, columns, rows)?;
    driver.try_until_idle().await?;
    let mut file = match is_stdout {
        true => None,
        false => Some(BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?)),
    };
    let mut write = |line: Value| match &mut file {
        None => {
            cli.output.raw_line(&clean_json(&line.to_string()));
            Ok(())
        }
        Some(file) => writeln!(file, "{line}").map_err(failed),
    };
    let header = json!({
        "version": 2, "width": columns, "height": rows, "title": format!("pixir {id}"),
        "env": { "TERM": "xterm-256color" },
    });
    write(header)?;
    let mut time = Duration::ZERO;
    let mut bytes = String::from("\x1b[2J\x1b[H");
    loop {
        // A frame waits for what it shows, such as a diff that is still being computed.
        driver.try_until_idle().await?;
        bytes.push_str(&driver.paint());
        if !bytes.is_empty() {
            write(json!([time.as_secs_f64(), "o", bytes]))?;
            bytes.clear();
        }
        match driver.replay_step() {
            Some(pause) if !cli.output.is_closed() => time += pause,
            Some(_) | None => break,
        }
    }
    let end = (time + LAST_FRAME).as_secs_f64();
    write(json!([end, "o", "\x1b[?25h"]))?;
    if let Some(mut file) = file {
        file.flush().map_err(failed)?;
    }
    driver.close().await?;
    if !is_stdout && cli.output.is_json() {
        let seconds = (end * 1e3).round() / 1e3;
        cli.output
            .document(json!({ "ok": true, "dry_run": false, "session_id": id, "file": path, "seconds": seconds }));
    } else if !is_stdout {
        chatter(&format!("wrote {} ({end:.1} s); play it with: asciinema play", path.display()));
    }
    Ok(())
}
