//! The body of a request, as JSON that is written piece by piece.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::Request;
use super::dialect::Dialect;
use super::models::ModelInfo;
use super::preset::Quirks;
use crate::conversation::history::json_len;

/// The body of a request, as its Provider sends it. Serializing it copies none of the conversation.
#[derive(Debug, Clone)]
pub struct RequestBody {
    request: Request,
    form: Form,
}

/// How the body is written.
#[derive(Debug, Clone)]
enum Form {
    /// In the dialect of a server.
    Sent { dialect: Dialect, facts: ModelInfo, quirks: Quirks },
    /// There is no server; this describes the request.
    Described,
}

impl RequestBody {
    /// The body that a server with this dialect gets.
    pub(crate) fn sent(request: Request, dialect: Dialect, facts: ModelInfo, quirks: Quirks) -> RequestBody {
        RequestBody { request, form: Form::Sent { dialect, facts, quirks } }
    }

    /// A description of the request, for a Provider without a server.
    pub fn described(request: Request) -> RequestBody {
        RequestBody { request, form: Form::Described }
    }

    /// The request that the body is made from.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The size of the body, bytes.
    pub fn size(&self) -> usize {
        json_len(self)
    }

    /// The body as a value, which is as large as the conversation.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("its keys are strings")
    }
}

impl Serialize for RequestBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = &self.request;
        match &self.form {
            Form::Sent { dialect, facts, quirks } => dialect.write(request, facts, quirks, serializer),
            Form::Described => {
                let items: Vec<String> = request.items.iter().map(|item| format!("{:?}", item.piece())).collect();
                let described = json!({
                    "model": request.model, "instructions": request.instructions, "context": request.context,
                    "tools": request.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), "items": items,
                });
                described.serialize(serializer)
            }
        }
    }
}
