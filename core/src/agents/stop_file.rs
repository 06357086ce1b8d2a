//! A stop of all agents that another process asks for. Only the process that has a Session open can stop its agents, so the
//! other one leaves a file, which is looked for as long as agents run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::node::Node;
use crate::call::agents::Stop;
use crate::call::off_loop;

/// How often the file is looked for.
const LOOK: Duration = Duration::from_millis(250);

impl Node {
    /// Looks for the file until no agent runs. The root does it for the whole tree.
    pub(super) fn heed_stop_file(&self) {
        if !self.at.path.is_empty() || self.heeds_stop_file.swap(true, Ordering::AcqRel) {
            return;
        }
        let (me, place) = (self.weak(), Arc::new(self.base.0.place(&self.id)));
        tokio::spawn(async move {
            // One that no process took when it was written is not meant for these agents.
            place.take_back_end_of_agents();
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(node) = me.upgrade() else { return };
                let place = Arc::clone(&place);
                let is_asked = off_loop(move || Ok(place.take_back_end_of_agents())).await;
                if is_asked.unwrap_or_default() {
                    tracing::info!(session = %node.id, "another process asked for the end of all agents");
                    Arc::clone(&node).stop_some(Stop::All).await;
                }
                if node.has_open() {
                    continue;
                }
                node.heeds_stop_file.store(false, Ordering::Release);
                // An agent that began in between saw the file being looked for.
                if !node.has_open() || node.heeds_stop_file.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
    }

    fn has_open(&self) -> bool {
        self.children.lock().iter().any(|child| child.is_open())
    }
}
