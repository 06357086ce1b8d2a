//! From arguments and environment to a Harness; the only place that reads the environment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pixir_core::config::{Config, Surroundings};
use pixir_core::event::{Mode, SessionId, Toolset};
use pixir_core::harness::{Beginning, Harness};
use pixir_core::input::SettingsChange;
use pixir_core::provider::choose::{Providers, Wishes};
use pixir_core::provider::demo;
use pixir_core::provider::models::Effort;
use pixir_core::session::{Limits, Options};
use pixir_core::store::Place;
use pixir_core::{Code, Error, Result, log};
use tracing_appender::rolling::{self, RollingFileAppender, RollingWriter};
use tracing_subscriber::fmt::MakeWriter;

use crate::args::RunOptions;
use crate::output::Output;

/// What the environment says, and where things are.
pub(crate) fn surroundings() -> Surroundings {
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut around = Surroundings { environment, ..Surroundings::default() };
    let folder = |own: &str, xdg: &str, below: &str| {
        around.variable(own).map(PathBuf::from).or_else(|| {
            let base = around.variable(xdg).map(PathBuf::from);
            Some(base.or_else(|| Some(Path::new(around.variable("HOME")?).join(below)))?.join("pixir"))
        })
    };
    let home =
        folder("PIXIR_HOME", "XDG_STATE_HOME", ".local/state").unwrap_or_else(|| std::env::temp_dir().join("pixir"));
    let user_folder = folder("PIXIR_CONFIG_HOME", "XDG_CONFIG_HOME", ".config");
    around.home = home;
    around.user_folder = user_folder;
    around
}

/// The person's configuration file.
pub(crate) fn config_path(around: &Surroundings) -> Option<PathBuf> {
    around.user_folder.as_ref().map(|folder| folder.join("config.toml"))
}

pub(crate) fn config(around: &Surroundings) -> Result<Config> {
    config_path(around).map_or_else(|| Ok(Config::default()), |path| Config::load(&path))
}

/// The folder to work in.
pub(crate) fn workspace(run: &RunOptions) -> Result<PathBuf> {
    match &run.workspace {
        Some(folder) => Ok(folder.clone()),
        None => std::env::current_dir().map_err(|e| {
            Error::new(
                Code::NotFound,
                format!("the current folder is gone: {e}"),
                "cd to an existing folder, or --workspace DIR",
            )
        }),
    }
}

/// Who can be asked, when a call needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A person at the screen.
    Person,
    /// Nobody.
    Nobody,
}

/// Finds Providers and puts everything together.
pub(crate) async fn harness(
    run: &RunOptions,
    around: &Surroundings,
    workspace: &Path,
    asker: Asker,
) -> Result<Harness> {
    let config = config(around)?;
    let mut providers = Providers::find(&wishes(run), &config, around).await?;
    record(run, &mut providers)?;

    assemble(run, around, workspace, asker, &config, Arc::new(providers))
}

/// Lets what models say be written down, where that was asked for.
pub(crate) fn record(run: &RunOptions, providers: &mut Providers) -> Result<()> {
    run.record.as_ref().map_or(Ok(()), |path| providers.record(path))
}

/// What the command line says of Provider and model.
pub(crate) fn wishes(run: &RunOptions) -> Wishes {
    Wishes {
        provider: run.provider.clone(),
        model: run.model.clone(),
        dialect: run.dialect.clone(),
        base_url: run.base_url.clone(),
    }
}

/// For what needs no Provider: lists, and single tools.
pub(crate) fn offline(run: &RunOptions, around: &Surroundings) -> Result<Harness> {
    let providers = Providers::only("demo", demo::MODEL, Arc::new(demo::Unconnected));
    assemble(run, around, &workspace(run)?, Asker::Nobody, &Config::default(), Arc::new(providers))
}

/// A Session of this workspace.
pub(crate) fn here(run: &RunOptions, around: &Surroundings, id: &str) -> Result<SessionId> {
    let harness = offline(run, around)?;
    let place = harness.find(id)?;
    if place == harness.place(&place.id) {
        return Ok(place.id);
    }
    let folder = place.summary().map_or(String::new(), |it| it.workspace);
    Err(Error::new(
        Code::SessionNotFound,
        format!("that session works in another folder: {folder}"),
        if Path::new(&folder).is_dir() {
            format!("pixir resume {} --workspace {folder}", place.id)
        } else {
            format!("pixir sessions move {}  # that folder is gone; this one takes its place", place.id)
        },
    )
    .with("workspace", folder))
}

/// A Session, and the workspace that it works in, which may be another than the one we are in.
pub(crate) fn visit(run: &RunOptions, around: &Surroundings, id: &str) -> Result<(Harness, Place)> {
    let harness = offline(run, around)?;
    let place = harness.find(id)?;
    if place == harness.place(&place.id) {
        return Ok((harness, place));
    }
    let folder = place.summary().map(|it| PathBuf::from(it.workspace));
    let there = RunOptions { workspace: folder, ..run.clone() };
    Ok((offline(&there, around)?, place))
}

/// The same with given Providers.
pub(crate) fn assemble(
    run: &RunOptions,
    around: &Surroundings,
    workspace: &Path,
    asker: Asker,
    config: &Config,
    providers: Arc<Providers>,
) -> Result<Harness> {
    let options = Options {
        limits: Limits {
            max_rounds: run.max_rounds,
            deadline: run.deadline.map(Duration::from_secs),
            ..Limits::default()
        },
        dry_run: run.dry_run,
        can_ask: asker == Asker::Person && !run.no_input,
    };
    let beginning = Beginning {
        mode: mode(run, config, asker)?,
        toolset: toolset(run, config)?.unwrap_or_default(),
        effort: effort(run)?.or_else(|| config.effort.clone()),
        resumed: resumed(run, config, asker, &providers)?,
    };
    Harness::new(workspace, around, providers, options, beginning)
}

/// Asking is the default where somebody can answer, and only reading where nobody can.
fn mode(run: &RunOptions, config: &Config, asker: Asker) -> Result<Mode> {
    match (run.write, run.mode.as_deref().or(config.mode.as_deref()), asker) {
        (true, _, _) => Ok(Mode::Auto),
        (false, Some(name), _) => Mode::parse(name),
        (false, None, Asker::Person) => Ok(Mode::Ask),
        (false, None, Asker::Nobody) => Ok(Mode::ReadOnly),
    }
}

fn effort(run: &RunOptions) -> Result<Option<String>> {
    let effort = run.effort.as_deref().map(Effort::parse).transpose()?;
    Ok(effort.map(|it| it.name().to_owned()))
}

fn toolset(run: &RunOptions, config: &Config) -> Result<Option<Toolset>> {
    run.toolset.as_deref().or(config.toolset.as_deref()).map(Toolset::parse).transpose()
}

/// A resumed Session stays as it was, but for what this command line says, and what is safe where nobody can be asked.
fn resumed(run: &RunOptions, config: &Config, asker: Asker, providers: &Providers) -> Result<SettingsChange> {
    let says_who = run.model.is_some() || run.provider.is_some() || run.base_url.is_some();
    let says_mode = run.write || run.mode.is_some() || asker == Asker::Nobody;
    Ok(SettingsChange {
        provider: says_who.then(|| providers.provider.clone()),
        model: says_who.then(|| providers.model.clone()),
        effort: effort(run)?,
        mode: if says_mode { Some(mode(run, config, asker)?) } else { None },
        toolset: toolset(run, &Config::default())?,
        name: None,
        workspace: None,
    })
}

/// The entries of a Session's Log; when some are damaged, that is said beside whatever is made of the rest.
pub(crate) fn entries(place: &Place, output: &Output) -> Result<Vec<Arc<pixir_core::Entry>>> {
    let contents = log::read(&place.log())?;
    if let Some(damage) = contents.damage.first() {
        output.aside(&format!(
            "note: line {} of this session's log is damaged ({}); pixir sessions repair {} --dry-run",
            damage.line, damage.reason, place.id
        ));
    }
    Ok(contents.entries)
}

/// Sends diagnostics to `$PIXIR_HOME/log/pixir.log.<date>`; `PIXIR_LOG` sets how much. The file is made when there is something to say.
pub(crate) fn diagnostics(around: &Surroundings) {
    let filter = around.variable("PIXIR_LOG").unwrap_or("warn");
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(LazyFile { folder: around.home.join("log"), appender: OnceLock::new() })
        .finish();
    // Err: a test of this process has set one already.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct LazyFile {
    folder: PathBuf,
    appender: OnceLock<RollingFileAppender>,
}

impl<'a> MakeWriter<'a> for LazyFile {
    type Writer = RollingWriter<'a>;

    fn make_writer(&'a self) -> RollingWriter<'a> {
        self.appender.get_or_init(|| rolling::daily(&self.folder, "pixir.log")).make_writer()
    }
}
