//! The launcher and the tiers: what holds pixir and its programs apart, and what happens where nothing can.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Stdio};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};
use crate::pty::Terminal;
use crate::shell::{SECRET, Shell, entries, is_running, mark};

const EVERYDAY: &str = include_str!("../commands/everyday.txt");

/// Does something as on a kernel that refuses these system calls, with the rules under which it does.
fn on_a_kernel_without<T: Send>(refused: Vec<(i64, Vec<SeccompRule>)>, act: impl FnOnce() -> T + Send) -> T {
    let rules: BTreeMap<i64, Vec<SeccompRule>> = refused.into_iter().collect();
    let arch = std::env::consts::ARCH.try_into().expect("a known machine");
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a filter");
    // A filter holds for the thread that applies it, and for all processes that it starts.
    let run = move || {
        apply_filter(&program).expect("the filter holds");
        act()
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("it ends"))
}

/// New user namespaces are refused; others of the same calls are not.
fn no_user_namespaces() -> Vec<(i64, Vec<SeccompRule>)> {
    let new_user = libc::CLONE_NEWUSER.unsigned_abs().into();
    let with_flag = || {
        let op = SeccompCmpOp::MaskedEq(new_user);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, op, new_user).expect("a condition");
        vec![SeccompRule::new(vec![condition]).expect("a rule")]
    };
    vec![(libc::SYS_unshare, with_flag()), (libc::SYS_clone, with_flag())]
}

fn no_sandbox_at_all() -> Vec<(i64, Vec<SeccompRule>)> {
    let mut all = no_user_namespaces();
    all.push((libc::SYS_landlock_create_ruleset, Vec::new()));
    all
}

/// Runs commands as calls of one Session; returns its Log.
fn session(shell: &Shell, commands: &[&str], flags: &[&str]) -> Vec<Value> {
    let calls = commands.iter().map(|it| json!({ "name": "bash", "args": { "command": it } })).collect::<Vec<_>>();
    let script = json!({ "steps": [{ "calls": calls }, { "text": "done" }] }).to_string();
    let provider = format!("script:{}", shell.aside("script.json", &script).display());
    let before = shell.logs();
    let ran = shell.run(["--provider", &provider, "--headless"].iter().chain(flags).chain(&["go"]));
    let log = shell.logs().into_iter().find(|it| !before.contains(it)).unwrap_or_else(|| panic!("{}", ran.stderr));
    entries(&log)
}

fn results(log: &[Value]) -> Vec<&Value> {
    log.iter().filter(|it| it["type"] == "tool_result").map(|it| &it["data"]).collect()
}

/// Broken build: `start::prepare` leaves the process open to its user.
#[test]
fn no_other_process_of_the_user_reads_pixir() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let shell = Shell::new(&[]);
    let top = shell.workspace().parent().expect("a parent").to_owned();
    // Its grandparent is pixir: the launcher lies between. The first line shows that the look works at all.
    let look = r#"pid=$PPID; echo "launcher $(tr '\0' ' ' < /proc/$pid/cmdline | cut -c1-14)"
for n in 1 2; do
  tr '\0' '\n' < /proc/$pid/environ
  (exec 9< /proc/$pid/mem) && echo "mem of $n"
  (exec 9< /proc/$pid/maps) && echo "maps of $n"
  ls /proc/$pid/fd/ > /dev/null && echo "descriptors of $n"
  pid=$(sed -n 's/^PPid:\t//p' /proc/$pid/status)
done"#;
    fs::write(shell.workspace().join("look.sh"), look).expect("write");
    let script =
        json!({ "steps": [{ "calls": [{ "name": "bash", "args": { "command": "bash look.sh" } }] }, { "text": "x" }] });
    shell.aside("script.json", &script.to_string());
    let mut pixir = if is_root {
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).expect("chmod");
        assert!(Command::new("chown").args(["-R", "65534"]).arg(&top).status().expect("chown").success());
        let mut it = Command::new("setpriv");
        it.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--", env!("CARGO_BIN_EXE_pixir")]);
        it
    } else {
        Command::new(env!("CARGO_BIN_EXE_pixir"))
    };
    // Nothing confines this one, and a rule of the user lets it run.
    let provider = format!("script:{}", top.join("script.json").display());
    let ran = pixir
        .args(["--provider", &provider, "--headless", "--mode", "auto", "--sandbox", "none"])
        .args(["--allow", "bash(bash look.sh)", "go"])
        .current_dir(shell.workspace())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &top)
        .env("PIXIR_HOME", shell.home())
        .env("MY_TOKEN", format!("{SECRET}-of-pixir"))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let log = shell.logs().pop().unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let log = entries(&log);
    let output = results(&log)[0]["output"].as_str().expect("text").to_owned();
    assert!(output.contains("launcher pixir-sandbox"), "{output}");
    for found in [SECRET, "mem of", "maps of", "descriptors of", "PIXIR_HOME="] {
        assert!(!output.contains(found), "{found}: {output}");
    }
}

/// Broken builds: the launcher ends with an exit code; `Start` is not asked, so that a fault of the first process in the
/// namespace is taken for the program's end.
#[test]
fn a_sandbox_that_cannot_be_set_up_is_an_error_of_its_own() {
    let pivot = || vec![(libc::SYS_pivot_root, Vec::new())];
    let landlock = || vec![(libc::SYS_landlock_restrict_self, Vec::new())];
    for (tier, refused, why) in [
        ("ns", no_user_namespaces(), "enter namespaces"),
        ("ns", pivot(), "exchange the root"),
        ("ll", landlock().into_iter().chain(no_user_namespaces()).collect(), "restrict this process"),
    ] {
        let shell = Shell::new(&[]);
        on_a_kernel_without(refused, || {
            // What was found once is no longer so: an administrator has switched it off.
            session(&shell, &[], &["--mode", "auto"]);
            let note = shell.home().join("sandbox");
            let found = fs::read_to_string(&note).expect("a note");
            let (_, world) = found.split_once('\n').expect("two parts");
            fs::write(&note, format!("{tier}\n{world}")).expect("write");
            let log = session(&shell, &["touch made; echo ran", "ls"], &["--mode", "auto"]);
            assert_eq!(log[0]["data"]["sandbox"], tier);
            for result in results(&log) {
                assert_eq!(result["error"]["code"], "SANDBOX_FAILED", "{result}");
                let told = result["output"].as_str().expect("text");
                assert!(told.contains("the sandbox could not be set up: ") && told.contains(why), "{told}");
                assert!(told.contains("check the setup of this machine") && !told.contains("159"), "{told}");
            }
            assert!(!shell.workspace().join("made").exists());
            // The next look finds what works now.
            let next = session(&shell, &[], &["--mode", "auto"]);
            assert_ne!(next[0]["data"]["sandbox"], tier);
        });
    }
}

/// The launcher beside pixir is used if it is of the same build, however old its file is; another one never is.
///
/// Broken build: `choose` takes whatever lies beside.
#[test]
fn the_launcher_of_another_build_is_not_used() {
    let shell = Shell::new(&[]);
    let folder = shell.home().parent().expect("a parent").join("installed");
    fs::create_dir_all(&folder).expect("mkdir");
    let (pixir, launcher) = (folder.join("pixir"), folder.join("pixir-sandbox"));
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_pixir-sandbox"));
    if fs::hard_link(env!("CARGO_BIN_EXE_pixir"), &pixir).is_err() {
        fs::copy(env!("CARGO_BIN_EXE_pixir"), &pixir).expect("copy");
    }
    let own = fs::read(built).expect("the launcher");
    let told = Command::new(built).arg("build").output().expect("it starts").stdout;
    assert_eq!(told.len(), 16, "a launcher tells its build");
    let at = own.windows(told.len()).position(|it| it == told).expect("it is in the file");
    let mut other = own.clone();
    other[at..at + told.len()].copy_from_slice(b"0123456789abcdef");
    let script = b"#!/bin/sh\necho 0123456789abcdef\n".to_vec();
    for (what, bytes, wanted) in [
        ("the same build", Some(&own), "launcher beside"),
        ("another build", Some(&other), "launcher own"),
        ("no launcher", Some(&script), "launcher own"),
        ("none", None, "launcher own"),
        ("the same build again", Some(&own), "launcher beside"),
    ] {
        let _ = fs::remove_file(&launcher);
        if let Some(bytes) = bytes {
            fs::write(&launcher, bytes).expect("write");
            fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).expect("chmod");
            let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
            fs::File::options().write(true).open(&launcher).and_then(|it| it.set_modified(long_ago)).expect("a time");
        }
        // The second time it is known.
        for _ in 0..2 {
            let mut command = Command::new(&pixir);
            command.args(["tools", "run", "bash", r#"{"command":"echo ran"}"#, "--write"]).env_clear();
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("PIXIR_HOME", shell.home());
            let ran = command.current_dir(shell.workspace()).stdin(Stdio::null()).output().expect("it starts");
            assert!(String::from_utf8_lossy(&ran.stdout).contains("ran\n"), "{what}: {ran:?}");
            let note = fs::read_to_string(shell.home().join("sandbox")).expect("a note");
            assert_eq!(note.lines().nth(1), Some(wanted), "{what}");
        }
    }
}

/// A program that ends by the launcher's signal, says what the launcher says, or sends that signal to everyone it reaches has
/// still run.
///
/// Broken build: the launcher does not block signals.
#[test]
fn no_program_pretends_that_it_never_ran() {
    for tier in ["ns", "ll"] {
        let shell = Shell::new(&[]);
        let said = "echo 'the sandbox could not be set up: x' >&2; touch made; ";
        let ways = [
            "kill -SYS $$",
            "kill -SYS 0",
            "kill -SYS $PPID; kill -SYS $$",
            "trap '' SYS; kill -SYS 0; exit 159",
            "exit 159",
        ];
        let commands: Vec<String> = ways.iter().map(|way| format!("{said}{way}")).collect();
        let log = session(
            &shell,
            &commands.iter().map(String::as_str).collect::<Vec<_>>(),
            &["--mode", "auto", "--sandbox", tier],
        );
        for (way, result) in ways.iter().zip(results(&log)) {
            assert!(result["error"].is_null() && result["exit_code"] == 159, "{tier}: {way}: {result}");
        }
        let log = session(&shell, &["rm made; kill -KILL 0"], &["--mode", "auto", "--sandbox", tier]);
        assert!(results(&log)[0]["error"].is_null(), "{tier}: {log:?}");
    }
}

/// Broken builds: `working_tier` takes the wish for what works; `judge` lets readers run where nothing confines them.
#[test]
fn on_a_kernel_without_any_sandbox_everything_asks() {
    let shell = Shell::new(&[("in", "text\n"), ("src/main.rs", "fn main() {}\n")]);
    let looks: Vec<&str> = EVERYDAY.lines().filter_map(|line| line.strip_prefix("look ")).collect();
    let every: Vec<&str> = EVERYDAY.lines().filter_map(|line| line.split_once(' ')).map(|(_, line)| line).collect();
    on_a_kernel_without(no_sandbox_at_all(), || {
        for (commands, flags) in [
            (&looks, vec!["--mode", "ask", "--no-input"]),
            (&looks, vec!["--mode", "read-only"]),
            (&every, vec!["--mode", "auto"]),
            (&every, vec!["--mode", "auto", "--sandbox", "ns"]),
        ] {
            let log = session(&shell, commands, &flags);
            assert_eq!(log[0]["data"]["sandbox"], "none");
            let ran = results(&log).into_iter().filter(|it| it["error"]["kind"] != "permission_denied").count();
            assert_eq!((ran, results(&log).len()), (0, commands.len()), "{flags:?}: so many ran");
            let allowed =
                log.iter().filter(|it| it["type"] == "permission_decision" && it["data"]["verdict"] == "allow");
            assert_eq!(allowed.count(), 0, "{flags:?}");
            if flags[1] == "auto" {
                // The reason is given once, and the way out is not the mode that it is in.
                let first = results(&log)[0]["output"].as_str().expect("a text").to_owned();
                let told = first.matches("no sandbox works on this machine").count();
                assert!(told == 1 && !first.contains("the mode to auto"), "{flags:?}: {first}");
            }
        }
        let doctor = shell.run(["doctor", "--json"]);
        assert!(doctor.stdout.contains("none works here: pixir asks before it runs any command"), "{}", doctor.stdout);
        let terminal = Terminal::start(&shell, &["--provider", "demo"], 100, 24);
        terminal.wait_for("no sandbox");
    });
    // The same lines run unasked where something confines them.
    let log = session(&shell, &["ls", "cat in"], &["--mode", "ask", "--no-input"]);
    assert!(results(&log).iter().all(|it| it["ok"] == true), "{log:?}");
}

/// Broken build: the header leaves the sandbox out, or drops it before the model.
#[test]
fn the_header_names_the_sandbox_as_long_as_there_is_room() {
    for (tier, columns, wanted) in [
        ("ns", 100, " · ask · sandbox ns"),
        ("ll", 100, " · ask · sandbox ll"),
        ("none", 100, " · ask · no sandbox"),
        ("ns", 40, " · ask · ns"),
        ("none", 40, " · ask · no sandbox"),
    ] {
        let shell = Shell::new(&[]);
        let terminal = Terminal::start(&shell, &["--provider", "demo", "--sandbox", tier], columns, 24);
        terminal.wait_for(wanted);
    }
}

/// Processes that outlive their program are ended by the launcher, also those that ignore the first signal, and those that
/// start others when they hear it.
///
/// Broken builds: `end_all_others` or `end_descendants` returns at once, or sends no second signal.
#[test]
fn late_processes_are_ended_before_the_result() {
    for tier in ["ns", "ll"] {
        let marker = mark();
        let shell = Shell::new(&[]);
        let late = format!(
            "(trap '' TERM HUP; sleep {marker} & wait) & setsid bash -c \"trap 'setsid sleep {marker} & sleep {marker}' TERM; \
             touch ready; while :; do sleep {marker} & wait; done\" & until [ -e ready ]; do :; done; echo over; exit 3"
        );
        let log = session(&shell, &[&late], &["--mode", "auto", "--sandbox", tier]);
        let result = results(&log)[0].clone();
        let told = result["output"].as_str().expect("text");
        assert_eq!(result["exit_code"], 3, "{tier}: the program's own end: {told}");
        assert!(
            told.contains("over") && told.contains("processes that the command left running were stopped"),
            "{told}"
        );
        assert!(!is_running(&marker), "{tier}");
    }
}

/// A command that the sandbox stopped half-way runs again with the user's consent. Its changes are those of both runs.
///
/// Broken build: `carry_out_prepared` forgets the first output.
#[tokio::test]
async fn the_changes_of_both_runs_are_one() {
    let line = "n=$(cat n); echo $((n + 1)) > n; [ $n = 0 ] && rm gone && echo once > made; echo twice >> made; \
                echo 'connect: Network is unreachable' >&2; [ $n = 1 ]";
    let steps = vec![calls("bash", json!({ "command": line })), says("Done.")];
    let mut pixir = Pixir::new(steps, &[("n", "0\n"), ("gone", "was here\n")]);
    pixir.does("go<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("the sandbox blocked the network"), "{screen}");
    pixir.does("<A-y>").await;
    assert_eq!((pixir.file("n"), pixir.file("made")), ("2\n".to_owned(), "once\ntwice\ntwice\n".to_owned()));
    let log = pixir.log();
    let result = log.iter().find(|it| it["type"] == "tool_result").expect("a result");
    let changes = result["data"]["changes"].as_array().expect("changes");
    let kinds: Vec<(&str, &str)> = changes
        .iter()
        .map(|it| (it["path"].as_str().unwrap_or_default(), it["kind"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(changes.len(), 3, "{kinds:?}");
    for wanted in [("n", "modified"), ("made", "created"), ("gone", "deleted")] {
        assert!(kinds.contains(&wanted), "{kinds:?}");
    }
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert_eq!((pixir.file("n"), pixir.file("gone")), ("0\n".to_owned(), "was here\n".to_owned()));
    assert!(!pixir.path("made").exists(), "undo goes behind the first run");
}
