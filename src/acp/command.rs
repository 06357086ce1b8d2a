//! What a client asks of a Session.

use serde_json::Value;

use crate::json_rpc::{Failure, Reply};

/// What a client asks of an open Session.
pub(super) enum Command {
    Prompt {
        reply: Reply,
        params: Value,
    },
    /// Stop everything that the client has asked for.
    Cancel,
    /// Stop the prompt with this id.
    CancelRequest(Value),
    SetMode {
        reply: Reply,
        mode: Value,
    },
    SetOption {
        reply: Reply,
        params: Value,
    },
    /// Any Input, as a host sends it.
    Input {
        reply: Reply,
        input: Value,
    },
    /// Tell the conversation again.
    Load {
        reply: Reply,
    },
    Resume {
        reply: Reply,
    },
    Close {
        reply: Reply,
    },
    /// The client has gone.
    End,
}

impl Command {
    /// Answers a request that no Session takes.
    pub(super) fn refuse(self, failure: &Failure) {
        match self {
            Command::Prompt { reply, .. }
            | Command::SetMode { reply, .. }
            | Command::SetOption { reply, .. }
            | Command::Input { reply, .. }
            | Command::Load { reply }
            | Command::Resume { reply }
            | Command::Close { reply } => reply.send(Err(failure.clone())),
            Command::Cancel | Command::CancelRequest(_) | Command::End => {}
        }
    }
}

/// How a Session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    Load,
    Resume,
}
