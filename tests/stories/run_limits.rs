//! The limits of a line of the run language, and its end.

use crate::shell::{Shell, is_running, mark};
use crate::tier;
use crate::{random, wait};
use proptest::prelude::*;
use serde_json::json;

use super::run_language::{read, shell};

#[test]
fn a_dry_run_reads_files_and_changes_none() {
    let shell = shell();
    let plan = |text: &str| {
        let document = shell.run(["run", text, "--dry-run", "--json"]).document();
        document["result"]["plan"].clone()
    };
    let it = plan("cat a.txt | grep ERROR | write b.txt");
    assert_eq!((&it["bytes"], &it["paths"]), (&json!(10), &json!(["b.txt"])));
    assert!(it["steps"][0]["diff"].as_str().expect("a diff").contains("+ERROR two"), "{it}");
    let it = plan("make all | write log.txt && rm -rf build");
    let output = it.to_string();
    for said in ["rm -rf build", "log.txt (the output of the program before it)", "are previewed as if it succeeded"] {
        assert!(output.contains(said), "{output}");
    }
    let it = plan("test -f nothing && write b.txt x || write c.txt y");
    assert_eq!(it["paths"], json!(["c.txt"]), "the preview lists the paths that are certain");
    let names: Vec<_> = std::fs::read_dir(shell.workspace()).expect("list").flatten().map(|e| e.file_name()).collect();
    assert_eq!(names.len(), 3, "nothing was made: {names:?}");
}

#[test]
fn a_refused_line_runs_nothing() {
    let shell = shell();
    for text in ["write b.txt x", "cat a.txt | write b.txt", "ls && touch b.txt", "echo x | sh"] {
        let ran = shell.run(["run", text, "--json"]);
        assert_eq!((ran.code, ran.error()["code"].as_str()), (12, Some("MUTATION_BLOCKED")), "{text}");
    }
    assert!(!shell.workspace().join("b.txt").exists());
    let outside = shell.run(["run", "write ../b.txt x", "--json", "--write"]);
    assert_eq!((outside.code, outside.error()["error"]["kind"].as_str()), (6, Some("outside_workspace")));
    let ran = shell.run(["run", "cat a.txt | grep ERROR", "--json"]);
    assert_eq!(ran.document()["result"]["output"].as_str().map(|t| t.starts_with("ERROR two\n")), Some(true));
}

#[test]
fn a_line_that_cannot_work_is_refused_without_an_approval() {
    let shell = shell();
    for (text, code) in [
        ("edit a.txt nothing new && write b.txt x", "NO_MATCH"),
        ("echo x | write b.txt && write", "USAGE"),
        ("write b.txt x; sort --nonsense a.txt", "UNKNOWN_FLAG"),
        ("write a.txt/b x", "WRITE_FAILED"),
    ] {
        // Without --write, so that a valid line would be refused with another code.
        let ran = shell.run(["run", text, "--json"]);
        assert_eq!(ran.error()["code"], code, "{text}");
    }
    assert!(!shell.workspace().join("b.txt").exists());
    // A line that changes nothing in the present state needs no permission; one that depends on an earlier write does.
    let ran = shell.run(["run", "test -f missing && write b.txt x || echo none", "--json"]);
    assert!(ran.document()["result"]["output"].as_str().expect("text").starts_with("none\n"));
    let both = "write b.txt one && edit b.txt one two";
    assert_eq!(shell.run(["run", both, "--json"]).code, 12);
    assert_eq!(shell.run(["run", both, "--json", "--write"]).code, 0);
    assert_eq!(shell.read("b.txt"), "two");
}

#[test]
fn a_command_cut_off_writes_no_file() {
    let shell = Shell::new(&[("f.txt", "precious\n")]);
    for text in [
        "sleep 30 | write f.txt",
        "bash -c 'echo partial; sleep 30' | write f.txt",
        "bash -c 'echo x; sleep 30' | edit f.txt",
    ] {
        let ran = shell.run(["run", text, "--write", "--json", "--timeout", "1"]);
        assert_eq!(ran.document()["result"]["exit_code"], 124, "{text}");
        assert_eq!(shell.read("f.txt"), "precious\n", "{text}");
    }
}

#[test]
fn a_line_runs_only_what_its_preview_listed() {
    let shell = Shell::new(&[("seed", "#!/bin/sh\ntouch harm\n"), ("a.txt", "a\n")]);
    std::process::Command::new("chmod").args(["+x", "seed"]).current_dir(shell.workspace()).status().expect("chmod");
    // A program that the line makes is part of its preview; one that appears meanwhile does not run.
    let plan = shell.run(["run", "cp seed made && ./made", "--dry-run", "--json"]).document();
    assert!(plan["result"]["plan"].to_string().contains("./made"), "{plan}");
    assert_eq!(read(&shell, "cp seed made && ./made").1, 0);
    assert!(shell.workspace().join("harm").exists());
    let (output, exit) = read(&shell, "true; ./appears");
    assert!(output.contains("[error] unknown command: ./appears") && exit == 127, "{output}");
    // A preview that takes too long permits nothing.
    let big: String = (0..900_000).map(|n| format!("{n} zq\n")).collect();
    shell.write("big.txt", &big);
    for flags in [&[][..], &["--dry-run"]] {
        // No machine sorts this within a second.
        let sorts = " | sort -k1 | sort -r".repeat(20);
        let line = format!("sort -k2 big.txt{sorts} | wc -l; touch pwned");
        let all = ["run", &line, "--json", "--timeout", "1"];
        let ran = shell.run(all.iter().chain(flags));
        assert!(!shell.workspace().join("pwned").exists(), "{flags:?}");
        assert_eq!(ran.code, 8, "{} {}", ran.stdout, ran.stderr);
    }
    // The preview lists the paths behind a program too.
    let plan = shell.run(["run", "cp a.txt y; test -f y && write hidden.txt x", "--dry-run", "--json"]).document();
    assert!(plan["result"]["plan"]["paths"].to_string().contains("hidden.txt"), "{plan}");
    // A branch that the preview excluded does not run, even when its condition has changed.
    let slow: String = (0..400_000).map(|n| format!("{n}\n")).collect();
    shell.write("slow.txt", &slow);
    let text = "sort -n slow.txt | wc -l; sort -n slow.txt | wc -l; test -f later && write harm2 x";
    let mut child = shell.command(["run", text]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    // The file may appear before or after the preview. In both cases nothing is written without permission.
    shell.write("later", "");
    let output = std::io::read_to_string(&mut out).expect("text");
    child.wait().expect("it ends");
    assert!(!shell.workspace().join("harm2").exists(), "{output}");
    // A line may read a file that it wrote.
    assert_eq!(read(&shell, "write b.txt x && cat b.txt | write c.txt").1, 0);
    assert_eq!(shell.read("c.txt"), "x");
    for protected in ["write .git/hooks/x evil", "write -- -d/.git/hooks/x evil", "write -- -d/.envrc x"] {
        let ran = shell.run(["run", protected, "--write", "--json"]);
        assert_eq!((ran.code, ran.error()["code"].as_str()), (13, Some("INPUT_REQUIRED")), "{protected}");
    }
}

#[test]
fn an_invalid_line_is_refused_before_any_command_runs() {
    let shell = Shell::new(&[("t1", ""), ("t2", "")]);
    for (text, code) in [
        ("write w.txt hi; cat w.txt | ls", "USAGE"),
        ("write w.txt hi; write z*.txt hi", "UNSUPPORTED_SYNTAX"),
        ("write w.txt hi; test -f t*", "UNSUPPORTED_SYNTAX"),
        ("write w.txt hi; echo *.txt", "UNSUPPORTED_SYNTAX"),
        ("write w.txt hi; git add t*", "UNSUPPORTED_SYNTAX"),
        ("write w.txt hi; sort --reverse=x t1", "USAGE"),
        ("write w.txt hi; head -c -4 t1", "USAGE"),
        ("write w.txt hi; echo -e 'a\\x41'", "USAGE"),
    ] {
        let ran = shell.run(["run", text, "--write", "--json"]);
        assert_eq!(ran.error()["code"], code, "{text}");
        assert!(!shell.workspace().join("w.txt").exists(), "{text}");
    }
}

#[test]
fn a_line_waits_for_a_slow_reader_and_ends_without_one() {
    use std::io::Read as _;
    use std::time::{Duration, Instant};
    let text = "a line\n".repeat(40_000);
    let shell = Shell::new(&[("mid.txt", &text)]);
    let mut child = shell.command(["run", "cat mid.txt", "--raw"]).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("stdout");
    let (mut got, mut buffer) = (0, [0; 8192]);
    loop {
        // Slower than the line takes to end.
        wait::lapse(Duration::from_millis(5));
        match out.read(&mut buffer).expect("read") {
            0 => break,
            n => got += n,
        }
    }
    assert_eq!(got, text.len());
    assert!(child.wait().expect("it ends").success());
    let mut child = shell.command(["run", "yes", "--raw", "--write"]).spawn().expect("it starts");
    let began = Instant::now();
    child.stdout.take().expect("stdout").read_exact(&mut buffer).expect("it prints");
    child.wait().expect("it ends");
    assert!(began.elapsed() < Duration::from_secs(60), "it waited for its own timeout");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let ran = crate::shell::ran(shell.command(["run", "cat mid.txt", "--raw"]).stdout(full).output().expect("it runs"));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("write the output"), "{}", ran.stderr);
}

#[test]
fn a_signal_ends_a_line_and_its_processes() {
    use rustix::process::{Pid, Signal, kill_process};
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let shell = Shell::new(&[]);
        let marker = mark();
        let text = format!("bash -c 'touch began; (setsid sleep {marker} &); sleep {marker}; touch after'");
        let mut child = shell.command(["run", &text, "--write"]).spawn().expect("it starts");
        wait::until("the line has begun", || shell.workspace().join("began").exists());
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        wait::until(&format!("{signal:?} has ended every process"), || !is_running(&marker));
    }
}

/// Words, files, flags and operators, thrown together.
fn any_line() -> impl Strategy<Value = String> {
    let command = prop::sample::select(pixir_core::run::BUILTINS.iter().map(|it| it.name).collect::<Vec<_>>());
    let joint = prop::sample::select(vec!["|", "|", "|", "&&", "||", ";", "\n", "2>&1 |", "2>/dev/null |"]);
    let word = prop::sample::select(vec![
        "a.txt",
        "b.txt",
        "src",
        ".",
        "..",
        "../..",
        "/etc/passwd",
        "missing",
        "-n",
        "-c",
        "-1",
        "-v",
        "-r",
        "-l",
        "-k",
        "2",
        "99999999999999999999",
        "-",
        "--",
        "--help",
        "*",
        "*.txt",
        "'[a'",
        "'q q'",
        "\"\"",
        "x",
        "-name",
        "-type",
        "f",
        "-f",
        "-e",
        "list",
        "show",
        "search",
        "recent",
        "store",
        "forget",
        "output",
        "kill",
        "start",
        "one",
        "nosuch",
        "é漢",
        "--all",
        "-a",
        "-b",
    ]);
    let hostile =
        prop::sample::select(vec!["\\", "'", "\"", "$x", "`", "<", ">", "&", "(", "{", "~", "#", "=", "[", "\0"]);
    let piece = prop_oneof![6 => command.prop_map(str::to_owned), 5 => joint.prop_map(str::to_owned), 14 => word.prop_map(str::to_owned), 1 => hostile.prop_map(str::to_owned)];
    prop::collection::vec(piece, 1..14).prop_map(|pieces| pieces.join(" "))
}

#[test]
fn no_line_panics_hangs_or_leaves_the_workspace() {
    use pixir_core::provider::Providers;
    use pixir_core::provider::demo::Unconnected;
    use pixir_core::run::PreparedLine;
    use pixir_core::{Environment, Harness, Options, SessionDefaults};
    use proptest::test_runner::TestRunner;
    use std::sync::Arc;
    use std::time::Duration;

    let shell = Shell::new(&[("a.txt", "one\ntwo\n"), ("b.txt", ""), ("src/c.txt", "three\n")]);
    let environment = vec![("PATH".to_owned(), "/nowhere".to_owned())];
    let around = Environment { home: shell.home(), environment, ..Environment::default() };
    let providers = Arc::new(Providers::only("demo", "none", Arc::new(Unconnected)));
    let (options, beginning) = (Options::default(), SessionDefaults::default());
    pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
    let harness = Harness::new(&shell.workspace(), &around, providers, options, beginning).expect("a workspace");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let aside = shell.aside("beside.txt", "not yours\n");
    let mut runner = TestRunner::new(random::config(tier::cases("no_line")));
    let outcome = runner.run(&any_line(), |line| {
        let ctx = harness.tool_context("fuzz");
        let planning = (line, ctx.clone());
        let plan = move || PreparedLine::new(&planning.0, None, Duration::from_secs(20), &planning.1);
        let work = async move {
            let Ok(call) = tokio::task::spawn_blocking(plan).await.expect("planning does not panic") else {
                return None;
            };
            Some(call.perform(&ctx, &mut |_| true).await.expect("a line has an end"))
        };
        let work = async { tokio::time::timeout(Duration::from_secs(60), work).await };
        let ended = runtime.block_on(work).expect("no line hangs");
        if let Some((ended, _)) = ended {
            let broke =
                ended.errors.iter().find(|(_, error)| error.message == "the command failed because of a bug in pixir");
            prop_assert!(broke.is_none(), "{broke:?}");
            prop_assert!((0..=127).contains(&ended.exit), "{}", ended.exit);
        }
        Ok(())
    });
    outcome.expect("every line keeps to it");
    assert_eq!(std::fs::read_to_string(aside).expect("it is there"), "not yours\n");
}
