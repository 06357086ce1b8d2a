//! A Session through random sequences of prompts, moves, forks, pins, kills and closings.

use std::sync::Arc;

use crate::random;
use crate::tier;
use pixir_core::event::{Mode, SessionId};
use pixir_core::history::{History, Jump};
use pixir_core::input::Summarize;
use pixir_core::provider::Providers;
use pixir_core::provider::script::{Script, Scripted, ScriptedCall, Step};
use pixir_core::tree::Node;
use pixir_core::{Environment, Event, Fact, Handle, Harness, Input, Live, Options, SessionDefaults, Watch, log, tree};
use proptest::prelude::*;
use serde_json::json;

/// One random event of a Session.
#[derive(Debug, Clone)]
enum Happens {
    Prompt,
    /// To the n-th message, counted around, or to the empty conversation.
    Move(usize),
    Fork(usize),
    Name(usize),
    Pin(usize),
    /// Removes the n-th message's branch, where that is possible, and takes back the branch removed before.
    Remove(usize),
    /// In the middle of a turn or between two, with or without a write that is cut off.
    Kill {
        mid_turn: bool,
        torn: bool,
    },
    Close,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => Just(Happens::Prompt),
        2 => (0..40_usize).prop_map(Happens::Move),
        1 => (0..40_usize).prop_map(Happens::Fork),
        1 => (0..40_usize).prop_map(Happens::Name),
        1 => (0..40_usize).prop_map(Happens::Pin),
        1 => (0..40_usize).prop_map(Happens::Remove),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(mid_turn, torn)| Happens::Kill { mid_turn, torn }),
        1 => Just(Happens::Close),
    ]
}

/// A conversation as the model and the user see it.
#[derive(Debug, PartialEq)]
struct Seen {
    head: Option<u64>,
    jumps: Vec<Jump>,
    told: Vec<String>,
    turns: Vec<Node>,
}

fn seen(history: &History) -> Seen {
    Seen {
        head: history.head(),
        jumps: history.jumps().to_vec(),
        told: history.items().iter().map(|item| format!("{:?}", item.piece())).collect(),
        turns: tree::nodes(history),
    }
}

/// A machine on which one Session runs, is killed, and is reopened.
struct Machine {
    runtime: tokio::runtime::Runtime,
    harness: Harness,
    folder: tempfile::TempDir,
    handle: Handle,
    watch: Watch,
    /// The published Entries, folded.
    history: History,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("app")).expect("mkdir");
        let (runtime, harness) = Machine::boot(folder.path());
        let (handle, watch) = runtime.block_on(async {
            let handle = harness.start().expect("it starts");
            let watch = handle.watch().await.expect("it runs");
            (handle, watch)
        });
        let mut machine = Machine { runtime, harness, folder, handle, watch, history: History::default() };
        machine.hear();
        machine
    }

    fn boot(folder: &std::path::Path) -> (tokio::runtime::Runtime, Harness) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let step = |text: &str, command: Option<&str>| Step {
            text: text.into(),
            calls: command
                .map(|c| ScriptedCall { name: "bash".into(), args: json!({ "command": c }) })
                .into_iter()
                .collect(),
            ..Step::default()
        };
        let steps =
            (0..60).flat_map(|n| [step("I look.", Some("echo 1")), step(&format!("Answer {n}."), None)]).collect();
        let scripted = Scripted::new(Script { steps, ..Script::default() });
        let around = Environment {
            home: folder.join("home"),
            user_folder: None,
            started_in: None,
            passed_on: Vec::new(),
            copy_ignored: Vec::new(),
            environment: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
        };
        let providers = Arc::new(Providers::only("script", "m", Arc::new(scripted)));
        let beginning = SessionDefaults { mode: Mode::Auto, ..SessionDefaults::default() };
        pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
        let harness = Harness::new(&folder.join("app"), &around, providers, Options::default(), beginning);
        (runtime.expect("a runtime"), harness.expect("a workspace"))
    }

    fn take_past(&mut self) {
        let past = std::mem::take(&mut self.watch.past);
        past.entries().iter().for_each(|entry| self.history.append(Arc::clone(entry)));
    }

    /// Folds every published Entry.
    fn hear(&mut self) {
        self.take_past();
        while let Some(event) = self.watch.try_next() {
            if let Event::Recorded(entry) = event {
                self.history.append(entry);
            }
        }
    }

    fn ask(&mut self, input: Input) -> Vec<Event> {
        let (handle, watch, history) = (&self.handle, &mut self.watch, &mut self.history);
        self.runtime.block_on(async {
            let prompt = matches!(input, Input::Prompt(_));
            handle.send(input).await;
            handle.settle().await;
            let mut events = Vec::new();
            loop {
                let event = if prompt { watch.next().await } else { watch.try_next() };
                let Some(event) = event else { return events };
                let ended = matches!(&event, Event::Recorded(entry) if matches!(entry.fact, Fact::TurnEnded(_)));
                if let Event::Recorded(entry) = &event {
                    history.append(Arc::clone(entry));
                }
                events.push(event);
                if prompt && ended {
                    return events;
                }
            }
        })
    }

    fn message(&self, n: usize) -> Option<u64> {
        let seqs: Vec<u64> =
            self.history.entries().iter().filter(|e| e.fact.is_conversation()).map(|e| e.seq).collect();
        if seqs.is_empty() { None } else { Some(seqs[n % seqs.len()]) }
    }

    fn reopen(mut self, kill: bool, torn: bool) -> Machine {
        let id = self.handle.id().clone();
        if !kill {
            self.runtime.block_on(self.handle.close());
        }
        self.runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        let past = std::mem::take(&mut self.watch.past);
        past.entries().iter().for_each(|entry| self.history.append(Arc::clone(entry)));
        while let Some(event) = self.watch.try_next() {
            if let Event::Recorded(entry) = event {
                self.history.append(entry);
            }
        }
        let log = self.harness.place(&id).log();
        if torn && log.exists() {
            let mut file = std::fs::OpenOptions::new().append(true).open(&log).expect("open");
            std::io::Write::write_all(&mut file, b"{\"v\":1,\"id\":\"0190").expect("write");
        }
        let (runtime, harness) = Machine::boot(self.folder.path());
        let (handle, watch) = runtime.block_on(async {
            // A Session without a prompt is deleted when it is closed.
            let handle = if log.exists() { harness.resume(&id) } else { harness.start() }.expect("it opens again");
            let watch = handle.watch().await.expect("it runs");
            (handle, watch)
        });
        if log.exists() {
            // Every published Entry is in the Log and folds to the same state; a kill may come between writing and
            // publishing.
            let told = self.history.entries().len();
            assert!(watch.past.entries().len() >= told);
            let again = History::fold(watch.past.entries()[..told].iter().cloned());
            assert_eq!(seen(&again), seen(&self.history));
        }
        let mut machine = Machine { runtime, harness, handle, watch, history: History::default(), folder: self.folder };
        machine.hear();
        assert!(
            !machine.history.turn_open && machine.history.orphans().next().is_none(),
            "a crash leaves nothing open"
        );
        machine
    }
}

proptest! {
    #![proptest_config(random::config(tier::cases("random_events")))]

    #[test]
    fn random_events_reopen_to_the_same_history(all in prop::collection::vec(happens(), 1..25)) {
        let mut machine = Machine::new();
        for one in all {
            match one {
                Happens::Prompt => drop(machine.ask(Input::Prompt("next".into()))),
                Happens::Move(n) => {
                    let to_seq = if n == 0 { None } else { machine.message(n) };
                    machine.ask(Input::MoveHead { to_seq, summarize: if n % 3 == 0 { Summarize::Deterministic } else { Summarize::No }, files: None });
                }
                Happens::Name(n) => if let Some(seq) = machine.message(n) {
                    machine.ask(Input::Label { seq, text: format!("name {n}") });
                },
                Happens::Pin(n) => if let Some(seq) = machine.message(n) {
                    machine.ask(Input::Pin { seq, pinned: n % 2 == 0 });
                },
                Happens::Remove(n) => if let Some(seq) = machine.message(n) {
                    let before = machine.history.trash().next();
                    machine.ask(Input::RemoveBranch { seq });
                    if let Some(seq) = before {
                        machine.ask(Input::RestoreBranch { seq });
                    }
                    prop_assert!(machine.history.trash().all(|seq| !machine.history.is_on_path(seq)), "the head is in the trash");
                },
                Happens::Fork(n) => if let Some(seq) = machine.message(n) {
                    let events = machine.ask(Input::Fork { seq });
                    let id = events.iter().find_map(|e| if let Some(Live::SessionForked { session_id }) = e.live() { Some(session_id.clone()) } else { None });
                    let id = SessionId::parse(&id.expect("a fork was made")).expect("an id");
                    let forked = History::fold(log::read(&machine.harness.place(&id).log()).expect("it is there").entries);
                    let parent = History::fold(machine.history.path_of(seq));
                    prop_assert_eq!(seen(&forked).told, seen(&parent).told);
                },
                Happens::Kill { mid_turn, torn } => {
                    if mid_turn {
                        machine.runtime.block_on(machine.handle.send(Input::Prompt("cut off".into())));
                    }
                    machine = machine.reopen(true, torn);
                }
                Happens::Close => machine = machine.reopen(false, false),
            }
        }
        machine.reopen(false, false);
    }
}
