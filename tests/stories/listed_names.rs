//! Names of files that one program lists and another one opens, where such a name becomes another path on the way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::readers::{OUTSIDE, commands, judged, shown};
use crate::shell::Shell;
use crate::tier;

/// Without pixir, each of these prints the file outside the workspace.
const BECOME_OTHERS: &[&str] = &[
    // A folder `x ` that holds the path of the file outside.
    "find 'x ' -type f | xargs cat",
    "find x* -type f | xargs cat",
    "find 'x ' -type f | xargs -n1 cat",
    "find 'x ' -type f | xargs -r -P2 grep -h canary",
    "find sub 'x ' -type f | xargs cat",
    "cd 'x ' && cd .. && find 'x ' -type f | xargs cat",
    "grep -rl inner 'x ' | xargs cat",
    "grep -rl inner x* | xargs cat",
    "rg -l --hidden inner 'x ' | xargs cat",
    "rg --files --hidden 'x ' | xargs cat",
    "fdfind -H -t f . 'x ' | xargs cat",
    // A folder whose name ends with a line end.
    "find n* -type f | xargs cat",
    "find n* -type f | xargs -d '\\n' cat",
    // A name of two words, the second of which is a symlink.
    "grep -l inner 'sub/p lnk' in | xargs cat",
    // The value of a test is no folder that is walked.
    "find -maxdepth 1 -name src -o -maxdepth 1 -name 'ln?' | xargs cat",
    // What is not split at NUL, read as if it were.
    "find sub -maxdepth 0 | xargs -0 cat",
    // Texts that are no names of files.
    "find nosuch src 2>&1 | xargs cat",
    "rg -l --stats one in | xargs cat",
    "cat in | grep -l one - src | xargs cat",
    "grep -l --color=always one in | xargs cat",
    // A name that is a flag, under which the reader runs the other files as scripts.
    "cd flags && rg --files -0 | xargs -0 rg canary",
];

/// These get the names as they are.
const STAY_THE_SAME: &[&str] = &[
    "find src -type f | xargs cat",
    "find src -name '*.rs' -print0 | xargs -0 cat",
    "grep -rlZ canary-INSIDE src | xargs -0 cat",
    "rg -l0 canary-INSIDE src | xargs -0 cat",
    "find 'b c' -type f | xargs -d '\\n' cat",
    "find 'b c' -type f -print0 | xargs -0 cat",
];

fn project() -> Shell {
    let shell = Shell::new(&[
        ("in", "one\n"),
        ("sub/a", "x\n"),
        ("sub/p lnk", "inner\n"),
        ("src/main.rs", "// canary-INSIDE\n"),
        ("b c/d e", "canary-INSIDE\n"),
    ]);
    let root = shell.workspace();
    let outside = root.parent().expect("a parent").join("outside");
    fs::create_dir_all(&outside).expect("mkdir");
    fs::write(outside.join("secret"), format!("{OUTSIDE}\n")).expect("write");
    let path = outside.join("secret").display().to_string();
    for folder in ["x ", "n\n"] {
        shell.write(&format!("{folder}{path}"), "inner\n");
    }
    shell.write("flags/--pre=bash", "");
    shell.write("flags/script", "cat ../lnk\n");
    for link in ["lnk", "sub\n", "such", "matches", "input)", "\u{1b}[35m\u{1b}[Kin\u{1b}[m\u{1b}[K"] {
        symlink(outside.join("secret"), root.join(link)).expect("a symlink");
    }
    shell
}

fn is_here(line: &str) -> bool {
    let here = |program: &str| Path::new("/usr/bin").join(program).exists();
    ["rg", "fdfind"].iter().all(|program| !line.split(' ').any(|word| word == *program) || here(program))
}

/// Broken builds: the folder that is listed is no name; a name that ends with NUL may be a flag; the value of a flag is a folder that is listed; messages of errors are
/// names; in tier `none` names are split at blanks.
#[test]
fn names_of_files_do_not_become_other_paths_unasked() {
    let shell = project();
    let lines: Vec<&str> = BECOME_OTHERS.iter().copied().filter(|line| is_here(line)).collect();
    for line in &lines {
        let ran = Command::new("bash").args(["-c", line]).current_dir(shell.workspace()).output().expect("bash starts");
        let printed = String::from_utf8_lossy(&ran.stdout);
        assert!(printed.contains(OUTSIDE), "{line}: {printed}{}", String::from_utf8_lossy(&ran.stderr));
    }
    // Where nothing confines programs, a rule for one program of a line lets the others run that only read.
    let beside: Vec<String> = lines.iter().map(|line| format!("make -n; {line}")).collect();
    let split: Vec<String> = STAY_THE_SAME.iter().map(|line| format!("make -n; {line}")).collect();
    let mut all: Vec<(&str, &[&str], &[&str])> = Vec::new();
    for tier in ["ns", "ll", "none"] {
        for mode in [&["--mode", "read-only"][..], &["--mode", "ask", "--no-input"], &["--mode", "auto"]] {
            all.extend([&[][..], &["--allow", "bash(make *)"]].map(|rules| (tier, mode, rules)));
        }
    }
    for (tier, mode, rules) in tier::sample("names_of_files", all) {
        let args: Vec<&str> = mode.iter().chain(rules).copied().chain(["--sandbox", tier]).collect();
        let all = lines.iter().copied().chain(beside.iter().map(String::as_str));
        let ran = judged(&shell, &commands(all), &args);
        let leaks: Vec<_> = ran.iter().filter(|(_, output)| output.contains(OUTSIDE)).collect();
        assert!(leaks.is_empty(), "{args:?}: {leaks:?}");
        let unasked = ran.iter().filter(|(verdict, _)| verdict == "allow").count();
        shown(format_args!("{args:?}: {} tried, {unasked} ran unasked", ran.len()));
        assert!(unasked == 0 || (mode[1] == "auto" && tier != "none"), "{args:?}: {unasked}");
    }
    for tier in ["ns", "ll"] {
        let good: Vec<&str> = STAY_THE_SAME.iter().copied().filter(|line| is_here(line)).collect();
        let ran = judged(&shell, &commands(good), &["--mode", "read-only", "--sandbox", tier]);
        assert!(ran.iter().all(|(verdict, output)| verdict == "allow" && output.contains("canary-INSIDE")), "{ran:?}");
    }
    let args = ["--mode", "ask", "--no-input", "--sandbox", "none", "--allow", "bash(make *)"];
    let ran = judged(&shell, &commands(split.iter().map(String::as_str)), &args);
    let verdicts: Vec<bool> = ran.iter().map(|(verdict, _)| verdict == "allow").collect();
    assert_eq!(verdicts, [false, true, true, true, true, true], "{ran:?}");
}
