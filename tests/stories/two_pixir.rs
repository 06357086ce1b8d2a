//! Two pixir and an editor in one workspace: no edit that was reported as done is lost.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use serde_json::{Value, json};

use crate::shell::{Shell, entries, figures, tool};
use crate::tier;

/// Writes and names of lines, one for each edit.
fn line(who: &str, n: usize) -> String {
    format!("{who}{n:05}\n")
}

/// A Session that reads the file and edits a line of its own, again and again.
fn script(who: &str, rounds: usize) -> Value {
    let steps = (0..rounds).flat_map(|n| {
        let (old, new) = (line(who, n), line(&who.to_uppercase(), n));
        let edit = match n % 3 {
            0 => ("edit", json!({ "path": "f", "old_text": old, "new_text": new })),
            1 => {
                let patch = format!("*** Begin Patch\n*** Update File: f\n@@\n-{old}+{new}*** End Patch\n");
                ("apply_patch", json!({ "patch": patch }))
            }
            _ => ("run", json!({ "command": format!("edit f {} {}", old.trim(), new.trim()) })),
        };
        [("read", json!({ "path": "f" })), edit]
            .map(|(name, args)| json!({ "calls": [{ "name": name, "args": args }] }))
    });
    json!({ "steps": steps.chain([json!({ "text": "Done." })]).collect::<Vec<Value>>() })
}

/// The edits of a Session that its Log reports as done.
fn done(log: &Path, who: &str) -> Vec<String> {
    let entries = entries(log);
    let results = entries.iter().filter(|it| it["type"] == "tool_result").map(|it| &it["data"]);
    let edits = results.skip(1).step_by(2).enumerate();
    edits.filter(|(_, it)| it["ok"] == true).map(|(n, _)| line(&who.to_uppercase(), n)).collect()
}

/// Saves as a careful editor does: the new file gets the name at once, and what had it before must be what was read.
/// Returns whether it is saved.
fn saves(folder: &Path, n: usize) -> bool {
    let (path, new) = (folder.join("f"), folder.join("f.new"));
    let Ok(text) = fs::read_to_string(&path) else { return false };
    let edited = text.replacen(&line("e", n), &line("E", n), 1);
    fs::write(&new, &edited).expect("write");
    let swap = || renameat_with(CWD, &new, CWD, &path, RenameFlags::EXCHANGE).expect("both are there");
    swap();
    let is_saved = fs::read_to_string(&new).is_ok_and(|before| before == text);
    if !is_saved {
        swap();
    }
    is_saved
}

/// Broken builds: ce783d9e, which compares and renames without a lock (13 of 40 lost); one that locks and does not compare
/// again after writing the new file, which the editor finds.
#[test]
fn two_pixir_and_an_editor_lose_no_edit_that_is_reported_as_done() {
    let rounds = tier::cases("two_pixir_and_an_editor");
    let all: String = ["a", "b", "e"].iter().flat_map(|who| (0..rounds).map(|n| line(who, n))).collect();
    let shell = Shell::new(&[("f", &all)]);
    let scripts = ["a", "b"].map(|who| shell.aside(&format!("{who}.json"), &script(who, rounds).to_string()));
    let is_over = AtomicBool::new(false);
    let (saved, ran) = thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut saved = Vec::new();
            let mut n = 0;
            while n < rounds && !is_over.load(Ordering::Relaxed) {
                if saves(&shell.workspace(), n) {
                    saved.push(line("E", n));
                    n += 1;
                }
                thread::yield_now();
            }
            saved
        });
        let both = scripts.each_ref().map(|script| {
            let provider = format!("script:{}", script.display());
            let max = (2 * rounds + 2).to_string();
            let shell = &shell;
            scope.spawn(move || {
                let flags = ["--provider", &provider, "--toolset", "both", "--headless", "--json", "--write"];
                shell.run(flags.into_iter().chain(["--max-rounds", &max, "go"]))
            })
        });
        let ran = both.map(|it| it.join().expect("no panic"));
        is_over.store(true, Ordering::Relaxed);
        (editor.join().expect("no panic"), ran)
    });
    assert!(ran.iter().all(|it| it.code == 0), "{ran:?}");
    let logs = shell.logs();
    assert_eq!(logs.len(), 2);
    let mut edits = saved;
    let by_editor = edits.len();
    for log in &logs {
        let first = entries(log).into_iter().find(|it| it["type"] == "tool_call" && it["data"]["name"] == "edit");
        let who = if first.expect("an edit")["data"].to_string().contains(line("a", 0).trim()) { "a" } else { "b" };
        edits.extend(done(log, who));
    }
    let text = shell.read("f");
    let lost: Vec<&String> = edits.iter().filter(|line| !text.contains(line.as_str())).collect();
    let refused = 2 * rounds - (edits.len() - by_editor);
    figures(&format!(
        "two pixir and an editor: {} edits reported as done ({by_editor} by the editor), {refused} refused, {} lost",
        edits.len(),
        lost.len()
    ));
    assert!(lost.is_empty(), "{lost:?}");
    assert!(by_editor > 0 && edits.len() - by_editor > rounds / 2, "hardly anything was edited");
    let left: Vec<_> = fs::read_dir(shell.workspace()).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert!(left.iter().all(|name| name == OsStr::new("f") || name == OsStr::new("f.new")), "{left:?}");
}

/// Broken builds: one that waits for ever, one that writes without the lock.
#[test]
fn a_folder_that_another_program_has_locked_is_named_after_a_while() {
    let shell = Shell::new(&[("src/a", "one\n"), ("b", "two\n")]);
    let folder = File::open(shell.workspace().join("src")).expect("a folder");
    flock(&folder, FlockOperation::NonBlockingLockExclusive).expect("it is free");
    let args = json!({ "path": "src/a", "old_text": "one", "new_text": "1" });
    let error = tool(&shell, "edit", &args, &["--write"]).error();
    assert_eq!(error["code"], "LEASE_HELD", "{error}");
    assert!(error.to_string().contains("another program has locked the folder `src`"), "{error}");
    assert_eq!(shell.read("src/a"), "one\n");
    // Another folder is free, and so is this one once it is unlocked.
    assert_eq!(tool(&shell, "write", &json!({ "path": "b", "content": "2\n" }), &["--write"]).code, 0);
    flock(&folder, FlockOperation::Unlock).expect("it was locked");
    assert_eq!(tool(&shell, "edit", &args, &["--write"]).code, 0);
    assert_eq!(shell.read("src/a"), "1\n");
}
