//! Changes of pixir repeated in the editor's buffers, if the user wants that: an editor that lists changes for review then
//! lists these too. pixir's own write is the one that counts, and comes first.

use std::collections::HashMap;

use pixir_core::Harness;
use pixir_core::call_info::{CallInfo, CallKind};
use pixir_core::event::ToolResult;
use serde_json::json;
use tokio::sync::oneshot;

use super::Attached;
use super::requests::Done;

/// The largest file that is repeated, bytes.
const MOST: usize = 256 << 10;

/// A file before a call and after it.
struct Change {
    before: String,
    after: String,
}

/// Files that a running call may change, by call and by path relative to the workspace.
#[derive(Default)]
pub(super) struct Mirror(HashMap<String, Vec<(String, oneshot::Sender<Change>)>>);

impl Mirror {
    /// The call has ended; files that it did not change are left alone.
    pub(super) fn changed(&mut self, harness: &Harness, result: &ToolResult) {
        for (path, read) in self.0.remove(&result.call_id).into_iter().flatten() {
            let Some(change) = result.changes.iter().find(|change| change.path == path) else { continue };
            let text = |blob: &Option<String>| {
                let bytes = harness.blobs().get(blob.as_ref()?).ok().filter(|bytes| bytes.len() <= MOST)?;
                String::from_utf8(bytes).ok()
            };
            if let (Some(before), Some(after)) = (text(&change.before_blob), text(&change.after_blob)) {
                let _ = read.send(Change { before, after });
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Attached {
    /// Reads the editor's buffers of the files that a call is about, before it changes them.
    pub(super) fn read_before(&mut self, call_id: &str, info: &CallInfo) {
        if !self.abilities.mirrors_writes || info.kind != CallKind::Edit {
            return;
        }
        for path in &info.paths {
            let params = json!({ "sessionId": self.id, "path": self.projection.absolute(path) });
            let asked = self.ask("fs/read_text_file", params.clone());
            let (read, changed) = oneshot::channel();
            self.mirror.0.entry(call_id.to_owned()).or_default().push((path.clone(), read));
            let client = self.client.clone();
            self.work.push(Box::pin(async move {
                let (mut changed, mut asked) = (changed, Box::pin(asked.answer()));
                let mut change = None;
                let buffer = loop {
                    tokio::select! {
                        buffer = &mut asked => break buffer,
                        outcome = &mut changed, if change.is_none() => match outcome {
                            Ok(it) => change = Some(it),
                            Err(_) => return Done::Nothing,
                        },
                    }
                };
                let Some(Change { before, after }) = (match change {
                    Some(change) => Some(change),
                    None => changed.await.ok(),
                }) else {
                    return Done::Nothing;
                };
                // A buffer that the user has edited, or that has the change already, is left alone.
                if buffer.and_then(|it| Some(it["content"].as_str()? == before)) == Some(true) {
                    let mut params = params;
                    params["content"] = json!(after);
                    let (ask, asked) = client.ask("fs/write_text_file", params);
                    client.room().await;
                    ask.send(&client);
                    asked.answer().await;
                }
                Done::Nothing
            }));
        }
    }
}
