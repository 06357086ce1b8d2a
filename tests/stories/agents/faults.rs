//! Agents where something around them fails: no network, a full disk, a copy that was removed, a weaker sandbox.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{logs, read, results, run, spawn, steps};
use crate::hosted::Hosted;
use crate::server::{Act, Dialect, Gate, HEAD, Part, Reply, Server, answer, text};
use crate::shell::{Shell, ran};
use crate::stories::mounts::mounting;
use crate::wait;

fn put(path: &str, content: &str) -> Value {
    json!({ "name": "write", "args": { "path": path, "content": content } })
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command } })
}

/// An answer of the root that starts these agents.
fn starts(names: &[&str]) -> Reply {
    let call = |name: &&str| {
        let args = json!({ "task": format!("Look at {name}"), "name": name });
        (format!("c-{name}"), "spawn_agent".to_owned(), args)
    };
    Reply::Answer { text: String::new(), calls: names.iter().map(call).collect() }
}

/// Broken builds: an agent without a connection hangs, or is reported as completed; the whole run fails with it; it cannot go
/// on when the network is back.
#[test]
fn agents_without_a_network_fail_with_the_reason_and_go_on_when_it_is_back() {
    let reset = || Reply::Raw(vec![Act::Reset]);
    let server = Server::start(vec![
        starts(&["one", "two"]),
        reset(),
        reset(),
        text("Neither of them could ask."),
        text("It says alpha."),
    ]);
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let flags = server.flags(Dialect::Chat);
    let flags: Vec<&str> =
        flags.iter().map(String::as_str).chain(["--headless", "--json", "--patience", "0"]).collect();
    let ran = shell.run(flags.iter().copied().chain(["go"]));
    assert_eq!((ran.code, &ran.document()["output"]), (1, &json!("Neither of them could ask.")), "{ran:?}");
    let document = ran.document();
    for agent in document["agents"].as_array().expect("a list") {
        assert_eq!((&agent["status"], &agent["error"]["code"]), (&json!("failed"), &json!("NETWORK")), "{agent}");
    }
    let told = results(&logs(&shell)[0]).join("\n");
    assert!(told.contains("agent one: failed") && told.contains("agent two: failed"), "{told}");
    let id = document["session_id"].as_str().expect("an id");
    let ran = shell.run(["resume", &format!("{id}/one"), "go on"].into_iter().chain(flags.iter().copied()));
    assert_eq!((ran.code, &ran.document()["output"]), (0, &json!("It says alpha.")), "{ran:?}");

    // A connection that breaks once is made again.
    let server = Server::start(vec![starts(&["one"]), reset(), text("It says alpha."), text("One has read it.")]);
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let flags = server.flags(Dialect::Chat);
    let ran = shell.run(flags.iter().map(String::as_str).chain(["--headless", "--json", "go"]));
    assert_eq!((ran.code, &ran.document()["agents"][0]["status"]), (0, &json!("completed")), "{ran:?}");
}

/// Broken builds: half a copy is worked in, or stays on the full disk; the whole run fails with the agent.
#[test]
fn a_copy_for_which_there_is_no_room_is_no_copy_and_its_agent_says_so() {
    let Some(words) = mounting() else { return };
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    for n in 0..30 {
        shell.write(&format!("data/{n}.bin"), &"0123456789abcdef".repeat(8 << 10));
    }
    let script = json!({ "steps": [
        { "calls": [spawn("Change it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Change it", "calls": [put("a.txt", "new\n")] },
        { "of": "Change it", "text": "Changed." },
        { "text": "It had no room." },
    ] });
    let provider = format!("script:{}", shell.aside("script.json", &script.to_string()).display());
    let line = "mount -t tmpfs -o size=3m none \"$PIXIR_HOME\" && cd \"$WORKSPACE\" || exit 90
        \"$PIXIR\" go --headless --json --mode auto --provider \"$PROVIDER\"; code=$?
        ls -A \"$PIXIR_HOME\"/copies/* 2>/dev/null | sed 's/^/left: /' >&2; exit $code";
    let ran = in_namespace(&shell, words, line, &provider).end();
    assert_eq!(ran.code, 1, "{ran:?}");
    let document = ran.document();
    assert_eq!(document["output"], "It had no room.", "{document}");
    let agent = &document["agents"][0];
    assert_eq!((&agent["status"], &agent["error"]["code"]), (&json!("failed"), &json!("COPY_FAILED")), "{agent}");
    assert!(agent["error"]["message"].to_string().contains("No space left"), "{agent}");
    assert!(!ran.stderr.contains("left: "), "nothing of the copy is left: {}", ran.stderr);
    assert_eq!(shell.read("a.txt"), "alpha\n");
}

/// Broken builds: the run hangs on the full disk; an agent has no end afterwards, or two.
#[test]
fn a_disk_that_fills_while_agents_run_ends_the_run_in_words_and_each_agent_has_one_end_later() {
    let Some(words) = mounting() else { return };
    let names = ["one", "two", "three"];
    let gate = Gate::default();
    let body = answer(Dialect::Chat, &[Part::Text("It says alpha.")]).concat();
    let late = || Reply::Raw(vec![Act::Until(gate.clone()), Act::Send([HEAD, &body].concat().into_bytes())]);
    let mut replies = vec![starts(&names)];
    replies.extend(names.map(|_| late()));
    replies.extend((0..4).map(|_| text("On again.")));
    let server = Server::start(replies);
    let shell = Shell::new(&[("a.txt", "alpha\n")]);
    let flags = server.flags(Dialect::Chat).join(" ");
    let line = format!(
        "mount -t tmpfs -o size=4m none \"$PIXIR_HOME\" && cd \"$WORKSPACE\" || exit 90
        \"$PIXIR\" go --headless --json {flags} > first.json 2> first.err & run=$!
        until [ -e fill ]; do sleep 0.02; done
        cat /dev/zero > \"$PIXIR_HOME/filling\" 2>/dev/null; touch filled
        wait $run; echo $? > first.code
        rm \"$PIXIR_HOME/filling\"
        \"$PIXIR\" resume --last 'go on' --headless --json {flags}; code=$?
        cp -a \"$PIXIR_HOME\" saved; umount \"$PIXIR_HOME\"; cp -a saved/. \"$PIXIR_HOME\"; exit $code"
    );
    let running = in_namespace(&shell, words, &line, "");
    server.wait_for(1 + names.len());
    shell.write("fill", "");
    wait::until("the disk is full", || shell.workspace().join("filled").exists());
    gate.open();
    let ran = running.end();
    let first = |file: &str| fs::read_to_string(shell.workspace().join(file)).expect("a file");
    assert!(!["0", "101", "134"].contains(&first("first.code").trim()), "it failed in words: {}", first("first.code"));
    let said = first("first.json") + &first("first.err");
    assert!(said.contains("No space left") && !said.contains("panicked"), "{said}");
    assert_eq!(ran.code, 0, "{ran:?}");
    let all = steps(&logs(&shell)[0]);
    for name in names {
        let count = |step: &str| all.iter().filter(|it| **it == format!("{step} {name}")).count();
        assert_eq!((count("spawned"), count("ended")), (1, 1), "{all:?}");
    }
}

/// Broken builds: the new copy is one of the workspace, so the agent does not find its own work; what waited cannot be adopted
/// any more.
#[test]
fn an_agent_whose_copy_was_removed_by_hand_finds_its_waiting_files_in_the_new_one() {
    let shell = Shell::new(&[("a.txt", "old\n"), ("gone.txt", "x\n")]);
    let script = json!({ "steps": [
        { "calls": [spawn("Change it", json!({ "name": "scribe", "isolation": "copy" }))] },
        { "of": "Change it", "calls": [put("a.txt", "new\n"), bash("rm gone.txt; mkdir deep; echo y > deep/b.txt")] },
        { "of": "Change it", "text": "Changed." },
        { "text": "It waits." },
        { "of": "Change it", "calls": [bash("cat a.txt deep/b.txt; ls")] },
        { "of": "Change it", "calls": [put("c.txt", "more\n")] },
        { "of": "Change it", "text": "More." },
        { "text": "I know." },
    ] });
    let mut host = Hosted::start(&shell, &script, &["--mode", "ask"]);
    host.ask("1", json!({ "type": "prompt", "text": "go" }));
    let mut at = 0;
    let mut shown = |host: &mut Hosted, id: &str| loop {
        at = host.until(at, |it| it["type"] == "approval_requested" || it["type"] == "restore_planned") + 1;
        let event = host.seen[at - 1].clone();
        if event["type"] == "restore_planned" {
            return event;
        }
        let allow = json!({ "answer": "allow" });
        let decide = json!({ "type": "decide", "call_id": event["data"]["call_id"], "decision": allow });
        host.ask(&format!("{id}-{at}"), json!({ "type": "to_agent", "path": ["scribe"], "input": decide }));
    };
    let first = shown(&mut host, "a");
    assert_eq!(first["data"]["files"].as_array().map(Vec::len), Some(3), "{first}");
    host.ask("2", json!({ "type": "adopt", "path": ["scribe"], "options": {}, "later": true }));
    host.event("turn_ended");
    fs::remove_dir_all(shell.home().join("copies")).expect("the user removes it");
    let more = json!({ "type": "to_agent", "path": ["scribe"], "input": { "type": "prompt", "text": "go on" } });
    assert_eq!(host.ask("3", more)["ok"], true);
    let second = shown(&mut host, "b");
    let paths: Vec<&Value> = second["data"]["files"].as_array().expect("files").iter().map(|it| &it["path"]).collect();
    assert_eq!(paths, ["a.txt", "c.txt", "deep/b.txt", "gone.txt"], "{second}");
    let adopted = host.ask("4", json!({ "type": "adopt", "path": ["scribe"], "options": {} }));
    assert_eq!(adopted["ok"], true, "{adopted}");
    host.end();
    let child = logs(&shell).into_iter().find(|log| log[0]["data"]["parent"].is_object()).expect("the agent's log");
    let seen = results(&child).into_iter().find(|it| it.contains("y\n")).expect("what it saw in the new copy");
    assert!(seen.contains("new\ny\n") && !seen.contains("gone.txt"), "{seen}");
    assert_eq!((shell.read("a.txt"), shell.read("c.txt")), ("new\n".into(), "more\n".into()));
    assert_eq!(shell.read("deep/b.txt"), "y\n");
    assert!(!shell.workspace().join("gone.txt").exists());
}

/// Broken builds: a read-only role writes where the kernel does not hold it; a worker cannot work without namespaces; a
/// command of an agent runs unasked where nothing confines it.
#[test]
fn agents_are_held_in_every_tier_of_the_sandbox() {
    for tier in ["ns", "ll", "none"] {
        let shell = Shell::new(&[("a.txt", "alpha\n")]);
        let root = shell.workspace().display().to_string();
        let script = json!([
            { "calls": [
                spawn("Look", json!({ "name": "scout", "role": "explorer" })),
                spawn("Build", json!({ "name": "maker", "isolation": "copy" })),
            ] },
            { "of": "Look", "calls": [
                read("a.txt"), bash("grep -c alpha a.txt"), bash("touch scouted"),
                bash("python3 -c 'open(\"scouted\", \"w\")'"), put("scouted", "x"),
            ] },
            { "of": "Look", "text": "It says alpha." },
            { "of": "Build", "calls": [
                put("made.txt", "made\n"), bash("echo built > built.txt"), bash(&format!("echo x > {root}/outside.txt")),
            ] },
            { "of": "Build", "text": "Made." },
            { "text": "So." },
        ]);
        let ran = run(&shell, script, &["go", "--mode", "auto", "--sandbox", tier]);
        assert_eq!(ran.code, 12, "{tier}: what the role of the scout refused is not done: {ran:?}");
        let all = logs(&shell);
        let of =
            |name: &str| results(all.iter().find(|log| log[0]["data"]["parent"]["name"] == name).expect("its log"));
        let (scout, maker) = (of("scout"), of("maker"));
        assert!(scout[0].contains("alpha"), "{tier}: {scout:?}");
        assert!(!shell.workspace().join("scouted").exists(), "{tier}: {scout:?}");
        assert_eq!(shell.read("made.txt"), "made\n", "{tier}: {maker:?}");
        assert!(!shell.workspace().join("outside.txt").exists(), "{tier}: {maker:?}");
        // Where nothing confines a command, the user is asked, and in a run without a terminal there is none to ask.
        let runs = tier != "none";
        assert_eq!((scout[1].starts_with('1'), shell.workspace().join("built.txt").exists()), (runs, runs), "{tier}");
    }
}

/// A line of bash that may mount.
struct InNamespace(std::process::Child);

fn in_namespace(shell: &Shell, words: &[&str], line: &str, provider: &str) -> InNamespace {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["bash", "-c", line]);
    fs::create_dir_all(shell.home()).expect("a state folder");
    command
        .env("PIXIR", env!("CARGO_BIN_EXE_pixir"))
        .env("PIXIR_HOME", shell.home())
        .env("HOME", shell.home())
        .env("WORKSPACE", shell.workspace())
        .env("PROVIDER", provider);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    InNamespace(command.spawn().expect("it starts"))
}

impl InNamespace {
    /// It must end at all.
    fn end(mut self) -> crate::shell::Ran {
        let ended = wait::within(wait::PATIENCE, || self.0.try_wait().expect("it can be asked").is_some());
        if !ended {
            let _ = self.0.kill();
        }
        let ran = ran(self.0.wait_with_output().expect("it ends"));
        assert!(ended, "it hangs: {}", ran.stderr);
        ran
    }
}
