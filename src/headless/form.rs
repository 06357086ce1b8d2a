//! The form that the answer of a run must have: `--output-schema`.

use std::path::Path;

use pixir_core::input::Message;
use pixir_core::text::schema::Schema;
use pixir_core::{Code, Error, Result};
use serde_json::Value;

/// A JSON Schema, and how the model hears of it.
pub(crate) struct Form(Schema);

impl Form {
    /// Reads the schema of a file.
    ///
    /// # Errors
    /// `NOT_FOUND`, `READ_FAILED`; `CONFIG_INVALID` for a schema that pixir cannot check.
    pub(crate) fn read(path: &Path) -> Result<Form> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::ReadFailed };
            Error::new(code, format!("read the schema {shown}: {e}"), "name a file with a JSON Schema")
                .with("input", shown.as_str())
        })?;
        let schema: Value = serde_json::from_str(&text).map_err(|e| {
            Error::new(Code::ConfigInvalid, format!("{shown} is no JSON: {e}"), "a JSON Schema (draft 2020-12)")
                .with("input", shown.as_str())
        })?;
        let invalid = |e: Error| Error { code: Code::ConfigInvalid, message: format!("{shown}: {}", e.message), ..e };
        Schema::new(schema).map(Form).map_err(|e| invalid(e).with("input", shown.as_str()))
    }

    /// The prompt, with what its answer must be.
    pub(crate) fn ask(&self, mut message: Message) -> Message {
        message.text.push_str(&format!(
            "\n\nYour last message must be one JSON value that fits this JSON Schema, with no other text:\n{}",
            self.0.as_value()
        ));
        message
    }

    /// The value of an answer.
    ///
    /// # Errors
    /// What is wrong with it, each fault on its own.
    pub(super) fn value(&self, answer: &str) -> std::result::Result<Value, Vec<String>> {
        let value = serde_json::from_str(bare(answer)).map_err(|e| vec![format!("it is no JSON value: {e}")])?;
        let faults = self.0.faults(&value);
        if faults.is_empty() { Ok(value) } else { Err(faults) }
    }

    /// The prompt after an answer that does not fit.
    pub(super) fn again(&self, faults: &[String]) -> String {
        let faults: Vec<String> = faults.iter().map(|it| format!("- {it}")).collect();
        format!(
            "Your answer does not fit the JSON Schema:\n{}\n\nAnswer with the corrected JSON value alone.",
            faults.join("\n")
        )
    }

    /// The end of a run whose second answer does not fit either.
    pub(super) fn error(faults: &[String]) -> Error {
        let message = format!("the answer does not fit the schema: {}", faults.join("; "));
        Error::new(Code::OutputInvalid, message, "ask again with a simpler schema, or with another --model")
            .with("faults", faults)
    }
}

/// The JSON of an answer that a model put in a block of code.
fn bare(answer: &str) -> &str {
    let text = answer.trim();
    let inner = text.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    let without_name = inner.map(|it| it.split_once('\n').map_or(it, |(_, rest)| rest));
    without_name.unwrap_or(text).trim()
}
