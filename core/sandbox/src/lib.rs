//! The kernel's confinement of every program that a call starts.
//!
//! A program starts through the *launcher*: a small executable beside pixir's, or else pixir's own under that name
//! ([`LAUNCHER`]). The launcher reads a [`Plan`], confines itself, and runs the program. The [`Tier`] is the kernel
//! mechanism that this machine has for it; the [`Policy`] says what the program may see and change.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::sync::{Arc, OnceLock};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::process::Command;

use process::Leader;
use protocol::error::{Code, Error};
use protocol::remedy::Remedy;
use protocol::sandbox::Tier;
use storage::store::SCRATCH;

#[cfg(target_os = "linux")]
mod abilities; // what the strongest tier needs besides
mod cover; // the folder for what a Session writes to caches
#[cfg(target_os = "linux")]
mod enter; // the launcher: confines itself and runs the program
mod executable; // what takes the launcher's part
mod probe; // which tier works here
#[cfg(target_os = "linux")]
mod sockets; // sockets with a path that programs of the machine have opened
mod spelt; // paths in a plan
mod view; // what a policy shows and lets change

#[cfg(target_os = "linux")]
pub use abilities::{Lack, lacks};
pub use view::{Own, Places, is_secret_of_home, leads_through};
use view::{View, Views};

/// The name (argument 0) under which pixir's executable is the launcher, and of the launcher's own executable.
pub const LAUNCHER: &str = "pixir-sandbox";

/// Said on stderr when processes outlived the program.
pub const LEFT_BEHIND: &str = "processes that the command left running were stopped\n";

/// The start of what the launcher says on stderr when it could not start the program.
const NOT_SET_UP: &str = "the sandbox could not be set up";
/// The signal by which the launcher ends itself then.
const STARTS_NOTHING: Signal = Signal::SYS;

/// Takes the launcher's part if this process was started for that, which the arguments of the process tell. Call it first
/// in `main`: without this call, or one of [`launch_through`], nothing confines programs, and pixir asks before it runs any.
pub fn run_as_launcher(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.next().is_none_or(|name| name != LAUNCHER) {
        launch_through(Path::new("/proc/self/exe"));
        return None;
    }
    #[cfg(target_os = "linux")]
    return Some(enter::launch(args));
    #[cfg(not(target_os = "linux"))]
    Some(ExitCode::FAILURE)
}

/// Lets this executable, whose `main` begins with [`run_as_launcher`], take the launcher's part, or the launcher of the
/// same build beside it, which starts faster. The first call counts.
pub fn launch_through(executable: &Path) {
    executable::offer(executable);
}

/// The strongest tier that works on this machine, at most `wish`. What was found is kept in the state folder `home`.
pub fn working_tier(wish: Option<Tier>, home: &Path) -> Tier {
    if executable::is_offered() { probe::tier(wish, home) } else { Tier::None }
}

/// What a program may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// It reads the workspace, the system and the toolchains, and changes nothing.
    #[default]
    Look,
    /// It also changes the workspace, its own temporary folder and the caches of toolchains.
    Work,
    /// As [`Policy::Work`], with the network.
    Network,
    /// It is not confined.
    Outside,
}

/// What the launcher does: it is written by pixir and read by the launcher.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    tier: Tier,
    /// The process that the program must not outlive.
    owner: i32,
    network: Network,
    /// Jobs of the same Session: the program shares the loopback network of the first one that lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<Leader>,
    /// The program is such a job, so other commands may join its network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_joined: bool,
    /// A group shares the workspace: its folders hand their group on to what is created in them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_of_group: bool,
    /// The program is not confined; it is only ended with its owner.
    outside: bool,
    #[serde(flatten)]
    view: View,
    /// Where the program starts.
    #[serde(with = "spelt::one")]
    folder: PathBuf,
}

/// Which network a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Network {
    /// None: it opens no socket. To make a network for each program that only looks would take a quarter of its start.
    Nothing,
    /// A loopback of its own, or that of a job of its Session. Where there are no namespaces, none.
    Own,
    /// The machine's.
    Machine,
}

/// Starts programs under the tier of this machine. Clones share what was found out about it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The strongest tier that the user wants.
    wish: Option<Tier>,
    /// Found when it is first needed, because commands that run no program do not pay for it.
    tier: Arc<OnceLock<Tier>>,
    places: Arc<Places>,
    /// Found with the first program, because the first frame does not wait for it.
    views: Arc<OnceLock<Views>>,
    covers: Arc<cover::Folders>,
    #[cfg(target_os = "linux")]
    sockets: Arc<sockets::Sockets>,
}

impl Sandbox {
    /// The strongest tier that works here, at most `wish`, for programs of this workspace.
    pub fn new(wish: Option<Tier>, places: Places) -> Sandbox {
        Sandbox {
            wish,
            tier: Arc::default(),
            places: Arc::new(places),
            views: Arc::default(),
            covers: Arc::default(),
            #[cfg(target_os = "linux")]
            sockets: Arc::default(),
        }
    }

    /// The means of confinement.
    pub fn tier(&self) -> Tier {
        *self.tier.get_or_init(|| working_tier(self.wish, &self.places.home))
    }

    /// Whether the kernel confines programs here, so that some may run unasked.
    pub fn confines(&self) -> bool {
        self.tier() != Tier::None
    }

    /// Names of the user's variables that programs do not get.
    pub fn withheld(&self) -> &[String] {
        &self.places.withheld
    }

    /// Whether a path without symlinks may hold secrets: pixir's own files, keys, what processes have in memory.
    pub fn is_secret(&self, path: &Path) -> bool {
        self.views.get_or_init(|| Views::new(&self.places)).is_secret(path)
    }

    /// Whether a program that works sees this path of the machine, apart from the workspace and what belongs to its Session.
    pub fn shows(&self, path: &Path) -> bool {
        self.views.get_or_init(|| Views::new(&self.places)).shows(path)
    }

    /// Whether programs may see this folder outside the workspace, which the user has added.
    pub fn may_add(&self, folder: &Path) -> bool {
        self.views.get_or_init(|| Views::new(&self.places)).may_add(folder)
    }

    /// Sources that everybody can have, which a command that only reads may read. The paths exist.
    pub fn sources(&self) -> &[PathBuf] {
        self.views.get_or_init(|| Views::new(&self.places)).sources()
    }

    /// The files and folders that are known to hold secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &Path> {
        self.views.get_or_init(|| Views::new(&self.places)).secrets()
    }

    /// The error of a program that never ran, because the sandbox could not be set up; `None` for every other end. Of what
    /// was printed then, every byte is the launcher's.
    ///
    /// What is known about this machine is forgotten, so that the next look finds what works now.
    pub fn fault(&self, ended: ExitStatus, stderr: &[u8]) -> Option<Error> {
        if executable::chosen().is_none() || ended.signal() != Some(STARTS_NOTHING.as_raw()) {
            return None;
        }
        probe::forget(&self.places.home);
        let said = String::from_utf8_lossy(stderr);
        let why = said.lines().find_map(|line| line.strip_prefix(NOT_SET_UP)).unwrap_or_default();
        let remedy = Remedy::steps([Remedy::CheckSetup, Remedy::NewSession]);
        let error = Error::new(Code::SandboxFailed, format!("{NOT_SET_UP}{why}; the command did not run"), remedy);
        Some(error.with("sandbox", self.tier().name()))
    }

    /// The folder for temporary files of calls outside a Session, where a program cannot have one of its own.
    pub fn shared_scratch(&self) -> Option<PathBuf> {
        (self.tier() == Tier::Landlock).then(|| self.places.home.join(SCRATCH))
    }

    /// What a program of this policy sees. Sockets of the machine are hidden from those that may open sockets themselves.
    fn view(&self, policy: Policy, own: &Own) -> View {
        let mut view = self.views.get_or_init(|| Views::new(&self.places)).of(policy, own);
        let writes = self.tier() == Tier::Namespaces && matches!(policy, Policy::Work | Policy::Network);
        // Without the folder, what a command writes to a cache lasts as long as the command.
        view.cover = view.cover.filter(|folder| !writes || self.covers.make(folder).is_ok());
        #[cfg(target_os = "linux")]
        if writes {
            view.hide.extend(self.sockets.in_view(&view));
        }
        view
    }

    /// The command that runs a program in this folder, in a session of its own and without pixir's terminal.
    pub fn command(&self, policy: Policy, program: &str, args: &[String], folder: &Path, own: &Own) -> Command {
        // The tier is known only once the executable is chosen.
        let tier = self.tier();
        let Some(executable) = executable::chosen() else {
            let mut command = process::program(program, args);
            command.current_dir(folder);
            return command;
        };
        let view = self.view(policy, own);
        let plan = Plan {
            tier,
            owner: i32::try_from(std::process::id()).unwrap_or_default(),
            network: match policy {
                Policy::Look => Network::Nothing,
                Policy::Work => Network::Own,
                Policy::Network | Policy::Outside => Network::Machine,
            },
            jobs: own.jobs.clone(),
            is_joined: own.is_joined,
            is_of_group: std::iter::once(&own.workspace).chain(&own.folders).any(|it| view::is_of_group(it)),
            outside: policy == Policy::Outside || tier == Tier::None,
            view,
            folder: folder.to_owned(),
        };
        let plan = serde_json::to_string(&plan).unwrap_or_default();
        let mut command = Command::new(executable);
        command.arg0(LAUNCHER).arg(plan).arg(program).args(args);
        command
    }
}
