//! Slash commands in an editor: the Inputs of the action table without a screen.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{opened, script, writes};
use crate::editor::{Editor, able};
use crate::shell::{Shell, entries};

/// The text that pixir answers a slash command with; no question is asked.
fn told(editor: &mut Editor, session: &str, line: &str) -> String {
    let from = editor.seen.len();
    assert_eq!(editor.say(session, line), "end_turn", "{line}");
    chunks(editor, from)
}

fn chunks(editor: &Editor, from: usize) -> String {
    editor.seen[from..]
        .iter()
        .map(|it| &it["params"]["update"])
        .filter(|it| it["sessionUpdate"] == "agent_message_chunk")
        .filter_map(|it| it["content"]["text"].as_str())
        .collect()
}

/// The answer to a slash command that asks, and what it asked.
fn agreed(editor: &mut Editor, session: &str, line: &str, option: &str) -> (Value, String) {
    let from = editor.seen.len();
    let id = editor.prompt(session, line);
    let (_, asked) = editor.asked(from, "session/request_permission");
    editor.choose(&asked, option);
    assert_eq!(editor.response(id)["result"]["stopReason"], "end_turn", "{line}");
    (asked, chunks(editor, from))
}

fn facts(shell: &Shell, kind: &str) -> Vec<Value> {
    let log = shell.logs().into_iter().next().expect("a log");
    entries(&log).into_iter().filter(|it| it["type"] == kind).map(|it| it["data"].clone()).collect()
}

fn menu(editor: &Editor) -> BTreeSet<String> {
    let last = editor.updates("available_commands_update").pop().expect("a menu");
    let all = last["availableCommands"].as_array().expect("commands").iter();
    all.map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
}

/// Broken builds: a verb of the action table is neither in the menu nor answered; a command that needs a screen goes to the
/// model; the command of the shell that stands in for it does not exist.
#[test]
fn each_command_of_the_terminal_is_in_the_menu_or_says_what_does_the_same() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[], &[]);
    let schema = shell.run(["schema"]).document();
    let table = schema["interface"].as_array().expect("the action table");
    let verbs: Vec<&str> = table
        .iter()
        .filter_map(|action| action["command"].as_str())
        .filter_map(|command| command.split(' ').next()?.strip_prefix('/'))
        .collect();
    assert!(verbs.len() > 40, "{verbs:?}");
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "available_commands_update");
    let menu = menu(&editor);
    let (mut named, mut tried) = (0, BTreeSet::new());
    for verb in verbs.iter().filter(|verb| !menu.contains(**verb)) {
        let text = told(&mut editor, &session, &format!("/{verb}"));
        let is_answer = text.contains("the screen of pixir in a terminal");
        assert!(is_answer, "/{verb} is not in the menu, and was answered: {text}");
        // Each command of the shell that a text names exists.
        for (at, _) in text.match_indices("pixir ") {
            let words = text[at..].split([',', '.', ' ']).skip(1);
            let command: Vec<&str> =
                words.take_while(|word| *word != "or" && *word != "in" && !word.is_empty()).collect();
            if command.is_empty() || !tried.insert(command.join(" ")) {
                continue;
            }
            let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
            let ran = shell.run(&args);
            assert_eq!(ran.code, 0, "{}: {}", command.join(" "), ran.stderr);
            named += 1;
        }
    }
    assert!(named >= 8, "commands of the shell that were named: {tried:?}");
    assert!(facts(&shell, "user_message").is_empty(), "no model was asked");
    for verb in ["trust", "tree", "fork", "label", "pin", "permissions", "plan", "agents", "rewind", "mcp"] {
        assert!(menu.contains(verb), "{verb}: {menu:?}");
    }
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a label, a pin or a rewind goes to the model, or is about another turn; a rewind leaves the files as they
/// are without asking.
#[test]
fn turns_are_shown_labelled_pinned_and_gone_back_to() {
    let shell = Shell::new(&[]);
    let steps = [json!({ "text": "Hello." }), writes("a.txt", "one\n"), json!({ "text": "Written." })];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    for (line, text) in [
        ("/tree", "This session has no messages yet."),
        ("/label start", "There is no turn to label yet."),
        ("/pin", "There is no turn to pin yet."),
        ("/fork", "There is nothing to fork yet."),
        ("/rewind", "/rewind needs the number or the label of a turn; /tree shows them."),
    ] {
        assert_eq!(told(&mut editor, &session, line), text, "{line}");
    }
    assert_eq!(editor.say(&session, "hello"), "end_turn");
    let label = told(&mut editor, &session, "/label start");
    assert_eq!(label, "Turn 1 is labelled start; /rewind start comes back to it.");
    assert_eq!(editor.say(&session, "write it"), "end_turn");
    assert_eq!(shell.read("a.txt"), "one\n");
    let pinned = told(&mut editor, &session, "/pin");
    assert_eq!(pinned, "Turn 2 is pinned: compactions keep it word for word. /pin again unpins it.");
    let tree = told(&mut editor, &session, "/tree");
    let lines: Vec<&str> = tree.lines().filter(|line| line.starts_with("turn ")).collect();
    assert!(lines[0].contains("[start] hello") && lines[1].contains("pinned"), "{tree}");

    let (asked, refused) = agreed(&mut editor, &session, "/rewind start", "reject_once");
    assert_eq!(asked["params"]["toolCall"]["title"], "rewind a.txt", "{asked}");
    assert_eq!(refused, "Nothing was changed.");
    assert_eq!(shell.read("a.txt"), "one\n");
    let (_, back) = agreed(&mut editor, &session, "/rewind start", "allow_once");
    assert_eq!(back, "The conversation goes on behind turn 1; /tree shows what came later.");
    assert!(!shell.workspace().join("a.txt").exists(), "the file is gone");
    assert_eq!(told(&mut editor, &session, "/rewind 1"), "The conversation is already there.");
    assert_eq!(
        told(&mut editor, &session, "/rewind 9"),
        "There is no turn 9, and no label of that name; /tree shows them."
    );
    assert_eq!(told(&mut editor, &session, "/label"), "Turn 1 has no label any more.");
    assert_eq!(editor.close(), 0);
}

/// Broken build: `/fork` is answered with nothing, so the user does not learn the id of the new session.
#[test]
fn a_fork_is_named_and_can_be_opened() {
    let shell = Shell::new(&[]);
    let (mut editor, session) = opened(&shell, &[json!({ "text": "Hello." }), json!({ "text": "Here." })], &[]);
    assert_eq!(editor.say(&session, "hello"), "end_turn");
    let text = told(&mut editor, &session, "/fork");
    let id =
        text.strip_prefix("The new session is ").and_then(|rest| rest.split(';').next()).expect("an id").to_owned();
    assert_ne!(id, session);
    let from = editor.seen.len();
    let load = json!({ "sessionId": id, "cwd": shell.workspace(), "mcpServers": [] });
    assert!(editor.ask("session/load", load)["result"]["modes"].is_object());
    assert_eq!(chunks(&editor, from), "Hello.");
    assert_eq!(editor.say(&id, "where are we?"), "end_turn");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: a task is planned in the mode of the session; planning goes on behind /plan off.
#[test]
fn a_task_is_planned_and_changes_nothing() {
    let shell = Shell::new(&[]);
    let steps = [
        writes("a.txt", "one\n"),
        json!({ "text": "I may not." }),
        writes("a.txt", "two\n"),
        json!({ "text": "Done." }),
    ];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    let none = told(&mut editor, &session, "/plan");
    assert_eq!(none, "There is no plan yet; /plan TASK plans without changing anything.");
    assert_eq!(told(&mut editor, &session, "/plan off"), "The session is not planning; /plan on begins it.");
    assert_eq!(told(&mut editor, &session, "/plan write a file"), "I may not.");
    assert!(!shell.workspace().join("a.txt").exists(), "a plan writes nothing");
    assert_eq!(facts(&shell, "user_message")[0]["text"], "write a file");
    assert_eq!(told(&mut editor, &session, "/plan on"), "The session is planning already; /plan off ends it.");
    assert_eq!(told(&mut editor, &session, "/plan off"), "The session is not planning any more.");
    assert_eq!(editor.say(&session, "go on"), "end_turn");
    assert_eq!(shell.read("a.txt"), "two\n");
    assert_eq!(editor.close(), 0);
}

/// Broken builds: what the workspace brings along is in force without an answer, or after a refusal; the answer is about
/// something else than what was shown.
#[test]
fn trust_is_asked_with_what_the_workspace_brings_along() {
    let skill = "---\nname: lint\ndescription: Runs the linters\n---\nLint.\n";
    let shell = Shell::new(&[(".pixir/skills/lint/SKILL.md", skill)]);
    let (mut editor, session) = opened(&shell, &[], &[]);
    editor.until(0, |line| line["params"]["update"]["sessionUpdate"] == "available_commands_update");
    assert!(!menu(&editor).contains("lint"));
    let (asked, text) = agreed(&mut editor, &session, "/trust", "reject_once");
    let shown = asked["params"]["toolCall"]["content"][0]["content"]["text"].as_str().expect("a text");
    assert!(shown.contains(".pixir/skills/lint") && shown.contains("(new)"), "{shown}");
    assert_eq!(text, "What was not trusted before stays without effect.");
    let lint = editor.prompt(&session, "/lint");
    let refused = editor.response(lint);
    assert_eq!(refused["error"]["data"]["code"], "PERMISSION_DENIED", "{refused}");

    let (_, text) = agreed(&mut editor, &session, "/trust", "allow_once");
    assert_eq!(text, "It is in force, as it is now.");
    assert!(menu(&editor).contains("lint"), "the menu has what is trusted");
    let from = editor.seen.len();
    let known = told(&mut editor, &session, "/trust");
    assert!(known.contains("(in force)"), "{known}");
    assert!(
        editor.seen[from..].iter().all(|line| line["method"] != "session/request_permission"),
        "nothing is left to ask"
    );
    let revoked = told(&mut editor, &session, "/trust revoke");
    assert_eq!(revoked, "Nothing that this workspace brings along is in force any more.");
    assert!(!menu(&editor).contains("lint"), "the menu has nothing that is not trusted");
    let (_, text) = agreed(&mut editor, &session, "/trust", "reject_always");
    assert_eq!(text, "Nothing that this workspace brings along is in force, and pixir does not ask again.");
    assert_eq!(editor.close(), 0);
}

/// Broken build: a list is empty although there is something to list.
#[test]
fn rules_agents_servers_and_the_plan_are_lists() {
    let shell = Shell::new(&[]);
    let made = shell.run(["permissions", "add", "bash(cargo test *)"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let plan = json!({ "calls": [{ "name": "update_plan", "args": { "items": [
        { "step": "Read", "status": "completed" }, { "step": "Write", "status": "in_progress" },
    ] } }] });
    let spawn = json!({ "calls": [{ "name": "spawn_agent", "args": { "task": "Count to three", "name": "counter", "role": "explorer" } }] });
    let steps = [plan, spawn, json!({ "of": "Count to three", "text": "1, 2, 3" }), json!({ "text": "It counts." })];
    let mut editor = Editor::start(&shell, &script(&steps), &["--mode", "auto"]);
    editor.initialize(able());
    let session = editor.session(&shell.workspace());
    let rules = told(&mut editor, &session, "/permissions");
    assert!(rules.contains("bash(cargo test *)") && rules.contains("`pixir permissions revoke ID`"), "{rules}");
    assert_eq!(told(&mut editor, &session, "/agents"), "There are no agents.");
    assert_eq!(told(&mut editor, &session, "/mcp"), "There are no MCP servers; `pixir mcp add` adds one.");
    assert_eq!(editor.say(&session, "count"), "end_turn");
    assert_eq!(told(&mut editor, &session, "/plan"), "- [x] Read\n- [ ] (now) Write");
    let agents = told(&mut editor, &session, "/agents");
    assert!(agents.contains("counter  explorer · completed") && agents.contains("Count to three"), "{agents}");
    assert_eq!(editor.close(), 0);
}

/// Broken build: what a slash command showed is carried out after the client has cancelled it.
#[test]
fn a_cancelled_rewind_changes_nothing() {
    let shell = Shell::new(&[]);
    let steps = [json!({ "text": "Hello." }), writes("a.txt", "one\n"), json!({ "text": "Written." })];
    let (mut editor, session) = opened(&shell, &steps, &["--mode", "auto"]);
    for text in ["hello", "write"] {
        assert_eq!(editor.say(&session, text), "end_turn");
    }
    for _ in 0..10 {
        let from = editor.seen.len();
        let id = editor.prompt(&session, "/rewind 1");
        let (_, asked) = editor.asked(from, "session/request_permission");
        editor.notify("session/cancel", json!({ "sessionId": session }));
        editor.choose(&asked, "allow_once");
        assert_eq!(editor.response(id)["result"]["stopReason"], "cancelled");
    }
    assert_eq!(shell.read("a.txt"), "one\n");
    assert!(facts(&shell, "head_moved").is_empty());
    assert_eq!(editor.close(), 0);
}
