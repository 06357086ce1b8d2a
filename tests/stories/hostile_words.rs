//! Words that a program takes for more than they seem: every program of the reader's tables, tried with each of them.

use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use pixir_core::{Readable, UnaskedProgram, prove, unasked_programs};
use rustix::fs::inotify;

use super::readers::{repository, shown};
use crate::shell::{Shell, run_within};
use crate::tier;

/// Words of each kind that some program has a meaning for. Those without a path are the names of symlinks that lead outside,
/// so that a program which opens one of them, where it was judged as a text or a value, is seen to.
const WORDS: &[&str] = &[
    "../outside/secret",
    "@args",
    "@@args",
    "@./args",
    "-x",
    "+x",
    "+8",
    "+!touch PWNED",
    ":x",
    ":!x",
    ":/x",
    ":(top)x",
    "!x",
    "!touch PWNED",
    "%x",
    "x%n",
    "%(signature)",
    "=x",
    "x=../outside/secret",
    "ARGV=x",
    "~",
    "~root",
    "--",
    "-",
    "---",
    "l",
    "z",
    "li*",
    "l?",
    "[l]*",
    "file:l",
    "host:in",
    "host::in",
    "ext::touch PWNED",
    "<l",
    ">PWNED",
    "|touch PWNED",
    "`touch PWNED`",
    "$(touch PWNED)",
    "dev/stdin",
    "in,PWNED",
    "in PWNED",
    "w PWNED",
    "1w PWNED",
    "e touch PWNED",
    "s/x/y/w PWNED",
    "s/x/touch PWNED/e",
    "s/[/]/g;/w PWNED/p",
    "/[/]w PWNED/p",
    "r l",
    "1r l",
    "R l",
    "{system(\"touch PWNED\")}",
    "BEGIN{system(\"touch PWNED\")}",
    "{print > \"PWNED\"}",
    "{getline < \"l\"}",
    "@load \"./evil.so\"",
    "include \"l\"; .",
    "import \"l\" as l; .",
    "input_filename",
    "%n",
    "%(l)",
    "--plugin=./evil.so",
    "--plugin",
    "./evil.so",
    "evil.so",
    "./evil",
    "evil",
    "-o",
    "-oPWNED",
    "-fargs",
    "-f",
    "--files0-from=args",
    "--from-file=args",
    "--file=args",
    "--output=PWNED",
    "-delete",
    "-exec",
    "PWNED",
    "8",
    "1",
    "x",
    "a",
    "c",
    "f",
    "n",
    "name",
    "never",
    "always",
    "size",
    "utf-8",
    "iso",
    "1d",
    "1,2",
    "sub",
    "in",
];

/// Words that stand for the value of an option, or behind one that takes none.
const VALUES: &[&str] = &[
    "../outside/secret",
    "@args",
    "-x",
    "+8",
    "PWNED",
    "./evil.so",
    "l",
    "8",
    "1",
    "x",
    "a",
    "c",
    "f",
    "n",
    "name",
    "never",
    "size",
    "utf-8",
    "1d",
    "TZ=\"../outside/secret\" now",
];

/// Names in the workspace that lead outside.
const LINKS: &[&str] = &[
    "l", "z.gz", "z.zip", "z.Z", "@link", "+8", "8", "1", "x", "a", "c", "f", "n", "name", "never", "always", "size",
    "utf-8", "iso", "1d", "1,2", "-x", ":x", "!x", "file:l",
];

/// A program, the words with which its lines begin, and what stands at their end.
type Apart = (&'static str, &'static [&'static [&'static str]], &'static [&'static str]);

/// The programs that a function of their own judges.
const APART: &[Apart] = &[
    ("env", &[&[], &["cat"], &["nm"], &["A=1", "nm"]], &[]),
    ("tar", &[&["-tf"], &["tf"], &["-tzf"]], &[]),
    ("unzip", &[&["-l"], &["-v"], &["-Z1"]], &[]),
    ("less", &[&[]], &[]),
    ("more", &[&[]], &[]),
    ("test", &[&[], &["-f"], &["-e"], &["x", "="]], &[]),
    ("[", &[&[], &["-f"]], &["]"]),
    ("command", &[&["-v"]], &[]),
    ("nice", &[&["cat"], &["nm"], &["sed"]], &[]),
    ("timeout", &[&["1", "cat"], &["1", "strings"], &["1", "awk", "{print}"]], &[]),
    ("xargs", &[&["cat"], &["-I{}", "head", "{}"]], &[]),
    ("git", &[&[], &["-C"], &["--no-pager"]], &[]),
];

/// What is not started, and why.
const NOT_STARTED: &[(&str, &str)] = &[
    ("sleep", "it only waits"),
    ("command", "the shell has it, and no file"),
    ("type", "the shell has it, and no file"),
    (":", "the shell has it, and no file"),
];

/// A workspace with hostile files, and what is seen of the effects of a program.
struct Scene {
    shell: Shell,
    watcher: OwnedFd,
}

impl Scene {
    fn new() -> Scene {
        let shell =
            Shell::new(&[("args", "--plugin=./evil.so\n--plugin\n./evil.so\n../outside/secret\n"), ("sub/in", "x\n")]);
        let root = shell.workspace();
        repository(&root);
        let beside = root.parent().expect("a parent").to_owned();
        for folder in ["outside", "marks"] {
            fs::create_dir_all(beside.join(folder)).expect("mkdir");
        }
        fs::write(beside.join("outside/secret"), "x secret\n").expect("write");
        fs::copy(root.join("args"), root.join("@args")).expect("copy");
        fs::write(root.join("evil"), format!("#!/bin/sh\ntouch {}/script\n", beside.join("marks").display()))
            .expect("write");
        fs::set_permissions(root.join("evil"), fs::Permissions::from_mode(0o755)).expect("chmod");
        let source = beside.join("evil.c");
        let mark = beside.join("marks/library");
        let code = format!(
            "#include <stdio.h>\n__attribute__((constructor)) static void mark(void) {{ FILE *it = fopen(\"{}\", \"w\"); if (it) fclose(it); }}\n",
            mark.display()
        );
        fs::write(&source, code).expect("write");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(root.join("evil.so")).arg(&source).status();
        assert!(built.is_ok_and(|it| it.success()), "a C compiler builds pixir, and this library");
        // A program that takes an option for a file goes on to the next one.
        for name in ["-F", "-v", "-n", "-b", "-c"] {
            fs::write(root.join(name), "x\n").expect("write");
        }
        for name in LINKS {
            symlink("../outside/secret", root.join(name)).expect("a symlink");
        }
        let watcher = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).expect("inotify");
        let changes = inotify::WatchFlags::CREATE
            | inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE
            | inotify::WatchFlags::ATTRIB;
        for (folder, flags) in [
            (root.clone(), changes),
            (root.join("sub"), changes),
            (beside.join("marks"), changes),
            (beside.join("outside"), changes | inotify::WatchFlags::OPEN),
        ] {
            inotify::add_watch(&watcher, folder, flags).expect("a watch");
        }
        Scene { shell, watcher }
    }

    /// Starts a program as its words say, outside of any sandbox, and returns the names of the files that it opened outside,
    /// created or changed.
    fn effects(&self, program: &Path, args: &[String]) -> Vec<String> {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.shell.workspace()).env_clear();
        // What they print is not what is judged, and a hundred thousand complaints would fill the log of the tests.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.shell.home()).env("LC_ALL", "C.UTF-8");
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        let _ = run_within(&mut command, Duration::from_secs(5));
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = inotify::Reader::new(&self.watcher, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            let is_folder = event.events().contains(inotify::ReadFlags::ISDIR);
            let name = event.file_name().map(|it| it.to_string_lossy().into_owned());
            names.extend(name.filter(|_| !is_folder || event.events().contains(inotify::ReadFlags::CREATE)));
        }
        names.dedup();
        names
    }
}

/// The file of a program in the folders of the system.
fn installed(program: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(program)).find(|it| it.exists())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

/// Every way to give a program a word: alone, beside the name of a file, behind `--`, as the value of each of its options.
fn calls(program: &UnaskedProgram) -> Vec<Vec<String>> {
    let mut calls: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| calls.push(owned(words));
    if program.is_judged_apart {
        let (_, starts, end) = APART
            .iter()
            .find(|(name, ..)| *name == program.words[0])
            .unwrap_or_else(|| panic!("APART says how the words of {} begin", program.words[0]));
        for start in *starts {
            for word in WORDS {
                for words in [&[*word][..], &["in", word], &[word, "in"], &["--", word]] {
                    add(&[start, words, end].concat());
                }
            }
        }
    } else {
        let befores: Vec<Vec<&str>> = match program.before {
            Some(before) => vec![vec![before], vec![]],
            None => vec![vec![]],
        };
        for before in &befores {
            for word in WORDS {
                for words in [&[*word][..], &["in", word], &[word, "in"], &["--", word], &["in", "--", word]] {
                    add(&[before.as_slice(), words].concat());
                }
            }
            for (option, _) in &program.options {
                let joined = if option.starts_with("--") { "=" } else { "" };
                for value in VALUES {
                    let glued = format!("{option}{joined}{value}");
                    add(&[before.as_slice(), &["in", option, value]].concat());
                    add(&[&[option.as_str(), *value][..], before, &["in"]].concat());
                    add(&[&[glued.as_str()][..], before, &["in"]].concat());
                    // Other letters before it on the same dash.
                    for (other, _) in
                        program.options.iter().filter(|(it, _)| it.len() == 2 && option.len() == 2).take(2)
                    {
                        let together = format!("{other}{}", &option[1..]);
                        add(&[&[together.as_str(), *value][..], before, &["in"]].concat());
                    }
                }
            }
        }
    }
    calls.sort_unstable();
    calls.dedup();
    let of_program = |words: Vec<String>| program.words[1..].iter().map(|&it| it.to_owned()).chain(words).collect();
    calls.into_iter().map(of_program).collect()
}

/// Whatever is judged to only read neither writes, nor runs code of the workspace, nor opens a file outside of it.
///
/// Broken builds: binutils are `PLAIN`, so that `nm @args` loads a library; `od` takes a value behind `-w`; awk has options
/// behind its program; letters of xxd share a dash; unzip has no patterns; a list of characters of sed ends at a slash.
#[test]
fn no_hostile_word_makes_a_reader_do_more() {
    let scene = Scene::new();
    let root = scene.shell.workspace();
    // What is looked for is seen.
    for (program, args, seen) in [
        ("cat", &["../outside/secret"][..], "secret"),
        ("touch", &["PWNED"], "PWNED"),
        ("sh", &["evil"], "script"),
        ("nm", &["@args"], "library"),
    ] {
        if let Some(path) = installed(program) {
            let effects = scene.effects(&path, &owned(args));
            assert!(effects.iter().any(|it| it == seen), "{program} {args:?}: {effects:?}");
        }
    }
    for name in ["PWNED", "../marks/script", "../marks/library"] {
        let _ = fs::remove_file(root.join(name));
    }
    scene.effects(Path::new("/bin/true"), &[]);

    let programs = unasked_programs();
    let is_started = |name: &str| NOT_STARTED.iter().all(|(it, _)| *it != name);
    let missing: Vec<&str> =
        programs.iter().map(|it| it.words[0]).filter(|it| is_started(it) && installed(it).is_none()).collect();
    let all: Vec<(usize, Vec<String>)> =
        programs.iter().enumerate().flat_map(|(at, it)| calls(it).into_iter().map(move |call| (at, call))).collect();
    let (mut ran, mut found) = (0, Vec::new());
    for (at, call) in tier::sample("no_hostile_word", all) {
        let name = programs[at].words[0];
        let words: Vec<&str> = std::iter::once(name).chain(call.iter().map(String::as_str)).collect();
        let Some(path) = installed(name).filter(|_| is_started(name)) else { continue };
        if prove(&words, Readable::from(&root)).is_err() {
            continue;
        }
        ran += 1;
        let effects = scene.effects(&path, &call);
        if !effects.is_empty() {
            found.push(format!("{}: {}", words.join(" "), effects.join(" ")));
        }
    }
    shown(format_args!("{ran} ran unasked; not installed here: {missing:?}"));
    assert_eq!(found, Vec::<String>::new());
    assert!(ran > 100, "{ran} ran");
}
