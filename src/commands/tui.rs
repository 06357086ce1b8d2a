//! `pixir tui --script`: the terminal interface without a terminal, for tests, screenshots and programs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use pixir_core::{Code, Error, Result};
use pixir_ui::script::{self, Driver, Line};

use super::demo::{Audience, Sample};
use crate::cli::{Cli, block_on};
use crate::open::Open;
use crate::output::count;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct TuiArgs {
    /// Script to run; - is stdin
    #[arg(long, value_name = "FILE")]
    script: String,
    /// Columns and rows
    #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x40")]
    size: String,
    /// Save each frame in this folder, as NAME.txt, NAME.ansi and NAME.svg
    #[arg(long, value_name = "FOLDER")]
    frames: Option<PathBuf>,
    /// How to print a frame: as text, with colours, or as a JSON tree of its elements
    #[arg(long, value_enum, default_value_t = ScreenFormat::Text)]
    screen: ScreenFormat,
    /// Run the demo, with its sample repository
    #[arg(long)]
    demo: bool,
}

/// Formats of a printed frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScreenFormat {
    /// Text without colours
    Text,
    /// Text with ANSI colours
    Ansi,
    /// The elements of the frame and their positions
    Json,
}

pub(super) fn run(cli: &Cli, args: &TuiArgs) -> Result<u8> {
    cli.start_diagnostics();
    let text = if args.script == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(&args.script)
    };
    let text = text.map_err(|e| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::ReadFailed };
        Error::new(code, format!("read the script {}: {e}", args.script), "name a file, or - for stdin")
            .with("input", args.script.as_str())
    })?;
    let lines = script::parse(&text)?;
    let (columns, rows) = script::size(&args.size).ok_or_else(|| {
        Error::new(Code::Usage, format!("`{}` is not a size", args.size), "columns and rows, such as 120x40")
    })?;
    // Dropping the sample deletes its repository, so it outlives the screen.
    let sample = if args.demo { Some(Sample::new(cli, Audience::Program)?) } else { None };
    let launch = match &sample {
        Some(it) => terminal::demo_launch(&it.cli, &it.workspace, Audience::Program)?,
        None => terminal::launch(cli, &Open::New, None)?,
    };
    block_on(async {
        let mut driver = Driver::new(launch, columns, rows)?;
        let mut left = lines.len();
        for line in lines {
            left -= 1;
            match line {
                Line::Keys(keys) => driver.keys(&keys).await,
                Line::Paste(text) => driver.paste(&text).await,
                Line::Expect(text) => driver.try_until(&text).await?,
                Line::Idle => driver.try_until_idle().await?,
                Line::Resize(columns, rows) => driver.resize(columns, rows),
                Line::Frame(name) => {
                    driver.try_until_coloured().await?;
                    save_frame(&driver, &name, args, cli)?;
                }
            }
            if driver.is_done() && left > 0 {
                driver.close().await?;
                return Err(Error::new(
                    Code::CommandFailed,
                    format!("the interface quit with {} of the script left", count(left, "line")),
                    "quit in the last line of the script, or not at all",
                ));
            }
        }
        driver.close().await.map(|_| 0)
    })
}

fn save_frame(driver: &Driver, name: &str, args: &TuiArgs, cli: &Cli) -> Result<()> {
    let output = &cli.output;
    let Some(folder) = &args.frames else {
        match args.screen {
            ScreenFormat::Text => output.line(&format!("── {name} ──\n{}", driver.screen())),
            ScreenFormat::Ansi => output.raw_line(&driver.coloured()),
            ScreenFormat::Json => {
                let mut document = driver.semantics();
                document["frame"] = name.into();
                output.document(document);
            }
        }
        return Ok(());
    };
    if cli.options.dry_run {
        output.line(&format!("would write the frame {name} to {}", folder.display()));
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|e| not_written(folder, &e))?;
    let mut files = vec![("txt", driver.screen() + "\n"), ("ansi", driver.coloured()), ("svg", driver.picture())];
    if args.screen == ScreenFormat::Json {
        files.push(("json", format!("{:#}\n", driver.semantics())));
    }
    for (ending, text) in files {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).map_err(|e| not_written(&path, &e))?;
    }
    Ok(())
}

fn not_written(path: &Path, e: &std::io::Error) -> Error {
    Error::new(Code::CommandFailed, format!("write {}: {e}", path.display()), "choose another folder with --frames")
}
