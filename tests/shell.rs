//! The real binary, without a terminal.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::wait;

/// The start of every key in the tests. No output and no file may contain it.
pub(crate) const SECRET: &str = "sk-canary";

/// The longest that a command of a test may run.
const LONGEST: Duration = Duration::from_secs(300);

/// The home and the workspace of one test.
pub(crate) struct Shell {
    folder: TempDir,
    /// Who runs pixir, if not the user of the tests.
    pub(crate) user: Option<&'static str>,
}

/// The ordinary user of stories about walls, where the tests run as root.
pub(crate) const NOBODY: &str = "65534";

/// The user of the tests and, if that is root, an ordinary one.
pub(crate) fn users() -> Vec<Option<&'static str>> {
    let is_root = rustix::process::geteuid().is_root();
    [None].into_iter().chain(is_root.then_some(Some(NOBODY))).collect()
}

/// A program of this user, or of the one who runs the tests.
pub(crate) fn as_user(user: Option<&str>, program: &str) -> Command {
    let Some(user) = user else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", "--", program]);
    command
}

/// Exit code and output of a finished process.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Stdout, parsed as one JSON document.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("stdout is not one document ({e}):\n{}\nstderr:\n{}", self.stdout, self.stderr))
    }

    /// Stdout, parsed as one JSON document per line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}")))
            .collect()
    }

    /// The error on stderr, behind any text before it.
    pub(crate) fn error_after_chatter(&self) -> Value {
        let at = self.stderr.find("{\n").expect("a document");
        serde_json::from_str(&self.stderr[at..]).unwrap_or_else(|e| panic!("not one document ({e}):\n{}", self.stderr))
    }

    /// The error on stderr.
    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr)
            .unwrap_or_else(|e| panic!("stderr is not one document ({e}):\n{}", self.stderr))
    }
}

impl Drop for Shell {
    /// Checks that no file of the test contains a key, except the key file itself.
    fn drop(&mut self) {
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file()
                    && path.file_name() != Some(OsStr::new("auth.json"))
                    && !std::thread::panicking()
                {
                    // Some tests leave sparse files of gigabytes.
                    if entry.metadata().is_ok_and(|it| it.len() > 16 << 20) {
                        continue;
                    }
                    let found = fs::read(&path).is_ok_and(|b| b.windows(SECRET.len()).any(|w| w == SECRET.as_bytes()));
                    assert!(!found, "a key is in {}", path.display());
                }
            }
        }
    }
}

impl Shell {
    pub(crate) fn new(files: &[(&str, &str)]) -> Shell {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("app")).expect("mkdir");
        let shell = Shell { folder, user: None };
        for (name, text) in files {
            shell.write(name, text);
        }
        shell
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.workspace().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
        fs::write(&path, text).expect("write");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name)).unwrap_or_else(|e| format!("({e})"))
    }

    /// A file beside the workspace, for scripts.
    pub(crate) fn aside(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("write");
        path
    }

    /// Runs a script of one Session; returns what the model read of each call.
    pub(crate) fn outputs(&self, steps: impl Serialize, flags: &[&str]) -> Vec<String> {
        let provider =
            format!("script:{}", self.aside("outputs.json", &json!({ "steps": steps }).to_string()).display());
        let before = self.logs();
        let ran = self.run(["--provider", &provider, "--headless"].iter().chain(flags).chain(&["go"]));
        let log = self.logs().into_iter().find(|it| !before.contains(it)).unwrap_or_else(|| panic!("{}", ran.stderr));
        let log = entries(&log);
        let results = log.iter().filter(|it| it["type"] == "tool_result");
        results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
    }

    /// Writes the user's configuration.
    pub(crate) fn configure(&self, text: &str) {
        let folder = self.folder.path().join(".config/pixir");
        fs::create_dir_all(&folder).expect("mkdir");
        fs::write(folder.join("config.toml"), text).expect("write");
    }

    /// Gives everything to this user, who runs pixir from now on.
    pub(crate) fn give_to(&mut self, user: &'static str) {
        self.user = Some(user);
        let owned = Command::new("chown").args(["-R", &format!("{user}:{user}")]).arg(self.folder.path()).status();
        assert!(owned.expect("chown starts").success());
    }

    /// The binary with a clean environment.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = as_user(self.user, env!("CARGO_BIN_EXE_pixir"));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("PIXIR_HOME", self.home())
            .env("TERM", "xterm-256color")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        ran(run_to_its_end(&mut self.command(args)))
    }

    /// Every Log of this home.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let folders = fs::read_dir(self.home().join("sessions")).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        files.map(|file| file.path()).filter(|path| path.extension() == Some(OsStr::new("ndjson"))).collect()
    }
}

/// What a command prints until it ends. A command that hangs is killed, and its test fails: otherwise the whole run of the
/// tests would hang, and say of none which one it was.
pub(crate) fn run_to_its_end(command: &mut Command) -> Output {
    let (output, hung) = run_within(command, LONGEST);
    assert!(!hung, "{command:?} did not end within {LONGEST:?}: {output:?}");
    output
}

/// What a command prints until it ends or this time is over, and whether it had to be killed.
pub(crate) fn run_within(command: &mut Command, longest: Duration) -> (Output, bool) {
    let child = command.spawn().expect("the binary starts");
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, has_ended) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let hangs = has_ended.recv_timeout(longest) == Err(mpsc::RecvTimeoutError::Timeout);
        if hangs {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        hangs
    });
    let output = child.wait_with_output().expect("it ends");
    drop(ended);
    (output, watch.join().expect("no panic"))
}

/// The end of a process whose stderr was read in part: the rest of it, and its stdout.
pub(crate) fn rest_of(mut child: Child, mut stderr: impl Read) -> Ran {
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
    stderr.read_to_string(&mut err).expect("text");
    Ran { code: child.wait().expect("it ends").code().unwrap_or(-1), stdout: out, stderr: err }
}

pub(crate) fn ran(output: Output) -> Ran {
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    };
    assert!(
        !ran.stdout.contains(SECRET) && !ran.stderr.contains(SECRET),
        "a key is in the output:\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
    ran
}

/// Bytes with the start and the end of a PNG file.
pub(crate) fn png(len: usize) -> Vec<u8> {
    let start = [b"\x89PNG\r\n\x1a\n".as_slice(), b"\0\0\0\rIHDR", &[0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0]].concat();
    let end = b"\0\0\0\0IEND\xaeB`\x82";
    [start.as_slice(), &vec![7; len - start.len() - end.len()], end].concat()
}

/// Entries of a Log, without reading it as pixir does.
pub(crate) fn entries(log: &Path) -> Vec<Value> {
    fs::read_to_string(log).expect("read the log").lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// A number of seconds for `sleep` that no other process on this machine has in its command line.
pub(crate) fn mark() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("9{:06}.{:05}", random % 1_000_000, (random >> 32) % 100_000)
}

/// Whether any process still runs with this text in its command line.
pub(crate) fn is_running(text: &str) -> bool {
    let own = std::process::id().to_string();
    fs::read_dir("/proc").expect("there is /proc").flatten().any(|entry| {
        let name = entry.file_name();
        let is_process = name.to_string_lossy().bytes().all(|b| b.is_ascii_digit()) && name.to_string_lossy() != own;
        is_process
            && fs::read(entry.path().join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    })
}

/// The longest run whose memory is measured: ten gigabytes of output on a slow machine.
const LONGEST_RUN: Duration = Duration::from_secs(3600);

/// The peak memory of a run in KB, and its output.
///
/// For a moment after the start the system still shows the memory of the test program, from which the process was made: many
/// times what the run takes. So a look counts only when the process has the program's name.
pub(crate) fn peak(shell: &Shell, args: &[&str]) -> (u64, Ran) {
    peak_of(&mut shell.command(args))
}

/// The same for a command that becomes pixir.
pub(crate) fn peak_of(command: &mut Command) -> (u64, Ran) {
    let mut child = command.spawn().expect("it starts");
    let (mut out, mut err) = (child.stdout.take().expect("stdout"), child.stderr.take().expect("stderr"));
    let readers = [
        std::thread::spawn(move || std::io::read_to_string(&mut out).expect("text")),
        std::thread::spawn(move || std::io::read_to_string(&mut err).expect("text")),
    ];
    let mut most = 0;
    let look = || {
        let text = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let line = field("VmHWM:").filter(|_| field("Name:") == Some("pixir"));
        most = most.max(line.and_then(|it| it.split_whitespace().next()?.parse().ok()).unwrap_or(0));
        child.try_wait().expect("it runs")
    };
    let status = wait::found(LONGEST_RUN, look).expect("the run ends");
    let [stdout, stderr] = readers.map(|reader| reader.join().expect("it was read"));
    (most, Ran { code: status.code().unwrap_or(-1), stdout, stderr })
}

/// Reports a test that this machine cannot run. CI collects the lines in the file that `PIXIR_SKIPPED` names, and
/// counts them.
pub(crate) fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {reason}", thread.name().unwrap_or("a test"));
    figures(&line);
    if let Some(path) = std::env::var_os("PIXIR_SKIPPED") {
        let mut list = fs::OpenOptions::new().create(true).append(true).open(path).expect("the list of skipped tests");
        list.write_all(format!("{line}\n").as_bytes()).expect("the list of skipped tests");
    }
}

/// Figures for the user who runs the tests; the harness does not hide them.
pub(crate) fn figures(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

pub(crate) fn tool(shell: &Shell, name: &str, args: &Value, flags: &[&str]) -> Ran {
    let args = args.to_string();
    shell.run(["tools", "run", name, &args, "--json"].iter().chain(flags))
}

/// The output of a tool that runs alone.
pub(crate) fn output(shell: &Shell, name: &str, args: Value) -> String {
    let document = tool(shell, name, &args, &["--write"]).document();
    document["result"]["output"].as_str().expect("text").to_owned()
}

/// The same command, started with a closed stream.
pub(crate) fn closing(stream: &str, command: &Command) -> Command {
    let mut it = Command::new("bash");
    it.args(["-c", &format!("exec \"$0\" \"$@\" {stream}")]).arg(command.get_program()).args(command.get_args());
    it.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    it.current_dir(command.get_current_dir().expect("a folder"));
    it.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    it
}
