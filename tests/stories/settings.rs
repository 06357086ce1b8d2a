//! Settings: files, environment and flags; which value holds, where it comes from, and how one is set.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use crate::shell::{Ran, Shell, ran};

/// The value of a setting and its source.
fn setting(shell: &Shell, key: &str, flags: &[&str], variables: &[(&str, &str)]) -> (Value, String) {
    let mut command = shell.command(["config", "get", key, "--json"].iter().chain(flags));
    let document = ran(command.envs(variables.iter().copied()).output().expect("it runs")).document();
    (document["value"].clone(), document["source"].as_str().expect("a source").to_owned())
}

fn of(value: impl Into<Value>, source: &str) -> (Value, String) {
    (value.into(), source.to_owned())
}

#[test]
fn of_two_sources_the_stronger_one_holds() {
    let shell = Shell::new(&[]);
    let effort = |flags: &[&str], variables: &[(&str, &str)]| setting(&shell, "effort", flags, variables);
    assert_eq!(effort(&[], &[]), of(Value::Null, "default"));
    shell.configure("effort = \"minimal\"\n");
    assert_eq!(effort(&[], &[]), of("minimal", "user"));
    shell.write(".pixir/config.toml", "effort = \"low\"\n");
    assert_eq!(effort(&[], &[]), of("minimal", "user"));
    assert_eq!(shell.run(["trust"]).code, 0);
    assert_eq!(effort(&[], &[]), of("low", "project"));
    let variables = [("PIXIR_EFFORT", "medium")];
    assert_eq!(effort(&[], &variables), of("medium", "environment"));
    let flag = ["--config", "effort=high"];
    assert_eq!(effort(&flag, &variables), of("high", "flag"));
    assert_eq!(effort(&[&flag[..], &["--effort", "max"]].concat(), &variables), of("max", "flag"));
}

/// Broken build: a merge in which the later layer always wins.
#[test]
fn a_project_makes_mode_and_limits_stricter_and_never_wider() {
    let shell = Shell::new(&[(".pixir/config.toml", "mode = \"ask\"\n[limits]\nmax_rounds = 9\nmax_cost = 2.0\n")]);
    shell.configure("mode = \"read-only\"\n[limits]\nmax_rounds = 4\nmax_cost = 5.0\n");
    assert_eq!(shell.run(["trust"]).code, 0);
    assert_eq!(setting(&shell, "mode", &[], &[]), of("read-only", "user"));
    assert_eq!(setting(&shell, "limits.max_rounds", &[], &[]), of(4, "user"));
    assert_eq!(setting(&shell, "limits.max_cost", &[], &[]), of(2.0, "project"));
    let why = |flags: &[&str]| {
        let args = ["permissions", "why", "touch a", "--json"];
        shell.run(args.iter().chain(flags)).document()["mode"].as_str().expect("a mode").to_owned()
    };
    assert_eq!(why(&[]), "read-only");
    shell.configure("mode = \"auto\"\n");
    assert_eq!(why(&[]), "ask", "the project's is stricter");
    assert_eq!(why(&["--config", "mode=auto"]), "auto", "the user says so for this run");
    assert_eq!(why(&["--mode", "auto"]), "auto");
}

#[test]
fn without_a_mode_of_the_user_a_project_cannot_widen_a_headless_run() {
    let steps = r#"{ "steps": [ { "calls": [ { "name": "bash", "args": { "command": "touch made" } } ] }, { "text": "Done." } ] }"#;
    let shell = Shell::new(&[(".pixir/config.toml", "mode = \"ask\"\n")]);
    let provider = format!("script:{}", shell.aside("steps.json", steps).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--trust-workspace", "go"]);
    assert!(ran.stdout.contains("MUTATION_BLOCKED") || ran.stdout.contains("read-only"), "{}", ran.stdout);
    assert!(!shell.workspace().join("made").exists());
}

#[test]
fn the_list_says_where_each_value_comes_from_and_what_was_not_read() {
    let shell = Shell::new(&[(".pixir/config.toml", "theme = \"light\"\n")]);
    shell.configure("theme = \"dark\"\n[providers.own]\ndialect = \"chat\"\nheaders = { x-team = \"crimson\" }\n");
    let shown = shell.run(["config", "show", "--json", "--max-rounds", "7"]).document();
    let find = |key: &str| {
        let all = shown["settings"].as_array().expect("settings").clone();
        all.into_iter().find(|it| it["key"] == key).unwrap_or_else(|| panic!("no {key}: {shown}"))
    };
    assert_eq!((&find("theme")["value"], &find("theme")["source"]), (&json!("dark"), &json!("user")));
    assert_eq!(find("limits.max_rounds")["from"], "--max-rounds");
    assert_eq!(find("screen.vim")["source"], "default");
    assert_eq!(find("providers.own.headers.x-team")["value"], "(hidden)");
    let state = |shown: &Value| shown["files"][1]["state"].as_str().expect("a state").to_owned();
    assert_eq!(state(&shown), "not read: the workspace is not trusted");
    let plain = shell.run(["config", "show"]).stdout;
    assert!(plain.contains("not read: the workspace is not trusted") && !plain.contains("crimson"), "{plain}");
    assert_eq!(shell.run(["trust"]).code, 0);
    let path = shell.run(["config", "path", "--json"]).document();
    assert_eq!(state(&path), "read");
    shell.write(".pixir/config.toml", "theme = \"mono\"\n");
    let path = shell.run(["config", "path", "--json"]).document();
    assert_eq!(state(&path), "not read: it changed since you were asked about it");
    let unknown = shell.run(["config", "get", "limits.max_round", "--json"]);
    assert_eq!((unknown.code, unknown.error()["remediation"].as_str()), (5, Some("did you mean limits.max_rounds?")));
}

/// Broken build: `edit::set` that writes the table back with a serializer.
#[test]
fn a_setting_is_set_in_the_users_file_and_its_comments_stay() {
    let shell = Shell::new(&[]);
    let set = |args: &[&str]| -> Ran { shell.run(["config", "set"].iter().chain(args)) };
    let file = shell.home().parent().expect("a parent").join(".config/pixir/config.toml");
    assert_eq!(set(&["effort", "high"]).code, 0);
    assert_eq!(fs::read_to_string(&file).expect("made"), "effort = \"high\"\n");
    // The file is kept elsewhere, as people do with their settings.
    let kept = shell.aside("kept.toml", "# mine\neffort = \"high\" # enough\n\n[screen]\nvim = true\n");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).expect("chmod");
    fs::remove_file(&file).expect("rm");
    symlink(&kept, &file).expect("link");
    assert_eq!(set(&["effort", "low", "--dry-run"]).code, 0);
    assert!(fs::read_to_string(&kept).expect("there").contains("high"));
    assert_eq!(set(&["effort", "low"]).code, 0);
    assert_eq!(set(&["screen.mouse", "false"]).code, 0);
    let now = fs::read_to_string(&kept).expect("there");
    assert_eq!(now, "# mine\neffort = \"low\" # enough\n\n[screen]\nvim = true\nmouse = false\n");
    assert!(fs::symlink_metadata(&file).expect("there").is_symlink());
    assert_eq!(fs::metadata(&kept).expect("there").permissions().mode() & 0o777, 0o640);
    for (args, fix) in [
        (["effrt", "low"], "did you mean effort?"),
        (["effort", "enormous"], "effort"),
        (["limits.max_rounds", "0"], "above 0"),
    ] {
        let refused = set(&args);
        assert_eq!(refused.code, 10, "{refused:?}");
        assert!(refused.stderr.contains(fix), "{}", refused.stderr);
    }
    assert_eq!(fs::read_to_string(&kept).expect("there"), now);
}

#[test]
fn limits_of_a_file_end_a_turn_and_a_flag_is_stronger() {
    let call = json!({ "calls": [ { "name": "ls", "args": {} } ] });
    let steps = json!({ "steps": [call, call, { "text": "Done." }] }).to_string();
    let shell = Shell::new(&[]);
    shell.configure("[limits]\nmax_rounds = 1\n");
    let provider = format!("script:{}", shell.aside("steps.json", &steps).display());
    let turn = |flags: &[&str]| shell.run(["--provider", &provider, "--headless", "go"].iter().chain(flags)).code;
    assert_eq!(turn(&[]), 14);
    assert_eq!(turn(&["--max-rounds", "5"]), 0);
    assert_eq!(turn(&["--config", "limits.max_rounds=5"]), 0);
    assert_eq!(turn(&["--config", "limits.max_rounds"]), 2);
    assert_eq!(turn(&["--config", "limits.rounds=5"]), 10);
}
