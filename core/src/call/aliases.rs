//! Names that models know from other programs, for our tools and their arguments. They are accepted and never advertised.

use std::borrow::Cow;

use serde_json::Value;

use crate::protocol::tool_spec::ToolSpec;

/// Names of tools in other programs, and ours.
const TOOLS: [(&str, &str); 17] = [
    ("Bash", "bash"),
    ("shell", "bash"),
    ("Read", "read"),
    ("read_file", "read"),
    ("Write", "write"),
    ("write_file", "write"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("str_replace", "edit"),
    ("Grep", "grep"),
    ("Glob", "find"),
    ("glob", "find"),
    ("LS", "ls"),
    ("list_dir", "ls"),
    ("TodoWrite", "update_plan"),
    ("AskUserQuestion", "ask_user"),
    ("Skill", "skill_view"),
];

/// Names of arguments in other programs, and ours. Each counts only where a tool has ours and not the other.
const ARGUMENTS: [(&str, &str); 19] = [
    ("file_path", "path"),
    ("filePath", "path"),
    ("filepath", "path"),
    ("file", "path"),
    ("directory", "path"),
    ("old_string", "old_text"),
    ("oldString", "old_text"),
    ("oldText", "old_text"),
    ("new_string", "new_text"),
    ("newString", "new_text"),
    ("newText", "new_text"),
    ("replaceAll", "replace_all"),
    ("contents", "content"),
    ("cmd", "command"),
    ("workdir", "cwd"),
    ("include", "glob"),
    ("regex", "pattern"),
    ("todos", "items"),
    ("run_in_background", "background"),
];

/// Our name of a tool.
pub(super) fn tool(name: &str) -> Option<&'static str> {
    TOOLS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// The arguments under our names. JSON in a string becomes what it says, where the schema wants an array or an object.
pub(super) fn arguments<'a>(spec: &ToolSpec, args: &'a Value) -> Cow<'a, Value> {
    let mut args = Cow::Borrowed(args);
    adapt(&spec.parameters, &mut args);
    args
}

fn adapt(schema: &Value, value: &mut Cow<'_, Value>) {
    if let (Some("array" | "object"), Some(text)) = (schema["type"].as_str(), value.as_str())
        && let Ok(parsed) = serde_json::from_str::<Value>(text)
        && (parsed.is_array() || parsed.is_object())
    {
        *value = Cow::Owned(parsed);
    }
    if let Some(known) = schema["properties"].as_object()
        && let Some(fields) = value.as_object()
    {
        let renamed: Vec<(&str, &str)> = ARGUMENTS
            .into_iter()
            .filter(|(theirs, ours)| {
                let fits = known.contains_key(*ours) && !known.contains_key(*theirs);
                fits && fields.contains_key(*theirs) && !fields.contains_key(*ours)
            })
            .collect();
        let nested: Vec<String> = known
            .iter()
            .filter(|(_, schema)| matches!(schema["type"].as_str(), Some("array" | "object")))
            .map(|(name, _)| name.clone())
            .collect();
        if renamed.is_empty() && nested.is_empty() {
            return;
        }
        let Value::Object(fields) = value.to_mut() else { return };
        for (theirs, ours) in renamed {
            // A second alias of the same argument stays, and is named as unknown.
            if let Some(field) = fields.remove(theirs) {
                fields.entry(ours).or_insert(field);
            }
        }
        for name in nested {
            if let Some(field) = fields.get_mut(&name) {
                let mut inner = Cow::Owned(std::mem::take(field));
                adapt(&known[&name], &mut inner);
                *field = inner.into_owned();
            }
        }
    } else if let Some(items) = value.as_array().filter(|items| !items.is_empty() && schema["items"].is_object()) {
        let adapted = items.iter().map(|item| {
            let mut item = Cow::Borrowed(item);
            adapt(&schema["items"], &mut item);
            item.into_owned()
        });
        *value = Cow::Owned(Value::Array(adapted.collect()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::arguments::object;

    fn adapted(properties: Value, args: Value) -> Value {
        let spec = ToolSpec {
            name: "edit".into(),
            description: "".into(),
            parameters: object(properties, &[]),
            reads_only: false,
            streams: "".into(),
        };
        arguments(&spec, &args).into_owned()
    }

    /// Broken build: one that renames an argument that the tool has itself, or parses a string that is to stay one.
    #[test]
    fn names_of_other_programs_and_json_in_strings_are_understood_where_they_cannot_mean_anything_else() {
        let text = json!({ "type": "string" });
        let change = json!({ "type": "object", "properties": { "old_text": text, "new_text": text } });
        let edits = json!({ "path": text, "edits": { "type": "array", "items": change } });
        let wanted = json!({ "path": "a", "edits": [{ "old_text": "1", "new_text": "2" }] });
        let theirs = json!({ "file_path": "a", "edits": [{ "old_string": "1", "newString": "2" }] });
        assert_eq!(adapted(edits.clone(), theirs.clone()), wanted);
        let as_text = json!({ "filePath": "a", "edits": theirs["edits"].to_string() });
        assert_eq!(adapted(edits.clone(), as_text), wanted);
        for same in [json!({ "path": "a", "file_path": "b" }), json!({ "path": "[1]" }), json!({ "edits": "no JSON" })]
        {
            assert_eq!(adapted(edits.clone(), same.clone()), same);
        }
        let own = json!({ "file": text, "path": text });
        assert_eq!(adapted(own, json!({ "file": "a" })), json!({ "file": "a" }), "the tool has this argument");
    }
}
