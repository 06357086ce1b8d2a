//! Which tier works on this machine: found by trying, and kept until the machine starts again.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{LAUNCHER, Network, Plan, View, executable};
use process::between_starts;
use protocol::sandbox::Tier;
use storage::regular;

/// What is noted of the launcher: the executable beside pixir's is of the same build, or there is none of it.
const BESIDE: &str = "launcher beside";
const OWN: &str = "launcher own";

/// The file in the state folder that holds what was found.
fn note(home: &Path) -> PathBuf {
    home.join("sandbox")
}

/// Forgets what was found.
pub(super) fn forget(home: &Path) {
    // Where there is none, there is nothing to forget.
    let _ = fs::remove_file(note(home));
}

/// The strongest tier that works here, at most `wish`. What was found is kept in the state folder.
pub(super) fn tier(wish: Option<Tier>, home: &Path) -> Tier {
    let file = note(home);
    let key = world();
    let known = regular::read_to_string(&file).ok().and_then(|text| {
        let (tier, rest) = text.split_once('\n')?;
        let (launcher, of) = rest.split_once('\n')?;
        Tier::parse(tier).ok().filter(|_| of == key).map(|tier| (tier, launcher == BESIDE))
    });
    let is_beside = executable::choose(known.map(|(_, is_beside)| is_beside));
    let strongest = known.map(|(tier, _)| tier).unwrap_or_else(|| {
        let found = Tier::ALL.into_iter().find(|tier| works(*tier)).unwrap_or(Tier::None);
        keep(&file, &format!("{}\n{}\n{key}", found.name(), if is_beside { BESIDE } else { OWN }));
        found
    });
    match wish {
        None => strongest,
        // A weaker one than the strongest may still not work.
        Some(wish) => Tier::ALL
            .into_iter()
            .skip_while(|tier| *tier != wish)
            .find(|tier| *tier == strongest || works(*tier))
            .unwrap_or(Tier::None),
    }
}

/// Whether the launcher can confine a program by these means.
pub(super) fn works(tier: Tier) -> bool {
    if tier == Tier::None {
        return true;
    }
    let view = View { show: vec!["/usr".into()], ..View::default() };
    let owner = i32::try_from(std::process::id()).unwrap_or_default();
    let folder = "/".into();
    let plan = Plan {
        tier,
        owner,
        network: Network::Own,
        jobs: Vec::new(),
        is_joined: false,
        is_of_group: false,
        outside: false,
        view,
        folder,
    };
    let Ok(plan) = serde_json::to_string(&plan) else { return false };
    let Some(executable) = executable::chosen() else { return false };
    let mut command = Command::new(executable);
    let command = std::os::unix::process::CommandExt::arg0(&mut command, LAUNCHER).arg(plan).arg("");
    let quiet = command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = between_starts(|| quiet.spawn());
    child.and_then(|mut child| child.wait()).is_ok_and(|status| status.success())
}

/// What the answer depends on: this start of the machine, the namespaces and the user, and this build.
fn world() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let link = |path: &str| fs::read_link(path).map(|it| it.display().to_string()).unwrap_or_default();
    let status = read("/proc/self/status");
    let limits: Vec<&str> =
        status.lines().filter(|line| line.starts_with("Seccomp:") || line.starts_with("NoNewPrivs:")).collect();
    [
        read("/proc/sys/kernel/random/boot_id"),
        link("/proc/self/ns/user"),
        link("/proc/self/ns/mnt"),
        rustix::process::geteuid().as_raw().to_string(),
        limits.join(" "),
        executable::identity(),
    ]
    .join("\n")
}

fn keep(file: &Path, text: &str) {
    let written = file
        .parent()
        .map_or(Ok(()), |folder| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder))
        .and_then(|()| {
            // A FIFO of this name would be waited for.
            let no_wait = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
            fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(no_wait)
                .open(file)?
                .write_all(text.as_bytes())
        });
    if let Err(e) = written {
        tracing::warn!("the sandbox of this machine was not noted: {e}");
    }
}
