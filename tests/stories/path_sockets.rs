//! Sockets with a path: those of the machine stay closed to commands, and those of the commands work.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::mounts::mounting;
use crate::shell::{Shell, as_user, entries, figures, users};
use crate::wait;

/// Connects to each of these paths as a stream, and sends a datagram to it.
const ASK: &str = r#"use Socket;
for my $path (@ARGV) {
    socket(my $stream, AF_UNIX, SOCK_STREAM, 0) or die "no socket: $!";
    print "won $path\n" if connect($stream, pack_sockaddr_un($path));
    socket(my $datagrams, AF_UNIX, SOCK_DGRAM, 0) or die "no socket: $!";
    print "won $path\n" if send($datagrams, "x", 0, pack_sockaddr_un($path));
}
print "asked ", scalar(@ARGV), "\n";
"#;
/// Opens a socket by a name in a folder, from within the folder, and accepts.
const SERVE: &str = r#"use Socket;
chdir $ARGV[0] or die;
socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
bind($s, pack_sockaddr_un($ARGV[1])) or die "$ARGV[1]: $!";
chmod 0777, $ARGV[1];
listen($s, 5) or die;
open(my $f, ">", "$ARGV[1].ready") or die;
close $f;
while (accept(my $c, $s)) { print $c "served\n"; close $c }
"#;
/// Reads what a socket says first.
const HEAR: &str = r#"use Socket;
socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
connect($s, pack_sockaddr_un($ARGV[0])) or die "$ARGV[0]: $!";
print <$s>;
"#;

/// A process of the user that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Machine {
    shell: Shell,
    user: Option<&'static str>,
}

impl Machine {
    /// One for the user of the tests and, if that is root, one for nobody.
    fn all() -> Vec<Machine> {
        users().into_iter().map(Machine::of).collect()
    }

    fn of(user: Option<&'static str>) -> Machine {
        let files = [
            ("ask.pl", ASK),
            ("serve.pl", SERVE),
            ("hear.pl", HEAR),
            (".gitignore", "ignored\n"),
            ("ignored/deep/er/x", ""),
        ];
        let machine = Machine { shell: Shell::new(&files), user };
        for folder in [".cargo/bin", ".cargo/registry", ".npm", "go/pkg", "run", "app/renamed"] {
            fs::create_dir_all(machine.top().join(folder)).expect("mkdir");
        }
        if let Some(user) = user {
            fs::set_permissions(machine.top(), fs::Permissions::from_mode(0o755)).expect("chmod");
            let owned = Command::new("chown").args(["-R", user]).arg(machine.top()).status();
            assert!(owned.expect("chown").success());
        }
        machine
    }

    fn top(&self) -> PathBuf {
        self.shell.workspace().parent().expect("a parent").to_owned()
    }

    fn pixir(&self, steps: &[Value], mode: &str) -> Command {
        let steps: Vec<Value> = steps.iter().cloned().chain([json!({ "text": "done" })]).collect();
        let script = self.shell.aside("script.json", &json!({ "steps": steps }).to_string());
        let mut command = as_user(self.user, env!("CARGO_BIN_EXE_pixir"));
        command
            .args(["--provider", &format!("script:{}", script.display()), "--headless"])
            .args(["--mode", mode, "--sandbox", "ns", "go"])
            .current_dir(self.shell.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.top())
            .env("PIXIR_HOME", self.shell.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What the commands of one Session printed.
    fn prints(&self, mut pixir: Command) -> Vec<String> {
        let before = self.shell.logs();
        let ran = pixir.output().expect("it starts");
        let log = self.shell.logs().into_iter().find(|it| !before.contains(it));
        let log = entries(&log.unwrap_or_else(|| panic!("no Log: {}", String::from_utf8_lossy(&ran.stderr))));
        assert_eq!(log[0]["data"]["sandbox"], "ns");
        let results = log.iter().filter(|it| it["type"] == "tool_result");
        results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
    }

    /// A program of the user that serves a name from within a folder.
    fn serves(&self, folder: &Path, name: &str) -> Ended {
        let mut perl = as_user(self.user, "perl");
        let started = perl.arg(self.shell.workspace().join("serve.pl")).arg(folder).arg(name).spawn();
        let server = Ended(started.expect("perl starts"));
        wait::until("the server listens", || folder.join(format!("{name}.ready")).exists());
        server
    }
}

fn bash(line: &str) -> Value {
    json!({ "calls": [{ "name": "bash", "args": { "command": line, "timeout": 30 } }] })
}

/// Every way to have a socket in what a command sees.
///
/// Broken build: `Sandbox::view` hides no socket.
#[test]
fn no_command_reaches_a_socket_of_the_machine() {
    let mut tried = 0;
    for machine in Machine::all() {
        let (top, app) = (machine.top(), machine.shell.workspace());
        let stream = |path: PathBuf| {
            let it = UnixListener::bind(&path).expect("a socket");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("chmod");
            it
        };
        let places = [
            "app/plain.sock",
            "app/ignored/deep/er/x.sock",
            "app/a name with blanks.sock",
            ".cargo/bin/tool.sock",
            ".cargo/registry/cache.sock",
            ".npm/npm.sock",
            "go/pkg/mod.sock",
            "run/service.sock",
            "run/linked.sock",
            "app/before.sock",
        ];
        let _streams: Vec<UnixListener> = places.iter().map(|it| stream(top.join(it))).collect();
        let datagrams = UnixDatagram::bind(app.join("datagrams.sock")).expect("a socket");
        fs::set_permissions(app.join("datagrams.sock"), fs::Permissions::from_mode(0o777)).expect("chmod");
        datagrams.set_nonblocking(true).expect("it can be set");
        fs::hard_link(top.join("run/linked.sock"), app.join("second.sock")).expect("a link");
        std::os::unix::fs::symlink(top.join("run/service.sock"), app.join("link.sock")).expect("a link");
        fs::rename(app.join("before.sock"), app.join("renamed/after.sock")).expect("a rename");
        let _by_name = machine.serves(&app.join("ignored"), "relative.sock");
        let asked: Vec<String> = places
            .iter()
            .map(|it| top.join(it))
            .chain(
                ["datagrams", "second", "link", "renamed/after", "ignored/relative"]
                    .map(|it| app.join(format!("{it}.sock"))),
            )
            .map(|it| format!("'{}'", it.display()))
            .collect();
        let line = format!("perl ask.pl {}", asked.join(" "));
        // Moved by the command itself, it stays closed, also to the next one.
        let moving =
            "mv renamed moved; mv ignored/deep ignored/other; perl ask.pl moved/after.sock ignored/other/er/x.sock";
        let steps = [bash(&line), bash(moving), bash("perl ask.pl moved/after.sock ignored/other/er/x.sock")];
        let printed = machine.prints(machine.pixir(&steps, "auto"));
        for (output, asked) in printed.iter().zip([asked.len(), 2, 2]) {
            assert!(output.contains(&format!("asked {asked}")), "{output}");
            assert!(!output.contains("won"), "{output}");
            tried += asked;
        }
        assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram arrived");
        // The same program reaches them where nothing confines it.
        let freely = Command::new("perl")
            .args(["ask.pl", "plain.sock", "datagrams.sock", "second.sock"])
            .current_dir(&app)
            .output();
        let freely = String::from_utf8_lossy(&freely.expect("perl").stdout).into_owned();
        assert_eq!(freely.matches("won").count(), 3, "{freely}");
    }
    figures(&format!("sockets of the machine: {tried} tried from commands, 0 reached"));
}

/// Broken build: `build` leaves out the sockets among the mounts.
#[test]
fn a_socket_that_is_mounted_into_the_workspace_stays_closed() {
    let Some(words) = mounting() else { return };
    let machine = Machine::of(None);
    let (top, app) = (machine.top(), machine.shell.workspace());
    let _service = UnixListener::bind(top.join("run/docker.sock")).expect("a socket");
    fs::write(app.join("docker.sock"), "").expect("write");
    let pixir = machine.pixir(&[bash("perl ask.pl docker.sock")], "auto");
    let line = format!("mount --bind '{}' docker.sock && exec \"$0\" \"$@\"", top.join("run/docker.sock").display());
    let mut mounted = Command::new(words[0]);
    mounted.args(&words[1..]).args(["bash", "-c", &line]).arg(pixir.get_program()).args(pixir.get_args());
    mounted.current_dir(&app).env_clear().envs(pixir.get_envs().filter_map(|(name, value)| Some((name, value?))));
    mounted.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let printed = machine.prints(mounted);
    assert!(printed[0].contains("asked 1") && !printed[0].contains("won"), "{printed:?}");
}

/// Broken builds: one that refuses sockets of that family to commands; one that hides those of a job.
#[test]
fn what_commands_and_jobs_open_themselves_works() {
    for machine in Machine::all() {
        let itself = |at: &str| {
            format!(
                "perl serve.pl {at} own.sock & until [ -e {at}/own.sock.ready ]; do :; done; perl hear.pl {at}/own.sock; kill $!"
            )
        };
        let job = |at: &str| {
            let line = format!("perl serve.pl {at} job.sock");
            json!({ "calls": [{ "name": "bash", "args": { "command": line, "background": true } }] })
        };
        let hear =
            |at: &str| bash(&format!("until [ -e {at}/job.sock.ready ]; do :; done; perl hear.pl {at}/job.sock"));
        let manager = "python3 -c 'import multiprocessing as m; x = m.Manager(); l = x.list([1]); l.append(2); print(\"served\", list(l)); x.shutdown()'";
        let steps = [
            bash(&itself(".")),
            bash(&itself("/tmp")),
            bash(&itself("/dev/shm")),
            bash(manager),
            job("."),
            hear("."),
            job("/tmp"),
            hear("/tmp"),
        ];
        let printed = machine.prints(machine.pixir(&steps, "auto"));
        for (at, output) in printed.iter().enumerate().filter(|(at, _)| ![4, 6].contains(at)) {
            assert!(output.contains("served"), "step {at}: {output}");
        }
    }
}
