//! The conditions: each runs one command and tells what is wrong.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::rows::{Fixture, OTHER_OUTPUTS, Row, SILENT};
use super::{Definition, definitions, strings};
use crate::shell::{Ran, Shell, closing, ran, run_to_its_end, skip};

/// One condition for one command: nothing where it does not apply, else what is wrong.
type Check = fn(&Fixture, &Definition, &Row) -> Option<Result<(), String>>;

pub(super) const CONDITIONS: &[(&str, Check)] = &[
    ("a good call", good),
    ("the words alone after --help", help),
    ("examples", examples),
    ("a flag that is none", bad_flag),
    ("a flag with two letters swapped", swapped_flag),
    ("a run's flag that it does not heed", unheeded_flag),
    ("a value that is none", bad_value),
    ("a format that is none", bad_format),
    ("a name that is none", bad_name),
    ("a name with two letters swapped", swapped_name),
    ("a word too many", surplus_word),
    ("--dry-run", dry_run),
    ("--json", as_json),
    ("--format jsonl", as_jsonl),
    ("--format tsv", as_tsv),
    ("--limit, --cursor and --select", as_list),
    ("a closed stdin", closed_stdin),
    ("folders that cannot be written", read_only),
    ("no HOME", no_home),
    ("LANG=C", plain_locale),
    ("colours that are forced, and NO_COLOR", no_colour),
    ("no network", no_network),
];

/// Conditions of one output. A command whose result is lost says so; a reader that has enough is no error, and neither is a
/// closed stderr.
pub(super) const OF_OUTPUTS: &[(&str, Check)] = &[
    ("a full disk behind stdout", full_disk),
    ("a closed stdout", closed_stdout),
    ("a reader that has enough", closed_reader),
    ("a closed stderr", closed_stderr),
];

/// What holds for every run, whatever it was asked.
fn sane(ran: &Ran, schema_exits: &Value) -> Result<(), String> {
    if ran.stderr.contains("panicked") || ran.stderr.contains("this is a bug") {
        return Err(format!("it crashed: {}", ran.stderr));
    }
    if schema_exits.get(ran.code.to_string()).is_none() {
        return Err(format!("exit code {} is not in the schema: {}", ran.code, ran.stderr));
    }
    if ran.stdout.contains('\u{1b}') || ran.stderr.contains('\u{1b}') {
        return Err("an escape sequence without a terminal".to_owned());
    }
    Ok(())
}

fn exits() -> &'static Value {
    static EXITS: std::sync::OnceLock<Value> = std::sync::OnceLock::new();
    EXITS.get_or_init(|| Shell::new(&[]).run(["schema"]).document()["exit_codes"].clone())
}

fn ends(fixture: &Fixture, command: &mut Command, expected: i32) -> Result<Ran, String> {
    let done = ran(run_to_its_end(command));
    sane(&done, exits())?;
    if done.code != expected {
        fixture.changed();
        return Err(format!("exit {} instead of {expected}: {}{}", done.code, done.stdout, done.stderr));
    }
    Ok(done)
}

fn run(fixture: &Fixture, words: &[String], expected: i32) -> Result<Ran, String> {
    ends(fixture, &mut fixture.shell.command(words), expected)
}

pub(super) fn with(mut words: Vec<String>, more: &[&str]) -> Vec<String> {
    words.extend(more.iter().map(|it| (*it).to_owned()));
    words
}

/// The envelope of a failed command, which has all its fields and echoes what was wrong.
pub(super) fn envelope(done: &Ran, echoes: &str) -> Result<Value, String> {
    let wrong = |what: &str| Err(format!("{what}: {}", done.stderr));
    let Ok(it) = serde_json::from_str::<Value>(&done.stderr) else { return wrong("stderr is no document") };
    let fields: BTreeSet<&str> = it.as_object().into_iter().flat_map(|it| it.keys().map(String::as_str)).collect();
    let all = ["schemaVersion", "ok", "error", "code", "remediation", "exit_code"];
    if fields != BTreeSet::from(all) || it["ok"] != false || it["exit_code"] != done.code {
        return wrong("not the envelope");
    }
    if it["error"]["kind"].is_null() || strings(&it["error"]["details"]["next_actions"]).is_empty() {
        return wrong("no kind or no next action");
    }
    if !echoes.is_empty() && !it["error"]["details"]["input"].as_str().is_some_and(|it| it.contains(echoes)) {
        return wrong("what was wrong is not in `details.input`");
    }
    Ok(it)
}

/// Two letters in the middle of a word change their places.
pub(super) fn swapped(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let from = letters.len() / 2;
    let at = (from..letters.len() - 1).chain(1..from).find(|at| letters[*at] != letters[at + 1]).unwrap_or(from);
    letters.swap(at, at + 1);
    letters.into_iter().collect()
}

fn good(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let done = run(fixture, &fixture.words(row), row.2)?;
        let changed = fixture.changed();
        if it.it["mutates"] == false && !changed.is_empty() {
            return Err(format!("it has no --dry-run, and changed {changed:?}"));
        }
        if done.stdout.is_empty() && row.2 == 0 && !SILENT.contains(&row.0) {
            return Err(format!("it printed nothing: {}", done.stderr));
        }
        Ok(())
    };
    Some(check())
}

/// Flags at the starts of the lines of a help text.
fn shown_flags(help: &str) -> BTreeSet<String> {
    let lines = help.split("Examples:").next().unwrap_or_default().lines().map(str::trim_start);
    let starts = lines.filter_map(|line| line.split("  ").next()).filter(|start| start.starts_with('-'));
    let words = starts.flat_map(|start| start.split([' ', ',', '=']).filter(|word| word.starts_with("--")));
    words.map(|word| word.trim_end_matches("...").to_owned()).collect()
}

fn help(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let path: Vec<String> = row.0.split_whitespace().map(str::to_owned).collect();
        let long = run(fixture, &with(path.clone(), &["--help"]), 0)?;
        let named = run(fixture, &[vec!["help".to_owned()], path].concat(), 0)?;
        if long.stdout != named.stdout || !long.stderr.is_empty() {
            return Err("`help NAME` is another text".to_owned());
        }
        for part in ["Usage: ", "Examples:\n"] {
            if !long.stdout.contains(part) {
                return Err(format!("no {part}"));
            }
        }
        let mut expected = it.flags();
        if it.path.is_empty() {
            expected.insert("--version".to_owned());
        }
        let args = it.it["args"].as_array().into_iter().flatten();
        let aliases: Vec<String> = args.flat_map(|it| strings(&it["aliases"])).collect();
        expected.retain(|flag| !aliases.contains(flag));
        let shown = shown_flags(&long.stdout);
        if shown != expected {
            let hidden: Vec<&String> = expected.difference(&shown).collect();
            let beyond: Vec<&String> = shown.difference(&expected).collect();
            return Err(format!("flags that the help does not show: {hidden:?}, that the schema lacks: {beyond:?}"));
        }
        Ok(())
    };
    Some(check())
}

/// The examples name commands and flags that there are.
fn examples(fixture: &Fixture, it: &Definition, _: &Row) -> Option<Result<(), String>> {
    static ALL: std::sync::OnceLock<Vec<Definition>> = std::sync::OnceLock::new();
    let all = ALL.get_or_init(|| definitions(&fixture.shell.run(["schema"]).document()));
    let check = || {
        let lines = it.strings("examples");
        if lines.is_empty() {
            return Err("there are none".to_owned());
        }
        for line in lines {
            let command = line.split(" #").next().unwrap_or_default();
            let unquoted: String = command.split(['\'', '"']).step_by(2).collect::<Vec<_>>().join(" x ");
            for part in unquoted.split(['|', '>', ';']).filter(|part| part.trim().starts_with("pixir ")) {
                let words: Vec<&str> = part.split_whitespace().skip(1).take_while(|word| *word != "--").collect();
                let of = words.iter().fold("".to_owned(), |path, word| {
                    let longer = format!("{path} {word}").trim().to_owned();
                    if all.iter().any(|it| it.path == longer) { longer } else { path }
                });
                let known = all.iter().find(|it| it.path == of).expect("a command").flags();
                let flags = words.iter().filter(|word| word.starts_with("--"));
                let unknown = flags.map(|word| word.split('=').next().unwrap_or(word)).find(|it| !known.contains(*it));
                if let Some(unknown) = unknown {
                    return Err(format!("`{line}`: `pixir {of}` has no {unknown}"));
                }
            }
        }
        Ok(())
    };
    Some(check())
}

fn bad_flag(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let done = run(fixture, &with(fixture.words(row), &["--nonesuch", "--json"]), 2)?;
        if !done.stdout.is_empty() {
            return Err(format!("on stdout: {}", done.stdout));
        }
        let it = envelope(&done, "--nonesuch")?;
        let flat = run(fixture, &with(fixture.words(row), &["--nonesuch", "--json", "--error-format", "flat"]), 2)?;
        let flat: Value = serde_json::from_str(&flat.stderr).map_err(|e| format!("{e}: {}", flat.stderr))?;
        let same = json!({ "error": it["error"]["message"], "code": it["code"], "remediation": it["remediation"], "kind": it["error"]["kind"] });
        if flat != same { Err(format!("--error-format flat: {flat}")) } else { Ok(()) }
    };
    Some(check())
}

/// A flag of the command itself, or one of all commands.
fn own_flag(it: &Definition) -> String {
    let args = it.it["args"].as_array().cloned().unwrap_or_default();
    let names = args.iter().filter_map(|it| it["name"].as_str()).filter(|name| name.starts_with("--"));
    names.map(str::to_owned).find(|name| name.len() > 6).unwrap_or_else(|| "--error-format".to_owned())
}

fn swapped_flag(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let flag = own_flag(it);
    let wrong = format!("--{}", swapped(flag.trim_start_matches('-')));
    let check = || {
        let done = run(fixture, &with(fixture.words(row), &[&wrong, "--json"]), 2)?;
        let it = envelope(&done, &wrong)?;
        let fix = it["remediation"].as_str().unwrap_or_default();
        if fix.contains(&flag) { Ok(()) } else { Err(format!("{wrong}: {fix}")) }
    };
    Some(check())
}

fn unheeded_flag(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let heeded = it.flags();
    let flag = ["--output-schema", "--skill", "--max-rounds"].into_iter().find(|it| !heeded.contains(*it))?;
    let value = if flag == "--max-rounds" { "3" } else { "x" };
    let check = || {
        let done = run(fixture, &with(fixture.words(row), &[flag, value, "--json"]), 2)?;
        envelope(&done, flag).map(drop)
    };
    Some(check())
}

fn bad_value(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let args = it.it["args"].as_array().cloned().unwrap_or_default();
    let with_values = args.iter().find(|arg| {
        arg["takes_value"] == true && !strings(&arg["values"]).is_empty() && arg["name"] != "--error-format"
    })?;
    let name = with_values["name"].as_str()?.to_owned();
    let values = strings(&with_values["values"]);
    let check = || {
        let words = match name.starts_with("--") {
            true => with(fixture.words(row), &[&format!("{name}=nonesuch")]),
            false => row.0.split_whitespace().map(str::to_owned).chain(["nonesuch".to_owned()]).collect(),
        };
        let done = run(fixture, &with(words, &["--json"]), 2)?;
        let it = envelope(&done, "nonesuch")?;
        let fix = it["remediation"].as_str().unwrap_or_default();
        let names_all = values.iter().all(|value| fix.contains(value.as_str()));
        if names_all { Ok(()) } else { Err(format!("not all values are named: {fix}")) }
    };
    Some(check())
}

fn bad_format(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let done = run(fixture, &with(fixture.words(row), &["--format", "jsno"]), 2)?;
        let names = done.stderr.contains("jsno") && done.stderr.contains("did you mean json");
        if names && done.stdout.is_empty() { Ok(()) } else { Err(done.stderr) }
    };
    Some(check())
}

fn bad_name(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    if !row.1.contains('@') {
        return None;
    }
    let check = || {
        let done =
            ran(run_to_its_end(&mut fixture.shell.command(with(fixture.words_with(row, "nonesuch-xyz"), &["--json"]))));
        sane(&done, exits())?;
        let changed = fixture.changed();
        if !changed.is_empty() {
            return Err(format!("it changed {changed:?}"));
        }
        // Text has no JSON, so the flag is what is wrong.
        if done.stderr.contains("cannot print json") {
            let plain = ran(run_to_its_end(&mut fixture.shell.command(fixture.words_with(row, "nonesuch-xyz"))));
            let names = plain.code != 0 && plain.stderr.contains("nonesuch-xyz") && plain.stderr.contains("fix:");
            return if names { Ok(()) } else { Err(plain.stderr) };
        }
        if !matches!(done.code, 2 | 5 | 10) {
            return Err(format!("exit {}: {}", done.code, done.stderr));
        }
        envelope(&done, "nonesuch-xyz").map(drop)
    };
    Some(check())
}

fn swapped_name(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let name = row.1.split_whitespace().find_map(|word| word.strip_prefix('@'))?;
    // A file is looked for where it is named.
    if ["EXPORTED", "FLOW"].contains(&name) {
        return None;
    }
    let right = fixture.word(name);
    let wrong = swapped(&right);
    let check = || {
        let done = ran(run_to_its_end(&mut fixture.shell.command(fixture.words_with(row, &wrong))));
        sane(&done, exits())?;
        fixture.changed();
        let fix = done.stderr.split("fix:").nth(1).unwrap_or_default();
        let near = right.rsplit('.').next().unwrap_or(&right);
        if done.code != 0 && fix.contains(near) { Ok(()) } else { Err(format!("{wrong}: {}", done.stderr)) }
    };
    Some(check())
}

fn surplus_word(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let done =
            ran(run_to_its_end(&mut fixture.shell.command(with(fixture.words(row), &["surplus-1", "surplus-2"]))));
        sane(&done, exits())?;
        let changed = fixture.changed();
        let takes_many = matches!(it.path.as_str(), "skills validate" | "agents stop" | "man" | "permissions why");
        match done.code {
            0 if !takes_many => Err("it took two more words".to_owned()),
            _ if !changed.is_empty() => Err(format!("it changed {changed:?}")),
            _ => Ok(()),
        }
    };
    Some(check())
}

fn dry_run(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    if it.it["mutates"] != true {
        return None;
    }
    let check = || {
        let words = with(fixture.words(row), &["--dry-run"]);
        let done = run(fixture, &words, row.2);
        let changed = fixture.changed();
        // A Session of a dry run is kept, as its answer was paid for.
        let is_a_run = ["", "resume", "workflow run", "tui", "acp", "demo"].contains(&it.path.as_str());
        let wrong: Vec<&String> = changed.iter().filter(|name| !is_a_run || !name.starts_with("home/")).collect();
        done?;
        if wrong.is_empty() { Ok(()) } else { Err(format!("it changed {wrong:?}")) }
    };
    Some(check())
}

/// Whether an exit code leaves stdout without a document.
pub(super) fn has_no_result(row: &Row) -> bool {
    row.2 == 2 || row.2 == 3
}

/// A time that is not written to the millisecond. Times of other lengths cannot be sorted as text.
fn odd_time(document: &Value) -> Option<String> {
    match document {
        Value::String(text) => {
            let is_time = text.ends_with('Z')
                && text.as_bytes().get(10) == Some(&b'T')
                && text.parse::<jiff::Timestamp>().is_ok();
            (is_time && text.len() != "2026-11-25T19:13:37.952Z".len()).then(|| text.clone())
        }
        Value::Array(list) => list.iter().find_map(odd_time),
        Value::Object(fields) => fields.values().find_map(odd_time),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn as_json(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let words = with(fixture.words(row), &["--json"]);
    let check = || {
        if !it.prints("json") {
            let done = run(fixture, &words, 2)?;
            return envelope(&done, "json").map(drop);
        }
        let done = run(fixture, &words, row.2);
        fixture.changed();
        let done = done?;
        if has_no_result(row) {
            return envelope(&done, "").map(drop);
        }
        let document: Value = serde_json::from_str(&done.stdout).map_err(|e| format!("{e}: {}", done.stdout))?;
        if document["schemaVersion"] != 1 || !document.is_object() {
            return Err(format!("no schemaVersion: {document}"));
        }
        if !done.stdout.starts_with("{\n  \"") || !done.stdout.ends_with("}\n") {
            return Err("not indented by two".to_owned());
        }
        if !done.stderr.is_empty() && serde_json::from_str::<Value>(&done.stderr).is_err() {
            return Err(format!("stderr beside a document: {}", done.stderr));
        }
        if let Some(time) = odd_time(&document) {
            return Err(format!("a time without three digits of a second: {time}"));
        }
        Ok(())
    };
    Some(check())
}

fn as_jsonl(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let words = with(fixture.words(row), &["--format", "jsonl"]);
    let check = || {
        if it.path == "sessions export" || !it.prints("jsonl") {
            return run(fixture, &words, 2).map(drop);
        }
        let done = run(fixture, &words, row.2);
        fixture.changed();
        let done = done?;
        let mut lines = Vec::new();
        for line in done.stdout.lines() {
            let value: Value = serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?;
            lines.push(value);
        }
        // A list without a row has no line.
        let may_be_empty = it.prints("tsv") && ["agents tree", "models list"].contains(&it.path.as_str());
        if (lines.is_empty() && !may_be_empty) || !lines.iter().all(Value::is_object) || done.stdout.contains('\r') {
            return Err(format!("not one object a line: {}", done.stdout));
        }
        let results = lines.iter().filter(|it| it["type"] == "result").count();
        let is_a_run = lines.iter().any(|it| it["type"] == "session_started" || it["type"] == "turn_ended");
        if is_a_run && it.path != "replay" && (results != 1 || lines.last().is_none_or(|it| it["type"] != "result")) {
            return Err(format!("{results} results"));
        }
        Ok(())
    };
    Some(check())
}

/// Whether a command prints rows as it is called here: `pixir trust` does with `--list` only.
fn prints_rows(it: &Definition) -> bool {
    it.prints("tsv") && it.path != "trust"
}

fn as_tsv(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let words = with(fixture.words(row), &["--format", "tsv"]);
    let check = || {
        if !prints_rows(it) {
            return match run(fixture, &words, 2) {
                Ok(done) if done.stderr.contains("tsv") => Ok(()),
                Ok(done) => Err(done.stderr),
                Err(e) => Err(e),
            };
        }
        let done = run(fixture, &words, row.2);
        fixture.changed();
        let done = done?;
        let widths: BTreeSet<usize> = done.stdout.lines().map(|line| line.matches('\t').count()).collect();
        if widths.len() == 1 { Ok(()) } else { Err(format!("rows of {widths:?} tabs: {}", done.stdout)) }
    };
    Some(check())
}

fn as_list(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    if !prints_rows(it) {
        return None;
    }
    let check = || {
        let bare = fixture.words(row);
        let all = run(fixture, &with(bare.clone(), &["--json", "--limit", "1"]), row.2)?.document();
        let fields = ["total", "truncated", "nextCursor"];
        if let Some(missing) = fields.iter().find(|field| all.get(**field).is_none()) {
            return Err(format!("no {missing}: {all}"));
        }
        let lines = run(fixture, &with(bare.clone(), &["--format", "jsonl", "--limit", "1"]), row.2)?.lines();
        let first = lines.into_iter().next();
        let total = all["total"].as_u64().unwrap_or(0);
        if (total > 1) != (all["truncated"] == true) {
            return Err(format!("a list of {total} that is cut at 1: {all}"));
        }
        if let Some(next) = all["nextCursor"].as_str() {
            let rest = run(fixture, &with(bare.clone(), &["--json", "--cursor", next]), row.2)?.document();
            let left = rest.as_object().into_iter().flatten().filter_map(|(_, it)| Some(it.as_array()?.len() as u64));
            if !left.into_iter().any(|left| left == (total - 1).min(50)) {
                return Err(format!("behind {next}: {rest}"));
            }
            let plain = run(fixture, &with(bare.clone(), &["--limit", "1"]), row.2)?;
            if !plain.stderr.contains(&format!("--cursor {next}")) {
                return Err(format!("a list that is cut does not say so: {}", plain.stderr));
            }
        }
        let fields = first.iter().filter_map(Value::as_object).flat_map(|it| it.keys().cloned());
        if let Some(field) = fields.into_iter().find(|field| field != "schemaVersion") {
            let some = run(fixture, &with(bare.clone(), &["--format", "tsv", "--select", &field]), row.2)?;
            if some.stdout.lines().next() != Some(field.as_str()) {
                return Err(format!("--select {field}: {}", some.stdout));
            }
            let wrong = run(fixture, &with(bare.clone(), &["--json", "--select", "nonesuch"]), 2)?;
            envelope(&wrong, "nonesuch")?;
        }
        let wrong = run(fixture, &with(bare, &["--json", "--cursor", "nonesuch"]), 5)?;
        envelope(&wrong, "nonesuch").map(drop)
    };
    Some(check())
}

/// The formats in which a result can be lost.
pub(super) fn ways(it: &Definition, row: &Row) -> Vec<Vec<&'static str>> {
    if OTHER_OUTPUTS.iter().any(|other| std::ptr::eq(other, row)) {
        return vec![Vec::new()];
    }
    if SILENT.contains(&row.0) || has_no_result(row) {
        return Vec::new();
    }
    let ways = [
        ("plain", vec![]),
        ("json", vec!["--json"]),
        ("jsonl", vec!["--format", "jsonl"]),
        ("tsv", vec!["--format", "tsv"]),
    ];
    // A list without a row has no line.
    let is_empty = |name: &str| name == "jsonl" && ["agents tree", "sessions export"].contains(&row.0);
    let prints = |name: &str| it.prints(name) && (name != "tsv" || prints_rows(it)) && !is_empty(name);
    ways.into_iter().filter(|(name, _)| prints(name)).map(|(_, flags)| flags).collect()
}

fn lost(
    fixture: &Fixture,
    it: &Definition,
    row: &Row,
    run: impl Fn(Command) -> Result<(), String>,
) -> Option<Result<(), String>> {
    let ways = ways(it, row);
    if ways.is_empty() {
        return None;
    }
    let each = ways.into_iter().map(|flags| {
        let outcome = run(fixture.shell.command(with(fixture.words(row), &flags)));
        fixture.changed();
        outcome.map_err(|e| format!("{flags:?} {e}"))
    });
    Some(each.collect())
}

fn must_report(done: &Ran) -> Result<(), String> {
    sane(done, exits())?;
    let says = done.code != 0 && done.stderr.contains("WRITE_FAILED");
    if says { Ok(()) } else { Err(format!("exit {}: {}", done.code, done.stderr)) }
}

fn full_disk(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    lost(fixture, it, row, |mut command| {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("there is /dev/full");
        must_report(&ran(run_to_its_end(command.stdout(full))))
    })
}

fn closed_stdout(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    lost(fixture, it, row, |command| must_report(&ran(run_to_its_end(&mut closing(">&-", &command)))))
}

fn closed_reader(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    lost(fixture, it, row, |mut command| {
        let mut child = command.spawn().expect("it starts");
        drop(child.stdout.take());
        let done = ran(child.wait_with_output().expect("it ends"));
        let is_quiet = !done.stderr.contains("WRITE_FAILED") && !done.stderr.contains("panic");
        if is_quiet { Ok(()) } else { Err(format!("exit {}: {}", done.code, done.stderr)) }
    })
}

fn closed_stderr(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    lost(fixture, it, row, |command| {
        let done = ran(run_to_its_end(&mut closing("2>&-", &command)));
        let is_whole = done.code == row.2 && !done.stdout.is_empty();
        if is_whole { Ok(()) } else { Err(format!("exit {}: {}", done.code, done.stdout)) }
    })
}

fn closed_stdin(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let done = ends(fixture, &mut closing("<&-", &fixture.shell.command(fixture.words(row))), row.2);
    fixture.changed();
    Some(done.map(drop))
}

/// As a user who may read everything and write nothing.
fn read_only(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let plain = fixture.shell.command(with(fixture.words(row), if it.prints("json") { &["--json"] } else { &[] }));
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(fixture.shell.workspace()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if !can("setpriv", &["--reuid", "65534", "--regid", "65534", "--clear-groups", "true"]) {
        skip("this user cannot become another one");
        return None;
    }
    let mut check = || {
        let done = ran(run_to_its_end(&mut command));
        sane(&done, exits())?;
        let changed = fixture.changed();
        if !changed.is_empty() {
            return Err(format!("it changed {changed:?}"));
        }
        // A report of what is wrong is a result.
        if done.code == 0 || !it.prints("json") || serde_json::from_str::<Value>(&done.stdout).is_ok() {
            return Ok(());
        }
        let at = done.stderr.find("{\n").unwrap_or(0);
        let error: Value = serde_json::from_str(&done.stderr[at..]).map_err(|e| format!("{e}: {}", done.stderr))?;
        if error["remediation"].as_str().is_some_and(|it| !it.is_empty()) { Ok(()) } else { Err(done.stderr) }
    };
    Some(check())
}

/// State is refused with the variable to set, and is never put into a shared folder.
fn no_home(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        let mut command = fixture.shell.command(fixture.words(row));
        let done = ran(run_to_its_end(command.env_remove("HOME").env_remove("PIXIR_HOME")));
        sane(&done, exits())?;
        fixture.changed();
        if Path::new("/tmp/pixir").exists() {
            return Err("it made /tmp/pixir".to_owned());
        }
        match done.code {
            0 => Ok(()),
            10 if ["PIXIR_HOME", "PIXIR_CONFIG_HOME"]
                .iter()
                .any(|it| format!("{}{}", done.stdout, done.stderr).contains(it)) =>
            {
                Ok(())
            }
            // Names are looked up without a home where nothing of it is needed.
            code if code == row.2 => Ok(()),
            code => Err(format!("exit {code}: {}", done.stderr)),
        }
    };
    Some(check())
}

fn plain_locale(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let mut command = fixture.shell.command(fixture.words(row));
    let done = ends(fixture, command.env("LANG", "C").env("LC_ALL", "C"), row.2);
    fixture.changed();
    Some(done.map(drop))
}

fn no_colour(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    let check = || {
        for variables in
            [&[("CLICOLOR_FORCE", "1"), ("FORCE_COLOR", "1"), ("COLORTERM", "truecolor")][..], &[("NO_COLOR", "1")]]
        {
            let mut command = fixture.shell.command(fixture.words(row));
            let done = ends(fixture, command.envs(variables.iter().copied()), row.2);
            fixture.changed();
            done?;
        }
        Ok(())
    };
    Some(check())
}

fn no_network(fixture: &Fixture, _: &Definition, row: &Row) -> Option<Result<(), String>> {
    if !can("unshare", &["-n", "true"]) {
        skip("this user cannot leave the network");
        return None;
    }
    let plain = fixture.shell.command(fixture.words(row));
    let mut command = Command::new("unshare");
    command
        .arg("-n")
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(fixture.shell.workspace())
        .env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let done = ends(fixture, &mut command, row.2);
    fixture.changed();
    Some(done.map(drop))
}

fn can(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|it| it.status.success())
}
