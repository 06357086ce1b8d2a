//! A Session as an asciicast.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use pixir_core::config::Surroundings;
use pixir_core::{Code, Error, Result};
use pixir_ui::ReplayOptions;
use pixir_ui::script::{self, Driver};
use pixir_ui::theme::Depth;
use serde_json::json;

use crate::args::RunOptions;
use crate::output::chatter;
use crate::terminal;

/// How long the last frame of a cast stays.
const END: Duration = Duration::from_secs(2);

/// The whole Session as asciinema plays it: a header, then what a terminal is sent, and when.
pub(super) async fn cast(
    run: &RunOptions,
    around: &Surroundings,
    id: &str,
    options: ReplayOptions,
    size: &str,
    path: &Path,
) -> Result<()> {
    let (columns, rows) = script::size(size)
        .ok_or_else(|| Error::new(Code::Usage, format!("`{size}` is no size"), "columns and rows, such as 120x40"))?;
    let failed = |e: std::io::Error| {
        let fix = "a new file in a folder that is there; - writes to stdout";
        Error::new(Code::WriteFailed, format!("write {}: {e}", path.display()), fix)
    };
    let is_stdout = path == Path::new("-");
    let mut launch = terminal::replay_launch(run, around, id, options)?;
    // It is played elsewhere, on a screen that shows all of them.
    launch.look.depth = Depth::True;
    let mut driver = Driver::new(launch, columns, rows)?;
    driver.try_until_idle().await?;
    let to: Box<dyn std::io::Write> = if is_stdout {
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
    let mut at = Duration::ZERO;
    let mut output = String::from("\x1b[2J\x1b[H");
    loop {
        // What a screen fetches for a frame, such as a diff, is in the frame.
        driver.try_until_idle().await?;
        output.push_str(&driver.paint());
        if !output.is_empty() {
            writeln!(file, "{}", json!([at.as_secs_f64(), "o", output])).map_err(failed)?;
            output.clear();
        }
        match driver.replay_step() {
            Some(pause) => at += pause,
            None => break,
        }
    }
    writeln!(file, "{}", json!([(at + END).as_secs_f64(), "o", "\x1b[?25h"])).map_err(failed)?;
    file.flush().map_err(failed)?;
    driver.close().await?;
    if !is_stdout {
        chatter(&format!("{} · {:.1} s; asciinema play plays it", path.display(), (at + END).as_secs_f64()));
    }
    Ok(())
}
