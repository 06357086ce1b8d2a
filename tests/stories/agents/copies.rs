//! Agents that work in copies of the workspace, and what becomes of their changes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use serde_json::{Value, json};

use super::{logs, read, results, run, spawn, steps, write};
use crate::hosted::Hosted;
use crate::pty::Terminal;
use crate::shell::{Shell, entries};
use crate::wait;

fn put(path: &str, content: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": content } })
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

fn copies(shell: &Shell) -> usize {
    let roots = fs::read_dir(shell.home().join("copies")).into_iter().flatten().flatten();
    roots.map(|root| fs::read_dir(root.path()).map_or(0, Iterator::count)).sum()
}

/// A file of a copy; empty where it is not there.
fn copied(shell: &Shell, path: &str) -> String {
    let roots = fs::read_dir(shell.home().join("copies")).into_iter().flatten().flatten();
    roots.filter_map(|root| fs::read_to_string(root.path().join(path)).ok()).collect()
}

/// Broken builds: the copy is the workspace; an adoption overwrites instead of merging; the undo does not know of it.
#[test]
fn two_writers_at_once_change_the_same_file_in_copies_and_both_changes_arrive() {
    let shell = Shell::new(&[("list.txt", TEN)]);
    let script = json!([
        { "calls": [
            spawn("Change the top", json!({ "name": "top", "isolation": "copy" })),
            spawn("Change the end", json!({ "name": "end", "isolation": "copy" })),
        ] },
        { "of": "Change the top", "calls": [put("list.txt", &TEN.replacen('1', "one", 1)), put("top.txt", "new\n")] },
        { "of": "Change the top", "calls": [bash("cat list.txt; git status --short || true")] },
        { "of": "Change the top", "text": "The top says one." },
        { "of": "Change the end", "calls": [put("list.txt", &TEN.replace("10", "ten")), bash("rm -f nothing")] },
        { "of": "Change the end", "text": "The end says ten." },
        { "calls": [read("list.txt")] },
        { "text": "Both are in." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let both = TEN.replacen("1\n", "one\n", 1).replace("10", "ten");
    assert_eq!(shell.read("list.txt"), both);
    assert_eq!(shell.read("top.txt"), "new\n");
    let logs = logs(&shell);
    let root = &logs[0];
    let told = results(root);
    assert!(told[0].contains("changed in its copy: list.txt, top.txt"), "{}", told[0]);
    assert!(told[0].contains("now in the workspace: "), "{}", told[0]);
    assert!(steps(root).iter().filter(|it| it.starts_with("adopted")).count() == 2, "{:?}", steps(root));
    assert!(!steps(root).iter().any(|it| it.starts_with("changed")), "the workspace was not changed meanwhile");
    assert_eq!(copies(&shell), 0, "nothing waits in them");
    let id = root[0]["session_id"].as_str().expect("an id");
    let undone = run(&shell, json!([]), &["resume", id, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(shell.read("list.txt"), TEN);
    assert!(!shell.workspace().join("top.txt").exists());
}

/// Broken builds: pixir writes conflict marks, or the agent that ends last wins; `--keep` and `--take` do the same.
#[test]
fn lines_that_two_agents_changed_wait_for_the_user_who_decides_from_the_shell() {
    let shell = Shell::new(&[("list.txt", TEN)]);
    let script = json!([
        { "calls": [
            spawn("In English", json!({ "name": "english", "isolation": "copy" })),
            spawn("In German", json!({ "name": "german", "isolation": "copy" })),
        ] },
        { "of": "In English", "calls": [put("list.txt", &TEN.replacen('1', "one", 1)), put("english.txt", "own\n")] },
        { "of": "In English", "text": "Done." },
        { "of": "In German", "calls": [put("list.txt", &TEN.replacen('1', "eins", 1)), put("german.txt", "own\n")] },
        { "of": "In German", "text": "Fertig." },
        { "text": "One waits." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 13, "a decision is missing: {ran:?}");
    // The agent whose files were adopted first has its line there.
    let now = shell.read("list.txt");
    let (late, theirs) = if now.starts_with("one\n") { ("german", "eins\n") } else { ("english", "one\n") };
    assert_eq!(now, TEN.replacen("1\n", if late == "german" { "one\n" } else { "eins\n" }, 1), "no mark");
    assert_eq!((shell.read("english.txt"), shell.read("german.txt")), ("own\n".into(), "own\n".into()));
    let root = logs(&shell).remove(0);
    let told = results(&root).join("\n");
    assert!(
        told.contains("not in the workspace, it waits in the copy of the agent until the user adopts it: list.txt"),
        "{told}"
    );
    assert_eq!(copies(&shell), 1, "that of the one that waits");

    let plan = shell.run(["agents", "adopt", "last", "--dry-run", "--json"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    let plan = plan.document();
    assert_eq!(plan["agents"][0]["agent"], late);
    let files = &plan["agents"][0]["plan"]["files"];
    assert_eq!((&files[0]["path"], &files[0]["standing"]), (&json!("list.txt"), &json!("changed_since")), "{files}");

    let undecided = shell.run(["agents", "adopt", "last", "--json"]);
    assert_eq!(undecided.code, 1, "{undecided:?}");
    assert_eq!(shell.read("list.txt"), now, "it is as it was");

    let decided = shell.run(["agents", "adopt", "last", late, "--take", "list.txt", "--json"]);
    assert_eq!(decided.code, 0, "{decided:?}");
    assert!(shell.read("list.txt").starts_with(theirs));
    assert_eq!(copies(&shell), 0, "nothing waits any more");
    let none = shell.run(["agents", "adopt", "last", "--json"]);
    assert_eq!((none.code, none.error()["code"].as_str()), (3, Some("NOTHING_TO_DO")), "{none:?}");
    // The decision belongs to the same turn, so its undo takes both along.
    let id = root[0]["session_id"].as_str().expect("an id");
    let undone = run(&shell, json!([]), &["resume", id, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!(shell.read("list.txt"), TEN);
}

/// Broken builds: the call does not wait for the decision; a decision for later counts as a refusal.
#[test]
fn in_mode_ask_the_call_waits_until_the_user_has_decided_about_the_files() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let script = json!({ "steps": [
        { "calls": [spawn("Change it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Change it", "calls": [put("a.txt", "new\n"), put("b.txt", "b\n")] },
        { "of": "Change it", "text": "Changed." },
        { "text": "I know." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    for id in ["a", "b"] {
        let asked = host.event("approval_requested");
        let decide =
            json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
        host.ask(id, json!({ "type": "to_agent", "path": ["scribe"], "input": decide }));
    }
    let shown = host.event("restore_planned");
    assert_eq!(shown["data"]["agent"], json!(["scribe"]));
    assert_eq!(shown["data"]["asks"], true);
    assert_eq!(shell.read("a.txt"), "old\n");
    let choices = json!({ "b.txt": "keep" });
    let options = json!({ "seen": shown["data"]["token"], "choices": choices });
    let answer = host.ask("2", json!({ "type": "adopt", "path": ["scribe"], "options": options }));
    assert_eq!(answer["ok"], true, "{answer}");
    host.event("turn_ended");
    let (result, code) = host.end();
    assert_eq!(code, 0, "{result}");
    assert_eq!(shell.read("a.txt"), "new\n");
    assert!(!shell.workspace().join("b.txt").exists());
    let root = &logs(&shell)[0];
    let told = results(root)[0];
    assert!(told.contains("now in the workspace: a.txt"), "{told}");
    assert!(told.contains("left as they are in the workspace: b.txt"), "{told}");
}

/// Broken build: an answer that decides nothing closes the question, and the call waits for ever.
#[test]
fn an_answer_that_leaves_the_only_conflict_open_asks_again() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let script = json!({ "steps": [
        { "calls": [spawn("Change it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Change it", "calls": [put("a.txt", "new\n")] },
        { "of": "Change it", "text": "Changed." },
        { "text": "I know." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let asked = host.event("approval_requested");
    let decide = json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
    host.ask("2", json!({ "type": "to_agent", "path": ["scribe"], "input": decide }));
    host.event("restore_planned");
    shell.write("a.txt", "mine\n");
    let undecided = host.ask("3", json!({ "type": "adopt", "path": ["scribe"], "options": {} }));
    assert_eq!(undecided["ok"], false, "{undecided}");
    let again = host.event("restore_planned");
    assert_eq!(again["data"]["files"][0]["standing"], "changed_since", "{again}");
    let options = json!({ "choices": { "a.txt": "overwrite" } });
    let decided = host.ask("4", json!({ "type": "adopt", "path": ["scribe"], "options": options }));
    assert_eq!(decided["ok"], true, "{decided}");
    host.event("turn_ended");
    host.end();
    assert_eq!(shell.read("a.txt"), "new\n");
}

/// Broken builds: marks are written to the workspace; a text for a file that does not wait is dropped without a word.
#[test]
fn the_user_merges_a_conflict_by_hand_from_the_shell() {
    let shell = Shell::new(&[("list.txt", TEN)]);
    let script = json!([
        { "calls": [spawn("In English", json!({ "name": "english", "isolation": "copy" }))] },
        { "of": "In English", "calls": [put("list.txt", &TEN.replacen('1', "one", 1))] },
        { "of": "In English", "text": "Done." },
        { "text": "It waits." },
    ]);
    // Only mode auto adopts files by itself, and without a terminal the user cannot be asked.
    let ran = run(&shell, script, &["go", "--mode", "ask", "--allow", "files(list.txt)"]);
    assert_eq!(ran.code, 13, "{ran:?}");
    shell.write("list.txt", &TEN.replacen('1', "eins", 1));
    let plan = shell.run(["agents", "adopt", "last", "--dry-run", "--json"]).document();
    let marked = plan["agents"][0]["plan"]["files"][0]["marked"].as_str().expect("both versions").to_owned();
    assert!(marked.contains("<<<<<<<") && marked.contains("one") && marked.contains("eins"), "{marked}");
    let draft = shell.aside("draft.txt", &marked);
    let merge = |path: &str| format!("{path}={}", draft.display());
    let refused = shell.run(["agents", "adopt", "last", "--merge", &merge("list.txt"), "--json"]);
    assert!(refused.code == 2 && refused.stderr.contains("still has conflict marks"), "{refused:?}");
    let by_hand = TEN.replacen('1', "one, eins", 1);
    shell.aside("draft.txt", &by_hand);
    let other = shell.run(["agents", "adopt", "last", "--merge", &merge("other.txt"), "--json"]);
    assert!(other.code == 2 && other.stderr.contains("other.txt"), "{other:?}");
    assert_eq!(shell.read("list.txt"), TEN.replacen('1', "eins", 1), "it is as it was");
    let done = shell.run(["agents", "adopt", "last", "--merge", &merge("list.txt"), "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(shell.read("list.txt"), by_hand);
    assert_eq!(copies(&shell), 0, "nothing waits any more");
}

/// Broken builds: the agent's next turn is not seen while its files wait; its files of before are lost.
#[test]
fn an_agent_that_is_told_more_while_its_files_wait_goes_on_and_offers_all_of_them() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let script = json!({ "steps": [
        { "calls": [spawn("Change it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Change it", "calls": [put("a.txt", "new\n")] },
        { "of": "Change it", "text": "Changed." },
        { "of": "Change it", "calls": [put("b.txt", "more\n")] },
        { "of": "Change it", "text": "More." },
        { "text": "I know." },
    ] });
    let mut host = Hosted::start(&shell, &script, &[]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let allow = |host: &mut Hosted, id: &str| {
        let asked = host.event("approval_requested");
        let decide =
            json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
        host.ask(id, json!({ "type": "to_agent", "path": ["scribe"], "input": decide }));
    };
    allow(&mut host, "2");
    let shown = host.event("restore_planned");
    assert_eq!(shown["data"]["files"].as_array().map(Vec::len), Some(1), "{shown}");
    // The user says more to the agent instead of deciding.
    let more = json!({ "type": "to_agent", "path": ["scribe"], "input": { "type": "prompt", "text": "and b.txt" } });
    let told = host.ask("3", more);
    assert_eq!(told["ok"], true, "{told}");
    // What it asks now comes up at once.
    allow(&mut host, "4");
    let shown = host.event("restore_planned");
    let paths: Vec<&Value> = shown["data"]["files"].as_array().expect("files").iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["a.txt", "b.txt"], "{shown}");
    let adopted = host.ask("5", json!({ "type": "adopt", "path": ["scribe"], "options": {} }));
    assert_eq!(adopted["ok"], true, "{adopted}");
    host.end();
    assert_eq!((shell.read("a.txt"), shell.read("b.txt")), ("new\n".into(), "more\n".into()));
}

/// Broken builds: the marks are taken for the user's text; the file that the user wrote is not adopted; an Enter that was
/// pressed for the editor adopts what the user has not seen.
#[test]
fn the_user_merges_a_conflict_in_their_own_editor() {
    let shell = Shell::new(&[("list.txt", TEN)]);
    let script = json!({ "steps": [
        { "calls": [spawn("In English", json!({ "name": "english", "isolation": "copy" }))] },
        { "of": "In English", "calls": [put("list.txt", &TEN.replacen('1', "one", 1))] },
        { "of": "In English", "text": "Done.", "delay_ms": 1500 },
        { "text": "It is in." },
    ] });
    let path = shell.aside("script.json", &script.to_string());
    let provider = format!("script:{}", path.display());
    let editor = shell.aside(
        "editor.sh",
        "touch began; until [ -e go ]; do sleep 0.02; done\ngrep -v -e '^<<<' -e '^===' -e '^>>>' -e '^|||' \"$1\" > \"$1.new\"; cat \"$1.new\" > \"$1\"\n",
    );
    let visual = format!("bash {}", editor.display());
    let args = ["--provider", &provider, "--mode", "auto"];
    let binary = env!("CARGO_BIN_EXE_pixir");
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &args, &[("VISUAL", &visual)], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("english");
    // The user saves the file while the agent works in its copy.
    wait::until("the agent has written in its copy", || copied(&shell, "english/list.txt").starts_with("one"));
    shell.write("list.txt", &TEN.replacen('1', "eins", 1));
    terminal.wait_for("conflict: k, o or e");
    terminal.send("e");
    wait::until("the editor runs", || shell.workspace().join("began").exists());
    terminal.send("\r");
    shell.write("go", "");
    terminal.wait_for("as you wrote it");
    terminal.wait_until_read();
    assert!(!shell.read("list.txt").contains("one\n"), "that Enter was for the editor");
    terminal.decide("\r");
    let is_written = wait::within(Duration::from_secs(20), || shell.read("list.txt").contains("one\n"));
    assert!(is_written, "one Enter writes the merged file; the screen:\n{}", terminal.screen());
    terminal.wait_for("It is in.");
    let both = shell.read("list.txt");
    assert!(both.contains("one\n") && both.contains("eins\n") && !both.contains("<<<"), "{both}");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

/// Broken builds: the copy of a tester is kept, or adopted.
#[test]
fn what_a_tester_writes_is_thrown_away() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let script = json!([
        { "calls": [spawn("Try it", json!({ "role": "tester" }))] },
        { "of": "Try it", "calls": [write("a.txt"), bash("touch made; ls")] },
        { "of": "Try it", "text": "It works." },
        { "text": "Fine." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.read("a.txt"), "old\n");
    assert!(!shell.workspace().join("made").exists());
    let root = &logs(&shell)[0];
    let told = results(root)[0];
    assert!(told.contains("changed in a copy that is thrown away: a.txt, made"), "{told}");
    assert_eq!(copies(&shell), 0);
}

/// Broken builds: what was about to be written is forgotten; a file is recorded twice; a file that changed meanwhile is
/// overwritten.
#[test]
fn files_that_a_killed_pixir_was_about_to_write_are_written_when_the_session_is_opened_again() {
    let shell = Shell::new(&[("a.txt", "old\n"), ("c.txt", "old\n")]);
    let script = json!([
        { "calls": [spawn("Write three", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Write three", "calls": [put("a.txt", "new\n"), put("b.txt", "new\n"), put("c.txt", "new\n")] },
        { "of": "Write three", "text": "Written." },
        { "text": "Good." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // The log and the files as a pixir leaves them that is killed after its first file; then the user changes another.
    let path = shell.logs().into_iter().find(|it| steps(&entries(it)).iter().any(|it| it.starts_with("adopting")));
    let path = path.expect("the root's log");
    let text = fs::read_to_string(&path).expect("a log");
    let end = text.find("\"event\":\"adopting\"").and_then(|at| text[at..].find('\n').map(|end| at + end + 1));
    fs::write(&path, &text[..end.expect("the plan is in the log")]).expect("write");
    fs::remove_file(shell.workspace().join("b.txt")).expect("it was written");
    shell.write("c.txt", "mine\n");
    let opened = shell.run(["agents", "adopt", "last", "--json"]);
    assert_eq!(opened.code, 1, "c.txt still waits: {opened:?}");
    assert_eq!(
        (shell.read("a.txt"), shell.read("b.txt"), shell.read("c.txt")),
        ("new\n".into(), "new\n".into(), "mine\n".into())
    );
    let root = entries(&path);
    let adopted: Vec<&Value> = root.iter().filter(|it| it["data"]["event"] == "adopted").collect();
    let [adopted] = adopted.as_slice() else { panic!("{adopted:?}") };
    let paths: Vec<&str> =
        adopted["data"]["changes"].as_array().expect("files").iter().filter_map(|it| it["path"].as_str()).collect();
    assert_eq!(paths, ["a.txt", "b.txt"]);
    assert_eq!(adopted["data"]["left"][0]["path"], "c.txt");
    let id = root[0]["session_id"].as_str().expect("an id");
    let undone = run(&shell, json!([]), &["resume", id, "/undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert_eq!((shell.read("a.txt"), shell.read("c.txt")), ("old\n".into(), "mine\n".into()));
    assert!(!shell.workspace().join("b.txt").exists());
}

/// Broken builds: the repository of the copy is that of the workspace; a commit of the agent shows there.
#[test]
fn a_commit_in_a_copy_does_not_show_in_the_workspace() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let git = |args: &[&str]| {
        let out = std::process::Command::new("git").args(args).current_dir(shell.workspace()).output().expect("git");
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.email", "a@example.org"]);
    git(&["config", "user.name", "A"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "first"]);
    let script = json!([
        { "calls": [spawn("Commit it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Commit it", "calls": [put("a.txt", "new\n")] },
        { "of": "Commit it", "calls": [bash("git commit -qam second && git log --oneline | wc -l")] },
        { "of": "Commit it", "text": "Committed." },
        { "text": "Good." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let logs = logs(&shell);
    assert!(results(&logs[1]).iter().any(|it| it.starts_with("2\n")), "{:?}", results(&logs[1]));
    assert_eq!(git(&["log", "--oneline"]).lines().count(), 1);
    assert_eq!(git(&["status", "--short"]).trim(), "M a.txt");
    assert_eq!(shell.read("a.txt"), "new\n");
}

/// Broken builds: paths of the workspace are inside for an agent in a copy; the sandbox shows the workspace to its commands; a
/// link is followed out of the copy.
#[test]
fn an_agent_in_a_copy_reaches_the_workspace_by_no_path_no_link_and_no_command() {
    let shell = Shell::new(&[("a.txt", "old\n"), ("dir/b.txt", "old\n")]);
    let at = |path: &str| shell.workspace().join(path).display().to_string();
    std::os::unix::fs::symlink(at("dir"), shell.workspace().join("link")).expect("a link");
    let script = json!([
        { "calls": [spawn("Reach out", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Reach out", "calls": [write(&at("a.txt"))] },
        { "of": "Reach out", "calls": [write("link/b.txt")] },
        { "of": "Reach out", "calls": [bash(&format!("echo new > {}", at("a.txt")))] },
        { "of": "Reach out", "calls": [bash("echo new > link/b.txt")] },
        { "of": "Reach out", "text": "I could not." },
        { "text": "Good." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((shell.read("a.txt"), shell.read("dir/b.txt")), ("old\n".into(), "old\n".into()));
    let logs = logs(&shell);
    assert_eq!(results(&logs[1]).len(), 4, "each was tried");
    let ok = logs[1].iter().filter(|it| it["type"] == "tool_result" && it["data"]["ok"] == true).count();
    assert_eq!(ok, 0, "{:?}", results(&logs[1]));
}

/// Broken builds: two workers of one answer share the files, and one of them fails or overwrites; the copy is not said; without
/// a repository nothing is said either.
#[test]
fn a_second_writer_gets_a_copy_by_itself_and_both_changes_arrive() {
    for has_repository in [true, false] {
        let shell = Shell::new(&[("list.txt", TEN)]);
        if has_repository {
            let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(shell.workspace()).status();
            assert!(made.expect("git").success());
        }
        let script = json!([
            { "calls": [spawn("First line", json!({ "name": "first" })), spawn("Last line", json!({ "name": "last" }))] },
            { "of": "First line", "calls": [put("list.txt", &TEN.replacen('1', "one", 1))], "delay_ms": 300 },
            { "of": "First line", "text": "Done." },
            { "of": "Last line", "calls": [put("other.txt", "own\n")], "delay_ms": 300 },
            { "of": "Last line", "text": "Done." },
            { "calls": [spawn("Alone", json!({ "name": "alone" }))] },
            { "of": "Alone", "text": "I had nobody beside me." },
            { "text": "All done." },
        ]);
        let ran = run(&shell, script, &["go", "--mode", "auto"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let result = ran.document();
        let of = |name: &str| -> Value {
            let all = result["agents"].as_array().expect("a list");
            all.iter().find(|it| it["name"] == name).expect("the agent").clone()
        };
        let notes: Vec<String> =
            ["first", "last"].into_iter().filter_map(|it| of(it)["note"].as_str().map(str::to_owned)).collect();
        let [note] = notes.as_slice() else { panic!("one of them: {result}") };
        let expected = if has_repository { "it works in a copy, because" } else { "it shares the files with" };
        assert!(note.contains(expected), "{note}");
        let told = results(&logs(&shell)[0]).join("\n");
        assert!(told.contains(&format!("note: {note}")), "the model reads it: {told}");
        let copied = ["first", "last"].into_iter().filter(|it| of(it)["isolation"] == "copy").count();
        assert_eq!(copied, usize::from(has_repository), "{result}");
        assert_eq!(of("alone")["note"], Value::Null, "no other writer runs");
        assert_eq!((shell.read("list.txt"), shell.read("other.txt")), (TEN.replacen('1', "one", 1), "own\n".into()));
    }
}

/// Broken build: the agent finds no repository, and its result does not say so.
#[test]
fn a_copy_without_a_repository_is_said_to_be_one() {
    let shell = Shell::new(&[("a.txt", "old\n")]);
    let made = std::process::Command::new("git").args(["init", "-q"]).current_dir(shell.workspace()).status();
    assert!(made.expect("git").success());
    let alternates = shell.workspace().join(".git/objects/info/alternates");
    std::fs::create_dir_all(alternates.parent().expect("a folder")).expect("mkdir");
    std::fs::write(alternates, "/nowhere\n").expect("write");
    let script = json!([
        { "calls": [spawn("Look", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Look", "text": "Seen." },
        { "text": "Good." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto"]);
    let expected = "its copy has no repository: its objects are in another repository";
    assert_eq!(ran.document()["agents"][0]["note"], expected, "{ran:?}");
    assert!(results(&logs(&shell)[0])[0].contains(expected));
}

/// Broken builds: a file whose mode alone changed counts as adopted and is not; a symlink is lost without a word; a file that the agent removed stays; what an agent
/// of the agent did gets lost between both copies; the undo leaves the mode.
#[test]
fn removals_and_modes_arrive_through_two_copies_and_are_undone() {
    let shell = Shell::new(&[("run.sh", "echo\n"), ("gone.txt", "bye\n")]);
    let mode = |name: &str| fs::metadata(shell.workspace().join(name)).expect("a file").mode() & 0o777;
    fs::set_permissions(shell.workspace().join("run.sh"), fs::Permissions::from_mode(0o644)).expect("chmod");
    let copied = |task: &str, name: &str| spawn(task, json!({ "name": name, "isolation": "copy" }));
    let command = "rm gone.txt; chmod 755 run.sh; printf 'echo new\\n' > new.sh; chmod 755 new.sh; ln -s run.sh link";
    let script = json!([
        { "calls": [copied("Lead", "lead")] },
        { "of": "Lead", "calls": [copied("Dig", "deep")] },
        { "of": "Dig", "calls": [bash(command)] },
        { "of": "Dig", "text": "Dug." },
        { "of": "Lead", "text": "Led." },
        { "text": "So." },
    ]);
    let ran = run(&shell, script, &["go", "--mode", "auto", "--toolset", "typed", "--config", "agents.depth=2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!shell.workspace().join("gone.txt").exists());
    assert_eq!((mode("run.sh"), mode("new.sh"), shell.read("new.sh").as_str()), (0o755, 0o755, "echo new\n"));
    let all = logs(&shell);
    let lead = all.iter().find(|log| log[0]["data"]["parent"]["name"] == "lead").expect("its log");
    let told = results(lead)[0];
    assert!(told.contains("note: symlinks that it made in its copy are not adopted: link\n"), "{told}");
    let id = all[0][0]["session_id"].as_str().expect("an id");
    assert_eq!(run(&shell, json!([]), &["resume", id, "/undo"]).code, 0);
    assert_eq!((mode("run.sh"), shell.read("gone.txt").as_str()), (0o644, "bye\n"));
    assert!(!shell.workspace().join("new.sh").exists());
}
