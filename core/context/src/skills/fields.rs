//! The fields of a front matter, as the Agent Skills format and its common extensions name them.

use serde::Serialize;
use serde_json::{Map, Value};

use super::finding::Finding;
use super::front_matter::Document;
use super::text::one_line;

/// The longest text that a field is read as, characters.
const MAX_FIELD: usize = 4_096;

/// The fields that mean something to pixir or to its user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fields {
    /// The name, as it is written.
    pub name: Option<String>,
    /// What the skill does, and when to use it, on one line.
    pub description: Option<String>,
    /// The licence, or the file that has it.
    pub license: Option<String>,
    /// What the skill needs: products, programs, a network.
    pub compatibility: Option<String>,
    /// Further properties.
    pub metadata: Map<String, Value>,
    /// Tools that the author names. They grant nothing: the mode and the user's rules decide about each call.
    pub allowed_tools: Vec<String>,
    /// Only the user activates it: the model neither sees nor reads it.
    pub disable_model_invocation: bool,
    /// Whether lists for the user name it.
    pub user_invocable: bool,
    /// What to type after its name.
    pub argument_hint: Option<String>,
    /// The names of its arguments, in their order.
    pub arguments: Vec<String>,
    /// Fields that have no effect here, by name.
    pub ignored: Vec<String>,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            name: None,
            description: None,
            license: None,
            compatibility: None,
            metadata: Map::new(),
            allowed_tools: Vec::new(),
            disable_model_invocation: false,
            user_invocable: true,
            argument_hint: None,
            arguments: Vec::new(),
            ignored: Vec::new(),
        }
    }
}

impl Fields {
    /// Reads the fields of a document; what does not fit is added to the findings.
    pub fn read(document: &Document, findings: &mut Vec<Finding>) -> Fields {
        let mut fields = Fields::default();
        let mut when = None;
        for (key, value) in &document.fields {
            let line = document.lines.get(key).copied().unwrap_or(1);
            let known = key.to_lowercase().replace('_', "-");
            let mut text = || text_of(&known, value, line, findings);
            match known.as_str() {
                "name" => fields.name = text(),
                "description" => fields.description = text(),
                "when-to-use" => when = text(),
                "license" => fields.license = text(),
                "compatibility" => fields.compatibility = text(),
                "argument-hint" => fields.argument_hint = hint_of(value),
                // Only a template has named arguments.
                "arguments" => {
                    fields.arguments = list_of(value);
                    fields.ignored.push(one_line(key, 64));
                }
                "allowed-tools" => fields.allowed_tools = list_of(value),
                "disable-model-invocation" => {
                    fields.disable_model_invocation = flag(&known, value, line, findings).unwrap_or(true);
                }
                "user-invocable" => fields.user_invocable = flag(&known, value, line, findings).unwrap_or(true),
                "metadata" => match value {
                    Value::Object(map) => fields.metadata = map.clone(),
                    Value::Null => {}
                    _ => findings.push(Finding::fault(line, "`metadata` is no map", "give it keys with values")),
                },
                _ => {
                    fields.ignored.push(one_line(key, 64));
                    continue;
                }
            }
            // `when_to_use` is written so by those who invented it.
            if *key != known && key != "when_to_use" {
                let message = format!("`{}` is not how the field is written", one_line(key, 64));
                findings.push(Finding::fault(line, message, format!("write `{known}`")));
            }
        }
        if let Some(when) = when {
            let before = fields.description.take().map_or(String::new(), |it| format!("{it} "));
            fields.description = Some(format!("{before}{when}"));
        }
        if !fields.ignored.is_empty() {
            let line = fields.ignored.iter().filter_map(|key| document.lines.get(key)).min().copied().unwrap_or(1);
            let message = format!("these fields have no effect: {}", fields.ignored.join(", "));
            findings.push(Finding::note(line, message, "other agents may use them; they may stay"));
        }
        if !fields.allowed_tools.is_empty() {
            let line = document.lines.get("allowed-tools").copied().unwrap_or(1);
            let fix = "the user can add a rule for what is to run unasked";
            findings.push(Finding::note(
                line,
                "`allowed-tools` grants nothing: the mode and the user's rules decide",
                fix,
            ));
        }
        fields
    }
}

/// A field's value as one line of text, whatever its type; nothing for an empty one.
fn text_of(key: &str, value: &Value, line: usize, findings: &mut Vec<Finding>) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => {
            findings.push(Finding::fault(line, format!("`{key}` is no text"), "put it in double quotes"));
            value.to_string()
        }
        Value::Array(items) => {
            findings.push(Finding::fault(line, format!("`{key}` is a list"), "write one text"));
            items.iter().map(scalar).collect::<Vec<_>>().join(", ")
        }
        Value::Object(_) => {
            let fix = "write one text, in double quotes if it has a colon";
            findings.push(Finding::fault(line, format!("`{key}` is a map, and was left out"), fix));
            return None;
        }
    };
    Some(one_line(&text, MAX_FIELD)).filter(|text| !text.is_empty())
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// `[file] [line]` is written without quotes, and then is a list in YAML.
fn hint_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::Array(items) => items.iter().map(|item| format!("[{}]", scalar(item))).collect::<Vec<_>>().join(" "),
        other => scalar(other),
    };
    Some(one_line(&text, 120)).filter(|text| !text.is_empty())
}

/// Names in a list, or separated by commas or blanks; blanks in parentheses belong to a name.
fn list_of(value: &Value) -> Vec<String> {
    let text = match value {
        Value::Array(items) => return items.iter().map(|item| one_line(&scalar(item), 120)).collect(),
        other => scalar(other),
    };
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    parts.map(|part| one_line(part, 120)).filter(|part| !part.is_empty()).collect()
}

fn flag(key: &str, value: &Value, line: usize, findings: &mut Vec<Finding>) -> Option<bool> {
    let read = match value {
        Value::Bool(flag) => return Some(*flag),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Some(true),
            "false" | "no" | "off" | "0" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let what = if read.is_some() { "is not written as true or false" } else { "is neither true nor false" };
    findings.push(Finding::fault(line, format!("`{key}` {what}"), format!("write `{key}: true` or `{key}: false`")));
    read
}
