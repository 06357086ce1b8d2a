//! Every command of the program, from the parser's own definitions, under every condition that a script can put it in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use crate::shell::{Shell, figures, ran, run_to_its_end};
use crate::tier;

mod conditions; // each runs one command and tells what is wrong
mod rows; // a call of each command that works, and what it prints otherwise

use conditions::{CONDITIONS, OF_OUTPUTS, envelope, has_no_result, swapped, ways, with};
pub(super) use rows::Fixture;
use rows::{OTHER_OUTPUTS, ROWS, Row};

/// The definition of a command, as `pixir schema` prints it.
#[derive(Clone)]
struct Definition {
    path: String,
    it: Value,
}

impl Definition {
    fn is_group(&self) -> bool {
        !self.path.is_empty() && self.it["commands"].as_array().is_some_and(|it| !it.is_empty())
    }

    fn strings(&self, key: &str) -> Vec<String> {
        strings(&self.it[key])
    }

    fn prints(&self, format: &str) -> bool {
        self.strings("formats").iter().any(|it| it == format)
    }

    /// Its own flags, and those of all runs that it heeds.
    fn flags(&self) -> BTreeSet<String> {
        let args = self.it["args"].as_array().cloned().unwrap_or_default();
        let own = args.iter().flat_map(|it| {
            let name = it["name"].as_str().unwrap_or_default().to_owned();
            std::iter::once(name).chain(strings(&it["aliases"]))
        });
        // Where there is one format, there is no choice.
        let choice: &[&str] = if self.strings("formats") == ["plain"] { &[] } else { &["--format", "--json"] };
        let shared = choice.iter().chain(&["--error-format", "--help"]).map(|it| (*it).to_owned());
        own.filter(|it| it.starts_with("--")).chain(self.strings("run_options")).chain(shared).collect()
    }
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn definitions(schema: &Value) -> Vec<Definition> {
    fn below(path: &str, it: &Value, all: &mut Vec<Definition>) {
        all.push(Definition { path: path.to_owned(), it: it.clone() });
        for inner in it["commands"].as_array().into_iter().flatten() {
            below(format!("{path} {}", inner["name"].as_str().expect("a name")).trim(), inner, all);
        }
    }
    let mut all = Vec::new();
    below("", &schema["commands"], &mut all);
    all
}

/// The words of every call that prints something, in each of its formats.
pub(super) fn outputs(fixture: &Fixture) -> Vec<Vec<String>> {
    let all = definitions(&fixture.shell.run(["schema"]).document());
    let of = |path: &str| all.iter().find(|it| it.path == path).expect("each row is one of a command");
    let each = |row: &'static Row| ways(of(row.0), row).into_iter().map(|flags| with(fixture.words(row), &flags));
    ROWS.iter().chain(OTHER_OUTPUTS).flat_map(each).collect()
}

/// Broken builds: a command without examples; one that accepts a flag and ignores it; a hidden flag; a value or a name that is
/// refused without what would fit; a preview that writes; a reading command that writes; pretty JSON where lines were asked
/// for; a table without a header; a list that is cut in silence; a time without three digits; a result that is
/// lost without an error, because `Output::write` ignores it, `main` returns the command's own exit code, or nothing looks at
/// stdout before Rust's runtime opens `/dev/null` in its place; state in a shared folder; colours in a pipe; a command that needs the network to print what is on this machine.
///
/// `PIXIR_COMMANDS=status,gc` checks these commands alone.
#[test]
fn every_command_keeps_the_contract_under_every_condition() {
    let began = Instant::now();
    let all = definitions(&Shell::new(&[]).run(["schema"]).document());
    let leaves: Vec<&Definition> = all.iter().filter(|it| !it.is_group()).collect();
    let missing: Vec<&str> =
        leaves.iter().map(|it| it.path.as_str()).filter(|path| !ROWS.iter().any(|row| row.0 == *path)).collect();
    assert!(missing.is_empty() && leaves.len() == ROWS.len(), "commands without a row: {missing:?}");
    let of = |path: &str| all.iter().find(|it| it.path == path).unwrap_or_else(|| panic!("there is no command {path}"));
    let calls: Vec<(&Definition, &Row)> = ROWS.iter().chain(OTHER_OUTPUTS).map(|row| (of(row.0), row)).collect();
    let chosen: BTreeSet<&str> = match std::env::var("PIXIR_COMMANDS") {
        Ok(only) => {
            leaves.iter().map(|it| it.path.as_str()).filter(|it| only.split(',').any(|name| name == *it)).collect()
        }
        Err(_) => tier::sample("every_command_keeps", leaves.iter().map(|it| it.path.as_str()).collect())
            .into_iter()
            .collect(),
    };
    let is_whole = chosen.len() == leaves.len();
    let calls: Vec<(usize, (&Definition, &Row))> =
        calls.into_iter().enumerate().filter(|(_, (it, _))| chosen.contains(it.path.as_str())).collect();
    let outputs: usize = calls.iter().map(|(_, (it, row))| ways(it, row).len()).sum();
    let (next, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let documents = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let fixture = Fixture::new();
                loop {
                    let Some((at, (it, row))) = calls.get(next.fetch_add(1, Ordering::SeqCst)) else { return };
                    // What a command prints otherwise has been judged but for its loss.
                    let of_command = if *at < ROWS.len() { CONDITIONS } else { &[] };
                    if *at < ROWS.len()
                        && let Some(fields) = document(&fixture, it, row)
                    {
                        documents
                            .lock()
                            .expect("no panic")
                            .insert(format!("pixir {}", it.path).trim().to_owned(), fields);
                    }
                    for (name, check) in of_command.iter().chain(OF_OUTPUTS) {
                        match check(&fixture, it, row) {
                            None => {}
                            Some(Ok(())) => drop(kept.fetch_add(1, Ordering::SeqCst)),
                            Some(Err(why)) => {
                                let why: String = why.chars().take(600).collect();
                                failed.lock().expect("no panic").push(format!("{} {} · {name}: {why}", row.0, row.1));
                            }
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    let documents = documents.into_inner().expect("no panic");
    if is_whole {
        let about = "the fields of the document of each command, and of the rows in it";
        is_in_the_reference("documents.json", &format!("{:#}\n", json!({ "about": about, "documents": documents })));
    } else {
        let reference: Value = serde_json::from_str(&reference("documents.json")).expect("JSON");
        for (command, fields) in &documents {
            assert_eq!(
                reference["documents"][command], *fields,
                "{command}: docs/reference/documents.json is out of date"
            );
        }
    }
    figures(&format!(
        "conformance: {} of {} commands under {} conditions, {} kept, in {:.1} s\nQO1: {outputs} outputs, each lost, each closed by its reader, each without stdout, each without stderr: {} tried, 0 failed",
        chosen.len(),
        leaves.len(),
        CONDITIONS.len() + OF_OUTPUTS.len(),
        kept.load(Ordering::SeqCst),
        began.elapsed().as_secs_f64(),
        outputs * OF_OUTPUTS.len()
    ));
}

/// The fields of the document that a command prints, and of the rows in it.
fn document(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Value> {
    if !it.prints("json") || has_no_result(row) || it.path == "schema" {
        return None;
    }
    let done = ran(run_to_its_end(&mut fixture.shell.command(with(fixture.words(row), &["--json"]))));
    fixture.changed();
    let document: Value = serde_json::from_str(&done.stdout).ok()?;
    let fields = document.as_object()?.iter().map(|(name, value)| {
        let rows = value.as_array().into_iter().flatten().filter_map(Value::as_object);
        let inner: BTreeSet<&String> = rows.flat_map(|row| row.keys()).collect();
        // What is wrong with a machine is told in fields of its own.
        let shown = if inner.is_empty() || it.path == "doctor" { json!(kind_of(value)) } else { json!(inner) };
        (name.clone(), shown)
    });
    Some(fields.collect::<serde_json::Map<_, _>>().into())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Compares with a file of the reference, or writes it anew with `PIXIR_REFERENCE=write`. A name that changes is a difference
/// that somebody has to look at.
fn is_in_the_reference(file: &str, said: &str) {
    if std::env::var_os("PIXIR_REFERENCE").is_some() {
        fs::write(reference_file(file), said).expect("write");
    }
    assert!(reference(file) == said, "docs/reference/{file} is out of date; PIXIR_REFERENCE=write writes it anew");
}

fn reference_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(file)
}

fn reference(file: &str) -> String {
    fs::read_to_string(reference_file(file)).unwrap_or_default()
}

/// Broken build: a flag or a command is renamed, and nobody sees it.
#[test]
fn the_help_of_every_command_is_in_the_reference() {
    let shell = Shell::new(&[]);
    let mut all = String::new();
    for it in definitions(&shell.run(["schema"]).document()) {
        let words = it.path.split_whitespace().chain(["--help"]);
        let help = shell.run(words).stdout;
        all.push_str(&format!("=== pixir {}\n\n{}\n\n", it.path, help.trim_end()));
    }
    is_in_the_reference("help.txt", &all);
}

/// Broken build: a group without arguments, or with a command that is none, ends with success or without a suggestion.
#[test]
fn every_group_of_commands_names_its_commands() {
    let shell = Shell::new(&[]);
    for group in definitions(&shell.run(["schema"]).document()).iter().filter(|it| it.is_group()) {
        let inner: Vec<&str> =
            group.it["commands"].as_array().expect("commands").iter().filter_map(|it| it["name"].as_str()).collect();
        let help = shell.run([&group.path, "--help"]);
        assert!(help.code == 0 && help.stdout.contains("Examples:"), "{help:?}");
        assert_eq!(shell.run([&group.path]).code, 2, "{}", group.path);
        let bare = shell.run([&group.path, "--json"]);
        assert_eq!(bare.code, 2, "{}: {bare:?}", group.path);
        let bare = envelope(&bare, "").unwrap_or_else(|e| panic!("{}: {e}", group.path));
        for name in &inner {
            assert!(help.stdout.contains(name), "{name}: {}", help.stdout);
            assert!(bare["remediation"].as_str().is_some_and(|it| it.contains(name)), "{bare}");
        }
        let wrong = swapped(inner[0]);
        let ran = shell.run([&group.path, &wrong, "--json"]);
        let error = envelope(&ran, &wrong).unwrap_or_else(|e| panic!("{} {wrong}: {e}", group.path));
        assert!(error["remediation"].as_str().is_some_and(|it| it.contains(inner[0])), "{error}");
    }
}

/// Broken build: `--version` and `--help` print text where a document was asked for.
#[test]
fn help_and_version_are_documents_where_json_is_asked_for() {
    let shell = Shell::new(&[]);
    let version = shell.run(["--version", "--json"]).document();
    assert_eq!(version, json!({ "ok": true, "schemaVersion": 1, "version": env!("CARGO_PKG_VERSION") }));
    let long = shell.run(["sessions", "list", "--help", "--json"]).document();
    assert_eq!(long, shell.run(["help", "sessions", "list", "--json"]).document());
    assert_eq!((&long["name"], &long["mutates"], &long["formats"][3]), (&json!("list"), &json!(false), &json!("tsv")));
    assert!(long["run_options"].as_array().is_some_and(|it| it.contains(&json!("--workspace"))), "{long}");
}
