//! Every way out of the terminal: quit, signals, stop and continue, a closed window, a panic.

use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::connected::terminal;
use crate::pty::Terminal;
use crate::server::{Act, Dialect, Gate, Reply, Server, call, text};
use crate::shell::{Shell, is_running, mark, skip};
use crate::tier;
use crate::wait;

#[test]
fn the_screen_is_redrawn_after_stop_and_continue() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Still here.")]);
    let mut terminal = terminal(&shell, &server, &[], (80, 24));
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Still here.");
    let before = terminal.written();
    terminal.signal(Signal::STOP);
    terminal.signal(Signal::CONT);
    terminal.wait_that_written("the whole screen again", before + 500);
    terminal.wait_for("Still here.");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

#[test]
fn an_unknown_session_is_an_error_and_sends_no_prompt() {
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

/// The state in which the user leaves.
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

    /// A terminal in this state.
    fn reach(self, shell: &Shell, server: &Server) -> Terminal {
        let flags = server.flags(Dialect::Chat);
        let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
        args.extend(["--mode", if matches!(self, State::Tool) { "auto" } else { "ask" }]);
        // An editor that changes the terminal settings and does not restore them; any key ends it.
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
            State::Tool => ("go\r", "● $ touch"),
            State::Question => ("go\r", "Alt+Y"),
            State::Layer => ("\x14", "Esc close"),
            State::Editor => ("\x07", "editing"),
        };
        terminal.send(keys);
        terminal.wait_for(seen);
        terminal
    }

    fn server(self) -> Server {
        let sleep = || call("c1", "bash", json!({ "command": format!("touch began; sleep {}", slept()) }));
        Server::start(match self {
            State::Streaming => vec![Reply::Stall { text: "Thinking aloud".into() }],
            State::Tool | State::Question => vec![sleep()],
            State::Idle | State::Draft | State::Layer | State::Editor => Vec::new(),
        })
    }
}

/// The seconds of a command that no other process on this machine runs, and no other story: each has a thread.
fn slept() -> String {
    thread_local! {
        static MARK: String = mark();
    }
    MARK.with(String::clone)
}

#[test]
#[expect(clippy::print_stdout, reason = "the figure is wanted")]
fn every_way_out_restores_the_terminal() {
    let windows = tier::cases("every_way_out");
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
                // An editor handles these signals itself.
                Some(signal @ (Signal::INT | Signal::QUIT)) if matches!(state, State::Editor) => {
                    terminal.signal(signal);
                    terminal.send("x");
                    terminal.wait_for("Ask pixir");
                    terminal.send("\x04");
                    code = 0;
                }
                Some(signal) => terminal.signal(signal),
                // Esc closes the overlay or interrupts the Turn; then Ctrl+C twice with an empty composer.
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
        // Stopped and continued from outside, where the terminal may have changed, and then ended.
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

/// Signals that few programs expect end the Turn and give the terminal back like the others.
///
/// Broken build: one of them is missing in `ENDING`.
#[test]
fn every_signal_that_can_be_caught_ends_the_turn_and_restores_the_terminal() {
    let signals =
        [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::ABORT, Signal::XCPU, Signal::VTALARM, Signal::PROF];
    let mut cells = 0;
    for signal in signals {
        for state in [State::Idle, State::Streaming, State::Tool] {
            let shell = Shell::new(&[]);
            let server = state.server();
            let terminal = state.reach(&shell, &server);
            terminal.signal(signal);
            let left = terminal.end();
            left.assert_sane();
            assert_eq!(i64::from(left.code), 128 + i64::from(signal.as_raw()), "{state:?}, {signal:?}");
            if !matches!(state, State::Idle) {
                let entries = crate::shell::entries(&shell.logs()[0]);
                let ends: Vec<_> = entries.iter().filter(|it| it["type"] == "turn_ended").collect();
                assert_eq!(ends.len(), 1, "{state:?}, {signal:?}");
                assert_eq!(ends[0]["data"]["status"], "interrupted");
            }
            cells += 1;
        }
    }
    assert!(!is_running(&slept()), "a command survived");
    crate::shell::figures(&format!("QR1: {cells} cells of a signal and a state tried, 0 failed"));
}

/// A terminal that takes nothing, as after Ctrl+S or over a connection that hangs, does not keep pixir from ending.
///
/// Broken build: the answer or the resume command is written to a stderr that blocks.
#[test]
fn a_signal_ends_pixir_on_a_terminal_that_takes_nothing() {
    let mut longest = std::time::Duration::ZERO;
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::USR1, 138)] {
        for flags in [&[][..], &["--inline"]] {
            let shell = Shell::new(&[]);
            let server = Server::start(vec![text(&"A screen full of words. ".repeat(600))]);
            let mut terminal = terminal(&shell, &server, flags, (200, 60));
            terminal.wait_for("Ask pixir");
            terminal.send("fill it\r");
            terminal.wait_that("is full", |screen| screen.contains("full of words") && screen.contains("/ commands"));
            terminal.hold(true);
            // The terminal's buffer is full once another whole screen is no longer written.
            let is_full = |terminal: &mut Terminal| {
                let before = terminal.handed_over();
                terminal.send("\x0c");
                !wait::within(std::time::Duration::from_millis(300), || terminal.handed_over() > before + 1_000)
            };
            wait::until("the terminal takes no more", || is_full(&mut terminal));
            terminal.signal(signal);
            longest = longest.max(terminal.wait_until_ended());
            terminal.hold(false);
            let left = terminal.end();
            left.assert_settings_restored();
            assert_eq!(left.code, code, "{signal:?}, {flags:?}");
        }
    }
    crate::shell::figures(&format!("QR2: 6 tried, 0 failed; pixir ended after {longest:?} at most"));
}

/// Set in the child that the next test starts: itself, in a terminal.
const IS_CHILD: &str = "PIXIR_TEST_IS_CHILD";

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    if std::env::var_os(IS_CHILD).is_some() {
        let _screen = pixir_ui::Screen::take(pixir_ui::MouseOwner::Pixir, pixir_ui::ScreenMode::Whole)
            .expect("there is a terminal");
        panic!("on purpose");
    }
    let shell = Shell::new(&[]);
    let own = std::env::current_exe().expect("this test is a program");
    let args = ["--exact", "stories::ways_out::a_panic_restores_the_terminal_before_its_message", "--nocapture"];
    let terminal = Terminal::of(&shell, own.as_os_str(), &args, &[(IS_CHILD, "1")], 80, 24);
    let left = terminal.end();
    left.assert_sane();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    let back = bytes.find("\x1b[?1049l").expect("the alternate screen was left");
    assert!(bytes.find("on purpose").expect("it was said") > back, "{bytes:?}");
    assert_eq!(left.code, 101);
}

/// A shim whose clock shows an impossible time once, to the first thread of the armed kind that asks. Rust's library
/// panics in that thread then: nothing in pixir has to be prepared for the test.
const IMPOSSIBLE_CLOCK: &str = "#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
    #include <stdlib.h>\n\
    int clock_gettime(clockid_t id, struct timespec *t) {\n\
      long r = syscall(SYS_clock_gettime, id, t);\n\
      char *armed = getenv(syscall(SYS_gettid) == getpid() ? \"ARMED_SCREEN\" : \"ARMED_OTHERS\");\n\
      if (id == CLOCK_REALTIME && armed && unlink(armed) == 0) { t->tv_nsec = 2000000000; }\n\
      return (int)r; }\n";

/// Builds that shim; without a compiler the test is skipped.
pub(super) fn impossible_clock(shell: &Shell) -> Option<std::path::PathBuf> {
    let source = shell.aside("clock.c", IMPOSSIBLE_CLOCK);
    let shim = shell.home().with_file_name("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).status();
    let is_built = built.is_ok_and(|it| it.success());
    if !is_built {
        skip("there is no C compiler for the clock");
    }
    is_built.then_some(shim)
}

/// A panic in the thread of the screen, in the task of a Session and in the task of a Turn: the terminal is given back,
/// one sentence says what happened, pixir.log has the panic, and the Turn has its one end, at the latest when the Session
/// is opened again.
///
/// Broken builds: the panic hook prints; `main` does not catch the panic; the Session does not look at how its Turn's task
/// ended.
#[test]
fn a_panic_of_any_thread_is_one_sentence_and_the_turn_ends() {
    for (thread, sentence, goes_on) in [
        ("screen", "pixir crashed: this is a bug", false),
        ("session", "stopped because of a bug in pixir", true),
        ("turn", "the turn failed because of a bug in pixir", true),
    ] {
        let shell = Shell::new(&[]);
        let Some(shim) = impossible_clock(&shell) else { return };
        let gate = Gate::default();
        let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        let server = Server::start(match thread {
            "turn" => vec![Reply::Raw(vec![Act::Until(gate.clone()), Act::Send(refusal.into())])],
            _ => vec![Reply::Stall { text: "Thinking aloud".into() }],
        });
        let flags = server.flags(Dialect::Chat);
        let args: Vec<&str> = flags.iter().map(String::as_str).collect();
        let (armed_screen, armed_others) =
            (shell.home().with_file_name("screen"), shell.home().with_file_name("others"));
        let name = |path: &std::path::Path| path.display().to_string();
        let environment =
            [("LD_PRELOAD", name(&shim)), ("ARMED_SCREEN", name(&armed_screen)), ("ARMED_OTHERS", name(&armed_others))];
        let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(&shell, pixir, &args, &environment, 100, 30);
        terminal.wait_for("Ask pixir");
        // The header names the model once the Session is open; opening it asks for the time, too.
        terminal.wait_for("m · ask");
        let arm = |path| std::fs::write(path, "").expect("write");
        match thread {
            "screen" => {
                terminal.send("go\r");
                terminal.wait_for("Thinking aloud");
                arm(&armed_screen);
            }
            "session" => {
                arm(&armed_others);
                terminal.send("go\r");
            }
            _ => {
                terminal.send("go\r");
                server.wait_for(1);
                arm(&armed_others);
                gate.open();
            }
        }
        if goes_on {
            terminal.wait_for(sentence);
            terminal.send("\x03\x03\x03\x03");
        }
        let left = terminal.end();
        left.assert_sane();
        let all = String::from_utf8_lossy(&left.bytes).into_owned();
        assert_eq!(all.matches(sentence).count(), 1, "{thread}: {}", left.screen);
        assert!(!all.contains("panicked at") && left.code == u32::from(!goes_on), "{thread}: {}", left.screen);
        let log = std::fs::read_to_string(shell.home().join("log/pixir.log")).expect("the program's log");
        assert_eq!(log.matches("panic: ").count(), 1, "{thread}: {log}");
        let answering = Server::start(vec![text("On again.")]);
        let mut args = vec!["resume".to_owned(), "--last".to_owned(), "go on".to_owned(), "--headless".to_owned()];
        args.extend(answering.flags(Dialect::Chat));
        if thread == "session" {
            // Its prompt was not recorded, so this Session is not in the list.
            assert_eq!(shell.logs().len(), 1);
            continue;
        }
        let again = shell.run(args);
        assert_eq!((again.code, again.stdout.trim()), (0, "On again."), "{thread}: {}", again.stderr);
        let entries = crate::shell::entries(&shell.logs()[0]);
        for turn in [1, 2] {
            let of_turn = entries.iter().filter(|it| it["turn"] == turn && it["type"] == "turn_ended").count();
            assert_eq!(of_turn, 1, "{thread}, turn {turn}");
        }
    }
    crate::shell::figures("QU1: panics in 3 kinds of thread tried, 0 failed");
}

#[test]
fn a_left_session_ends_its_command_before_the_program_ends() {
    let shell = Shell::new(&[]);
    let mark = mark();
    let server = Server::start(vec![call(
        "c1",
        "bash",
        json!({"command": format!("echo made > made.txt; trap '' TERM; sleep {mark}")}),
    )]);
    let flags = server.flags(Dialect::Chat);
    let mut args: Vec<&str> = flags.iter().map(String::as_str).collect();
    args.extend(["--mode", "auto"]);
    let mut terminal = Terminal::start(&shell, &args, 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    wait::until("the command has begun", || shell.read("made.txt") == "made\n");
    let log = shell.logs().remove(0);
    terminal.send("/new\r");
    terminal.send("\x04");
    terminal.end().assert_sane();
    assert!(!is_running(&mark));
    let entries = crate::shell::entries(&log);
    assert_eq!(entries.last().expect("entries")["data"]["status"], "interrupted");
    let result = entries.iter().find(|e| e["type"] == "tool_result").expect("its result");
    assert_eq!(result["data"]["changes"][0]["path"], "made.txt", "its changes until then can be undone");
}

#[test]
fn ctrl_z_and_fg_hand_the_terminal_over_and_back() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("One.")]);
    let flags = server.flags(Dialect::Chat);
    // A shell with job control is between pixir and the terminal.
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
fn a_suspended_editor_suspends_pixir_and_both_resume() {
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

/// Who leaves after a very long answer reads its end in the shell, and is not kept waiting.
///
/// Broken build: all rows of the answer are drawn, and their number is no number of a row.
#[test]
fn an_answer_of_seventy_thousand_lines_is_left_like_any_other() {
    let shell = Shell::new(&[]);
    let long: String = (0..70_000).map(|n| format!("- {n}\n")).collect();
    let server = Server::start(vec![text(&long)]);
    let mut terminal = terminal(&shell, &server, &["count"], (80, 24));
    terminal.wait_for("69999");
    terminal.wait_for("/ commands");
    terminal.send("\x04");
    let ended = terminal.end();
    assert_eq!(ended.code, 0);
    ended.assert_sane();
    assert!(ended.screen.contains("69999") && ended.screen.contains("pixir resume"), "{}", ended.screen);
    let printed = String::from_utf8_lossy(&ended.bytes).matches("- ").count();
    assert!(printed < 20_000, "{printed} lines");
}
