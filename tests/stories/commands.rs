//! Slash commands: what each does, what completes its argument, when it is available, what an unknown one is told.

use serde_json::json;

use crate::driver::{Pixir, calls, says};
use crate::pty::Terminal;
use crate::server::{Dialect, Server, text};
use crate::shell::Shell;

fn inputs(pixir: &Pixir, kind: &str) -> Vec<serde_json::Value> {
    let of_kind = pixir.log().into_iter().filter(|entry| entry["type"] == kind);
    of_kind.map(|entry| entry["data"].clone()).collect()
}

/// Broken build: `/rewind 1` goes to the node before the Turn.
#[tokio::test]
async fn rewind_goes_to_the_end_of_a_turn_by_its_number_or_its_label() {
    let mut pixir = Pixir::new(vec![says("One."), says("Two."), says("Three.")], &[]);
    pixir.does("first<Enter>").await;
    let screen = pixir.does("/label good start<Enter>").await;
    assert!(screen.contains("turn 1 is labelled good start"), "{screen}");
    pixir.does("second<Enter>").await;
    let screen = pixir.does("/rewind 1<Enter>").await;
    assert!(screen.contains("One.") && !screen.contains("Two."), "{screen}");
    let screen = pixir.does("/rewind 1<Enter>").await;
    assert!(screen.contains("the conversation is already there"), "{screen}");
    let screen = pixir.does("/rewind ").await;
    assert!(
        screen.contains("\n 2  second") && screen.contains("\n 1  ⚑ good start · first"),
        "each beside its prompt:\n{screen}"
    );
    let screen = pixir.does("2<Enter>").await;
    assert!(screen.contains("Two."), "{screen}");
    let screen = pixir.does("/rewind Good Start<Enter>").await;
    assert!(screen.contains("One.") && !screen.contains("Two."), "by its label:\n{screen}");
    let screen = pixir.does("/rewind 9<Enter>").await;
    assert!(screen.contains("there is no turn 9"), "{screen}");
    assert_eq!(inputs(&pixir, "head_moved").len(), 3);
    let screen = pixir.does("<C-c>/rewind<Enter>").await;
    assert!(screen.contains("Tree") && screen.contains("second"), "without a turn it opens the tree:\n{screen}");
}

#[tokio::test]
async fn the_last_turn_is_labelled_and_pinned_and_neither_again() {
    let mut pixir = Pixir::new(vec![says("One.")], &[]);
    let screen = pixir.does("/pin<Enter>").await;
    assert!(screen.contains("there is no turn to pin yet"), "{screen}");
    pixir.does("first<Enter>").await;
    pixir.does("/label start<Enter>").await;
    pixir.does("/label<Enter>").await;
    let screen = pixir.does("/pin<Enter>").await;
    assert!(screen.contains("turn 1 is pinned"), "{screen}");
    let screen = pixir.does("/pin<Enter>").await;
    assert!(screen.contains("turn 1 is not pinned any more"), "{screen}");
    let labels = inputs(&pixir, "label");
    let texts: Vec<_> = labels.iter().filter_map(|it| it["text"].as_str()).collect();
    assert_eq!(texts, ["start", ""]);
    let pins: Vec<_> = labels.iter().filter_map(|it| it["pinned"].as_bool()).collect();
    assert_eq!(pins, [true, true, false, false], "its prompt and its answer");
}

/// Broken build: `/plan` sends the prompt in the mode that was set before.
#[tokio::test]
async fn plan_begins_planning_with_a_task_shows_the_plan_afterwards_and_ends_it() {
    let steps =
        json!({"items": [{"step": "Read the parser", "status": "completed"}, {"step": "Fix it", "status": "pending"}]});
    let mut pixir = Pixir::new(vec![calls("update_plan", steps), says("Shall I?")], &[]);
    let screen = pixir.does("/plan<Enter>").await;
    assert!(screen.contains("no plan yet; /plan <task> plans without changing anything"), "{screen}");
    pixir.does("/plan mend the parser<Enter>").await;
    let kinds = pixir.kinds();
    let at = |kind: &str| kinds.iter().position(|it| it == kind).expect(kind);
    assert!(at("settings_changed") < at("user_message"), "{kinds:?}");
    assert_eq!(inputs(&pixir, "settings_changed")[0], json!({"role": "plan"}));
    let screen = pixir.does("/plan<Enter>").await;
    assert!(
        screen.contains("1 of 2 done") && screen.contains("✓ Read the parser") && screen.contains("○ Fix it"),
        "{screen}"
    );
    pixir.does("<Esc>/plan off<Enter>").await;
    assert_eq!(inputs(&pixir, "settings_changed")[1], json!({"role": ""}));
    let screen = pixir.does("/plan off<Enter>").await;
    assert!(screen.contains("not planning; /plan on begins it"), "{screen}");
}

/// Broken build: the folder is read without a rule.
#[tokio::test]
async fn a_folder_outside_the_workspace_is_read_after_add_dir() {
    let read = |path: &str| calls("read", json!({"path": path}));
    let mut pixir =
        Pixir::new(vec![read("../lib/notes.txt"), says("Read.")], &[("../lib/notes.txt", "the secret of tea\n")]);
    let screen = pixir.does("/add-dir ../nowhere<Enter>").await;
    assert!(screen.contains("it cannot be opened"), "{screen}");
    let screen = pixir.does("<C-c>/add-dir src/..<Enter>").await;
    assert!(screen.contains("is not added"), "{screen}");
    let screen = pixir.does("<C-c>/add-dir ../lib<Enter>").await;
    assert!(screen.contains("without asking, in this session"), "{screen}");
    let screen = pixir.does("what is there<Enter>").await;
    assert!(screen.contains("Read."), "no approval was asked for:\n{screen}");
    let result = &inputs(&pixir, "tool_result")[0];
    assert!(result["output"].as_str().expect("text").contains("the secret of tea"), "{result}");
    assert_eq!(inputs(&pixir, "permission_decision")[0]["by"], "rule");
}

#[tokio::test]
async fn a_file_is_attached_or_mentioned_by_its_path() {
    let mut pixir = Pixir::new(vec![], &[("src/main.rs", "fn main() {}\n")]);
    let screen = pixir.does("/attach<Enter>").await;
    assert!(screen.contains("/attach needs <file>"), "{screen}");
    pixir.screen.keys("main").await;
    pixir.screen.until("main.rs").await;
    pixir.does("<Tab>").await;
    assert_eq!(pixir.screen.draft(), "/attach src/main.rs");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.draft(), "@src/main.rs ");
}

/// Broken build: Enter runs the command with the letters that were typed, and not with the candidate.
#[tokio::test]
async fn an_argument_is_completed_and_enter_takes_the_first_match() {
    let mut pixir = Pixir::new(vec![], &[]);
    let screen = pixir.does("/mode ").await;
    assert!(screen.contains("read-only") && screen.contains(" auto"), "{screen}");
    let screen = pixir.does("au<Enter>").await;
    assert!(screen.lines().next().expect("a header").contains(" · auto · "), "{screen}");
    // Where nothing is typed, Enter takes no candidate.
    let screen = pixir.does("/mode <Enter>").await;
    assert!(screen.contains("calls that read run, all others ask you"), "the list opens:\n{screen}");
    pixir.does("<Esc>").await;
    pixir.does("/mode <Down><Enter>").await;
    assert_eq!(inputs(&pixir, "settings_changed").last().expect("one"), &json!({"mode": "read-only"}));
    let screen = pixir.does("/theme high").await;
    assert!(screen.contains("high-contrast"), "{screen}");
}

/// Broken build: while a list of completions is open, the last line names keys that do something else now.
#[tokio::test]
async fn the_last_line_names_the_keys_of_the_completions() {
    let mut pixir = Pixir::new(vec![], &[("src/main.rs", "")]);
    let last = |screen: String| screen.lines().last().unwrap_or_default().to_owned();
    let keys = last(pixir.does("/com").await);
    assert!(keys.contains("Enter run · Tab complete") && keys.contains("Esc close"), "{keys}");
    let keys = last(pixir.does("<C-u>see @main").await);
    assert!(keys.contains("Enter take it") && keys.contains("Esc close"), "{keys}");
    let keys = last(pixir.does("<Esc>").await);
    assert!(keys.contains("/ commands"), "{keys}");
}

#[tokio::test]
async fn sessions_are_completed_by_their_first_prompt() {
    let mut pixir = Pixir::new(vec![says("Fixed.")], &[]);
    pixir.does("mend the lexer<Enter>").await;
    let first = pixir.screen.session().expect("open").to_string();
    let mut pixir = pixir.anew(vec![]).await;
    pixir.does("/resume ").await;
    let screen = pixir.does("lexer").await;
    assert!(screen.contains("mend the lexer"), "{screen}");
    pixir.does("<Enter>").await;
    assert_eq!(pixir.screen.session().expect("open").to_string(), first);
}

/// Broken builds: the template is sent with holes; a value with a blank becomes two; Esc loses what was typed.
#[tokio::test]
async fn a_template_asks_for_the_arguments_that_are_missing() {
    let template = "---\ndescription: Mends a file\nargument-hint: <file>\n---\nFix $1, because {{reason}}.\n";
    let mut pixir = Pixir::new(vec![says("One."), says("Two.")], &[(".pixir/prompts/fix.md", template)]);
    pixir.does("<Esc>/trust<Enter>").await;
    pixir.does("<Down><Enter>").await;
    let texts = |pixir: &Pixir| -> Vec<String> {
        let all = inputs(pixir, "user_message");
        all.iter().map(|it| it["text"].as_str().expect("text").to_owned()).collect()
    };
    let screen = pixir.does("/fix<Enter>").await;
    for part in ["/fix", "Mends a file", "file", "reason"] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    pixir.does("my file.rs<Enter>").await;
    assert!(texts(&pixir).is_empty(), "one is still missing");
    pixir.does("it's \"broken\"<Enter>").await;
    assert_eq!(texts(&pixir), ["Fix my file.rs, because it's \"broken\"."]);
    let screen = pixir.does("/fix a.rs<Enter>").await;
    assert!(screen.contains("a.rs") && screen.contains("reason"), "{screen}");
    pixir.does("so<Esc>").await;
    assert_eq!(pixir.screen.draft(), "/fix a.rs so");
    pixir.does("<Enter>").await;
    assert_eq!(texts(&pixir).last().expect("sent"), "Fix a.rs, because so.");
}

/// Broken build: an unknown command is sent to the model.
#[tokio::test]
async fn a_command_that_has_to_wait_says_so_and_an_unknown_one_is_never_sent() {
    let mut pixir =
        Pixir::new(vec![calls("ask_user", json!({"questions": [{"question": "Which?", "options": ["a", "b"]}]}))], &[]);
    let screen = pixir.does("/interrupt<Enter>").await;
    assert!(screen.contains("/interrupt is not available: no turn is running"), "{screen}");
    for (typed, near) in
        [("/statsu", "/status"), ("/sessoins", "/sessions"), ("/plann", "/plan"), ("/rewnd 2", "/rewind")]
    {
        let screen = pixir.does(&format!("{typed}<Enter>")).await;
        assert!(screen.contains(&format!("did you mean {near}?")), "{typed}:\n{screen}");
        assert_eq!(pixir.screen.draft(), typed, "it stays, to be mended");
        pixir.does("<C-c>").await;
    }
    assert_eq!(pixir.kinds(), ["session_started"], "nothing was sent");
}

/// Broken builds: a wrong argument becomes a red block of the conversation; the command is gone from the composer.
#[tokio::test]
async fn a_command_with_a_wrong_argument_says_why_and_stays_to_be_corrected() {
    let mut pixir = Pixir::sized(vec![says("Hello.")], &[], 80, 24);
    pixir.does("hi<Enter>").await;
    let transcript = |pixir: &Pixir| {
        let whole = pixir.screen.screen();
        whole.lines().take_while(|line| !line.starts_with('╭')).map(str::trim_end).collect::<Vec<_>>().join("\n")
    };
    let (before, entries) = (transcript(&pixir).trim_end().to_owned(), pixir.kinds());
    for (typed, why) in [
        ("/theme drak", "did you mean dark?"),
        ("/skill reviw", "there is no skill `reviw`"),
        ("/undo 7", "there is no turn 7"),
        ("/undo x", "`x` is not the number of a turn; a number, or nothing for the last one"),
        ("/rewind 9", "there is no turn 9"),
        ("/mode fast", "choose read-only, ask or auto"),
        ("/effort hardest", "one of: none, minimal, low"),
        ("/toolset none-such", "choose typed, run, both or none"),
        ("/model nobody/nothing", "the provider `nobody` is not set up"),
        ("/resume nothing", "that is not a session id"),
        ("/resume 20261121T203012-0a1b2c", "there is no session with that id"),
        ("/export pdf", "/export takes md, html or json"),
        ("/copy everything", "/copy takes"),
        ("/attach nothing.txt", "there is no file nothing.txt"),
        ("/attach nothing.png", "read `nothing.png`"),
        ("/add-dir ../nowhere", "it cannot be opened"),
        ("/trust me", "/trust revoke stops trusting it"),
        ("/help comapct", "did you mean /compact?"),
        ("/agents nobody", "there is no agent `nobody`"),
        ("/workflows nothing", "there is no workflow `nothing`"),
        ("/fork and mend it", "/fork takes nothing after its name"),
    ] {
        let screen = pixir.does(&format!("{typed}<Enter>")).await;
        let said =
            screen.rsplit('╯').next().expect("below the composer").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{typed} says why:\n{screen}");
        assert_eq!(pixir.screen.draft(), typed, "it stays:\n{screen}");
        let screen = pixir.does("<C-c>").await;
        assert_eq!(transcript(&pixir).trim_end(), before, "{typed} leaves nothing in the conversation:\n{screen}");
    }
    assert_eq!(pixir.kinds(), entries, "nothing was recorded");
    // Corrected in place, it runs.
    pixir.does("/mode fast<Enter>").await;
    pixir.does("<C-w>auto<Enter>").await;
    assert_eq!(inputs(&pixir, "settings_changed").last().expect("one"), &json!({"mode": "auto"}));
    // What is missing is typed behind the command.
    pixir.does("/rename<Enter>").await;
    pixir.does("tea<Enter>").await;
    assert_eq!(inputs(&pixir, "settings_changed").last().expect("one"), &json!({"name": "tea"}));
    // What the user has begun meanwhile is not replaced.
    pixir.screen.keys("/model nobody/nothing<Enter>and now").await;
    pixir.does("").await;
    assert_eq!(pixir.screen.draft(), "and now");
}

/// Broken build: the status line cuts the message at the edge of the screen.
#[tokio::test]
async fn a_message_that_is_longer_than_a_row_is_read_to_its_end() {
    let mut pixir = Pixir::sized(vec![], &[], 60, 20);
    let screen = pixir.does("/rewind nowhere<Enter>").await;
    let said = screen.rsplit('╯').next().expect("below the composer").split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said, "there is no turn nowhere, and no label of that name; /rewind opens the tree");
    let screen = pixir.does("s").await;
    assert!(screen.lines().last().expect("a line").contains("/ commands"), "one row again:\n{screen}");
}

#[tokio::test]
async fn status_shows_model_mode_sandbox_session_and_tokens() {
    let mut pixir = Pixir::sized(vec![says("One.")], &[], 100, 40);
    pixir.does("go<Enter>").await;
    let id = pixir.screen.session().expect("open").to_string();
    let screen = pixir.does("/status<Enter>").await;
    for shown in ["script/test-model", "mode          ask", "sandbox", "workspace", &id, "turns         1", "context"] {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    let screen = pixir.does("<Esc>").await;
    assert!(!screen.contains("Status"), "{screen}");
}

#[tokio::test]
async fn help_explains_one_command_with_its_input() {
    let mut pixir = Pixir::sized(vec![], &[], 100, 30);
    let screen = pixir.does("/help compact<Enter>").await;
    for shown in
        ["/compact [instructions]", "then Compact{seen, summary, keep, drop}", "now, and whenever no turn runs"]
    {
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    pixir.does("<Esc>").await;
    let screen = pixir.does("/help comapct<Enter>").await;
    assert!(screen.contains("did you mean /compact?"), "{screen}");
}

/// Runs the real interface on a script, against a server that answers once.
fn run_screen(shell: &Shell, script: &str) -> String {
    let server = Server::start(vec![text("It is done.")]);
    std::fs::write(shell.workspace().join("keys.txt"), script).expect("write");
    let mut args = server.flags(Dialect::Responses);
    args.splice(0..0, ["tui", "--size", "120x40", "--script", "keys.txt"].map(str::to_owned));
    let ran = shell.run(args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout
}

/// Broken build: an export replaces the file that is there.
#[test]
fn a_session_is_exported_to_a_new_file_in_the_format_of_its_ending() {
    let shell = Shell::new(&[("taken.md", "mine\n")]);
    let script = "idle\nkeys /export<Enter>\nexpect nothing to export yet\n\
                  keys say it<Enter>\nexpect It is done.\nidle\n\
                  keys /rename my work<Enter>\nidle\nkeys /export<Enter>\nexpect wrote pixir-my-work.md\n\
                  keys /export page.html<Enter>\nexpect wrote page.html\n\
                  keys /export json all.txt<Enter>\nexpect wrote all.txt\n\
                  keys /export taken.md<Enter>\nexpect name a file that does not exist yet\n\
                  keys <C-c>/export pdf<Enter>\nexpect /export takes md, html or json\n";
    run_screen(&shell, script);
    let file = |name: &str| std::fs::read_to_string(shell.workspace().join(name)).unwrap_or_else(|e| format!("({e})"));
    assert!(file("pixir-my-work.md").contains("It is done."), "{}", file("pixir-my-work.md"));
    assert!(file("page.html").starts_with("<!"), "{}", file("page.html"));
    assert!(file("all.txt").contains("\"kind\": \"pixir-session\""), "{}", file("all.txt"));
    assert_eq!(file("taken.md"), "mine\n");
}

#[test]
fn doctor_shows_the_checks_of_the_command_line() {
    let shell = Shell::new(&[]);
    let shown =
        run_screen(&shell, "idle\nkeys /doctor<Enter>\nexpect file locks keep out a second writer\nframe doctor\n");
    assert!(shown.contains("✓ bash") && shown.contains("sandbox") && shown.contains("Doctor"), "{shown}");
}

/// Broken build: the filter compares the letters with the case of the file.
#[test]
fn the_log_is_filtered_by_level_and_text() {
    let shell = Shell::new(&[]);
    let line = |level: &str, text: &str| format!("2026-11-23T20:15:04.123456Z {level} pixir: {text}\n");
    let text =
        [line(" WARN", "turn 3: the Server is slow"), line("ERROR", "bash: the disk is full"), line(" INFO", "hello")]
            .concat();
    let folder = shell.home().join("log");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::write(folder.join("pixir.log"), text).expect("write");
    let script = "idle\nkeys /log<Enter>\nexpect 3 of 3 lines\nframe all\nkeys server<Esc>\n\
                  keys /log server<Enter>\nexpect 1 of 3 lines\nframe one\nkeys <C-u><Tab>\nexpect 1 of 3 lines\nframe errors\n";
    let shown = run_screen(&shell, script);
    let frame = |name: &str| {
        shown.split(&format!("── {name} ──")).nth(1).expect(name).split("── ").next().expect("text").to_owned()
    };
    assert!(frame("all").contains("20:15:04 WARN pixir: turn 3"), "{}", frame("all"));
    assert!(frame("one").contains("the Server is slow") && !frame("one").contains("disk"), "{}", frame("one"));
    assert!(frame("errors").contains("the disk is full") && !frame("errors").contains("slow"), "{}", frame("errors"));
}

/// Broken build: a new command is missing in the guide, whose list is written by hand.
#[test]
fn the_guide_lists_every_command() {
    let read = |path: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::read_to_string(path).expect("a document")
    };
    // Another story holds that file to what the program says.
    let reference: serde_json::Value = serde_json::from_str(&read("docs/reference/schema.json")).expect("JSON");
    let actions = reference["interface"].as_array().expect("actions");
    let commands = actions.iter().filter_map(|it| it["command"].as_str()?.split(' ').next());
    let mut commands: Vec<&str> = commands.collect();
    commands.sort_unstable();
    assert!(read("docs/guide/screen.md").contains(&format!("`{}`", commands.join(" "))), "{}", commands.join(" "));
}

/// Broken builds: `/auth` is no name for connecting a model; `/mouse` changes nothing, or cannot be taken back; `/quit` asks.
#[test]
fn a_model_is_connected_by_auth_too_and_mouse_and_quit_do_what_they_say() {
    let shell = Shell::new(&[]);
    let mut terminal = Terminal::start(&shell, &["--provider", "demo"], 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("/auth\r");
    terminal.wait_for("╭ Connect a model");
    terminal.send("\x1b");
    terminal.wait_that("the dialog is closed", |screen| !screen.contains("╭ Connect a model"));
    for (told, sequence) in [("go to the terminal", "\x1b[?1002l"), ("go to pixir", "\x1b[?1002h")] {
        let before = terminal.written();
        terminal.send("/mouse\r");
        terminal.wait_for(told);
        assert!(terminal.bytes()[before..].windows(sequence.len()).any(|it| it == sequence.as_bytes()), "{told}");
    }
    terminal.send("/quit\r");
    terminal.end().assert_sane();
}
