//! A Session as an asciicast: a header, then the output to a terminal, with times.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use pixir_core::{Code, Error, Result};
use pixir_ui::ReplayOptions;
use pixir_ui::script::{self, Driver};
use pixir_ui::theme::Depth;
use serde_json::json;

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
    let mut launch = terminal::replay_launch(cli, id, options)?;
    // The cast is played on another terminal, so this one does not limit its colours.
    launch.look.depth = Depth::True;
    let mut driver = Driver::new(launch, columns, rows)?;
    driver.try_until_idle().await?;
    let to: Box<dyn Write> = if is_stdout {
        Box::new(std::io::stdout())
    } else {
        Box::new(OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?)
    };
    let mut file = BufWriter::new(to);
    let header = json!({
        "version": 2, "width": columns, "height": rows, "title": format!("pixir {id}"),
        "env": { "TERM": "xterm-256color" },
    });
    writeln!(file, "{header}").map_err(failed)?;
    let mut time = Duration::ZERO;
    let mut bytes = String::from("\x1b[2J\x1b[H");
    loop {
        // A frame waits for what it shows, such as a diff that is still being computed.
        driver.try_until_idle().await?;
        bytes.push_str(&driver.paint());
        if !bytes.is_empty() {
            writeln!(file, "{}", json!([time.as_secs_f64(), "o", bytes])).map_err(failed)?;
            bytes.clear();
        }
        match driver.replay_step() {
            Some(pause) => time += pause,
            None => break,
        }
    }
    let end = (time + LAST_FRAME).as_secs_f64();
    writeln!(file, "{}", json!([end, "o", "\x1b[?25h"])).map_err(failed)?;
    file.flush().map_err(failed)?;
    driver.close().await?;
    if !is_stdout {
        chatter(&format!("wrote {} ({end:.1} s); play it with: asciinema play", path.display()));
    }
    Ok(())
}
