//! Concurrent use: several watchers on a Session, several Sessions in a workspace, several harnesses in a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use pixir_core::event::{FilesRestored, LiveEvent, Mode, Status, ToolResult, TurnEnded, TurnStatus, Usage};
use pixir_core::history::Piece;
use pixir_core::input::{Queued, RestoreOptions};
use pixir_core::provider::script::{Script, Scripted, Step};
use pixir_core::provider::{
    Answer, AnswerPart, CallRequest, Chunk, Failure, Provider, Providers, Request, args_object,
};
use pixir_core::{
    Accepted, Code, Decision, Entry, Environment, Event, Fact, Handle, Harness, Input, Limits, Live, Options,
    SessionDefaults, Watch,
};
use serde_json::json;
use tempfile::TempDir;

use crate::driver::{calls, says};

// ─── Set-up ───

/// A model without memory: it calls the tools that the newest message names, `bash {"command": "ls"}` a line, then
/// ends.
struct Obedient;

impl Provider for Obedient {
    fn answer<'a>(
        &'a self,
        request: &'a Request,
        _: &'a mut (dyn FnMut(Chunk) + Send),
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        let newest = request.items.last().map(|item| item.piece());
        let parts = match newest {
            Some(Piece::User { text, .. }) => {
                let call = |(n, line): (usize, &str)| {
                    let (name, args) = line.split_once(' ').expect("a tool and its arguments");
                    let id = format!("call_{}_{n}", request.items.len());
                    AnswerPart::Call(CallRequest { id, name: name.to_owned(), args: args_object(args) })
                };
                text.lines().enumerate().map(call).collect()
            }
            _ => vec![AnswerPart::text("Done.".to_owned())],
        };
        Box::pin(async move { Ok(Answer { parts, ..Answer::default() }) })
    }
}

struct Place {
    folder: TempDir,
    harness: Harness,
}

impl Place {
    fn new(provider: impl Provider + 'static, mode: Mode, options: Options) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("app");
        fs::create_dir_all(workspace.join(".git")).expect("mkdir");
        let environment = std::env::vars().filter(|(name, _)| name == "PATH").collect();
        let around = Environment { home: folder.path().join("home"), environment, ..Environment::default() };
        let providers = Arc::new(Providers::only("script", "m", Arc::new(provider)));
        let beginning = SessionDefaults { mode, ..SessionDefaults::default() };
        pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
        let harness = Harness::new(&workspace, &around, providers, options, beginning).expect("a workspace");
        Place { folder, harness }
    }

    fn obedient() -> Place {
        Place::new(Obedient, Mode::Auto, Options::default())
    }

    fn scripted(steps: Vec<Step>, options: Options) -> Place {
        Place::new(Scripted::new(Script { steps, ..Script::default() }), Mode::Ask, options)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("app").join(name)
    }

    /// A file in the workspace that no snapshot sees.
    fn aside(&self, name: &str) -> PathBuf {
        self.folder.path().join("app/.git").join(name)
    }

    async fn start(&self) -> (Handle, Watch) {
        let handle = self.harness.start().expect("it starts");
        let watch = handle.watch().await.expect("it runs");
        (handle, watch)
    }
}

fn command(command: &str) -> String {
    format!("bash {}", json!({ "command": command }))
}

/// A command that continues once the story creates this file.
fn waits_for(path: &Path) -> String {
    format!("until [ -e {} ]; do sleep 0.02; done", path.display())
}

async fn until_there(path: &Path) {
    let until = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < until, "{} never came", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn next(watch: &mut Watch) -> Event {
    let next = tokio::time::timeout(Duration::from_secs(60), watch.next()).await;
    next.expect("something happens").expect("the session lives")
}

/// The events until the Turn has ended.
async fn turn(watch: &mut Watch) -> (Vec<Event>, TurnEnded) {
    let mut events = Vec::new();
    loop {
        let event = next(watch).await;
        events.push(event.clone());
        if let Event::Recorded(entry) = event
            && let Fact::TurnEnded(it) = &entry.fact
        {
            return (events, (**it).clone());
        }
    }
}

async fn until_live(watch: &mut Watch, wanted: impl Fn(&Live) -> bool) -> LiveEvent {
    loop {
        if let Event::Live(event) = next(watch).await
            && wanted(&event.live)
        {
            return event;
        }
    }
}

fn entries(events: &[Event]) -> Vec<&Entry> {
    events.iter().filter_map(|it| if let Event::Recorded(entry) = it { Some(&**entry) } else { None }).collect()
}

fn results(events: &[Event]) -> Vec<&ToolResult> {
    let facts = entries(events).into_iter().map(|entry| &entry.fact);
    facts.filter_map(|fact| if let Fact::ToolResult(it) = fact { Some(&**it) } else { None }).collect()
}

fn changed(result: &ToolResult) -> Vec<&str> {
    result.changes.iter().map(|change| change.path.as_str()).collect()
}

fn text_of(events: &[Event]) -> String {
    let live = events.iter().filter_map(|it| if let Event::Live(event) = it { Some(&event.live) } else { None });
    live.filter_map(|live| if let Live::TextDelta { text } = live { Some(text.as_str()) } else { None }).collect()
}

// ─── Watchers ───

/// Broken build: `Session::now` leaves out the approvals.
#[tokio::test]
async fn a_watcher_that_joins_in_mid_approval_sees_it_and_answers_it() {
    let steps = vec![calls("write", json!({ "path": "a.txt", "content": "alpha\n" })), says("Written.")];
    let place = Place::scripted(steps, Options { can_ask: true, ..Options::default() });
    let (handle, mut first) = place.start().await;
    assert_eq!(handle.request(Input::Prompt("go".into())).await.expect("accepted").turn, Some(1));
    let asked = until_live(&mut first, |live| matches!(live, Live::ApprovalRequested(_))).await;
    assert_eq!((asked.turn, &asked.session_id), (Some(1), handle.id()));

    let mut second = handle.watch().await.expect("it runs");
    let approval = second.now.approvals.first().expect("the approval is open").clone();
    assert_eq!((second.now.status, second.now.turn), (Status::Asking, Some(1)));
    assert_eq!(Live::ApprovalRequested(approval.clone()), asked.live);
    let decide = Input::Decide { call_id: approval.call_id, decision: Decision::Allow, word: None };
    assert_eq!(handle.request(decide.clone()).await.expect("accepted").turn, Some(1));

    let (seen_by_first, end) = turn(&mut first).await;
    let (seen_by_second, _) = turn(&mut second).await;
    assert_eq!(end.status, TurnStatus::Completed);
    let is_asked = |it: &Event| matches!(it, Event::Live(event) if matches!(event.live, Live::ApprovalRequested(_)));
    assert!(!seen_by_second.iter().any(is_asked), "what is in the present is not repeated");
    let seqs = |events: &[Event]| entries(events).iter().map(|entry| entry.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&seen_by_first), seqs(&seen_by_second));
    assert_eq!(fs::read_to_string(place.path("a.txt")).expect("it is there"), "alpha\n");
    // One answer settles the approval for all watchers.
    assert_eq!(handle.request(decide).await.expect_err("it is closed").code, Code::NotFound);
}

/// Broken build: the draft is taken from what is recorded, or the outbox begins before the present is read.
#[tokio::test]
async fn a_watcher_that_joins_in_mid_answer_gets_every_word_once() {
    let words: String = (0..200).map(|n| format!("word{n} ")).collect();
    let script = Script { pace_ms: 2, steps: vec![says(&words)], ..Script::default() };
    let place = Place::new(Scripted::new(script), Mode::Ask, Options::default());
    let (handle, mut first) = place.start().await;
    handle.request(Input::Prompt("go".into())).await.expect("accepted");
    until_live(&mut first, |live| matches!(live, Live::TextDelta { .. })).await;
    let mut second = handle.watch().await.expect("it runs");
    assert_ne!(second.now.draft.text, "", "it joins after the first word");
    let (events, _) = turn(&mut second).await;
    assert_eq!(format!("{}{}", second.now.draft.text, text_of(&events)), words);
    // The present state of an idle Session is empty.
    let third = handle.watch().await.expect("it runs");
    assert_eq!(third.now.as_live(), []);
}

// ─── Requests ───

/// Broken build: `Handle::request` answers before the Session has accepted the Input.
#[tokio::test]
async fn every_input_is_answered_and_a_refusal_names_its_input() {
    let steps = vec![Step { text: "I wait.".into(), hang: true, ..Step::default() }];
    let place = Place::scripted(steps, Options::default());
    let (handle, mut watch) = place.start().await;
    let refused = handle.request(Input::Pin { seq: 99, pinned: true }).await.expect_err("there is no such message");
    assert_eq!(refused.code, Code::NotFound);
    let told = until_live(&mut watch, |live| matches!(live, Live::Refused(_))).await;
    let Live::Refused(refusal) = told.live else { panic!("a refusal") };
    assert_eq!((refusal.input.as_str(), refusal.error.message), ("pin", refused.message));

    assert_eq!(handle.request(Input::Prompt("go".into())).await.expect("accepted").turn, Some(1));
    let mut places = Vec::new();
    for input in [Input::Prompt("b".into()), Input::FollowUp("c".into()), Input::Steer("d".into())] {
        let Queued { position, .. } = handle.request(input).await.expect("accepted").queued.expect("it waits");
        places.push(position);
    }
    assert_eq!(places, [1, 2, 1]);
    let late = handle.watch().await.expect("it runs");
    assert_eq!(
        (late.now.queue.steer, late.now.queue.follow_up),
        (vec!["d".to_owned()], vec!["b".to_owned(), "c".to_owned()])
    );
    let refused = handle.request(Input::Undo { turn: None, options: RestoreOptions::default() }).await;
    assert_eq!(refused.expect_err("a Turn runs").code, Code::InvalidArgs);
    assert_eq!(handle.request(Input::Interrupt).await.expect("accepted").turn, Some(1));
    assert_eq!(turn(&mut watch).await.1.status, TurnStatus::Interrupted);
    assert_eq!(handle.request(Input::Interrupt).await.expect("accepted"), Accepted::default());
    handle.close().await;
    assert_eq!(handle.request(Input::Dequeue).await.expect_err("closed").code, Code::SessionStartFailed);
}

/// Broken build: `Turn::converse` does not check its budget.
#[tokio::test]
async fn a_turn_that_has_spent_its_budget_ends_incomplete_and_the_next_one_has_its_own() {
    let step = |text: &str| {
        let usage = Usage { input: 60, output: 50, ..Usage::default() };
        Step { usage: Some(usage), ..if text.is_empty() { calls("ls", json!({})) } else { says(text) } }
    };
    let limits = Limits { max_tokens: Some(110), ..Limits::default() };
    let place = Place::scripted(vec![step(""), step("Again.")], Options { limits, ..Options::default() });
    let (handle, mut watch) = place.start().await;
    handle.send(Input::Prompt("go".into())).await;
    let (events, end) = turn(&mut watch).await;
    assert_eq!((end.status, end.error.expect("why").code.as_str()), (TurnStatus::Incomplete, "BUDGET_REACHED"));
    assert_eq!(results(&events).len(), 1, "what was paid for is done");
    handle.send(Input::Prompt("go on".into())).await;
    assert_eq!(turn(&mut watch).await.1.status, TurnStatus::Completed);
}

// ─── Restores ───

/// The story holds the runtime's only blocking thread, which every restore needs.
///
/// Broken build: `Session::take` awaits the restore; then the interrupt is not handled before the thread is free.
#[test]
fn an_interrupt_is_heard_during_an_undo_and_the_rest_is_left_and_told() {
    let mut one_blocking_thread = tokio::runtime::Builder::new_multi_thread();
    let runtime = one_blocking_thread.worker_threads(2).max_blocking_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let place = Place::obedient();
        let (handle, mut watch) = place.start().await;
        let names = ["a.txt", "b.txt", "c.txt"];
        let write = |name: &&str| format!("write {}", json!({ "path": name, "content": "made\n" }));
        let prompt = names.iter().map(write).collect::<Vec<_>>().join("\n");
        handle.send(Input::Prompt(prompt.into())).await;
        assert_eq!(turn(&mut watch).await.1.status, TurnStatus::Completed);
        handle.settle().await;

        let (open, gate) = std::sync::mpsc::channel::<()>();
        let held = tokio::task::spawn_blocking(move || gate.recv());
        let undo = || Input::Undo { turn: None, options: RestoreOptions::default() };
        let interrupt = async {
            let heard = tokio::time::timeout(Duration::from_secs(30), handle.request(Input::Interrupt)).await;
            let status = handle.watch().await.expect("it runs").now.status;
            open.send(()).expect("the thread waits");
            (heard, status)
        };
        let (undone, (heard, status)) = tokio::join!(handle.request(undo()), interrupt);
        held.await.expect("no panic").expect("it was opened");
        heard.expect("the interrupt is heard while the undo waits").expect("accepted");
        assert_eq!(status, Status::Working);
        let interrupted = undone.expect_err("it was interrupted");
        assert_eq!(interrupted.message, "interrupted: files restored: 0, left as they were: 3");
        assert!(names.iter().all(|name| place.path(name).exists()), "nothing was touched");

        handle.request(undo()).await.expect("the same undo goes on");
        assert!(!names.iter().any(|name| place.path(name).exists()));
        let mut restored: Vec<FilesRestored> = Vec::new();
        while let Some(event) = watch.try_next() {
            if let Event::Recorded(entry) = event
                && let Fact::FilesRestored(it) = &entry.fact
            {
                restored.push((**it).clone());
            }
        }
        assert_eq!(restored.iter().map(|it| it.changes.len()).collect::<Vec<_>>(), [3]);
    });
}

// ─── Sessions in one workspace ───

/// Broken build: each Session has a snapshot of its own; then the command finds what the other Session wrote.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_one_session_is_not_taken_for_the_work_of_anothers_command() {
    let place = Place::obedient();
    let ((runs, mut of_runs), (writes, mut of_writes)) = (place.start().await, place.start().await);
    let go = place.aside("go");
    runs.send(Input::Prompt(command(&format!("touch a.txt; {}; touch c.txt", waits_for(&go))).into())).await;
    until_there(&place.path("a.txt")).await;
    let write = format!("write {}", json!({ "path": "b.txt", "content": "beta\n" }));
    writes.send(Input::Prompt(write.into())).await;
    let (events, _) = turn(&mut of_writes).await;
    assert_eq!(changed(results(&events)[0]), ["b.txt"]);
    fs::write(&go, "").expect("write");
    let (events, _) = turn(&mut of_runs).await;
    assert_eq!(changed(results(&events)[0]), ["a.txt", "c.txt"]);
    // So each Session undoes only its own changes.
    runs.request(Input::Undo { turn: None, options: RestoreOptions::default() }).await.expect("it is undone");
    assert!(place.path("b.txt").exists() && !place.path("a.txt").exists() && !place.path("c.txt").exists());
}

/// Broken build: as above; or both commands get what changed while both ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_two_commands_run_is_attributed_to_neither_and_both_are_told() {
    let place = Place::obedient();
    let ((first, mut of_first), (second, mut of_second)) = (place.start().await, place.start().await);
    let (go_first, go_second) = (place.aside("first"), place.aside("second"));
    let script = format!("touch alone.txt; {}; touch after.txt", waits_for(&go_first));
    first.send(Input::Prompt(command(&script).into())).await;
    until_there(&place.path("alone.txt")).await;
    let script = format!("touch both.txt; {}", waits_for(&go_second));
    second.send(Input::Prompt(command(&script).into())).await;
    until_there(&place.path("both.txt")).await;
    fs::write(&go_second, "").expect("write");
    let (events, _) = turn(&mut of_second).await;
    let of_second = results(&events)[0].clone();
    fs::write(&go_first, "").expect("write");
    let (events, _) = turn(&mut of_first).await;
    let of_first = results(&events)[0].clone();
    assert_eq!((changed(&of_first), changed(&of_second)), (vec!["alone.txt", "after.txt"], vec![]));
    for result in [of_first, of_second] {
        assert!(
            result.output.contains("both.txt changed while a command of another session ran too"),
            "{}",
            result.output
        );
    }
}

/// Some of them stop a command that ignores SIGTERM meanwhile.
///
/// Broken build: anything of a Session is global: a live event names another Session, or a Log or index is shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_and_two_harnesses_work_at_once_on_two_workers() {
    let places = [Place::obedient(), Place::obedient()];
    let one = async |n: usize| {
        let place = &places[n % 2];
        let (handle, mut watch) = place.start().await;
        let prompt = match n % 5 {
            0 => command(&format!("trap '' TERM; echo {n}; sleep 60 & wait")).replace('}', ",\"timeout\":1}"),
            1 => format!("write {}", json!({ "path": format!("{n}.txt"), "content": n.to_string() })),
            _ => command(&format!("echo {n}")),
        };
        handle.request(Input::Prompt(prompt.into())).await.expect("accepted");
        let (events, end) = turn(&mut watch).await;
        assert_eq!(end.status, TurnStatus::Completed);
        for event in &events {
            let of = match event {
                Event::Recorded(entry) => &entry.session_id,
                Event::Live(event) => &event.session_id,
            };
            assert_eq!(of, handle.id());
        }
        assert_eq!(results(&events).len(), 1);
        handle.close().await;
        let seqs: Vec<u64> = entries(&events).iter().map(|entry| entry.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "gap-free");
    };
    futures_util::future::join_all((0..50).map(one)).await;
    for (place, parity) in places.iter().zip([0, 1]) {
        assert_eq!(place.harness.sessions().len(), 25);
        for n in (0..50).filter(|n| n % 2 == parity && n % 5 == 1) {
            assert_eq!(fs::read_to_string(place.path(&format!("{n}.txt"))).expect("it was written"), n.to_string());
        }
    }
}
