//! Names that models know from other programs, for our tools and their arguments. They are accepted and never advertised.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Call;
pub(super) use context::tool_names::ours as tool;
use permissions::shell::quoted;
use protocol::tool_spec::ToolSpec;

/// Names of arguments in other programs, and ours. Each counts only where a tool has ours and not the other.
const ARGUMENTS: [(&str, &str); 35] = [
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
    ("old_str", "old_text"),
    ("new_str", "new_text"),
    ("file_text", "content"),
    ("dir_path", "path"),
    ("input", "patch"),
    ("patchText", "patch"),
    ("patch_text", "patch"),
    ("diff", "patch"),
    ("plan", "items"),
    ("content", "step"),
    ("multiSelect", "multiple"),
    ("skill", "name"),
    ("query", "pattern"),
    ("-i", "ignore_case"),
    ("-C", "context"),
    ("head_limit", "limit"),
];

/// The call as ours, if it has the form of another program's tool: a tool for several things, arguments that only describe
/// the call, a command as a list of words.
pub(super) fn call(call: &Call) -> Cow<'_, Call> {
    let Some(fields) = call.args.as_object() else { return Cow::Borrowed(call) };
    let mut args = fields.clone();
    let mut tool = call.tool.as_str();
    let mut without = |names: &[&str]| names.iter().for_each(|name| drop(args.remove(*name)));
    match tool {
        "str_replace_editor" | "str_replace_based_edit_tool" => {
            tool = match args.remove("command").as_ref().and_then(Value::as_str) {
                Some("view") => {
                    // What does not fit a range stays, and is named as unknown.
                    if let Some([from, to]) = args.get("view_range").and_then(Value::as_array).map(Vec::as_slice)
                        && let (Some(from), Some(to)) = (from.as_u64(), to.as_i64())
                    {
                        args.remove("view_range");
                        args.insert("offset".into(), from.into());
                        // -1 is the end of the file.
                        if let Ok(to) = u64::try_from(to) {
                            args.insert("limit".into(), (to + 1).saturating_sub(from).into());
                        }
                    }
                    "read"
                }
                Some("create") => "write",
                Some("str_replace") => "edit",
                Some(_) | None => return Cow::Borrowed(call),
            };
        }
        "Bash" | "shell" | "container.exec" | "run_shell_command" | "run_terminal_cmd" => {
            without(&["description", "explanation"]);
            if !args.contains_key("background")
                && let Some(background) = args.remove("is_background")
            {
                args.insert("background".into(), background);
            }
            // A list with anything but words stays, and is refused: a command without one of its words is another one.
            let words = args.get("command").and_then(Value::as_array);
            let words: Option<Vec<&str>> = words.and_then(|words| words.iter().map(Value::as_str).collect());
            if let Some(words) = words {
                let line = match words.as_slice() {
                    [shell, "-c" | "-lc", line] if ["bash", "sh", "zsh"].contains(shell) => (*line).to_owned(),
                    words => quoted(words.iter().copied()),
                };
                args.insert("command".into(), line.into());
            }
            let name = if args.contains_key("timeout_ms") { "timeout_ms" } else { "timeout" };
            let is_only_one = name == "timeout" || !args.contains_key("timeout");
            if let Some(timeout) = args.get(name).and_then(Value::as_u64).filter(|_| is_only_one) {
                args.remove(name);
                // Theirs are milliseconds. So short a time in milliseconds would stop every command.
                let seconds = if timeout < 1_000 { timeout } else { timeout.div_ceil(1_000) };
                args.insert("timeout".into(), seconds.into());
            }
        }
        "TodoWrite" | "todowrite" | "todo_write" => {
            for it in each(args.get_mut("todos")) {
                ["activeForm", "id", "priority"].iter().for_each(|name| drop(it.remove(*name)));
            }
        }
        "AskUserQuestion" | "question" => {
            for it in each(args.get_mut("questions")) {
                it.remove("header");
                for option in it.get_mut("options").and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(label) = option.get("label").filter(|label| label.is_string()) {
                        *option = label.clone();
                    }
                }
            }
        }
        _ => return Cow::Borrowed(call),
    }
    Cow::Owned(Call { tool: tool.to_owned(), args: args.into(), ..call.clone() })
}

fn each(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
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
        // Of two names for one argument neither counts: both stay, and are named as unknown.
        let is_only_one = |ours: &str| renamed.iter().filter(|(_, it)| *it == ours).count() == 1;
        let renamed: Vec<(&str, &str)> = renamed.iter().copied().filter(|(_, ours)| is_only_one(ours)).collect();
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
            if let Some(field) = fields.remove(theirs) {
                fields.insert(ours.to_owned(), field);
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
    use crate::arguments::object;

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

    /// Broken build: one that maps the names of tools and not what their arguments mean.
    #[test]
    fn a_call_of_another_programs_tool_becomes_ours() {
        let ours = |tool: &str, args: Value| {
            let theirs = Call { id: "c".into(), tool: tool.into(), args, caller: crate::Caller::Model };
            let call = call(&theirs).into_owned();
            (super::tool(&call.tool).unwrap_or(&call.tool).to_owned(), call.args)
        };
        for (tool, args, name, wanted) in [
            (
                "str_replace_based_edit_tool",
                json!({ "command": "view", "path": "a", "view_range": [3, 5] }),
                "read",
                json!({ "path": "a", "offset": 3, "limit": 3 }),
            ),
            (
                "str_replace_editor",
                json!({ "command": "create", "path": "a", "file_text": "x" }),
                "write",
                json!({ "path": "a", "file_text": "x" }),
            ),
            (
                "Bash",
                json!({ "command": "ls", "description": "List", "timeout": 120_000 }),
                "bash",
                json!({ "command": "ls", "timeout": 120 }),
            ),
            (
                "shell",
                json!({ "command": ["bash", "-lc", "ls | wc"], "workdir": "src" }),
                "bash",
                json!({ "command": "ls | wc", "workdir": "src" }),
            ),
            ("shell", json!({ "command": ["ls", "a b"] }), "bash", json!({ "command": "ls 'a b'" })),
            (
                "TodoWrite",
                json!({ "todos": [{ "content": "look", "status": "pending", "activeForm": "Looking" }] }),
                "update_plan",
                json!({ "todos": [{ "content": "look", "status": "pending" }] }),
            ),
            (
                "AskUserQuestion",
                json!({ "questions": [{ "question": "Which?", "header": "H", "options": [{ "label": "a", "description": "d" }] }] }),
                "ask_user",
                json!({ "questions": [{ "question": "Which?", "options": ["a"] }] }),
            ),
            (
                "run_terminal_cmd",
                json!({ "command": "serve", "is_background": true, "explanation": "Serve" }),
                "bash",
                json!({ "command": "serve", "background": true }),
            ),
            ("bash", json!({ "command": "ls", "timeout": 7 }), "bash", json!({ "command": "ls", "timeout": 7 })),
        ] {
            assert_eq!(ours(tool, args), (name.to_owned(), wanted));
        }
    }

    /// Broken build: one that leaves out a word, a time or a range that it does not understand, and calls the tool without.
    #[test]
    fn what_is_not_understood_stays_for_the_check_of_the_arguments() {
        for (tool, args) in [
            ("shell", json!({ "command": ["rm", 5, "x"] })),
            ("Bash", json!({ "command": "ls", "timeout": "soon" })),
            ("Bash", json!({ "command": "ls", "timeout": 5, "timeout_ms": 9_000 })),
            ("run_terminal_cmd", json!({ "command": "ls", "is_background": true, "background": false })),
        ] {
            let theirs = Call { id: "c".into(), tool: tool.into(), args: args.clone(), caller: crate::Caller::Model };
            assert_eq!(call(&theirs).args, args, "{tool}");
        }
        let args = json!({ "command": "view", "path": "a", "view_range": [3] });
        let tool = "str_replace_editor".to_owned();
        let theirs = Call { id: "c".into(), tool, args, caller: crate::Caller::Model };
        assert_eq!(call(&theirs).args, json!({ "path": "a", "view_range": [3] }));
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
        for same in [
            json!({ "path": "a", "file_path": "b" }),
            json!({ "file_path": "a", "filePath": "b" }),
            json!({ "filePath": "a", "filepath": "a", "file": "a" }),
            json!({ "path": "[1]" }),
            json!({ "edits": "no JSON" }),
        ] {
            assert_eq!(adapted(edits.clone(), same.clone()), same);
        }
        let own = json!({ "file": text, "path": text });
        assert_eq!(adapted(own, json!({ "file": "a" })), json!({ "file": "a" }), "the tool has this argument");
    }
}
