//! What the terminal can show, by its environment.

use std::io::IsTerminal as _;

use pixir_core::Result;
use pixir_ui::theme::{Background, Depth};

use crate::cli::Cli;

/// The selected theme; by default, one that fits the terminal.
pub(crate) fn theme(cli: &Cli) -> Result<String> {
    let wished = match &cli.options.theme {
        Some(name) => Some(name.clone()),
        None => cli.config()?.theme,
    };
    Ok(wished.unwrap_or_else(|| "auto".to_owned()))
}

/// How many colours the terminal has, by its environment.
pub(crate) fn depth(cli: &Cli) -> Depth {
    let term = cli.environment.variable("TERM").unwrap_or_default();
    let says = |name, values: &[&str]| cli.environment.variable(name).is_some_and(|it| values.contains(&it));
    if cli.environment.variable("NO_COLOR").is_some() || says("CLICOLOR", &["0"]) {
        Depth::Mono
    } else if says("COLORTERM", &["truecolor", "24bit"]) || term.ends_with("-direct") {
        Depth::True
    } else if term.contains("256color") {
        Depth::Indexed
    } else {
        Depth::Named
    }
}

/// Whether stdout is a terminal that shows colours.
pub(crate) fn is_coloured(cli: &Cli) -> bool {
    std::io::stdout().is_terminal() && depth(cli) != Depth::Mono
}

/// Whether the variable is set; `0` and the empty string count as unset.
pub(super) fn is_set(cli: &Cli, name: &str) -> bool {
    cli.environment.variable(name).is_some_and(|it| !matches!(it, "" | "0"))
}

/// The terminal's background; a few terminals announce it in `COLORFGBG`.
pub(crate) fn background(cli: &Cli) -> Background {
    let background = cli.environment.variable("COLORFGBG").and_then(|it| it.rsplit(';').next());
    if background.is_some_and(|it| matches!(it, "7" | "15")) { Background::Light } else { Background::Dark }
}
