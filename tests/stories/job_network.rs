//! The loopback network that the jobs and the commands of one Session share in the sandbox `ns`.

use std::fs;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::shell::{Shell, as_user, entries, is_running, mark, users};
use crate::wait;

/// What a listener of the machine says to everyone who connects. No command may see it.
const CANARY: &str = "canary-of-the-machine";

/// A home that belongs to a user, and a port of the machine's loopback on which a listener of the test answers.
struct Place {
    shell: Shell,
    user: Option<&'static str>,
    port: u16,
}

impl Place {
    /// One for the user of the tests and, if that is root, one for nobody.
    fn all() -> Vec<Place> {
        users().into_iter().map(Place::of).collect()
    }

    fn of(user: Option<&'static str>) -> Place {
        let shell = Shell::new(&[("ask.pl", ASK), ("serve.pl", SERVE)]);
        if let Some(user) = user {
            let top = shell.workspace().parent().expect("a parent").to_owned();
            fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).expect("chmod");
            assert!(Command::new("chown").args(["-R", user]).arg(&top).status().expect("chown").success());
        }
        let machine = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = machine.local_addr().expect("an address").port();
        // It ends with the tests.
        std::thread::spawn(move || {
            machine.incoming().flatten().for_each(|mut it| drop(writeln!(it, "{CANARY}")));
        });
        Place { shell, user, port }
    }

    /// pixir with a model that makes these calls.
    fn pixir(&self, name: &str, calls: &[Value]) -> Command {
        let steps: Vec<_> =
            calls.iter().map(|call| json!({ "calls": [call] })).chain([json!({ "text": "done" })]).collect();
        let script = self.shell.aside(name, &json!({ "steps": steps }).to_string());
        let mut command = as_user(self.user, env!("CARGO_BIN_EXE_pixir"));
        command
            .args(["--provider", &format!("script:{}", script.display()), "--headless", "--toolset", "both"])
            .args(["--mode", "auto", "--sandbox", "ns", "go"])
            .current_dir(self.shell.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.shell.workspace().parent().expect("a parent"))
            .env("PIXIR_HOME", self.shell.home())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// The results of the calls of the one Session that has this Log.
    fn results(&self, is_it: impl Fn(&PathBuf) -> bool) -> Vec<String> {
        let log = self.shell.logs().into_iter().find(is_it).expect("a Log");
        let log = entries(&log);
        assert_eq!(log[0]["data"]["sandbox"], "ns");
        let results = log.iter().filter(|it| it["type"] == "tool_result");
        results.map(|it| it["data"]["output"].as_str().expect("text").to_owned()).collect()
    }

    fn all_of(&self, name: &str, calls: &[Value]) -> Vec<String> {
        let before = self.shell.logs();
        assert!(self.pixir(name, calls).status().expect("it starts").success());
        self.results(|log| !before.contains(log))
    }
}

/// Says to everyone who connects to a port what its second argument says.
const SERVE: &str = "\
use IO::Socket::INET;
my ($port, $text) = @ARGV;
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => $port, ReuseAddr => 1) or die $!;
while (my $client = $server->accept) { print $client \"$text\\n\"; close $client; }
";

/// Prints what is said on a port, or why nothing is.
const ASK: &str = "\
use IO::Socket::INET;
my $it = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $ARGV[0], Timeout => 10);
print $it ? 'heard: ' . <$it> : \"not reached: $@\\n\";
";

fn bash(command: impl Into<String>) -> Value {
    json!({ "name": "bash", "args": { "command": command.into() } })
}

fn run(command: impl Into<String>) -> Value {
    json!({ "name": "run", "args": { "command": command.into() } })
}

fn serve(port: u16, text: &str) -> Value {
    json!({ "name": "bash", "args": {
        "command": format!("perl serve.pl {port} {text}"), "background": true, "wait_port": port
    } })
}

/// The job listens on a port on which a listener of the machine answers too.
///
/// Broken builds: `join` joins nothing; `leave` keeps the machine's network; `sharing` lists jobs that have ended.
#[test]
fn a_job_is_reached_by_the_commands_of_its_session_and_by_no_others() {
    for place in Place::all() {
        let port = place.port;
        let ask = format!("perl ask.pl {port}");
        let first = [
            bash(&ask),
            serve(port, "hello"),
            bash(&ask),
            run(&ask),
            bash(format!("{ask} > heard; until [ -e over ]; do sleep 0.05; done")),
            json!({ "name": "job_kill", "args": { "job": 1 } }),
            bash(&ask),
            run(&ask),
            serve(port, "again"),
            bash(&ask),
        ];
        let mut pixir = place.pixir("first.json", &first).spawn().expect("it starts");
        wait::until("the job was reached", || place.shell.read("heard").ends_with('\n'));
        let logs = place.shell.logs();
        // Another Session in the same workspace, while the job runs: it may even use the same port itself.
        let others = place.all_of("other.json", &[bash(&ask), run(&ask), serve(port, "other"), bash(&ask)]);
        let from_outside = TcpStream::connect(("127.0.0.1", port)).map(std::io::read_to_string);
        place.shell.write("over", "");
        assert!(pixir.wait().expect("it ends").success());
        let own = place.results(|log| logs.contains(log));
        let who = place.user.unwrap_or("the user of the tests");
        let listens = format!("job 1 listens on port {port} in the sandbox: ");
        for (at, wanted) in [(0, "not reached"), (2, "heard: hello"), (3, "heard: hello"), (9, "heard: again")]
            .into_iter()
            .chain([(1, listens.as_str()), (5, "job 1 (stopped)"), (6, "not reached"), (7, "not reached")])
        {
            assert!(own[at].starts_with(wanted), "{who}, call {at}: {own:?}");
        }
        assert_eq!(place.shell.read("heard"), "heard: hello\n", "{who}");
        for (at, wanted) in [(0, "not reached"), (1, "not reached"), (2, listens.as_str()), (3, "heard: other")] {
            assert!(others[at].starts_with(wanted), "{who}, another session, call {at}: {others:?}");
        }
        assert_eq!(from_outside.expect("the machine listens").expect("text"), format!("{CANARY}\n"), "{who}");
        assert!(own.iter().chain(&others).all(|it| !it.contains(CANARY)), "{who}: {own:?} {others:?}");
    }
}

/// Broken builds: `wait` takes any listener of the shared network for the job; a second job makes a network of its own.
#[test]
fn jobs_reach_each_other_and_the_network_stays_with_the_last_one() {
    for place in Place::all() {
        let (one, two) = (place.port, place.port ^ 1);
        let wait =
            |job: u32, port: u16| json!({ "name": "job_output", "args": { "job": job, "wait": 1, "wait_port": port } });
        // Its own process is the one that a program could always take from.
        let take = format!(
            "$it = syscall({}, $$ + 0, 0); print $it > 0 && syscall({}, $it, 0, 0) < 0 ? qq(refused) : qq(taken)",
            libc::SYS_pidfd_open,
            libc::SYS_pidfd_getfd
        );
        let calls = [
            // Both are started by one line: the second one while the first one still makes the network.
            run(format!("job start perl serve.pl {one} one ; job start perl serve.pl {two} two")),
            wait(1, one),
            wait(2, two),
            wait(2, one),
            bash(format!("perl ask.pl {one}; perl ask.pl {two}")),
            json!({ "name": "bash", "args": { "command": format!("perl ask.pl {two}"), "background": true, "wait_output": "heard" } }),
            json!({ "name": "job_kill", "args": { "job": 1 } }),
            bash(format!("perl ask.pl {one}; perl ask.pl {two}")),
            // No command sees the processes of a job, nor ends them, nor takes their descriptors.
            bash(format!("kill -9 -1; perl -e '{take}'")),
            wait(2, two),
        ];
        let results = place.all_of("jobs.json", &calls);
        let who = place.user.unwrap_or("the user of the tests");
        for (at, wanted) in [
            (1, format!("job 1 listens on port {one} in")),
            (2, format!("job 2 listens on port {two} in")),
            (3, format!("after 1 s job 2 still runs and has not listened on port {one} yet")),
            (4, "heard: one\nheard: two\n".into()),
            (5, "job 3 printed: heard: two".into()),
            (8, "bash: line 1: kill: (-1) - No such process\nrefused".into()),
            (9, format!("job 2 listens on port {two} in")),
        ] {
            assert!(results[at].starts_with(&wanted), "{who}, call {at}: {results:?}");
        }
        assert!(results[7].starts_with("not reached") && results[7].contains("heard: two\n"), "{who}: {results:?}");
    }
}

/// Broken build: `network_note` says nothing.
#[test]
fn where_nothing_can_listen_a_job_says_what_to_ask_for() {
    let place = Place::of(None);
    for (flags, is_told) in [(&["--mode", "auto"][..], true), (&["--write", "--allow", "network"], false)] {
        let wait = "perl -e 'sleep 60'";
        let call = json!({ "name": "bash", "args": { "command": wait, "background": true } });
        let steps = json!({ "steps": [{ "calls": [call] }, { "calls": [run(format!("job start {wait}"))] }, { "text": "done" }] });
        let provider = format!("script:{}", place.shell.aside("s.json", &steps.to_string()).display());
        let base = ["--provider", &provider, "--headless", "--toolset", "both", "--sandbox", "ll"];
        let before = place.shell.logs();
        assert_eq!(place.shell.run(base.iter().chain(flags).chain(&["go"])).code, 0);
        let log = place.shell.logs().into_iter().find(|it| !before.contains(it)).expect("a Log");
        let log = entries(&log);
        let told: Vec<bool> = log
            .iter()
            .filter(|it| it["type"] == "tool_result")
            .map(|it| it["data"]["output"].as_str().expect("text").contains("ask the user for the rule `network`"))
            .collect();
        assert_eq!(told, [is_told, is_told], "{flags:?}: {log:?}");
    }
}

/// Broken build: the first process of a command that has joined a job's network does not end with its launcher.
#[test]
fn nothing_of_a_shared_network_outlives_a_killed_pixir() {
    for place in Place::all() {
        let marker = mark();
        let calls = [
            serve(place.port, &marker),
            bash(format!("perl ask.pl {} > heard; (setsid sleep {marker} &) ; sleep {marker}", place.port)),
        ];
        let mut pixir = place.pixir("killed.json", &calls).spawn().expect("it starts");
        wait::until("the job was reached", || place.shell.read("heard") == format!("heard: {marker}\n"));
        wait::until("the command runs", || is_running(&format!("sleep\0{marker}")));
        pixir.kill().expect("kill -9");
        pixir.wait().expect("it ends");
        wait::until("nothing is left", || !is_running(&marker));
    }
}
