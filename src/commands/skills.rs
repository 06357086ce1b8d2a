//! `pixir skills`: list, show and check the skills of the user and of the workspace.

use std::path::Path;

use clap::{Args, Subcommand};
use pixir_core::error::nearest;
use pixir_core::trust::Standing;
use pixir_core::{Code, Error, Harness, Remedy, Result, Skill, Validated};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::commands::found::{one_line, standing, weight};
use crate::output::{List, ListOptions};

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills of the user and of the workspace, and whether each is in force
    #[command(after_help = "Examples:\n  pixir skills list\n  pixir skills list --json | jq '.skills[].name'")]
    List(ListOptions),
    /// Show a skill: its fields, where it is, what is odd about it, and its text
    #[command(after_help = "Examples:\n  pixir skills show review\n  pixir skills show review --json")]
    Show(ShowArgs),
    /// Check skills against the Agent Skills format; exits with 1 if one has a fault
    #[command(
        after_help = "Examples:\n  pixir skills validate\n  pixir skills validate .claude/skills\n  pixir skills validate review --json"
    )]
    Validate(ValidateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the skill
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Name of a skill, or path of a SKILL.md, of its folder or of a folder of skills. Default: all skills that list shows
    #[arg(value_name = "NAME|PATH")]
    targets: Vec<String>,
}

pub(super) fn run(cli: &Cli, command: SkillsCommand) -> Result<u8> {
    match command {
        SkillsCommand::List(options) => list(cli, &options),
        SkillsCommand::Show(args) => show(cli, &args.name),
        SkillsCommand::Validate(args) => validate(cli, &args.targets),
    }
}

fn list(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let all = cli.offline_harness()?.skills();
    let width = all.iter().map(|it| it.name.chars().count()).max().unwrap_or(0).min(32);
    let columns = &["name", "origin", "standing.is", "path"];
    let list = List { name: "skills", key: "name", columns, rows: all.iter().map(about).collect(), beside: json!({}) };
    list.print(&cli.output, options, |at| {
        let it = &all[at];
        let about =
            it.warning().map_or_else(|| it.description.clone(), |warning| format!("{} · {warning}", it.description));
        format!("{:<width$}  {:<9}  {:<11}  {about}", it.name, it.origin.name(), standing(&it.standing))
    })?;
    if all.is_empty() {
        cli.output.aside("no skills; one is a folder with a SKILL.md, such as .pixir/skills/review/SKILL.md");
    }
    Ok(0)
}

fn about(it: &Skill) -> Value {
    json!({
        "name": it.name,
        "description": it.description,
        "origin": it.origin,
        "path": it.path,
        "standing": it.standing,
        "for_model": it.is_for_model(),
        "fields": it.fields,
        "findings": it.findings,
        "hides": it.hides,
    })
}

fn show(cli: &Cli, name: &str) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let all = harness.skills();
    let it = named(&all, name)?;
    let text = harness.skill_text(it);
    let mut document = about(it);
    document["ok"] = true.into();
    if let Ok(text) = &text {
        document["text"] = text.as_str().into();
    }
    let fields = &it.fields;
    let why = if let Standing::Unusable { why } = &it.standing { format!(": {why}") } else { String::new() };
    let mut lines = vec![
        format!("{}  ({}, {}{why})", it.name, it.origin.name(), standing(&it.standing)),
        it.description.clone(),
        format!("file: {}", one_line(&it.path)),
    ];
    let field = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}: {value}"));
    lines.extend(field("license", &fields.license));
    lines.extend(field("compatibility", &fields.compatibility));
    lines.extend(field("arguments", &fields.argument_hint));
    if !fields.allowed_tools.is_empty() {
        lines.push(format!("allowed-tools: {}  (grants nothing)", fields.allowed_tools.join(", ")));
    }
    if fields.disable_model_invocation {
        lines.push("only the user activates it".to_owned());
    }
    lines.extend(it.validated().findings.iter().map(|it| format!("{}: {it}", weight(it.weight))));
    lines.extend(text.ok().map(|text| format!("\n{}", text.trim_end())));
    cli.output.either(document, &lines.join("\n"));
    Ok(0)
}

fn named<'a>(all: &'a [Skill], name: &str) -> Result<&'a Skill> {
    all.iter().find(|it| it.name == name).ok_or_else(|| {
        let fix = match nearest(name, all.iter().map(|it| it.name.as_str())) {
            Some(near) => Remedy::nearest(near),
            None => Remedy::command("pixir skills list"),
        };
        Error::new(Code::SkillNotFound, format!("there is no skill `{}`", name.escape_debug()), fix).with("input", name)
    })
}

fn validate(cli: &Cli, targets: &[String]) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let all = harness.skills();
    let mut checked: Vec<Validated> = Vec::new();
    for target in targets {
        // A name cannot have a slash, and a path can always be written with one.
        match all.iter().find(|it| it.name == *target) {
            Some(skill) => checked.push(skill.validated()),
            None if target.contains('/') || Path::new(target).exists() => {
                checked.extend(Harness::validate_skills(Path::new(target))?);
            }
            None => checked.push(named(&all, target)?.validated()),
        }
    }
    if targets.is_empty() {
        checked = all.iter().map(Skill::validated).collect();
    }
    let is_valid = checked.iter().all(Validated::is_valid);
    let mut lines = Vec::new();
    for it in &checked {
        let mark = if it.is_valid() { "✓" } else { "✗" };
        lines.push(format!("{mark} {}  {}", it.name, one_line(&it.path)));
        lines.extend(
            it.findings.iter().map(|it| {
                format!("    line {}: {}: {}\n        fix: {}", it.line, weight(it.weight), it.message, it.fix)
            }),
        );
    }
    if checked.is_empty() {
        lines.push("no skills to check".to_owned());
    }
    let skills = checked
        .iter()
        .map(|it| json!({ "name": it.name, "path": it.path, "ok": it.is_valid(), "findings": it.findings }));
    let document = json!({ "ok": is_valid, "skills": skills.collect::<Vec<_>>() });
    cli.output.either(document, &lines.join("\n"));
    Ok(u8::from(!is_valid))
}
