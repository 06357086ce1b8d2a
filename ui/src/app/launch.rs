//! Everything that the interface needs to start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pixir_core::layers::Settings;
use pixir_core::provider::Connector;
use pixir_core::provider::script::Pace;
use pixir_core::{Handle, Harness, Result};

use super::clipboard::Clipboards;
use super::program::Program;
use crate::overlay::save_for::SavePlace;
use crate::terminal::{MouseOwner, ScreenMode};
use crate::theme::{Background, Depth};
use crate::transcript::replay::ReplayOptions;

/// Opens a Session of a workspace.
pub type Opener = Box<dyn FnOnce(&Harness) -> Result<Handle> + Send>;

/// Finds Providers and the workspace.
pub type Connect = Arc<dyn Fn() -> BoxFuture<'static, Result<Harness>> + Send + Sync>;

/// The configuration files behind the settings of the interface.
pub trait SettingsStore: Send + Sync {
    /// Every setting, and where it comes from.
    ///
    /// # Errors
    /// `CONFIG_INVALID`.
    fn read(&self) -> Result<Settings>;

    /// Sets one setting in a file, and returns its path. `value` is written as on the command line.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where the key or value does not fit, `WRITE_FAILED`.
    fn save(&self, key: &str, value: &str, place: SavePlace) -> Result<PathBuf>;

    /// Takes one setting out of a file, and returns its path.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where the file cannot be changed line by line, `WRITE_FAILED`.
    fn unset(&self, key: &str, place: SavePlace) -> Result<PathBuf>;
}

/// The demo: how to watch it, or that this is it.
#[derive(Debug, Clone, Default)]
pub struct Demo {
    /// pixir itself, which runs the demo on the same terminal; none where there is nothing to return to.
    pub program: Option<PathBuf>,
    /// The waits of the scripted model, which any key skips; only in the demo itself.
    pub pace: Option<Arc<Pace>>,
}

/// Everything that the interface needs to start.
pub struct Launch {
    /// The workspace's root folder.
    pub workspace: PathBuf,
    /// Theme and colours.
    pub look: LookOptions,
    /// How the terminal is used.
    pub screen: ScreenOptions,
    /// How the user writes.
    pub composer: ComposerOptions,
    /// `[keys]` of the configuration: keys by the name of their action.
    pub keys: BTreeMap<String, Vec<String>>,
    /// The ways to a clipboard.
    pub clipboards: Clipboards,
    /// What happens once the Session is open.
    pub start: Start,
    /// The files of the settings.
    pub settings: Arc<dyn SettingsStore>,
    /// Connects Providers while pixir runs; none where the Session cannot have another.
    pub connector: Option<Arc<Connector>>,
    /// The demo.
    pub demo: Demo,
    /// Finds Providers and the workspace. Runs after the first frame, and again when it failed and a Provider has been
    /// connected since.
    pub connect: Connect,
    /// Opens the first Session.
    pub open: Opener,
    /// What the program around the interface does for it.
    pub program: Program,
}

/// Theme and colours.
#[derive(Debug, Clone)]
pub struct LookOptions {
    /// The theme's name.
    pub theme: String,
    /// The folder of the user's own themes.
    pub themes_folder: Option<PathBuf>,
    /// How many colours the terminal shows.
    pub depth: Depth,
    /// The terminal's background according to the environment. The interface also queries the terminal.
    pub background: Background,
    /// Whether the spinner moves.
    pub motion: Motion,
    /// Whether the terminal notifies the user while its window has no focus.
    pub notifications: bool,
}

/// How the terminal is used.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScreenOptions {
    /// Where the interface is drawn.
    pub mode: ScreenMode,
    /// The receiver of clicks and the wheel.
    pub mouse: MouseOwner,
}

/// How the user writes.
#[derive(Debug, Clone)]
pub struct ComposerOptions {
    /// Which keys edit the draft.
    pub keys: ComposerKeys,
    /// The command line of the user's own editor.
    pub editor: String,
}

/// Whether progress is shown by movement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Motion {
    /// The spinner moves.
    #[default]
    Full,
    /// Only the clock changes, once a second.
    Reduced,
}

/// Which keys edit the draft.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ComposerKeys {
    /// The keys of most editors and shells.
    #[default]
    Standard,
    /// The keys of vim.
    Vim,
}

/// What happens once the first Session is open.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// A skill to activate, before the prompt.
    pub skill: Option<String>,
    /// A prompt to send.
    pub prompt: Option<String>,
    /// Replay the Session instead of continuing it.
    pub replay: Option<ReplayOptions>,
    /// Offer the earlier Sessions to choose one from.
    pub offers_sessions: bool,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("workspace", &self.workspace).field("look", &self.look).finish_non_exhaustive()
    }
}
