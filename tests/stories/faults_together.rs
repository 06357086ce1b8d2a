//! Random faults of the server, the disk, the tools and the process, one after the other in the same Sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::log_faults::failing_disk;
use crate::pty::Terminal;
use crate::random::{self, Random};
use crate::server::{Act, Dialect, HEAD, Part, Reply, Server, answer, call, event, raw, text};
use crate::shell::{Shell, entries, figures, is_running, mark};
use crate::tier;
use crate::wait;

/// Rounds in one Session.
const ROUNDS_OF_A_SESSION: u64 = 40;
/// Attempts and waits that suit a test, and a window that needs no compaction.
const SETTINGS: &str = "[requests]\nattempts = 3\npatience = 1\nfirst_wait = 0.01\nhead = 1.5\nidle = 1.0\nprogress = 1.2\n\
    [models.\"custom/m\"]\nwindow = 1000000\n";

/// A run without a terminal that prints nothing for so long is ended as planned.
const SILENCE: Duration = Duration::from_millis(400);

/// The permission under which the calls of a round come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    /// They may change files.
    Granted,
    /// They may not, and are refused at once.
    ReadOnly,
    /// The user is asked, and does not answer.
    Asked,
}

/// How pixir ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    ByItself,
    Killed,
    Told(Signal),
    /// The window of the terminal is closed.
    Vanished,
}

/// What happens in a round.
#[derive(Debug)]
struct Round {
    number: u64,
    is_interface: bool,
    permission: Permission,
    end: End,
    /// The number of lines of output, or of hundredths of a second in the interface, before the end.
    after: u64,
    /// The call on the Log that fails from the n-th on, and whether all later ones fail too.
    disk: Option<(&'static str, u64, bool)>,
    /// What the server does, one for each request.
    server: Vec<&'static str>,
}

impl Round {
    fn plan(number: u64, can_fail_disk: bool, random: &mut Random) -> Round {
        let is_interface = random.chance(30);
        let all = if is_interface {
            [Permission::Granted, Permission::ReadOnly, Permission::Asked]
        } else {
            [Permission::Granted, Permission::Granted, Permission::ReadOnly]
        };
        let signal = random.of(&[Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1]);
        let end = match random.below(10) {
            0..4 => End::ByItself,
            4..7 => End::Killed,
            7 | 8 => End::Told(signal),
            _ if is_interface => End::Vanished,
            _ => End::ByItself,
        };
        let disk = (can_fail_disk && !is_interface && random.chance(50))
            .then(|| (random.of(&["write", "fdatasync"]), 1 + random.below(14), random.chance(50)));
        const FAULTS: [&str; 16] = [
            "call",
            "call",
            "call",
            "call",
            "calls",
            "calls",
            "broken call",
            "unknown tool",
            "cut",
            "reset",
            "malformed",
            "refused",
            "busy",
            "limit",
            "twice",
            "silence",
        ];
        let server = (0..1 + random.below(6)).map(|_| random.of(&FAULTS)).collect();
        Round { number, is_interface, permission: random.of(&all), end, after: random.below(30), disk, server }
    }

    /// A command that leaves the name of its call in a file.
    fn effect(&self, at: usize) -> Value {
        json!({ "command": format!("echo r{}c{at}. >> ran.txt", self.number) })
    }

    fn replies(&self, sleeping: &str) -> Vec<Reply> {
        let mut replies: Vec<Reply> = Vec::new();
        for (at, fault) in self.server.iter().enumerate() {
            let (id, effect) = (format!("r{}c{at}", self.number), self.effect(at));
            let called = || answer(Dialect::Chat, &[Part::Text("I look. "), Part::Call(&id, "bash", &effect)]);
            let half = || called()[..2].concat();
            let refuse = |status, body: Value| Reply::Refuse { status, headers: String::new(), body: body.to_string() };
            replies.push(match *fault {
                "call" => raw(&called().concat()),
                "calls" => {
                    let other = json!({ "path": format!("made-{id}.txt"), "content": "words\n" });
                    let name = format!("{id}w");
                    raw(&answer(Dialect::Chat, &[Part::Call(&id, "bash", &effect), Part::Call(&name, "write", &other)])
                        .concat())
                }
                "broken call" => call(&id, "edit", json!({ "path": 7 })),
                "unknown tool" => call(&id, "no_such_tool", effect),
                "cut" => raw(&half()),
                "reset" => Reply::Raw(vec![Act::Send((HEAD.to_owned() + &half()).into_bytes()), Act::Reset]),
                "malformed" => raw(&(half() + "data: {nope\n\n")),
                "refused" => refuse(400, json!({ "error": { "message": "no" } })),
                "busy" => refuse(503, json!({})),
                "limit" => raw(&event(&json!({ "error": { "code": "rate_limit_exceeded", "message": "slow" } }))),
                "twice" => {
                    let named = called().into_iter().enumerate().map(|(n, it)| format!("id: {id}-{n}\n{it}"));
                    raw(&named.flat_map(|it| [it.clone(), it]).collect::<String>())
                }
                _ => Reply::Raw(vec![Act::Send((HEAD.to_owned() + &half()).into_bytes()), Act::Stall]),
            });
        }
        if self.end == End::ByItself {
            replies.push(text("That is all."));
        } else {
            replies.push(call(
                &format!("r{}s", self.number),
                "bash",
                json!({ "command": format!("sleep {sleeping}") }),
            ));
        }
        replies
    }
}

/// Random faults for as long as the rounds last: every call has one result and every Turn one end, what was acknowledged
/// is on the disk, nothing ran that was not allowed, nothing ran twice or unrecorded, no process is left, and the terminal
/// is as before.
///
/// Broken builds: a call of an answer that broke off runs; an Entry is published before it is written; the gate lets
/// `bash` pass in `read-only`.
#[test]
fn random_faults_break_no_promise() {
    let rounds = u64::try_from(tier::cases("faults_together")).expect("a number");
    let seed = random::seed_of_this_run();
    figures(&format!("PROPTEST_RNG_SEED={seed} repeats these rounds"));
    let mut random = Random(seed | 1);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut shell = Shell::new(&[("a.txt", "alpha\n")]);
    let mut id = begin(&shell);
    let tools = tempfile::tempdir().expect("a folder");
    let shim = failing_disk(tools.path());
    for number in 0..rounds {
        if number % ROUNDS_OF_A_SESSION == ROUNDS_OF_A_SESSION - 1 {
            shell = Shell::new(&[("a.txt", "alpha\n")]);
            id = begin(&shell);
        }
        let round = Round::plan(number, shim.is_some(), &mut random);
        let sleeping = mark();
        let server = Server::start(round.replies(&sleeping));
        let acknowledged = if round.is_interface {
            in_the_interface(&shell, &id, &round, &server);
            BTreeSet::new()
        } else {
            headless(&shell, &id, &round, &server, shim.as_deref())
        };
        check(&shell, &id, &round, &acknowledged, &sleeping);
        let mut count = |what, is_so: bool| *counts.entry(what).or_default() += u64::from(is_so);
        count("in the interface", round.is_interface);
        count("killed", round.end == End::Killed);
        count("signals", matches!(round.end, End::Told(_)));
        count("faults of the disk", round.disk.is_some());
        count("replies", true);
        *counts.entry("replies").or_default() += u64::try_from(round.server.len()).expect("few") - 1;
    }
    figures(&format!("QK2: {rounds} rounds of random faults tried, 0 failed; {counts:?}; PROPTEST_RNG_SEED={seed}"));
}

/// Begins a Session without faults.
fn begin(shell: &Shell) -> String {
    shell.configure(SETTINGS);
    let server = Server::start(vec![text("Hello.")]);
    let mut args = server.flags(Dialect::Chat);
    args.extend(["--headless", "--json", "hi"].map(str::to_owned));
    shell.run(args).document()["session_id"].as_str().expect("an id").to_owned()
}

/// Runs the round without a terminal. Returns the ids of the Entries that were printed.
fn headless(shell: &Shell, id: &str, round: &Round, server: &Server, shim: Option<&Path>) -> BTreeSet<String> {
    let mut args = vec!["resume", id, "go", "--headless", "--format", "jsonl"];
    if round.permission == Permission::Granted {
        args.push("--write");
    }
    let flags = server.flags(Dialect::Chat);
    args.extend(flags.iter().map(String::as_str));
    let mut command = shell.command(args);
    if let (Some((call, at, sticky)), Some(shim)) = (round.disk, shim) {
        command.env("LD_PRELOAD", shim).env("CALL", call).env("AT", at.to_string());
        if sticky {
            command.env("STICKY", "1");
        }
    }
    command.stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut printed: Vec<String> = Vec::new();
    // A command or a server may be silent before that many lines have come.
    while printed.len() < number_of(round.after)
        && let Ok(line) = receiver.recv_timeout(SILENCE)
    {
        printed.push(line);
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it runs");
    // It may have ended by itself.
    let _ = match round.end {
        End::ByItself | End::Vanished => Ok(()),
        End::Killed => kill_process(pid, Signal::KILL),
        End::Told(signal) => kill_process(pid, signal),
    };
    let ended = wait::within(wait::PATIENCE, || child.try_wait().expect("it can be asked").is_some());
    if !ended {
        let _ = child.kill();
    }
    assert!(ended, "it hangs: {round:?}");
    printed.extend(receiver);
    let _ = reader.join().expect("it was read");
    let documents = printed.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    documents.filter(|it| it["seq"].is_u64()).filter_map(|it| it["id"].as_str().map(str::to_owned)).collect()
}

fn number_of(n: u64) -> usize {
    usize::try_from(n).expect("few")
}

fn in_the_interface(shell: &Shell, id: &str, round: &Round, server: &Server) {
    let flags = server.flags(Dialect::Chat);
    let mode = match round.permission {
        Permission::Granted => "auto",
        Permission::ReadOnly => "read-only",
        Permission::Asked => "ask",
    };
    let mut args = vec!["resume", id, "--mode", mode];
    args.extend(flags.iter().map(String::as_str));
    let folder = shell.home().parent().expect("a folder").display().to_string();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(shell, pixir, &args, &[("HOME", &folder)], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    // A random moment.
    wait::lapse(Duration::from_millis(10 * round.after));
    match round.end {
        End::Killed => {
            terminal.signal(Signal::KILL);
            terminal.wait_until_ended();
        }
        End::Told(signal) => {
            terminal.signal(signal);
            terminal.end().assert_sane();
        }
        End::Vanished => drop(terminal.vanish()),
        End::ByItself => {
            // Esc interrupts the Turn, or closes the card.
            terminal.send("\x1b");
            terminal.press_until("\x03", "it ends", {
                let process = terminal.process();
                move || {
                    let status = std::fs::read_to_string(format!("/proc/{process}/stat"));
                    status.map_or(true, |it| it.contains(") Z "))
                }
            });
            terminal.end().assert_sane();
        }
    }
}

/// Opens the Session again without faults, and checks every promise.
fn check(shell: &Shell, id: &str, round: &Round, acknowledged: &BTreeSet<String>, sleeping: &str) {
    let log = shell.logs().into_iter().find(|log| log.to_string_lossy().contains(id)).expect("its log");
    let before = entries(&log);
    let server = Server::start(vec![text("On again.")]);
    let mut args = vec!["resume".to_owned(), id.to_owned(), "on".into(), "--headless".into(), "--json".into()];
    args.extend(server.flags(Dialect::Chat));
    let ran = shell.run(args);
    assert_eq!(ran.code, 0, "it does not open again: {round:?}\n{}", ran.stderr);
    let all = entries(&log);
    let ids: BTreeSet<&str> = all.iter().filter_map(|it| it["id"].as_str()).collect();
    for id in acknowledged {
        assert!(ids.contains(id.as_str()), "an acknowledged entry is lost: {round:?}");
    }
    assert!(all.len() > before.len(), "{round:?}");
    let count = |kind: &str, key: &str| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for it in all.iter().filter(|it| it["type"] == kind) {
            *counts
                .entry(if key == "turn" { it["turn"].to_string() } else { it["data"][key].to_string() })
                .or_default() += 1;
        }
        counts
    };
    assert_eq!(count("tool_call", "call_id"), count("tool_result", "call_id"), "each call has one result: {round:?}");
    assert_eq!(count("user_message", "turn"), count("turn_ended", "turn"), "each turn has one end: {round:?}");
    assert!(count("tool_call", "call_id").values().all(|n| *n == 1), "each call is recorded once: {round:?}");
    // What ran: once, recorded, and allowed.
    let own = format!("r{}c", round.number);
    let commands: Vec<&str> = all
        .iter()
        .filter(|it| it["type"] == "tool_call")
        .filter_map(|it| it["data"]["args"]["command"].as_str())
        .collect();
    let mut ran = BTreeSet::new();
    for line in shell.read("ran.txt").lines().filter(|line| line.starts_with('r')) {
        assert!(ran.insert(line.to_owned()), "{line} ran twice: {round:?}");
        assert!(
            commands.iter().any(|command| command.contains(&format!("echo {line} "))),
            "{line} ran unrecorded: {round:?}"
        );
        let is_allowed = round.permission == Permission::Granted || !line.starts_with(&own);
        assert!(is_allowed, "{line} ran unapproved: {round:?}");
    }
    let made = std::fs::read_dir(shell.workspace()).expect("a folder").flatten();
    let made = made.filter(|it| it.file_name().to_string_lossy().starts_with(&format!("made-{own}"))).count();
    assert!(made == 0 || round.permission == Permission::Granted, "a file was written unapproved: {round:?}");
    assert!(!is_running(sleeping), "a command survived: {round:?}");
    assert_eq!(shell.run(["sessions", "verify", id]).code, 0, "{round:?}");
}
