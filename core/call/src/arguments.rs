//! Arguments checked against a tool's whole schema: every missing, unknown, mistyped or out-of-range argument is named.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use protocol::error::{Code, Error, Result, nearest};
use protocol::tool_spec::ToolSpec;

/// Checks arguments against the tool's whole schema.
///
/// # Errors
/// `INVALID_ARGS`, which names each fault, its position and the likely intention.
pub fn check(spec: &ToolSpec, args: &Value) -> Result<()> {
    let mut faults = Vec::new();
    look(&spec.parameters, args, "", &mut faults);
    if faults.is_empty() {
        return Ok(());
    }
    Err(Error::new(Code::InvalidArgs, faults.join(", "), usage(spec)).with("input", args.clone()))
}

/// Removes null fields and turns floats with a whole value into integers.
pub fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        // Some models write 3.0 for 3.
        Value::Number(n) if n.is_f64() => {
            let whole = n.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15);
            if let Some(whole) = whole {
                *value = Value::from(whole as i64);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The usage in one line: `read {path, offset?, limit?}`.
pub fn usage(spec: &ToolSpec) -> String {
    let names = names(&spec.parameters);
    let required = required(&spec.parameters);
    let shown = names.map(|name| if required.contains(&name) { name.to_owned() } else { format!("{name}?") });
    format!("{} {{{}}}", spec.name, shown.collect::<Vec<_>>().join(", "))
}

fn names(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flat_map(|all| all.keys().map(String::as_str))
}

fn required(schema: &Value) -> Vec<&str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Parses arguments into the tool's own struct, after the schema check.
///
/// # Errors
/// `INVALID_ARGS` for constraints that the schema cannot express.
pub fn parse<T: DeserializeOwned>(mut args: Value) -> Result<T> {
    tidy(&mut args);
    // `prepare` adds the tool's usage to an error without a remedy.
    serde_json::from_value(args.clone())
        .map_err(|e| Error::new(Code::InvalidArgs, e.to_string(), "").with("input", args))
}

/// An argument that is a string; empty when it is absent or has another type.
pub fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args[name].as_str().unwrap_or_default()
}

/// Example arguments for a schema: each required one, with a value of its type.
pub fn example(schema: &Value) -> Value {
    let value = |name: &str| {
        let property = &schema["properties"][name];
        match (&property["examples"][0], property["type"].as_str()) {
            (Value::Null, Some("integer" | "number")) => json!(1),
            (Value::Null, Some("boolean")) => json!(true),
            (Value::Null, Some("array")) => json!([]),
            (Value::Null, Some("object")) => json!({}),
            (Value::Null, _) => json!("text"),
            (given, _) => given.clone(),
        }
    };
    required(schema).into_iter().map(|name| (name.to_owned(), value(name))).collect::<serde_json::Map<_, _>>().into()
}

/// The JSON Schema of an object: its properties in the order given, and the names of the required ones.
pub fn object(properties: Value, required: &[&str]) -> Arc<Value> {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }).into()
}

/// Collects the faults of a value, for the part of JSON Schema that tools use: types, bounds, enumerations, arrays and
/// closed objects.
fn look(schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let shown = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
    let wanted = schema["type"].as_str().unwrap_or_default();
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        _ => true,
    };
    if !fits {
        let article = if wanted.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
        faults.push(format!("{shown} must be {article} {wanted}, not {}", kind_of(value)));
        return;
    }
    if let (Some(number), Some(least)) = (value.as_i64(), schema["minimum"].as_i64())
        && number < least
    {
        faults.push(format!("{shown} must be at least {least}"));
    }
    if let (Some(number), Some(most)) = (value.as_f64(), schema["maximum"].as_f64())
        && number > most
    {
        faults.push(format!("{shown} must be at most {most}"));
    }
    if let (Some(text), Some(allowed)) = (value.as_str(), schema["enum"].as_array())
        && !allowed.contains(value)
    {
        let all: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        let meant = nearest(text, all.iter().copied()).map(|near| format!(" (did you mean {near}?)"));
        faults.push(format!("{shown} must be one of {}{}", all.join(", "), meant.unwrap_or_default()));
    }
    if let Some(items) = value.as_array() {
        if let Some(least) = schema["minItems"].as_u64()
            && (items.len() as u64) < least
        {
            faults.push(format!("{shown} must hold at least {least}"));
        }
        if let Some(most) = schema["maxItems"].as_u64()
            && (items.len() as u64) > most
        {
            faults.push(format!("{shown} must hold at most {most}"));
        }
        for (i, item) in items.iter().enumerate() {
            look(&schema["items"], item, &format!("{at}[{i}]"), faults);
        }
    }
    if let Some(given) = value.as_object()
        && schema["properties"].is_object()
    {
        let place = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        let missing = required(schema).into_iter().filter(|key| !given.contains_key(*key));
        faults.extend(missing.map(|key| format!("`{}` is missing", place(key))));
        for (key, inner) in given {
            let known = &schema["properties"][key.as_str()];
            // Some models send null for an argument that they omit.
            if known.is_object() && inner.is_null() && !required(schema).contains(&key.as_str()) {
                continue;
            }
            if known.is_object() {
                look(known, inner, &place(key), faults);
                continue;
            }
            let key = key.escape_debug().to_string();
            faults.push(match nearest(&key, names(schema)) {
                Some(near) => format!("`{}` is unknown (did you mean `{near}`?)", place(&key)),
                None => format!("`{}` is unknown", place(&key)),
            });
        }
    }
}

/// A JSON value in words.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(n) if n.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_fault_of_a_call_is_named_at_once() {
        let parameters = object(
            json!({
                "path": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1, "maximum": 9 },
                "items": { "type": "array", "minItems": 1, "items": {
                    "type": "object", "required": ["step"], "additionalProperties": false,
                    "properties": { "step": { "type": "string" }, "status": { "type": "string", "enum": ["pending", "completed"] } },
                } },
            }),
            &["path"],
        );
        let spec =
            ToolSpec { name: "t".into(), description: "".into(), parameters, reads_only: true, streams: "".into() };
        let fault = |args: Value| check(&spec, &args).expect_err("a fault").message;
        assert_eq!(fault(json!([])), "the arguments must be an object, not an array");
        assert_eq!(
            fault(json!({"pth": "a", "limit": "3"})),
            "`path` is missing, `limit` must be an integer, not a string, `pth` is unknown (did you mean `path`?)"
        );
        assert_eq!(fault(json!({"path": "a", "limit": 0})), "`limit` must be at least 1");
        assert_eq!(fault(json!({"path": "a", "limit": 2.5})), "`limit` must be an integer, not a fraction");
        assert_eq!(
            fault(json!({"path": "a", "items": [{"status": "complete"}]})),
            "`items[0].step` is missing, `items[0].status` must be one of pending, completed (did you mean completed?)"
        );
        assert_eq!(fault(json!({"path": "a", "items": []})), "`items` must hold at least 1");
        for fine in
            [json!({"path": "a", "limit": 9}), json!({"path": "a", "limit": null}), json!({"path": "a", "limit": 3.0})]
        {
            assert_eq!(check(&spec, &fine).map_err(|e| e.message), Ok(()));
        }
        assert_eq!(fault(json!({"path": null})), "`path` must be a string, not null");
        assert_eq!(usage(&spec), "t {items?, limit?, path}");
    }
}
