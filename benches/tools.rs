//! What tools cost, each beside the program that people would use instead: `cargo bench --bench tools`.
//!
//! `PIXIR_TREE` names the tree that is searched; without, the sources that Cargo has downloaded.

#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "tools/confined.rs"]
mod confined; // the sandbox and the gate
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use shell::Shell;

const RUNS: usize = 15;

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    confined::commands();
    confined::judgements();
    let tree = tree();
    let shell = Shell::new(&[]);
    println!("{}\n", tree.display());
    println!("| what | pixir, ms | the other, ms | ratio |");
    println!("| --- | --- | --- | --- |");
    for (what, args, rg) in [
        ("grep, a rare word", json!({"pattern": "subreaper"}), vec!["-n", "subreaper"]),
        ("grep, an expression", json!({"pattern": r"fn \w+_mut\("}), vec!["-n", r"fn \w+_mut\("]),
        ("grep -i, many hits", json!({"pattern": "error", "ignore_case": true}), vec!["-n", "-i", "error"]),
    ] {
        let base = ["--hidden", "--no-require-git", "--no-heading", "--color=never", "-g", "!.git"];
        compare(&shell, &tree, what, "grep", &args, "rg", &[base.as_slice(), &rg, &["."]].concat());
    }
    for (what, glob) in [("find *.rs", "*.rs"), ("find Cargo.toml", "Cargo.toml")] {
        let fd = ["--hidden", "--type", "f", "--type", "l", "--exclude", ".git", "--color=never", "--glob", glob];
        let program = if exists("fdfind") { "fdfind" } else { "fd" };
        compare(&shell, &tree, what, "find", &json!({"pattern": glob}), program, &fd);
    }
    chains(&shell);
}

/// A line of commands beside the same line in a shell.
#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn chains(shell: &Shell) {
    let text: String = (0..1_000_000).map(|n| format!("{n} {}\n", if n % 7 == 0 { "ERROR" } else { "fine" })).collect();
    shell.write("big.txt", &text);
    for line in [
        "cat big.txt | grep ERROR | wc -l",
        "sort -rn big.txt | head -n 3",
        "cat big.txt | cut -d ' ' -f 2 | uniq | wc -l",
    ] {
        let ours = median(|| {
            let ran = shell.run(["run", line, "--raw"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
        });
        let theirs = median(|| {
            let mut sh = Command::new("sh");
            let ran = sh.args(["-c", line]).current_dir(shell.workspace()).env("LC_ALL", "C").output();
            assert!(ran.expect("it runs").status.success());
        });
        println!("| `{line}`, 14 MB | {ours:.1} | {theirs:.1} | {:.2} |", ours / theirs);
    }
}

fn tree() -> PathBuf {
    let named = std::env::var_os("PIXIR_TREE").map(PathBuf::from);
    let cargo = || {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
        Some(home.join("registry/src")).filter(|path| path.is_dir())
    };
    named.or_else(cargo).unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")))
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn search(shell: &Shell, tree: &std::path::Path, tool: &str, args: &Value) {
    let args = args.to_string();
    let ran = shell.run(["tools", "run", tool, &args, "--json", "--workspace", tree.to_str().expect("text")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn compare(
    shell: &Shell,
    tree: &std::path::Path,
    what: &str,
    tool: &str,
    args: &Value,
    program: &str,
    theirs: &[&str],
) {
    let ours = median(|| search(shell, tree, tool, args));
    if !exists(program) {
        println!("| {what} | {ours:.1} | SKIPPED: {program} is not here | |");
        return;
    }
    let other = median(|| {
        let mut it = Command::new(program);
        it.args(theirs).current_dir(tree).stdin(Stdio::null()).output().expect("it runs");
    });
    println!("| {what} | {ours:.1} | {other:.1} ({program}) | {:.2} |", ours / other);
}

fn median(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[RUNS / 2]
}
