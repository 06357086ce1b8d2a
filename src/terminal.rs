//! Launches the terminal Presenter, and prints the answer and the resume command when it ends.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pixir_core::event::SessionId;
use pixir_core::layers::Settings;
use pixir_core::provider::{Connector, Waits, demo};
use pixir_core::{Code, Error, Harness, ProjectFile, Remedy, Result, edit};
use pixir_ui::{
    Check, Clipboards, ComposerKeys, ComposerOptions, Connect, Demo, ExitSummary, ExportFormat, Launch, LookOptions,
    Motion, MouseOwner, Program, ReplayOptions, SavePlace, ScreenMode, ScreenOptions, SettingsStore, Start,
};

use crate::cli::{Attendance, Cli, block_on_apart};
use crate::commands::demo::Audience;
use crate::commands::doctor;
use crate::commands::sessions::export;
use crate::open::Open;
use crate::output::{chatter, clean};

mod look; // what the terminal can show

use look::is_set;
pub(crate) use look::{background, depth, is_coloured, theme};

/// The settings of the interface, in the user's file and the project's.
struct SettingsFiles(Cli);

impl SettingsStore for SettingsFiles {
    fn read(&self) -> Result<Settings> {
        self.0.all_settings()
    }

    fn save(&self, key: &str, value: &str, place: SavePlace) -> Result<PathBuf> {
        match place {
            SavePlace::User => {
                let path = self.0.user_config()?;
                edit::Change::of(&path, key, value)?.write()?;
                Ok(path)
            }
            SavePlace::Project => ProjectFile::set(&self.0.workspace()?, &self.0.store()?, key, value),
        }
    }

    fn unset(&self, key: &str, place: SavePlace) -> Result<PathBuf> {
        match place {
            SavePlace::User => {
                let path = self.0.user_config()?;
                edit::Change::without(&path, key)?.write()?;
                Ok(path)
            }
            SavePlace::Project => ProjectFile::unset(&self.0.workspace()?, &self.0.store()?, key),
        }
    }
}

/// Whether stdin and stdout are a terminal that can move its cursor.
pub(crate) fn is_possible(cli: &Cli) -> bool {
    let draws = !matches!(cli.environment.variable("TERM"), None | Some("" | "dumb"));
    draws && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Everything that the interface needs to start.
pub(crate) fn launch(cli: &Cli, open: &Open, prompt: Option<String>) -> Result<Launch> {
    let cli = &Cli { waits: Some(Waits::default()), ..cli.clone() };
    let workspace = cli.workspace()?;
    let (context, open, folder) = (cli.clone(), open.clone(), workspace.clone());
    let config = cli.config()?;
    let connector = Connector::new(config.clone(), cli.environment.clone());
    Ok(Launch {
        workspace,
        look: LookOptions {
            theme: theme(cli)?,
            themes_folder: cli.themes_folder(),
            depth: depth(cli),
            background: background(cli),
            notifications: config.screen.notifications.unwrap_or(true),
            motion: if config.screen.motion.unwrap_or(true) && !is_set(cli, "PIXIR_REDUCED_MOTION") {
                Motion::Full
            } else {
                Motion::Reduced
            },
        },
        screen: ScreenOptions {
            mode: if config.screen.reader || is_set(cli, "PIXIR_SCREEN_READER") {
                ScreenMode::ScreenReader
            } else if cli.options.inline || config.screen.inline {
                ScreenMode::Inline
            } else {
                ScreenMode::Whole
            },
            mouse: if config.screen.mouse.unwrap_or(true) { MouseOwner::Pixir } else { MouseOwner::Terminal },
        },
        composer: ComposerOptions {
            keys: if config.screen.vim { ComposerKeys::Vim } else { ComposerKeys::Standard },
            editor: cli
                .environment
                .variable("VISUAL")
                .or_else(|| cli.environment.variable("EDITOR"))
                .unwrap_or("vi")
                .to_owned(),
        },
        keys: config.keys(),
        clipboards: Clipboards::of(|name| cli.environment.variable(name).is_some()),
        start: Start { skill: cli.options.skill.clone(), prompt, ..Start::default() },
        settings: Arc::new(SettingsFiles(cli.clone())),
        connector: Some(Arc::new(connector)),
        demo: Demo { program: std::env::current_exe().ok(), pace: None },
        connect: Arc::new(move || {
            let (context, folder) = (context.clone(), folder.clone());
            Box::pin(async move { context.harness(&folder, Attendance::Attended).await })
        }),
        open: Box::new(move |harness| open.open_attended(harness)),
        program: program(cli),
    })
}

/// What this program does for the interface.
fn program(cli: &Cli) -> Program {
    let context = cli.clone();
    let examine = move || -> BoxFuture<'static, Vec<Check>> {
        let cli = context.clone();
        Box::pin(async move { doctor::checks(&cli).await })
    };
    let write = |harness: &Harness, id: &SessionId, format: ExportFormat, file: &Path| {
        export::to_file(harness, &harness.place(id), format, file)
    };
    Program {
        log: Some(cli.log_file()),
        home: cli.environment.variable("HOME").map(PathBuf::from),
        examine: Some(Arc::new(examine)),
        export: Some(Arc::new(write)),
        waits: cli.waits.as_ref().map(Waits::subscribe),
    }
}

/// Opens the terminal interface.
pub(crate) fn run(cli: &Cli, open: &Open, prompt: Option<String>) -> Result<u8> {
    present(launch(cli, open, prompt)?)
}

/// Opens the terminal interface on the list of earlier Sessions. The user who leaves it is in a new one.
pub(crate) fn run_list(cli: &Cli) -> Result<u8> {
    let launch = launch(cli, &Open::New, None)?;
    present(Launch { start: Start { offers_sessions: true, ..launch.start }, ..launch })
}

fn present(launch: Launch) -> Result<u8> {
    let ExitSummary { session, answer, signal } = show(launch)?;
    let resume = session.map(|session| format!("\npixir resume {session}\n")).unwrap_or_default();
    let (painted, plain) = answer.map(|it| (it.painted, it.plain)).unwrap_or_default();
    let is_printed = pixir_ui::print_after(&format!("{painted}{resume}"));
    let text = format!("{plain}{resume}");
    if !is_printed && !text.is_empty() {
        chatter(text.trim_end());
    }
    Ok(signal.map_or(0, |number| 128 + number))
}

/// Everything that the interface needs to start on the demo.
pub(crate) fn demo_launch(cli: &Cli, folder: &Path, audience: Audience) -> Result<Launch> {
    let (harness, pace) = crate::commands::demo::harness(cli, folder, audience)?;
    Ok(Launch {
        workspace: folder.to_owned(),
        start: Start { prompt: Some(demo::PROMPT.into()), ..Start::default() },
        connector: None,
        demo: Demo { program: None, pace: Some(pace) },
        connect: offered(harness),
        open: Box::new(Harness::start),
        ..launch(cli, &Open::New, None)?
    })
}

/// A Harness that is there already.
fn offered(harness: Harness) -> Connect {
    Arc::new(move || {
        let harness = harness.clone();
        Box::pin(async move { Ok(harness) })
    })
}

/// Everything that the interface needs to start on a replay of a Session.
pub(crate) fn replay_launch(cli: &Cli, id: &str, options: ReplayOptions) -> Result<Launch> {
    let (harness, place) = cli.locate(id)?;
    Ok(Launch {
        workspace: harness.workspace().to_owned(),
        start: Start { replay: Some(options), ..Start::default() },
        connector: None,
        connect: offered(harness),
        open: Box::new(move |harness| harness.open_read_only(&place.id)),
        ..launch(cli, &Open::New, None)?
    })
}

/// Opens the terminal interface on a replay of a Session.
pub(crate) fn run_replay(cli: &Cli, id: &str, options: ReplayOptions) -> Result<u8> {
    let ExitSummary { signal, .. } = show(replay_launch(cli, id, options)?)?;
    Ok(signal.map_or(0, |number| 128 + number))
}

/// Opens the terminal interface on the demo.
pub(crate) fn run_demo(cli: &Cli, folder: &Path) -> Result<u8> {
    let ExitSummary { signal, .. } = show(demo_launch(cli, folder, Audience::User)?)?;
    say_after("this was the demo; start pixir in your own folder, and it shows how to connect a model");
    Ok(signal.map_or(0, |number| 128 + number))
}

/// Prints a text on stderr when the interface has ended.
fn say_after(text: &str) {
    if !pixir_ui::print_after(&format!("{}\n", clean(text))) {
        chatter(text);
    }
}

fn show(launch: Launch) -> Result<ExitSummary> {
    let failed = |e: std::io::Error| {
        Error::new(
            Code::CommandFailed,
            format!("the terminal cannot be used: {e}"),
            Remedy::flag("--headless").and_text(" works without one"),
        )
    };
    block_on_apart(|core| async { pixir_ui::run(launch, core).await.map_err(failed)? })
}
