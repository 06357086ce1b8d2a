//! The body of a request, as JSON that is written piece by piece.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Request;
use super::dialect::Dialect;
use super::models::ModelInfo;
use super::preset::Quirks;
use conversation::history::{Item, json_len};

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
    pub fn sent(request: Request, dialect: Dialect, facts: ModelInfo, quirks: Quirks) -> RequestBody {
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
            Form::Described => Described {
                context: &request.context,
                instructions: &request.instructions,
                items: Shown(&request.items),
                model: &request.model,
                tools: request.tools.iter().map(|tool| &*tool.name).collect(),
            }
            .serialize(serializer),
        }
    }
}

/// What a Provider without a server is asked.
#[derive(Serialize)]
struct Described<'a> {
    context: &'a str,
    instructions: &'a str,
    items: Shown<'a>,
    model: &'a str,
    tools: Vec<&'a str>,
}

/// Items as Rust shows them, each written as it is made: together they can be as large as the Log.
struct Shown<'a>(&'a [Item]);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct One<'a>(&'a Item);
        impl Serialize for One<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&format_args!("{:?}", self.0.piece()))
            }
        }
        serializer.collect_seq(self.0.iter().map(One))
    }
}
