//! The run language: its lines print what a shell would print.

use crate::random;
use crate::shell::{Ran, Shell, entries, png};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::process::Command;

/// A workspace with the files that these lines need.
pub(super) fn shell() -> Shell {
    Shell::new(&[("a.txt", "one\nERROR two\nthree\n"), ("empty.txt", ""), ("c d.txt", "blank\n")])
}

pub(super) fn line(shell: &Shell, line: &str) -> Ran {
    shell.run(["run", line, "--json", "--write"])
}

/// The output that the model reads, without its footer, and the exit code.
pub(super) fn read(shell: &Shell, text: &str) -> (String, i64) {
    let ran = line(shell, text);
    let result = &ran.document()["result"];
    let output = result["output"].as_str().expect("text").to_owned();
    let (body, footer) = output.rsplit_once("[exit:").expect("every result has a footer");
    let exit: i64 = footer.split(' ').next().expect("a number").parse().expect("a number");
    assert_eq!(result["exit_code"].as_i64().unwrap_or(exit), exit);
    (body.to_owned(), exit)
}

/// Broken build: `--help` behind a subcommand is an argument of it.
#[test]
fn every_subcommand_has_the_help_of_its_command() {
    let shell = shell();
    for (command, subcommand) in
        [("memory", "search"), ("memory", "store"), ("topic", "list"), ("job", "start"), ("skill", "list")]
    {
        let (help, exit) = read(&shell, &format!("{command} --help"));
        let below = read(&shell, &format!("{command} {subcommand} --help"));
        assert_eq!((&below, help.contains("Usage:"), exit), (&(help.clone(), 0), true, 0), "{command} {subcommand}");
    }
    assert_eq!(read(&shell, "echo a --help").0, "a --help\n", "words of others are theirs");
}

#[test]
fn chains_answer_as_a_shell_or_say_what_to_do() {
    let shell = shell();
    let missing = "[error] cat: there is no `missing`. Use: find or ls to see which files exist\n";
    for (text, body, exit) in [
        ("cat missing | grep ERROR | wc -l", format!("0\n{missing}"), 1),
        ("cat missing | grep missing", missing.to_owned(), 1),
        ("false && cat a.txt | wc -l", "no output\n".into(), 1),
        ("echo ok || cat a.txt | wc -l", "ok\n".into(), 0),
        ("false && echo a || echo b", "b\n".into(), 0),
        ("cat a.txt | grep nomatch || echo none", "none\n".into(), 0),
        ("cat a.txt | grep nomatch && echo found", "no output\n".into(), 1),
        ("cat a.txt | grep ERROR && echo found", "ERROR two\nfound\n".into(), 0),
        ("echo $(cat a.txt)", "[error] run: command substitution is not supported (at column 6). Use: run the inner command first and use what it prints\n".into(), 2),
        ("echo 'a|b' \"c;d\" e\\&f", "a|b c;d e&f\n".into(), 0),
        ("cat 'c d.txt'", "blank\n".into(), 0),
        ("echo \"\" | wc -c", "1\n".into(), 0),
        ("cat empty.txt && echo done", "done\n".into(), 0),
        ("cat empty.txt | wc -l", "0\n".into(), 0),
        ("cat a.txt | wc -l", "3\n".into(), 0),
        ("echo a; echo b", "a\nb\n".into(), 0),
        ("echo a\necho b", "a\nb\n".into(), 0),
        ("echo -n a && echo b", "ab\n".into(), 0),
        ("echo a 2>&1", "a\n".into(), 0),
        ("cat missing 2>&1 | wc -l", "1\n".into(), 1),
        ("false; echo $?", "[error] run: variables are not expanded (at column 13). Use: the value itself, or single quotes for a literal $\n".into(), 2),
        ("ls empty.txt *.nothing || echo none", "empty.txt\nnone\n[error] ls: nothing matches `*.nothing`. Use: find . -name '*.nothing', or quotes for the text itself\n".into(), 0),
        ("cat a.txt | head 2 | tail 1", "ERROR two\n".into(), 0),
        ("# only a comment\necho a # and one here", "a\n".into(), 0),
        ("sh -c 'exit 7' | cat", "no output\n".into(), 7),
        ("sh -c 'echo out; echo err >&2; exit 3'", "out\n[stderr] err\n".into(), 3),
        ("sh -c 'echo err >&2; exit 1' ; echo ok", "ok\n[stderr] err\n".into(), 0),
        ("nosuchprogram && echo a || echo b", "b\n".into(), 0),
        ("yes | head 1", "y\n".into(), 0),
    ] {
        let (output, code) = match exit {
            2 => {
                let ran = line(&shell, text);
                let error = ran.error();
                let (message, fix) = (error["error"]["message"].as_str(), error["remediation"].as_str());
                let (message, fix) = (message.expect("a message"), fix.expect("a fix"));
                (format!("[error] run: {message}. Use: {fix}\n"), i64::from(ran.code))
            }
            _ => read(&shell, text),
        };
        let output = if text.starts_with("nosuch") {
            assert!(output.contains("[error] unknown command: nosuchprogram — Available: cat, "), "{output}");
            output.lines().next().map(|l| format!("{l}\n")).expect("a line")
        } else {
            output
        };
        assert_eq!((output, code), (body, exit), "{text}");
    }
    assert!(!shell.workspace().join("out.txt").exists());
    let refused = line(&shell, "cat a.txt > out.txt").error();
    assert_eq!(refused["remediation"], "<command> | write out.txt");
    assert!(!shell.workspace().join("out.txt").exists(), "nothing of a line that is refused has run");
}

#[test]
fn counts_over_100000_lines_agree_with_the_real_commands() {
    let text: String = (0..100_000).map(|n| format!("{n} {}\n", if n % 7 == 0 { "ERROR" } else { "fine" })).collect();
    let shell = Shell::new(&[("big.txt", &text)]);
    let real = Command::new("sh").args(["-c", "grep -c ERROR big.txt"]).current_dir(shell.workspace()).output();
    let real = String::from_utf8(real.expect("grep runs").stdout).expect("text");
    let ours = shell.run(["run", "cat big.txt | grep ERROR | wc -l", "--raw"]);
    assert_eq!((ours.code, ours.stdout), (0, real));
    assert_eq!(shell.run(["run", "cat big.txt", "--raw"]).stdout, text, "layer 1 is every byte, and nothing else");
}

/// Each line, run by pixir and by the real programs, gives the same output byte for byte.
fn assert_same_as_real(shell: &Shell, text: &str) {
    let real = Command::new("sh").args(["-c", text]).current_dir(shell.workspace()).env("LC_ALL", "C").output();
    let real = real.expect("sh runs");
    let ours = shell.run(["run", text, "--raw", "--propagate-exit", "--write"]);
    let real_out = String::from_utf8_lossy(&real.stdout).into_owned();
    assert_eq!((ours.stdout, ours.code), (real_out, real.status.code().expect("it ended")), "{text}\n{}", ours.stderr);
}

#[test]
fn built_in_commands_agree_with_the_real_ones() {
    let shell = Shell::new(&[
        ("n.txt", "10\n9\n-3\n2.5\n9\n\n100\nabc\n"),
        ("t.csv", "b,2,x\na,10,y\nc,2,z\nno fields\n,,\n"),
        ("w.txt", "The quick brown fox\n\tjumps  over\nthe LAZY dog\nthe lazy dog\nend"),
        ("r.txt", "a\na\nb\na\nA\n\n\nc"),
        ("src/x.rs", "fn main() {\n    let a = 1; // a+b\n    f(x|y);\n}\n"),
        ("src/y.rs", "struct Y;\nfn y() {}\n"),
    ]);
    for text in [
        "cat n.txt t.csv",
        "cat -n w.txt",
        "cat w.txt | cat -n",
        "head -n 2 n.txt",
        "head -3 n.txt",
        "head -n -2 n.txt",
        "head -c 5 w.txt",
        "head -n 1 n.txt t.csv",
        "tail -n 2 n.txt",
        "tail -2 w.txt",
        "tail -n +3 n.txt",
        "tail -c 4 w.txt",
        "tail -n 1 n.txt r.txt",
        "cat w.txt | tail -n 1",
        "wc n.txt",
        "wc -l n.txt",
        "wc -lw n.txt t.csv w.txt",
        "cat n.txt | wc",
        "cat n.txt | wc -c",
        "wc -m w.txt",
        "sort n.txt",
        "sort -n n.txt",
        "sort -rn n.txt",
        "sort -u r.txt",
        "sort -f r.txt",
        "sort -nu n.txt",
        "sort -t , -k 2,2n t.csv",
        "sort -t , -k 2,2nr -k 1,1 t.csv",
        "sort -k 2 w.txt",
        "sort -b -k 2,2 w.txt",
        "sort -r r.txt n.txt",
        "uniq r.txt",
        "uniq -c r.txt",
        "uniq -d r.txt",
        "uniq -u r.txt",
        "uniq -ci r.txt",
        "sort r.txt | uniq -c | sort -rn",
        "cut -d , -f 1,3 t.csv",
        "cut -d , -f 2- t.csv",
        "cut -s -d , -f 2 t.csv",
        "cut -c 1-3,5 w.txt",
        "cut -b 2- n.txt",
        "cut -f 1 w.txt",
        "grep the w.txt",
        "grep -i the w.txt",
        "grep -v the w.txt",
        "grep -c the w.txt",
        "grep -n the w.txt",
        "grep -ni 'lazy\\|fox' w.txt",
        "grep -E 'lazy|fox' w.txt",
        "grep -F 'a+b' src/x.rs",
        "grep 'a+b' src/x.rs",
        "grep -E 'a\\+b' src/x.rs",
        "grep 'f(x|y)' src/x.rs",
        "grep -w a src/x.rs",
        "grep -x a r.txt",
        "grep -o '[a-z]*x' w.txt",
        "grep -on o w.txt",
        "grep -q the w.txt",
        "grep -q nothing w.txt",
        "grep -l fn src/x.rs src/y.rs n.txt",
        "grep -L fn src/x.rs n.txt",
        "grep -c fn src/x.rs src/y.rs n.txt",
        "grep -h fn src/x.rs src/y.rs",
        "grep -m 1 the w.txt",
        "grep -A 1 quick w.txt",
        "grep -B 1 jumps w.txt",
        "grep -C 1 -n jumps w.txt",
        "grep -A1 a r.txt",
        "grep -e fn -e struct src/y.rs",
        "grep '^a$' r.txt",
        "grep -c '' w.txt",
        "grep '[[:upper:]]' w.txt",
        "grep nothing w.txt",
        "cat src/x.rs | grep -n 'fn\\b'",
        "echo -n a b",
        "echo 'a  b'   c",
        "test -f n.txt && echo yes",
        "test -d src && echo yes",
        "test -f none || echo no",
        "test 2 -lt 10 && echo less",
        "test a = b || echo different",
        "cat n.txt | head -n 3 | sort | uniq | wc -l",
        "find src -name '*.rs' -type f",
        "find . -maxdepth 1 -name 'n*'",
        "find . -name '{a,b}'",
        "tail -c +5 w.txt",
        "head -q -n 1 n.txt t.csv",
        "head -v -n 1 n.txt",
        "head -c 3 -n 1 w.txt",
        "head -n 1 -c 3 w.txt",
        "grep -A1 a r.txt t.csv",
        "grep -m 1 -A 1 a r.txt",
        "grep -m 1 -A 2 9 n.txt",
        "grep -L fn src/x.rs",
        "grep -L fn n.txt",
        "grep -vo a r.txt",
        "cat r.txt | grep -H b",
        "grep -E '[\\d]' src/x.rs",
        "grep -E 'main\\(\\) {' src/x.rs",
        "grep -E 'main\\(\\) \\{' src/x.rs",
        "grep -E '[a&&b]+' src/x.rs",
        "grep -r --include='*.rs' --include='*.txt' a . | sort",
        "sort -k1,1b w.txt",
        "printf '9007199254740993\\n9007199254740992\\n-0.10\\n-0.1\\n' | sort -nu",
        "cat n.txt missing r.txt | head -n 3 || true",
        "cat src/*.rs",
        "cat 'n.txt' t*.csv",
        "ls -d s*",
        "grep -o '[^ ]*$' w.txt",
        "grep -ow 'end$' w.txt",
        "cat r.txt | grep -c a -",
        "grep -E 'a{,2}' r.txt",
        "grep -E 'n{2,}' src/x.rs",
        "grep -E '+b' src/x.rs",
        "grep -E 'a{1' src/x.rs",
        "head -qn -1 n.txt t.csv",
        "tail -qn +3 n.txt t.csv",
        "head --lines -3 n.txt",
        "tail --bytes +4 n.txt",
        "head -n 1 nope n.txt || true",
        "tail -n 1 nope n.txt || true",
        "cut -c 1 nope r.txt || true",
        "sort nope r.txt || true",
        "grep a nope r.txt || true",
        "wc -l nope r.txt || true",
        "ls [[:lower:]].txt",
        "find . -name '[[:lower:]].txt' -type f | sort",
        "echo [",
        "test -r src && test -s src && echo both",
    ] {
        assert_same_as_real(&shell, text);
    }
}

proptest! {
    #![proptest_config(random::config(12))]

    #[test]
    fn text_commands_agree_with_the_real_ones_on_random_text(text in "([a-c0-2 ,.]{0,6}\n){0,8}[a-c]{0,3}") {
        let shell = Shell::new(&[("t.txt", &text)]);
        // One process for all commands, separated by a marker line.
        let all = ["sort t.txt", "sort -n t.txt", "sort -t , -k 2 t.txt", "uniq -c t.txt", "cut -d , -f 2 t.txt", "wc t.txt",
            "head -n 2 t.txt", "tail -n 2 t.txt", "tail -n +2 t.txt", "grep -n a t.txt", "grep -c '^$' t.txt", "grep -v b t.txt", "sort -u -k 1,1 t.txt"];
        assert_same_as_real(&shell, &all.map(|line| format!("{line} || true")).join("; echo ---; "));
    }

    #[test]
    fn quoted_words_arrive_unchanged(words in proptest::collection::vec("[ -~]{0,10}|[^\0]{0,6}", 1..5)) {
        let shell = Shell::new(&[]);
        let quoted: Vec<String> = words.iter().map(|word| pixir_core::run::quote(word)).collect();
        let ran = shell.run(["run", &format!("printf '%s\\n' {}", quoted.join(" ")), "--raw", "--write"]);
        prop_assert_eq!(ran.stdout, words.iter().map(|word| format!("{word}\n")).collect::<String>(), "{:?}", ran.stderr);
    }
}

#[test]
fn stdin_reaches_the_first_command_unchanged() {
    let shell = Shell::new(&[]);
    let text = "line1\nline2 \"q\" $HOME `x` \\\\ 見\n";
    let args = json!({"command": "write n.md", "stdin": text}).to_string();
    assert_eq!(shell.run(["tools", "run", "run", &args, "--write"]).code, 0);
    assert_eq!(shell.read("n.md"), text);
    let edits = json!([{"old_text": "line1", "new_text": "first"}, {"old_text": "\"q\"", "new_text": "q"}]);
    let args = json!({"command": "edit n.md", "stdin": edits.to_string()}).to_string();
    assert_eq!(shell.run(["tools", "run", "run", &args, "--write"]).code, 0);
    assert_eq!(shell.read("n.md"), text.replace("line1", "first").replace("\"q\"", "q"));
    let ran = shell.run(["run", "cat", "--json"]);
    assert_eq!(ran.document()["result"]["exit_code"], 2, "our own stdin is not read unasked");
}

/// The same work in both toolsets.
fn scripts(shell: &Shell) -> [String; 2] {
    let typed = [
        ("read", json!({"path": "a.txt"})),
        ("grep", json!({"pattern": "ERROR", "path": "a.txt"})),
        ("write", json!({"path": "src/new.txt", "content": "alpha\nbeta\n"})),
        ("edit", json!({"path": "src/new.txt", "old_text": "beta", "new_text": "gamma"})),
        ("bash", json!({"command": "git init -q ."})),
        ("write", json!({"path": "../outside.txt", "content": "x"})),
    ];
    let lines = [
        ("cat a.txt", None),
        ("grep ERROR a.txt", None),
        ("write src/new.txt", Some("alpha\nbeta\n")),
        ("edit src/new.txt beta gamma", None),
        ("git init -q .", None),
        ("write ../outside.txt x", None),
    ];
    let typed = typed.map(|(name, args)| json!({ "calls": [{ "name": name, "args": args }] }));
    let lines = lines.map(|(command, stdin)| {
        json!({ "calls": [{ "name": "run", "args": { "command": command, "stdin": stdin.unwrap_or_default() } }] })
    });
    [("typed", typed), ("run", lines)].map(|(name, steps)| {
        let mut steps = steps.to_vec();
        steps.push(json!({ "text": "Done." }));
        for step in &mut steps {
            let args = step.pointer_mut("/calls/0/args").and_then(Value::as_object_mut);
            if let Some(args) = args.filter(|args| args.get("stdin") == Some(&json!(""))) {
                args.remove("stdin");
            }
        }
        format!("script:{}", shell.aside(&format!("{name}.json"), &json!({ "steps": steps }).to_string()).display())
    })
}

/// The verdict, maker and rule of each decision, without ids and reasons.
fn decisions(log: &[Value]) -> Vec<[Value; 3]> {
    let decisions = log.iter().filter(|e| e["type"] == "permission_decision");
    decisions.map(|e| ["verdict", "by", "rule"].map(|key| e["data"][key].clone())).collect()
}

#[test]
fn both_toolsets_give_the_same_files_and_decisions() {
    // In read-only mode the edit fails before its permission is checked: the file that it names was never written.
    for (mode, expected) in [("auto", 3), ("read-only", 2)] {
        let [typed, lines] = ["typed", "run"].map(|toolset| {
            let shell = shell();
            let [typed, run] = scripts(&shell);
            let provider = if toolset == "run" { run } else { typed };
            let args = ["--provider", &provider, "--toolset", toolset, "--headless", "--json", "--mode", mode, "go"];
            let ran = shell.run(args);
            let log = entries(&shell.logs()[0]);
            assert_eq!(log[0]["data"]["toolset"], toolset);
            let tree = Command::new("sh")
                .args([
                    "-c",
                    "find . -path ./.git -prune -o -type f -print | sort | xargs -d '\\n' sha256sum; ls -d .git",
                ])
                .current_dir(shell.workspace())
                .output()
                .expect("it runs");
            (ran.code, decisions(&log), String::from_utf8_lossy(&tree.stdout).into_owned())
        });
        assert_eq!(typed, lines, "{mode}");
        assert_eq!(typed.1.len(), expected, "{mode}: {:?}", typed.1);
    }
}

#[test]
fn a_saved_output_is_readable_and_never_writable() {
    let shell = Shell::new(&[]);
    let call = |command: &str| json!({ "calls": [{ "name": "run", "args": { "command": command } }] });
    let steps = json!([
        call("seq 1 200"),
        call("seq 1 201"),
        json!({ "capture": { "path": { "after": "Full output: " } }, "calls": [{ "name": "run", "args": { "command": "cat {{path}} | tail 1; grep -c 1 {{path}}; head 1 {{path}}" } }] }),
        json!({ "calls": [{ "name": "run", "args": { "command": "write {{path}} x" } }] }),
        { "text": "Done." },
    ]);
    let provider = format!("script:{}", shell.aside("s.json", &json!({ "steps": steps }).to_string()).display());
    let runs = |args: &[&str]| {
        shell.run(["--provider", &provider, "--toolset", "run", "--headless", "--json", "--write"].iter().chain(args))
    };
    assert_eq!(runs(&["go"]).code, 0);
    let log = entries(&shell.logs()[0]);
    let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
    let whole = results[0]["output"].as_str().expect("text");
    assert!(whole.lines().count() == 201 && !whole.contains("truncated"), "200 lines and the footer");
    let path = results[1]["overflow_path"].as_str().expect("a path").to_owned();
    let numbers = |range: std::ops::RangeInclusive<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    let (start, end) = (numbers(1..=40), numbers(42..=201));
    let output = format!(
        "{start}…[truncated 1 of 201 lines]\n{end}--- output truncated (201 lines, 696B) ---\nFull output: {path}\nExplore: cat {path} | grep <pattern>\n         cat {path} | tail 100\n[exit:0 | "
    );
    assert!(results[1]["output"].as_str().expect("text").starts_with(&output), "{}", results[1]["output"]);
    let read = results[2]["output"].as_str().expect("text");
    assert!(read.starts_with("201\n") && read.contains("\n1\n"), "{read}");
    let refused = results[3]["output"].as_str().expect("text");
    assert!(refused.contains("[error] write: saved outputs are read-only"), "{refused}");
    // A Session sees its own saved outputs; a fork also sees those of its parent.
    assert_eq!(runs(&["again"]).code, 0);
    let first = shell.logs().into_iter().find(|log| entries(log)[1]["data"]["text"] == "go").expect("the first");
    let id = first.file_stem().expect("an id").to_string_lossy().into_owned();
    let forked = shell.run(["fork", &id, "--json"]).document();
    let fork = forked["session_id"].as_str().or(forked["id"].as_str()).expect("an id");
    let saved = first.parent().expect("a folder").join(fork).join("out").join(path.rsplit('/').next().expect("a name"));
    assert_eq!(std::fs::read_to_string(saved).expect("it is in the fork").lines().count(), 201);
}

#[test]
fn binary_output_is_named_and_can_be_saved() {
    let shell = Shell::new(&[]);
    std::fs::write(shell.workspace().join("photo.png"), png(186_368)).expect("write");
    std::fs::write(shell.workspace().join("file.bin"), [0, 255, 1]).expect("write");
    std::fs::write(shell.workspace().join("cjk.txt"), "漢字".repeat(7_000) + "\n").expect("write");
    assert_eq!(read(&shell, "cat photo.png").0, "[error] cat: binary image file (182KB). Use: see photo.png\n");
    assert_eq!(read(&shell, "cat file.bin"), ("[error] cat: binary file (3B). Use: cat -b file.bin\n".into(), 1));
    assert_eq!(read(&shell, "cat -b file.bin").0, "AP8B\n");
    assert_eq!(read(&shell, "cat photo.png | wc -c").0, "186368\n");
    assert!(read(&shell, "cat cjk.txt").0.starts_with("漢字"));
    assert_eq!(read(&shell, "sh -c 'printf \"\\033[31mred\\033[0m\\n\"'").0, "red\n");
}

#[test]
fn odd_file_names_and_globs_agree_with_a_shell() {
    let shell = Shell::new(&[
        ("it's.txt", "1\n"),
        ("q\"x.txt", "2\n"),
        ("x", "3\n"),
        ("x@", "4\n"),
        ("q1.txt", "5\n"),
        ("q[1].txt", "6\n"),
        ("d/y", "7\n"),
        ("etc/hosts", "8\n"),
    ]);
    assert_eq!(read(&shell, "ls i*").0, "it's.txt\n");
    assert_eq!(read(&shell, "find . -name '*x.txt'").0, "./q\"x.txt\n");
    assert_eq!(read(&shell, "cat x*").0, "3\n4\n");
    assert_eq!(read(&shell, "cat 'q[1]'.t*").0, "6\n");
    assert_eq!(read(&shell, "cat q[1].t*").0, "5\n");
    assert_eq!(read(&shell, "ls -d */").0, "d\netc\n");
    assert!(read(&shell, "cat /etc/ho*").0.contains("outside the workspace"));
    let all = format!("cat {}/q?.txt", shell.workspace().canonicalize().expect("there").display());
    assert_eq!(read(&shell, &all).0, "5\n");
}

#[test]
fn a_pipeline_reports_failures_but_not_a_grep_without_match() {
    let shell = shell();
    std::process::Command::new("mkfifo").arg(shell.workspace().join("fifo")).status().expect("mkfifo");
    for (text, exit) in [
        ("diff a.txt missing | cat", 2),
        ("grep x missing | wc -l", 2),
        ("grep x fifo", 2),
        ("grep nothing a.txt | wc -l", 0),
        ("diff a.txt empty.txt | wc -l", 0),
        ("cat missing a.txt | wc -l", 1),
    ] {
        assert_eq!(read(&shell, text).1, exit, "{text}");
    }
    assert_eq!(read(&shell, "sh -c 'echo no >&2; exit 1' 2>/dev/null || echo yes").0, "yes\n");
    assert!(read(&shell, "sh -c 'echo no >&2; exit 1' 2>/dev/null").0.contains("[stderr] no"));
}

/// Broken build: one that takes the text of JSON for one step.
#[test]
fn a_plan_may_be_json_and_what_only_looks_like_it_is_refused() {
    let shell = Shell::new(&[]);
    let list = r#"[{"step":"look","status":"completed"},{"step":"fix","status":"in_progress"}]"#;
    for text in [
        format!("plan '{list}'"),
        format!("plan '{{\"items\":{list}}}'"),
        format!("echo '{list}' | plan"),
        r#"plan '{"step":"look","status":"completed"}' '{"step":"fix","status":"pending"}'"#.into(),
        r#"plan '["[x] look","fix"]'"#.into(),
        "plan '[x] look' fix".into(),
    ] {
        assert_eq!(read(&shell, &text).0.lines().next(), Some("1 of 2 steps completed"), "{text}");
    }
    for text in [
        format!("plan '{}'", &list[..list.len() - 1]),
        r#"plan '[{"step":"look","state":"done"}]'"#.into(),
        r#"plan '[{"step":"look","status":"done"}]'"#.into(),
    ] {
        let error = line(&shell, &text).error();
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with("the plan looks like JSON, and"), "{text}: {message}");
    }
}
