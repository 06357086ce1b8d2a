//! What a Session does with its children, besides what its calls may.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use call::Agents;
use conversation::history::Settings;
use door::Handle;
use protocol::error::Result;
use protocol::input::{Accepted, Input, RestoreOptions};
use provider::budget::Budget;

/// The child Sessions of one Session, as the Session itself has them.
pub trait Children: Agents {
    /// Sends an Input of the user to a child, or to a child of a child.
    fn pass(&self, path: &[String], input: Input) -> BoxFuture<'static, Result<Accepted>>;

    /// The door to a child, or to a child of a child.
    fn open(&self, path: &[String]) -> BoxFuture<'static, Result<Handle>>;

    /// Writes what a child changed in its copy to the workspace of this Session, as far as the options say; a dry run only shows
    /// it. With `later`, the call that waits for the decision goes on without one.
    fn adopt(&self, name: &str, options: RestoreOptions, later: bool) -> BoxFuture<'static, Result<()>>;

    /// Stops all children; none is started any more.
    fn close(&self) -> BoxFuture<'static, ()>;

    /// Refuses the open approvals and forms of all children, and every later one: the user has left.
    fn stop_asking(&self);

    /// The next request is about to be made: it may tell as much of ends as the one before.
    fn begin_request(&self);

    /// The settings of this Session have changed; those of its next children follow them.
    fn follow(&self, settings: &Settings);

    /// A Turn of this Session begins: its children draw from these budgets. Limits for each Turn count from here, unless children
    /// have woken it: then they go on.
    fn begin_turn(&self, budgets: Arc<[Budget]>, is_woken: bool);
}
