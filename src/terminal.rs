//! The terminal Presenter, launched; what it leaves on the main screen when it ends.

use std::io::IsTerminal as _;
use std::path::Path;

use pixir_core::config::Surroundings;
use pixir_core::event::SessionId;
use pixir_core::harness::Harness;
use pixir_core::provider::demo;
use pixir_core::session::Handle;
use pixir_core::{Code, Error, Result};
use pixir_ui::theme::{Background, Depth};
use pixir_ui::{
    Clipboards, ComposerKeys, ComposerOptions, ExitSummary, Launch, LookOptions, Motion, MouseOwner, ReplayOptions,
    ScreenMode, ScreenOptions, Start,
};

use crate::args::RunOptions;
use crate::cli::{self, Asker};
use crate::output::chatter;

/// Which Session to begin with.
#[derive(Debug, Clone)]
pub(crate) enum Open {
    New,
    Latest,
    Resume(SessionId),
    /// Only to look at.
    LookLatest,
    Look(SessionId),
}

impl Open {
    pub(crate) fn read_only(self) -> Open {
        match self {
            Open::Latest => Open::LookLatest,
            Open::Resume(id) => Open::Look(id),
            Open::New | Open::LookLatest | Open::Look(_) => self,
        }
    }

    pub(crate) fn is_resumed(&self) -> bool {
        match self {
            Open::New => false,
            Open::Latest | Open::Resume(_) | Open::LookLatest | Open::Look(_) => true,
        }
    }

    /// Opens it.
    pub(crate) fn open(&self, harness: &Harness) -> Result<Handle> {
        match self {
            Open::New => harness.start(),
            Open::Latest => harness.resume(&harness.latest()?),
            Open::Resume(id) => harness.resume(id),
            Open::LookLatest => harness.open_read_only(&harness.latest()?),
            Open::Look(id) => harness.open_read_only(id),
        }
    }
}

/// There is a screen to draw on and a keyboard to read.
pub(crate) fn is_possible(around: &Surroundings) -> bool {
    let draws = !matches!(around.variable("TERM"), None | Some("" | "dumb"));
    draws && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Everything that the interface starts with.
pub(crate) fn launch(run: &RunOptions, around: &Surroundings, open: Open, prompt: Option<String>) -> Result<Launch> {
    let workspace = cli::workspace(run)?;
    let (wanted, surroundings, folder) = (run.clone(), around.clone(), workspace.clone());
    let config = cli::config(around)?;
    Ok(Launch {
        workspace,
        look: LookOptions {
            theme: theme(run, around)?,
            themes_folder: around.user_folder.as_ref().map(|folder| folder.join("themes")),
            depth: depth(around),
            background: background(around),
            motion: if config.screen.motion.unwrap_or(true) && !is_set(around, "PIXIR_REDUCED_MOTION") {
                Motion::Full
            } else {
                Motion::Reduced
            },
        },
        screen: ScreenOptions {
            mode: if config.screen.reader || is_set(around, "PIXIR_SCREEN_READER") {
                ScreenMode::ScreenReader
            } else if run.inline || config.screen.inline {
                ScreenMode::Inline
            } else {
                ScreenMode::Whole
            },
            mouse: if config.screen.mouse.unwrap_or(true) { MouseOwner::Pixir } else { MouseOwner::Terminal },
        },
        composer: ComposerOptions {
            keys: if config.screen.vim { ComposerKeys::Vim } else { ComposerKeys::Standard },
            editor: around.variable("VISUAL").or_else(|| around.variable("EDITOR")).unwrap_or("vi").to_owned(),
        },
        keys: config.keys(),
        clipboards: Clipboards::of(|name| around.variable(name).is_some()),
        start: Start { skill: run.skill.clone(), prompt, replay: None },
        connect: Box::new(move || {
            Box::pin(async move { cli::harness(&wanted, &surroundings, &folder, Asker::Person).await })
        }),
        open: Box::new(move |harness| open.open(harness)),
    })
}

/// Opens the terminal interface.
pub(crate) fn run(run: &RunOptions, around: &Surroundings, open: Open, prompt: Option<String>) -> Result<u8> {
    let ExitSummary { session, answer, signal } = show(launch(run, around, open, prompt)?)?;
    if let Some(answer) = answer {
        chatter(answer.trim_end());
    }
    if let Some(session) = session {
        chatter(&format!("\npixir resume {session}"));
    }
    Ok(signal.map_or(0, |number| 128 + number))
}

/// The same on the demo.
pub(crate) fn demo_launch(run: &RunOptions, around: &Surroundings, folder: &Path) -> Result<Launch> {
    let harness = crate::commands::demo::harness(run, around, folder, demo::script())?;
    Ok(Launch {
        workspace: folder.to_owned(),
        start: Start { prompt: Some(demo::PROMPT.into()), ..Start::default() },
        connect: Box::new(move || Box::pin(async move { Ok(harness) })),
        open: Box::new(Harness::start),
        ..launch(run, around, Open::New, None)?
    })
}

/// The same on a replay of a Session.
pub(crate) fn replay_launch(
    run: &RunOptions,
    around: &Surroundings,
    id: &str,
    options: ReplayOptions,
) -> Result<Launch> {
    let (harness, place) = cli::visit(run, around, id)?;
    Ok(Launch {
        workspace: harness.workspace().to_owned(),
        start: Start { replay: Some(options), ..Start::default() },
        connect: Box::new(move || Box::pin(async move { Ok(harness) })),
        open: Box::new(move |harness| harness.open_read_only(&place.id)),
        ..launch(run, around, Open::New, None)?
    })
}

/// Opens the terminal interface on a replay of a Session.
pub(crate) fn run_replay(run: &RunOptions, around: &Surroundings, id: &str, options: ReplayOptions) -> Result<u8> {
    let ExitSummary { signal, .. } = show(replay_launch(run, around, id, options)?)?;
    Ok(signal.map_or(0, |number| 128 + number))
}

/// Opens the terminal interface on the demo.
pub(crate) fn run_demo(run: &RunOptions, around: &Surroundings, folder: &Path) -> Result<u8> {
    let ExitSummary { signal, .. } = show(demo_launch(run, around, folder)?)?;
    chatter("that was pixir's demo; `pixir doctor` says how to connect a model");
    Ok(signal.map_or(0, |number| 128 + number))
}

/// The wished theme; without a wish, one that fits the terminal.
pub(crate) fn theme(run: &RunOptions, around: &Surroundings) -> Result<String> {
    let wished = match &run.theme {
        Some(name) => Some(name.clone()),
        None => cli::config(around)?.theme,
    };
    Ok(wished.unwrap_or_else(|| "auto".to_owned()))
}

/// How many colours there are, as the environment says.
pub(crate) fn depth(around: &Surroundings) -> Depth {
    let term = around.variable("TERM").unwrap_or_default();
    let says = |name, values: &[&str]| around.variable(name).is_some_and(|it| values.contains(&it));
    if around.variable("NO_COLOR").is_some() || says("CLICOLOR", &["0"]) {
        Depth::Mono
    } else if says("COLORTERM", &["truecolor", "24bit"]) || term.ends_with("-direct") {
        Depth::True
    } else if term.contains("256color") {
        Depth::Indexed
    } else {
        Depth::Named
    }
}

/// A wish of the environment; 0 and nothing are none.
fn is_set(around: &Surroundings, name: &str) -> bool {
    around.variable(name).is_some_and(|it| !matches!(it, "" | "0"))
}

/// The terminal's background, which a few terminals tell in the environment.
pub(crate) fn background(around: &Surroundings) -> Background {
    let background = around.variable("COLORFGBG").and_then(|it| it.rsplit(';').next());
    if background.is_some_and(|it| matches!(it, "7" | "15")) { Background::Light } else { Background::Dark }
}

fn show(launch: Launch) -> Result<ExitSummary> {
    let failed = |e: std::io::Error| {
        Error::new(
            Code::CommandFailed,
            format!("the terminal cannot be used: {e}"),
            "pixir --headless works without one",
        )
    };
    crate::block_on(pixir_ui::run(launch)).map_err(failed)?
}
