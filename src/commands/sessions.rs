//! `pixir sessions`: list them.

use pixir_core::harness::{Harness, Summary, all_sessions};
use serde_json::json;

use crate::args::Format;
use crate::output::{Output, chatter};

/// The latest first; bounded, and it says when it was cut.
pub(crate) fn list(harness: &Harness, home: &std::path::Path, all: bool, limit: usize, output: &Output) {
    let mut sessions = if all { all_sessions(home) } else { harness.sessions() };
    let total = sessions.len();
    sessions.truncate(limit);
    match output.format {
        Format::Json | Format::Jsonl => {
            output.document(&json!({ "schemaVersion": 1, "sessions": sessions, "total": total, "truncated": total > sessions.len() }));
        }
        Format::Tsv => sessions.iter().for_each(|it| {
            output.line(
                &[&it.id, &it.last_activity, &it.model, &it.first_prompt].map(|f| f.replace('\t', " ")).join("\t"),
            )
        }),
        Format::Plain => plain(&sessions, total, all, output),
    }
}

fn plain(sessions: &[Summary], total: usize, all: bool, output: &Output) {
    for it in sessions {
        let prompt: String = it.first_prompt.chars().take(60).collect();
        let place = if all { format!("  {}", it.workspace) } else { String::new() };
        output.line(&format!(
            "{}  {}  {prompt}{place}",
            it.id,
            it.last_activity.get(..16).unwrap_or_default().replace('T', " ")
        ));
    }
    match total {
        0 if all => chatter("no sessions yet: pixir \"your first prompt\""),
        0 => chatter("no sessions in this workspace yet: pixir \"your first prompt\" (--all lists every workspace's)"),
        _ if total > sessions.len() => chatter(&format!("{} of {total}; --limit {total} shows all", sessions.len())),
        _ => chatter("pixir resume ID goes on with one, pixir resume --last with the first"),
    }
}
