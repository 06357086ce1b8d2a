//! A call of each command that works, and the folders and sessions that these calls use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::shell::Shell;
use crate::stories::sessions::session;
use crate::stories::undo::tree_of;

/// A command that works: its path, its arguments, and its exit code. A word in capitals stands for something of the
/// [`Fixture`]; the name that the command looks up follows `@`.
pub(super) struct Row(pub(super) &'static str, pub(super) &'static str, pub(super) i32);

/// Every command has a row. A new one without a row fails the test.
pub(super) static ROWS: &[Row] = &[
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
    Row("mcp list", "", 0),
    Row("mcp show", "@scripted", 0),
    Row("mcp add", "other https://127.0.0.1:9/mcp --no-start", 0),
    Row("mcp remove", "@scripted", 0),
    Row("mcp test", "@scripted", 0),
    Row("mcp call", "scripted.look", 0),
    Row("mcp trust", "@theirs", 0),
    Row("mcp accept", "@scripted", 0),
    Row("mcp login", "@scripted", 2),
    Row("mcp logout", "@scripted", 0),
    Row("mcp secret", "scripted TOKEN --remove", 0),
    Row("mcp serve", "", 0),
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

/// What the same commands print otherwise. Each of these outputs can be lost too.
pub(super) static OTHER_OUTPUTS: &[Row] = &[
    Row("", "--help", 0),
    Row("", "--version", 0),
    Row("acp", "--help", 0),
    Row("sessions list", "--help", 0),
    Row("sessions delete", "@ID --dry-run --json", 0),
    Row("sessions move", "@ID --workspace ELSEWHERE --dry-run --json", 0),
    Row("sessions export", "@ID --to html", 0),
    Row("sessions export", "@ID --to json", 0),
    Row("sessions export", "@ID --output NEW --json", 0),
    Row("sessions import", "@EXPORTED --dry-run --json", 0),
    Row("sessions verify", "--all --json", 0),
    Row("fork", "@ID --at 1 --dry-run", 0),
    Row("compact", "@LONG --dry-run", 0),
    Row("undo", "@ID --dry-run --json", 0),
    Row("redo", "@UNDONE --dry-run --json", 0),
    Row("inspect", "@ID --ledger", 0),
    Row("inspect", "@ID --ledger --json", 0),
    Row("init", "--dry-run", 0),
    Row("init", "--dry-run --json", 0),
    Row("replay", "@ID --cast -", 0),
    Row("gc", "--dry-run", 0),
    Row("gc", "--dry-run --json", 0),
    Row("permissions add", "bash(make) --dry-run --json", 0),
    Row("trust", "--list --json", 0),
    Row("trust", "--list --format tsv", 0),
    Row("config set", "@effort high --dry-run --json", 0),
    Row("run", "--raw help", 0),
    Row("models list", "--json", 0),
    Row("tui", "--script KEYS --screen json", 0),
    Row("schema", "--events", 0),
    Row("schema", "commands.resume", 0),
    Row("completions", "nushell", 0),
    Row("man", "", 0),
];

/// Commands whose good call prints nothing here.
pub(super) const SILENT: [&str; 5] = ["acp", "mcp serve", "mcp login", "auth login", "models list"];

/// What the rows refer to. A run that changed a file is taken back before the next one.
pub(in crate::stories) struct Fixture {
    pub(in crate::stories) shell: Shell,
    pub(in crate::stories) names: BTreeMap<&'static str, String>,
    pub(super) folders: BTreeSet<PathBuf>,
    pub(super) whole: BTreeMap<String, (Vec<u8>, u32)>,
}

impl Fixture {
    pub(in crate::stories) fn new() -> Fixture {
        let theirs = r#"{ "mcpServers": { "theirs": { "command": "true" } } }"#;
        let skill = "---\nname: review\ndescription: Reads a diff\n---\nLook.\n";
        let shell =
            Shell::new(&[("a.txt", "alpha\n"), (".claude/skills/review/SKILL.md", skill), (".mcp.json", theirs)]);
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
        let server = shell.aside("mcp_server.py", include_str!("../../mcp_server.py")).display().to_string();
        shell.configure(&format!("[mcp.scripted]\ncommand = \"/usr/bin/python3\"\nargs = {}\n", json!([server])));
        assert_eq!(shell.run(["mcp", "test", "scripted"]).code, 0);
        assert_eq!(crate::stories::mcp::approved(&shell, "trust", "theirs").code, 0);
        let elsewhere = root(&shell).join("elsewhere");
        fs::create_dir(&elsewhere).expect("mkdir");
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
            ("NEW", root(&shell).join("app/export.md").display().to_string()),
        ];
        let mut it = Fixture { shell, names: names.into(), folders: BTreeSet::new(), whole: BTreeMap::new() };
        it.keep();
        it
    }

    /// What is there now is what every run begins with.
    pub(in crate::stories) fn keep(&mut self) {
        let root = root(&self.shell);
        self.whole = tree_of(&root);
        let files = self.whole.keys().map(|name| root.join(name));
        self.folders =
            files.flat_map(|file| file.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>()).collect();
        self.folders.insert(root.join("elsewhere"));
    }

    pub(super) fn word(&self, word: &str) -> String {
        let word = word.trim_start_matches('@');
        let (before, name) = word.split_once(':').map_or(("", word), |(before, name)| (before, name));
        match self.names.get(name) {
            Some(value) if before.is_empty() => value.clone(),
            Some(value) => format!("{before}:{value}"),
            None => word.to_owned(),
        }
    }

    pub(super) fn words(&self, Row(path, args, _): &Row) -> Vec<String> {
        path.split_whitespace().chain(args.split_whitespace()).map(|word| self.word(word)).collect()
    }

    /// The words with another name in the place of the one that the command looks up.
    pub(super) fn words_with(&self, Row(path, args, _): &Row, name: &str) -> Vec<String> {
        let word = |word: &str| if word.starts_with('@') { name.to_owned() } else { self.word(word) };
        path.split_whitespace().chain(args.split_whitespace()).map(word).collect()
    }

    /// What a run has changed, without the log of the program itself. Afterwards all is as before.
    pub(in crate::stories) fn changed(&self) -> Vec<String> {
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
    pub(super) fn prune(&self, folder: &Path) {
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
pub(super) fn root(shell: &Shell) -> PathBuf {
    shell.home().parent().expect("a folder").to_owned()
}
