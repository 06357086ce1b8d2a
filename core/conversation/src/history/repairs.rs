//! What completes a Log whose process died in a Turn.

use super::History;
use super::item::NOT_RUN;
use protocol::event::{Cost, Fact, ToolResult, TurnEnded, TurnStatus, Usage};

impl History {
    /// Returns the Facts that complete a Log after a crash or a full disk: results of open calls, and the end of the
    /// Turn.
    pub fn repairs(&self) -> Vec<Fact> {
        let mut facts: Vec<Fact> = self.orphans().map(|id| History::orphan_result(id).into()).collect();
        if self.turn_open {
            let details = serde_json::Map::from_iter([("reason".to_owned(), "crash".into())]);
            facts.push(
                TurnEnded {
                    status: TurnStatus::Interrupted,
                    error: None,
                    usage: Usage::default(),
                    usage_estimated: false,
                    cost: Cost::default(),
                    duration_ms: 0,
                    tool_calls: 0,
                    details,
                }
                .into(),
            );
        }
        facts
    }

    /// The result of a call that was interrupted before its result was recorded.
    pub fn orphan_result(call_id: &str) -> ToolResult {
        let error = protocol::error::Error::new(
            protocol::error::Code::OrphanToolCall,
            "the call was cut off before its result was recorded",
            "check what it did before running it again",
        )
        .with("reason", "orphan_tool_call");
        ToolResult {
            call_id: call_id.to_owned(),
            ok: false,
            output: NOT_RUN.to_owned(),
            error: Some(error.body().into()),
            ..ToolResult::default()
        }
    }
}
