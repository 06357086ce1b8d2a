//! Whether a JSON Schema in a file is one: a type that does not exist would let every report pass.

use serde_json::Value;

use super::shown;
use protocol::error::nearest;

const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Where a schema has faults, what they are, and what to write instead.
pub(super) fn faults(schema: &Value) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    look(schema, "", &mut all);
    all
}

fn look(schema: &Value, at: &str, all: &mut Vec<(String, String, String)>) {
    let Value::Object(keys) = schema else {
        if !schema.is_boolean() {
            all.push((at.to_owned(), format!("`{}` is no schema", shown(schema)), "a table with `type`".to_owned()));
        }
        return;
    };
    let mut fault = |key: &str, message: String, fix: String| all.push((format!("{at}.{key}"), message, fix));
    let types = match keys.get("type") {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one) => vec![one],
    };
    for it in types.into_iter().filter(|it| !it.as_str().is_some_and(|it| TYPES.contains(&it))) {
        let near = it.as_str().and_then(|it| nearest(it, TYPES));
        let fix = near.map_or_else(|| format!("one of: {}", TYPES.join(", ")), str::to_owned);
        fault("type", format!("there is no type `{}`", shown(it)), fix);
    }
    if keys.get("enum").is_some_and(|it| it.as_array().is_none_or(Vec::is_empty)) {
        fault("enum", "it must be a list of values".to_owned(), "a list, like [\"a\", \"b\"]".to_owned());
    }
    let properties = keys.get("properties");
    if properties.is_some_and(|it| !it.is_object()) {
        fault("properties", "it is no table of schemas".to_owned(), "{ name = { type = \"string\" } }".to_owned());
    }
    let properties = properties.and_then(Value::as_object);
    match keys.get("required") {
        None => {}
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
            let names = names.iter().filter_map(Value::as_str);
            for name in names.filter(|name| properties.is_some_and(|all| !all.contains_key(*name))) {
                let known = || properties.into_iter().flat_map(|all| all.keys().map(String::as_str));
                let fix = nearest(name, known()).map_or_else(|| known().collect::<Vec<_>>().join(", "), str::to_owned);
                fault("required", format!("there is no property `{}`", name.escape_debug()), fix);
            }
        }
        Some(_) => fault("required", "it must be a list of names".to_owned(), "a list, like [\"a\", \"b\"]".to_owned()),
    }
    for (name, inner) in properties.into_iter().flatten() {
        look(inner, &format!("{at}.properties.{name}"), all);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = keys.get(key) {
            look(inner, &format!("{at}.{key}"), all);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        for inner in keys.get(key).and_then(Value::as_array).into_iter().flatten() {
            look(inner, &format!("{at}.{key}"), all);
        }
    }
}
