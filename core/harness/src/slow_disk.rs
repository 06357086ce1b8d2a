//! Sessions whose disks do not answer, beside many whose disks do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Harness, SessionDefaults};
use config::Environment;
use door::Handle;
use protocol::event::{Event, Fact, TurnStatus};
use protocol::input::Input;
use provider::choose::Providers;
use provider::script::{Script, Scripted, Step};
use session::Options;
use storage::log::{Disk, DiskFile, RealDisk};

/// Syncs of the Logs that are shut wait until the gate opens.
#[derive(Debug, Default)]
struct Gate {
    shut: Mutex<Vec<PathBuf>>,
    opened: Condvar,
    gave_up: AtomicBool,
}

/// A sync that waits longer answers all the same, so that a broken build fails and does not hang.
const LONGEST: Duration = Duration::from_secs(60);

impl Gate {
    fn shut_for(&self, log: PathBuf) {
        self.shut.lock().expect("no panic").push(log);
    }

    fn open(&self) {
        self.shut.lock().expect("no panic").clear();
        self.opened.notify_all();
    }

    fn pass(&self, path: &Path) {
        let shut = self.shut.lock().expect("no panic");
        let is_shut = |shut: &mut Vec<PathBuf>| shut.iter().any(|log| log == path);
        let (shut, waited) = self.opened.wait_timeout_while(shut, LONGEST, is_shut).expect("no panic");
        drop(shut);
        self.gave_up.fetch_or(waited.timed_out(), Ordering::Relaxed);
    }
}

/// The real disk behind a gate.
#[derive(Debug)]
struct GatedDisk(Arc<Gate>);

#[derive(Debug)]
struct GatedFile {
    gate: Arc<Gate>,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl Disk for GatedDisk {
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        RealDisk.make_folder(folder)
    }
    fn patience(&self) -> Duration {
        RealDisk.patience()
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        // A new Log has another name until it is established.
        let file =
            GatedFile { gate: Arc::clone(&self.0), path: path.with_extension("ndjson"), file: RealDisk.create(path)? };
        Ok(Arc::new(file))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.open(path)
    }
    fn rewrite(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        RealDisk.rewrite(path, offset, bytes)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk::rename_new(&RealDisk, from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }
    fn replace(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.replace(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        RealDisk.sync_folder(folder)
    }
}

impl DiskFile for GatedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.file.append(bytes)
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, buffer)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
    fn sync(&self) -> io::Result<()> {
        self.gate.pass(&self.path);
        self.file.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
    fn unlock(&self) {
        self.file.unlock();
    }
    fn holder(&self) -> Option<u32> {
        self.file.holder()
    }
}

fn harness(folder: &TempDir, gate: &Arc<Gate>, answers: usize) -> Harness {
    let workspace = folder.path().join("app");
    std::fs::create_dir_all(&workspace).expect("mkdir");
    let steps = (0..answers).map(|_| Step { text: "Done.".into(), ..Step::default() }).collect();
    let scripted = Scripted::new(Script { steps, ..Script::default() });
    let around = Environment { home: folder.path().join("home"), ..Environment::default() };
    let providers = Arc::new(Providers::only("script", "m", Arc::new(scripted)));
    let harness = Harness::new(&workspace, &around, providers, Options::default(), SessionDefaults::default());
    harness.expect("a workspace").on_disk(Arc::new(GatedDisk(Arc::clone(gate))))
}

/// Sends a prompt and follows its Turn to the end.
async fn turn(handle: &Handle) -> TurnStatus {
    let mut watch = handle.watch().await.expect("it runs");
    handle.request(Input::Prompt("go".into())).await.expect("it is accepted");
    loop {
        match watch.next().await.expect("it runs") {
            Event::Recorded(entry) => {
                if let Fact::TurnEnded(it) = &entry.fact {
                    return it.status;
                }
            }
            Event::Live(_) => {}
        }
    }
}

/// Broken build: `LogWriter::append` syncs where it is called. Then the two syncs hold both workers, and no Turn ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_waits_for_the_disk_of_another() {
    let (folder, gate) = (tempfile::tempdir().expect("a folder"), Arc::new(Gate::default()));
    let harness = harness(&folder, &gate, 50);
    let handles: Vec<Handle> = (0..50).map(|_| harness.start().expect("it starts")).collect();
    // As many as the runtime has workers.
    let (stuck, free) = handles.split_at(2);
    stuck.iter().for_each(|handle| gate.shut_for(harness.place(handle.id()).log()));
    let late: Vec<_> = stuck.iter().cloned().map(|handle| tokio::spawn(async move { turn(&handle).await })).collect();

    let ended = futures_util::future::join_all(free.iter().map(turn)).await;
    let waited = late.iter().all(|turn| !turn.is_finished());
    let answered = gate.gave_up.load(Ordering::Relaxed);
    gate.open();

    assert_eq!(ended, [TurnStatus::Completed; 48]);
    assert!(!answered, "48 Turns end while two disks do not answer");
    assert!(waited, "nothing of a stuck Session is published before it is on its disk");
    for turn in late {
        assert_eq!(turn.await.expect("no panic"), TurnStatus::Completed);
    }
}

/// Broken build: `Session::run` takes Inputs while `record` waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_keep_their_order_while_the_disk_does_not_answer() {
    let (folder, gate) = (tempfile::tempdir().expect("a folder"), Arc::new(Gate::default()));
    let harness = harness(&folder, &gate, 2);
    let handle = harness.start().expect("it starts");
    gate.shut_for(harness.place(handle.id()).log());
    let mut watch = handle.watch().await.expect("it runs");
    let (first, second) = tokio::join!(handle.request(Input::Prompt("first".into())), async {
        // In the inbox behind the prompt; the gate opens when both are sent.
        let second = handle.request(Input::FollowUp("second".into()));
        tokio::join!(second, async { gate.open() }).0
    },);
    assert_eq!(first.expect("accepted").turn, Some(1));
    let second = second.expect("accepted");
    assert!(second.queued.is_some() || second.turn == Some(2), "{second:?}");
    let mut said = Vec::new();
    while said.len() < 2 {
        if let Some(Event::Recorded(entry)) = watch.next().await
            && let Fact::UserMessage(it) = &entry.fact
        {
            said.push(it.text.clone());
        }
    }
    assert_eq!(said, ["first", "second"]);
}
