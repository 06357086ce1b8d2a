//! Schemas of other people's tools: a copy that every Provider accepts, and arguments checked against the original.

use serde_json::{Map, Value, json};

use text::clean::{hides, without_hidden};

mod check; // arguments against the original

pub(crate) use check::faults;

/// How deep references are followed.
const DEEPEST: usize = 8;
/// How many nodes a copy may have; more cannot fit into a definition.
const MOST_NODES: usize = 4_000;

/// The schema as Providers accept it: an object on top, references inlined, unions at the top merged. `Err` says why there
/// is none.
pub(crate) fn normalised(schema: &Value) -> Result<Value, String> {
    let mut nodes = 0;
    let whole = copy(schema, schema, DEEPEST, &mut nodes)?;
    let mut top = match whole {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    // Providers refuse these on top, where they cannot say more than the properties do.
    for key in ["not", "if", "then", "else", "enum", "const", "default", "items", "prefixItems"] {
        top.remove(key);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        let Some(Value::Array(parts)) = top.remove(key) else { continue };
        merge(&mut top, &parts, key == "allOf");
    }
    match top.get("type") {
        None => {}
        Some(Value::String(it)) if it == "object" => {}
        Some(Value::Array(all)) if all.iter().any(|it| it == "object") => {}
        Some(other) => return Err(format!("its arguments are {other}, not an object")),
    }
    top.insert("type".into(), "object".into());
    let properties = top.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        *properties = json!({});
    }
    let names: Vec<String> = properties.as_object().map_or(Vec::new(), |it| it.keys().cloned().collect());
    if let Some(Value::Array(required)) = top.get_mut("required") {
        required.retain(|it| it.as_str().is_some_and(|it| names.iter().any(|name| name == it)));
    }
    if !top.get("required").is_none_or(Value::is_array) {
        top.remove("required");
    }
    plain(&Value::Object(top))
}

/// The schema without characters that a person does not see. `Err` where two names, or two values of an `enum`, would be
/// alike: what the model then sends could mean either of them.
fn plain(schema: &Value) -> Result<Value, String> {
    let alike = |one: &str| Err(format!("`{}` is like another name but for invisible characters", one.escape_debug()));
    match schema {
        Value::String(text) => Ok(without_hidden(text).into()),
        Value::Array(items) => {
            let mut out: Vec<Value> = Vec::with_capacity(items.len());
            for it in items {
                let shown = plain(it)?;
                // Equal values were equal before.
                if shown != *it && (out.contains(&shown) || items.contains(&shown)) {
                    return alike(&it.to_string());
                }
                out.push(shown);
            }
            Ok(out.into())
        }
        Value::Object(fields) => {
            let mut out = Map::new();
            for (name, it) in fields {
                let shown = without_hidden(name);
                if shown.is_empty() && !name.is_empty() {
                    return Err(format!("`{}` is invisible", name.escape_debug()));
                }
                if out.insert(shown, plain(it)?).is_some() {
                    return alike(name);
                }
            }
            Ok(out.into())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(schema.clone()),
    }
}

/// Arguments as the server wants them, from those that fit the plain copy of its schema: a name or a value that the copy
/// has without its invisible characters becomes the server's own again.
pub(crate) fn restored(schema: &Value, args: Value) -> Value {
    // Most schemas hide nothing.
    if hides_any(schema) { restore(schema, schema, args, DEEPEST * 2) } else { args }
}

fn hides_any(schema: &Value) -> bool {
    match schema {
        Value::String(text) => hides(text),
        Value::Array(items) => items.iter().any(hides_any),
        Value::Object(fields) => fields.iter().any(|(name, it)| hides(name) || hides_any(it)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn restore(root: &Value, schema: &Value, value: Value, depth: usize) -> Value {
    if depth == 0 {
        return value;
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let named = reference.strip_prefix('#').and_then(|it| root.pointer(it));
        return named.map_or(value.clone(), |it| restore(root, it, value, depth - 1));
    }
    let own = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    let mut value = match own.filter_map(Value::as_str).find(|it| hides(it) && value == without_hidden(it)) {
        Some(it) => it.into(),
        None => value,
    };
    for key in ["allOf", "oneOf", "anyOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            value = restore(root, part, value, depth - 1);
        }
    }
    match value {
        Value::Object(fields) => {
            let properties = schema["properties"].as_object();
            let named = |name: &str| {
                let own = || properties?.iter().find(|(own, _)| hides(own) && without_hidden(own) == name);
                properties.and_then(|all| all.get_key_value(name)).or_else(own)
            };
            let field = |(name, it): (String, Value)| match named(&name) {
                Some((own, inner)) => (own.clone(), restore(root, inner, it, depth - 1)),
                None => (name, it),
            };
            Value::Object(fields.into_iter().map(field).collect())
        }
        Value::Array(items) if schema["items"].is_object() => {
            items.into_iter().map(|it| restore(root, &schema["items"], it, depth - 1)).collect()
        }
        other => other,
    }
}

/// The properties of all parts. Of alternatives only what all of them require is required.
fn merge(top: &mut Map<String, Value>, parts: &[Value], is_all: bool) {
    let mut required: Option<Vec<Value>> = None;
    for part in parts {
        if let Some(properties) = part["properties"].as_object() {
            let own = top.entry("properties").or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                for (name, it) in properties {
                    own.entry(name.clone()).or_insert_with(|| it.clone());
                }
            }
        }
        let its = part["required"].as_array().cloned().unwrap_or_default();
        required = Some(match required {
            None => its,
            Some(before) if is_all => before.into_iter().chain(its).collect(),
            Some(before) => before.into_iter().filter(|it| its.contains(it)).collect(),
        });
    }
    let own = top.entry("required").or_insert_with(|| json!([]));
    if let Some(own) = own.as_array_mut() {
        for it in required.unwrap_or_default() {
            if !own.contains(&it) {
                own.push(it);
            }
        }
    }
}

/// What a keyword of JSON Schema 2020-12 holds.
enum Holds {
    Text,
    Number,
    Positive,
    Count,
    Flag,
    Regex,
    Any,
    /// A list of any values, not empty.
    Values,
    /// A list of names.
    Names,
    Type,
    Schema,
    /// A list of schemas, not empty.
    Schemas,
    /// Schemas by name.
    Named,
}

/// What this keyword holds; `None` for one that a Provider need not know, or that only says where the schema comes from.
fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "title" | "description" | "format" | "contentMediaType" | "contentEncoding" => Holds::Text,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => Holds::Number,
        "multipleOf" => Holds::Positive,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
        | "maxContains" => Holds::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Holds::Flag,
        "pattern" => Holds::Regex,
        "const" | "default" => Holds::Any,
        "enum" | "examples" => Holds::Values,
        "required" => Holds::Names,
        "type" => Holds::Type,
        "items"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "not"
        | "if"
        | "then"
        | "else"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::Schemas,
        "properties" | "dependentSchemas" => Holds::Named,
        _ => return None,
    })
}

/// A copy in which every local reference is replaced by what it names. A cycle, and one too deep, is `{}`, which any value
/// fits; nothing is ever fetched. A keyword that holds what it may not hold is left out: Providers refuse a request for it,
/// and arguments are checked against the original.
fn copy(root: &Value, node: &Value, depth: usize, nodes: &mut usize) -> Result<Value, String> {
    *nodes += 1;
    if *nodes > MOST_NODES {
        return Err("its schema is too large when its references are written out".to_owned());
    }
    let fields = match node {
        Value::Object(fields) => fields,
        Value::Bool(false) => return Ok(json!({ "not": {} })),
        _ => return Ok(json!({})),
    };
    if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
        let named = reference.strip_prefix('#').and_then(|it| root.pointer(it)).filter(|_| depth > 0);
        let mut found = match named {
            Some(it) => copy(root, it, depth - 1, nodes)?,
            None => json!({}),
        };
        if let (Some(found), Some(text)) =
            (found.as_object_mut(), fields.get("description").filter(|it| it.is_string()))
        {
            found.insert("description".into(), text.clone());
        }
        return Ok(found);
    }
    let mut out = Map::new();
    for (keyword, it) in fields {
        let kept = match holds(keyword) {
            None => None,
            Some(Holds::Text) => it.is_string().then(|| it.clone()),
            Some(Holds::Number) => it.is_number().then(|| it.clone()),
            Some(Holds::Positive) => it.as_f64().is_some_and(|n| n > 0.0).then(|| it.clone()),
            Some(Holds::Count) => it.is_u64().then(|| it.clone()),
            Some(Holds::Flag) => it.is_boolean().then(|| it.clone()),
            Some(Holds::Regex) => it.as_str().filter(|it| is_regex(it)).map(Value::from),
            Some(Holds::Any) => Some(it.clone()),
            Some(Holds::Values) => it.as_array().filter(|all| !all.is_empty()).map(|_| it.clone()),
            Some(Holds::Names) => it.as_array().map(|all| names(all)),
            Some(Holds::Type) => types(it),
            Some(Holds::Schema) => match it {
                // Whether others are allowed is said by a word in most schemas.
                Value::Bool(_) if keyword != "items" && keyword != "not" => Some(it.clone()),
                // A list of items by their place, as older drafts have it.
                Value::Array(all) if keyword == "items" => Some(alternatives(root, all, depth, nodes)?),
                _ => Some(copy(root, it, depth, nodes)?),
            },
            Some(Holds::Schemas) => match it.as_array().filter(|all| !all.is_empty()) {
                Some(all) => {
                    let all: Result<Vec<Value>, String> = all.iter().map(|it| copy(root, it, depth, nodes)).collect();
                    Some(all?.into())
                }
                None => None,
            },
            Some(Holds::Named) => match it.as_object() {
                Some(all) => {
                    let all = all.iter().map(|(name, it)| Ok((name.clone(), copy(root, it, depth, nodes)?)));
                    Some(Value::Object(all.collect::<Result<_, String>>()?))
                }
                None => None,
            },
        };
        if let Some(kept) = kept {
            out.insert(keyword.clone(), kept);
        }
    }
    // How OpenAPI says it.
    if fields.get("nullable") == Some(&Value::Bool(true))
        && let Some(Value::String(own)) = out.get("type").cloned()
    {
        out.insert("type".into(), json!([own, "null"]));
    }
    let is_list = out
        .get("type")
        .is_some_and(|it| it == "array" || it.as_array().is_some_and(|all| all.contains(&"array".into())));
    if is_list && !out.contains_key("items") {
        out.insert("items".into(), json!({}));
    }
    Ok(Value::Object(out))
}

fn alternatives(root: &Value, all: &[Value], depth: usize, nodes: &mut usize) -> Result<Value, String> {
    let all: Result<Vec<Value>, String> = all.iter().map(|it| copy(root, it, depth, nodes)).collect();
    Ok(match all?.as_slice() {
        [] => json!({}),
        [one] => one.clone(),
        more => json!({ "anyOf": more }),
    })
}

/// The types of this that there are.
fn types(it: &Value) -> Option<Value> {
    let is_type = |it: &Value| {
        it.as_str()
            .is_some_and(|it| ["object", "array", "string", "boolean", "null", "number", "integer"].contains(&it))
    };
    match it {
        Value::Array(all) => {
            let mut known: Vec<&Value> = Vec::new();
            for it in all.iter().filter(|it| is_type(it)) {
                if !known.contains(&it) {
                    known.push(it);
                }
            }
            match known.as_slice() {
                [] => None,
                [one] => Some((*one).clone()),
                more => Some(json!(more)),
            }
        }
        _ => is_type(it).then(|| it.clone()),
    }
}

fn names(all: &[Value]) -> Value {
    let mut names: Vec<&Value> = Vec::new();
    for it in all.iter().filter(|it| it.is_string()) {
        if !names.contains(&it) {
            names.push(it);
        }
    }
    json!(names)
}

fn is_regex(text: &str) -> bool {
    grep_regex::RegexMatcher::new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: a cycle is followed for ever; a reference stays; a required name of one alternative binds all.
    #[test]
    fn a_schema_becomes_one_that_every_provider_accepts() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "n": { "type": "integer" } } } },
            "oneOf": [
                { "properties": { "a": { "$ref": "#/$defs/node" } }, "required": ["a", "x"] },
                { "properties": { "x": { "$ref": "https://evil.example/schema" } }, "required": ["x"] },
            ],
        });
        let it = normalised(&schema).expect("a schema");
        let text = it.to_string();
        assert_eq!(it["type"], "object");
        assert!(
            !text.contains("$ref") && !text.contains("$defs") && !text.contains("oneOf") && !text.contains("evil"),
            "{text}"
        );
        assert_eq!(it["required"], json!(["x"]));
        assert_eq!(it["properties"]["a"]["properties"]["n"]["type"], "integer");
        assert!(normalised(&json!({ "type": "string" })).is_err());
        assert_eq!(normalised(&json!({})).expect("any"), json!({ "type": "object", "properties": {} }));
        let nine = |name: &str| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/{name}") }); 9] });
        let bomb =
            json!({ "$defs": { "a": nine("b"), "b": nine("a") }, "properties": { "x": { "$ref": "#/$defs/a" } } });
        assert!(normalised(&bomb).is_err());
    }

    /// Broken builds: only descriptions are cleaned; the server is sent the clean name, which it does not know; of two names
    /// alike the first is called.
    #[test]
    fn a_model_reads_nothing_hidden_and_the_server_gets_its_own_names_back() {
        let schema = json!({
            "type": "object",
            "$defs": { "how": { "enum": ["fa\u{200b}st", "slow"] } },
            "properties": {
                "mo\u{202e}de": { "title": "M\u{e0041}ode", "$ref": "#/$defs/how" },
                "list": { "type": "array", "items": { "const": "\u{2066}x" }, "description": "a\u{feff}b" },
            },
            "required": ["mo\u{202e}de"],
        });
        let copy = normalised(&schema).expect("a schema");
        assert!(!hides_any(&copy), "{copy}");
        assert_eq!(
            (&copy["required"], &copy["properties"]["mode"]["enum"]),
            (&json!(["mode"]), &json!(["fast", "slow"]))
        );
        let args = json!({ "mode": "fast", "list": ["x", "y"], "more": 1 });
        let sent = restored(&schema, args);
        assert_eq!(sent, json!({ "mo\u{202e}de": "fa\u{200b}st", "list": ["\u{2066}x", "y"], "more": 1 }));
        assert_eq!(faults(&schema, &sent), [""; 0]);
        let alike = json!({ "properties": { "a\u{200b}": {}, "a": {} } });
        assert!(normalised(&alike).expect_err("two alike").contains("like another name"));
        let alike = json!({ "properties": { "a": { "enum": ["x", "x\u{200b}"] } } });
        assert!(normalised(&alike).expect_err("two alike").contains("like another name"));
    }
}
