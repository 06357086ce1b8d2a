//! The tool `recall`: it searches the messages of past Sessions, and those that a compaction has replaced.

use serde::Deserialize;
use serde_json::{Value, json};

use call::arguments::{self, object, text};
use call::outcome::Outcome;
use call::{Context, Output, Prepared, Tool};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::tool_spec::ToolSpec;

/// The default limit of messages in one result.
const LIMIT: usize = 10;

pub(super) struct Recall;

#[derive(Deserialize)]
struct Args {
    query: String,
    limit: Option<usize>,
}

impl Tool for Recall {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "recall".into(),
            description: "Search for messages that contain all of the words: in earlier sessions of this workspace, and in the part of this session that was compacted.".into(),
            parameters: object(
                json!({
                    "query": { "type": "string" },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50, "description": "The most messages (default 10)" },
                }),
                &["query"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints one message per line, exit 1 when nothing is found".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Search, "recall", text(args, "query")).with_details(args, &["limit"])
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let Args { query, limit } = arguments::parse(args)?;
        Ok(Prepared::reading("recall", query.clone(), move |ctx| {
            let text = found(ctx, &query, limit.unwrap_or(LIMIT));
            let nothing = "no message has all these words".into();
            let outcome = match text.lines().count() {
                0 => Outcome::Counted("no message".into()),
                found => Outcome::counted(found as u64, "message", "messages"),
            };
            Ok(Output { exit: i32::from(text.is_empty()), nothing, outcome, ..Output::text(ctx, &text) })
        }))
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("memory search")
    }

    fn example(&self) -> Value {
        json!({ "query": "login" })
    }
}

/// One line for each matching message.
pub fn found(ctx: &Context, query: &str, limit: usize) -> String {
    let found = ctx.library.search(query, limit, &|| ctx.cancel.is_cancelled());
    found.iter().map(|it| format!("{} {} #{} {}: {}\n", it.session, it.when, it.seq, it.who, it.text)).collect()
}
