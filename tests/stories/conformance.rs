//! Every command of the program, from the parser's own definitions, under every condition that a script can put it in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};

use super::sessions::session;
use super::undo::tree_of;
use crate::shell::{Ran, Shell, closing, figures, ran, run_to_its_end, skip};

/// A command that works: its path, its arguments, and its exit code. A word in capitals stands for something of the
/// [`Fixture`]; the name that the command looks up follows `@`.
struct Row(&'static str, &'static str, i32);

/// Every command has a row. A new one without a row fails the test.
const ROWS: &[Row] = &[
    Row("", "-p hello --provider script:SCRIPT", 0),
    Row("demo", "--headless", 0),
    Row("resume", "@ID go --headless --provider script:SCRIPT", 0),
    Row("status", "", 0),
    Row("sessions list", "", 0),
    Row("sessions show", "@ID", 0),
    Row("sessions rename", "@ID name", 0),
    Row("sessions delete", "@ID --yes", 0),
    Row("sessions move", "@ID --workspace ELSEWHERE", 0),
    Row("sessions export", "@ID", 0),
    Row("sessions import", "@EXPORTED --workspace ELSEWHERE", 0),
    Row("sessions verify", "@ID", 0),
    Row("sessions repair", "@ID", 0),
    Row("agents list", "", 0),
    Row("agents show", "@reviewer", 0),
    Row("agents validate", "@reviewer", 0),
    Row("agents tree", "@ID", 0),
    Row("agents stop", "@ID", 0),
    Row("agents adopt", "@ID", 3),
    Row("workflow list", "", 0),
    Row("workflow show", "@fix-and-verify", 0),
    Row("workflow validate", "@fix-and-verify", 0),
    Row("workflow run", "@FLOW --write", 0),
    Row("workflow resume", "@RUN --write", 0),
    Row("workflow runs", "", 0),
    Row("workflow stop", "@RUN", 0),
    Row("tree", "@ID", 0),
    Row("fork", "@ID --at 1", 0),
    Row("compact", "@LONG --config compaction.summary=pixir --provider script:SCRIPT", 0),
    Row("undo", "@ID", 0),
    Row("redo", "@UNDONE", 0),
    Row("inspect", "@ID", 0),
    Row("init", "", 0),
    Row("replay", "@ID", 0),
    Row("diagnose", "@ID", 0),
    Row("gc", "--yes", 0),
    Row("run", "help", 0),
    Row("tools list", "", 0),
    Row("tools show", "@read", 0),
    Row("tools run", "@find {\"pattern\":\"*\"}", 0),
    Row("permissions list", "", 0),
    Row("permissions why", "ls", 0),
    Row("permissions add", "bash(true)", 0),
    Row("permissions revoke", "@RULE", 0),
    Row("skills list", "", 0),
    Row("skills show", "@review", 0),
    Row("skills validate", "@review", 0),
    Row("trust", "", 0),
    Row("config show", "", 0),
    Row("config get", "@mode", 0),
    Row("config set", "@effort high", 0),
    Row("config path", "", 0),
    Row("models list", "", 0),
    Row("tui", "--script KEYS", 0),
    Row("themes list", "", 0),
    Row("themes preview", "@dark", 0),
    Row("themes check", "@dark", 0),
    Row("auth login", "@anthropic --offline", 2),
    Row("auth status", "", 4),
    Row("auth logout", "@openai", 0),
    Row("schema", "@exit_codes", 0),
    Row("acp", "", 0),
    Row("agent", "", 0),
    Row("completions", "bash", 0),
    Row("man", "@doctor", 0),
    Row("doctor", "", 0),
];

/// Commands whose good call prints nothing here.
const SILENT: [&str; 3] = ["acp", "auth login", "models list"];

/// What the rows refer to. A run that changed a file is taken back before the next one.
struct Fixture {
    shell: Shell,
    names: BTreeMap<&'static str, String>,
    folders: BTreeSet<PathBuf>,
    whole: BTreeMap<String, (Vec<u8>, u32)>,
}

impl Fixture {
    fn new() -> Fixture {
        let skill = "---\nname: review\ndescription: Reads a diff\n---\nLook.\n";
        let shell = Shell::new(&[("a.txt", "alpha\n"), (".claude/skills/review/SKILL.md", skill)]);
        let id = session(&shell);
        let write = json!({ "name": "write", "args": { "path": "b.txt", "content": "beta" } });
        let steps = json!({ "steps": [{ "calls": [write] }, { "text": "Written." }] }).to_string();
        let provider = format!("script:{}", shell.aside("write.json", &steps).display());
        let undone = shell.run(["-p", "--json", "--write", "--provider", &provider, "go"]).document();
        let undone = undone["session_id"].as_str().expect("an id").to_owned();
        assert_eq!(shell.run(["undo", &undone]).code, 0);
        let steps = json!({ "steps": [{ "text": "word ".repeat(12_000) }] }).to_string();
        let provider = format!("script:{}", shell.aside("long.json", &steps).display());
        let long = shell.run(["-p", "--json", "--provider", &provider, "go"]).document()["session_id"].clone();
        let long = long.as_str().expect("an id").to_owned();
        assert_eq!(shell.run(["resume", &long, "go on", "-p", "--provider", &provider]).code, 0);
        let flow =
            "version = 1\nname = \"flow\"\n[[steps]]\nid = \"one\"\nargv = [\"printf\", \"made\"]\nidempotent = true\n";
        let flow = flow.replacen("[[", "output = \"{{steps.one.output}}\"\n[[", 1);
        let flow = shell.aside("flow.toml", &flow).display().to_string();
        let ran = shell.run(["workflow", "run", &flow, "--write", "--json"]);
        let run = ran.document()["session_id"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned();
        let rule = shell.run(["permissions", "add", "bash(make)", "--json"]).document();
        let rule = rule["rule"]["id"].as_str().unwrap_or_else(|| panic!("{rule}")).to_owned();
        let exported = shell.run(["sessions", "export", &id, "--to", "json"]).stdout;
        let exported = shell.aside("exported.json", &exported).display().to_string();
        let script = shell.aside("greeting.json", r#"{ "steps": [ { "text": "Hello." } ] }"#).display().to_string();
        let keys = shell.aside("keys.txt", "idle\nframe start\n").display().to_string();
        let elsewhere = root(&shell).join("elsewhere");
        fs::create_dir(&elsewhere).expect("mkdir");
        let elsewhere_folder = elsewhere.clone();
        let elsewhere = elsewhere.display().to_string();
        // The index of the Sessions is there, as after any other command.
        shell.run(["sessions", "list", "--all"]);
        // Another user may read all of it.
        let opened = Command::new("chmod").args(["-R", "a+rX"]).arg(root(&shell)).status();
        assert!(opened.expect("chmod runs").success());
        let names = [
            ("ID", id),
            ("UNDONE", undone),
            ("LONG", long),
            ("FLOW", flow),
            ("RUN", run),
            ("RULE", rule),
            ("EXPORTED", exported),
            ("SCRIPT", script),
            ("KEYS", keys),
            ("ELSEWHERE", elsewhere),
        ];
        let whole = tree_of(&root(&shell));
        let files = whole.keys().map(|name| root(&shell).join(name));
        let mut folders: BTreeSet<PathBuf> =
            files.flat_map(|file| file.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>()).collect();
        folders.insert(elsewhere_folder);
        Fixture { shell, names: names.into(), folders, whole }
    }

    fn word(&self, word: &str) -> String {
        let word = word.trim_start_matches('@');
        let (before, name) = word.split_once(':').map_or(("", word), |(before, name)| (before, name));
        match self.names.get(name) {
            Some(value) if before.is_empty() => value.clone(),
            Some(value) => format!("{before}:{value}"),
            None => word.to_owned(),
        }
    }

    fn words(&self, Row(path, args, _): &Row) -> Vec<String> {
        path.split_whitespace().chain(args.split_whitespace()).map(|word| self.word(word)).collect()
    }

    /// The words with another name in the place of the one that the command looks up.
    fn words_with(&self, Row(path, args, _): &Row, name: &str) -> Vec<String> {
        let word = |word: &str| if word.starts_with('@') { name.to_owned() } else { self.word(word) };
        path.split_whitespace().chain(args.split_whitespace()).map(word).collect()
    }

    /// What a run has changed, without the log of the program itself. Afterwards all is as before.
    fn changed(&self) -> Vec<String> {
        let now = tree_of(&root(&self.shell));
        let names: BTreeSet<&String> = now.keys().chain(self.whole.keys()).collect();
        let changed: Vec<String> =
            names.into_iter().filter(|name| now.get(*name) != self.whole.get(*name)).cloned().collect();
        for name in &changed {
            let path = root(&self.shell).join(name);
            match self.whole.get(name) {
                None => fs::remove_file(&path).expect("remove"),
                Some((bytes, mode)) => {
                    fs::create_dir_all(path.parent().expect("a folder")).expect("mkdir");
                    fs::write(&path, bytes).expect("write");
                    fs::set_permissions(&path, Permissions::from_mode(*mode)).expect("chmod");
                }
            }
        }
        self.prune(&root(&self.shell));
        changed.into_iter().filter(|name| !name.starts_with("home/log/")).collect()
    }

    /// Removes folders that are empty and were not there.
    fn prune(&self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                self.prune(&entry.path());
            }
        }
        if !self.folders.contains(folder) {
            // One that still holds something stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The folder that holds the home and the workspace.
fn root(shell: &Shell) -> PathBuf {
    shell.home().parent().expect("a folder").to_owned()
}

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
        let shared = ["--format", "--json", "--error-format", "--help"].map(str::to_owned);
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

/// One condition for one command: nothing where it does not apply, else what is wrong.
type Check = fn(&Fixture, &Definition, &Row) -> Option<Result<(), String>>;

const CONDITIONS: &[(&str, Check)] = &[
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
    ("a full disk behind stdout", full_disk),
    ("a closed stdout", closed_stdout),
    ("a reader that has enough", closed_reader),
    ("a closed stderr", closed_stderr),
    ("a closed stdin", closed_stdin),
    ("folders that cannot be written", read_only),
    ("no HOME", no_home),
    ("LANG=C", plain_locale),
    ("colours that are forced, and NO_COLOR", no_colour),
    ("no network", no_network),
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

fn with(mut words: Vec<String>, more: &[&str]) -> Vec<String> {
    words.extend(more.iter().map(|it| (*it).to_owned()));
    words
}

/// The envelope of a failed command, which has all its fields and echoes what was wrong.
fn envelope(done: &Ran, echoes: &str) -> Result<Value, String> {
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
fn swapped(word: &str) -> String {
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
fn has_no_result(row: &Row) -> bool {
    row.2 == 2 || row.2 == 3
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

fn as_tsv(fixture: &Fixture, it: &Definition, row: &Row) -> Option<Result<(), String>> {
    let words = with(fixture.words(row), &["--format", "tsv"]);
    let check = || {
        if it.path.is_empty() || !it.prints("tsv") {
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
    if !it.prints("tsv") || it.path == "trust" {
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
fn ways(it: &Definition, row: &Row) -> Vec<Vec<&'static str>> {
    if SILENT.contains(&row.0) || has_no_result(row) {
        return Vec::new();
    }
    let ways = [("plain", vec![]), ("json", vec!["--json"]), ("tsv", vec!["--format", "tsv"])];
    let prints = |name: &str| it.prints(name) && !(name == "tsv" && it.path.is_empty());
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

/// Broken builds: a command without examples; one that accepts a flag and ignores it; a hidden flag; a value or a name that is
/// refused without what would fit; a preview that writes; a reading command that writes; pretty JSON where lines were asked
/// for; a table without a header; a list that is cut in silence; a result that is lost without an error; state in a shared
/// folder; colours in a pipe; a command that needs the network to print what is on this machine.
#[test]
fn every_command_keeps_the_contract_under_every_condition() {
    let began = Instant::now();
    let all = definitions(&Shell::new(&[]).run(["schema"]).document());
    let leaves: Vec<&Definition> = all.iter().filter(|it| !it.is_group()).collect();
    let missing: Vec<&str> =
        leaves.iter().map(|it| it.path.as_str()).filter(|path| !ROWS.iter().any(|row| row.0 == *path)).collect();
    assert!(missing.is_empty() && leaves.len() == ROWS.len(), "commands without a row: {missing:?}");
    let (next, kept) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let documents = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let fixture = Fixture::new();
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    let Some(it) = leaves.get(at) else { return };
                    let row = ROWS.iter().find(|row| row.0 == it.path).expect("it has a row");
                    if let Some(fields) = document(&fixture, it, row) {
                        documents
                            .lock()
                            .expect("no panic")
                            .insert(format!("pixir {}", it.path).trim().to_owned(), fields);
                    }
                    for (name, check) in CONDITIONS {
                        match check(&fixture, it, row) {
                            None => {}
                            Some(Ok(())) => drop(kept.fetch_add(1, Ordering::SeqCst)),
                            Some(Err(why)) => {
                                let why: String = why.chars().take(600).collect();
                                failed.lock().expect("no panic").push(format!("{} · {name}: {why}", it.path));
                            }
                        }
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    let documents = json!({ "about": "the fields of the document of each command, and of the rows in it", "documents": documents.into_inner().expect("no panic") });
    is_in_the_reference("documents.json", &format!("{documents:#}\n"));
    figures(&format!(
        "conformance: {} commands under {} conditions, {} kept, in {:.1} s",
        leaves.len(),
        CONDITIONS.len(),
        kept.load(Ordering::SeqCst),
        began.elapsed().as_secs_f64()
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference").join(file);
    if std::env::var_os("PIXIR_REFERENCE").is_some() {
        fs::write(&path, said).expect("write");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == said, "docs/reference/{file} is out of date; PIXIR_REFERENCE=write writes it anew");
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
