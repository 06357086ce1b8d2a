//! Descriptors that pixir was started with: no program that it starts has one of them.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::pty::Terminal;
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries, ran};
use crate::wait;

/// What the shell of a user has open: the root folder, a file, a socket, both ends of a pipe.
const OPEN: &str = "exec 20</ 21<\"$SECRET\" 22<>/dev/tcp/127.0.0.1/\"$PORT\" 23<>\"$PIPE\"; exec \"$0\" \"$@\"";
/// A program that names those of them that it has, by their numbers and by what they lead to.
const LOOK: &str = "#!/bin/bash
for n in 20 21 22 23; do [ -h /proc/$$/fd/$n ] && echo \"held $n\"; done
for fd in /proc/$$/fd/*; do
  case $(readlink $fd) in /|*secret|*fifo|socket:*) echo \"held ${fd##*/}: $(readlink $fd)\";; esac
done
cat 2>/dev/null <&21
echo looked
";
const CANARY: &str = "canary-of-a-descriptor";

/// A home where a folder, a file, a socket and a pipe are open, and what listens behind the socket.
struct Open {
    shell: Shell,
    _listener: TcpListener,
    environment: [(&'static str, String); 3],
}

impl Open {
    fn new() -> Open {
        let shell = Shell::new(&[("look.sh", LOOK)]);
        let script = shell.workspace().join("look.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("chmod");
        let secret = shell.aside("secret", CANARY);
        let pipe = secret.with_file_name("fifo");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let environment = [
            ("SECRET", secret.display().to_string()),
            ("PIPE", pipe.display().to_string()),
            ("PORT", port.to_string()),
        ];
        Open { shell, _listener: listener, environment }
    }

    /// A program that has them all.
    fn start(&self, program: &Path, args: &[&str]) -> Command {
        let mut it = Command::new("/bin/bash");
        it.args(["-c", OPEN]).arg(program).args(args).current_dir(self.shell.workspace()).env_clear();
        it.envs([("PATH", std::env::var_os("PATH").unwrap_or_default()), ("HOME", self.top().into())]);
        it.env("PIXIR_HOME", self.shell.home()).envs(self.environment.iter().map(|(name, value)| (name, value)));
        it.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        it
    }

    fn top(&self) -> std::path::PathBuf {
        self.shell.workspace().parent().expect("a parent").to_owned()
    }

    /// What the calls of one Session printed.
    fn session(&self, tier: &str, flags: &[&str], steps: &[Value]) -> Vec<String> {
        let steps: Vec<Value> = steps.iter().cloned().chain([json!({ "text": "done" })]).collect();
        let provider =
            format!("script:{}", self.shell.aside("script.json", &json!({ "steps": steps }).to_string()).display());
        let mut args = vec!["--provider", &provider, "--headless", "--toolset", "both", "--sandbox", tier];
        args.extend_from_slice(flags);
        args.push("go");
        let before = self.shell.logs();
        let mut pixir = self.start(env!("CARGO_BIN_EXE_pixir").as_ref(), &args);
        let ended = ran(pixir.output().expect("it starts"));
        let log = self.shell.logs().into_iter().find(|it| !before.contains(it));
        let log = entries(&log.unwrap_or_else(|| panic!("no Log: {}", ended.stderr)));
        assert_eq!(log[0]["data"]["sandbox"], tier);
        let results = log.iter().filter(|it| it["type"] == "tool_result");
        results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
    }

    /// A terminal with pixir, which has them all.
    fn terminal(&self, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let mut all = vec!["-c", OPEN, env!("CARGO_BIN_EXE_pixir")];
        all.extend_from_slice(args);
        let own = self.environment.iter().map(|(name, value)| (*name, value.as_str()));
        let environment: Vec<(&str, &str)> = own.chain(environment.iter().copied()).collect();
        Terminal::of(&self.shell, OsStr::new("bash"), &all, &environment, 100, 30)
    }

    /// What a program that nothing reads has written to this file.
    fn seen(&self, name: &str) -> String {
        let path = self.top().join(name);
        wait::until("the program has looked", || fs::read_to_string(&path).is_ok_and(|it| it.contains("looked")));
        fs::read_to_string(path).expect("text")
    }
}

/// Asserts that a program looked, and had nothing.
fn has_nothing(who: &str, printed: &str) {
    assert!(printed.contains("looked"), "{who} did not look: {printed}");
    assert!(!printed.contains("held") && !printed.contains(CANARY), "{who} has a descriptor of the shell: {printed}");
}

/// The look itself sees all four where nothing closes them.
#[test]
fn a_program_that_bash_starts_has_them_all() {
    let open = Open::new();
    let ended = ran(open.start(&open.shell.workspace().join("look.sh"), &[]).output().expect("it starts"));
    for n in 20..24 {
        assert!(ended.stdout.contains(&format!("held {n}\n")), "{}", ended.stdout);
    }
    assert!(ended.stdout.contains(CANARY), "{}", ended.stdout);
}

/// Broken build: `start::prepare` marks no descriptor, and the launcher closes none.
#[test]
fn no_program_of_a_call_has_a_descriptor_of_the_shell_that_started_pixir() {
    let open = Open::new();
    // A program of the name `bash` that looks, whatever it should run.
    let tools = open.top().join("tools/bin");
    fs::create_dir_all(&tools).expect("mkdir");
    fs::copy(open.shell.workspace().join("look.sh"), tools.join("bash")).expect("copy");
    let call = |name: &str, args: Value| json!({ "calls": [{ "name": name, "args": args }] });
    let works = [
        call("bash", json!({ "command": "./look.sh" })),
        call(
            "bash",
            json!({ "command": "cat /proc/self/fd/20/../../etc/shadow; ls -d /proc/self/fd/20/etc; ./look.sh" }),
        ),
        call("run", json!({ "command": "./look.sh | cat" })),
        call("bash", json!({ "command": "./look.sh", "background": true })),
        call("job_output", json!({ "job": 1, "wait": 20, "wait_output": "looked" })),
    ];
    for (tier, flags) in [
        ("ns", vec!["--mode", "auto"]),
        ("ll", vec!["--mode", "auto"]),
        (
            "none",
            vec!["--mode", "auto", "--allow", "bash(./look.sh)", "--allow", "bash(cat *)", "--allow", "bash(ls *)"],
        ),
    ] {
        let printed = open.session(tier, &flags, &works);
        for (at, printed) in printed.iter().enumerate().filter(|(at, _)| *at != 3) {
            has_nothing(&format!("call {at}, {tier}"), printed);
        }
        assert!(!printed[1].contains("root:") && !printed[1].contains("fd/20/etc\n"), "{tier}: {}", printed[1]);
    }
    // What only looks runs unasked, also in read-only.
    for tier in ["ns", "ll"] {
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
        let steps = json!({ "steps": [call("bash", json!({ "command": "ls" })), { "text": "done" }] }).to_string();
        let provider = format!("script:{}", open.shell.aside("script.json", &steps).display());
        let args = ["--provider", &provider, "--headless", "--mode", "read-only", "--sandbox", tier, "go"];
        let before = open.shell.logs();
        let mut pixir = open.start(env!("CARGO_BIN_EXE_pixir").as_ref(), &args);
        let ended = ran(pixir.env("PATH", path).output().expect("it starts"));
        let log = open.shell.logs().into_iter().find(|it| !before.contains(it)).expect("a Log");
        let log = entries(&log);
        let result = log.iter().find(|it| it["type"] == "tool_result").unwrap_or_else(|| panic!("{}", ended.stderr));
        has_nothing(&format!("ls, {tier}"), result["data"]["output"].as_str().expect("text"));
    }
}

/// Broken build: `start::prepare` marks no descriptor.
#[test]
fn no_program_that_pixir_starts_for_the_user_has_one_either() {
    let open = Open::new();
    let server = Server::start(vec![text("Read it.")]);
    let flags = server.flags(Dialect::Chat);
    let args: Vec<&str> = flags.iter().map(String::as_str).collect();
    let look = |name: &str| {
        let (from, to) = (open.shell.workspace().join("look.sh"), open.top().join(name));
        let script =
            open.shell.aside(&format!("{name}.sh"), &format!("#!/bin/bash\n{} > {}\n", from.display(), to.display()));
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("chmod");
        script
    };
    let (editor, clipboard) = (look("of-editor"), look("of-clipboard"));
    let tools = open.top().join("tools");
    fs::create_dir(&tools).expect("mkdir");
    fs::copy(clipboard, tools.join("wl-copy")).expect("copy");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
    let editor = editor.display().to_string();
    let environment = [("VISUAL", editor.as_str()), ("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")];
    let mut terminal = open.terminal(&args, &environment);
    terminal.wait_for("Ask pixir");
    terminal.send(&format!("!./look.sh > {}\r", open.top().join("of-command").display()));
    has_nothing("a command of the user", &open.seen("of-command"));
    terminal.send("a draft");
    terminal.wait_for("❯ a draft");
    terminal.send("\x07");
    has_nothing("the editor", &open.seen("of-editor"));
    terminal.wait_for("❯ a draft");
    terminal.send("\x03");
    terminal.send("go\r");
    terminal.wait_for("Read it.");
    terminal.send("/copy");
    terminal.wait_for("❯ /copy");
    terminal.send("\r");
    terminal.wait_for("copied");
    has_nothing("the clipboard", &open.seen("of-clipboard"));
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

/// Broken build: `start::prepare` marks no descriptor, and the launcher closes none.
#[test]
fn no_server_has_one_either() {
    for tier in ["ns", "ll", "none"] {
        let open = Open::new();
        let section = format!("sandbox = \"{tier}\"\n");
        let (script, seen) = (open.shell.workspace().join("look.sh"), open.top().join("of-server"));
        open.shell.configure(&format!(
            "{section}[mcp.look]\ncommand = \"bash\"\nargs = {}\n",
            json!(["-c", format!("{} > {}", script.display(), seen.display())])
        ));
        let mut pixir = open.start(env!("CARGO_BIN_EXE_pixir").as_ref(), &["mcp", "test", "look"]);
        let ended = ran(pixir.env("XDG_CONFIG_HOME", open.top().join(".config")).output().expect("it starts"));
        assert!(seen.exists(), "{tier}: the server did not start: {}{}", ended.stdout, ended.stderr);
        has_nothing(&format!("a server, {tier}"), &open.seen("of-server"));
    }
}
