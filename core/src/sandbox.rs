//! The kernel's confinement of every program that a call starts.
//!
//! A program starts through the *launcher*: pixir's own executable under another name ([`LAUNCHER`]). It takes a [`Plan`],
//! confines itself by it, and runs the program. Which means it has is the [`Tier`]; what the program may see and change
//! is the [`Policy`].

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use crate::protocol::sandbox::Tier;

#[cfg(target_os = "linux")]
mod enter; // the launcher: confines itself and runs the program
mod probe; // which tier works here
mod view; // what a policy shows and lets change

pub(crate) use view::{Own, Places};
use view::{View, Views};

/// The name (argument 0) under which pixir's executable is the launcher.
const LAUNCHER: &str = "pixir-sandbox";

/// Said on stderr when processes outlived the program.
pub(crate) const LEFT_BEHIND: &str = "processes that the command left running were stopped\n";

/// The `main` of this program takes the launcher's part when it is asked to.
static HAS_DOOR: AtomicBool = AtomicBool::new(false);

/// Takes the launcher's part if this process was started for that. Call it first in `main`: without the call no program is
/// confined, and pixir asks before it runs any.
pub fn enter_if_asked() -> Option<ExitCode> {
    HAS_DOOR.store(true, Ordering::Relaxed);
    let mut args = std::env::args_os();
    if args.next().is_none_or(|name| name != LAUNCHER) {
        return None;
    }
    #[cfg(target_os = "linux")]
    return Some(enter::launch(args));
    #[cfg(not(target_os = "linux"))]
    Some(ExitCode::FAILURE)
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
    /// The program may use the network.
    network: bool,
    /// The program is not confined; it is only ended with its owner.
    outside: bool,
    #[serde(flatten)]
    view: View,
    /// Where the program starts.
    folder: PathBuf,
}

/// Starts programs under the tier of this machine. Clones share what was found out about it.
#[derive(Debug, Clone)]
pub struct Sandbox {
    tier: Tier,
    places: Arc<Places>,
    /// Found with the first program, because the first frame does not wait for it.
    views: Arc<OnceLock<Views>>,
}

impl Sandbox {
    /// The strongest tier that works here, at most `wish`, for programs of this workspace.
    pub(crate) fn new(wish: Option<Tier>, places: Places) -> Sandbox {
        let tier = if HAS_DOOR.load(Ordering::Relaxed) { probe::tier(wish, places.home.as_path()) } else { Tier::None };
        Sandbox { tier, places: Arc::new(places), views: Arc::default() }
    }

    /// The means of confinement.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Whether a program may run unasked under this policy: the kernel confines it.
    pub(crate) fn confines(&self) -> bool {
        self.tier != Tier::None
    }

    /// The command that runs a program in this folder, in a session of its own and without pixir's terminal.
    pub(crate) fn command(&self, policy: Policy, program: &str, args: &[String], folder: &Path, own: &Own) -> Command {
        if !HAS_DOOR.load(Ordering::Relaxed) {
            let mut command = crate::process::program(program, args);
            command.current_dir(folder);
            return command;
        }
        let plan = Plan {
            tier: self.tier,
            owner: i32::try_from(std::process::id()).unwrap_or_default(),
            network: matches!(policy, Policy::Network | Policy::Outside),
            outside: policy == Policy::Outside || self.tier == Tier::None,
            view: self.views.get_or_init(|| Views::new(&self.places)).of(policy, own),
            folder: folder.to_owned(),
        };
        let plan = serde_json::to_string(&plan).unwrap_or_default();
        let mut command = launcher();
        command.arg(plan).arg(program).args(args);
        command
    }
}

fn launcher() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(LAUNCHER);
    command
}
