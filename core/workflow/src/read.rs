//! The tree of a file as a workflow. Every fault of the file is found at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fault;
use super::expression::Expression;
use super::graph::{Graph, Param, ParamKind, RunLimits};
use super::source::{Node, NodeKind, parse};
use super::template::Template;
use protocol::error::nearest;

/// The version of the schema.
const VERSION: i64 = 1;
/// The most declared steps.
pub(crate) const MAX_STEPS: usize = 200;
/// The most items of `each`, and the most steps of a run with every item counted.
pub(crate) const MAX_ITEMS: usize = 1_000;
/// The items of `each` where `max` is not set.
const ITEMS: usize = 100;
/// The longest name of a step.
const MAX_ID: usize = 24;
/// The rounds of `repeat` where `max` is not set.
const ROUNDS: i64 = 5;
/// The most rounds of `repeat`, and attempts of `retry`.
const MAX_ROUNDS: i64 = 50;
/// The longest description.
const MAX_DESCRIPTION: usize = 300;

/// What is tried again where `retry` names no codes. `PROVIDER_HTTP_ERROR` is not among them: it says that the request itself
/// is refused, and a server that is broken answers `PROVIDER_UNAVAILABLE`.
pub(crate) const RETRIED: [&str; 6] =
    ["RATE_LIMITED", "NETWORK", "STREAM_CLOSED", "PROVIDER_UNAVAILABLE", "TIMEOUT", "STREAM_IDLE_TIMEOUT"];

mod schema; // the schema of a report
mod step; // one step

const TOP: &[&str] = &["version", "name", "description", "output", "params", "limits", "steps"];
const PARAM: &[&str] = &["type", "required", "default", "enum", "description"];
const LIMITS: &[&str] = &["concurrency", "seconds", "tokens", "cost", "failures"];
const COMMON: &[&str] =
    &["id", "kind", "needs", "when", "seconds", "each", "max", "check", "retry", "repeat", "on_fail"];
const AGENT: &[&str] = &["task", "role", "schema", "isolation", "reads", "writes"];
const COMMAND: &[&str] = &["argv", "idempotent"];
const GATE: &[&str] = &["ask", "choices"];
const NESTED: &[&str] = &["use", "params"];
const KINDS: [(&str, &[&str]); 4] = [("agent", AGENT), ("command", COMMAND), ("gate", GATE), ("workflow", NESTED)];

/// A workflow as far as it can be read. What can be read is checked too, so that no fault hides another one.
pub(crate) struct Reading {
    pub graph: Option<Graph>,
    pub faults: Vec<Fault>,
    /// Steps that are there and cannot be read, by their ids.
    pub unread: BTreeSet<String>,
}

/// Reads a workflow. `stem` is its name where the text has none.
pub(crate) fn read(text: &str, stem: &str) -> Reading {
    let mut reader = Reader { faults: Vec::new(), unread: BTreeSet::new() };
    let graph = match parse(text) {
        Ok(node) => reader.graph(&node, stem),
        Err(faults) => {
            reader.faults.extend(faults);
            None
        }
    };
    Reading { graph, faults: reader.faults, unread: reader.unread }
}

struct Reader {
    faults: Vec<Fault>,
    unread: BTreeSet<String>,
}

/// A table of the file, and where it is.
struct Table<'a> {
    at: String,
    line: usize,
    all: &'a BTreeMap<String, Node>,
}

impl Table<'_> {
    fn path(&self, key: &str) -> String {
        if self.at.is_empty() { key.to_owned() } else { format!("{}.{key}", self.at) }
    }
}

impl Reader {
    fn fault(&mut self, line: usize, at: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault::new(line, at, message, fix));
    }

    fn table<'a>(&mut self, node: &'a Node, at: &str) -> Option<Table<'a>> {
        match &node.kind {
            NodeKind::Table(all) => Some(Table { at: at.to_owned(), line: node.line, all }),
            NodeKind::List(_) | NodeKind::Plain(_) => {
                self.fault(node.line, at, format!("it is {}, not a table", node.is_a()), "a table");
                None
            }
        }
    }

    fn known_keys(&mut self, table: &Table<'_>, known: &[&str]) {
        for (key, node) in table.all.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let fix = match nearest(key, known.iter().copied()) {
                Some(near) => near.to_owned(),
                None => format!("one of: {}", known.join(", ")),
            };
            self.fault(node.line, table.path(key), format!("there is no `{}` here", key.escape_debug()), fix);
        }
    }

    fn text(&mut self, table: &Table<'_>, key: &str) -> Option<String> {
        let node = table.all.get(key)?;
        match &node.kind {
            NodeKind::Plain(Value::String(text)) => Some(text.clone()),
            NodeKind::Plain(_) | NodeKind::List(_) | NodeKind::Table(_) => {
                self.fault(node.line, table.path(key), format!("it is {}, not text", node.is_a()), "text in quotes");
                None
            }
        }
    }

    fn truth(&mut self, table: &Table<'_>, key: &str) -> Option<bool> {
        let node = table.all.get(key)?;
        match &node.kind {
            NodeKind::Plain(Value::Bool(it)) => Some(*it),
            NodeKind::Plain(_) | NodeKind::List(_) | NodeKind::Table(_) => {
                self.fault(node.line, table.path(key), format!("it is {}", node.is_a()), "true or false");
                None
            }
        }
    }

    fn whole(&mut self, table: &Table<'_>, key: &str, least: i64, most: i64) -> Option<i64> {
        let node = table.all.get(key)?;
        match &node.kind {
            NodeKind::Plain(Value::Number(it)) if it.as_i64().is_some_and(|n| (least..=most).contains(&n)) => {
                it.as_i64()
            }
            NodeKind::Plain(_) | NodeKind::List(_) | NodeKind::Table(_) => {
                let message = format!("`{}` is no whole number from {least} to {most}", shown(&node.value()));
                self.fault(node.line, table.path(key), message, format!("a number from {least} to {most}"));
                None
            }
        }
    }

    fn texts(&mut self, table: &Table<'_>, key: &str) -> Option<Vec<String>> {
        let node = table.all.get(key)?;
        let list = match &node.kind {
            NodeKind::List(list) => list.iter().map(|it| it.value().as_str().map(str::to_owned)).collect(),
            NodeKind::Plain(_) | NodeKind::Table(_) => None,
        };
        if list.is_none() {
            self.fault(node.line, table.path(key), "it must be a list of texts", "a list, like [\"a\", \"b\"]");
        }
        list
    }

    fn template(&mut self, line: usize, at: &str, text: &str) -> Option<Template> {
        Template::parse(text)
            .map_err(|why| {
                self.fault(line, at, why, "{{params.NAME}}, {{steps.ID.output}}, {{item}} or {{last.output}}")
            })
            .ok()
    }

    fn expression(&mut self, table: &Table<'_>, key: &str) -> Option<Expression> {
        let (line, text) = (table.all.get(key)?.line, self.text(table, key)?);
        let fix = "paths, texts, numbers and == != < > in and or not len()";
        Expression::parse(&text).map_err(|why| self.fault(line, table.path(key), why, fix)).ok()
    }

    /// One of some names.
    fn one_of<T: Copy>(&mut self, table: &Table<'_>, key: &str, all: &[(&str, T)]) -> Option<T> {
        let (line, text) = (table.all.get(key)?.line, self.text(table, key)?);
        if let Some((_, it)) = all.iter().find(|(name, _)| *name == text) {
            return Some(*it);
        }
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let fix = nearest(&text, names.iter().copied()).map_or_else(|| names.join(", "), str::to_owned);
        self.fault(line, table.path(key), format!("there is no `{}`", text.escape_debug()), fix);
        None
    }

    // ─── The parts of a file ───

    fn graph(&mut self, node: &Node, stem: &str) -> Option<Graph> {
        let top = self.table(node, "")?;
        self.known_keys(&top, TOP);
        match top.all.get("version").map(Node::value) {
            Some(Value::Number(n)) if n.as_i64() == Some(VERSION) => {}
            Some(other) => {
                let line = top.all["version"].line;
                let message = format!("this pixir reads version {VERSION}, not {}", shown(&other));
                self.fault(line, "version", message, format!("version = {VERSION}"));
            }
            None => self.fault(top.line, "version", "`version` is missing", format!("version = {VERSION}")),
        }
        let own = self.text(&top, "name");
        // One of a skill is called by the names of both, unless it has a name of its own.
        let parts: Vec<&str> = own.as_deref().map_or_else(|| stem.splitn(2, '/').collect(), |name| vec![name]);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_name = |part: &&str| !part.is_empty() && part.len() <= 64 && part.chars().all(is_plain);
        let is_fine = parts.iter().all(is_name);
        let name = own.clone().unwrap_or_else(|| stem.to_owned());
        if !is_fine {
            let line = top.all.get("name").map_or(top.line, |it| it.line);
            let message = format!("`{}` is no name of a workflow", name.escape_debug());
            self.fault(line, "name", message, "up to 64 letters, digits, - and _");
        }
        let description: String =
            self.text(&top, "description").unwrap_or_default().chars().take(MAX_DESCRIPTION).collect();
        let output = top.all.get("output").map(|it| it.line).and_then(|line| {
            let text = self.text(&top, "output")?;
            self.template(line, "output", &text)
        });
        let params = top.all.get("params").map_or(Vec::new(), |node| self.params(node));
        let limits = top.all.get("limits").map_or_else(RunLimits::default, |node| self.limits(node));
        let steps = match top.all.get("steps").map(|it| (it.line, &it.kind)) {
            Some((line, NodeKind::List(list))) => {
                if list.is_empty() || list.len() > MAX_STEPS {
                    let message = format!("there are {} steps", list.len());
                    self.fault(line, "steps", message, format!("from 1 to {MAX_STEPS} steps"));
                }
                list.iter().take(MAX_STEPS).enumerate().filter_map(|(at, node)| self.step(node, at)).collect()
            }
            Some((line, NodeKind::Table(_) | NodeKind::Plain(_))) => {
                self.fault(line, "steps", "`steps` must be a list", "[[steps]] before each step");
                Vec::new()
            }
            None => {
                self.fault(top.line, "steps", "there are no steps", "[[steps]] before each step");
                Vec::new()
            }
        };
        let output_line = top.all.get("output").map_or(0, |it| it.line);
        Some(Graph { name, description, params, limits, steps, output, output_line })
    }

    fn params(&mut self, node: &Node) -> Vec<Param> {
        let Some(table) = self.table(node, "params") else { return Vec::new() };
        let mut all = Vec::new();
        for (name, node) in table.all {
            let at = table.path(name);
            let Some(own) = self.table(node, &at) else { continue };
            self.known_keys(&own, PARAM);
            if !is_name(name) {
                let message = format!("`{}` is no name of a parameter", name.escape_debug());
                self.fault(node.line, at.clone(), message, "letters, digits, - and _, beginning with a letter");
            }
            let kinds = ParamKind::ALL.map(|kind| (kind.name(), kind));
            let kind = self.one_of(&own, "type", &kinds).unwrap_or(ParamKind::Text);
            let is_required = self.truth(&own, "required").unwrap_or(false);
            let choices = match own.all.get("enum").map(|it| (it.line, it.value())) {
                Some((line, Value::Array(list))) if !list.is_empty() => {
                    for odd in list.iter().filter(|it| !kind.fits(it)) {
                        let message = format!("`{}` is no {}", shown(odd), kind.name());
                        self.fault(line, own.path("enum"), message, format!("values of type {}", kind.name()));
                    }
                    list
                }
                Some((line, _)) => {
                    self.fault(line, own.path("enum"), "it must be a list of values", "a list, like [\"a\", \"b\"]");
                    Vec::new()
                }
                None => Vec::new(),
            };
            let default = own.all.get("default").map(Node::value);
            let param = Param { name: name.clone(), kind, is_required, default, choices };
            if let Some(Err(why)) = param.default.as_ref().map(|it| param.check(it)) {
                self.fault(own.all["default"].line, own.path("default"), why, "a default that the parameter takes");
            }
            all.push(param);
        }
        all
    }

    fn limits(&mut self, node: &Node) -> RunLimits {
        let Some(table) = self.table(node, "limits") else { return RunLimits::default() };
        self.known_keys(&table, LIMITS);
        let cost = table.all.get("cost").map(|it| (it.line, it.value()));
        let cost = match cost {
            Some((_, Value::Number(n))) if n.as_f64().is_some_and(|usd| usd > 0.0) => n.as_f64(),
            Some((line, other)) => {
                let message = format!("`{}` is no amount of US dollars", shown(&other));
                self.fault(line, "limits.cost", message, "an amount above 0, like 0.50");
                None
            }
            None => None,
        };
        let number = |it: Option<i64>| it.and_then(|n| u64::try_from(n).ok());
        let failures = number(self.whole(&table, "failures", 1, 1_000));
        let concurrency = number(self.whole(&table, "concurrency", 1, 64));
        RunLimits {
            concurrency: concurrency.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            seconds: number(self.whole(&table, "seconds", 1, 604_800)),
            tokens: number(self.whole(&table, "tokens", 1, i64::MAX)),
            cost,
            failures: failures.map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
        }
    }
}

impl Param {
    /// The value as the parameter has it: a user types text, which is read as JSON where the parameter takes something else.
    pub fn typed(&self, value: &Value) -> Value {
        let text = value.as_str().filter(|_| self.kind != ParamKind::Text);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
    }

    /// Whether the parameter takes this value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if !self.kind.fits(value) {
            return Err(format!("`{}` is no {}", shown(value), self.kind.name()));
        }
        if !self.choices.is_empty() && !self.choices.contains(value) {
            let all = self.choices.iter().map(shown).collect::<Vec<_>>().join(", ");
            return Err(format!("`{}` is none of: {all}", shown(value)));
        }
        Ok(())
    }
}

/// A value in an error, not too long.
pub(super) fn shown(value: &Value) -> String {
    let text = super::template::text_of(value);
    let short: String = text.escape_debug().take(60).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= 40
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::checked::{Checked, Known};
    use context::roles::Role;

    const FILE: &str = include_str!("../../context/src/workflows/migrate-each.toml");

    fn known() -> Known {
        Known { roles: Role::builtin(), workflows: [("inner".to_owned(), FILE.to_owned())].into(), ..Known::default() }
    }

    /// Deletes, doubles, swaps and replaces parts of a text.
    fn mutated(text: &str, changes: &[(u8, usize, usize)]) -> String {
        const WORDS: [&str; 12] = [
            "{{",
            "}}",
            "\"",
            "[[steps]]\n",
            "each",
            "= [",
            "needs = [\"migrate\"]\n",
            "\u{0}",
            "999999999999999999999",
            "{\"a\":",
            "use = \"inner\"\n",
            "@files",
        ];
        let mut text: Vec<char> = text.chars().collect();
        for (how, at, len) in changes {
            if text.is_empty() {
                break;
            }
            let from = at % text.len();
            let to = (from + len % 40).min(text.len());
            match how % 4 {
                0 => drop(text.drain(from..to)),
                1 => {
                    let part = text[from..to].to_vec();
                    text.splice(from..from, part);
                }
                2 => text[from..to].reverse(),
                _ => drop(text.splice(from..to, WORDS[len % WORDS.len()].chars())),
            }
        }
        text.into_iter().collect()
    }

    fn cases() -> u32 {
        // The long tier has 100,000.
        std::env::var("PIXIR_LONG").map_or(2_000, |_| 100_000)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

        /// Broken build: a template that is never closed slices behind its end.
        #[test]
        fn no_file_makes_the_check_panic(changes in proptest::collection::vec((any::<u8>(), any::<usize>(), any::<usize>()), 1..8)) {
            let text = mutated(FILE, &changes);
            if let Err(faults) = Checked::read(&text, "mutated", &known()) {
                prop_assert!(!faults.is_empty() && faults.iter().all(|it| !it.message.is_empty() && !it.fix.is_empty()));
            }
            let json = super::super::as_data(&text).map(|it| it.to_string());
            if let Ok(json) = json {
                prop_assert_eq!(Checked::read(&json, "mutated", &known()).is_ok(), Checked::read(&text, "mutated", &known()).is_ok());
            }
        }
    }
}
