//! `pixir agents list|show|validate`: the roles of agents and of the session.

use std::path::Path;

use clap::Args;
use pixir_core::error::nearest;
use pixir_core::event::Isolation;
use pixir_core::trust::Standing;
use pixir_core::{Code, Error, Harness, Remedy, Result, Role};
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::commands::found::{one_line, standing, weight};
use crate::output::{List, ListOptions};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Name of the role
    name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Name of a role, or path of a file NAME.md or of a folder of them. Default: all roles that have a file
    #[arg(value_name = "NAME|PATH")]
    targets: Vec<String>,
}

pub(super) fn list(cli: &Cli, options: &ListOptions) -> Result<u8> {
    let all = cli.offline_harness()?.roles();
    let width = all.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    let columns = &["name", "kind", "origin", "standing.is", "path"];
    let list = List { name: "roles", key: "name", columns, rows: all.iter().map(about).collect(), beside: json!({}) };
    list.print(&cli.output, options, |at| {
        let it = &all[at];
        let (origin, standing) = (it.origin.name(), standing(&it.standing));
        let files = it.isolation.map_or("", Isolation::name);
        let name = &it.name;
        format!("{name:<width$}  {:<7}  {origin:<9}  {standing:<11}  {files:<7}  {}", it.kind.name(), it.description)
    })?;
    Ok(0)
}

fn about(it: &Role) -> Value {
    json!({
        "name": it.name,
        "description": it.description,
        "kind": it.kind,
        "origin": it.origin,
        "path": it.path,
        "standing": it.standing,
        "mode": it.mode,
        "tools": it.tools,
        "commands": it.commands,
        "writes": it.writes,
        "web": it.web,
        "model": it.model,
        "effort": it.effort,
        "limits": it.limits,
        "spawns": it.spawns,
        "isolation": it.isolation,
        "context": it.context,
        "schema": it.schema,
        "skills": it.skills,
        "digest": it.digest,
        "findings": it.findings,
        "hides": it.hides,
    })
}

pub(super) fn show(cli: &Cli, args: &ShowArgs) -> Result<u8> {
    let all = cli.offline_harness()?.roles();
    let it = named(&all, &args.name)?;
    let mut document = about(it);
    document["ok"] = true.into();
    document["body"] = it.body.as_str().into();
    let why = fault(it).map_or_else(String::new, |why| format!(": {why}"));
    let mut lines =
        vec![format!("{}  ({}, {}{why})", it.name, it.origin.name(), standing(&it.standing)), it.description.clone()];
    lines.extend(it.path.as_deref().map(|path| format!("file: {}", one_line(path))));
    lines.push(format!("for: {}", it.kind.name()));
    lines.extend(it.mode.map(|mode| format!("mode: at most {}", mode.name())));
    lines.extend(listed("tools", it.tools.as_deref()));
    lines.extend(listed("commands", it.commands.as_deref()));
    lines.extend(listed("writes", it.writes.as_deref()));
    lines.extend(it.isolation.map(|isolation| format!("works on: {}", files_of(isolation))));
    lines
        .extend(Some(it.context).filter(|it| !it.is_none()).map(|_| "begins with: the conversation so far".to_owned()));
    lines.extend(it.web.map(|web| format!("web: {}", if web { "as the rules say" } else { "no" })));
    lines.extend(it.model.as_ref().map(|model| format!("model: {model}")));
    lines.extend(it.effort.as_ref().map(|effort| format!("effort: {effort}")));
    let limits = [
        it.limits.rounds.map(|n| format!("{n} rounds")),
        it.limits.tokens.map(|n| format!("{n} tokens")),
        it.limits.seconds.map(|n| format!("{n} s")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    lines.extend(Some(limits).filter(|it| !it.is_empty()).map(|it| format!("limits: {}", it.join(", "))));
    lines.extend(listed("spawns", it.spawns.as_deref()));
    lines.extend(Some(&it.skills).filter(|it| !it.is_empty()).map(|it| format!("skills: {}", it.join(", "))));
    lines.extend(it.schema.as_ref().map(|schema| format!("report: {schema}")));
    lines.extend(it.findings.iter().map(|it| format!("{}: {it}", weight(it.weight))));
    lines.extend(Some(&it.body).filter(|it| !it.is_empty()).map(|it| format!("\n{}", it.trim_end())));
    cli.output.either(document, &lines.join("\n"));
    Ok(0)
}

fn files_of(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Shared => "the workspace (shared)",
        Isolation::Copy => "a copy, which is adopted (copy)",
        Isolation::Scratch => "a copy, which is thrown away (scratch)",
    }
}

fn listed(name: &str, all: Option<&[String]>) -> Option<String> {
    all.map(|all| format!("{name}: {}", if all.is_empty() { "none".to_owned() } else { all.join(", ") }))
}

/// Why the role cannot be used.
fn fault(it: &Role) -> Option<&str> {
    if let Standing::Unusable { why } = &it.standing { Some(why) } else { None }
}

fn named<'a>(all: &'a [Role], name: &str) -> Result<&'a Role> {
    all.iter().find(|it| it.name == name).ok_or_else(|| {
        let fix = match nearest(name, all.iter().map(|it| it.name.as_str())) {
            Some(near) => Remedy::nearest(near),
            None => Remedy::command("pixir agents list"),
        };
        Error::new(Code::NotFound, format!("there is no role `{}`", name.escape_debug()), fix).with("input", name)
    })
}

pub(super) fn validate(cli: &Cli, args: &ValidateArgs) -> Result<u8> {
    let all = cli.offline_harness()?.roles();
    let mut checked: Vec<Role> = Vec::new();
    for target in &args.targets {
        // A name cannot have a slash, and a path can always be written with one.
        match all.iter().find(|it| it.name == *target) {
            Some(role) => checked.push(role.clone()),
            None if target.contains('/') || Path::new(target).exists() => {
                checked.extend(Harness::validate_roles(Path::new(target))?);
            }
            None => checked.push(named(&all, target)?.clone()),
        }
    }
    if args.targets.is_empty() {
        checked = all.into_iter().filter(|it| it.path.is_some()).collect();
    }
    let mut lines = Vec::new();
    for it in &checked {
        let mark = if fault(it).is_none() { "✓" } else { "✗" };
        let place = it.path.as_deref().map_or_else(|| it.origin.name().to_owned(), one_line);
        lines.push(format!("{mark} {}  {place}", it.name));
        lines.extend(fault(it).map(|why| format!("    cannot be used: {why}")));
        lines.extend(
            it.findings.iter().map(|it| {
                format!("    line {}: {}: {}\n        fix: {}", it.line, weight(it.weight), it.message, it.fix)
            }),
        );
    }
    if checked.is_empty() {
        lines.push("no files of roles; one is NAME.md in .pixir/agents or ~/.config/pixir/agents".to_owned());
    }
    let is_valid = checked.iter().all(|it| fault(it).is_none());
    let about = |it: &Role| json!({ "name": it.name, "path": it.path, "ok": fault(it).is_none(), "why": fault(it), "findings": it.findings });
    let document = json!({ "ok": is_valid, "roles": checked.iter().map(about).collect::<Vec<_>>() });
    cli.output.either(document, &lines.join("\n"));
    Ok(u8::from(!is_valid))
}
