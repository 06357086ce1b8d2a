//! One step of a file: the keys that all steps have, and those of its kind.

use serde_json::{Map, Value};

use super::super::graph::{Agent, Each, OnFail, ParamValue, Repeat, Retry, Step, Work};
use super::super::source::{Node, NodeKind};
use super::super::template::Template;
use super::{
    AGENT, COMMON, ITEMS, KINDS, MAX_ID, MAX_ITEMS, MAX_ROUNDS, RETRIED, ROUNDS, Reader, Table, schema, shown,
};
use protocol::error::{Code, nearest};
use protocol::event::Isolation;

impl Reader {
    pub(super) fn step(&mut self, node: &Node, index: usize) -> Option<Step> {
        let unnamed = format!("steps[{index}]");
        let raw = self.table(node, &unnamed)?;
        let id = self.text(&raw, "id");
        let at = id.as_ref().map_or(unnamed, |id| format!("steps.{id}"));
        let table = Table { at, ..raw };
        let line = table.all.get("id").map_or(node.line, |it| it.line);
        let id = match id {
            Some(id) if is_id(&id) => id,
            Some(id) => {
                let message = format!("`{}` is no name of a step", id.escape_debug());
                let fix = format!("up to {MAX_ID} of a-z, 0-9, - and _, beginning with a letter");
                self.fault(line, table.path("id"), message, fix);
                self.unread.insert(id);
                return None;
            }
            None => {
                if !table.all.contains_key("id") {
                    self.fault(node.line, table.at.clone(), "the step has no `id`", "id = \"a-name\"");
                }
                return None;
            }
        };
        let guessed = KINDS.iter().find(|(_, own)| own.first().is_some_and(|key| table.all.contains_key(*key)));
        let named = self.one_of(&table, "kind", &KINDS.map(|(name, _)| (name, name)));
        // A kind that does not exist is a fault already; the rest of the step is read as its keys tell, so that all faults are named.
        let kind = named.or_else(|| guessed.map(|(name, _)| *name));
        let Some(kind) = kind else {
            if !table.all.contains_key("kind") {
                self.fault(line, table.at.clone(), "the step has no `kind`", "agent, command, gate or workflow");
            }
            self.unread.insert(id);
            return None;
        };
        let own = KINDS.iter().find(|(name, _)| *name == kind).map_or(AGENT, |(_, keys)| *keys);
        let known: Vec<&str> = COMMON.iter().chain(own).copied().collect();
        self.known_keys(&table, &known);
        let work = match kind {
            "command" => self.command(&table),
            "gate" => self.gate(&table),
            "workflow" => self.nested(&table),
            _ => self.agent(&table),
        };
        let needs = self.texts(&table, "needs").unwrap_or_default();
        let when = self.expression(&table, "when");
        let seconds = self.whole(&table, "seconds", 1, 86_400).and_then(|n| u64::try_from(n).ok());
        let each = self.each(&table);
        let max = self.whole(&table, "max", 1, MAX_ITEMS as i64).and_then(|n| usize::try_from(n).ok());
        if let (Some(node), None) = (table.all.get("max"), table.all.get("each")) {
            self.fault(node.line, table.path("max"), "`max` bounds the items of `each`, and there is none", "each");
        }
        let checks = self.checks(&table);
        let retry = self.retry(&table);
        let repeat = self.repeat(&table);
        let ends = OnFail::ALL.map(|it| (it.name(), it));
        let on_fail = self.one_of(&table, "on_fail", &ends).unwrap_or_default();
        self.combinations(&table, kind);
        let source = table.all.iter().map(|(key, node)| (key.clone(), node.value())).collect::<Map<_, _>>();
        let lines = table.all.iter().map(|(key, node)| (key.clone(), node.line)).collect();
        let Some(work) = work else {
            self.unread.insert(id);
            return None;
        };
        let max = max.unwrap_or(ITEMS);
        Some(Step { id, line, lines, needs, when, seconds, work, each, max, checks, retry, repeat, on_fail, source })
    }

    /// Keys that do not go together.
    fn combinations(&mut self, table: &Table<'_>, kind: &str) {
        let has = |key: &str| table.all.get(key).map(|it| it.line);
        let refused: &[(&str, &str)] = match kind {
            "agent" => &[],
            "command" => &[("repeat", "put the command into `check` of an agent that repeats")],
            "gate" => &[
                ("check", "a step of its own"),
                ("retry", "leave it out"),
                ("repeat", "leave it out"),
                ("each", "one gate before the step with `each`"),
                ("seconds", "leave it out: a gate waits for the user"),
            ],
            _ => &[
                ("check", "`check` in the steps of the other workflow"),
                ("retry", "`retry` in the steps of the other workflow"),
                ("repeat", "`repeat` in the steps of the other workflow"),
                ("each", "`each` in the steps of the other workflow"),
                ("seconds", "`seconds` in the steps of the other workflow"),
            ],
        };
        for (key, fix) in refused {
            if let Some(line) = has(key) {
                let message = format!("a step of kind {kind} cannot have `{key}`");
                self.fault(line, table.path(key), message, *fix);
            }
        }
        if kind == "command"
            && let Some(line) = has("retry")
            && table.all.get("idempotent").map(Node::value) != Some(Value::from(true))
        {
            let message = "a command that may not run twice cannot be tried again";
            self.fault(line, table.path("retry"), message, "idempotent = true, if running it twice does no harm");
        }
    }

    fn agent(&mut self, table: &Table<'_>) -> Option<Work> {
        let role = self.text(table, "role").unwrap_or_else(|| "worker".to_owned());
        let schema = table.all.get("schema").map(|it| (it.line, it.value()));
        if let Some((line, schema)) = &schema
            && !(schema["type"] == "object" && schema["properties"].is_object())
        {
            let fix = "a JSON Schema with type object and properties";
            self.fault(*line, table.path("schema"), "`schema` is no schema of an object", fix);
        }
        if let Some((line, schema)) = &schema {
            for (at, message, fix) in schema::faults(schema) {
                self.fault(*line, format!("{}{at}", table.path("schema")), message, fix);
            }
        }
        let kinds = [Isolation::Shared, Isolation::Copy, Isolation::Scratch].map(|it| (it.name(), it));
        let isolation = self.one_of(table, "isolation", &kinds);
        let reads = self.texts(table, "reads").unwrap_or_default();
        let writes = self.texts(table, "writes");
        for (key, globs) in [("reads", &reads), ("writes", writes.as_ref().unwrap_or(&Vec::new()))] {
            for glob in globs {
                if globset::Glob::new(glob).is_err() {
                    let line = table.all[key].line;
                    let message = format!("`{}` is no glob", glob.escape_debug());
                    self.fault(line, table.path(key), message, "a glob like src/**/*.rs");
                }
            }
        }
        let Some(node) = table.all.get("task") else {
            self.fault(
                table.line,
                table.at.clone(),
                "a step of kind agent needs `task`",
                "task = \"what it is to do\"",
            );
            return None;
        };
        let task = self.text(table, "task")?;
        if task.trim().is_empty() {
            self.fault(node.line, table.path("task"), "the task is empty", "all that the agent needs to know");
        }
        let task = self.template(node.line, &table.path("task"), &task)?;
        Some(Work::Agent(Agent { task, role, schema: schema.map(|(_, it)| it), isolation, reads, writes }))
    }

    fn words(&mut self, node: &Node, at: &str) -> Option<Vec<Template>> {
        let NodeKind::List(list) = &node.kind else {
            let fix = "a list of words, like [\"cargo\", \"test\"]; no shell reads it";
            self.fault(node.line, at, format!("it is {}, not a list of words", node.is_a()), fix);
            return None;
        };
        if list.is_empty() {
            self.fault(node.line, at, "the command has no words", "[\"program\", \"argument\"]");
            return None;
        }
        let word = |it: &Node| match it.value() {
            Value::String(text) => self.template(it.line, at, &text),
            other => {
                self.fault(it.line, at, format!("`{}` is no word", shown(&other)), "text in quotes");
                None
            }
        };
        list.iter().map(word).collect()
    }

    fn command(&mut self, table: &Table<'_>) -> Option<Work> {
        let is_idempotent = self.truth(table, "idempotent").unwrap_or(false);
        let Some(node) = table.all.get("argv") else {
            let fix = "argv = [\"program\", \"argument\"]";
            self.fault(table.line, table.at.clone(), "a step of kind command needs `argv`", fix);
            return None;
        };
        let argv = self.words(node, &table.path("argv"))?;
        Some(Work::Command { argv, is_idempotent })
    }

    fn gate(&mut self, table: &Table<'_>) -> Option<Work> {
        let choices = self.texts(table, "choices").unwrap_or_else(|| vec!["yes".to_owned(), "no".to_owned()]);
        let mut unique = choices.clone();
        unique.sort();
        unique.dedup();
        let is_fine = (2..=4).contains(&unique.len()) && unique.len() == choices.len();
        if !is_fine || choices.iter().any(|it| it.trim().is_empty() || it.len() > 40) {
            let line = table.all.get("choices").map_or(table.line, |it| it.line);
            let fix = "two to four different short texts";
            self.fault(line, table.path("choices"), "these are no choices of a gate", fix);
        }
        let Some(node) = table.all.get("ask") else {
            self.fault(table.line, table.at.clone(), "a step of kind gate needs `ask`", "ask = \"Ship it?\"");
            return None;
        };
        let text = self.text(table, "ask")?;
        let ask = self.template(node.line, &table.path("ask"), &text)?;
        Some(Work::Gate { ask, choices })
    }

    fn nested(&mut self, table: &Table<'_>) -> Option<Work> {
        let params = table.all.get("params").and_then(|node| self.table(node, &table.path("params")));
        let mut all = Vec::new();
        for (name, node) in params.iter().flat_map(|own| own.all) {
            let value = match node.value() {
                Value::String(text) if text.contains("{{") => {
                    let at = table.path(&format!("params.{name}"));
                    self.template(node.line, &at, &text).map(ParamValue::Template)
                }
                other => Some(ParamValue::Value(other)),
            };
            all.extend(value.map(|value| (name.clone(), value)));
        }
        if !table.all.contains_key("use") {
            let fix = "use = \"the name of a workflow\"";
            self.fault(table.line, table.at.clone(), "a step of kind workflow needs `use`", fix);
        }
        Some(Work::Workflow { name: self.text(table, "use")?, params: all })
    }

    fn each(&mut self, table: &Table<'_>) -> Option<Each> {
        let line = table.all.get("each")?.line;
        let text = self.text(table, "each")?;
        let fix = "\"{{steps.ID.output.items}}\", or \"@ID\" for the items of another step";
        if let Some(id) = text.strip_prefix('@') {
            return Some(Each::Follows(id.to_owned()));
        }
        match Template::parse(&text).ok().as_ref().and_then(Template::sole_path) {
            Some(path) => Some(Each::List(path.clone())),
            None => {
                self.fault(line, table.path("each"), "it is no path to a list", fix);
                None
            }
        }
    }

    fn checks(&mut self, table: &Table<'_>) -> Vec<Vec<Template>> {
        let Some(node) = table.all.get("check") else { return Vec::new() };
        let at = table.path("check");
        let NodeKind::List(list) = &node.kind else {
            self.fault(node.line, at, "it must be a list of commands", "[[\"cargo\", \"test\"]]");
            return Vec::new();
        };
        list.iter().filter_map(|it| self.words(it, &at)).collect()
    }

    fn retry(&mut self, table: &Table<'_>) -> Option<Retry> {
        let node = table.all.get("retry")?;
        let own = self.table(node, &table.path("retry"))?;
        self.known_keys(&own, &["times", "on"]);
        let times = self.whole(&own, "times", 1, MAX_ROUNDS).unwrap_or(2);
        let on = self.texts(&own, "on").unwrap_or_else(|| RETRIED.map(str::to_owned).to_vec());
        for code in on.iter().filter(|code| Code::from_name(code).is_none()) {
            let fix = nearest(code, Code::ALL.iter().map(|it| it.name())).unwrap_or("the name of an error code");
            self.fault(own.all["on"].line, own.path("on"), format!("there is no code `{}`", code.escape_debug()), fix);
        }
        Some(Retry { times: u32::try_from(times).unwrap_or(2), on })
    }

    fn repeat(&mut self, table: &Table<'_>) -> Option<Repeat> {
        let node = table.all.get("repeat")?;
        let own = self.table(node, &table.path("repeat"))?;
        self.known_keys(&own, &["until", "max"]);
        let max = self.whole(&own, "max", 1, MAX_ROUNDS).unwrap_or(ROUNDS);
        let until = self.expression(&own, "until");
        Some(Repeat { until, max: u32::try_from(max).unwrap_or(1) })
    }
}

fn is_id(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= MAX_ID
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
}
