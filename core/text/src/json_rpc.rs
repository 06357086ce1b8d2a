//! Messages of JSON-RPC 2.0, one JSON object each: what a line means, and how one is written.

use serde_json::{Value, json};

/// What one side sends to the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Wants an answer with the same id.
    Request {
        /// A string or a number; some senders write null.
        id: Value,
        /// What to do.
        method: String,
        /// With which arguments; null where there are none.
        params: Value,
    },
    /// Has no answer.
    Notification {
        /// What happened.
        method: String,
        /// The details; null where there are none.
        params: Value,
    },
    /// The answer to a request of the side that reads it.
    Answer {
        /// The id of that request.
        id: Value,
        /// The result, or the error object.
        outcome: Result<Value, Value>,
    },
}

/// Why a line is no message, as the error that answers it.
#[derive(Debug, Clone, PartialEq)]
pub struct Invalid {
    /// The id of the request, as far as it can be read.
    pub id: Value,
    /// −32700 for a line that is no JSON, else −32600.
    pub code: i32,
    /// What is wrong with it.
    pub message: String,
}

impl Message {
    /// Reads a line; `None` for an empty one.
    ///
    /// # Errors
    /// What to answer to a line that is no message.
    pub fn parse(line: &[u8]) -> Result<Option<Message>, Invalid> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let given: Value = serde_json::from_slice(line).map_err(|e| Invalid {
            id: Value::Null,
            code: -32_700,
            message: format!("the line is no JSON: {e}"),
        })?;
        let invalid = |id: Value, why: &str| Err(Invalid { id, code: -32_600, message: why.to_owned() });
        let Value::Object(mut fields) = given else {
            return invalid(Value::Null, "send one JSON object a line; batches are not served");
        };
        let id @ (None | Some(Value::Null | Value::String(_) | Value::Number(_))) = fields.remove("id") else {
            return invalid(Value::Null, "an id is a string or a number");
        };
        if fields.get("jsonrpc").is_some_and(|it| it != "2.0") {
            return invalid(id.unwrap_or_default(), "`jsonrpc` must be \"2.0\"");
        }
        let params = fields.remove("params").unwrap_or_default();
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Some(Message::Request { id, method, params })),
            (Some(Value::String(method)), None) => Ok(Some(Message::Notification { method, params })),
            (None, Some(id)) if fields.contains_key("result") || fields.contains_key("error") => {
                let result = fields.remove("result").unwrap_or_default();
                Ok(Some(Message::Answer { id, outcome: fields.remove("error").map_or(Ok(result), Err) }))
            }
            (_, id) => invalid(id.unwrap_or_default(), "a request needs a `method`"),
        }
    }
}

/// A request.
#[must_use]
pub fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The answer to a request that succeeded.
#[must_use]
pub fn result(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to a request that failed.
#[must_use]
pub fn error(id: &Value, error: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: a batch is served in part; a response without a result counts as one.
    #[test]
    fn lines_are_requests_notifications_answers_or_errors() {
        let read = |line: &str| match Message::parse(line.as_bytes()) {
            Ok(None) => "nothing".to_owned(),
            Ok(Some(Message::Request { id, method, .. })) => format!("request {id} {method}"),
            Ok(Some(Message::Notification { method, .. })) => format!("notification {method}"),
            Ok(Some(Message::Answer { id, outcome })) => format!("answer {id} {}", outcome.is_ok()),
            Err(invalid) => format!("{} {}", invalid.id, invalid.code),
        };
        let table = [
            ("", "nothing"),
            (r#"{"id":1,"method":"a"}"#, "request 1 a"),
            (r#"{"jsonrpc":"2.0","id":"x","method":"a","params":{}}"#, r#"request "x" a"#),
            (r#"{"id":null,"method":"a"}"#, "request null a"),
            (r#"{"method":"a"}"#, "notification a"),
            (r#"{"id":3,"result":null}"#, "answer 3 true"),
            (r#"{"id":3,"error":{}}"#, "answer 3 false"),
            (r#"{"id":"3","result":1}"#, r#"answer "3" true"#),
            (r#"{"id":4}"#, "4 -32600"),
            (r#"{"id":4,"method":7}"#, "4 -32600"),
            (r#"{"id":[4],"method":"a"}"#, "null -32600"),
            (r#"{"jsonrpc":"1.0","id":5,"method":"a"}"#, "5 -32600"),
            (r#"[{"id":1,"method":"a"}]"#, "null -32600"),
            ("{", "null -32700"),
        ];
        for (line, meaning) in table {
            assert_eq!(read(line), meaning, "{line}");
        }
    }
}
