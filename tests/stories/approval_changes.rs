//! An approval shows what changes, whatever the size of the file, the length of a line, or the bytes of either side: on the
//! card and in its full view, to an editor, and to a host.

use std::fs;
use std::path::Path;

use pixir_core::provider::script::{Script, Step};
use pixir_core::text::clean::visible;
use serde_json::{Value, json};

use super::acp::opened;
use crate::driver::{Pixir, calls, says};
use crate::hosted::Hosted;
use crate::shell::{Shell, entries};

/// A change that a model asks for.
struct Case {
    name: &'static str,
    path: &'static str,
    before: Option<Vec<u8>>,
    tool: &'static str,
    args: Value,
    /// What the approval shows, wherever its lines wrap.
    shows: Vec<String>,
    counts: (u64, u64),
    /// It cannot be shown as a whole, so it wants the typed word.
    wants_word: bool,
}

impl Case {
    fn new(name: &'static str, path: &'static str, before: &[u8], shows: &[&str], counts: (u64, u64)) -> Case {
        let shows = shows.iter().map(|it| (*it).to_owned()).collect();
        let (tool, args) = ("", Value::Null);
        Case { name, path, before: Some(before.to_vec()), tool, args, shows, counts, wants_word: false }
    }

    fn edits(self, old_text: &str, new_text: &str) -> Case {
        let args = json!({ "path": self.path, "old_text": old_text, "new_text": new_text, "replace_all": true });
        Case { tool: "edit", args, ..self }
    }

    fn writes(self, content: &str) -> Case {
        Case { tool: "write", args: json!({ "path": self.path, "content": content }), ..self }
    }

    fn converts(self, content: &str) -> Case {
        let args = json!({ "path": self.path, "content": content, "encoding": "utf-8" });
        Case { tool: "write", args, ..self }
    }

    /// Exactly these bytes, also where they are no text.
    fn becomes(self, bytes: &[u8]) -> Case {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        Case { tool: "run", args: json!({ "command": format!("write -b {} {encoded}", self.path) }), ..self }
    }

    fn set_up(&self, workspace: &Path) {
        if let Some(before) = &self.before {
            fs::write(workspace.join(self.path), before).expect("write");
        }
    }

    fn is_as_before(&self, workspace: &Path) -> bool {
        fs::read(workspace.join(self.path)).ok() == self.before
    }

    /// Checks a text in which lines may be wrapped and framed.
    fn check(&self, shown: &str, place: &str) {
        let shown = squashed(shown);
        for it in &self.shows {
            let end = shown.char_indices().nth(2_000).map_or(shown.len(), |(at, _)| at);
            assert!(shown.contains(&squashed(it)), "{} in {place}: {it:?} is not shown:\n{}", self.name, &shown[..end]);
        }
        for hidden in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{feff}', '\r', '\0'] {
            assert!(!shown.contains(hidden), "{} in {place}: {hidden:?} stands as itself", self.name);
        }
    }
}

/// Without blanks, frames, and what else stands at the edges of wrapped lines.
fn squashed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '┃' | '│' | '┏' | '┓' | '┗' | '┛' | '━')).collect()
}

fn cases() -> Vec<Case> {
    let dump: String = (0..90_000).map(|n| format!("INSERT INTO t VALUES ({n}, 'row {n}');\n")).collect();
    assert!(dump.len() > 3 << 20);
    let minified = format!("{}timeout=30{}", "f(1);".repeat(200_000), "g(2);".repeat(200_000));
    let todo: String = (0..5_000).map(|n| format!("line {n}{}\n", if n % 10 == 5 { " todo" } else { "" })).collect();
    let hidden = "ok\x1b[2K\u{202e}evil\u{200b}\nnext\n";
    let large: String = (0..100_000).map(|n| format!("row {n} of a table that is new\n")).collect();
    vec![
        Case::new(
            "one line of a dump of 3 MB",
            "dump.sql",
            dump.as_bytes(),
            &["-INSERT INTO t VALUES (45000, 'row 45000');", "+INSERT INTO t VALUES (45000, 'ROW');"],
            (1, 1),
        )
        .edits("(45000, 'row 45000')", "(45000, 'ROW')"),
        Case::new(
            "one word of a line of 2 MB",
            "app.min.js",
            minified.as_bytes(),
            &["f(1);timeout=30g(2);", "f(1);timeout=90g(2);", "⟨999968 unchanged characters⟩"],
            (1, 1),
        )
        .edits("timeout=30", "timeout=90"),
        Case::new(
            "UTF-16 that becomes UTF-8",
            "notes.txt",
            b"\xff\xfeh\0i\0\n\0",
            &["[encoding: UTF-16LE with BOM → UTF-8]", "+there"],
            (1, 0),
        )
        .converts("hi\nthere\n"),
        Case::new(
            "UTF-16 that gets a line",
            "notes.txt",
            b"\xff\xfeh\0i\0\n\0",
            &["[encoding: UTF-16LE with BOM]", "+there"],
            (1, 0),
        )
        .writes("hi\nthere\n"),
        Case::new(
            "UTF-16 that another program is to overwrite",
            "notes.txt",
            b"\xff\xfeh\0i\0\n\0",
            &["[encoding: UTF-16LE with BOM → UTF-8]", "-hi", "+Łódź"],
            (1, 1),
        )
        .becomes("Łódź\n".as_bytes()),
        Case::new(
            "Latin-1 that becomes UTF-8",
            "menu.txt",
            b"na\xefve caf\xe9\nsame\n",
            &["[encoding: Latin-1 (ISO-8859-1) → UTF-8]", "-naïve café", "+naïve cafés"],
            (1, 1),
        )
        .converts("naïve cafés\nsame\n"),
        Case::new(
            "Latin-1 in which a word changes",
            "menu.txt",
            b"na\xefve caf\xe9\nsame\n",
            &["[encoding: Latin-1 (ISO-8859-1)]", "-naïve café", "+naïve cafés"],
            (1, 1),
        )
        .edits("café", "cafés"),
        Case::new(
            "UTF-8 with a fault",
            "menu.txt",
            b"gr\xc3\xb6\xc3\x9fer caf\xe9\nsame\n",
            &["-größer caf\\xe9", "+kleiner caf\\xe9", "not UTF-8"],
            (1, 1),
        )
        .edits("größer", "kleiner"),
        Case::new(
            "an image that becomes text",
            "logo.png",
            b"\x89PNG\r\n\x1a\n\0\0\0IHDR",
            &["[not text, 15B → text, 5B", "-\\x89PNG", "-\\x1a", "+text"],
            (1, 3),
        )
        .writes("text\n"),
        Case::new(
            "text that becomes a program",
            "tool",
            b"text\n",
            &["-text", "+\\x7fELF\\x02\\x01\\x00\\xff", "→ not text, 9B"],
            (1, 1),
        )
        .becomes(b"\x7fELF\x02\x01\0\xff\n"),
        Case::new(
            "characters that hide and reorder",
            "readme.md",
            b"ok\nnext\n",
            &["+ok\\u{1b}[2K\\u{202e}evil\\u{200b}"],
            (1, 1),
        )
        .writes(hidden),
        Case::new(
            "500 places",
            "many.txt",
            todo.as_bytes(),
            &["-line 5 todo", "+line 5 done", "-line 2505 todo", "-line 4995 todo", "+line 4995 done"],
            (500, 500),
        )
        .edits("todo", "done"),
        Case::new(
            "line ends alone",
            "dos.bat",
            b"one\r\ntwo\r\nthree\r\n",
            &["[line ends: CRLF → LF", "else changes: 3]"],
            (3, 3),
        )
        .becomes(b"one\ntwo\nthree\n"),
        Case::new(
            "some line ends",
            "mixed.txt",
            b"one\r\ntwo\nthree\n",
            &["-one\\r", "+one", "-two", "+two\\r"],
            (2, 2),
        )
        .becomes(b"one\ntwo\r\nthree\n"),
        Case::new(
            "a byte order mark alone",
            "bom.json",
            "\u{feff}{}\n".as_bytes(),
            &["[the byte order mark at the start goes]", "-\\u{feff}{}", "+{}"],
            (1, 1),
        )
        .becomes(b"{}\n"),
        Case::new("the last line end", "end.txt", b"a\nb\n", &["-b", "+b", "\\ No newline at end of file"], (1, 1))
            .becomes(b"a\nb"),
        Case {
            before: None,
            wants_word: true,
            ..Case::new(
                "a new file of 3 MB",
                "table.txt",
                b"",
                &["+row 0 of a table", "changed lines (", "not shown"],
                (100_000, 0),
            )
        }
        .writes(&large),
    ]
}

fn step(case: &Case) -> Step {
    calls(case.tool, case.args.clone())
}

/// Broken builds: ce783d9e, which says `[too large to show as a diff]` or `[not text, …]` and allows by one key; one that shows
/// the same text on both sides of a change; one that allows a change that is not shown without the word.
#[tokio::test]
async fn the_card_and_its_full_view_show_every_change() {
    for (at, case) in cases().iter().enumerate() {
        let (columns, rows) = [(60, 20), (80, 24), (120, 40)][at % 3];
        let script = Script { steps: vec![step(case), says("Done.")], ..Script::default() };
        let mut pixir = Pixir::scripted(script, &[], columns, rows);
        let workspace = pixir.path("");
        case.set_up(&workspace);
        pixir.does("/toolset both<Enter>").await;
        let card = pixir.does("go<Enter>").await;
        let (added, removed) = case.counts;
        let figures = if removed == 0 { format!("+{added}") } else { format!("+{added} −{removed}") };
        assert!(card.contains(&figures), "{}: {figures}\n{card}", case.name);
        let mut shown = card;
        for size in [(60, 20), (80, 24), (120, 40)] {
            pixir.screen.resize(size.0, size.1);
            let screen = pixir.does("").await;
            assert!(screen.contains("Alt+N"), "{} at {size:?}:\n{screen}", case.name);
        }
        pixir.screen.resize(columns, rows);
        pixir.does("<Tab><Enter>").await;
        for _ in 0..2_000 {
            let page = pixir.does("").await;
            let is_end = page.contains("y Allow");
            shown.push_str(&page);
            if is_end {
                break;
            }
            // The middle of what is cut at its end is as its start.
            pixir.does(if case.wants_word { "<End>" } else { "<PgDn>" }).await;
        }
        case.check(&shown, "the terminal");
        assert!(case.is_as_before(&workspace), "{}: nothing changes before the decision", case.name);
        let screen = pixir.does("y").await;
        if case.wants_word {
            assert!(screen.contains("Not all of this change can be shown"), "{}:\n{screen}", case.name);
            assert!(screen.contains("Type \"allow\" to make the change"), "{}:\n{screen}", case.name);
            pixir.does("yes<Enter>").await;
            assert!(case.is_as_before(&workspace), "{}: another word does not allow it", case.name);
            pixir.does("<Backspace><Backspace><Backspace>allow<Enter>").await;
        }
        assert!(!case.is_as_before(&workspace), "{}: it is made", case.name);
    }
}

/// The counts that a result records, and that the model reads.
fn recorded(shell: &Shell) -> (Value, Value, String) {
    let log = entries(&shell.logs()[0]);
    let result = log.iter().find(|entry| entry["type"] == "tool_result").expect("a result");
    let change = &result["data"]["changes"][0];
    (
        change["added"].clone(),
        change["removed"].clone(),
        result["data"]["output"].as_str().unwrap_or_default().to_owned(),
    )
}

/// The preview that has the diff: the call's own, or that of its only step.
fn preview_of(asked: &Value) -> &Value {
    let plan = &asked["data"]["plan"];
    if plan["diff"].is_string() { plan } else { &plan["steps"][0] }
}

/// Broken builds: as above; one whose results count nothing where a line is long or a file large.
#[test]
fn a_host_gets_every_change_with_true_counts_and_the_word_is_asked_for() {
    for case in cases() {
        let shell = Shell::new(&[]);
        case.set_up(&shell.workspace());
        let script = json!({ "steps": [{ "calls": [{ "name": case.tool, "args": case.args }] }, { "text": "Done." }] });
        let mut host = Hosted::start(&shell, &script, &["--toolset", "both"]);
        host.ask("p", json!({ "type": "prompt", "text": "go" }));
        let asked = host.event("approval_requested");
        let preview = preview_of(&asked);
        let (added, removed) = case.counts;
        assert_eq!((&preview["added"], &preview["removed"]), (&json!(added), &json!(removed)), "{}", case.name);
        case.check(&visible(preview["diff"].as_str().expect("a diff")), "the plan");
        let decide = |word: Option<&str>| {
            let mut decide =
                json!({ "type": "decide", "call_id": asked["data"]["call_id"], "decision": { "answer": "allow" } });
            if let Some(word) = word {
                decide["word"] = json!(word);
            }
            decide
        };
        assert_eq!(asked["data"].get("confirm").is_some(), case.wants_word, "{}", case.name);
        if case.wants_word {
            let confirm = &asked["data"]["confirm"];
            assert!(
                confirm["unseen"][0].as_str().is_some_and(|it| it.ends_with("of table.txt are not shown")),
                "{confirm}"
            );
            let refused = host.ask("d0", decide(None));
            assert_eq!((&refused["ok"], &refused["code"]), (&json!(false), &json!("CONFIRMATION_NEEDED")), "{refused}");
            assert!(case.is_as_before(&shell.workspace()), "{}", case.name);
            assert_eq!(host.ask("d1", decide(Some("allow")))["ok"], true);
        } else {
            assert_eq!(host.ask("d1", decide(None))["ok"], true);
        }
        host.event("turn_ended");
        host.end();
        let (of_added, of_removed, output) = recorded(&shell);
        assert_eq!((of_added, of_removed), (json!(added), json!(removed)), "{}", case.name);
        assert!(output.contains(&format!("+{added} −{removed})")), "{}: {output}", case.name);
    }
}

/// Broken build: one that sends the sides of a change as they are, or leaves out what is not a line.
#[test]
fn an_editor_gets_every_change_without_what_hides_in_it() {
    for case in cases() {
        let shell = Shell::new(&[]);
        case.set_up(&shell.workspace());
        let steps = [json!({ "calls": [{ "name": case.tool, "args": case.args }] }), json!({ "text": "Done." })];
        let (mut editor, session) = opened(&shell, &steps, &["--toolset", "both"]);
        let prompt = editor.prompt(&session, "go");
        let (at, asked) = editor.asked(0, "session/request_permission");
        let content = asked["params"]["toolCall"]["content"].as_array().expect("content");
        let mut shown = String::new();
        for it in content {
            let lines = |side: &str, mark: &str| -> String {
                let text = it[side].as_str().unwrap_or_default();
                text.lines().map(|line| format!("{mark}{line}\n")).collect()
            };
            shown.push_str(&format!("{}{}", lines("oldText", "-"), lines("newText", "+")));
            shown.push_str(it["content"]["text"].as_str().unwrap_or_default());
        }
        let (added, removed) = case.counts;
        assert!(shown.contains(&format!("+{added} −{removed}")), "{}", case.name);
        let of_end = case.shows.iter().filter(|it| !it.starts_with("\\ No newline")).cloned().collect();
        Case { shows: of_end, ..case }.check(&shown, "the editor");
        editor.choose(&asked, "allow_once");
        if asked["params"]["toolCall"]["title"].as_str().is_some_and(|it| it.contains("table.txt")) {
            let (_, confirm) = editor.asked(at + 1, "session/request_permission");
            let title = confirm["params"]["toolCall"]["title"].as_str().unwrap_or_default();
            assert!(title.starts_with("Not all of this change can be shown: "), "{title}");
            editor.choose(&confirm, "reject_once");
        }
        assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
        assert_eq!(editor.close(), 0);
        assert!(shell.logs().len() == 1);
    }
}

/// Broken build: a change of the mode alone has an empty preview.
#[tokio::test]
async fn the_preview_of_an_undo_names_a_mode_that_changes_alone() {
    let chmod = calls("bash", json!({ "command": "chmod 755 run.sh" }));
    let mut pixir = Pixir::new(vec![chmod, says("Done.")], &[("run.sh", "echo\n")]);
    pixir.does("go<Enter>").await;
    pixir.does("<A-y>").await;
    let screen = pixir.does("/undo<Enter>").await;
    assert!(screen.contains("mode 755 → 644"), "{screen}");
}
