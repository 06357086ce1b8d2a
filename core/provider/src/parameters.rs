//! Schemas of tools as single dialects take them. pixir's own are fine everywhere; those of MCP servers need not be.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The schema for servers of Anthropic, which refuse a request with an argument of another name than these. Such an argument
/// is told in words: the model may still send it.
pub(super) fn plainly_named(schema: &Value) -> Cow<'_, Value> {
    let is_plain = |name: &String| {
        (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
    };
    let odd: Vec<&String> =
        schema["properties"].as_object().into_iter().flat_map(Map::keys).filter(|it| !is_plain(it)).collect();
    if odd.is_empty() {
        return Cow::Borrowed(schema);
    }
    let mut own = schema.clone();
    let mut about: Vec<String> = own["description"].as_str().map(str::to_owned).into_iter().collect();
    for name in odd {
        if let Some(properties) = own["properties"].as_object_mut() {
            let property = properties.remove(name).unwrap_or_default();
            about.push(format!("Also takes {}: {property}", Value::from(name.as_str())));
        }
        if let Some(required) = own["required"].as_array_mut() {
            required.retain(|it| it != name);
        }
    }
    own["description"] = about.join(" ").into();
    Cow::Owned(own)
}

/// The schema for servers of the chat dialect, some of which refuse a list of types.
pub(super) fn singly_typed(schema: &Value) -> Cow<'_, Value> {
    if has_lists(schema) { Cow::Owned(one_type(schema)) } else { Cow::Borrowed(schema) }
}

fn has_lists(node: &Value) -> bool {
    match node {
        Value::Object(fields) => fields.get("type").is_some_and(Value::is_array) || fields.values().any(has_lists),
        Value::Array(items) => items.iter().any(has_lists),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn one_type(node: &Value) -> Value {
    match node {
        Value::Object(fields) => {
            let mut own: Map<String, Value> = fields.iter().map(|(key, it)| (key.clone(), one_type(it))).collect();
            if let Some(Value::Array(types)) = fields.get("type") {
                let others: Vec<&Value> = types.iter().filter(|it| *it != "null").collect();
                own.remove("type");
                match others.as_slice() {
                    [] => drop(own.insert("type".into(), "null".into())),
                    [one] => drop(own.insert("type".into(), (*one).clone())),
                    more if !own.contains_key("anyOf") => {
                        own.insert("anyOf".into(), more.iter().map(|it| json!({ "type": it })).collect());
                    }
                    _ => {}
                }
                if !others.is_empty() && others.len() < types.len() {
                    own.insert("nullable".into(), true.into());
                }
            }
            Value::Object(own)
        }
        Value::Array(items) => items.iter().map(one_type).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => node.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: an argument with such a name is dropped silently; a property that is called `type` loses its value.
    #[test]
    fn a_dialect_takes_what_others_write_and_ours_is_not_copied() {
        let own = json!({ "type": "object", "properties": { "type": { "type": "string" } }, "required": ["type"] });
        assert!(matches!(plainly_named(&own), Cow::Borrowed(_)) && matches!(singly_typed(&own), Cow::Borrowed(_)));
        let odata =
            json!({ "type": "object", "properties": { "$top": { "type": "integer" }, "a": {} }, "required": ["$top"] });
        let plain = plainly_named(&odata);
        assert_eq!(plain["properties"], json!({ "a": {} }));
        assert_eq!(plain["required"], json!([]));
        assert_eq!(plain["description"], "Also takes \"$top\": {\"type\":\"integer\"}");
        let listed =
            json!({ "properties": { "a": { "type": ["string", "null"] }, "b": { "type": ["string", "integer"] } } });
        let single = json!({ "properties": {
            "a": { "type": "string", "nullable": true }, "b": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
        } });
        assert_eq!(*singly_typed(&listed), single);
    }
}
