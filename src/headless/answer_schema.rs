//! The JSON Schema that the answer of a run must fit: `--output-schema`.

use std::path::Path;

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, ValidationError};
use pixir_core::input::Message;
use pixir_core::{Code, Error, Remedy, Result};
use serde_json::Value;

/// The most faults that a model or a user is told of.
const MOST: usize = 20;

/// A JSON Schema, and how the model hears of it.
pub(crate) struct AnswerSchema {
    schema: Value,
    compiled: Schemas,
    root: SchemaIndex,
}

impl AnswerSchema {
    /// Reads the schema of a file.
    ///
    /// # Errors
    /// `NOT_FOUND`, `READ_FAILED`; `CONFIG_INVALID` for a schema that pixir cannot check.
    pub(crate) fn read(path: &Path) -> Result<AnswerSchema> {
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
        AnswerSchema::of(schema, &shown).map_err(|e| {
            let why = match &*e {
                CompileError::ValidationError { src, .. } => faults(src).join("; "),
                other => format!("{other:#}"),
            };
            let fix = "mend the schema; references lead into this file, or to files beside it";
            Error::new(Code::ConfigInvalid, format!("{shown} is no JSON Schema: {why}"), fix)
                .with("input", shown.as_str())
        })
    }

    /// `at` is the file of the schema, which references of it start from.
    fn of(schema: Value, at: &str) -> std::result::Result<AnswerSchema, Box<CompileError>> {
        let (mut compiler, mut compiled) = (Compiler::new(), Schemas::new());
        compiler.add_resource(at, schema.clone()).map_err(Box::new)?;
        let root = compiler.compile(at, &mut compiled).map_err(Box::new)?;
        Ok(AnswerSchema { schema, compiled, root })
    }

    /// The prompt, with what its answer must be.
    pub(crate) fn ask(&self, mut message: Message) -> Message {
        message.text.push_str(&format!(
            "\n\nYour last message must be one JSON value that fits this JSON Schema, with no other text:\n{}",
            self.schema
        ));
        message
    }

    /// The value of an answer.
    ///
    /// # Errors
    /// What is wrong with it, each fault on its own.
    pub(super) fn value(&self, answer: &str) -> std::result::Result<Value, Vec<String>> {
        let value = serde_json::from_str(bare(answer)).map_err(|e| vec![format!("it is no JSON value: {e}")])?;
        let checked = self.compiled.validate(&value, self.root).map_err(|e| faults(&e));
        checked.map(|()| value)
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
        Error::new(
            Code::OutputInvalid,
            message,
            Remedy::text("ask again with a simpler schema, or with another model: ").and_flag("--model NAME"),
        )
        .with("faults", faults)
    }
}

/// What is wrong with a value, each fault with its place.
fn faults(error: &ValidationError<'_, '_>) -> Vec<String> {
    let mut all = Vec::new();
    collect(error, &mut all);
    all.truncate(MOST);
    all
}

fn collect(error: &ValidationError<'_, '_>, all: &mut Vec<String>) {
    let place = error.instance_location.to_string();
    let at = if place.is_empty() { "the value".to_owned() } else { place };
    match &error.kind {
        // They only lead to what is wrong.
        ErrorKind::Group
        | ErrorKind::Schema { .. }
        | ErrorKind::Reference { .. }
        | ErrorKind::AllOf
        | ErrorKind::AnyOf
        | ErrorKind::OneOf(None)
            if !error.causes.is_empty() => {}
        ErrorKind::FalseSchema => all.push(format!("{at}: nothing is allowed here")),
        ErrorKind::Not => all.push(format!("{at}: it fits the schema of `not`")),
        other => all.push(format!("{at}: {other}")),
    }
    error.causes.iter().for_each(|cause| collect(cause, all));
}

/// The JSON of an answer that a model put in a block of code.
fn bare(answer: &str) -> &str {
    let text = answer.trim();
    let inner = text.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    let without_name = inner.map(|it| it.split_once('\n').map_or(it, |(_, rest)| rest));
    without_name.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fitting(schema: Value) -> AnswerSchema {
        AnswerSchema::of(schema, "schema.json").unwrap_or_else(|e| panic!("{e:#}"))
    }

    /// Broken build: a block of code, which many models put around JSON, counts as a fault.
    #[test]
    fn an_answer_in_a_block_of_code_is_its_json() {
        let schema = fitting(json!({"type": "object", "required": ["n"]}));
        for answer in ["{\"n\": 1}", " {\"n\": 1}\n", "```json\n{\"n\": 1}\n```", "```\n{\"n\": 1}```"] {
            assert_eq!(schema.value(answer), Ok(json!({"n": 1})), "{answer}");
        }
        assert_eq!(schema.value("Here: {\"n\": 1}").map_err(|it| it.len()), Err(1));
    }

    /// Broken build: the model is told that the answer is wrong, and not where.
    #[test]
    fn each_fault_is_told_with_its_place() {
        let schema = fitting(json!({
            "type": "object",
            "properties": {"files": {"type": "array", "items": {"$ref": "#/$defs/file"}}, "kind": {"enum": ["a", "b"]}},
            "required": ["files"],
            "additionalProperties": false,
            "$defs": {"file": {"type": "object", "properties": {"lines": {"type": "integer", "minimum": 1}}}},
        }));
        let told = schema
            .value(r#"{"files": [{"lines": 3}, {"lines": 0}], "kind": "c", "more": 1}"#)
            .expect_err("three faults");
        assert_eq!(told.len(), 3, "{told:?}");
        for part in ["/files/1/lines: must be >=1, but got 0", "/kind: value must be one of", "'more' not allowed"] {
            assert!(told.iter().any(|it| it.contains(part)), "{part} in {told:?}");
        }
        assert_eq!(schema.value("[]"), Err(vec!["the value: want object, but got array".to_owned()]));
    }

    /// Broken build: a schema that cannot be used is noticed after the model was paid.
    #[test]
    fn a_schema_that_is_none_is_refused() {
        let wrong = [
            json!({"type": "strin"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"pattern": "("}),
            json!(3),
        ];
        for schema in wrong {
            assert!(AnswerSchema::of(schema.clone(), "schema.json").is_err(), "{schema}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                    .prop_map(|it| Value::Object(it.into_iter().collect())),
            ]
        })
    }

    /// The schema that describes exactly the types and fields of a value.
    fn describing(value: &Value) -> Value {
        match value {
            Value::Null => json!({"type": "null"}),
            Value::Bool(_) => json!({"type": "boolean"}),
            Value::Number(_) => json!({"type": "integer"}),
            Value::String(_) => json!({"type": "string"}),
            Value::Array(items) => json!({
                "type": "array", "items": false, "minItems": items.len(),
                "prefixItems": items.iter().map(describing).chain([json!(true)]).collect::<Vec<_>>(),
                "maxItems": items.len(),
            }),
            Value::Object(fields) => json!({
                "type": "object", "additionalProperties": false, "required": fields.keys().collect::<Vec<_>>(),
                "properties": fields.iter().map(|(key, it)| (key.clone(), describing(it))).collect::<serde_json::Map<_, _>>(),
            }),
        }
    }

    proptest! {
        /// Broken build: what `collect` passes over makes an answer that does not fit one that does.
        #[test]
        fn an_answer_fits_or_is_told_at_least_one_fault(value in values(), other in values()) {
            let schema = fitting(describing(&value));
            prop_assert_eq!(schema.value(&value.to_string()), Ok(value.clone()));
            let same = describing(&value) == describing(&other);
            match schema.value(&other.to_string()) {
                Ok(_) => prop_assert!(same),
                Err(faults) => prop_assert!(!same && !faults.is_empty() && faults.len() <= MOST),
            }
        }
    }
}
