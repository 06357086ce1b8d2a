use rustix::process::Signal;
use serde_json::json;

use crate::pty::Terminal;
use crate::server::{Act, Dialect, Reply, Server, call, text};
use crate::shell::{Shell, is_running, wait_until};

fn start(shell: &Shell, server: &Server, dialect: Dialect, columns: u16, rows: u16) -> Terminal {
    let flags = server.flags(dialect);
    Terminal::start(shell, &flags.iter().map(String::as_str).collect::<Vec<_>>(), columns, rows)
}

#[test]
fn a_first_start_says_what_is_missing_and_how_to_get_it() {
    let shell = Shell::new(&[]);
    for (columns, rows) in [(60, 20), (80, 24), (120, 40)] {
        let mut terminal = Terminal::start(&shell, &[], columns, rows);
        terminal.wait_for("Ask pixir");
        terminal.wait_that("says what is missing", |screen| {
            ["No model is connected", "OPENAI_API_KEY", "pixir demo"].iter().all(|text| screen.contains(text))
        });
        terminal.send("\x03\x03");
        let left = terminal.end();
        left.assert_sane();
        assert_eq!(left.code, 0);
    }
    assert!(shell.logs().is_empty());
}

#[test]
fn an_edit_is_approved_and_the_last_answer_stays_on_the_main_screen() {
    for dialect in [Dialect::Responses, Dialect::Chat] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let server = Server::start(vec![
            call("c1", "edit", json!({"path": "a.txt", "old_text": "alpha", "new_text": "omega"})),
            text("Changed to omega."),
        ]);
        let mut terminal = start(&shell, &server, dialect, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("change it\r");
        let screen = terminal.wait_for("Alt+Y once");
        assert!(screen.contains("- alpha") && screen.contains("+ omega"), "{screen}");
        // Keys that come with the question, before anyone can have read it, answer nothing.
        wait_armed(&mut terminal, &shell);
        // Whoever quits as soon as it is said finds it on the main screen too.
        terminal.wait_for("Changed to omega.");
        assert_eq!(shell.read("a.txt"), "omega\n");
        terminal.send("\x04");
        let left = terminal.end();
        left.assert_sane();
        assert!(left.screen.contains("Changed to omega.") && left.screen.contains("pixir resume 2"), "{}", left.screen);
    }
}

/// Presses Alt+Y until the question takes it: it does so only when it was on the screen for a quarter of a second.
fn wait_armed(terminal: &mut Terminal, shell: &Shell) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while shell.read("a.txt") == "alpha\n" {
        assert!(std::time::Instant::now() < until, "{}", terminal.screen());
        terminal.send("\x1by");
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
}

#[test]
fn esc_stops_a_stream_and_a_command_and_no_process_survives() {
    let shell = Shell::new(&[]);
    let mark = format!("87{:04}", std::process::id() % 10_000);
    let server = Server::start(vec![
        Reply::Stall { text: "Thinking aloud".into() },
        call("c1", "bash", json!({"command": format!("sleep {mark}")})),
        text("Back again."),
    ]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    terminal.wait_for("Thinking aloud");
    terminal.send("\x1b");
    terminal.wait_for("it broke off here");
    terminal.wait_for("send a message to go on");
    terminal.send("run\r");
    terminal.wait_for("● bash sleep");
    wait_until("the command runs", || is_running(&mark));
    terminal.send("\x1b");
    terminal.wait_for("send a message to go on");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while is_running(&mark) {
        assert!(std::time::Instant::now() < until, "a process survived");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    terminal.send("and now\r");
    terminal.wait_for("Back again.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_session_that_cannot_be_opened_ends_with_the_error_and_its_prompt_goes_nowhere_else() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("never")]);
    let flags = server.flags(Dialect::Chat);
    let mut args = vec!["resume", "20200101T000000-abcdef", "do it"];
    args.extend(flags.iter().map(String::as_str));
    let left = Terminal::start(&shell, &args, 80, 24).end();
    left.assert_sane();
    assert_eq!(left.code, 5);
    assert!(
        left.screen.contains("SESSION_NOT_FOUND") && left.screen.contains("pixir sessions list"),
        "{}",
        left.screen
    );
    assert!(server.bodies().is_empty());
}

#[test]
fn a_command_cannot_reach_the_terminal() {
    let shell = Shell::new(&[]);
    let server =
        Server::start(vec![call("c1", "bash", json!({"command": "echo LEAKED > /dev/tty"})), text("It could not.")]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("/mode auto\r");
    terminal.wait_for("mode: auto");
    terminal.send("go\r");
    let screen = terminal.wait_for("It could not.");
    assert!(screen.contains("No such device or address"), "{screen}");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// What goes on when somebody leaves.
#[derive(Debug, Clone, Copy)]
enum State {
    Idle,
    Draft,
    Streaming,
    Tool,
    Question,
    Layer,
    Editor,
}

impl State {
    const ALL: [State; 7] =
        [State::Idle, State::Draft, State::Streaming, State::Tool, State::Question, State::Layer, State::Editor];

    /// A terminal in which it goes on.
    fn reach(self, shell: &Shell, server: &Server) -> Terminal {
        let flags = server.flags(Dialect::Chat);
        let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
        args.extend(["--mode", if matches!(self, State::Tool) { "auto" } else { "ask" }]);
        // One that takes the terminal for itself, and does not give it back; any key ends it.
        let editor =
            shell.aside("editor.sh", "stty raw -echo; echo editing\nuntil read -rsn 1 -t 0.05; do printf .; done\n");
        let visual = format!("bash {}", editor.display());
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(shell, pixir, &args, &[("VISUAL", &visual)], 80, 24);
        terminal.wait_for("Ask pixir");
        let (keys, seen) = match self {
            State::Idle => ("", "Ask pixir"),
            State::Draft => ("half a thought", "half a thought"),
            State::Streaming => ("go\r", "Thinking aloud"),
            State::Tool => ("go\r", "● bash sleep"),
            State::Question => ("go\r", "Alt+Y"),
            State::Layer => ("\x14", "Esc close"),
            State::Editor => ("\x07", "editing"),
        };
        terminal.send(keys);
        terminal.wait_for(seen);
        terminal
    }

    fn server(self) -> Server {
        let sleep = || call("c1", "bash", json!({"command": slept()}));
        Server::start(match self {
            State::Streaming => vec![Reply::Stall { text: "Thinking aloud".into() }],
            State::Tool | State::Question => vec![sleep()],
            State::Idle | State::Draft | State::Layer | State::Editor => Vec::new(),
        })
    }
}

/// A command that nobody else runs.
fn slept() -> String {
    format!("sleep 4322.{}", std::process::id())
}

fn slept_long() -> String {
    format!("sleep 4321.{}", std::process::id())
}

#[test]
#[expect(clippy::print_stdout, reason = "the figure is wanted")]
fn every_way_out_gives_the_terminal_back_whatever_goes_on() {
    let windows: usize = std::env::var("PIXIR_WINDOWS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut cells, mut longest) = (0, std::time::Duration::ZERO);
    for state in State::ALL {
        for (signal, code) in [
            (Some(Signal::TERM), 143),
            (Some(Signal::HUP), 129),
            (Some(Signal::INT), 130),
            (Some(Signal::QUIT), 131),
            (None, 0),
        ] {
            let shell = Shell::new(&[]);
            let server = state.server();
            let mut terminal = state.reach(&shell, &server);
            let mut code = code;
            match signal {
                // What is pressed in an editor is the editor's.
                Some(signal @ (Signal::INT | Signal::QUIT)) if matches!(state, State::Editor) => {
                    terminal.signal(signal);
                    terminal.send("x");
                    terminal.wait_for("Ask pixir");
                    terminal.send("\x04");
                    code = 0;
                }
                Some(signal) => terminal.signal(signal),
                // Esc leaves a layer, or stops what runs; then twice Ctrl+C with an empty line.
                None => {
                    terminal.send("\x1b");
                    match state {
                        State::Idle | State::Draft | State::Layer => {}
                        State::Streaming | State::Tool | State::Question => drop(terminal.wait_for("interrupted")),
                        State::Editor => drop(terminal.wait_for("Ask pixir")),
                    }
                    terminal.send("\x03\x03\x03\x03");
                }
            }
            let left = terminal.end();
            left.assert_sane();
            assert_eq!(left.code, code, "{state:?}, {signal:?}");
            cells += 1;
        }
        // Stopped and gone on from outside, by somebody who may have changed the terminal, and then ended.
        let shell = Shell::new(&[]);
        let server = state.server();
        let terminal = state.reach(&shell, &server);
        let before = terminal.written();
        terminal.signal(Signal::STOP);
        terminal.signal(Signal::CONT);
        // An editor draws itself anew.
        if !matches!(state, State::Editor) {
            terminal.wait_that_written("the whole screen again", before + 300);
        }
        terminal.signal(Signal::TERM);
        terminal.end().assert_sane();
        // The window is closed.
        for _ in 0..windows.div_ceil(State::ALL.len()) {
            let shell = Shell::new(&[]);
            let server = state.server();
            longest = longest.max(state.reach(&shell, &server).vanish());
        }
        cells += 2;
    }
    assert!(!is_running(&slept()), "a command survived");
    assert!(longest < std::time::Duration::from_secs(1), "a window that was closed was noticed after {longest:?}");
    println!("QU1, QU2: {cells} cells, each left as it was found; a window closed was noticed in {longest:?} at most");
}

#[test]
fn resizing_while_it_streams_keeps_everything_in_its_place() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall {
        text: "A line that is long enough to be wrapped on a narrow screen. ".repeat(20),
    }]);
    let mut terminal = start(&shell, &server, Dialect::Responses, 100, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("narrow screen");
    for (columns, rows) in [(60, 20), (40, 10), (120, 40), (80, 24)] {
        terminal.resize(columns, rows);
        terminal.wait_that("everything is in its place", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let frame = |left, right| {
                let is_it = |line: &&&str| line.starts_with(left) && line.trim_end().ends_with(right);
                lines.iter().filter(is_it).any(|line| line.trim_end().chars().count() == usize::from(columns))
            };
            let text = lines.iter().filter(|line| line.contains("narrow") || line.contains("enough")).count();
            frame('╭', '╮') && frame('╰', '╯') && screen.contains("Esc interrupts") && text > 2
        });
    }
    terminal.signal(Signal::TERM);
    terminal.end().assert_sane();
}

#[test]
fn whoever_selects_beyond_the_top_stays_where_that_led() {
    let shell = Shell::new(&[]);
    let paragraphs: String = (0..80).map(|n| format!("Paragraph {n}.\n\n")).collect();
    let server = Server::start(vec![Reply::Stall { text: paragraphs }]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Paragraph 79.");
    // The button is held above the transcript until it has moved, and let go.
    terminal.send("\x1b[<0;10;15M\x1b[<32;10;1M");
    terminal.wait_that("it scrolls back", |screen| !screen.contains("Paragraph 79.") && screen.contains("Ctrl+End"));
    terminal.send("\x1b[<0;10;1m");
    terminal.wait_for_bytes("\x1b]52;c;");
    let screen = terminal.wait_for("copied");
    assert!(!screen.contains("Paragraph 79.") && screen.contains("Ctrl+End"), "{screen}");
    terminal.signal(Signal::TERM);
    terminal.end().assert_sane();
}

#[test]
fn a_paste_with_line_ends_never_sends_itself() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Got both.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1b[200~first line\rsecond line\r\x1b[201~");
    terminal.wait_for("second line");
    assert!(server.bodies().is_empty());
    terminal.send_later("\r");
    terminal.wait_for("Got both.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// Runs in a child of the story below: takes the terminal, then breaks.
#[test]
fn a_screen_that_breaks() {
    if std::env::var_os("PIXIR_BREAK").is_some() {
        let _screen = pixir_ui::Screen::take(true, false).expect("there is a terminal");
        panic!("on purpose");
    }
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_says_anything() {
    let shell = Shell::new(&[]);
    let own = std::env::current_exe().expect("this test is a program");
    let args = ["--exact", "stories::terminal::a_screen_that_breaks", "--nocapture"];
    let terminal = Terminal::of(&shell, own.as_os_str(), &args, &[("PIXIR_BREAK", "1")], 80, 24);
    let left = terminal.end();
    left.assert_sane();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    let back = bytes.find("\x1b[?1049l").expect("the alternate screen was left");
    assert!(bytes.find("on purpose").expect("it was said") > back, "{bytes:?}");
    assert_eq!(left.code, 101);
}

/// What the interface keeps beside its log, once it holds this.
fn wait_until_kept(shell: &Shell, text: &str) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let folders = || {
        let outer = std::fs::read_dir(shell.home().join("sessions")).into_iter().flatten().flatten();
        outer.flat_map(|f| std::fs::read_dir(f.path()).into_iter().flatten().flatten()).map(|f| f.path())
    };
    while !folders()
        .any(|folder| std::fs::read_to_string(folder.join("presenter.json")).is_ok_and(|kept| kept.contains(text)))
    {
        assert!(std::time::Instant::now() < until, "{text:?} was not kept");
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_draft_survives_kill_and_a_closed_window_also_where_nothing_was_said_yet() {
    for signal in [Signal::KILL, Signal::HUP] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("One.")]);
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("a long thought");
        wait_until_kept(&shell, "a long thought");
        terminal.signal(signal);
        drop(terminal.end());
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("❯ a long thought");
        terminal.send(", to its end\r");
        terminal.wait_for("One.");
        terminal.wait_for("/ commands");
        terminal.send("and another");
        wait_until_kept(&shell, "and another");
        terminal.signal(signal);
        drop(terminal.end());
        assert_eq!(shell.logs().len(), 1, "the session in which nothing was said is gone");
        // A second thought, in a session of its own, is not touched by going on with the first.
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("something else");
        wait_until_kept(&shell, "something else");
        terminal.signal(Signal::KILL);
        drop(terminal.end());
        let mut args = vec!["resume".to_owned(), "--last".into()];
        args.extend(server.flags(Dialect::Chat));
        let mut terminal = Terminal::start(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
        let screen = terminal.wait_for("❯ and another");
        assert!(screen.contains("a long thought, to its end") && screen.contains("One."), "{screen}");
        terminal.send("\x03\x03\x03");
        terminal.end().assert_sane();
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("❯ something else");
        terminal.send("\x03\x03\x03");
        terminal.end().assert_sane();
    }
}

#[test]
fn what_waited_for_a_turn_that_was_killed_is_a_draft_again() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Stall { text: "Thinking".into() }]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Thinking");
    terminal.send("then this\x1b\r");
    terminal.wait_for("then this");
    wait_until_kept(&shell, "then this");
    terminal.signal(Signal::KILL);
    drop(terminal.end());
    let mut args = vec!["resume".to_owned(), "--last".into()];
    args.extend(server.flags(Dialect::Chat));
    let mut terminal = Terminal::start(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
    let screen = terminal.wait_for("❯ then this");
    assert!(screen.contains("interrupted"), "{screen}");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn a_session_that_was_left_in_mid_command_is_at_its_end_before_the_program_is() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![call(
        "c1",
        "bash",
        json!({"command": format!("echo made > made.txt; trap '' TERM; {}", slept_long())}),
    )]);
    let flags = server.flags(Dialect::Chat);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::start(&shell, &args, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while shell.read("made.txt") != "made\n" {
        assert!(std::time::Instant::now() < until, "{}", terminal.screen());
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    let log = shell.logs().remove(0);
    terminal.send("/new\r");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(!is_running(&slept_long()));
    let entries = crate::shell::entries(&log);
    assert_eq!(entries.last().expect("entries")["data"]["status"], "interrupted");
    let result = entries.iter().find(|e| e["type"] == "tool_result").expect("its result");
    assert_eq!(result["data"]["changes"][0]["path"], "made.txt", "what it did until then can be undone");
}

#[test]
fn whoever_only_looks_leaves_the_draft_alone_and_a_locked_session_is_no_end() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One.")]);
    let mut writer = start(&shell, &server, Dialect::Chat, 80, 24);
    writer.wait_for("Ask pixir");
    writer.send("tell me\r");
    writer.wait_for("One.");
    writer.wait_for("/ commands");
    writer.send("half a thought");
    wait_until_kept(&shell, "half a thought");
    let mut viewer = Terminal::start(&shell, &["resume", "--last", "--read-only"], 80, 24);
    viewer.wait_for("One.");
    viewer.wait_for("open read-only");
    viewer.send("\x03\x03\x03");
    viewer.end().assert_sane();
    wait_until_kept(&shell, "half a thought");
    let mut second = start(&shell, &server, Dialect::Chat, 80, 24);
    second.wait_for("Ask pixir");
    second.send("/resume\r");
    second.wait_that("the session is listed", |screen| screen.contains("Sessions") && screen.contains("tell me"));
    second.send("\r");
    let screen = second.wait_for("open for writing by process");
    assert!(screen.contains(&writer.process().to_string()), "{screen}");
    second.send("\x03\x03\x03");
    second.end().assert_sane();
    writer.send("\x03\x03\x03");
    writer.end().assert_sane();
}

#[test]
fn a_signal_that_stops_it_gives_the_terminal_to_the_shell_and_takes_it_again() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One.")]);
    let flags = server.flags(Dialect::Chat);
    // A shell with job control is between it and the terminal.
    let line = format!("set -m; {} {}", env!("CARGO_BIN_EXE_pixir"), flags.join(" "));
    let mut terminal = Terminal::of(&shell, "bash".as_ref(), &["--norc", "-i"], &[("PS1", "shell$ ")], 80, 24);
    terminal.wait_for("shell$");
    terminal.send(&format!("{line}\r"));
    terminal.wait_for("Ask pixir");
    terminal.send("half a thought");
    terminal.wait_for("❯ half a thought");
    terminal.send("\x1a");
    terminal.wait_for("Stopped");
    terminal.send("echo in the $((40 + 2)) shell\r");
    terminal.wait_for("in the 42 shell");
    terminal.send("fg\r");
    terminal.wait_for("❯ half a thought");
    terminal.send("\x03\x03\x03");
    terminal.wait_that("the shell again", |screen| screen.contains("fg\n") && screen.trim_end().ends_with("shell$"));
    terminal.send("stty -a | grep -o -- '-\\?icanon'; exit\r");
    terminal.wait_for("icanon");
    let left = terminal.end();
    left.assert_sane();
    assert!(!left.screen.contains("-icanon"), "{}", left.screen);
}

#[test]
fn an_editor_that_goes_to_the_shell_takes_pixir_along_and_both_come_back() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One.")]);
    let editor =
        shell.aside("editor.sh", "echo editing; kill -STOP $$; echo back; read -r words; echo \"$words\" > \"$1\"\n");
    let visual = format!("bash {}", editor.display());
    let line = format!("set -m; {} {}", env!("CARGO_BIN_EXE_pixir"), server.flags(Dialect::Chat).join(" "));
    let environment = [("PS1", "shell$ "), ("VISUAL", visual.as_str())];
    let mut terminal = Terminal::of(&shell, "bash".as_ref(), &["--norc", "-i"], &environment, 80, 24);
    terminal.wait_for("shell$");
    terminal.send(&format!("{line}\r"));
    terminal.wait_for("Ask pixir");
    terminal.send("\x07");
    terminal.wait_for("Stopped");
    terminal.send("echo in the $((40 + 2)) shell\r");
    terminal.wait_for("in the 42 shell");
    terminal.send("fg\r");
    terminal.wait_for("back");
    terminal.send("my words\r");
    terminal.wait_for("❯ my words");
    terminal.send("\x03\x03\x03");
    terminal.wait_that("the shell again", |screen| screen.trim_end().ends_with("shell$"));
    terminal.send("exit\r");
    terminal.end().assert_sane();
}

#[test]
fn the_title_says_what_goes_on_and_nothing_is_said_twice() {
    let shell = Shell::new(&[]);
    let slowly = |words: &str| {
        let mut acts = vec![Act::Send(crate::server::HEAD.into()), Act::Pause(1_000_000)];
        let answer = crate::server::answer(Dialect::Chat, &[crate::server::Part::Text(words)]);
        acts.push(Act::Send(answer.concat().into_bytes()));
        Reply::Raw(acts)
    };
    let server = Server::start(vec![slowly("One."), slowly("Two.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    // The window loses the focus; the end of the Turn is worth a word then.
    terminal.send("\x1b[O");
    terminal.send("go\r");
    terminal.wait_for("One.");
    terminal.wait_for("/ commands");
    terminal.send("\x1b[I");
    terminal.send("again\r");
    terminal.wait_for("Two.");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    let titles = bytes.matches("\x1b]2;").count();
    assert!((3..=5).contains(&titles), "{titles} titles");
    assert!(bytes.contains("\x1b]2;● pixir · ") && bytes.contains("\x1b]2;pixir · "), "{bytes:?}");
    assert_eq!(bytes.matches('\x07').count(), 1, "one bell, for the turn that ended unseen");
    assert!(!bytes.contains("\x1b]9;4"), "no progress where it is not known to be shown");
}

#[test]
fn a_terminal_that_answers_nothing_still_works_and_line_ends_of_a_burst_do_not_send() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Got it.")]);
    let flags = server.flags(Dialect::Chat);
    let mut terminal = Terminal::mute(&shell, &flags.iter().map(String::as_str).collect::<Vec<_>>(), 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("first line\rsecond line\r");
    terminal.wait_for("second line");
    assert!(server.bodies().is_empty(), "what came at once was pasted");
    terminal.send("\r");
    terminal.wait_for("Got it.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_terminal_that_takes_nothing_stops_nobody() {
    let shell = Shell::new(&[]);
    let making = call("c1", "bash", json!({"command": "echo made > made.txt"}));
    let server = Server::start(vec![text(&"A screen full of words. ".repeat(600)), making, text("Done.")]);
    let flags = server.flags(Dialect::Chat);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::start(&shell, &args, 200, 60);
    terminal.wait_for("Ask pixir");
    terminal.send("fill it\r");
    terminal.wait_that("is full", |screen| screen.contains("full of words") && screen.contains("/ commands"));
    terminal.hold(true);
    // A screen that is drawn anew ten times is more than a terminal takes without being read.
    for _ in 0..10 {
        terminal.send_later("\x0c");
    }
    terminal.send("go\r");
    server.wait_for(3);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while shell.read("made.txt") != "made\n" {
        assert!(std::time::Instant::now() < until, "the turn waits for the terminal");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    terminal.hold(false);
    terminal.wait_for("Done.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn a_transcript_that_moves_is_moved_by_the_terminal() {
    let words: String = (0..400).map(|n| format!("word{n} ")).collect();
    let paragraphs = words.replace("9 ", "9.\n\n");
    let deltas: Vec<Act> = paragraphs
        .split_inclusive(' ')
        .enumerate()
        .flat_map(|(at, word)| {
            let value = json!({ "choices": [{ "index": 0, "delta": { "content": word } }] });
            let pause = (at % 10 == 0).then_some(Act::Pause(5_000));
            [Act::Send(crate::server::event(&value).into_bytes())].into_iter().chain(pause)
        })
        .collect();
    let mut acts = vec![Act::Send(crate::server::HEAD.into())];
    acts.extend(deltas);
    acts.push(Act::Send(crate::server::end(Dialect::Chat, false).concat().into_bytes()));
    let shell = Shell::new(&[]);
    let server = Server::start(vec![Reply::Raw(acts)]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 120, 40);
    terminal.wait_for("Ask pixir");
    let before = terminal.written();
    terminal.send("go\r");
    terminal.wait_for("word399");
    terminal.wait_for("/ commands");
    let written = terminal.written() - before;
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    assert!(written < 12 * paragraphs.len(), "{written} bytes for {} of text", paragraphs.len());
    assert!(String::from_utf8_lossy(&left.bytes).contains("S\x1b[r"), "it scrolls");
}

#[test]
fn a_theme_that_is_being_made_is_seen_as_it_is_written_and_a_broken_one_says_why_and_changes_nothing() {
    let shell = Shell::new(&[]);
    let themes = shell.home().join(".config/pixir/themes");
    std::fs::create_dir_all(&themes).expect("mkdir");
    let write = |accent: &str| {
        let text = format!("name = \"mine\"\nextends = \"dark\"\n[tokens]\naccent = \"{accent}\"\n");
        std::fs::write(themes.join("mine.toml"), text).expect("write");
    };
    write("#010203");
    let mut terminal = Terminal::start(&shell, &["--theme", "mine"], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.wait_for_bytes("38;2;1;2;3");
    write("no colour");
    terminal.wait_for("the theme mine is not valid: `no colour` of `accent` is not in the palette");
    std::fs::write(themes.join("mine.toml"), "name = \"mine\"\n\n[tokens\n").expect("write");
    terminal.wait_for("the theme mine is not valid: line 3: unclosed table");
    write("#040506");
    terminal.wait_for_bytes("38;2;4;5;6");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn a_light_terminal_gets_the_light_theme_and_no_colour_means_none() {
    let shell = Shell::new(&[]);
    let binary = env!("CARGO_BIN_EXE_pixir");
    let mut terminal = Terminal::start(&shell, &[], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\");
    // The paper of the light theme.
    terminal.wait_for_bytes("48;2;251;251;250");
    // And back, when the person changes it.
    let light = terminal.bytes().len();
    terminal.send("\x1b[?997;1n");
    // The paper of the dark one.
    wait_until("it is dark again", || String::from_utf8_lossy(&terminal.bytes()[light..]).contains("48;2;22;24;29"));
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &[], &[("NO_COLOR", "1")], 80, 24);
    terminal.wait_for("No model is connected");
    terminal.send("\x03\x03\x03");
    let left = terminal.end();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    for colour in ["38;2", "48;2", "38;5", "48;5", "\x1b[3", "\x1b[9"] {
        let mut found = bytes.match_indices(colour).filter(|(at, _)| {
            let rest = &bytes[at + 2..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
            rest[end..].starts_with('m') && !rest.starts_with("39m") && rest[..end].len() > 1
        });
        assert_eq!(found.next(), None, "{colour:?}");
    }
}

#[test]
fn whatever_a_model_or_a_tool_says_only_our_own_sequences_reach_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[?1049l\u{9b}31m\u{90}q\u{9c}\u{202e}evil\u{200b}\u{0}\u{8}\u{e0041} a\u{300}\u{301}\u{302}\u{303} [x](javascript:alert(1)) [y](https://a.b/\u{1b}[31m) `\u{1b}c` end";
    let shell = Shell::new(&[("a\u{1b}]0;name\u{7}.txt", "x"), ("b.txt", hostile)]);
    let server = Server::start(vec![
        call("c1", "bash", json!({"command": "cat b.txt; printf '\\033]52;c;aGk=\\007\\033[?1000l'; ls"})),
        call("c2", "write", json!({"path": "n\u{1b}[31m\u{202e}.txt", "content": hostile})),
        text(hostile),
    ]);
    let flags = server.flags(Dialect::Responses);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::start(&shell, &args, 100, 40);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1b[200~\x1b]0;pasted\x07\x1b[31mtext\x1b[201~");
    terminal.wait_for("text");
    terminal.send_later("\r");
    terminal.wait_for(" end");
    terminal.wait_for("/ commands");
    terminal.send("\x0f\x04");
    let left = terminal.end();
    left.assert_sane();
    let strange = crate::pty::strange(&left.bytes);
    assert!(strange.is_empty(), "{strange:?}");
    for said in ["owned", "0;name", "52;c;aGk", "0;pasted"] {
        let sequence = format!("\x1b]{said}");
        assert!(!String::from_utf8_lossy(&left.bytes).contains(&sequence), "{said}");
    }
}
