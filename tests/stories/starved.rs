//! Where the machine does not give pixir what it needs: folders, disk, descriptors, a sensible clock or screen.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::sessions::session;
use crate::connected::start;
use crate::pty::Terminal;
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Ran, Shell, figures, ran, skip};
use crate::tier;
use crate::wait;

/// Runs a line of bash in which `$PIXIR` is the binary. It must end at all.
fn bash(shell: &Shell, line: &str) -> Ran {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(shell.workspace()).env("PIXIR", env!("CARGO_BIN_EXE_pixir"));
    command.env("PIXIR_HOME", shell.home()).env("HOME", shell.home()).stdin(Stdio::null());
    ended(command)
}

/// The end of a command that must not hang.
fn ended(mut command: Command) -> Ran {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let ended = wait::within(wait::PATIENCE, || child.try_wait().expect("it can be asked").is_some());
    if !ended {
        let _ = child.kill();
    }
    let ran = ran(child.wait_with_output().expect("it ends"));
    assert!(ended, "it hangs: {}", ran.stderr);
    ran
}

/// Everything logs as much as it can to a folder that takes nothing.
///
/// Broken build: the file is made by a library that panics where it cannot, and the panic hook logs through `tracing`.
#[test]
fn a_log_folder_that_cannot_be_written_stops_nothing() {
    let mut tried = 0;
    for kind in ["file", "link to nowhere", "fifo", "full"] {
        let shell = Shell::new(&[]);
        fs::create_dir_all(shell.home()).expect("mkdir");
        let log = shell.home().join("log");
        match kind {
            "file" => fs::write(&log, "not a folder").expect("write"),
            "link to nowhere" => symlink("/nowhere/at/all", &log).expect("link"),
            "fifo" => {
                fs::create_dir(&log).expect("mkdir");
                let made = Command::new("mkfifo").arg(log.join("pixir.log")).status().expect("mkfifo runs");
                assert!(made.success());
            }
            _ => {
                fs::create_dir(&log).expect("mkdir");
                symlink("/dev/full", log.join("pixir.log")).expect("link");
            }
        }
        let server = Server::start(vec![text("Hello.")]);
        let mut args = server.flags(Dialect::Chat);
        args.extend(["--headless", "hi"].map(str::to_owned));
        let mut command = shell.command(args);
        command.env("PIXIR_LOG", "trace");
        let ran = ended(command);
        assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello."), "{kind}: {}", ran.stderr);
        assert!(!ran.stderr.contains("racing"), "{kind}: {}", ran.stderr);
        tried += 1;
    }
    figures(&format!("QO2: {tried} log folders tried, 0 failed"));
}

/// Nothing but pixir draws on the screen, also while every line of its own log is lost.
///
/// Broken build: the writer of the log returns its error, which the library prints.
#[test]
fn a_full_disk_leaves_the_screen_whole() {
    let shell = Shell::new(&[]);
    let log = shell.home().join("log");
    fs::create_dir_all(&log).expect("mkdir");
    symlink("/dev/full", log.join("pixir.log")).expect("link");
    let server = Server::start(vec![text("Hello there.")]);
    let flags = server.flags(Dialect::Chat);
    let args: Vec<&str> = flags.iter().map(String::as_str).collect();
    let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
    let mut terminal = Terminal::of(&shell, pixir, &args, &[("PIXIR_LOG", "trace")], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("go\r");
    terminal.wait_for("Hello there.");
    terminal.send("\x04");
    let left = terminal.end();
    left.assert_sane();
    let all = String::from_utf8_lossy(&left.bytes).into_owned();
    assert!(!all.contains("tracing") && !all.contains("No space"), "{}", left.screen);
}

/// Few processes are an error with a remedy, at every number of them, or they are enough for a Turn with a command.
///
/// Broken builds: threads are started without a look whether the system gives them, and the task that gets none panics while
/// it is unwound, which aborts; with one thread, work waits for another one for ever.
#[test]
fn few_processes_are_an_error_and_no_abort() {
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    // No other process belongs to this user, so the limit is that of pixir alone. Root has none.
    let free = Command::new("setpriv").args(nobody).args(["prlimit", "--nproc=1", "true"]).output();
    if !free.is_ok_and(|it| it.status.success()) {
        return skip("setpriv or prlimit is missing, or limits no processes of nobody");
    }
    let (mut tried, mut worked) = (0, 0);
    for processes in (1..=12).chain([16, 24]) {
        let shell = Shell::new(&[]);
        let steps = json!({ "steps": [
            { "calls": [{ "name": "bash", "args": { "command": "echo hi > made.txt" } }] }, { "text": "Made." } ] });
        let script = shell.aside("script.json", &steps.to_string());
        let top = shell.home().parent().expect("a folder").to_owned();
        let owned = Command::new("chown").args(["-R", "65534"]).arg(&top).status().expect("chown");
        assert!(owned.success());
        for flags in [&["--headless", "--write", "go"][..], &["sessions", "list"], &["agents", "list"]] {
            let plain = shell.command(flags);
            let mut command = Command::new("setpriv");
            command.args(nobody).arg("prlimit").arg(format!("--nproc={processes}"));
            command.arg(plain.get_program()).args(plain.get_args());
            if flags.contains(&"go") {
                command.arg("--provider").arg(format!("script:{}", script.display()));
            }
            command.env_clear().envs(plain.get_envs().filter_map(|(k, v)| Some((k, v?))));
            command.current_dir(shell.workspace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let ran = ended(command);
            tried += 1;
            let is_told = ran.code == 1 && ran.stderr.contains("processes") && ran.stderr.contains("ulimit");
            worked += u32::from(!is_told);
            let is_done = !flags.contains(&"go") || shell.read("made.txt") == "hi\n";
            assert!(is_told || ran.code == 0 && is_done, "{processes}, {flags:?}: {ran:?}");
        }
    }
    figures(&format!("C13: {tried} limits on processes and commands tried, {worked} worked, 0 aborts"));
    assert!(worked > 0, "some limit is enough");
}

/// Few descriptors are an error with a remedy, at every number of them.
///
/// Broken builds: `block_on` expects its runtime; a panic hook that logs waits for itself.
#[test]
fn few_descriptors_are_an_error_and_no_hang() {
    let (mut tried, mut worked) = (0, 0);
    for descriptors in 5..=20 {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Hello."), text("Hello."), text("Hello."), text("Hello.")]);
        let flags = server.flags(Dialect::Chat).join(" ");
        let ran = bash(&shell, &format!("ulimit -n {descriptors}; exec \"$PIXIR\" --headless {flags} hi"));
        tried += 1;
        worked += u32::from(ran.code == 0);
        // Below 6 the system cannot even load the program.
        let is_told = ran.stderr.contains("code:") || ran.stderr.contains("shared libraries");
        assert!(ran.code == 0 || (ran.code > 0 && is_told), "{descriptors}: exit {}\n{}", ran.code, ran.stderr);
        assert!(!ran.stderr.contains("this is a bug"), "{descriptors}: {}", ran.stderr);
    }
    figures(&format!("QR3: {tried} limits of descriptors tried, {worked} enough, 0 failed"));
}

/// Closed standard streams are no reason to hang or to panic.
///
/// Broken build: an error on stderr that is unwrapped.
#[test]
fn closed_streams_are_survived() {
    for (closed, code) in [("<&-", 0), ("2>&-", 0), ("<&- 2>&-", 0), (">&- 2>&-", 1), ("<&- >&- 2>&-", 1)] {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Hello.")]);
        let flags = server.flags(Dialect::Chat).join(" ");
        let ran = bash(&shell, &format!("\"$PIXIR\" --headless {flags} hi {closed}"));
        assert_eq!(ran.code, code, "{closed}: {}", ran.stderr);
        let lost = bash(&shell, &format!("\"$PIXIR\" sessions show nothing {closed}"));
        assert_eq!(lost.code, 5, "{closed}: {}", lost.stderr);
    }
}

/// A shim that shows another time to one process.
const CLOCK: &str = "#include <time.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n#include <stdlib.h>\n\
    int clock_gettime(clockid_t id, struct timespec *t) {\n\
      long r = syscall(SYS_clock_gettime, id, t);\n\
      if (id == CLOCK_REALTIME) { t->tv_sec = atoll(getenv(\"SHOWN\")); }\n\
      return (int)r; }\n";

/// A clock before 1970 or beyond 9999 is an error in words, and the last days of 9999 are a time like any other.
///
/// Broken builds: the check at the start is missing, and a library panics; a log that is named by the day.
#[test]
fn an_odd_clock_is_an_error_in_words() {
    let shell = Shell::new(&[]);
    let source = shell.aside("clock.c", CLOCK);
    let shim = shell.home().with_file_name("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&shim).arg(&source).status();
    if !built.is_ok_and(|it| it.success()) {
        return skip("there is no C compiler for the clock");
    }
    // 1969-12-31, 1970-01-01, 2038, 9999-12-29, year 11000.
    for (shown, works) in
        [("-86400", false), ("1", true), ("2147483648", true), ("253402000000", true), ("285000000000", false)]
    {
        let mut command = shell.command(["demo", "--headless", "--json"]);
        command.env("LD_PRELOAD", &shim).env("SHOWN", shown).env("PIXIR_LOG", "trace");
        let ran = ended(command);
        if works {
            assert_eq!(ran.code, 0, "{shown}: {}", ran.stderr);
        } else {
            assert_eq!((ran.code, ran.error()["code"].clone()), (1, json!("SESSION_START_FAILED")), "{shown}");
            assert!(ran.stderr.contains("clock"), "{shown}: {}", ran.stderr);
        }
    }
}

/// A terminal that claims to have 65,535 columns and rows is drawn as far as it makes sense.
///
/// Broken build: the canvas has the size that the terminal claims, which takes 400 GB.
#[test]
fn a_terminal_that_claims_four_billion_cells_is_drawn() {
    let shell = Shell::new(&[]);
    let server = Server::start(vec![text("Hello there.")]);
    let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
    terminal.wait_for("Ask pixir");
    for (columns, rows) in [(65_535, 65_535), (65_535, 1), (1, 65_535), (0, 0), (80, 24)] {
        let before = terminal.written();
        terminal.claim(columns, rows);
        if (columns, rows) == (65_535, 65_535) {
            terminal.wait_that_written("a frame of that size", before + 100);
        }
    }
    terminal.settle();
    terminal.send("go\r");
    terminal.wait_for("Hello there.");
    let status = fs::read_to_string(format!("/proc/{}/status", terminal.process())).expect("it runs");
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    assert!(peak.is_some_and(|kb| kb < 400 << 10), "{peak:?} KB");
    terminal.send("\x04");
    terminal.end().assert_sane();
}

/// The state folder is named where it is the reason, in every command that needs it.
///
/// Broken build: the first file in it that is read reports its own error, or a list is empty.
#[test]
fn a_home_that_is_no_folder_is_named_as_the_reason() {
    let shell = Shell::new(&[]);
    let file = shell.aside("home-file", "not a folder");
    let below = file.join("state");
    let long = format!("/tmp/{}", "x".repeat(5_000));
    for home in [file.display().to_string(), below.display().to_string(), long] {
        for args in
            [&["sessions", "list", "--json"][..], &["hi", "--headless", "--json"], &["models", "list", "--json"]]
        {
            let mut command = shell.command(args);
            command.env("PIXIR_HOME", &home);
            let ran = ended(command);
            assert_eq!(
                (ran.code, ran.error()["code"].clone()),
                (10, json!("CONFIG_INVALID")),
                "{args:?}: {}",
                ran.stderr
            );
            assert!(ran.stderr.contains("state folder") && ran.stderr.contains("PIXIR_HOME"), "{}", ran.stderr);
        }
    }
}

/// A limit on the size of files is a disk that is full: an error, and no signal that kills without a word.
///
/// Broken build: SIGXFSZ is not caught.
#[test]
fn a_limit_on_files_is_an_error() {
    let shell = Shell::new(&[]);
    let server =
        Server::start(vec![call("c1", "bash", json!({"command": "seq 1 3000"})), text(&"word ".repeat(2_000))]);
    let flags = server.flags(Dialect::Chat).join(" ");
    let ran = bash(&shell, &format!("ulimit -f 4; exec \"$PIXIR\" --headless --write {flags} hi"));
    assert!(ran.code > 0 && ran.code < 128, "exit {}: {}", ran.code, ran.stderr);
    assert!(ran.stderr.contains("_FAILED"), "{}", ran.stderr);
}

/// Commands that wait for no signal report that limit too, and what pixir starts gets the signal as usual.
///
/// Broken builds: `main` does not catch SIGXFSZ; it ignores the signal, and so does every child.
#[test]
fn a_limit_on_files_is_an_error_for_every_command() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    session(&shell);
    let long = "word ".repeat(1_000);
    for line in [
        "schema > schema.json",
        "sessions export last --to html --output page.html",
        "sessions export last --to json > export.json",
        "--help > help.txt",
        &format!("run --write 'write b.txt \"{long}\"'"),
        &format!("tools run write --write '{}'", json!({"path": "c.txt", "content": long})),
    ] {
        let ran = bash(&shell, &format!("ulimit -f 1; \"$PIXIR\" {line}"));
        let shown: String = line.chars().take(40).collect();
        // What a tool reports is a result.
        let is_result = line.starts_with("run") || line.starts_with("tools");
        let is_error = (1..128).contains(&ran.code) || (ran.code == 0 && is_result);
        assert!(is_error, "{shown}: exit {}: {}{}", ran.code, ran.stdout, ran.stderr);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("File too large"), "{shown}: {said}");
    }
    let ran = bash(&shell, "\"$PIXIR\" tools run bash --write '{\"command\": \"grep SigIgn /proc/self/status\"}'");
    let ignored = ran.stdout.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    let ignored = u64::from_str_radix(ignored.expect("the kernel tells"), 16).expect("hexadecimal digits");
    assert_eq!(ignored & (1 << (Signal::XFSZ.as_raw() - 1)), 0, "{}", ran.stdout);
}

/// The address space over the pages of the program in which every command without a Turn works, MB.
const FEWEST: u64 = 8;
/// That in which everything works.
const ENOUGH: u64 = 72;

/// The address space that the pages of a program file take, MB: what the system maps before the program does anything.
fn mapped(program: &Path) -> u64 {
    let mut file = fs::File::open(program).expect("the program");
    let mut header = [0; 4 << 10];
    file.read_exact(&mut header).expect("its headers");
    let number = |at: usize, bytes: usize| {
        header[at..at + bytes].iter().rev().fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte))
    };
    // ELF64: the program headers, of which those of type 1 are loaded.
    let (first, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let headers = (0..count).map(|n| usize::try_from(first + n * size).expect("they stand at the start"));
    let loaded = headers.filter(|at| number(*at, 4) == 1).map(|at| (number(at + 0x10, 8), number(at + 0x28, 8)));
    let (start, end) = loaded.fold((u64::MAX, 0), |(start, end), (at, len)| (start.min(at), end.max(at + len)));
    (end - start).div_ceil(1 << 20)
}

/// Little address space is an error with its reason, or it is enough; never an abort, and never a thread that is waited
/// for and cannot start. The limits are those over the pages of the program file, so that a build without optimisation
/// is judged as the release build is.
///
/// Broken builds: `block_on` does not ask for the space that is left; each thread has a heap of its own, which takes the
/// space that the next thread needs.
#[test]
fn little_address_space_is_an_error_or_enough() {
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    session(&shell);
    let program = mapped(env!("CARGO_BIN_EXE_pixir").as_ref());
    let limits = || (FEWEST..=FEWEST + 192).step_by(4).chain([256, 320, 384, 448, 704, 960]);
    let (mut tried, mut worked) = (0, 0);
    for over in tier::sample("little_address_space", limits().collect()) {
        let megabytes = program + over;
        let server = Server::start(vec![call("c1", "bash", json!({"command": "seq 1 3000"})), text("Hello.")]);
        let flags = server.flags(Dialect::Chat).join(" ");
        for (command, must_work) in [
            ("--version".to_owned(), true),
            ("sessions list".to_owned(), true),
            (format!("--headless --write {flags} hi"), over >= ENOUGH),
        ] {
            let kilobytes = megabytes << 10;
            let ran = bash(&shell, &format!("ulimit -v {kilobytes}; exec \"$PIXIR\" {command}"));
            tried += 1;
            worked += u32::from(ran.code == 0);
            let is_told = ran.code == 1 && ran.stderr.contains("address space") && ran.stderr.contains("ulimit");
            let is_fine = ran.code == 0 || (is_told && !must_work);
            assert!(is_fine, "{over} MB over {program}, {command}: exit {}\n{}", ran.code, ran.stderr);
        }
    }
    for over in limits().filter(|over| (over - FEWEST) % 16 == 12 || *over > FEWEST + 192) {
        let megabytes = program + over;
        let server = Server::start(vec![text("Hello there.")]);
        let flags = server.flags(Dialect::Chat).join(" ");
        let line = format!("ulimit -v {}; exec {} {flags}", megabytes << 10, env!("CARGO_BIN_EXE_pixir"));
        let mut terminal = Terminal::of(&shell, "bash".as_ref(), &["-c", &line], &[], 80, 24);
        tried += 1;
        if over >= ENOUGH {
            terminal.wait_for("Ask pixir");
            terminal.send("go\r");
            terminal.wait_for("Hello there.");
            terminal.send("\x04");
            worked += 1;
        } else if wait::found(wait::PATIENCE, || {
            ["Ask pixir", "address space"].into_iter().find(|it| terminal.screen().contains(it))
        }) == Some("Ask pixir")
        {
            terminal.send("\x04");
            worked += 1;
        }
        let left = terminal.end();
        left.assert_sane();
        assert!(left.code < 128, "{over} MB over {program}: exit {}\n{}", left.code, left.screen);
    }
    figures(&format!(
        "QR3: {tried} starts with {FEWEST} MB to 1 GB of addresses over the {program} MB of the program tried, {worked} enough, 0 failed"
    ));
}

/// Files that pixir reads at its start are read only if they are files: opening a FIFO waits for somebody who writes into it.
///
/// Broken build: one of them is opened like any other file.
#[test]
fn a_fifo_in_place_of_a_file_of_pixir_is_no_hang() {
    for (name, code) in
        [(".config/pixir/config.toml", "CONFIG_INVALID"), ("home/auth.json", "AUTH_READ_FAILED"), ("home/sandbox", "")]
    {
        let shell = Shell::new(&[("a.txt", "a\n")]);
        let path = shell.home().parent().expect("a parent").join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
        let script = shell.aside("talk.json", r#"{"steps": [{"text": "Hello."}]}"#);
        let provider = format!("script:{}", script.display());
        let started = ended(shell.command(["--provider", &provider, "--headless", "--json", "hello"]));
        if code.is_empty() {
            assert_eq!(started.code, 0, "{name}: {started:?}");
        } else {
            assert_eq!(started.error()["code"], code, "{started:?}");
            assert!(started.stderr.contains("not a file"), "{}", started.stderr);
        }
        let examined = ended(shell.command(["doctor", "--json"]));
        assert!(examined.stdout.contains("\"checks\"") || examined.stdout.contains(code), "{name}: {examined:?}");
        assert!(fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file()), "{name} is as it was");
    }
}

/// Opening a FIFO waits for its other end, and a thread that waits there never ends: the runtime has 512 of them.
///
/// Broken build: the header reads `.git` and `HEAD` like any other file.
#[test]
fn no_thread_waits_for_a_fifo_in_place_of_the_repository() {
    let fifo = |path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
        path.to_owned()
    };
    let kinds = ["FIFO", "HEAD", "link", "gitdir", "HEAD of gitdir", "socket", "device"];
    for kind in kinds {
        let shell = Shell::new(&[("a.txt", "a\n")]);
        let git = shell.workspace().join(".git");
        let aside = shell.home().with_file_name("elsewhere");
        let waiting_for = match kind {
            "FIFO" => Some(fifo(&git)),
            "HEAD" => {
                fs::create_dir(&git).expect("mkdir");
                Some(fifo(&git.join("HEAD")))
            }
            "link" => {
                symlink(&aside, &git).expect("link");
                Some(fifo(&aside))
            }
            "gitdir" => {
                fs::write(&git, format!("gitdir: {}\n", aside.display())).expect("write");
                Some(fifo(&aside))
            }
            "HEAD of gitdir" => {
                fs::write(&git, format!("gitdir: {}\n", aside.display())).expect("write");
                fs::create_dir(&aside).expect("mkdir");
                Some(fifo(&aside.join("HEAD")))
            }
            "socket" => {
                UnixListener::bind(&git).expect("a socket");
                None
            }
            _ => {
                symlink("/dev/null", &git).expect("link");
                None
            }
        };
        let server = Server::start(vec![text("First answer."), text("Second answer.")]);
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("one\r");
        terminal.wait_for("First answer.");
        terminal.send("two\r");
        terminal.wait_for("Second answer.");
        terminal.settle();
        if let Some(path) = waiting_for {
            // The system lets a writer in that does not wait only if a reader is there, also one that waits itself.
            let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag");
            let writer = fs::OpenOptions::new().write(true).custom_flags(flags).open(&path);
            let refusal = writer.err().and_then(|e| e.raw_os_error());
            assert_eq!(refusal, Some(rustix::io::Errno::NXIO.raw_os_error()), "{kind}: a thread waits for the FIFO");
        }
        terminal.send("\x04");
        terminal.end().assert_sane();
    }
    figures(&format!("{} kinds of special files in place of a repository tried, 0 failed", kinds.len()));
}

/// Searches, `find`, the snapshot around a command and the mentions of the composer walk over the workspace, and read its
/// ignore rules.
///
/// Broken build: the walk opens a FIFO in the place of a file of rules, and waits for ever.
#[test]
fn a_fifo_in_place_of_ignore_rules_holds_no_walk() {
    for place in [".gitignore", ".ignore", "sub/.gitignore", "sub/.ignore", ".git/info/exclude", "elsewhere/commondir"]
    {
        let shell = Shell::new(&[("a.txt", "needle\n"), ("sub/b.txt", "b\n")]);
        let path = shell.workspace().join(place);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
        if place.starts_with("elsewhere") {
            shell.write(".git", "gitdir: elsewhere\n");
        }
        for (tool, args) in [
            ("grep", json!({ "pattern": "needle" })),
            ("find", json!({ "pattern": "**/*.txt" })),
            ("bash", json!({ "command": "echo made > made.txt" })),
        ] {
            let ran = ended(shell.command(["tools", "run", tool, "--write", "--json", &args.to_string()]));
            let result = &ran.document()["result"];
            assert_eq!(result["exit_code"], 0, "{place}, {tool}: {ran:?}");
            assert!(
                tool == "bash" || result["output"].as_str().is_some_and(|it| it.contains("a.txt")),
                "{place}: {ran:?}"
            );
        }
        let server = Server::start(vec![]);
        let mut terminal = start(&shell, &server, Dialect::Chat, 80, 24);
        terminal.wait_for("Ask pixir");
        terminal.send("@a.t");
        terminal.wait_that("the file is offered", |screen| screen.matches("a.txt").count() > 0);
        terminal.send("\x15");
        terminal.wait_that("the composer is empty", |screen| !screen.contains("@a.t"));
        terminal.send("\x04");
        terminal.end().assert_sane();
    }
}
