//! A conversation of any length, as conversations are, in a Log of its own.

use std::path::Path;
use std::time::Instant;

use pixir_core::Fact;
use pixir_core::event::{
    AssistantMessage, Cost, HistoryCompaction, SessionId, SessionStarted, ToolCall, ToolResult, Toolset, Trigger,
    TurnEnded, TurnStatus, Usage, UserMessage,
};
use pixir_core::log::Log;

/// The n-th entry of a conversation as they are: a request, a few calls with results, an answer.
fn fact(n: usize) -> Fact {
    match n % 10 {
        0 => UserMessage { text: format!("please look at part {n} and fix it"), ..UserMessage::default() }.into(),
        8 => AssistantMessage {
            text: "I looked at it and **fixed** what was wrong.\n".repeat(8),
            partial: false,
            phase: None,
        }
        .into(),
        9 => TurnEnded {
            status: TurnStatus::Completed,
            error: None,
            usage: Usage::default(),
            usage_estimated: false,
            cost: Cost::default(),
            duration_ms: 12,
            tool_calls: 3,
            details: serde_json::Map::new(),
        }
        .into(),
        odd if odd % 2 == 1 => ToolCall {
            call_id: format!("call_{n}"),
            name: "read".into(),
            args: serde_json::json!({ "path": format!("src/part{n}.rs"), "offset": 1 }).into(),
            info: None,
        }
        .into(),
        _ => ToolResult {
            call_id: format!("call_{}", n - 1),
            ok: true,
            output: "    let value = compute(input)?; // as before\n".repeat(16),
            exit_code: Some(0),
            duration_ms: 3,
            ..ToolResult::default()
        }
        .into(),
    }
}

pub(crate) fn write_log(folder: &Path, workspace: &Path, entries: usize) -> (SessionId, std::path::PathBuf, f64) {
    let id = SessionId::now();
    let path = folder.join(format!("{id}.ndjson"));
    let mut log = Log::create(&path, id.clone()).expect("create");
    let started = SessionStarted {
        workspace: workspace.display().to_string(),
        model: "m".into(),
        provider: "demo".into(),
        toolset: Toolset::Typed,
        pixir_version: "0".into(),
        ..SessionStarted::default()
    };
    log.append(None, started.into()).expect("append");
    let facts: Vec<Fact> = (0..entries).map(fact).collect();
    let began = Instant::now();
    for (n, fact) in facts.into_iter().enumerate() {
        log.append(Some(u32::try_from(n / 10 + 1).expect("small")), fact).expect("append");
    }
    let took = began.elapsed().as_secs_f64();
    log.establish().expect("establish");
    (id, path, took)
}

/// The same, compacted: the next request has a summary and the last Turn only.
pub(crate) fn write_compacted(folder: &Path, workspace: &Path, entries: usize) {
    let (id, path, _) = write_log(folder, workspace, entries);
    let (mut log, contents) = Log::open(&path, id).expect("open");
    let summary = HistoryCompaction {
        strategy: "deterministic".into(),
        trigger: Trigger::Manual,
        summary: "It looked at many parts and fixed them.".into(),
        kept_from_seq: contents.entries.len() as u64 - 9,
        entries_dropped: entries as u64,
        ..HistoryCompaction::default()
    };
    log.append(None, summary.into()).expect("append");
    log.sync().expect("sync");
}
