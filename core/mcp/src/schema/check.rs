//! Arguments against the server's own schema.

use serde_json::Value;

use super::DEEPEST;
use call::arguments::kind_of;

/// The faults of arguments by the server's own schema. Keywords that this does not know pass, and so do extra properties
/// unless the schema is closed: the server has the last word.
pub(crate) fn faults(schema: &Value, args: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look(schema, schema, args, "", DEEPEST * 2, &mut found);
    found
}

fn look(root: &Value, schema: &Value, value: &Value, at: &str, depth: usize, found: &mut Vec<String>) {
    if depth == 0 || found.len() >= 8 {
        return;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        if let Some(it) = reference.strip_prefix('#').and_then(|it| root.pointer(it)) {
            look(root, it, value, at, depth - 1, found);
        }
        return;
    }
    let shown = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(it) => vec![it.as_str()],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|it| is_of(it, value)) {
        found.push(format!("{shown} must be {}, not {}", types.join(" or "), kind_of(value)));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
        let all: Vec<String> = allowed.iter().take(20).map(Value::to_string).collect();
        found.push(format!("{shown} must be one of {}", all.join(", ")));
    }
    if let Some(fields) = value.as_object() {
        let place = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(key) {
                found.push(format!("`{}` is missing", place(key)));
            }
        }
        let is_closed = schema["additionalProperties"] == false && schema.get("patternProperties").is_none();
        for (key, inner) in fields {
            match schema["properties"].get(key) {
                Some(it) => look(root, it, inner, &place(key), depth - 1, found),
                None if is_closed => found.push(format!("`{}` is unknown", place(&key.escape_debug().to_string()))),
                None => {}
            }
        }
    }
    if let Some(items) = value.as_array().filter(|_| schema["items"].is_object()) {
        for (n, item) in items.iter().enumerate() {
            look(root, &schema["items"], item, &format!("{at}[{n}]"), depth - 1, found);
        }
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|n| n.fract() == 0.0),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Broken builds: extra arguments are refused although the schema is open; a null is dropped or refused.
    #[test]
    fn arguments_are_checked_by_the_servers_own_schema_and_no_stricter() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "s": { "type": ["string", "null"] } }, "required": ["n"] });
        assert_eq!(faults(&schema, &json!({ "n": 1, "s": null, "extra": [] })), [""; 0]);
        assert_eq!(faults(&schema, &json!({ "n": "1" })), ["`n` must be integer, not a string"]);
        assert_eq!(faults(&schema, &json!({})), ["`n` is missing"]);
        let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        assert_eq!(faults(&closed, &json!({ "x": 1 })), ["`x` is unknown"]);
        assert_eq!(faults(&json!({ "if": {}, "unevaluatedProperties": false }), &json!({ "x": 1 })), [""; 0]);
    }
}
