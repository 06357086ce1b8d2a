//! What a run of a workflow costs besides its work, by its number of steps: `cargo bench --bench workflow`.
//!
//! Each figure stands beside a floor of the same run: `sh -c true` for a command, and one synced line of a file for each Entry
//! that is synced. Seconds are for orientation; what counts is that the cost of a step does not grow with their number.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pixir_core::event::{Mode, Resumed, WorkflowEvent};
use pixir_core::input::WorkflowOrder;
use pixir_core::provider::Providers;
use pixir_core::provider::script::{Script, Scripted, Step};
use pixir_core::{Environment, Event, Fact, Handle, Harness, Input, Options, SessionDefaults};
use serde_json::{Value, json};

const SIZES: [usize; 3] = [10, 100, 1_000];
/// A folder whose files are in memory.
const MEMORY: &str = "/dev/shm";

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn main() {
    pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let sync = floor_of_a_sync();
    let shell = floor_of_a_command();
    println!("floors: one synced line {:.2} ms, `sh -c true` {:.2} ms", ms(sync), ms(shell));
    println!();
    println!(
        "| steps | what | ms a step | synced entries a step | ms a step without them | log, bytes a step | memory, MB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for n in SIZES {
        // Steps that do not run: the schedule, the key, the Entry.
        row(&runtime, n, "skipped", 1, Duration::ZERO, &skipped(n), sync);
        row(&runtime, n, "command", 3, shell, &commands(n, n), sync);
        row(&runtime, n, "agent", 7, Duration::ZERO, &agents(n), sync);
    }
    // Where the disk costs nothing, a step that is skipped costs the schedule, its key and its Entry.
    if Path::new(MEMORY).is_dir() {
        println!();
        println!("| steps | µs a step that is skipped, Log in memory |");
        println!("| --- | --- |");
        for n in SIZES {
            let folder = tempfile::tempdir_in(MEMORY).expect("a folder");
            let (took, _) = runtime.block_on(run_in(folder.path(), n, &skipped(n)));
            println!("| {n} | {:.1} |", took.as_secs_f64() * 1e6 / n as f64);
        }
    }
    println!();
    println!("wake-ups in 10 s while a gate, an agent and a command wait: {}", runtime.block_on(waiting()));
    println!();
    println!("| resume of | steps that run | ms to the first of them | ms of the dry run |");
    println!("| --- | --- | --- | --- |");
    let (first, dry) = runtime.block_on(resume(1_000, 900));
    println!("| 900 of 1000 | 100 | {:.1} | {:.1} |", ms(first), ms(dry));
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// One line of the table.
#[expect(clippy::print_stdout, reason = "a table for the user")]
fn row(
    runtime: &tokio::runtime::Runtime,
    n: usize,
    what: &str,
    synced: u32,
    floor: Duration,
    graph: &Value,
    sync: Duration,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let (took, bytes) = runtime.block_on(run_in(folder.path(), n, graph));
    let each = took / u32::try_from(n).expect("a small number");
    let rest = each.saturating_sub(sync * synced).saturating_sub(floor);
    println!("| {n} | {what} | {:.2} | {synced} | {:.2} | {} | {} |", ms(each), ms(rest), bytes / n as u64, memory());
}

/// Carries out a graph with its state in this folder, and returns how long it took and the bytes of its Log.
async fn run_in(folder: &Path, answers: usize, graph: &Value) -> (Duration, u64) {
    let harness = harness(folder, answers);
    let handle = harness.start().expect("a session");
    let began = Instant::now();
    carry_out(&handle, Input::RunWorkflow(order(graph))).await;
    let took = began.elapsed();
    let log = harness.place(handle.id()).log();
    handle.close().await;
    (took, std::fs::metadata(log).map_or(0, |it| it.len()))
}

/// How often this process wakes up in 10 s while a run waits for a user, a server and a program.
async fn waiting() -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = harness(folder.path(), 0);
    let handle = harness.start().expect("a session");
    let graph = json!({ "version": 1, "name": "waiting", "steps": [
        { "id": "gate", "ask": "Go on?" },
        { "id": "agent", "role": "explorer", "task": "Wait for ever" },
        { "id": "command", "argv": ["sleep", "600"] },
    ] });
    let mut watch = handle.watch().await.expect("it is open");
    handle.request(Input::RunWorkflow(order(&graph))).await.expect("it begins");
    let mut begun = 0;
    while begun < 2 {
        let event = watch.next().await.expect("it goes on");
        let is_begun =
            |it: &Fact| matches!(it, Fact::WorkflowEvent(event) if matches!(&**event, WorkflowEvent::StepStarted(_)));
        begun += u32::from(matches!(&event, Event::Recorded(entry) if is_begun(&entry.fact)));
    }
    // What begins has begun.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = switches();
    tokio::time::sleep(Duration::from_secs(10)).await;
    // One of them is the end of this wait.
    let after = switches().saturating_sub(1);
    handle.send(Input::Interrupt).await;
    handle.close().await;
    after.saturating_sub(before)
}

/// How often the threads of this process have waited so far.
fn switches() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let texts = threads.filter_map(|it| std::fs::read_to_string(it.path().join("status")).ok());
    let of = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok())
    };
    texts.filter_map(of).sum()
}

fn order(graph: &Value) -> WorkflowOrder {
    WorkflowOrder { graph: Some(graph.clone()), ..WorkflowOrder::default() }
}

fn skipped(n: usize) -> Value {
    let items: Vec<usize> = (0..n).collect();
    json!({ "version": 1, "name": "skipped", "params": { "items": { "type": "list", "default": items } }, "limits": { "concurrency": 8 },
        "steps": [{ "id": "each", "argv": ["true"], "each": "{{params.items}}", "max": 1000, "when": "item < 0" }] })
}

/// Commands, of which the first `good` succeed.
fn commands(n: usize, good: usize) -> Value {
    let items: Vec<String> = (0..n).map(|at| if at < good { format!("a{at}") } else { "bad".to_owned() }).collect();
    json!({ "version": 1, "name": "commands", "params": { "items": { "type": "list", "default": items } }, "limits": { "concurrency": 1 },
        "steps": [{ "id": "each", "argv": ["test", "{{item}}", "!=", "bad"], "each": "{{params.items}}", "max": 1000 }] })
}

fn agents(n: usize) -> Value {
    let items: Vec<usize> = (0..n).collect();
    json!({ "version": 1, "name": "agents", "params": { "items": { "type": "list", "default": items } }, "limits": { "concurrency": 1 },
        "steps": [{ "id": "each", "role": "explorer", "task": "Look at {{item}}", "each": "{{params.items}}", "max": 1000 }] })
}

fn harness(folder: &Path, answers: usize) -> Harness {
    let workspace = folder.join("app");
    std::fs::create_dir_all(&workspace).expect("mkdir");
    let step = Step { of: Some("Look at".to_owned()), text: "seen".to_owned(), ..Step::default() };
    let hangs = Step { of: Some("Wait for ever".to_owned()), hang: true, ..Step::default() };
    let script = Script { steps: [vec![step; answers], vec![hangs]].concat(), ..Script::default() };
    let providers = Providers::only("script", "script", Arc::new(Scripted::new(script)));
    let around =
        Environment { home: folder.join("home"), environment: std::env::vars().collect(), ..Environment::default() };
    let beginning = SessionDefaults { mode: Mode::Auto, ..SessionDefaults::default() };
    let options = Options { can_ask: true, ..Options::default() };
    Harness::new(&workspace, &around, Arc::new(providers), options, beginning).expect("a harness")
}

/// Carries out an Input to the end of its run, and returns when the first step of it began.
async fn carry_out(handle: &Handle, input: Input) -> Option<Instant> {
    let mut watch = handle.watch().await.expect("it is open");
    handle.request(input).await.expect("it begins");
    let mut first = None;
    while let Some(event) = watch.next().await {
        match event {
            Event::Recorded(entry) => match &entry.fact {
                Fact::WorkflowEvent(event) if let WorkflowEvent::StepStarted(_) = &**event => {
                    first.get_or_insert_with(Instant::now);
                }
                Fact::TurnEnded(_) => break,
                _ => {}
            },
            Event::Live(_) => {}
        }
    }
    first
}

/// A run of which so many steps are done goes on.
async fn resume(n: usize, good: usize) -> (Duration, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let harness = harness(folder.path(), 0);
    let handle = harness.start().expect("a session");
    carry_out(&handle, Input::RunWorkflow(order(&commands(n, good)))).await;
    let id = handle.id().clone();
    handle.close().await;
    drop(handle);
    let began = Instant::now();
    let rehearsed = harness.rehearse_workflow(&id, Resumed::default(), None).expect("a run").await;
    let dry = began.elapsed();
    assert_eq!(rehearsed.iter().filter(|it| it.verdict == "reuse").count(), good);
    let handle = harness.resume(&id).expect("it is there");
    let began = Instant::now();
    let first = carry_out(&handle, Input::ResumeWorkflow { decisions: Resumed::default(), graph: None }).await;
    handle.close().await;
    (first.map_or(Duration::ZERO, |at| at - began), dry)
}

fn floor_of_a_sync() -> Duration {
    let mut file = tempfile::tempfile().expect("a file");
    let times = 200;
    let began = Instant::now();
    for _ in 0..times {
        file.write_all(&[b'x'; 400]).expect("write");
        file.sync_data().expect("sync");
    }
    began.elapsed() / times
}

fn floor_of_a_command() -> Duration {
    let times = 50;
    let began = Instant::now();
    for _ in 0..times {
        assert!(std::process::Command::new("sh").args(["-c", "true"]).status().expect("sh").success());
    }
    began.elapsed() / times
}

/// Resident memory of this process, MB.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb: Option<u64> = text.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    kb.unwrap_or(0) / 1024
}
