//! What the model reads of a result: nothing that matters is lost, and what is left out can be read by any program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::shell::{Shell, entries, run_to_its_end};

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

/// A result without its footer.
fn body(output: &str) -> &str {
    output.rsplit_once("[exit:").map_or(output, |(body, _)| body)
}

fn numbers(to: u32) -> String {
    (1..=to).map(|n| format!("{n}\n")).collect()
}

/// Broken build: one that names the file by a path that only pixir's own tools know.
#[test]
fn a_saved_output_is_a_file_that_every_program_reads_in_every_mode_and_none_writes() {
    for (tier, mode) in [("ns", "read-only"), ("ns", "ask"), ("ns", "auto"), ("ll", "read-only"), ("ll", "auto")] {
        let shell = Shell::new(&[("long.txt", &numbers(9999))]);
        let looks = [
            "sed -n '5000p' {{path}}",
            "tail -n 1 {{path}}",
            "grep -c 99 {{path}} && wc -l < {{path}}",
            "head -n 3 {{path}} | cut -c 1 | sort -r",
            "ls {{folder}}",
        ];
        let mut calls: Vec<Value> = looks.iter().map(|it| bash(it)).collect();
        calls.push(json!({ "name": "read", "args": { "path": "{{path}}", "offset": 9999 } }));
        calls.push(json!({ "name": "grep", "args": { "pattern": "^77$", "path": "{{path}}" } }));
        if mode == "auto" {
            calls.push(bash("python3 -c 'print(sum(1 for _ in open(\"{{path}}\")))'"));
            calls.push(bash("echo x >> {{path}}; rm -f {{path}}; mv {{path}} .; touch {{folder}}/new; echo tried"));
        }
        let capture =
            json!({ "path": { "after": "Full output: " }, "folder": { "after": "Full output: ", "until": "/cmd-" } });
        let steps = json!([
            { "calls": [bash("cat long.txt")] },
            { "capture": capture, "calls": calls },
            { "text": "Done." },
        ]);
        let read = shell.outputs(&steps, &["--mode", mode, "--sandbox", tier]);
        let path = read[0].split_once("Full output: ").and_then(|(_, rest)| rest.lines().next()).expect("a path");
        let name = path.rsplit('/').next().expect("a name");
        let found = format!("{path}:77:77\n");
        let expected = ["5000\n", "9999\n", "280\n9999\n", "3\n2\n1\n", &format!("{name}\n"), "  9999\t9999\n", &found];
        let case = format!("{tier}, {mode}");
        for (told, expected) in read[1..].iter().zip(expected) {
            assert_eq!(body(told), expected, "{case}: {told}");
        }
        if mode == "auto" {
            assert_eq!(body(&read[8]), "9999\n", "{case}");
            assert!(read[9].contains("tried\n"), "{case}: {}", read[9]);
        }
        assert!(path.starts_with('/') && !path.starts_with(&*shell.workspace().to_string_lossy()), "{path}");
        assert_eq!(fs::read_to_string(path).expect("it is a real file"), numbers(9999), "{case}");
        let folder = std::path::Path::new(path).parent().expect("a folder");
        assert_eq!(fs::read_dir(folder).expect("there").count(), 1, "{case}: nothing else was made");
        let mode_of = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode_of(folder), mode_of(path.as_ref())), (0o700, 0o600));
    }
}

/// Broken build: one that does not know the path of older Logs, or of the Session that a fork is a copy of.
#[test]
fn a_saved_output_is_read_by_the_path_of_an_older_log_and_in_a_fork() {
    let shell = Shell::new(&[("long.txt", &numbers(9999))]);
    let steps = json!([
        { "when": "go", "calls": [bash("cat long.txt")] },
        { "capture": { "name": { "after": "/out/", "until": "\n" } },
          "calls": [{ "name": "read", "args": { "path": ".pixir/out/{{name}}", "offset": 9999 } },
                    { "name": "grep", "args": { "pattern": "^9998$", "path": ".pixir/out" } },
                    { "name": "write", "args": { "path": ".pixir/out/{{name}}", "content": "x" } }] },
        { "text": "Done." },
    ]);
    let read = shell.outputs(&steps, &["--write"]);
    let path = read[0].split_once("Full output: ").and_then(|(_, rest)| rest.lines().next()).expect("a path");
    assert_eq!(body(&read[1]), "  9999\t9999\n");
    assert_eq!(body(&read[2]), format!("{path}:9998:9998\n"));
    assert!(read[3].contains("saved outputs are read-only"), "{}", read[3]);
    let log = shell.logs().remove(0);
    let id = log.file_stem().expect("an id").to_string_lossy().into_owned();
    let forked = shell.run(["fork", &id, "--json"]).document();
    let fork = forked["session_id"].as_str().or(forked["id"].as_str()).expect("an id").to_owned();
    // The first Session is gone; the fork reads what its Log names.
    fs::remove_dir_all(log.with_extension("")).expect("removed");
    let again = json!([
        { "calls": [{ "name": "read", "args": { "path": path, "offset": 9998, "limit": 1 } }] },
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("again.json", &json!({ "steps": again }).to_string()).display());
    let ran = shell.run(["resume", &fork, "--provider", &provider, "--headless", "again"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let log = shell.logs().into_iter().find(|it| it.file_stem().is_some_and(|it| *it == *fork)).expect("the fork");
    let log = entries(&log);
    let last = log.iter().rfind(|it| it["type"] == "tool_result").expect("a result");
    assert!(last["data"]["output"].as_str().expect("text").starts_with("  9998\t9998\n"), "{last}");
}

/// Broken build: one that drops all text because of one byte, or that hides what ends on stderr.
#[test]
fn what_a_person_would_see_at_the_terminal_the_model_reads() {
    let shell = Shell::new(&[
        ("npm", "#!/bin/sh\necho '> semver test'\necho '> tap'\nexec no-such-runner\n"),
        (
            "pytest",
            "#!/bin/sh\nfor i in $(seq 550); do echo \"tests/test_number.py::test_intcomma[case-$i] PASSED [ 42%]\"; done\necho '==== 550 passed in 1.84s ===='\n",
        ),
    ]);
    for name in ["npm", "pytest"] {
        fs::set_permissions(shell.workspace().join(name), fs::Permissions::from_mode(0o755)).expect("chmod");
    }
    let calls = [
        bash("pwd; printf 'caf\\351 \\033[31mred\\033[0m\\n'; printf 'a\\0b and more text\\n'"),
        bash("./npm test; echo done"),
        bash("./pytest -v | tee log"),
        bash("head -c 5000 /dev/urandom"),
    ];
    let read = shell.outputs(json!([{ "calls": calls }, { "text": "Done." }]), &["--write"]);
    let folder = shell.workspace().canonicalize().expect("there");
    let text = format!(
        "{}\ncaf\u{fffd} red\na\u{fffd}b and more text\n…[bytes that are not text, shown as \u{fffd}: 2]\n",
        folder.display()
    );
    assert_eq!(body(&read[0]), text);
    assert!(read[1].starts_with("> semver test\n> tap\n") && read[1].contains("no-such-runner"), "{}", read[1]);
    assert!(read[1].contains("\ndone\n[exit:0 | "), "{}", read[1]);
    assert!(read[2].contains("\n==== 550 passed in 1.84s ====\n--- output truncated (551 lines"), "{}", read[2]);
    assert!(read[2].starts_with("tests/test_number.py::test_intcomma[case-1] PASSED"), "{}", read[2]);
    assert!(read[3].starts_with("[error] binary output (4.9KB). Use: xxd /"), "{}", read[3]);
}

/// Broken build: one that shows the start of a long line and no way to its end.
#[test]
fn a_long_line_is_read_to_its_end_in_pieces() {
    let line: String = (0..80_000).map(|n| format!("{:04}+", n % 10_000)).collect();
    let shell = Shell::new(&[("one.js", &format!("first\n{line}\nlast"))]);
    // By any program: the result says how, for the file that was saved.
    let steps = json!([
        { "calls": [bash("cat one.js")] },
        { "capture": { "on": { "after": "Line 2 goes on: ", "until": "\n" } }, "calls": [bash("{{on}}")] },
        { "text": "Done." },
    ]);
    let read = shell.outputs(&steps, &["--mode", "read-only"]);
    let start = format!(
        "first\n{}…[398000 more characters]\nlast\nLong lines are cut. Line 2 goes on: sed -n 2p /",
        &line[..2000]
    );
    assert!(read[0].starts_with(&start), "{}", &read[0][read[0].len() - 300..]);
    assert_eq!(body(&read[1]), format!("{}\n", &line[2000..4000]));
    // By `read`, in pieces that are as large as a page.
    let page = |args: &Value| -> String {
        let ran = shell.run(["tools", "run", "read", &args.to_string(), "--json"]).document();
        ran["result"]["output"].as_str().expect("text").to_owned()
    };
    let first = page(&json!({ "path": "one.js" }));
    let start = format!("     1\tfirst\n     2\t{}…[398000 more characters]\n     3\tlast\n", &line[..2000]);
    assert!(first.starts_with(&start), "{}", &first[first.len() - 300..]);
    let column = |text: &str| -> Option<u64> {
        text.split_once("…[line 2 goes on: offset=2 column=")?.1.split(']').next()?.parse().ok()
    };
    let (mut joined, mut next, mut pieces) = (line[..2000].to_owned(), column(&first), 0);
    while let Some(from) = next.filter(|_| pieces < 20) {
        let told = page(&json!({ "path": "one.js", "offset": 2, "column": from, "line_numbers": false }));
        next = column(&told);
        let piece = told.split(['…', '\n']).next().expect("a piece");
        joined.push_str(piece);
        pieces += 1;
        assert!(told.len() <= 48 << 10, "{}", told.len());
    }
    assert!(joined == line && pieces == 9, "{} of {} bytes in {pieces} pieces", joined.len(), line.len());
}

/// Broken build: one whose pages are smaller than the tool's description says.
#[test]
fn read_numbers_its_lines_and_gives_2000_of_them() {
    let text: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    let shell = Shell::new(&[("a.txt", &text), ("wide.txt", &format!("{}\n", "x".repeat(990)).repeat(900))]);
    let run = |args: Value| shell.run(["tools", "run", "read", &args.to_string()]).stdout;
    let page = run(json!({ "path": "a.txt" }));
    assert!(page.starts_with("     1\tline 1\n     2\tline 2\n"), "{}", &page[..60]);
    assert!(
        page.contains("  2000\tline 2000\n…[lines 1-2000 of 3000; next_offset=2001]\n[exit:0 |"),
        "{}",
        &page[page.len() - 120..]
    );
    let wide = run(json!({ "path": "wide.txt" }));
    assert!((46 << 10..49 << 10).contains(&wide.len()), "{}", wide.len());
    assert!(wide.contains("of 900; next_offset="), "{}", &wide[wide.len() - 120..]);
    let told = shell.run(["tools", "show", "read", "--json"]).document();
    assert!(told["description"].as_str().expect("text").contains("2000 lines or 48 KB"), "{told}");
}

/// Broken build: one that takes a budget from a constant.
#[test]
fn the_user_sets_how_much_of_a_result_the_model_reads() {
    let shell = Shell::new(&[("a.txt", &"word\n".repeat(40_000))]);
    let calls = json!([{ "calls": [
        bash("seq 1 30000"),
        { "name": "read", "args": { "path": "a.txt" } },
        { "name": "run", "args": { "command": "seq 1 30000" } },
    ] }, { "text": "Done." }]);
    let flags = ["limits.output_bytes=3000", "limits.page_bytes=2000", "limits.run_lines=10"];
    let flags: Vec<&str> = flags.into_iter().flat_map(|it| ["--config", it]).collect();
    let told = shell.outputs(&calls, &[flags.as_slice(), &["--write", "--toolset", "both"]].concat());
    let lines: Vec<usize> = told.iter().map(|it| it.lines().count()).collect();
    assert!((2_500..3_600).contains(&told[0].len()) && told[0].contains("\n30000\n"), "{}", told[0]);
    assert!((1_200..2_100).contains(&told[1].len()) && told[1].contains("next_offset="), "{}", told[1]);
    assert!(lines[2] < 20 && told[2].contains("\n30000\n"), "{}", told[2]);
    let refused = shell.run(["--headless", "--config", "limits.page_bytes=10", "x"]);
    assert!(refused.code == 10 && refused.stderr.contains("from 2000 to 1000000"), "{}", refused.stderr);
}

/// Broken builds: a call leaves no line in the program's log; the line names neither its Turn nor its tool.
#[test]
fn the_programs_log_names_each_call_with_its_turn_where_the_user_wants_that() {
    let shell = Shell::new(&[]);
    let steps = json!({ "steps": [{ "calls": [bash("exit 3")] }, { "text": "Done." }] });
    let provider = format!("script:{}", shell.aside("calls.json", &steps.to_string()).display());
    let run = |level: &str| {
        let mut command = shell.command(["--provider", &provider, "--headless", "--write", "go"]);
        let ran = run_to_its_end(command.env("PIXIR_LOG", level));
        assert!(ran.status.success(), "{ran:?}");
        fs::read_to_string(shell.home().join("log/pixir.log")).unwrap_or_default()
    };
    assert_eq!(run("warn"), "");
    let log = run("info");
    let line = log.lines().find(|it| it.contains("a call ended")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("turn=1") && line.contains("tool=\"bash\" ok=false"), "{line}");
}
