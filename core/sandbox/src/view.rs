//! What a policy shows of the file system, and what it lets change.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Policy, spelt};
use process::Leader;

mod folders; // where programs, caches, sources and secrets are

use folders::{
    BESIDE_KNOWN_PROGRAMS, BESIDE_PROGRAMS, CACHES, KEPT_CACHES, OF_DATA, SECRETS, SECRETS_OF_ALL,
    SECRETS_WITH_PASSWORD, SOURCES, SOURCES_OF_HOME, SOURCES_OF_VARIABLES, SYSTEM, SYSTEM_SECRETS, TOOLCHAINS,
    VARIABLES,
};

/// The bit of a folder's mode by which everything in it has its group.
const SET_GROUP: u32 = 0o2000;
/// The folder beside the covers in which the kernel prepares their files.
pub(crate) const WORK: &str = "work";

/// Folders and variables around pixir.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The workspace. What a command put there leads to nothing else.
    pub workspace: PathBuf,
    /// Other names of the workspace, by which the user may call its files.
    pub aliases: Vec<PathBuf>,
    /// pixir's state folder.
    pub home: PathBuf,
    /// The folder of the user's settings.
    pub user_folder: Option<PathBuf>,
    /// The environment of programs.
    pub environment: Vec<(String, String)>,
    /// Names of the user's other variables, which programs do not get.
    pub withheld: Vec<String>,
}

/// What belongs to one Session or call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// The workspace.
    pub workspace: PathBuf,
    /// The folder of saved outputs, to read.
    pub outputs: Option<PathBuf>,
    /// The folder that programs see as `/tmp`.
    pub scratch: Option<PathBuf>,
    /// The folder for what programs write to caches.
    pub cover: Option<PathBuf>,
    /// Paths in the workspace that no program changes.
    pub protected: Vec<PathBuf>,
    /// Folders of git outside the workspace: to read, and for work to change.
    pub git: Vec<PathBuf>,
    /// The repository around the workspace, to read: git compares all of it.
    pub beside: Vec<PathBuf>,
    /// Folders outside the workspace that the user has added, to read.
    pub added: Vec<PathBuf>,
    /// Those that work changes as it changes the workspace.
    pub folders: Vec<PathBuf>,
    /// Jobs of the Session whose loopback network is shared.
    pub jobs: Vec<Leader>,
    /// The program is a job.
    pub is_job: bool,
    /// It is one whose network is shared.
    pub is_joined: bool,
}

/// What a program sees of the file system. Paths exist, are absolute and have no symlink in them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct View {
    /// To read.
    #[serde(with = "spelt::all")]
    pub show: Vec<PathBuf>,
    /// To read and change.
    #[serde(with = "spelt::all")]
    pub change: Vec<PathBuf>,
    /// To read, and to change in a cover of the Session.
    #[serde(with = "spelt::all")]
    pub caches: Vec<PathBuf>,
    /// Neither, although a folder above it is shown.
    #[serde(with = "spelt::all")]
    pub hide: Vec<PathBuf>,
    /// To read only, although a folder above it may be changed.
    #[serde(with = "spelt::all")]
    pub keep: Vec<PathBuf>,
    /// Folders that exist for the program alone and are empty at first. They need not exist.
    #[serde(with = "spelt::all")]
    pub empty: Vec<PathBuf>,
    /// Names that lead to a shown path.
    #[serde(with = "spelt::pairs")]
    pub links: Vec<(PathBuf, PathBuf)>,
    /// The folder that programs see as `/tmp`.
    #[serde(with = "spelt::maybe")]
    pub scratch: Option<PathBuf>,
    /// The folder of that cover; without it a cover lasts as long as the program.
    #[serde(with = "spelt::maybe")]
    pub cover: Option<PathBuf>,
    /// The home folder, in which most caches lie.
    #[serde(with = "spelt::maybe")]
    pub home: Option<PathBuf>,
    /// The program is a job: it runs beside commands, which write to that cover.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_job: bool,
}

/// What a program may do with a path and what is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Show,
    Change,
    /// To change for the Session alone.
    Cache,
    Hide,
}

/// The parts of views that are the same for every command, found once.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Of the system and of known toolchains.
    fixed: BTreeSet<PathBuf>,
    /// Named by variables.
    named: BTreeSet<PathBuf>,
    links: Vec<(PathBuf, PathBuf)>,
    caches: BTreeSet<PathBuf>,
    empty: Vec<PathBuf>,
    secrets: BTreeSet<PathBuf>,
    /// The home folder, without symlinks.
    home: Option<PathBuf>,
    /// What everybody can have, to read.
    sources: Vec<PathBuf>,
}

impl Views {
    pub(crate) fn new(places: &Places) -> Views {
        let variable = |name: &str| {
            let found = places.environment.iter().find(|(it, value)| it == name && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let home = variable("HOME").filter(|home| home.is_absolute() && home.parent().is_some());
        let mut views = Views { home: home.as_ref().and_then(|home| home.canonicalize().ok()), ..Views::default() };
        let changed = changed_by_programs(places, home.as_deref(), &variable);
        let is_kept_apart = |path: &Path, real: &Path| !is_led_astray(path, real, &places.workspace, &changed);
        let real = |path: &Path, links: &mut Vec<(PathBuf, PathBuf)>| {
            let known = links.len();
            let found = real(path, links).filter(|found| is_kept_apart(path, found));
            if found.is_none() {
                links.truncate(known);
            }
            found
        };
        let source = |path: &Path| there(path).filter(|found| is_kept_apart(path, found));
        for path in SYSTEM {
            views.fixed.extend(real(Path::new(path), &mut views.links));
        }
        for (name, is_cache) in VARIABLES {
            let named = variable(name).filter(|path| !holds_more_than_programs(path, views.home.as_deref()));
            let Some(found) = named.and_then(|path| real(&path, &mut views.links)) else { continue };
            let of_packages = SOURCES_OF_VARIABLES.iter().filter(|(of, _)| *of == name);
            views.sources.extend(of_packages.filter_map(|(_, below)| source(&found.join(below))));
            if is_cache { &mut views.caches } else { &mut views.named }.insert(found);
        }
        if let Some(home) = &home {
            for name in TOOLCHAINS {
                views.fixed.extend(real(&home.join(name), &mut views.links));
            }
            for name in CACHES {
                let path = home.join(name);
                match real(&path, &mut views.links).filter(|_| name != ".cache") {
                    Some(found) => views.caches.insert(found),
                    None => {
                        views.empty.push(path);
                        continue;
                    }
                };
            }
            for name in KEPT_CACHES {
                views.caches.extend(real(&home.join(".cache").join(name), &mut views.links));
            }
            views.secrets.extend(SECRETS.iter().filter_map(|name| there(&home.join(name))));
            let with_password = SECRETS_WITH_PASSWORD.iter().filter_map(|name| there(&home.join(name)));
            views.secrets.extend(with_password.filter(|path| sets_password(path)));
        }
        views.sources.extend(SOURCES.iter().map(PathBuf::from).filter(|path| path.exists()));
        let of_home = home.iter().flat_map(|home| SOURCES_OF_HOME.iter().filter_map(|name| source(&home.join(name))));
        views.sources.extend(of_home);
        let path = variable("PATH").unwrap_or_default();
        for folder in std::env::split_paths(&path).filter(|it| it.is_absolute()) {
            for path in of_programs(&folder, views.home.as_deref()) {
                views.named.extend(real(&path, &mut views.links));
            }
        }
        for shown in views.named.iter().chain(&views.caches) {
            views.secrets.extend(SECRETS_OF_ALL.iter().filter_map(|name| there(&shown.join(name))));
        }
        if rustix::process::geteuid().is_root() {
            views.secrets.extend(SYSTEM_SECRETS.iter().filter_map(|path| there(Path::new(path))));
        }
        for path in [Some(&places.home), places.user_folder.as_ref()].into_iter().flatten() {
            // They may not exist yet; no program may create them either.
            views.secrets.insert(path.canonicalize().unwrap_or_else(|_| path.components().collect()));
        }
        views.links.extend(places.aliases.iter().map(|alias| (alias.clone(), places.workspace.clone())));
        views.links.sort();
        views.links.dedup();
        views
    }

    /// Whether this path without symlinks may hold secrets, also one that was made after the others were found.
    pub(crate) fn is_secret(&self, path: &Path) -> bool {
        let below_home = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        path.starts_with("/proc")
            || self.secrets.iter().any(|secret| path.starts_with(secret))
            || below_home
                .is_some_and(|path| SECRETS.iter().any(|name| path.starts_with(name)) || is_named_as_secret(path))
            || SYSTEM_SECRETS.iter().any(|name| path.starts_with(name))
            || path.components().any(|part| SECRETS_OF_ALL.iter().any(|name| part.as_os_str() == *name))
    }

    /// Whether a program that works sees this path of the machine, apart from the workspace and what belongs to its Session.
    pub(crate) fn shows(&self, path: &Path) -> bool {
        let is_shown =
            [&self.fixed, &self.named, &self.caches].iter().any(|it| it.iter().any(|it| path.starts_with(it)));
        is_shown && !self.is_secret(path)
    }

    /// Whether a folder that the user has added may be shown to programs: not the home folder or one above it, and nothing
    /// that holds secrets, now or through a symlink that was made since.
    pub(crate) fn may_add(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|real| real == folder)
            && !self.is_secret(folder)
            && !holds_more_than_programs(folder, self.home.as_deref())
    }

    /// Whether a cache is one of the home folder, also where that is the workspace.
    fn is_of_home(&self, cache: &Path) -> bool {
        let below = self.home.as_ref().and_then(|home| cache.strip_prefix(home).ok());
        below.is_some_and(|below| {
            let of_cache = below
                .strip_prefix(".cache")
                .ok()
                .is_some_and(|it| KEPT_CACHES.iter().any(|name| it == Path::new(name)));
            of_cache || CACHES.iter().any(|name| below == Path::new(name))
        })
    }

    /// Sources that everybody can have, which what only reads may read: those of packages, of toolchains and of the system.
    pub(crate) fn sources(&self) -> &[PathBuf] {
        &self.sources
    }

    /// What is known to hold secrets and exists.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Path> {
        self.secrets.iter().map(PathBuf::as_path)
    }

    /// What a program of this policy sees.
    pub(crate) fn of(&self, policy: Policy, own: &Own) -> View {
        let works = policy != Policy::Look;
        // By the bytes of its paths, which have one spelling each: a comparison by components would be most of the work, and
        // every command waits for it.
        let mut all: BTreeMap<OsString, Access> = BTreeMap::new();
        let mut add = |paths: &mut dyn Iterator<Item = &PathBuf>, access| {
            all.extend(paths.map(|path| (path.clone().into_os_string(), access)));
        };
        add(&mut self.fixed.iter(), Access::Show);
        // The workspace has its own environments and programs, which work changes like everything in it.
        let is_elsewhere =
            |it: &&PathBuf| !it.starts_with(&own.workspace) && !own.folders.iter().any(|folder| it.starts_with(folder));
        add(&mut self.named.iter().filter(is_elsewhere), Access::Show);
        // Those of the workspace itself are changed like everything in it.
        let is_of_user = |it: &&PathBuf| is_elsewhere(it) || self.is_of_home(it);
        // What only looks sees a cover that holds something, and without one the folders around the caches show them.
        let is_covered = works || own.cover.as_deref().is_some_and(holds_cover);
        let access = if is_covered { Access::Cache } else { Access::Show };
        add(&mut self.caches.iter().filter(is_of_user), access);
        // What is shown already may be one that work changes.
        let is_new = |it: &&PathBuf| !self.shows(it) && self.may_add(it);
        add(&mut own.added.iter().filter(is_new), Access::Show);
        // A folder that was exchanged since is not shown.
        let folders = || own.folders.iter().filter(|it| self.may_add(it));
        let of_added = own
            .added
            .iter()
            .chain(folders())
            .flat_map(|it| SECRETS_OF_ALL.iter().filter_map(|name| there(&it.join(name))));
        add(&mut of_added.collect::<Vec<_>>().iter(), Access::Hide);
        add(&mut own.beside.iter(), Access::Show);
        add(&mut own.git.iter(), if works { Access::Change } else { Access::Show });
        add(&mut self.secrets.iter(), Access::Hide);
        add(&mut std::iter::once(&own.workspace).chain(folders()), if works { Access::Change } else { Access::Show });
        add(&mut own.outputs.iter().filter(|it| it.exists()), Access::Show);
        if policy == Policy::Network {
            // The list of name servers may be behind a symlink out of /etc.
            add(&mut Path::new("/etc/resolv.conf").canonicalize().iter(), Access::Show);
        }
        let (links, home) = (self.links.clone(), self.home.clone());
        let (scratch, cover) = (own.scratch.clone(), own.cover.clone());
        let mut view = View { links, scratch, cover, home, is_job: own.is_job, ..View::default() };
        if works {
            view.empty.clone_from(&self.empty);
            view.keep.clone_from(&own.protected);
        }
        let above = |path: &Path| path.ancestors().skip(1).find_map(|it| all.get_key_value(it.as_os_str()));
        // A folder on the way to what is hidden could be moved away with it, and shown under its new name. One that is a mount
        // cannot be moved.
        for (path, _) in all.iter().filter(|(_, access)| **access == Access::Hide) {
            if let Some((folder, Access::Change)) = above(Path::new(path)) {
                let on_the_way = Path::new(path).ancestors().skip(1).take_while(|it| it.as_os_str() != folder);
                view.change.extend(on_the_way.map(Path::to_owned));
            }
        }
        view.change.sort();
        view.change.dedup();
        for (path, access) in &all {
            let path = Path::new(path);
            // A path that is shown like the folder above it needs no place of its own.
            let above = above(path).map(|(_, access)| access);
            let wanted = match access {
                Access::Hide => above.is_some_and(|above| *above != Access::Hide),
                Access::Show | Access::Change | Access::Cache => above != Some(access),
            };
            match access {
                _ if !wanted => continue,
                Access::Show => view.show.push(path.to_owned()),
                Access::Change => view.change.push(path.to_owned()),
                Access::Cache => view.caches.push(path.to_owned()),
                Access::Hide => view.hide.push(path.to_owned()),
            }
        }
        view
    }
}

/// Whether everything in a folder has the folder's group, as in a workspace that a group shares.
pub(crate) fn is_of_group(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|it| it.mode() & SET_GROUP != 0)
}

/// Whether a command has written to a cache in this folder of covers.
fn holds_cover(folder: &Path) -> bool {
    let is_filled = |path: PathBuf| path.read_dir().is_ok_and(|mut it| it.next().is_some());
    let covers = folder.read_dir().into_iter().flatten().flatten();
    covers.map(|it| it.path()).any(|path| !path.ends_with(WORK) && is_filled(path))
}

/// Whether a path below a home folder is known to hold secrets.
pub fn is_secret_of_home(path: &Path) -> bool {
    SECRETS.iter().any(|name| path.starts_with(name))
}

/// The folder of programs, and what of the folder around it belongs to them.
fn of_programs(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(real) = folder.canonicalize().ok().filter(|real| !holds_more_than_programs(real, home)) else {
        return Vec::new();
    };
    let mut all = vec![folder.to_owned()];
    let is_one_of_many = real.ends_with("bin") || real.ends_with("shims");
    // What lies beside `~/.local/bin`, `~/bin` and `/tmp/bin` belongs to other programs too.
    let around = real
        .parent()
        .filter(|around| is_one_of_many && !around.ends_with(".local") && !holds_more_than_programs(around, home));
    if let (Some(around), Some(written)) = (around, folder.parent()) {
        let known = BESIDE_KNOWN_PROGRAMS.iter().filter(|(mark, _)| around.join(mark).symlink_metadata().is_ok());
        let names = BESIDE_PROGRAMS.iter().chain(known.flat_map(|(_, names)| *names));
        all.extend(names.map(|name| written.join(name)));
    }
    all
}

/// Whether a folder is, or has in it, the home folder or the folder for temporary files, whatever a variable says.
fn holds_more_than_programs(folder: &Path, home: Option<&Path>) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let others = [Some(Path::new("/tmp")), Some(Path::new("/var/tmp")), home];
    others.into_iter().flatten().any(|it| it.starts_with(&real))
}

/// Whether a file below the home folder is one of those in which programs keep keys, tokens and what was typed.
fn is_named_as_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let extension = Path::new(&name).extension().unwrap_or_default().to_string_lossy().into_owned();
    let stem = name.strip_suffix(&format!(".{extension}")).unwrap_or(&name);
    let is_of_data = OF_DATA.contains(&extension.as_str());
    matches!(name.as_str(), "auth.json" | "hosts.json" | "hosts.yml" | "keys.txt" | "history")
        || matches!(extension.as_str(), "pem" | "p12" | "pfx" | "kdbx" | "keystore" | "jks")
        || (is_of_data && (stem.starts_with("credentials") || stem.ends_with("token") || stem.ends_with("tokens")))
        || (is_of_data && (stem.ends_with("_history") || stem.ends_with("-history")))
        || name.starts_with('.') && name.ends_with("history")
}

/// Whether a file of settings has a line that sets a password. A comment begins with two dashes.
fn sets_password(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default().to_lowercase();
    let names = ["password", "token"];
    text.lines().any(|line| names.iter().any(|name| line.trim_start().starts_with(name)))
}

/// The path without symlinks, if it exists. Most of those that are looked for do not, and one system call tells that.
fn there(path: &Path) -> Option<PathBuf> {
    path.symlink_metadata().ok()?;
    path.canonicalize().ok()
}

/// Whether a path leads through this folder, by any name of it.
pub fn leads_through(path: &Path, folder: &Path) -> bool {
    // Most paths have no symlink, which one look tells.
    if path.starts_with(folder) || path.canonicalize().is_ok_and(|real| real == path) {
        return path.starts_with(folder);
    }
    path.ancestors().any(|it| it.canonicalize().is_ok_and(|real| real.starts_with(folder)))
}

/// Folders that programs change, without symlinks: the workspace and the caches.
fn changed_by_programs(
    places: &Places,
    home: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let of_home = home.into_iter().flat_map(|home| {
        // Of this one, only what is kept is changed.
        let caches = CACHES.iter().filter(|name| **name != ".cache").map(|name| home.join(name));
        caches.chain(KEPT_CACHES.iter().map(|name| home.join(".cache").join(name)))
    });
    let of_variables = VARIABLES.iter().filter(|(_, is_cache)| *is_cache).filter_map(|(name, _)| variable(name));
    let all = of_home.chain(of_variables).filter_map(|path| there(&path));
    std::iter::once(places.workspace.clone()).chain(all).collect()
}

/// Whether a path leads out of the workspace by a symlink that lies where programs change files. A command may have put it
/// there, and what it names would be shown to the commands of the next Session.
fn is_led_astray(path: &Path, real: &Path, workspace: &Path, changed: &[PathBuf]) -> bool {
    let mut path = path.to_owned();
    // As many symlinks as the kernel follows.
    for _ in 0..40 {
        if path == real || real.starts_with(workspace) {
            return false;
        }
        let above: Vec<&Path> = path.ancestors().collect();
        let Some(link) = above.into_iter().rev().find(|it| it.is_symlink()) else { return false };
        let (Some(folder), Ok(target)) = (link.parent().and_then(|it| it.canonicalize().ok()), link.read_link()) else {
            return true;
        };
        if changed.iter().any(|it| folder.starts_with(it)) {
            return true;
        }
        let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
        let next = folder.join(target);
        path = if rest.as_os_str().is_empty() { next } else { next.join(rest) };
    }
    true
}

/// The path without symlinks, if it exists; a name that differs from it becomes a link.
fn real(path: &Path, links: &mut Vec<(PathBuf, PathBuf)>) -> Option<PathBuf> {
    let real = there(path).filter(|it| it.parent().is_some())?;
    if real != path {
        links.push((path.to_owned(), real.clone()));
    }
    Some(real)
}
