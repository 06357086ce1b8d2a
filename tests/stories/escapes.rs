//! Ways out of the sandbox, each really tried: judged by canaries outside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::shell::{Shell, as_user, entries, figures, is_running, mark, run_within, users};
use crate::tier;
use crate::wait;

const TABLE: &str = include_str!("../commands/escapes.txt");
/// The text of every secret. No attempt may print it.
const CANARY: &str = "canary-9f13c2";

/// The longest that pixir may take for the attempts of one policy.
const LONGEST: Duration = Duration::from_secs(240);

/// One attempt: its name, where it counts, its script.
struct Attempt {
    name: &'static str,
    only: Vec<&'static str>,
    script: String,
}

fn attempts() -> Vec<Attempt> {
    let blocks = TABLE.split("\n## ").skip(1);
    let all = blocks.map(|block| {
        let (head, script) = block.split_once('\n').expect("a script");
        let mut words = head.split(' ');
        let name = words.next().expect("a name");
        Attempt { name, only: words.collect(), script: script.to_owned() }
    });
    all.collect()
}

/// The numbers of system calls on this machine, in place of their names.
fn numbered(script: &str) -> String {
    let numbers = [
        ("SYS_name_to_handle_at", libc::SYS_name_to_handle_at),
        ("SYS_open_by_handle_at", libc::SYS_open_by_handle_at),
        ("SYS_open_tree", libc::SYS_open_tree),
        ("SYS_pidfd_open", libc::SYS_pidfd_open),
        ("SYS_pidfd_getfd", libc::SYS_pidfd_getfd),
        ("SYS_pidfd_send_signal", libc::SYS_pidfd_send_signal),
        ("SYS_tgkill", libc::SYS_tgkill),
        ("SYS_init_module", libc::SYS_init_module),
        ("SYS_kexec_load", libc::SYS_kexec_load),
        ("SYS_swapoff", libc::SYS_swapoff),
        ("SYS_quotactl", libc::SYS_quotactl),
        ("SYS_acct", libc::SYS_acct),
        ("SYS_reboot", libc::SYS_reboot),
        ("SYS_bpf", libc::SYS_bpf),
        ("SYS_perf_event_open", libc::SYS_perf_event_open),
        ("SYS_userfaultfd", libc::SYS_userfaultfd),
        ("SYS_io_uring_setup", libc::SYS_io_uring_setup),
        ("SYS_add_key", libc::SYS_add_key),
        ("SYS_keyctl", libc::SYS_keyctl),
        ("SYS_request_key", libc::SYS_request_key),
        ("SYS_ptrace", libc::SYS_ptrace),
        ("SYS_process_vm_readv", libc::SYS_process_vm_readv),
        ("SYS_process_vm_writev", libc::SYS_process_vm_writev),
        ("SYS_memfd_create", libc::SYS_memfd_create),
        ("SYS_shmget", libc::SYS_shmget),
        ("SYS_msgget", libc::SYS_msgget),
        ("SYS_personality", libc::SYS_personality),
    ];
    let text = numbers.iter().fold(script.to_owned(), |text, (name, number)| text.replace(name, &number.to_string()));
    assert!(!text.contains("SYS_"), "an unknown system call: {text}");
    text
}

/// Where the attempts run, with everything that they are after.
struct Prison {
    shell: Shell,
    user: Option<&'static str>,
    victim: Child,
    heard: Arc<Mutex<Vec<String>>>,
    marker: String,
    before: Outside,
}

/// What the attempts must not change.
#[derive(Debug, PartialEq)]
struct Outside {
    files: BTreeMap<PathBuf, (u32, u32, u64, i64, Vec<u8>)>,
    limits: String,
    is_stopped: bool,
    niceness: String,
    machine: Vec<String>,
}

impl Prison {
    fn new(user: Option<&'static str>) -> Prison {
        let shell = Shell::new(&[("in", "text\n")]);
        let top = shell.workspace().parent().expect("a parent").to_owned();
        let marker = mark();
        for (path, text) in [
            ("outside/secret", CANARY),
            ("outside/victim", "untouched"),
            ("outside/folder/file", "untouched"),
            (".ssh/id_rsa", CANARY),
            (".ssh/authorized_keys", CANARY),
            (".netrc", CANARY),
            (".aws/credentials", CANARY),
            (".config/gh/hosts.yml", CANARY),
            (".bash_history", CANARY),
            (".bashrc", "true\n"),
            (".claude/canary", CANARY),
            (".cache/pip/x", "x"),
            (".cargo/registry/x", "x"),
            (".npm/x", "x"),
            (".config/environment.d/x", "x"),
            ("home/canary", CANARY),
        ] {
            let path = top.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        }
        fs::create_dir(top.join("outside/empty")).expect("mkdir");
        git(&top.join("outside"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let port = listen(&top.join("agent.sock"), &marker, &heard);
        let words = [
            ("OUTSIDE", top.join("outside").display().to_string()),
            ("HOME", top.display().to_string()),
            ("STATE", top.join("home").display().to_string()),
            ("PIXIR", env!("CARGO_BIN_EXE_pixir").to_owned()),
            ("PORT", port.to_string()),
            ("SOCKET", top.join("agent.sock").display().to_string()),
            ("ABSTRACT", format!("pixir-{marker}")),
            ("MARK", marker.clone()),
        ];
        // A program of the name `bash` that runs the attempt which is the last word of its command line.
        let tools = top.join("tools");
        for name in ["bin", "share"] {
            fs::create_dir_all(tools.join(name)).expect("mkdir");
        }
        let bash = format!("#!/bin/bash\nexec /bin/bash {}/share/${{2##* }}.sh\n", tools.display());
        fs::write(tools.join("bin/bash"), bash).expect("write");
        fs::set_permissions(tools.join("bin/bash"), fs::Permissions::from_mode(0o755)).expect("chmod");
        if let Some(user) = user {
            fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).expect("chmod");
            assert!(Command::new("chown").args(["-R", user]).arg(&top).status().expect("chown").success());
        }
        let secret = top.join("outside/secret");
        let mut victim = as_user(user, "bash");
        let line = format!("exec 9< {}; exec sleep 1{}", secret.display(), marker);
        let victim = victim
            .args(["-c", &line])
            .current_dir(&top)
            .env("TOKEN", CANARY)
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        wait::until("the victim holds the secret", || is_running(&format!("sleep\u{0}1{marker}")));
        for it in attempts() {
            let mut script = it.script.replace("SELF", &format!("x-{}", it.name));
            for (word, value) in &words {
                script = whole_word(&script, word, value);
            }
            script = numbered(&whole_word(&script, "VICTIM", &victim.id().to_string()));
            fs::write(tools.join(format!("share/{}.sh", it.name)), script).expect("write");
        }
        fs::write(tools.join("share/serve.sh"), "sleep 1000").expect("write");
        let before = Outside::now(&top, victim.id());
        Prison { shell, user, victim, heard, marker, before }
    }

    fn top(&self) -> PathBuf {
        self.shell.workspace().parent().expect("a parent").to_owned()
    }

    /// Tries these attempts in one Session; returns every effect. `beside` is work while a job of the Session runs.
    fn tries(&mut self, tier: &str, policy: &str, attempts: &[&Attempt]) -> Vec<String> {
        let top = self.top();
        let workspace = Outside::files(&[self.shell.workspace()]);
        // `ls` is proven to look only; the other one is not, so it works.
        let command = |it: &&Attempt| format!("{} {}", if policy == "look" { "ls" } else { "attempt" }, it.name);
        let is_beside = policy == "beside";
        let job =
            |name: &str, args: Value| Some(json!({ "calls": [{ "name": name, "args": args }] })).filter(|_| is_beside);
        let steps: Vec<Value> = attempts
            .chunks(20)
            .map(|some| {
                let call = |it: &&Attempt| json!({ "name": "bash", "args": { "command": command(it), "timeout": 30 } });
                json!({ "calls": some.iter().map(call).collect::<Vec<_>>() })
            })
            .chain(job("job_output", json!({ "job": 1 })))
            .chain([json!({ "text": "done" })])
            .collect();
        let begin = job("bash", json!({ "command": "attempt serve", "background": true }));
        let steps: Vec<Value> = begin.into_iter().chain(steps).collect();
        let script = top.join("script.json");
        fs::write(&script, json!({ "steps": steps }).to_string()).expect("write");
        let logs = self.shell.logs();
        let path = format!("{}:{}", top.join("tools/bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut pixir = as_user(self.user, env!("CARGO_BIN_EXE_pixir"));
        pixir
            .args(["--provider", &format!("script:{}", script.display()), "--headless", "--max-rounds", "50"])
            .args(["--mode", if policy == "look" { "read-only" } else { "auto" }, "--sandbox", tier, "go"])
            .current_dir(self.shell.workspace())
            .env_clear()
            .env("PATH", path)
            .env("HOME", &top)
            .env("PIXIR_HOME", self.shell.home())
            .envs([("DATABASE_URL", CANARY), ("OPENAI_API_KEY", CANARY), ("SSH_AUTH_SOCK", CANARY), ("MY_PAT", CANARY)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (ran, hung) = run_within(&mut pixir, LONGEST);
        if hung {
            // An attempt has stopped pixir: that is an effect, and there are no results.
            let mut effects = vec!["pixir did not end".to_owned()];
            effects.extend(self.effects());
            return effects;
        }
        let log = self.shell.logs().into_iter().find(|it| !logs.contains(it));
        let log = entries(&log.unwrap_or_else(|| panic!("no Log: {}", String::from_utf8_lossy(&ran.stderr))));
        assert_eq!(log[0]["data"]["sandbox"], tier, "the tier that was asked for");
        let mut results: Vec<&Value> = log.iter().filter(|it| it["type"] == "tool_result").collect();
        let mut effects = Vec::new();
        if is_beside {
            let told = results.pop().map(|it| it["data"]["output"].to_string()).unwrap_or_default();
            if !told.contains("job 1 (running)") {
                effects.push(format!("the job did not stay: {told}"));
            }
            results.remove(0);
        }
        assert_eq!(results.len(), attempts.len(), "{}", String::from_utf8_lossy(&ran.stderr));
        for (it, result) in attempts.iter().zip(results) {
            let output = result["data"]["output"].as_str().unwrap_or_default();
            assert!(result["data"]["exit_code"].is_number(), "{} did not run: {output}", it.name);
            effects.extend(seen_by(it, output));
        }
        effects.extend(self.effects());
        let after = Outside::files(&[self.shell.workspace()]);
        if policy == "look" && after != workspace {
            let changed: Vec<&PathBuf> =
                after.iter().filter(|(path, it)| workspace.get(*path) != Some(it)).map(|(path, _)| path).collect();
            effects.push(format!("changed in the workspace: {changed:?}"));
        }
        effects
    }

    /// The same attempt where nothing confines it.
    fn tries_freely(&mut self, attempt: &Attempt) -> Vec<String> {
        let ran = as_user(self.user, "/bin/bash")
            .arg(self.top().join("tools/share").join(format!("{}.sh", attempt.name)))
            .current_dir(self.shell.workspace())
            .env("HOME", self.top())
            .env("SSH_AUTH_SOCK", CANARY)
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        let mut effects: Vec<String> = seen_by(attempt, &String::from_utf8_lossy(&ran.stdout)).into_iter().collect();
        effects.extend(self.effects());
        effects
    }

    /// What is seen of a signal to the victim where nothing confines the sender.
    fn signals_victim_freely(&mut self, signal: &str) -> Vec<String> {
        let line = format!("kill -{signal} {}", self.victim.id());
        let sent = as_user(self.user, "/bin/bash").args(["-c", &line]).status().expect("it starts");
        assert!(sent.success(), "{line}");
        // The kernel stops a process a moment after the signal is sent.
        let (top, victim) = (self.top(), self.victim.id());
        wait::within(Duration::from_secs(2), || Outside::now(&top, victim).is_stopped == (signal == "STOP"));
        self.effects()
    }

    /// What has changed outside since the last look.
    fn effects(&mut self) -> Vec<String> {
        let top = self.top();
        let mut effects = Vec::new();
        effects.extend(self.heard.lock().expect("a list").drain(..).map(|it| format!("connected: {it}")));
        if !wait::within(Duration::from_secs(2), || !is_running(&format!("sleep\u{0}{}", self.marker))) {
            effects.push("a process outlives its command".into());
        }
        match self.victim.try_wait() {
            Ok(None) => {}
            ended => effects.push(format!("the victim ended: {ended:?}")),
        }
        let now = Outside::now(&top, self.victim.id());
        for (path, it) in &now.files {
            if self.before.files.get(path) != Some(it) {
                effects.push(format!("changed: {}", path.display()));
            }
        }
        effects.extend(
            self.before
                .files
                .keys()
                .filter(|path| !now.files.contains_key(*path))
                .map(|path| format!("removed: {}", path.display())),
        );
        let before = &self.before;
        if now.is_stopped && !before.is_stopped {
            effects.push("the victim is stopped".into());
        }
        for (what, before, now) in [
            ("limits", &before.limits, &now.limits),
            ("niceness", &before.niceness, &now.niceness),
            ("machine", &before.machine.join(""), &now.machine.join("")),
        ] {
            if before != now {
                effects.push(format!("changed: {what}, from {before} to {now}"));
            }
        }
        self.before = now;
        for path in Outside::files(&[top.join("home")]).into_keys() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The folder that a command may use for temporary files lies there too.
            let is_temporary = path.strip_prefix(&top).is_ok_and(|it| it.iter().any(|name| name == "tmp"));
            if name.starts_with("x-") && !is_temporary {
                effects.push(format!("created: {}", path.display()));
                let _ = fs::remove_file(path);
            }
        }
        // It names a library for every program of the machine.
        let preload = "/etc/ld.so.preload";
        if fs::read_to_string(preload).is_ok_and(|it| it.contains(&self.marker) || it.contains("x-")) {
            effects.push(format!("created: {preload}"));
            let _ = fs::remove_file(preload);
        }
        for folder in [
            "/tmp",
            "/var/tmp",
            "/dev/shm",
            "/run",
            "/run/lock",
            "/etc",
            "/usr/bin",
            "/opt",
            "/var",
            "/root",
            "/",
            "/boot",
            "/srv",
        ] {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("pixir-escape-x-") || name.starts_with("x-") {
                    effects.push(format!("created: {}", entry.path().display()));
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        effects
    }
}

impl Drop for Prison {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

impl Outside {
    fn now(top: &Path, victim: u32) -> Outside {
        let status = |name: &str| fs::read_to_string(format!("/proc/{victim}/{name}")).unwrap_or_default();
        let own: Vec<PathBuf> = fs::read_dir(top)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| !path.ends_with("app") && !path.ends_with("home") && !path.ends_with("script.json"))
            .collect();
        let stat = status("stat");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        Outside {
            files: Outside::files(&own),
            limits: status("limits"),
            // A process that sleeps is seen to run for a moment when the kernel wakes it; only being stopped is an effect.
            is_stopped: matches!(fields.first(), Some(&"T" | &"t")),
            // The priority and the niceness.
            niceness: [15, 16].map(|at| fields.get(at).copied().unwrap_or_default()).join(" ")
                + " "
                + &status("oom_score_adj"),
            machine: ["kernel/hostname", "kernel/core_pattern", "kernel/modprobe", "vm/overcommit_memory"]
                .map(|name| fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_default())
                .to_vec(),
        }
    }

    fn files(tops: &[PathBuf]) -> BTreeMap<PathBuf, (u32, u32, u64, i64, Vec<u8>)> {
        let mut all = BTreeMap::new();
        let mut left = tops.to_vec();
        while let Some(path) = left.pop() {
            let Ok(it) = fs::symlink_metadata(&path) else { continue };
            if it.is_dir() {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            let bytes = if it.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
            let len = if it.is_file() { it.len() } else { 0 };
            all.insert(path, (it.mode(), it.uid(), len, it.mtime(), bytes));
        }
        all
    }
}

/// What an attempt saw itself.
fn seen_by(attempt: &Attempt, output: &str) -> Option<String> {
    let has_won = output.contains(CANARY) || output.lines().any(|line| line.trim().starts_with("won"));
    has_won.then(|| format!("{}: {output}", attempt.name))
}

/// Replaces a word, but not where it is a part of another one.
fn whole_word(text: &str, word: &str, value: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_uppercase() || c == '_');
    let mut new = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        new.push_str(before);
        let part = is_part(new.chars().next_back()) || is_part(after.chars().next());
        new.push_str(if part { word } else { value });
        rest = after;
    }
    new + rest
}

fn git(folder: &Path) {
    let run = |args: &[&str]| {
        let ran = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@a"])
            .args(args)
            .current_dir(folder)
            .output()
            .expect("git");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run(&["init", "-q", "."]);
    run(&["add", "-A"]);
    run(&["commit", "-qm", CANARY]);
}

/// Servers that a program outside the sandbox would reach. Returns the port.
fn listen(file: &Path, marker: &str, heard: &Arc<Mutex<Vec<String>>>) -> u16 {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = tcp.local_addr().expect("an address").port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).expect("a port");
    let unix = UnixListener::bind(file).expect("a socket");
    fs::set_permissions(file, fs::Permissions::from_mode(0o777)).expect("chmod");
    let address = SocketAddr::from_abstract_name(format!("pixir-{marker}")).expect("a name");
    let hidden = UnixListener::bind_addr(&address).expect("a socket");
    let note = |kind: &'static str| {
        let heard = Arc::clone(heard);
        move |mut said: Box<dyn std::io::Read>| {
            let mut text = [0; 64];
            let n = said.read(&mut text).unwrap_or(0);
            let text = String::from_utf8_lossy(&text[..n]).into_owned();
            heard.lock().expect("a list").push(format!("{kind} {text}"));
        }
    };
    // They end with the tests.
    let tell = note("tcp");
    std::thread::spawn(move || tcp.incoming().flatten().for_each(|it| tell(Box::new(it))));
    let tell = note("socket");
    std::thread::spawn(move || unix.incoming().flatten().for_each(|it| tell(Box::new(it))));
    let tell = note("abstract socket");
    std::thread::spawn(move || hidden.incoming().flatten().for_each(|it| tell(Box::new(it))));
    let tell = note("udp");
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok(n) = udp.recv(&mut buffer) {
            tell(Box::new(std::io::Cursor::new(buffer[..n].to_vec())));
        }
    });
    port
}

/// Broken builds: `syscalls::refuse` refuses nothing; `landlock::confine` or `capabilities::give_up` does nothing; `build`
/// leaves the old root; `leave` keeps the network. Try them as another user than root, or on a machine that may break: there
/// they write to `/etc`, and change the name of the machine.
fn nobody_escapes(tier: &str) {
    let all = attempts();
    let (mut tried, mut effects) = (0, Vec::new());
    for user in users() {
        let mut prison = Prison::new(user);
        let beside = Some("beside").filter(|_| tier == "ns");
        for policy in ["look", "work"].into_iter().chain(beside) {
            let kind = if policy == "look" { "look" } else { "work" };
            let here: Vec<&Attempt> = all
                .iter()
                .filter(|it| {
                    let is_here = |kinds: [&str; 2], one: &str| {
                        let named: Vec<&&str> = it.only.iter().filter(|word| kinds.contains(word)).collect();
                        named.is_empty() || named.iter().any(|word| **word == one)
                    };
                    is_here(["ns", "ll"], tier) && is_here(["look", "work"], kind)
                })
                .collect();
            let here = tier::sample("nobody_escapes", here);
            tried += here.len();
            let who = user.map_or("the user of the tests", |_| "nobody");
            effects.extend(prison.tries(tier, policy, &here).into_iter().map(|it| format!("{policy}, {who}: {it}")));
        }
    }
    figures(&format!("QS4, {tier}: {tried} attempts to escape, {} effects", effects.len()));
    assert!(all.len() >= 60 && effects.is_empty(), "{tier}:\n{}", effects.join("\n"));
}

/// Without a sandbox the same attempts have effects, so the canaries see them.
#[test]
fn without_a_sandbox_the_attempts_have_effects() {
    /// They reach nothing but the canaries.
    const SAFE: [&str; 12] = [
        "read-outside",
        "read-ssh-key",
        "read-netrc",
        "read-state",
        "read-by-",
        "read-environment-of-others",
        "read-own-environment",
        "write-",
        "modes-outside",
        "reopen-for-writing",
        "unix-",
        "run-from-memory",
    ];
    const LATE: [&str; 7] =
        ["tcp", "udp", "attach", "limits-of-others", "truncate-outside", "remove-outside", "kill-others"];
    let mut prison = Prison::new(users().pop().flatten());
    let all = attempts();
    let safe = all.iter().filter(|it| SAFE.iter().any(|name| it.name.starts_with(name)));
    let late = LATE.iter().filter_map(|name| all.iter().find(|it| it.name == *name));
    // Without the rest of that attempt, which would stop this process.
    assert_eq!(prison.signals_victim_freely("STOP"), ["the victim is stopped"]);
    assert_eq!(prison.signals_victim_freely("CONT"), [""; 0]);
    let (mut tried, mut harmless) = (0, Vec::new());
    // A victim that another attempt has removed shows nothing any more.
    for it in safe.filter(|it| !["write-by-rename", "write-system"].contains(&it.name)).chain(late) {
        tried += 1;
        if prison.tries_freely(it).is_empty() {
            harmless.push(it.name);
        }
    }
    figures(&format!("QS4, without a sandbox: {tried} attempts, {} without an effect: {harmless:?}", harmless.len()));
    assert!(tried >= 40 && harmless.len() * 3 <= tried, "{harmless:?}");
}

#[test]
fn nobody_escapes_from_the_namespaces() {
    nobody_escapes("ns");
}

#[test]
fn nobody_escapes_from_landlock() {
    nobody_escapes("ll");
}
