//! `pixir tui --script`: the real interface without a terminal, for tests, pictures and whoever cannot see it.

use std::path::{Path, PathBuf};

use pixir_core::config::Surroundings;
use pixir_core::{Code, Error, Result};
use pixir_ui::script::{self, Driver, Line};

use crate::args::{RunOptions, ScreenFormat};
use crate::commands::demo::Sample;
use crate::output::Output;
use crate::terminal::{self, Open};

/// What is to be run.
pub(crate) struct Job {
    pub(crate) script: String,
    pub(crate) size: String,
    pub(crate) frames: Option<PathBuf>,
    pub(crate) screen: ScreenFormat,
    pub(crate) demo: bool,
}

pub(crate) fn run(run: &RunOptions, around: &Surroundings, job: Job, output: &Output) -> Result<u8> {
    let text = if job.script == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(&job.script)
    };
    let text = text.map_err(|e| {
        Error::new(Code::Usage, format!("read the script {}: {e}", job.script), "give a file, or - for stdin")
    })?;
    let lines = script::parse(&text)?;
    let (columns, rows) = script::size(&job.size).ok_or_else(|| {
        Error::new(Code::Usage, format!("`{}` is no size", job.size), "columns and rows, such as 120x40")
    })?;
    // The demo's repository lives as long as the screen.
    let sample = if job.demo { Some(Sample::new(run, around)?) } else { None };
    let launch = match &sample {
        Some(it) => terminal::demo_launch(&it.run, &it.around, &it.workspace)?,
        None => terminal::launch(run, around, Open::New, None)?,
    };
    crate::block_on(async {
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
                Line::Frame(name) => keep(&driver, &name, &job, output)?,
            }
            if driver.is_done() && left > 0 {
                driver.close().await?;
                return Err(Error::new(
                    Code::CommandFailed,
                    format!("the program has quit, and lines of the script that were not run: {left}"),
                    "quit in the last line, or not at all",
                ));
            }
        }
        driver.close().await.map(|_| 0)
    })
}

fn keep(driver: &Driver, name: &str, job: &Job, output: &Output) -> Result<()> {
    let Some(folder) = &job.frames else {
        match job.screen {
            ScreenFormat::Text => output.line(&format!("── {name} ──\n{}", driver.screen())),
            ScreenFormat::Ansi => output.line(&driver.coloured()),
            ScreenFormat::Json => {
                let mut document = driver.semantics();
                document["frame"] = name.into();
                output.document(&document);
            }
        }
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|e| written(folder, &e))?;
    let mut files = vec![("txt", driver.screen() + "\n"), ("ansi", driver.coloured()), ("svg", driver.picture())];
    if job.screen == ScreenFormat::Json {
        files.push(("json", format!("{:#}\n", driver.semantics())));
    }
    for (ending, text) in files {
        let path = folder.join(format!("{name}.{ending}"));
        std::fs::write(&path, text).map_err(|e| written(&path, &e))?;
    }
    Ok(())
}

fn written(path: &Path, e: &std::io::Error) -> Error {
    Error::new(Code::CommandFailed, format!("write {}: {e}", path.display()), "choose another folder for --frames")
}
