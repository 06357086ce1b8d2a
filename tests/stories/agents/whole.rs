//! Agents from a plan to an undo: readers for the plan, writers in copies, a conflict, and all of it taken back.

use serde_json::{Value, json};

use super::{logs, run, spawn, steps};
use crate::hosted::Hosted;
use crate::shell::Shell;

const LINES: &str = "one\ntwo\nthree\nfour\n";

fn put(path: &str, content: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": content } })
}

/// Answers the next form with one of its own options.
fn choose(host: &mut Hosted, id: &str, option: usize) {
    let form = host.event("question_asked");
    let answer = form["data"]["questions"][0]["options"][option].clone();
    let answered = host.ask(id, json!({ "type": "answer", "call_id": form["data"]["call_id"], "answers": [[answer]] }));
    assert_eq!(answered["ok"], true, "{answered}");
}

/// Broken builds: planning lets an agent write; the second writer's conflict is written with marks, or lost; the undo
/// leaves what was adopted; the Log alone does not tell it again.
#[test]
fn a_plan_with_three_readers_becomes_two_writers_a_conflict_and_one_undo() {
    let shell = Shell::new(&[("list.txt", LINES)]);
    let reader =
        |n: u32| spawn(&format!("Read part {n}"), json!({ "role": "explorer", "name": format!("reader-{n}") }));
    let writer = |name: &str| spawn(&format!("Write as {name}"), json!({ "name": name, "isolation": "copy" }));
    let plan = json!({ "name": "update_plan", "args": { "items": [
        { "step": "translate the first line", "status": "pending" },
        { "step": "look at both", "status": "pending" },
    ], "ready": true } });
    let mut script = vec![
        json!({ "calls": [reader(1), reader(2), reader(3)] }),
        // A reader of a planning session changes nothing, whatever it tries.
        json!({ "of": "Read part 1", "calls": [put("early.txt", "early\n")] }),
        json!({ "of": "Read part 1", "text": "Part 1 is a list." }),
        json!({ "of": "Read part 2", "text": "Part 2 too." }),
        json!({ "of": "Read part 3", "text": "Part 3 as well." }),
        json!({ "calls": [plan] }),
        json!({ "calls": [writer("english"), writer("german")] }),
    ];
    for (name, word) in [("english", "ONE"), ("german", "EINS")] {
        let of = format!("Write as {name}");
        script.push(json!({ "of": of, "calls": [
            put("list.txt", &LINES.replacen("one", word, 1)), put(&format!("{name}.txt"), "own\n"),
        ] }));
        script.push(json!({ "of": of, "text": format!("I wrote {word}.") }));
    }
    script.push(json!({ "text": "Both are in." }));
    let mut host = Hosted::start(&shell, &json!({ "steps": script }), &["--agent", "plan"]);
    host.ask("1", json!({ "type": "prompt", "text": "translate the list" }));
    choose(&mut host, "2", 1);
    // One of the two is adopted by itself; the other changed the same line.
    let conflict = host.event("restore_planned");
    let late = conflict["data"]["agent"][0].as_str().expect("a name").to_owned();
    let file = &conflict["data"]["files"][0];
    assert_eq!((&file["path"], &file["standing"]), (&json!("list.txt"), &json!("changed_since")), "{conflict}");
    let marked = file["marked"].as_str().expect("both versions");
    assert!(marked.contains("<<<<<<<") && marked.contains("ONE") && marked.contains("EINS"), "{marked}");
    let first = shell.read("list.txt");
    assert!(first == LINES.replacen("one", "ONE", 1) || first == LINES.replacen("one", "EINS", 1), "no mark: {first}");
    // The user writes a third version.
    let by_hand = LINES.replacen("one", "ONE / EINS", 1);
    let options = json!({ "seen": conflict["data"]["token"], "written": { "list.txt": by_hand } });
    let adopted = host.ask("3", json!({ "type": "adopt", "path": [late], "options": options }));
    assert_eq!(adopted["ok"], true, "{adopted}");
    host.event("turn_ended");
    assert_eq!(shell.read("list.txt"), by_hand);
    assert_eq!((shell.read("english.txt"), shell.read("german.txt")), ("own\n".into(), "own\n".into()));
    assert!(!shell.workspace().join("early.txt").exists());
    let undone = host.ask("4", json!({ "type": "undo" }));
    assert_eq!(undone["ok"], true, "{undone}");
    let (result, code) = host.end();
    assert_eq!(code, 12, "a reader tried to write: {result}");
    assert_eq!(shell.read("list.txt"), LINES, "one undo takes back what both wrote, and what the user merged");
    assert!(!shell.workspace().join("english.txt").exists() && !shell.workspace().join("german.txt").exists());
    // The Logs alone tell it again, without the model.
    let root = logs(&shell).remove(0);
    let told = steps(&root);
    assert_eq!(told.iter().filter(|it| it.starts_with("spawned")).count(), 5, "{told:?}");
    // The one that was late: the file that merged, then the user's own version of the other.
    assert_eq!(told.iter().filter(|it| it.starts_with("adopted")).count(), 3, "{told:?}");
    let id = root[0]["session_id"].as_str().expect("an id");
    let replay = shell.run(["replay", id, "--headless"]);
    assert_eq!(replay.code, 0, "{replay:?}");
    for word in ["reader-1", "reader-3", "english", "german", "Both are in."] {
        assert!(replay.stdout.contains(word), "{word}: {}", replay.stdout);
    }
}

/// Broken builds: a failed agent is forgotten in the exit code; what the other wrote is not adopted.
#[test]
fn the_same_without_a_terminal_ends_with_9_when_one_writer_fails() {
    let shell = Shell::new(&[("list.txt", LINES)]);
    let writer = |name: &str| spawn(&format!("Write as {name}"), json!({ "name": name, "isolation": "copy" }));
    let reader =
        |n: u32| spawn(&format!("Read part {n}"), json!({ "role": "explorer", "name": format!("reader-{n}") }));
    let script = json!([
        { "calls": [reader(1), reader(2), reader(3)] },
        { "of": "Read part 1", "text": "Part 1 is a list." },
        { "of": "Read part 2", "text": "Part 2 too." },
        { "of": "Read part 3", "text": "Part 3 as well." },
        { "calls": [writer("english"), writer("german")] },
        { "of": "Write as english", "calls": [put("list.txt", &LINES.replacen("one", "ONE", 1))] },
        { "of": "Write as english", "text": "I wrote ONE." },
        { "of": "Write as german", "calls": [put("german.txt", "half\n")] },
        { "of": "Write as german", "error": { "code": "INVALID_RESPONSE", "message": "broken" } },
        { "text": "One of them failed." },
    ]);
    let ran = run(&shell, script, &["translate the list", "--mode", "auto"]);
    assert_eq!(ran.code, 9, "{ran:?}");
    let result = ran.document();
    let statuses: Vec<&Value> = result["agents"].as_array().expect("a list").iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "completed", "failed"], "{result}");
    assert_eq!(shell.read("list.txt"), LINES.replacen("one", "ONE", 1));
    assert!(!shell.workspace().join("german.txt").exists(), "what a failed agent wrote waits for the user");
    let waiting = shell.run(["agents", "adopt", "last", "--dry-run", "--json"]).document();
    assert_eq!(waiting["agents"][0]["agent"], "german", "{waiting}");
    // The Log alone tells what each came to.
    let id = result["session_id"].as_str().expect("an id");
    let replay = shell.run(["replay", id, "--headless"]);
    assert_eq!(replay.code, 0, "{replay:?}");
    for word in ["reader-2", "english", "german", "One of them failed."] {
        assert!(replay.stdout.contains(word), "{word}: {}", replay.stdout);
    }
}
