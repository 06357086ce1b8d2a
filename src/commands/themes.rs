//! `pixir themes`: which there are, what they look like, how well they can be read.

use pixir_core::Result;
use pixir_core::config::Surroundings;
use pixir_ui::theme::contrast::{self, Finding};
use pixir_ui::theme::{Background, Depth, Theme, preview};
use serde_json::{Value, json};

use crate::args::{RunOptions, ThemesCommand};
use crate::output::Output;
use crate::terminal;

pub(crate) fn run(command: ThemesCommand, run: &RunOptions, around: &Surroundings, output: &Output) -> Result<u8> {
    let folder = around.user_folder.as_ref().map(|folder| folder.join("themes"));
    let folder = folder.as_deref();
    match command {
        ThemesCommand::List => {
            let chosen = terminal::theme(run, around)?;
            let names = Theme::names(folder);
            let line = |name: &String| if *name == chosen { format!("{name}  (chosen)") } else { name.clone() };
            let text = names.iter().map(line).collect::<Vec<_>>().join("\n");
            output.either(&json!({ "schema": "pixir.themes/1", "chosen": chosen, "themes": names }), &text);
            Ok(0)
        }
        ThemesCommand::Preview { name } => {
            let names = name.map_or_else(|| Theme::names(folder), |name| vec![name]);
            for name in names {
                let theme = Theme::load(&name, folder, terminal::depth(around), terminal::background(around))?;
                output.line(&name);
                output.line(&preview(&theme));
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

fn check_one(name: &str, folder: Option<&std::path::Path>) -> Result<Vec<(String, Depth, Vec<Finding>)>> {
    let mut all = Vec::new();
    for depth in [Depth::True, Depth::Indexed, Depth::Named] {
        let theme = Theme::load(name, folder, depth, Background::Dark)?;
        let background = theme.made_for();
        all.push((name.to_owned(), depth, contrast::check(&theme, background)));
    }
    Ok(all)
}

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
            "{} {name} at {}: {} pairs, the least {least:.1}",
            if bad.is_empty() { "✓" } else { "✗" },
            depth_name(depth),
            findings.len()
        ));
        lines.extend(
            bad.iter().map(|it| format!("    {} on {}: {:.2}, wanted {:.1}", it.token, it.on, it.ratio, it.wanted)),
        );
        let pairs: Vec<Value> = findings
            .iter()
            .map(|it| json!({ "token": it.token, "on": it.on, "ratio": (it.ratio * 100.0).round() / 100.0, "wanted": it.wanted, "ok": it.is_enough() }))
            .collect();
        themes.push(json!({ "theme": name, "colours": depth_name(depth), "ok": bad.is_empty(), "pairs": pairs }));
    }
    output.either(&json!({ "schema": "pixir.themes.check/1", "ok": poor == 0, "themes": themes }), &lines.join("\n"));
    u8::from(poor > 0)
}
