//! `pixir themes`: list, preview and check the themes of the terminal interface.

use std::path::Path;

use clap::Subcommand;
use pixir_core::Result;
use pixir_ui::theme::contrast::{self, Finding};
use pixir_ui::theme::{Background, Depth, Theme, preview};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::output::{List, ListOptions, Output};
use crate::terminal;

#[derive(Debug, Subcommand)]
pub(crate) enum ThemesCommand {
    /// List every theme and the selected one
    #[command(after_help = "Examples:\n  pixir themes list\n  pixir themes list --json")]
    List(ListOptions),
    /// Show what a theme looks like
    #[command(after_help = "Examples:\n  pixir themes preview\n  pixir themes preview colour-blind")]
    Preview {
        /// Theme to show. Default: every theme
        name: Option<String>,
    },
    /// Measure the contrast of every text with its background, at every colour depth
    #[command(after_help = "Examples:\n  pixir themes check\n  pixir themes check mine --json")]
    Check {
        /// Theme to check. Default: every built-in theme
        name: Option<String>,
    },
}

pub(super) fn run(cli: &Cli, command: ThemesCommand) -> Result<u8> {
    let output = &cli.output;
    let folder = cli.themes_folder();
    let folder = folder.as_deref();
    match command {
        ThemesCommand::List(options) => {
            let chosen = terminal::theme(cli)?;
            let names = Theme::names(folder);
            let rows = names.iter().map(|name| json!({ "name": name, "chosen": *name == chosen })).collect();
            let beside = json!({ "chosen": chosen });
            let list = List { name: "themes", key: "name", columns: &["name", "chosen"], rows, beside };
            list.print(output, &options, |at| {
                let name = &names[at];
                if *name == chosen { format!("{name}  (chosen)") } else { name.clone() }
            })?;
            Ok(0)
        }
        ThemesCommand::Preview { name } => {
            let names = name.map_or_else(|| Theme::names(folder), |name| vec![name]);
            for name in names {
                let theme = Theme::load(&name, folder, terminal::depth(cli), terminal::background(cli))?;
                output.line(&name);
                let shown = preview(&theme);
                if terminal::is_coloured(cli) { output.raw_line(&shown) } else { output.line(&shown) }
            }
            Ok(0)
        }
        ThemesCommand::Check { name } => {
            let all = match name {
                None => contrast::check_all(),
                Some(name) => check_one(&name, folder)?,
            };
            Ok(report(&all, output))
        }
    }
}

fn check_one(name: &str, folder: Option<&Path>) -> Result<Vec<(String, Depth, Vec<Finding>)>> {
    let mut all = Vec::new();
    for depth in [Depth::True, Depth::Indexed, Depth::Named] {
        let theme = Theme::load(name, folder, depth, Background::Dark)?;
        let background = theme.made_for();
        all.push((name.to_owned(), depth, contrast::check(&theme, background)));
    }
    Ok(all)
}

/// Prints the contrasts; returns 1 if one is too low.
fn report(all: &[(String, Depth, Vec<Finding>)], output: &Output) -> u8 {
    let depth_name = |depth: &Depth| match depth {
        Depth::True => "truecolor",
        Depth::Indexed => "256",
        Depth::Named => "16",
        Depth::Mono => "none",
    };
    let mut poor = 0;
    let mut lines = Vec::new();
    let mut themes = Vec::new();
    for (name, depth, findings) in all {
        let least = findings.iter().map(|it| it.ratio).fold(f64::INFINITY, f64::min);
        let bad: Vec<&Finding> = findings.iter().filter(|it| !it.is_enough()).collect();
        poor += bad.len();
        lines.push(format!(
            "{} {name} at {}: {} pairs, lowest contrast {least:.1}",
            if bad.is_empty() { "✓" } else { "✗" },
            depth_name(depth),
            findings.len()
        ));
        lines.extend(
            bad.iter().map(|it| format!("    {} on {}: {:.2}, needs {:.1}", it.token, it.on, it.ratio, it.wanted)),
        );
        let pairs: Vec<Value> = findings
            .iter()
            .map(|it| json!({ "token": it.token, "on": it.on, "ratio": (it.ratio * 100.0).round() / 100.0, "wanted": it.wanted, "ok": it.is_enough() }))
            .collect();
        themes.push(json!({ "theme": name, "colours": depth_name(depth), "ok": bad.is_empty(), "pairs": pairs }));
    }
    if output.is_json() {
        output.document(json!({ "ok": poor == 0, "themes": themes }));
    } else {
        output.line(&lines.join("\n"));
    }
    u8::from(poor > 0)
}
