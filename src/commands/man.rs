//! `pixir man`: manual pages, from the definitions of the parser.

use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use pixir_core::error::nearest;
use pixir_core::{Code, Error, Result};

use crate::args::whole;
use crate::cli::Cli;
use crate::output::chatter;

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Command to print the page of, such as sessions list. Default: pixir
    command: Vec<String>,
    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    to: Option<PathBuf>,
}

pub(super) fn run(cli: &Cli, args: &ManArgs) -> Result<u8> {
    let mut root = whole();
    // Options of all commands reach those below only when the tree is built.
    root.build();
    if let Some(folder) = &args.to {
        let failed = |e: std::io::Error| {
            let message = format!("write the pages to {}: {e}", folder.display());
            Error::new(Code::WriteFailed, message, "name a folder that can be written")
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut written = 0;
        write_all(&root, "pixir", folder, &mut written).map_err(failed)?;
        chatter(&format!("wrote {written} pages to {}", folder.display()));
        return Ok(0);
    }
    let (mut command, mut name) = (&root, "pixir".to_owned());
    for word in &args.command {
        command = command.find_subcommand(word).ok_or_else(|| {
            let names = || command.get_subcommands().map(Command::get_name);
            let fix = nearest(word, names()).map_or("pixir --help".into(), |near| format!("did you mean {near}?"));
            Error::new(Code::UnknownCommand, format!("there is no command `{}`", word.escape_debug()), fix)
                .with("input", word.as_str())
        })?;
        name = format!("{name}-{word}");
    }
    let page =
        page(command, &name).map_err(|e| Error::new(Code::WriteFailed, e.to_string(), "report this as a bug"))?;
    cli.output.bytes(&page);
    Ok(0)
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone().display_name(name.to_owned())).render(&mut text)?;
    Ok(text)
}

fn write_all(command: &Command, name: &str, folder: &Path, written: &mut usize) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("{name}.1")), page(command, name)?)?;
    *written += 1;
    let shown = command.get_subcommands().filter(|it| it.get_name() != "help");
    shown.into_iter().try_for_each(|it| write_all(it, &format!("{name}-{}", it.get_name()), folder, written))
}
