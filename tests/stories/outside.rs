//! Reading outside the workspace with pixir's own tools: asked, allowed or refused, and never a secret.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};
use crate::shell::{Shell, entries};

/// The text of files that no tool may show.
const HIDDEN: &str = "hidden-text";
/// A pattern that finds it, and not itself.
const PATTERN: &str = "hidden.t[e]xt";

/// A workspace with a library beside it.
fn beside() -> Shell {
    let shell = Shell::new(&[("a.txt", "int needle;\n")]);
    let lib = shell.workspace().join("../lib");
    fs::create_dir_all(lib.join("sub")).expect("mkdir");
    fs::write(lib.join("mod.h"), "int needle;\n").expect("write");
    fs::write(lib.join("sub/other.h"), "int other;\n").expect("write");
    shell
}

/// Runs these calls in one Session; returns its Log.
fn session(shell: &Shell, calls: &[Value], flags: &[&str]) -> Vec<Value> {
    let script = json!({ "steps": [{ "calls": calls }, { "text": "Done." }] }).to_string();
    let provider = format!("script:{}", shell.aside("outside.json", &script).display());
    let before = shell.logs();
    let ran =
        shell.run(["--provider", &provider, "--toolset", "both", "--headless"].iter().chain(flags).chain(&["go"]));
    let log = shell.logs().into_iter().find(|it| !before.contains(it)).unwrap_or_else(|| panic!("{}", ran.stderr));
    entries(&log)
}

fn outputs(log: &[Value]) -> Vec<String> {
    let results = log.iter().filter(|it| it["type"] == "tool_result");
    results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
}

fn call(name: &str, args: &Value) -> Value {
    json!({ "name": name, "args": args })
}

/// Broken build: one that refuses it in every mode, or one that reads before it is judged.
#[test]
fn the_mode_decides_and_the_decision_is_recorded() {
    let shell = beside();
    let lib = shell.workspace().join("../lib").canonicalize().expect("there");
    let lib = lib.to_str().expect("text");
    let reads = [
        (call("read", &json!({ "path": format!("{lib}/mod.h") })), "     1\tint needle;\n"),
        (call("read", &json!({ "path": "../lib/mod.h" })), "     1\tint needle;\n"),
        (call("grep", &json!({ "pattern": "needle", "path": "../lib" })), "mod.h:1:int needle;\n"),
        (call("find", &json!({ "pattern": "*.h", "path": lib })), "sub/other.h\n"),
        (call("ls", &json!({ "path": lib })), "mod.h  12B\nsub/\n"),
        (call("run", &json!({ "command": format!("cat {lib}/mod.h | wc -l") })), "1\n"),
        (call("run", &json!({ "command": "grep -rn other ../lib" })), "sub/other.h:1:int other;\n"),
        (call("run", &json!({ "command": "cat ../lib/mod.h | write b.txt" })), ""),
    ];
    let calls: Vec<Value> = reads.iter().map(|(call, _)| call.clone()).collect();
    for (mode, verdict) in [("read-only", "deny"), ("ask", "deny"), ("auto", "allow")] {
        let log = session(&shell, &calls, &["--mode", mode]);
        for (told, (call, expected)) in outputs(&log).iter().zip(&reads) {
            match mode {
                "read-only" => {
                    assert!(told.contains("outside the workspace") || told.contains("read-only"), "{call}: {told}")
                }
                "ask" => assert!(
                    told.contains("outside the workspace; ")
                        || told.contains("outside the workspace), and no user can be asked here"),
                    "{call}: {told}"
                ),
                _ => assert!(told.contains(expected) && !told.contains("[error]"), "{call}: {told}"),
            }
            assert!(mode == "auto" || !told.contains("int "), "{mode}: {call}: {told}");
        }
        let decisions: Vec<&Value> = log.iter().filter(|it| it["type"] == "permission_decision").collect();
        assert!(decisions.len() >= reads.len(), "{mode}");
        assert!(decisions.iter().all(|it| it["data"]["verdict"] == verdict), "{mode}: {decisions:?}");
    }
    assert_eq!(shell.read("b.txt"), "int needle;\n");
    // A command that only takes a path for text is not asked about.
    let told = outputs(&session(&shell, &[call("run", &json!({ "command": "grep /usr/bin a.txt" }))], &[]));
    assert!(told[0].starts_with("[exit:1") || told[0].contains("no "), "{}", told[0]);
    // Writing there stays as it is.
    let write = call("write", &json!({ "path": "../lib/mod.h", "content": "x" }));
    let told = outputs(&session(&shell, &[write], &["--mode", "auto"]));
    assert!(told[0].contains("is outside the workspace"), "{}", told[0]);
}

/// Broken build: one whose rule covers more than its folder, or that forgets a deny in `auto`.
#[tokio::test]
async fn always_makes_a_rule_for_the_folder() {
    let read = |path: &str| calls("read", json!({ "path": path }));
    let steps = vec![read("../lib/a"), read("../lib/b"), read("../other/c"), says("Done.")];
    let mut pixir = Pixir::new(steps, &[]);
    for (name, text) in [("../lib/a", "one\n"), ("../lib/b", "two\n"), ("../other/c", "three\n")] {
        fs::create_dir_all(pixir.path(name).parent().expect("a parent")).expect("mkdir");
        fs::write(pixir.path(name), text).expect("write");
    }
    let screen = pixir.does("look<Enter>").await;
    assert!(screen.contains("outside the workspace") && screen.contains("Always…"), "{screen}");
    pixir.does("<A-a>").await;
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("other/c"), "the second file is read without a question: {screen}");
    pixir.does("<A-n>").await;
    let log = pixir.log();
    let told = outputs(&log);
    assert!(told[0].starts_with("     1\tone\n") && told[1].starts_with("     1\ttwo\n"), "{told:?}");
    assert!(told[2].contains("the user refused this call"), "{}", told[2]);
    let rules: Vec<&Value> = log
        .iter()
        .filter(|it| it["type"] == "permission_decision" && !it["data"]["rule"].is_null())
        .map(|it| &it["data"]["rule"])
        .collect();
    let lib = pixir.path("../lib").canonicalize().expect("there");
    let rule = json!({ "allow": "reads", "what": lib });
    assert_eq!(rules, [&rule, &rule]);
}

#[test]
fn rules_for_folders_are_made_and_denied_by_name() {
    let shell = beside();
    let lib = shell.workspace().join("../lib").canonicalize().expect("there");
    let read = || call("read", &json!({ "path": "../lib/mod.h" }));
    let rule = format!("read({})", lib.display());
    assert_eq!(shell.run(["permissions", "add", &rule]).code, 0);
    let told = outputs(&session(&shell, &[read()], &["--mode", "ask"]));
    assert!(told[0].starts_with("     1\tint needle;\n"), "{}", told[0]);
    let deny = format!("read({}/sub)", lib.display());
    assert_eq!(shell.run(["permissions", "add", &deny, "--deny"]).code, 0);
    let sub = call("read", &json!({ "path": "../lib/sub/other.h" }));
    let told = outputs(&session(&shell, &[read(), sub], &["--mode", "auto"]));
    assert!(told[0].starts_with("     1\tint needle;\n"), "{}", told[0]);
    assert!(told[1].contains("a deny rule of the user forbids this call"), "{}", told[1]);
    for (bad, why) in
        [("read()", "no folder"), ("read(lib)", "not an absolute path"), ("read(/a/../b)", "not an absolute")]
    {
        let ran = shell.run(["permissions", "add", bad]);
        assert!(ran.code != 0 && ran.stderr.contains(why), "{bad}: {}", ran.stderr);
    }
}

/// Broken build: `allowed` leaves the folders of the command line out.
#[test]
fn a_folder_of_the_command_line_is_read_unasked() {
    let shell = beside();
    let read = || call("read", &json!({ "path": "../lib/mod.h" }));
    let told = outputs(&session(&shell, &[read()], &["--mode", "ask", "--add-dir", "../lib"]));
    assert!(told[0].starts_with("     1\t"), "{}", told[0]);
    let told = outputs(&session(&shell, &[read()], &["--mode", "ask"]));
    assert!(told[0].contains("approval"), "for that run alone: {}", told[0]);
    let ran = shell.run(["--headless", "--provider", "demo", "--add-dir", "../missing", "go"]);
    assert!(ran.stderr.contains("there is no such folder"), "{}", ran.stderr);
}

/// Broken builds: programs do not see the folder; they can write there; a folder that holds the home's secrets is shown.
#[test]
fn programs_see_an_added_folder_and_change_nothing_there() {
    let shell = beside();
    let home = shell.workspace().join("..").canonicalize().expect("there");
    for secret in ["notes", "keys/.aws/credentials"] {
        fs::create_dir_all(home.join(secret).parent().expect("a parent")).expect("mkdir");
        fs::write(home.join(secret), format!("{HIDDEN}\n")).expect("write");
    }
    fs::write(home.join("keys/mod.h"), "int key;\n").expect("write");
    let secret = "cat ../keys/.aws/credentials; cat ../keys/mod.h";
    let command = |line: &str| call("bash", &json!({ "command": line }));
    let open = "python3 -c \"print(open('../lib/sub/other.h').read())\"";
    let verdicts = |log: &[Value]| -> Vec<String> {
        let decisions = log.iter().filter(|it| it["type"] == "permission_decision");
        decisions.map(|it| it["data"]["verdict"].as_str().expect("text").to_owned()).collect()
    };
    for tier in ["ns", "ll"] {
        let looks = [command("cat ../lib/mod.h"), command("grep -rn other ../lib | head -3"), command("cat ../notes")];
        let added = ["--mode", "read-only", "--sandbox", tier, "--add-dir", "../lib"];
        let log = session(&shell, &looks, &added);
        assert_eq!(verdicts(&log), ["allow", "allow", "deny"], "{tier}");
        let told = outputs(&log);
        assert!(told[0].contains("int needle") && told[1].contains("int other"), "{tier}: {told:?}");
        let keys = ["--mode", "read-only", "--sandbox", tier, "--add-dir", "../keys"];
        let told = outputs(&session(&shell, &[command(secret)], &keys)).remove(0);
        assert!(told.contains("int key") && !told.contains(HIDDEN), "{tier}: {told}");
        assert_eq!(verdicts(&session(&shell, &looks, &added[..4])), ["deny"; 3], "{tier}");
        // The home folder is no folder of programs, whoever adds it.
        let above = ["--mode", "read-only", "--sandbox", tier, "--add-dir", ".."];
        assert_eq!(verdicts(&session(&shell, &looks, &above)), ["deny"; 3], "{tier}");

        let works = [command(open), command("echo x > ../lib/made"), command("cat ../notes"), command(secret)];
        let both = ["--write", "--sandbox", tier, "--add-dir", "../lib", "--add-dir", "../keys"];
        let told = outputs(&session(&shell, &works, &both));
        assert!(told[0].contains("int other") && !home.join("lib/made").exists(), "{tier}: {told:?}");
        assert!(told[1].contains("the sandbox") && !told[2].contains(HIDDEN), "{tier}: {told:?}");
        assert!(told[3].contains("int key") && !told[3].contains(HIDDEN), "{tier}: {told:?}");
        let told = outputs(&session(&shell, &works[..1], &["--write", "--sandbox", tier]));
        assert!(!told[0].contains("int other"), "{tier}: {told:?}");
    }
    // A deny of a part leaves the whole folder out: the kernel has no holes for it.
    let deny = format!("read({}/sub)", home.join("lib").display());
    assert_eq!(shell.run(["permissions", "add", &deny, "--deny"]).code, 0);
    let told = outputs(&session(&shell, &[command(open)], &["--write", "--add-dir", "../lib"]));
    assert!(!told[0].contains("int other"), "{told:?}");
}

/// Broken build: one that judges the path as it is written, or one that searches what lies below a folder unseen.
#[test]
fn secrets_are_read_in_no_mode_by_no_name() {
    let shell = beside();
    let home = shell.workspace().join("..").canonicalize().expect("there");
    for secret in [".ssh/id_ed25519", ".netrc", "other/.aws/credentials"] {
        let path = home.join(secret);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(path, format!("{HIDDEN}\n")).expect("write");
    }
    fs::create_dir_all(shell.home()).expect("mkdir");
    fs::write(shell.home().join("kept.txt"), HIDDEN).expect("write");
    symlink(home.join(".ssh"), home.join("lib/keys")).expect("symlink");
    let path = |it: &str| home.join(it).display().to_string();
    let files = [
        path(".ssh/id_ed25519"),
        path(".netrc"),
        path("other/.aws/credentials"),
        path("home/kept.txt"),
        "../lib/keys/id_ed25519".to_owned(),
        "../lib/../.netrc".to_owned(),
        "/proc/self/environ".to_owned(),
        "/proc/1/environ".to_owned(),
    ];
    let mut calls: Vec<Value> = files.iter().map(|path| call("read", &json!({ "path": path }))).collect();
    calls.extend(files.iter().map(|path| call("run", &json!({ "command": format!("cat {path}") }))));
    let count = calls.len();
    for folder in [home.display().to_string(), "..".to_owned(), path(".ssh")] {
        calls.push(call("grep", &json!({ "pattern": PATTERN, "path": folder })));
        calls.push(call("run", &json!({ "command": format!("grep -r '{PATTERN}' {folder}") })));
        calls.push(call("find", &json!({ "pattern": "id_*", "path": folder })));
        calls.push(call("run", &json!({ "command": format!("find {folder} -name 'id_*'") })));
    }
    for mode in ["read-only", "ask", "auto"] {
        let log = session(&shell, &calls, &["--mode", mode]);
        let told = outputs(&log);
        assert_eq!(told.len(), calls.len(), "{mode}");
        for (at, (told, call)) in told.iter().zip(&calls).enumerate() {
            let body = told.rsplit_once("[exit:").map_or(told.as_str(), |(body, _)| body);
            let is_shown = body.lines().any(|line| line.contains(HIDDEN) && !line.contains("[error]"));
            assert!(!is_shown && !body.contains("/id_ed25519\n"), "{mode}: {call}: {told}");
            assert!(at >= count || told.contains("may hold secrets"), "{mode}: {call}: {told}");
        }
    }
}

/// Broken build: one that opens the path as it is written, after the approval.
#[tokio::test]
async fn what_is_opened_is_what_was_judged() {
    let steps = vec![calls("read", json!({ "path": "../lib/a" })), says("Done.")];
    let mut pixir = Pixir::new(steps, &[]);
    for name in ["../lib/a", "../kept/a"] {
        fs::create_dir_all(pixir.path(name).parent().expect("a parent")).expect("mkdir");
        fs::write(pixir.path(name), if name.contains("kept") { HIDDEN } else { "plain\n" }).expect("write");
    }
    pixir.does("look<Enter>").await;
    // While the user looks at the question, the folder becomes a symlink.
    fs::rename(pixir.path("../lib"), pixir.path("../was")).expect("rename");
    symlink(pixir.path("../kept").canonicalize().expect("there"), pixir.path("../lib")).expect("symlink");
    pixir.does("<A-y>").await;
    let told = outputs(&pixir.log()).remove(0);
    assert!(told.contains("[error] read: ") && !told.contains(HIDDEN), "{told}");
}
