//! Headers that repeat parts of a message to a server of the stateless revision, so that what stands between needs not read
//! the message (SEP-2243): `Mcp-Method`, `Mcp-Name`, and `Mcp-Param-…` for the arguments that a tool's schema names.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// The keyword of a schema that names the header of an argument.
const KEYWORD: &str = "x-mcp-header";
/// What stands around a value that HTTP does not allow as it is.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// An argument of a tool that stands in a header too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Promoted {
    /// The names that lead to it.
    path: Vec<String>,
    header: HeaderName,
}

/// Adds the headers of a message. `promoted` are the arguments of the tool that it calls.
pub(super) fn add(headers: &mut HeaderMap, message: &Value, promoted: &[Promoted]) {
    let Some(method) = message["method"].as_str() else { return };
    let params = &message["params"];
    let mut insert = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
            headers.insert(name, value);
        }
    };
    insert(HeaderName::from_static("mcp-method"), method);
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    if let Some(name) = name {
        insert(HeaderName::from_static("mcp-name"), name);
    }
    for Promoted { path, header } in promoted {
        let value = path.iter().fold(&params["arguments"], |value, name| &value[name.as_str()]);
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => continue,
        };
        insert(header.clone(), &text);
    }
}

/// A value as HTTP allows it: in base64 where it is not plain ASCII without blanks at its ends.
fn encoded(value: &str) -> String {
    let (before, after) = ENCODED;
    let is_plain = value.bytes().all(|it| (0x20..=0x7e).contains(&it))
        && value.trim_matches(' ') == value
        && !(value.starts_with(before) && value.ends_with(after));
    if is_plain { value.to_owned() } else { format!("{before}{}{after}", STANDARD.encode(value)) }
}

/// The arguments that the schema of a tool wants in headers.
///
/// # Errors
/// Why the schema names a header where there can be none: such a tool must not be used.
pub(super) fn promoted(schema: &Value) -> Result<Vec<Promoted>, String> {
    let Value::Object(root) = schema else { return Ok(Vec::new()) };
    if root.contains_key(KEYWORD) || is_elsewhere(root, true) {
        return Err(format!("its schema has {KEYWORD} outside of its properties"));
    }
    let mut all = Vec::new();
    collect(root, &mut Vec::new(), &mut all)?;
    let mut names = BTreeSet::new();
    match all.iter().find(|it| !names.insert(it.header.as_str())) {
        Some(twice) => Err(format!("two of its arguments have the header {}", twice.header)),
        None => Ok(all),
    }
}

fn collect(schema: &Map<String, Value>, path: &mut Vec<String>, all: &mut Vec<Promoted>) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        path.push(name.clone());
        if let Some(header) = property.get(KEYWORD) {
            let named = header.as_str().filter(|it| !it.is_empty());
            let header = named.and_then(|it| HeaderName::try_from(format!("mcp-param-{it}")).ok());
            let is_primitive =
                property.get("type").is_some_and(|it| *it == "string" || *it == "integer" || *it == "boolean");
            let (Some(header), true) = (header, is_primitive) else {
                return Err(format!("its argument {} cannot stand in a header", path.join(".")));
            };
            all.push(Promoted { path: path.clone(), header });
        }
        collect(property, path, all)?;
        path.pop();
    }
    Ok(())
}

/// Whether the keyword stands elsewhere than at a property that is reached by properties alone.
fn is_elsewhere(schema: &Map<String, Value>, is_reached: bool) -> bool {
    let in_each = |all: &Value, is_reached: bool| {
        all.as_object().is_some_and(|all| all.values().any(|it| is_inside(it, is_reached)))
    };
    schema.iter().any(|(key, value)| match key.as_str() {
        KEYWORD => !is_reached,
        "properties" => in_each(value, is_reached),
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => in_each(value, false),
        // These hold values and names, no schemas.
        "default" | "const" | "enum" | "examples" | "dependentRequired" => false,
        _ => is_inside(value, false),
    })
}

fn is_inside(value: &Value, is_reached: bool) -> bool {
    match value {
        Value::Object(schema) => is_elsewhere(schema, is_reached),
        Value::Array(items) => items.iter().any(|it| is_inside(it, false)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(message: &Value, schema: &Value) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        add(&mut headers, message, &promoted(schema).expect("a usable schema"));
        let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
        let mut all: Vec<_> = headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        all.sort();
        all
    }

    /// Broken builds: a value with a line break ends the header; an argument that is not given has a header; only those of the
    /// first level have one.
    #[test]
    fn a_call_repeats_its_method_its_name_and_the_arguments_that_the_schema_names() {
        let schema = json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "place": { "properties": { "row": { "type": "integer", "x-mcp-header": "Row" } } },
            "left": { "type": "boolean", "x-mcp-header": "Left" },
            "other": { "type": "string" },
        } });
        let message = json!({ "method": "tools/call", "params": {
            "name": "größe", "arguments": { "region": "a\r\nb", "place": { "row": 7 }, "left": null, "other": "x" },
        } });
        let all = headers(&message, &schema);
        let wanted = [
            ("mcp-method", "tools/call"),
            ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
            ("mcp-param-region", "=?base64?YQ0KYg==?="),
            ("mcp-param-row", "7"),
        ];
        assert_eq!(all, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let read = json!({ "method": "resources/read", "params": { "uri": " x" } });
        assert_eq!(headers(&read, &Value::Null)[1].1, "=?base64?IHg=?=");
        assert_eq!(headers(&json!({ "id": 1, "result": {} }), &Value::Null), []);
    }

    /// Broken build: a tool whose arguments cannot stand in headers is offered, and its calls lack them.
    #[test]
    fn a_schema_that_names_impossible_headers_is_refused() {
        let of = |property: Value| json!({ "properties": { "a": property } });
        for schema in [
            json!({ "x-mcp-header": "A" }),
            of(json!({ "type": "string", "x-mcp-header": "" })),
            of(json!({ "type": "string", "x-mcp-header": "a b" })),
            of(json!({ "type": "string", "x-mcp-header": 7 })),
            of(json!({ "type": "number", "x-mcp-header": "A" })),
            of(json!({ "items": { "type": "string", "x-mcp-header": "A" } })),
            json!({ "$defs": { "a": { "type": "string", "x-mcp-header": "A" } } }),
            json!({ "properties": {
                "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" },
            } }),
        ] {
            assert!(promoted(&schema).is_err(), "{schema}");
        }
        assert_eq!(promoted(&of(json!({ "enum": [{ "x-mcp-header": "A" }] }))), Ok(Vec::new()));
    }
}
