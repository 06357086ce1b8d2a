//! Modes with which a program runs as the owner or the group of its file: no command leaves such a file.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::shell::{Shell, as_user, entries, figures, skip, users};

/// Every call that gives a file its mode, by its number; each tries three modes.
const CALLS: &str = r#"import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
at, create, unnamed = -100, os.O_CREAT | os.O_WRONLY, 0o20200000 | os.O_WRONLY
tried = 0
def call(number, *args):
    global tried
    tried += 1
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_char_p(it) if isinstance(it, bytes) else ctypes.c_long(it) for it in args])
def plain(name):
    with open(name, "w") as file: file.write("x")
    return name.encode()
for mode in (0o4755, 0o2755, 0o6711):
    m = "%o" % mode
    fd = os.open(plain("fchmod" + m), os.O_WRONLY); call(91 if x86 else 52, fd, mode); os.close(fd)
    call(268 if x86 else 53, at, plain("fchmodat" + m), mode)
    call(452, at, plain("fchmodat2" + m), mode, 0)
    call(257 if x86 else 56, at, ("openat" + m).encode(), create, mode)
    how = (ctypes.c_uint64 * 3)(create, mode, 0)
    call(437, at, ("openat2" + m).encode(), ctypes.addressof(how), 24)
    fd = call(257 if x86 else 56, at, b".", unnamed, mode)
    if fd >= 0:
        libc.linkat(at, b"/proc/self/fd/%d" % fd, at, b"unnamed" + m.encode(), 0x400)
    call(259 if x86 else 33, at, ("mknodat" + m).encode(), 0o100000 | mode, 0)
    if x86:
        call(90, plain("chmod" + m), mode)
        call(2, ("open" + m).encode(), create, mode)
        call(85, ("creat" + m).encode(), mode)
        call(133, ("mknod" + m).encode(), 0o100000 | mode, 0)
print("tried", tried)
"#;
/// Programs that do so every day.
const PROGRAMS: &str = "cp /bin/true a && chmod u+s a; cp /bin/true b && chmod 2755 b; install -m 4755 /bin/true c; \
    mkdir -p d && cp /bin/true d/x && tar cf t --mode=6755 d/x && rm d/x && tar xpf t; \
    python3 -c 'import os; os.umask(0); os.close(os.open(\"e\", os.O_CREAT | os.O_WRONLY, 0o4755))'; \
    perl -e 'open F, \">f\"; close F; chmod 04755, \"f\"'; echo tried";

fn privileged(folder: PathBuf) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![folder]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let it = fs::symlink_metadata(entry.path()).expect("it exists");
            if it.is_dir() {
                left.push(entry.path());
            } else if it.mode() & 0o6000 != 0 {
                found.push(entry.path());
            }
        }
    }
    found
}

fn printed(shell: &Shell, user: Option<&str>, tier: &str, commands: &[&str]) -> Vec<String> {
    let top = shell.workspace().parent().expect("a parent").to_owned();
    let calls = commands.iter().map(|it| json!({ "calls": [{ "name": "bash", "args": { "command": it } }] }));
    let steps: Vec<Value> = calls.chain([json!({ "text": "done" })]).collect();
    let script = shell.aside("script.json", &json!({ "steps": steps }).to_string());
    if let Some(user) = user {
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).expect("chmod");
        assert!(
            Command::new("chown").args(["-R", &format!("{user}:{user}")]).arg(&top).status().expect("chown").success()
        );
    }
    let before = shell.logs();
    let ran = as_user(user, env!("CARGO_BIN_EXE_pixir"))
        .args(["--provider", &format!("script:{}", script.display()), "--headless"])
        .args(["--mode", "auto", "--sandbox", tier, "go"])
        .current_dir(shell.workspace())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .envs([("HOME", &top), ("PIXIR_HOME", &shell.home())])
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let log = shell.logs().into_iter().find(|it| !before.contains(it));
    let log = entries(&log.unwrap_or_else(|| panic!("no Log: {}", String::from_utf8_lossy(&ran.stderr))));
    assert_eq!(log[0]["data"]["sandbox"], tier);
    let results = log.iter().filter(|it| it["type"] == "tool_result");
    results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
}

/// Broken builds: `privileged_modes` leaves out the calls that create a file; `openat2` is allowed, whose mode no filter sees.
#[test]
fn no_command_leaves_a_file_that_runs_as_its_owner() {
    let mut tried = 0;
    for tier in ["ns", "ll"] {
        for user in users() {
            let shell = Shell::new(&[("calls.py", CALLS)]);
            let commands = ["umask 0; python3 calls.py", PROGRAMS];
            let printed = printed(&shell, user, tier, &commands);
            for output in &printed {
                assert!(output.contains("tried"), "{tier}: {output}");
            }
            let found = privileged(shell.workspace());
            assert!(found.is_empty(), "{tier}, {user:?}: {found:?}");
            tried += 33 + 6;
        }
    }
    // Without a sandbox the same calls leave such files.
    let shell = Shell::new(&[("calls.py", CALLS)]);
    let freely = Command::new("bash").args(["-c", "umask 0; python3 calls.py"]).current_dir(shell.workspace()).output();
    assert!(freely.expect("bash").status.success());
    let calls = if cfg!(target_arch = "x86_64") { 11 } else { 7 };
    assert_eq!(privileged(shell.workspace()).len(), 3 * calls, "{:?}", privileged(shell.workspace()));
    figures(&format!("files that run as their owner: {tried} tried, 0 left"));
}

/// Broken build: one that refuses every mode above 0777, or a flag of `open` that creates nothing.
#[test]
fn ordinary_modes_and_workspaces_of_a_group_work() {
    let line = "set -e; touch a; chmod 755 a; chmod 1777 a; chmod u-s,g-s a; mkdir -m 1755 b; install -m 600 a c; cp -p a d; \
        python3 -c 'import ctypes; assert ctypes.CDLL(None).syscall(257, -100, b\"a\", 0, 0o6777) > 2'; tar cf t a; tar xpf t; echo whole";
    // Copies of a folder in a workspace that a group shares.
    let shared = "set -e; mkdir -p one/two; python3 -c 'import shutil; shutil.copytree(\"one\", \"copy\")'; cp -a one more; \
        chmod 2775 one; chmod g+w one/two; echo whole";
    if cfg!(not(target_arch = "x86_64")) {
        return skip("the numbers of calls are those of x86_64");
    }
    for tier in ["ns", "ll"] {
        for user in users() {
            let shell = Shell::new(&[]);
            fs::set_permissions(shell.workspace(), fs::Permissions::from_mode(0o755)).expect("chmod");
            assert!(printed(&shell, user, tier, &[line])[0].contains("whole"), "{tier}, {user:?}");
            let shell = Shell::new(&[]);
            if let Some(user) = user {
                assert!(
                    Command::new("chown")
                        .arg(format!("{user}:{user}"))
                        .arg(shell.workspace())
                        .status()
                        .expect("chown")
                        .success()
                );
            }
            fs::set_permissions(shell.workspace(), fs::Permissions::from_mode(0o2775)).expect("chmod");
            let output = printed(&shell, user, tier, &[shared]);
            assert!(output[0].contains("whole"), "{tier}, {user:?}: {}", output[0]);
            // A file still gets none when it is created, and never the owner's.
            let output = self::printed(
                &shell,
                user,
                tier,
                &["cp /bin/true a; chmod 4755 a; install -m 6755 /bin/true b; echo tried"],
            );
            assert!(output[0].contains("tried"));
            let found = privileged(shell.workspace());
            assert!(found.iter().all(|it| fs::metadata(it).expect("it exists").mode() & 0o4000 == 0), "{found:?}");
        }
    }
}
