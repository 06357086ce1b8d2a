//! Jobs: shell commands in the background of a Session.

use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};
use crate::shell::{Shell, entries, is_running, mark};
use crate::wait;

#[tokio::test]
async fn a_job_is_read_listed_and_ends_with_its_session() {
    let marker = mark();
    let start = calls(
        "bash",
        json!({"command": format!("echo begun; (sleep {marker} &); sleep {marker}"), "background": true}),
    );
    let steps = vec![
        start,
        calls("job_output", json!({"job": 1, "wait": 20})),
        also_calls(calls("job_output", json!({})), "job_output", json!({"job": 7})),
        says("It runs."),
        calls("job_kill", json!({"job": 1})),
        calls("bash", json!({"command": format!("sleep {marker}"), "background": true})),
        says("Another."),
    ];
    let mut pixir = Pixir::sized(steps, &[], 220, 30);
    pixir.does("serve<Enter>").await;
    let screen = pixir.does("<A-y>").await;
    assert!(screen.contains("1 job"), "{screen}");
    let outputs = |pixir: &Pixir| -> Vec<String> {
        let log = pixir.log();
        let results = log.iter().filter(|e| e["type"] == "tool_result");
        results.map(|e| e["data"]["output"].as_str().expect("text").to_owned()).collect()
    };
    let output = outputs(&pixir);
    assert!(output[0].starts_with("job 1 (running): echo begun;"), "{}", output[0]);
    assert!(output[0].contains("cannot be undone"), "{}", output[0]);
    assert!(output[1].starts_with("begun\njob 1 (running)"), "{}", output[1]);
    assert!(output[2].starts_with("job 1 (running)"), "{}", output[2]);
    assert!(output[3].contains("there is no job 7. Use: one of: 1"), "{}", output[3]);
    assert!(is_running(&marker), "the job outlives the call that started it");
    let screen = pixir.does("/jobs<Enter>").await;
    assert!(screen.contains("Background jobs") && screen.contains("running"), "{screen}");
    assert!(screen.contains("echo begun") && screen.contains("│ begun"), "the command, and what it prints:\n{screen}");
    pixir.does("<Esc>").await;
    pixir.does("stop it and start another<Enter>").await;
    pixir.does("<A-y>").await;
    let output = outputs(&pixir);
    assert!(output[4].starts_with("job 1 (stopped)"), "{}", output[4]);
    assert!(output[5].starts_with("job 2 (running)"), "{}", output[5]);
    assert!(is_running(&marker));
    pixir.screen.close().await.expect("a session was open");
    wait::until("the job is gone with its session", || !is_running(&marker));
}

#[test]
fn processes_a_job_detached_end_with_pixir() {
    let marker = mark();
    let shell = Shell::new(&[]);
    let command =
        format!("(setsid sleep {marker} &); (env -i setsid /bin/sleep {marker} &); env -i /bin/sleep {marker}");
    let steps = json!([
        { "calls": [{ "name": "bash", "args": { "command": command, "background": true } }] },
        { "calls": [{ "name": "bash", "args": { "command": "echo another; setsid -f true" } }] },
        { "calls": [{ "name": "job_output", "args": { "job": 1 } }] },
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    let last = log.iter().rfind(|e| e["type"] == "tool_result").expect("a result");
    let output = last["data"]["output"].as_str().expect("text");
    assert!(output.starts_with("job 1 (running)"), "another command that ends does not end it: {output}");
    wait::until("the job is gone with pixir", || !is_running(&marker));
}

#[test]
fn job_output_works_in_a_pipeline() {
    let shell = Shell::new(&[]);
    let call = |command: &str| json!({ "calls": [{ "name": "run", "args": { "command": command } }] });
    let steps = json!([
        call("job start sh -c 'echo ready; sleep 30'"),
        call("job output 1 20 | grep -q ready && write ok.txt yes"),
        call("job output 7 || write failed.txt yes"),
        call("job output 1 | memory store"),
        call("write n.txt one"),
        call("sh -c 'echo two > n.txt'; edit n.txt two three"),
        call("cat n.txt"),
        call("edit n.txt three four"),
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let args = ["--provider", &provider, "--toolset", "run", "--headless", "--json"];
    let ran = shell.run(args.iter().chain(&["--write", "go"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        (shell.read("ok.txt"), shell.read("failed.txt"), shell.read("n.txt")),
        ("yes".into(), "yes".into(), "four\n".into())
    );
    // Without permission the line runs nothing, whatever the job prints.
    let steps = json!([call("job output 1 3 || touch pwned"), { "text": "Done." }]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let args = ["--provider", &provider, "--toolset", "run", "--headless", "--json", "go"];
    assert_eq!(shell.run(args).code, 12);
    assert!(!shell.workspace().join("pwned").exists());
}

#[test]
fn job_output_is_not_cut_inside_a_character() {
    let shell = Shell::new(&[]);
    let job = json!({ "calls": [{ "name": "job_output", "args": { "job": 1, "wait": 20 } }] });
    // Each piece ends in the middle of a character, and the model reads the output more often than pieces arrive.
    let command =
        r"printf 'x\346\274'; for i in $(seq 30); do sleep 0.02; printf '\242äöü\346\274'; done; printf '\242\nend\n'";
    let mut steps = vec![job; 40];
    steps.insert(0, json!({ "calls": [{ "name": "bash", "args": { "command": command, "background": true } }] }));
    steps.push(json!({ "text": "Done." }));
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    assert_eq!(shell.run(["--provider", &provider, "--headless", "--json", "--write", "go"]).code, 0);
    let log = entries(&shell.logs()[0]);
    let results = log.iter().filter(|e| e["type"] == "tool_result").skip(1);
    let output: String = results.map(|e| e["data"]["output"].as_str().expect("text").to_owned()).collect();
    assert!(!output.contains("binary") && !output.contains('\u{fffd}'), "{}", &output[..200]);
    assert_eq!(
        (output.matches('漢').count(), output.matches('ü').count()),
        (31, 30 + output.matches("äöü\\").count()),
        "{output}"
    );
}

/// The results of these calls, in a Session without a terminal.
fn results(shell: &Shell, calls: &[serde_json::Value], flags: &[&str]) -> Vec<serde_json::Value> {
    let steps: Vec<_> =
        calls.iter().map(|call| json!({ "calls": [call] })).chain([json!({ "text": "Done." })]).collect();
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let ran = shell
        .run(["--provider", &provider, "--headless", "--json", "--toolset", "both"].iter().chain(flags).chain(&["go"]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = entries(&shell.logs()[0]);
    log.into_iter().filter(|e| e["type"] == "tool_result").map(|e| e["data"].clone()).collect()
}

/// A program that says something, then listens on a port.
fn server(port: u16) -> String {
    format!(
        "$| = 1; print qq(starting\\n); select undef, undef, undef, 0.3; \
         $s = IO::Socket::INET->new(Listen => 5, LocalAddr => q(127.0.0.1), LocalPort => {port}, ReuseAddr => 1) or die $!; \
         print qq(ready on {port}\\n); sleep 60"
    )
}

/// Broken builds: one that takes any listener of the machine for the job; one that looks only at the machine's own network.
#[test]
fn a_job_is_waited_for_until_it_listens_or_prints_a_line() {
    let free = || std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    for (flags, told) in [
        (
            vec!["--write", "--sandbox", "ns"],
            " in the sandbox: a command with the network does not reach it, nor does the user",
        ),
        (vec!["--write", "--sandbox", "ns", "--allow", "network"], ""),
        (vec!["--write", "--sandbox", "ll", "--allow", "network"], ""),
    ] {
        let shell = Shell::new(&[]);
        let decoy = free();
        let (taken, port, next) = (decoy.local_addr().expect("an address").port(), free(), free());
        let [port, next] = [port, next].map(|it| it.local_addr().expect("an address").port());
        let perl = |port: u16| format!("perl -MIO::Socket::INET -e '{}'", server(port));
        let bash = |command: String, more: serde_json::Value| {
            let mut args = json!({ "command": command, "background": true });
            args.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
            json!({ "name": "bash", "args": args })
        };
        let run = |command: String| json!({ "name": "run", "args": { "command": command } });
        let calls = [
            bash(perl(port), json!({ "wait_port": port })),
            run(format!("job start --wait-port {next} --timeout 30 -- {}", perl(next))),
            json!({ "name": "job_output", "args": { "job": 2, "wait": 30, "wait_output": "^ready on [0-9]+$" } }),
            run("job output 1 --wait-output=ready --timeout 30".into()),
            bash("echo begun; exit 3".into(), json!({ "wait_output": "never" })),
            bash("sleep 60".into(), json!({ "wait_port": taken, "timeout": 1 })),
        ];
        let results = results(&shell, &calls, &flags);
        let output = |n: usize| results[n]["output"].as_str().expect("text");
        assert!(output(0).starts_with(&format!("job 1 listens on port {port}{told}\n")), "{flags:?}: {}", output(0));
        assert!(output(0).contains("starting\n") && output(0).contains("job 1 (running)"), "{}", output(0));
        assert!(output(1).starts_with(&format!("job 2 listens on port {next}{told}\n")), "{flags:?}: {}", output(1));
        assert!(output(2).starts_with(&format!("job 2 printed: ready on {next}\n")), "{}", output(2));
        assert!(output(3).starts_with(&format!("job 1 printed: ready on {port}\n")), "{}", output(3));
        assert!(output(4).starts_with("job 3 ended and never printed a line like `never`\nbegun\n"), "{}", output(4));
        assert_eq!((results[4]["exit_code"].as_i64(), results[5]["exit_code"].as_i64()), (Some(3), Some(124)));
        let late = format!("after 1 s job 4 still runs and has not listened on port {taken} yet\n");
        assert!(output(5).starts_with(&late), "{}", output(5));
    }
}

/// Broken build: one whose gate judges the options of `job` in place of the program.
#[test]
fn the_program_of_a_job_is_judged_behind_the_options_of_the_wait() {
    for line in [
        "job start --wait-output x -- touch made",
        "job start --wait-output=x touch made",
        "job start --timeout 9 touch made",
    ] {
        let shell = Shell::new(&[]);
        let call = json!({ "name": "run", "args": { "command": line } });
        let script = json!({ "steps": [{ "calls": [call] }, { "text": "Done." }] }).to_string();
        let provider = format!("script:{}", shell.aside("s.json", &script).display());
        let ran = shell.run(["--provider", &provider, "--toolset", "run", "--headless", "--json", "go"]);
        assert_eq!(ran.code, 12, "{line}: {}", ran.stderr);
        let log = entries(&shell.logs()[0]);
        let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
        let output = result["data"]["output"].as_str().expect("text");
        assert!(output.contains("writes made") && !output.contains("wait"), "{line}: {output}");
        assert!(!shell.workspace().join("made").exists());
    }
}
