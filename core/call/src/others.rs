//! Programs of others whose tools a call may use by name.

use super::Prepared;
use protocol::error::Result;

/// Prepares calls of tools of other programs from the words of a command.
pub trait Others: Send + Sync {
    /// Prepares `find WORDS`, `call TOOL [JSON]` or `read SERVER URI`.
    ///
    /// # Errors
    /// Any reason why the call cannot run.
    fn prepare(&self, words: &[&str]) -> Result<Prepared>;
}
