//! `pixir status`: what is here, at a glance. It asks no server and writes nothing.

use pixir_core::Result;
use pixir_core::trust::Standing;
use serde_json::{Value, json};

use super::agents::tree::adoptions as adoptions_of;
use crate::cli::{Cli, block_on};
use crate::output::count;

pub(super) fn run(cli: &Cli) -> Result<u8> {
    let harness = cli.offline_harness()?;
    let settings = cli.all_settings()?.config;
    let sessions = harness.sessions();
    let open = |id: &str| harness.find(id).is_ok_and(|place| place.is_open());
    let running: Vec<&str> = sessions.iter().map(|it| it.id.as_str()).filter(|id| open(id)).collect();
    let answers = block_on(async { Ok(cli.selected().await) })?;
    let (model, why) = match &answers {
        Ok(it) if it.provider == "demo" => (None, it.why.clone()),
        Ok(it) => (Some(format!("{}/{}", it.provider, it.model)), it.why.clone()),
        Err(e) => (None, e.message.clone()),
    };
    let mode = cli.session_mode()?.name();
    let seen = harness.contributions();
    let waiting = seen.all.iter().filter(|it| !matches!(it.standing, Standing::InForce)).count();
    let latest = sessions.first().map(|it| {
        json!({
            "session_id": it.id, "title": it.title(), "last_activity": format!("{:.3}", it.last_activity), "turns": it.turns,
            "resume_command": format!("pixir resume {}", it.id),
        })
    });
    let mut adoptions = Vec::new();
    for it in &sessions {
        // A damaged Log has its own command.
        adoptions
            .extend(harness.find(&it.id).and_then(|place| adoptions_of(harness.store(), &place)).unwrap_or_default());
    }
    let connected = model.is_some();
    let mut next: Vec<String> = Vec::new();
    if !connected {
        next.push("pixir doctor".into());
    }
    if waiting > 0 {
        next.push("pixir trust --dry-run".into());
    }
    next.extend(adoptions.iter().cloned());
    next.extend(latest.as_ref().and_then(|it| it["resume_command"].as_str()).map(str::to_owned));
    let document = json!({
        "ok": true,
        "version": env!("CARGO_PKG_VERSION"),
        "workspace": harness.workspace().display().to_string(),
        "model": model,
        "why": why,
        "effort": settings.effort,
        "mode": mode,
        "not_in_force": waiting,
        "sessions": sessions.len(),
        "running": running,
        "latest": latest,
        "agents_waiting": adoptions.len(),
        "next_actions": next,
    });
    let last = latest.as_ref().map_or("none yet".to_owned(), |it: &Value| {
        format!("{}  {}", it["session_id"].as_str().unwrap_or_default(), it["title"].as_str().unwrap_or_default())
    });
    let mut lines = vec![
        format!("workspace  {}", harness.workspace().display()),
        format!("model      {} ({why})", model.as_deref().unwrap_or("none")),
        format!("mode       {mode}"),
        format!("sessions   {}, {} open; latest: {last}", sessions.len(), running.len()),
    ];
    if waiting > 0 {
        lines.push(format!(
            "trust      {} of this workspace not in force: pixir trust --dry-run",
            count(waiting, "file")
        ));
    }
    if let Some(first) = adoptions.first() {
        let agents = count(adoptions.len(), "agent");
        lines.push(format!("agents     files of {agents} wait in copies: {first}"));
    }
    cli.output.either(document, &lines.join("\n"));
    Ok(0)
}
