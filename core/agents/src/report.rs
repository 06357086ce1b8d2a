//! The tool `report`: a child's result, in the form that its role or its parent wants. A valid call ends its Turn.

use serde_json::Value;

use call::agents::REPORT;
use call::{Context, Output, Prepared, Tool};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::Result;
use protocol::event::Preview;
use protocol::tool_spec::ToolSpec;

/// The tool, whose arguments have this schema.
pub(super) struct Report(pub(super) Value);

impl Tool for Report {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: REPORT.into(),
            description: "Report your result. This ends your work, and the agent that started you reads nothing else."
                .into(),
            parameters: self.0.clone().into(),
            reads_only: true,
            streams: "reads nothing from stdin; prints nothing".into(),
        }
    }

    fn describe(&self, _args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Agent, "report", "the result")
    }

    fn prepare(&self, _args: Value, _ctx: &Context) -> Result<Prepared> {
        let preview = Preview { would: "report".into(), target: "the result".into(), ..Preview::default() };
        Ok(Prepared::new(preview, Touch::Note, |ctx| async move { Ok(Output::text(&ctx, "reported")) }))
    }
}
