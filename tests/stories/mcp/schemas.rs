//! Schemas of other people's tools, as each dialect is sent them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Scripted;
use crate::server::{Dialect, Server, said, text};
use crate::shell::{Shell, figures};

/// Tools as servers have them, and hostile ones. One with `gone` cannot be offered.
const SCHEMAS: &str = include_str!("../../mcp_schemas.json");

const TYPES: [&str; 7] = ["object", "array", "string", "boolean", "null", "number", "integer"];

/// What a strict reader of JSON Schema 2020-12, and of what these servers document, refuses.
fn faults(dialect: Dialect, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |is_fault: bool, what: &str| {
        if is_fault {
            found.push(what.to_owned());
        }
    };
    say(schema["type"] != "object", "the top is no object");
    say(!schema["properties"].is_object(), "no properties");
    for key in ["oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else", "$ref"] {
        say(schema.get(key).is_some(), &format!("{key} on top"));
    }
    let properties = schema["properties"].as_object();
    if dialect == Dialect::Anthropic {
        for name in properties.into_iter().flat_map(|it| it.keys()) {
            let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
            say(!is_plain || name.is_empty() || name.len() > 64, &format!("the argument {name:?}"));
        }
    }
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    say(required.iter().any(|it| properties.is_none_or(|all| !all.contains_key(*it))), "required without a property");
    node(dialect, schema, "", &mut found);
    let mut compiler = boon::Compiler::new();
    compiler.set_default_draft(boon::Draft::V2020_12);
    compiler.add_resource("memory:tool", schema.clone()).expect("a resource");
    if let Err(e) = compiler.compile("memory:tool", &mut boon::Schemas::new()) {
        found.push(format!("no schema of 2020-12: {e:#}"));
    }
    found
}

fn node(dialect: Dialect, schema: &Value, at: &str, found: &mut Vec<String>) {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(_) => return,
        _ => return found.push(format!("{at}: no schema: {schema}")),
    };
    let inner = |it: &Value, key: &str, found: &mut Vec<String>| node(dialect, it, &format!("{at}/{key}"), found);
    for (key, it) in fields {
        let is_fine = match key.as_str() {
            "title" | "description" | "format" | "contentMediaType" | "contentEncoding" => it.is_string(),
            "pattern" => it.as_str().is_some_and(|it| it != "["),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => it.is_number(),
            "multipleOf" => it.as_f64().is_some_and(|n| n > 0.0),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minContains"
            | "maxContains" => it.is_u64(),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => it.is_boolean(),
            "nullable" => dialect == Dialect::Chat && it.is_boolean(),
            "const" | "default" => true,
            "examples" => it.is_array(),
            "enum" => it.as_array().is_some_and(|all| !all.is_empty()),
            "required" => it.as_array().is_some_and(|all| {
                let names: BTreeSet<&str> = all.iter().filter_map(Value::as_str).collect();
                names.len() == all.len()
            }),
            "type" => match it {
                Value::String(it) => TYPES.contains(&it.as_str()),
                Value::Array(all) => {
                    let names: BTreeSet<&str> = all.iter().filter_map(Value::as_str).collect();
                    dialect != Dialect::Chat
                        && names.len() == all.len()
                        && !all.is_empty()
                        && names.iter().all(|it| TYPES.contains(it))
                }
                _ => false,
            },
            "items" => {
                inner(it, key, found);
                it.is_object()
            }
            "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties" => {
                inner(it, key, found);
                true
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                it.as_array().into_iter().flatten().for_each(|it| inner(it, key, found));
                it.as_array().is_some_and(|all| !all.is_empty())
            }
            "properties" | "dependentSchemas" => {
                it.as_object().into_iter().flatten().for_each(|(name, it)| inner(it, name, found));
                it.is_object()
            }
            // `$ref`, `$defs`, and whatever else no server of a model needs.
            _ => false,
        };
        if !is_fine {
            found.push(format!("{at}: {key} is {it}"));
        }
    }
    let is_list =
        schema["type"] == "array" || schema["type"].as_array().is_some_and(|all| all.contains(&"array".into()));
    if is_list && !schema["items"].is_object() {
        found.push(format!("{at}: a list without items"));
    }
}

/// Broken builds: a keyword that holds what it may not hold is sent; an argument with a blank in its name is sent to Anthropic;
/// a list of types is sent in the chat dialect; a tool that cannot be offered is left out without a word.
#[test]
fn every_schema_is_one_that_the_dialect_takes_or_is_left_out_by_name() {
    let tools: Vec<Value> = serde_json::from_str(SCHEMAS).expect("JSON");
    let shell = Shell::new(&[]);
    let scripted = Scripted::new(&shell);
    let file = shell.aside("definitions.json", SCHEMAS);
    let options = [format!("definitions={}", file.display())];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    shell.configure(&scripted.section("test", &options, "expose = \"direct\""));
    let document = shell.run(["mcp", "test", "test", "--json"]).document();
    let left_out: Vec<&str> =
        document["server"]["left_out"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let (offered, gone): (Vec<&Value>, Vec<&Value>) = tools.iter().partition(|it| it.get("gone").is_none());
    assert_eq!(left_out.len(), gone.len(), "{left_out:#?}");
    for it in &gone {
        let name = format!("`{}`: ", it["name"].as_str().expect("a name"));
        assert!(left_out.iter().any(|why| why.starts_with(&name)), "{name} {left_out:#?}");
    }
    let (mut cells, mut wrong) = (0, Vec::new());
    for dialect in [Dialect::Responses, Dialect::Chat, Dialect::Anthropic] {
        let answer = match dialect {
            Dialect::Responses => text("Done."),
            Dialect::Chat | Dialect::Anthropic => said(dialect, &[crate::server::Part::Text("Done.")]),
        };
        let server = Server::start(vec![answer]);
        let flags = server.flags(dialect);
        let ran = shell.run(flags.iter().map(String::as_str).chain(["--headless", "go"]));
        assert_eq!(ran.code, 0, "{ran:?}");
        let body = &server.bodies()[0];
        let sent = body["tools"].as_array().expect("tools");
        for it in &offered {
            let name = format!("test__{}", it["name"].as_str().expect("a name"));
            let of = |tool: &Value| if tool["function"].is_object() { tool["function"].clone() } else { tool.clone() };
            let Some(tool) = sent.iter().map(of).find(|tool| tool["name"] == *name) else {
                wrong.push(format!("{dialect:?} {name} is not offered"));
                continue;
            };
            let schema = tool.get("parameters").or_else(|| tool.get("input_schema")).expect("a schema");
            wrong.extend(faults(dialect, schema).into_iter().map(|it| format!("{dialect:?} {name}: {it}")));
            cells += 1;
        }
        cells += gone.len();
        assert!(sent.iter().all(|it| !it.to_string().contains("evil.example")), "nothing remote is named");
    }
    figures(&format!("{} schemas in 3 dialects: {cells} tried, {} faults", tools.len(), wrong.len()));
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tools.len() >= 60 && cells == tools.len() * 3, "{cells}");

    // What a dialect is not sent can still be called.
    let arguments = json!({ "$filter": "a eq 1", "userId": "me" });
    let server = Server::start(vec![crate::server::call("c1", "test__graph_odata", arguments), text("Done.")]);
    let ran = super::turn(&shell, &server, &["--mode", "ask", "--allow", "mcp(test)", "go"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let journal = scripted.journal();
    assert!(
        journal.contains(&"call graph_odata {\"$filter\": \"a eq 1\", \"userId\": \"me\"}".to_owned()),
        "{journal:?}"
    );
}
