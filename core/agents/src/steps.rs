//! Children that do steps of a workflow: their rounds, the files that they work on, and where these files go.

use std::sync::Arc;

use super::child::{Child, TurnOrder};
use super::copies;
use super::node::Node;
use super::way::Begins;
use call::agents::{Order, OrderedBy, Settle};
use files::workspace::Workspace;
use protocol::agent::AgentState;
use protocol::error::Result;
use protocol::event::{Adoption, AgentEvent, AgentResult, AgentStatus, Isolation, Telling, ToldBy};
use protocol::input::Message;

impl Node {
    /// Has a child go on with the next round.
    pub(super) async fn next_round(self: Arc<Node>, name: String, order: Order) -> Result<AgentState> {
        let child = self.child(&name)?;
        let told =
            AgentEvent::Told { name: name.clone(), by: ToldBy::Parent, how: Telling::Next, text: order.task.clone() };
        self.record(told).await?;
        let (is_awaited, stop) = (order.waits, order.cancel.child_token());
        child.queue(TurnOrder { is_awaited, waiting: 0, stop, by: OrderedBy::Parent });
        let state = child.change(|state| state.status = AgentStatus::Queued);
        self.record(AgentEvent::Resumed { name }).await?;
        self.publish(state.clone());
        task::spawn(Arc::clone(&self).run(child, Begins::Again(Message { text: order.task, ..Message::default() })));
        Ok(state)
    }

    /// The files that a child works on.
    pub(super) fn files_of(&self, name: &str) -> Result<Arc<Workspace>> {
        let child = self.child(name)?;
        copies::workspace(&self.base.0, &self.at.tree.root, &child)
    }

    /// The step of a child is over.
    pub(super) async fn settle_step(self: Arc<Node>, name: String, how: Settle) -> Result<Option<Adoption>> {
        let child = self.child(&name)?;
        let adoption = match how {
            Settle::Adopt => self.adopt_step(&child).await,
            Settle::Keep => {
                // The count of files that wait is what keeps the copy, also when pixir ends.
                if child.isolation == Isolation::Copy {
                    self.show_files(&child, false).await;
                }
                Ok(None)
            }
            Settle::Drop => {
                child.change(|state| state.waiting_files = 0);
                Ok(None)
            }
        };
        *child.adoptions.waits_for_step.lock() = false;
        self.tidy(&child).await;
        adoption
    }

    async fn adopt_step(&self, child: &Arc<Child>) -> Result<Option<Adoption>> {
        if child.isolation != Isolation::Copy {
            return Ok(None);
        }
        let mut result = AgentResult { status: AgentStatus::Completed, ..AgentResult::default() };
        let mut decided = child.adoptions.decided.subscribe();
        decided.mark_unchanged();
        let written = self.offer(child, &mut result, decided).await;
        child.change(|state| {
            state.status = AgentStatus::Completed;
            state.doing.clear();
        });
        self.publish(child.state());
        match (result.adoption, written) {
            (None, Err(error)) => Err(error),
            (adoption, _) => Ok(adoption.map(|it| *it)),
        }
    }
}
