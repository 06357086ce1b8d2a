//! Pins: definitions of tools as the user accepted them, on the disk. Requests are made from them; no server has to run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::prompts::Prompt;
use protocol::error::{Code, Error, Result};
use protocol::remedy::Remedy;
use storage::regular;
use storage::rules::lock;
use storage::store::{make_private, write_whole};
use text::clean::{clean_json, hides, without_hidden};
use text::edits::Unified;

/// The most tools of one server.
pub(crate) const MAX_TOOLS: usize = 512;
/// The longest description of a tool, bytes.
const MAX_DESCRIPTION: usize = 2 << 10;
/// The longest definition, bytes as JSON.
const MAX_DEFINITION: usize = 8 << 10;
/// The longest name that a server may give to a tool.
const MAX_RAW: usize = 256;

/// A tool as its server defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The server's name of the tool.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, by the server's word.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: Value,
    /// The JSON Schema of its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What the server claims about it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(crate) annotations: Value,
}

impl Definition {
    /// Reads a tool of `tools/list`. `Err` says why the tool cannot be offered.
    pub fn read(tool: &Value) -> std::result::Result<Definition, String> {
        let name = tool["name"].as_str().filter(|it| !it.is_empty() && it.len() <= MAX_RAW);
        let Some(name) = name else { return Err("a tool without a usable name".to_owned()) };
        if hides(name) {
            return Err(format!("`{}`: its name has invisible characters", name.escape_debug()));
        }
        let input = match &tool["inputSchema"] {
            Value::Object(_) => tool["inputSchema"].clone(),
            Value::Null => json!({ "type": "object" }),
            _ => return Err(format!("`{name}`: its schema is no object")),
        };
        let mut description = without_hidden(tool["description"].as_str().unwrap_or_default());
        if description.len() > MAX_DESCRIPTION {
            description.truncate(description.floor_char_boundary(MAX_DESCRIPTION - '…'.len_utf8()));
            description.push('…');
        }
        let it = Definition {
            name: name.to_owned(),
            title: tool["title"].as_str().or_else(|| tool["annotations"]["title"].as_str()).map(without_hidden),
            description,
            input,
            output: tool.get("outputSchema").filter(|it| it.is_object()).cloned(),
            annotations: hints(&tool["annotations"]),
        };
        let bytes = json!([it.description, it.input]).to_string().len();
        if bytes > MAX_DEFINITION {
            return Err(format!("`{name}`: its definition has {bytes} bytes, more than {MAX_DEFINITION}"));
        }
        Ok(it)
    }

    /// 32 hex digits that change with every byte of the definition.
    pub fn pin(&self) -> String {
        let whole = json!([self.name, self.title, self.description, self.input, self.output, self.annotations]);
        blake3::hash(canonical(&whole).as_bytes()).to_hex()[..32].to_owned()
    }

    /// The server says that a call may destroy something. It is shown, and only makes pixir stricter.
    pub fn is_destructive(&self) -> bool {
        self.annotations["destructiveHint"] == true
    }

    /// What the server claims, for the user.
    pub fn claims(&self) -> Vec<&'static str> {
        let hints = [
            ("readOnlyHint", true, "the server says that it only reads"),
            ("destructiveHint", true, "the server says that it may destroy something"),
            ("openWorldHint", true, "the server says that it reaches other services"),
        ];
        hints.into_iter().filter(|(key, value, _)| self.annotations[*key] == *value).map(|(_, _, text)| text).collect()
    }
}

/// What the protocol knows of a server's claims about a tool. Others are no part of what the user accepts.
fn hints(annotations: &Value) -> Value {
    let Value::Object(given) = annotations else { return Value::Null };
    let known = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    let named = known.into_iter().filter_map(|name| Some((name.to_owned(), given.get(name)?.clone())));
    named.filter(|(_, value)| !value.is_null()).collect()
}

/// The accepted definitions of one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pins {
    /// The server's name.
    pub server: String,
    /// The hash of the launch that they belong to.
    pub launch: String,
    /// The protocol version that the server speaks.
    #[serde(default)]
    pub version: String,
    /// The server's own instructions.
    #[serde(default)]
    pub instructions: String,
    /// By the server's names.
    pub tools: Vec<Definition>,
    /// What the user can write messages with. It reaches no model by itself, so it is no part of what is accepted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Prompt>,
    /// It has resources.
    #[serde(default)]
    pub(crate) has_resources: bool,
}

impl Pins {
    /// The definition with this name.
    pub fn tool(&self, raw: &str) -> Option<&Definition> {
        self.tools.binary_search_by(|it| it.name.as_str().cmp(raw)).ok().map(|at| &self.tools[at])
    }

    /// A hash of all definitions and of the server's instructions, which an acceptance names.
    pub fn seen(&self) -> String {
        let instructions = blake3::hash(self.instructions.as_bytes()).to_hex().to_string();
        let all: Vec<String> = self.tools.iter().map(Definition::pin).chain([instructions]).collect();
        blake3::hash(all.join("\n").as_bytes()).to_hex()[..32].to_owned()
    }

    /// What differs in these definitions from the accepted ones, one line for each tool, by name.
    pub fn changes(&self, now: &Pins) -> Vec<Change> {
        let mut names: Vec<&String> = self.tools.iter().chain(&now.tools).map(|it| &it.name).collect();
        names.sort();
        names.dedup();
        names
            .into_iter()
            .filter_map(|name| {
                let (before, after) = (self.tool(name), now.tool(name));
                if before == after {
                    return None;
                }
                Some(Change { tool: name.clone(), before: before.cloned(), after: after.cloned() })
            })
            .collect()
    }
}

/// A tool whose definition is not the accepted one.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub tool: String,
    /// As it was accepted; `None` for a new one.
    pub before: Option<Definition>,
    /// As it is now; `None` for one that is gone.
    pub after: Option<Definition>,
}

impl Change {
    /// The change as a diff of readable JSON.
    pub fn diff(&self) -> String {
        let text = |it: &Option<Definition>| {
            it.as_ref().map_or(String::new(), |it| {
                let whole = json!({
                    "description": it.description, "title": it.title, "input": it.input,
                    "output": it.output, "annotations": it.annotations,
                });
                // What hides is shown as an escape.
                clean_json(&serde_json::to_string_pretty(&whole).unwrap_or_default()).into_owned() + "\n"
            })
        };
        diff(&self.tool, &text(&self.before), &text(&self.after))
    }
}

/// A unified diff of two texts with this name.
pub(super) fn diff(name: &str, before: &str, after: &str) -> String {
    Unified::new((name, name), before, after, 3).to_string()
}

/// The folder of pins.
#[derive(Debug, Clone)]
pub struct Catalog {
    folder: PathBuf,
    /// Nothing is written.
    is_dry_run: bool,
}

impl Catalog {
    /// The pins below this home folder. A dry run reads them and saves none.
    pub fn new(home: &Path, is_dry_run: bool) -> Catalog {
        Catalog { folder: home.join("mcp"), is_dry_run }
    }

    fn path(&self, server: &str, launch: &str) -> PathBuf {
        self.folder.join(format!("{server}-{}.json", &launch[..launch.len().min(16)]))
    }

    /// The accepted definitions of this launch of a server; `None` before the first contact.
    ///
    /// # Errors
    /// `READ_FAILED` when there are some that cannot be read. They stay as they are.
    pub fn load(&self, server: &str, launch: &str) -> Result<Option<Pins>> {
        let path = self.path(server, launch);
        let failed = |why: &dyn std::fmt::Display| {
            let message = format!("the accepted tools of {server} cannot be read: {}: {why}", path.display());
            Error::new(Code::ReadFailed, message, "move the file away; then the server's tools are accepted anew")
        };
        let text = match regular::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        let pins: Pins = serde_json::from_str(&text).map_err(|e| failed(&e))?;
        Ok((pins.launch == launch && pins.server == server).then_some(pins))
    }

    /// Accepts these definitions. What was accepted for the launch before is replaced.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn save(&self, pins: &Pins) -> Result<()> {
        let failed = |e: io::Error| {
            Error::new(
                Code::WriteFailed,
                format!("save the definitions of {}: {e}", pins.server),
                Remedy::CheckStateFolder,
            )
        };
        if self.is_dry_run {
            return Ok(());
        }
        make_private(&self.folder).map_err(failed)?;
        let _alone = lock(&self.folder, "pins.lock").map_err(failed)?;
        let text = serde_json::to_string_pretty(pins).map_err(|e| failed(e.into()))?;
        write_whole(&self.path(&pins.server, &pins.launch), text.as_bytes()).map_err(failed)
    }

    /// Forgets what was accepted for a server, whatever its launch.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn forget(&self, server: &str) -> Result<()> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in entries.map(|it| it.path()) {
            let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
            let is_its = name.strip_prefix(server).and_then(|it| it.strip_prefix('-')?.strip_suffix(".json"));
            if is_its.is_some_and(|it| it.len() == 16 && it.bytes().all(|b| b.is_ascii_hexdigit())) {
                std::fs::remove_file(&path).map_err(|e| {
                    Error::new(Code::WriteFailed, format!("remove {}: {e}", path.display()), Remedy::CheckStateFolder)
                })?;
            }
        }
        Ok(())
    }
}

/// JSON whose objects are sorted by key.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let inner: Vec<String> = sorted
                .into_iter()
                .map(|(key, it)| format!("{}:{}", Value::from(key.as_str()), canonical(it)))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool() -> Value {
        json!({ "name": "log", "description": "Shows commits", "inputSchema": { "type": "object", "properties": { "n": { "type": "integer" } } } })
    }

    /// Broken builds: a pin without the annotations; one that depends on the order of keys.
    #[test]
    fn a_pin_changes_with_every_part_of_a_definition_and_with_nothing_else() {
        let pin = |tool: &Value| Definition::read(tool).expect("a tool").pin();
        let own = pin(&tool());
        let parts = [
            ("name", json!("logs")),
            ("title", json!("Log")),
            ("description", json!("Shows commits!")),
            ("inputSchema", json!({ "type": "object" })),
            ("outputSchema", json!({ "type": "object" })),
            ("annotations", json!({ "destructiveHint": true })),
        ];
        for (key, value) in parts {
            let mut other = tool();
            other[key] = value;
            assert_ne!(pin(&other), own, "{key}");
        }
        let reordered = r#"{"inputSchema":{"properties":{"n":{"type":"integer"}},"type":"object"},"description":"Shows commits","name":"log"}"#;
        assert_eq!(pin(&serde_json::from_str(reordered).expect("JSON")), own);
    }

    /// Broken build: one that only strips control characters of ASCII.
    #[test]
    fn what_a_person_cannot_see_in_a_definition_the_model_does_not_read() {
        let hidden = "a\u{202e}b\u{200b}c\u{e0041}d\u{1b}[31m\u{2066}e";
        let mut it = tool();
        it["description"] = json!(hidden);
        let read = Definition::read(&it).expect("a tool");
        assert_eq!(read.description, "abcd[31me");
        it["name"] = json!("lo\u{200b}g");
        assert!(Definition::read(&it).is_err(), "two tools must not look alike");
        it["name"] = json!("log");
        it["description"] = json!("x".repeat(5_000));
        assert!(Definition::read(&it).expect("cut").description.len() <= MAX_DESCRIPTION);
        it["inputSchema"]["properties"]["n"]["enum"] = json!(["y".repeat(9_000)]);
        assert!(Definition::read(&it).expect_err("too large").contains("9"));
    }
}
