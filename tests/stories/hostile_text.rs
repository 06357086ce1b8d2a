//! Text with control characters, hidden characters or no certain width: only sequences of pixir reach the terminal.

use pixir_core::provider::script::Step;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::conformance::{Fixture, outputs};
use crate::driver::{Pixir, calls, says};
use crate::pty::Terminal;
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, figures};
use crate::tier;

/// Parts of hostile text: control sequences, hidden characters, characters without a certain width.
const PIECES: [&str; 34] = [
    "\x1b",
    "\x1b[",
    "\x1b]",
    "\x1b]0;",
    "\x1b]52;c;aGk=\x07",
    "\x1bP",
    "\x1b\\",
    "\x1b[2J",
    "\x1b[?1049l",
    "\x1b[6n",
    "\x1bc",
    "\u{9b}",
    "\u{9d}",
    "\u{90}",
    "\u{9c}",
    "\x07",
    "\x08",
    "\r",
    "\t",
    "\0",
    "\x7f",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{e0041}",
    "\u{2028}",
    "a\u{300}\u{301}",
    "👩\u{200d}👧",
    "🇩🇪",
    "漢",
    "①",
    "\u{1f3fb}",
    "\u{fe0f}",
];

#[tokio::test]
async fn random_hostile_text_adds_no_sequences() {
    let count = tier::cases("random_hostile_text");
    let mut runner = TestRunner::deterministic();
    let piece = prop_oneof![3 => proptest::sample::select(&PIECES[..]).prop_map(str::to_owned), 1 => "[a-z\\[\\]()*`|#>0-9;m \n-]{1,6}"];
    let text = proptest::collection::vec(piece, 1..24).prop_map(|pieces| pieces.concat());
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(text.new_tree(&mut runner).expect("a text").current());
    }
    // Each text in every sink: reasoning, answer, arguments, tool output, paste and Session name.
    let mut steps = Vec::new();
    for text in &texts {
        let args = json!({"path": format!("no/{text}"), "pattern": text, "command": format!("printf '%s' {text:?}")});
        steps.push(Step { reasoning: text.clone(), ..calls("grep", args) });
        steps.push(says(text));
    }
    let mut pixir = Pixir::sized(steps, &[("a.txt", &texts.concat())], 60, 30);
    pixir.screen.until_idle().await;
    for (n, text) in texts.iter().enumerate() {
        pixir.screen.paste(text).await;
        pixir.screen.keys(&format!("<A-Enter><C-u><C-c>go {n}<Enter>")).await;
        pixir.screen.until_idle().await;
        if n % 7 == 0 {
            pixir.screen.keys("/rename ").await;
            pixir.screen.paste(text.lines().next().unwrap_or_default()).await;
            pixir.screen.keys("<Enter><C-o>").await;
            pixir.screen.until_idle().await;
        }
        let bytes = pixir.screen.paint();
        let strange = crate::pty::foreign_sequences(bytes.as_bytes());
        assert!(strange.is_empty(), "{text:?}: {strange:?}");
    }
    for signal in pixir.screen.signals() {
        assert!(crate::pty::foreign_sequences(signal.as_bytes()).is_empty(), "{signal:?}");
    }
    figures(&format!("QU4: {count} hostile texts in six sinks, only our own sequences"));
}

#[test]
fn model_and_tool_text_adds_no_sequences() {
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
    terminal.settle();
    terminal.send("\r");
    terminal.wait_for(" end");
    terminal.wait_for("/ commands");
    terminal.send("\x0f\x04");
    let left = terminal.end();
    left.assert_sane();
    let strange = crate::pty::foreign_sequences(&left.bytes);
    assert!(strange.is_empty(), "{strange:?}");
    for said in ["owned", "0;name", "52;c;aGk", "0;pasted"] {
        let sequence = format!("\x1b]{said}");
        assert!(!String::from_utf8_lossy(&left.bytes).contains(&sequence), "{said}");
    }
}

/// A character that changes what a terminal or a reader sees, and shows nothing itself.
fn is_harmful(c: char) -> bool {
    let hidden = [0xad, 0x61c, 0x180e, 0xfeff];
    let ranges = [0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x2069, 0x1d173..=0x1d17a, 0xe0000..=0xe0fff];
    let code = u32::from(c);
    (c.is_control() && c != '\n' && c != '\t') || hidden.contains(&code) || ranges.iter().any(|it| it.contains(&code))
}

/// Every command, over a Session whose texts, names and files all hold such characters.
///
/// Broken builds: one command prints a name without `clean`; JSON is printed as serde writes it.
#[test]
fn no_command_prints_a_character_that_hides_something() {
    let hostile = "a\u{1b}]0;t\u{7}b\u{1b}[2Jc\u{9b}31md\u{202e}e\u{200b}f\u{8}g\r\u{e0041}h\u{feff}i\u{2028}j\u{ad}";
    let name = format!("n{hostile}.txt");
    let mut fixture = Fixture::new();
    for path in ["a.txt", &name, "themes/x.toml", "AGENTS.md"] {
        fixture.shell.write(path, hostile);
    }
    fixture.shell.write(
        ".claude/skills/x/SKILL.md",
        &format!("---\nname: x{hostile}\ndescription: {hostile}\n---\n{hostile}\n"),
    );
    let call = |name: &str, args: serde_json::Value| json!({ "name": name, "args": args });
    let calls = json!([
        call("read", json!({ "path": name })),
        call(
            "bash",
            json!({ "command": format!("cat a.txt; ls; printf '%s' '{}'; exit 3", hostile.replace('\u{0}', "")) })
        ),
        call("write", json!({ "path": format!("m{hostile}"), "content": hostile })),
        call("edit", json!({ "path": "a.txt", "old_text": "a\u{1b}", "new_text": format!("z{hostile}") })),
        call(hostile, json!({ hostile: hostile })),
        call("update_plan", json!({ "plan": [{ "step": hostile, "status": "pending" }] })),
        call("grep", json!({ "pattern": "b" })),
    ]);
    let script = json!({ "steps": [
        { "text": hostile, "reasoning": hostile, "calls": calls }, { "text": format!("# {hostile}\n\n`{hostile}`") },
    ] });
    let script = fixture.shell.aside("hostile.json", &script.to_string());
    let provider = format!("script:{}", script.display());
    let own = ["--provider", provider.as_str(), "--headless", "--write"];
    let (mut tried, mut wrong) = (0, Vec::new());
    let mut check = |shell: &Shell, line: &str, args: &[&str]| {
        let ran = shell.run(args);
        for (stream, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            tried += 1;
            if let Some(at) = text.chars().position(is_harmful) {
                let near: String = text.chars().skip(at.saturating_sub(40)).take(60).collect();
                wrong.push(format!("{line} ({stream}): {near:?}"));
            }
        }
        ran
    };
    for format in [&[][..], &["--json"], &["--format", "jsonl"]] {
        check(&fixture.shell, &format!("prompt {format:?}"), &[&own[..], format, &[hostile]].concat());
    }
    let listed = fixture.shell.run(["sessions", "list", "--json"]).document();
    let id = listed["sessions"][0]["session_id"]
        .as_str()
        .or(listed["sessions"][0]["id"].as_str())
        .expect("an id")
        .to_owned();
    check(&fixture.shell, "rename", &["sessions", "rename", &id, hostile]);
    for odd in [hostile, "no such thing\u{202e}"] {
        for args in [
            &["sessions", "show", odd][..],
            &["tools", "show", odd],
            &["run", odd],
            &["permissions", "why", odd],
            &["permissions", "add", odd],
            &[odd, odd],
            &["themes", "show", odd],
            &["--model", odd, "--headless", "x"],
        ] {
            check(&fixture.shell, &format!("{args:?}"), args);
            check(&fixture.shell, &format!("{args:?} --json"), &[args, &["--json"]].concat());
        }
    }
    fixture.names.extend([("ID", id.clone()), ("UNDONE", id), ("SCRIPT", script.display().to_string())]);
    fixture.keep();
    for words in tier::sample("no_command_prints_a_character", outputs(&fixture)) {
        // The document that can be imported holds the Log's lines byte for byte, because their chains are over those bytes.
        if words.starts_with(&["sessions".into(), "export".into()]) && words.iter().any(|it| it.ends_with("json")) {
            continue;
        }
        check(&fixture.shell, &words.join(" "), &words.iter().map(String::as_str).collect::<Vec<_>>());
        fixture.changed();
    }
    figures(&format!("hidden characters: {tried} outputs of commands tried, {} with one", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
