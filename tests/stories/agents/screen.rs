//! Agents on the screen: their lines, their questions, their list, and the way into one and back.

use serde_json::{Value, json};

use pixir_core::provider::script::{Script, Step};

use crate::driver::Pixir;
use crate::shell::Shell;
use crate::stories::mouse::place_of;

fn script(steps: Value) -> Script {
    let steps: Vec<Step> = serde_json::from_value(steps).expect("steps");
    Script { steps, ..Script::default() }
}

fn spawn(name: &str, task: &str, waits: bool) -> Value {
    json!({ "name": "spawn_agent", "args": { "task": task, "name": name, "wait": waits } })
}

fn write(path: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": "written\n" } })
}

/// The same agents run until the story ends, so that a frame does not depend on the time.
fn hanging(tasks: &[&str]) -> Vec<Value> {
    tasks.iter().map(|task| json!({ "of": task, "text": "I look around.", "hang": true })).collect()
}

/// A frame without what the clock changes.
fn still(screen: &str) -> String {
    let is_clock = |word: &str| {
        word.split_once(':').is_some_and(|(a, b)| {
            !a.is_empty() && b.len() == 2 && (a.to_owned() + b).chars().all(|c| c.is_ascii_digit())
        })
    };
    let words =
        |line: &str| line.split(' ').map(|it| if is_clock(it) { "0:00" } else { it }).collect::<Vec<_>>().join(" ");
    screen.lines().map(words).collect::<Vec<_>>().join("\n")
}

/// Broken builds: the second question replaces the first; the card does not say who asks.
#[tokio::test]
async fn questions_of_two_agents_are_one_queue_and_each_answer_is_for_the_one_that_is_shown() {
    let steps = json!([
        { "calls": [spawn("first", "Write one", true), spawn("second", "Write two", true)] },
        { "of": "Write one", "calls": [write("one.txt")] },
        { "of": "Write one", "text": "One is **written**." },
        { "of": "Write two", "calls": [write("two.txt")] },
        { "of": "Write two", "text": "I may not." },
        { "text": "Both have answered." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("1 of 2").await;
    let screen = pixir.screen.screen();
    let first_asks = screen.contains("first asks · worker");
    assert!(first_asks || screen.contains("second asks · worker"), "{screen}");
    let (allowed, refused) = if first_asks { ("one.txt", "two.txt") } else { ("two.txt", "one.txt") };
    pixir.screen.keys("<A-y>").await;
    pixir.screen.until(if first_asks { "second asks" } else { "first asks" }).await;
    pixir.screen.keys("<A-n>").await;
    pixir.screen.until("Both have answered.").await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.file(allowed), "written\n");
    assert!(!pixir.path(refused).exists());
    let screen = pixir.screen.screen();
    assert!(!screen.contains("answer of"), "the model's fence is not shown:\n{screen}");
    assert!(screen.contains("One is written.") && screen.contains("1 call"), "{screen}");
}

/// Broken builds: an agent has no line; five agents have five lines; agents stay after the end of their Turn.
#[tokio::test]
async fn eight_agents_are_one_line_and_four_have_a_line_each() {
    let tasks = ["Task A", "Task B", "Task C", "Task D", "Task E", "Task F", "Task G", "Task H"];
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let calls: Vec<Value> = names.iter().zip(tasks).map(|(name, task)| spawn(name, task, true)).collect();
    let mut steps = vec![json!({ "calls": calls })];
    steps.extend(hanging(&tasks));
    let mut pixir = Pixir::scripted(script(Value::Array(steps)), &[], 80, 24);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("8 agents").await;
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        pixir.screen.resize(columns, rows);
        let screen = pixir.screen.screen();
        assert!(screen.contains("8 agents") && screen.contains("Alt+G shows them"), "{screen}");
    }
    pixir.screen.resize(80, 24);
    pixir.screen.keys("<A-g>").await;
    // The last one may still wait for a place.
    pixir.screen.until("h  worker  Task H").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("a ") && screen.contains("Task H") && screen.contains("Enter open"), "{screen}");
    pixir.screen.keys("/task c<Enter>").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("── c ") && !screen.contains("Task H "), "{screen}");
    pixir.screen.keys("x").await;
    pixir.screen.until("stopped").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("interrupted").await;
    pixir.screen.until_idle().await;
    let screen = still(&pixir.screen.screen());
    assert!(!screen.contains("8 agents"), "after the turn they are gone from the dock:\n{screen}");
}

/// Broken builds: the tab is empty; Enter there opens the diff.
#[tokio::test]
async fn the_side_panel_keeps_agents_on_the_screen_and_enter_opens_their_list() {
    let mut steps =
        vec![json!({ "calls": [spawn("scout", "Look around", false)] }), json!({ "text": "It is under way." })];
    steps.extend(hanging(&["Look around"]));
    let mut pixir = Pixir::scripted(script(Value::Array(steps)), &[], 140, 30);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("<A-p>").await;
    pixir.screen.until("Plan Changes Tree Agents Context").await;
    pixir.screen.keys("<Tab><Tab>").await;
    for _ in 0..3 {
        pixir.screen.keys("<Right>").await;
    }
    pixir.screen.until("│ ● scout").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("── scout").await;
}

/// Broken builds: the prompt goes to the user's own session; entering closes it; Esc leads nowhere.
#[tokio::test]
async fn a_child_is_entered_told_something_and_left_and_main_is_as_it_was() {
    let steps = json!([
        { "calls": [spawn("scout", "Look around", true)] },
        { "of": "Look around", "text": "There is a cellar." },
        { "text": "The scout is back." },
        { "of": "Look around", "text": "It is dark down there." },
        { "text": "We go on." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.does("go<Enter>").await;
    let main = pixir.screen.session().cloned();
    pixir.screen.keys("a draft<A-g>").await;
    pixir.screen.until("There is a cellar.").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("main › scout").await;
    // On a small screen the name of the agent is whole, and the folder makes way.
    pixir.screen.resize(44, 20);
    let header = pixir.screen.screen().lines().next().unwrap_or_default().to_owned();
    assert!(header.contains("pixir  main › scout"), "{header}");
    pixir.screen.resize(100, 30);
    pixir.screen.until_idle().await;
    assert_ne!(pixir.screen.session(), main.as_ref());
    assert_eq!(pixir.screen.draft(), "", "the draft belongs to main");
    pixir.screen.keys("look into it<Enter>").await;
    pixir.screen.until("It is dark down there.").await;
    pixir.screen.until_idle().await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("close").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("── scout "), "the list is open at the same row:\n{screen}");
    assert_eq!(pixir.screen.session(), main.as_ref());
    pixir.screen.keys("<Esc>").await;
    assert_eq!(pixir.screen.draft(), "a draft");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("We go on."), "the session was never closed:\n{screen}");
    let prompts: Vec<String> = pixir
        .log()
        .iter()
        .filter(|it| it["type"] == "user_message")
        .map(|it| it["data"]["text"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(prompts, ["go", "a draft"], "what was typed at the child is not in main's log");
}

/// Broken builds: Esc at the idle prompt opens the tree while agents run; one Esc stops them unannounced.
#[tokio::test]
async fn agents_in_the_background_stop_at_the_next_announced_esc() {
    let steps = json!([
        { "calls": [spawn("slow", "Take your time", false)] },
        { "text": "It is under way." },
        { "of": "Take your time", "text": "I look.", "hang": true },
        { "text": "It was stopped." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.screen.until("1 agent").await;
    pixir.screen.keys("<Esc>").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("Esc again stops the agent that runs"), "{screen}");
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("slow reports: interrupted").await;
}

/// Broken builds: a steer is not shown; it goes to the session on the screen; the text is gone when the list opens again; a text
/// that the agent was told before counts as read.
#[tokio::test]
async fn a_steer_from_the_list_shows_its_text_until_the_agent_has_it() {
    let steps = json!([
        { "calls": [spawn("slow", "Go on.", false)] },
        { "text": "It is under way." },
        { "of": "Go on.", "text": "I look.", "delay_ms": 2500 },
        { "of": "Go on.", "text": "I have read it.", "hang": true },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.screen.keys("<A-g>").await;
    pixir.screen.until("── slow").await;
    pixir.screen.keys("sx and / are letters here<Enter>").await;
    pixir.screen.until("» x and / are letters here  queued").await;
    pixir.screen.keys("sGo on.<Enter>").await;
    pixir.screen.until("» Go on.  queued").await;
    pixir.screen.keys("<Esc><A-g>").await;
    pixir.screen.until("── slow").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("» x and / are letters here  queued") && screen.contains("» Go on.  queued"), "{screen}");
    pixir.screen.until("» Go on.  delivered").await;
    pixir.screen.until("» x and / are letters here  delivered").await;
    let prompts = pixir.log().iter().filter(|it| it["type"] == "user_message").count();
    assert_eq!(prompts, 1, "main was told nothing");
}

/// Broken builds: the agents that have ended leave the dock, and the clock of the Turn begins anew, once the user has looked at
/// an agent.
#[tokio::test]
async fn a_look_at_an_agent_changes_nothing_of_what_the_session_shows_of_its_turn() {
    let steps = json!([
        { "calls": [spawn("quick", "Be quick", true), spawn("slow", "Take your time", true)] },
        { "of": "Be quick", "text": "Done already.", "delay_ms": 2100 },
        { "of": "Take your time", "text": "I look.", "hang": true },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("✓ quick").await;
    pixir.screen.keys("/agents slow<Enter>").await;
    pixir.screen.until("main › slow").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("quick").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("✓ quick") && screen.contains("● slow"), "both are in the dock:\n{screen}");
    let status = screen.lines().last().expect("a line");
    let seconds =
        status.split("working ").nth(1).and_then(|it| it.split('s').next()).and_then(|it| it.parse::<u32>().ok());
    assert!(seconds.is_some_and(|it| it >= 2), "it runs for two seconds and more:\n{screen}");
}

/// Broken builds: a rule reaches the agent that asked alone, whatever the card says; the card does not say whom it is about; it
/// compares the rule with what another session did.
#[tokio::test]
async fn a_rule_is_saved_for_the_agent_that_asks_or_for_all_of_the_session() {
    for (keys, for_all) in [("<Enter>", false), ("<Down><Down><Enter>", true)] {
        let bash = |command: &str| json!({ "name": "bash", "args": { "command": command } });
        let steps = json!([
            { "calls": [spawn("first", "Make both", true)] },
            { "of": "Make both", "calls": [bash("touch a b")] },
            { "of": "Make both", "calls": [bash("touch c d")] },
            { "of": "Make both", "text": "Made." },
            { "calls": [spawn("second", "Make one", true)] },
            { "of": "Make one", "calls": [bash("touch c d")] },
            { "of": "Make one", "text": "Made too." },
            { "text": "All is made." },
        ]);
        let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
        pixir.screen.until_idle().await;
        pixir.screen.keys("go<Enter>").await;
        pixir.screen.until("┏ Run touch a b").await;
        pixir.screen.keys("<A-y>").await;
        pixir.screen.until("┏ Run touch c d").await;
        pixir.screen.keys("<A-a>").await;
        pixir.screen.until("the one call that asked before").await;
        let screen = pixir.screen.screen();
        assert!(screen.contains("Allow always · first asks"), "{screen}");
        assert!(screen.contains("for first only") && screen.contains("in this session, all agents"), "{screen}");
        assert!(screen.contains("Commands of first that it would have allowed"), "{screen}");
        pixir.screen.keys(keys).await;
        if !for_all {
            pixir.screen.until("second asks").await;
            pixir.screen.keys("<A-y>").await;
        }
        pixir.screen.until("All is made.").await;
        let asked = pixir.log().iter().filter(|it| it["type"] == "subagent_event").count();
        assert!(asked > 0 && pixir.path("c").exists());
    }
}

/// Broken builds: the forest leaves agents out; Enter opens the log of an agent that is open already.
#[tokio::test]
async fn the_tree_shows_an_agent_below_its_session_and_leads_to_its_screen() {
    let steps = json!([
        { "calls": [spawn("scout", "Look around", true)] },
        { "of": "Look around", "text": "There is a cellar." },
        { "text": "The scout is back." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 100, 30);
    pixir.does("go<Enter>").await;
    pixir.does("<C-t><Tab>").await;
    pixir.screen.until("╰─● ↳ Look around").await;
    pixir.screen.keys("<Down><Enter>").await;
    pixir.screen.until("main › scout").await;
    pixir.screen.until("There is a cellar.").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("The scout is back.").await;
}

/// The list, an approval of an agent and an agent's screen, at three sizes.
#[tokio::test]
async fn agents_at_three_sizes() {
    let steps = json!([
        { "calls": [spawn("scribe", "Write down what you find", true), spawn("scout", "Look around", true)] },
        { "of": "Write down", "calls": [write("found.txt")] },
        { "of": "Look around", "text": "There is a **cellar**.", "hang": true },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[], 80, 24);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("scribe asks").await;
    pixir.screen.until("● scout").await;
    for (columns, rows) in [(80, 24), (120, 40), (200, 60)] {
        pixir.screen.resize(columns, rows);
        let screen = pixir.screen.screen();
        assert!(screen.contains("scribe asks · worker") && screen.contains("found.txt"), "{screen}");
        assert!(screen.contains("● waiting for you"), "whoever asks, the user is waited for:\n{screen}");
        pixir.screen.keys("<A-g>").await;
        pixir.screen.until("Write down what you find").await;
        let screen = pixir.screen.screen();
        assert!(screen.contains("2 agents · 1 asks"), "{screen}");
        pixir.screen.keys("<Down><Enter>").await;
        pixir.screen.until("main › scout").await;
        let screen = pixir.screen.screen();
        assert!(screen.contains("scribe asks"), "what another agent asks is asked here too:\n{screen}");
        pixir.screen.keys("<Esc>").await;
        pixir.screen.until("── scout").await;
        pixir.screen.keys("<Esc>").await;
    }
}

/// Broken builds: the card does not open; a conflict is decided by pixir; Esc leaves the call waiting for ever.
#[tokio::test]
async fn files_of_a_copy_are_decided_one_by_one_and_what_is_left_for_later_waits_in_the_list() {
    let put = |path: &str, content: &str| json!({ "name": "write", "args": { "path": path, "content": content } });
    let steps = json!([
        { "calls": [json!({ "name": "spawn_agent", "args": { "task": "Write it", "name": "scribe", "isolation": "copy" } })] },
        { "of": "Write it", "calls": [put("list.txt", "one\n2\n3\n"), put("new.txt", "new\n")] },
        { "of": "Write it", "text": "Written." },
        { "text": "I know." },
    ]);
    let mut pixir = Pixir::scripted(script(steps), &[("list.txt", "1\n2\n3\n")], 100, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("scribe asks").await;
    pixir.screen.keys("<A-y>").await;
    pixir.screen.until("Write new.txt").await;
    // The user changes the same line while the agent asks.
    std::fs::write(pixir.path("list.txt"), "eins\n2\n3\n").expect("write");
    pixir.screen.keys("<A-y>").await;
    pixir.screen.until("scribe changed 2 files in its copy").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("list.txt") && screen.contains("conflict: k, o or e"), "{screen}");
    assert!(screen.contains("Both changed the same lines"), "{screen}");
    // A click shows a file, and two of them write nothing.
    let (column, row) = place_of(&pixir, "new.txt");
    let twice = format!("\x1b[<0;{column};{row}M\x1b[<0;{column};{row}m").repeat(2);
    pixir.screen.bytes(twice.as_bytes()).await;
    pixir.screen.until("▸ new.txt").await;
    let screen = pixir.screen.screen();
    assert!(screen.contains("▸ new.txt") && screen.contains("scribe changed 2 files"), "{screen}");
    // Later: the model goes on without them.
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("I know.").await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.file("list.txt"), "eins\n2\n3\n");
    assert!(!pixir.path("new.txt").exists());
    pixir.screen.keys("<A-g>").await;
    pixir.screen.until("2 files wait").await;
    pixir.screen.keys("d").await;
    pixir.screen.until("scribe changed 2 files in its copy").await;
    pixir.screen.keys("o").await;
    pixir.screen.until("the agent's").await;
    pixir.screen.keys("<Enter>").await;
    pixir.screen.until("── scribe").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("2 files of scribe are in the workspace").await;
    assert_eq!((pixir.file("list.txt"), pixir.file("new.txt")), ("one\n2\n3\n".into(), "new\n".into()));
}

/// Broken build: what agents cost is in no line, or not in the sum of the session.
#[tokio::test]
async fn what_agents_cost_is_shown_in_their_lines_in_the_list_and_in_the_sum() {
    let price = json!({ "input": 1.0, "output": 5.0 });
    let usage = json!({ "input": 1_000_000, "output": 100_000, "cached": 0 });
    let steps = json!([
        { "calls": [spawn("scout", "Look around", true), spawn("slow", "Take your time", true)] },
        { "of": "Look around", "text": "Seen.", "usage": usage },
        { "of": "Take your time", "text": "I look.", "hang": true },
    ]);
    let script: Script = serde_json::from_value(json!({ "price": price, "steps": steps })).expect("a script");
    let mut pixir = Pixir::scripted(script, &[], 120, 30);
    pixir.screen.until_idle().await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("✓ scout").await;
    let screen = pixir.screen.screen();
    let line = screen.lines().rfind(|line| line.contains("✓ scout")).expect("its line");
    assert!(line.contains("~$1.50"), "{screen}");
    assert!(screen.lines().last().is_some_and(|line| line.contains("$1.50")), "the sum of the session:\n{screen}");
    pixir.screen.keys("<A-g>").await;
    pixir.screen.until("1.1M tokens · ~$1.50").await;
}

/// The frames of a script of `docs/pictures`, drawn at this size.
pub(in crate::stories) fn drawn(name: &str, size: &str) -> impl Fn(&str) -> String + use<> {
    let pictures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    let shell = Shell::new(&[]);
    let copied = std::process::Command::new("cp")
        .args(["-r", &format!("{}/.", pictures.join("slugify").display())])
        .arg(shell.workspace())
        .status();
    assert!(copied.expect("cp").success());
    let changes: String = (0..60).map(|n| format!("- 8.{n}: an entry\n")).collect();
    shell.write("CHANGES.md", &changes);
    let workflows = shell.home().parent().expect("a parent").join(".config/pixir/workflows");
    std::fs::create_dir_all(&workflows).expect("mkdir");
    std::fs::copy(pictures.join("workflow.toml"), workflows.join("release.toml")).expect("copy");
    let frames = shell.workspace().with_file_name("frames");
    let file = |end: &str| pictures.join(format!("{name}.{end}")).display().to_string();
    let ran = shell.run([
        "tui",
        "--size",
        size,
        "--frames",
        frames.to_str().expect("text"),
        "--script",
        &file("txt"),
        "--provider",
        &format!("script:{}", file("json")),
        "--mode",
        "ask",
        "--config",
        "agents.depth=2",
    ]);
    assert_eq!(ran.code, 0, "{name} at {size}: {ran:?}");
    move |frame| {
        let _folder = &shell;
        std::fs::read_to_string(frames.join(format!("{frame}.txt"))).expect("a frame")
    }
}

/// Broken builds: the card does not say for whom the agent of an agent asks; a card is cut where the terminal is small; a choice
/// of the adoption is left out.
#[test]
fn the_pictures_of_agents_are_drawn_at_every_size() {
    for (columns, rows) in [(60, 20), (80, 24), (120, 40), (200, 60)] {
        let size = format!("{columns}x{rows}");
        let frame = drawn("tree-of-agents", &size);
        let asks = frame("asks");
        assert!(asks.contains("8 agents · 1 done · 1 asks"), "{asks}");
        let card: Vec<&str> = asks.lines().skip_while(|line| !line.contains('┏')).collect();
        let card: Vec<&str> = card.iter().take_while(|line| line.contains(['┏', '┃', '┗'])).copied().collect();
        insta::assert_snapshot!(format!("a_grandchild_asks_{size}"), card.join("\n"));
        let list = frame("list");
        let of_list = ["8 agents · 1 done · 1 asks", "── worker-2 ‹ worker-1 ", "asks: write extra.txt"];
        assert!(of_list.iter().all(|it| list.contains(it)), "{list}");
        let entered = frame("entered");
        assert!(entered.contains("main › worker-1") && entered.contains("worker-2 ‹ worker-1 asks"), "{entered}");
        let frame = drawn("copies", &size);
        let adopt = frame("adopt");
        // Above stands the folder of this test, below the clock.
        let card: Vec<&str> = adopt.lines().skip(1).take(rows - 2).collect();
        insta::assert_snapshot!(format!("adoption_with_a_conflict_{size}"), card.join("\n"));
    }
}
