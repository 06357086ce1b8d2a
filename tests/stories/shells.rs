//! Completions of shells and manual pages: checked by the programs that read them, and tried.

use std::process::{Command, Stdio};

use crate::shell::{Shell, ran, skip};

/// A program that looks at a file. None where this machine does not have it.
fn look(shell: &Shell, program: &str, args: &[&str]) -> Option<(i32, String)> {
    let output = Command::new(program).args(args).current_dir(shell.workspace()).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        skip(&format!("there is no {program}"));
        return None;
    };
    let ran = ran(output);
    Some((ran.code, format!("{}{}", ran.stdout, ran.stderr)))
}

/// Broken builds: a name with a quote or a bracket breaks the script; a shell has no script.
#[test]
fn completions_are_scripts_that_each_shell_reads() {
    let shell = Shell::new(&[]);
    for name in ["bash", "zsh", "fish", "nushell", "elvish", "powershell"] {
        let script = shell.run(["completions", name]);
        assert!(
            script.code == 0 && script.stdout.contains("sessions") && script.stderr.is_empty(),
            "{name}: {script:?}"
        );
        shell.write(&format!("completions.{name}"), &script.stdout);
    }
    let bash = shell.read("completions.bash");
    assert!(bash.len() < 64 * 1024, "a shell reads it at each start: {} bytes", bash.len());
    if let Some(said) = look(&shell, "shellcheck", &["-s", "bash", "completions.bash"]) {
        assert_eq!(said, (0, String::new()));
    }
    for (program, args) in
        [("bash", ["-n", "completions.bash"]), ("zsh", ["-n", "completions.zsh"]), ("fish", ["-n", "completions.fish"])]
    {
        // Only bash is on every machine; the others are tried where they are.
        if Command::new(program).arg("--version").output().is_ok()
            && let Some(said) = look(&shell, program, &args)
        {
            assert_eq!(said, (0, String::new()), "{program}");
        }
    }
}

/// Broken builds: a word behind the command is not known; a flag that the command refuses is offered; `--mode=` has no values.
#[test]
fn bash_completes_commands_flags_and_values() {
    let shell = Shell::new(&[]);
    shell.write("completions.bash", &shell.run(["completions", "bash"]).stdout);
    let script = "source completions.bash
try() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _pixir; echo \"${COMPREPLY[*]}\"; }
try pixir ses
try pixir sessions re
try pixir sessions list --li
try pixir sessions list --mo
try pixir --mode re
try pixir -p --mode = a
try pixir sessions export x --to h
try pixir sessions list --format t
try pixir completions f
try pixir -p --model x sessions sh
";
    let (code, said) = look(&shell, "bash", &["-c", script]).expect("there is bash");
    let expected = "sessions\nrename repair\n--limit\n\nread-only\nask auto\nhtml\ntsv\nfish\nshow\n";
    assert_eq!((code, said.as_str()), (0, expected));
}

/// Broken builds: a line of help that begins with a dot is lost; a page has no examples; a command has no page.
#[test]
fn manual_pages_are_clean_and_there_is_one_for_each_command() {
    let shell = Shell::new(&[]);
    assert_eq!(shell.run(["man", "--to", "pages", "--dry-run"]).code, 0);
    assert!(!shell.workspace().join("pages").exists());
    assert_eq!(shell.run(["man", "--to", "pages"]).code, 0);
    let mut pages: Vec<String> = std::fs::read_dir(shell.workspace().join("pages"))
        .expect("pages")
        .map(|it| format!("pages/{}", it.expect("an entry").file_name().display()))
        .collect();
    pages.sort();
    let schema = shell.run(["schema", "commands"]).document();
    let all = serde_json::to_string(&schema["part"]).expect("JSON").matches("\"run_options\"").count();
    assert_eq!(pages.len(), all, "one for each command and group");
    for page in &pages {
        let text = shell.read(page);
        for part in [".TH PIXIR", ".SH \"SYNOPSIS\"", ".SH \"EXAMPLES\"", ".SH \"EXIT STATUS\""] {
            assert!(text.contains(part), "{page} has no {part}");
        }
    }
    assert_eq!(shell.run(["man", "sessions", "list"]).stdout, shell.read("pages/pixir-sessions-list.1"));
    let wrong = shell.run(["man", "sesions"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("did you mean sessions?"), "{wrong:?}");
    let args: Vec<&str> = ["-Tlint"].into_iter().chain(pages.iter().map(String::as_str)).collect();
    if let Some(said) = look(&shell, "mandoc", &args) {
        assert_eq!(said, (0, String::new()));
    }
}
