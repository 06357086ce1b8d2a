//! Work outside of the State that layers and `update` ask for and `app` carries out: Session, file system, terminal.

use pixir_core::Input;
use pixir_core::event::SessionId;
use pixir_core::input::{FolderAccess, RuleReach, WorkflowOrder};

use super::connect::Order;
use super::diff::Want;
use super::load::Load;
use super::save_for::SavePlace;
use super::sessions;
use crate::composer::mention;
use crate::input::argument::{Argument, ExportFormat};

#[derive(Debug)]
pub(crate) enum Effect {
    /// It waits until the Harness is there.
    OnHarness(OnHarness),
    Send(Input),
    /// Send a message together with the images that it mentions.
    Deliver {
        input: Input,
        mentions: Vec<String>,
    },
    /// Mention a file whose path the user has typed, if it is there.
    MentionFile {
        path: String,
        mention: String,
    },
    /// Read the current git branch; a command may have changed it.
    ReadRepository,
    /// Read every setting and where it comes from.
    LoadSettings,
    /// Save settings, by their keys, in this order.
    SaveSettings(Vec<(String, String)>, SavePlace),
    /// Take a setting out of a file, or out of this Session only.
    UnsetSetting(String, Option<SavePlace>),
    /// A step of connecting a model.
    Connect(Order),
    /// Read how often the user has chosen each action, then open the palette.
    OpenPalette,
    /// Check this machine.
    Examine,
    /// Read the end of the log file.
    ReadLog,
    /// Read it again, if it has grown.
    FollowLog,
    /// Let the Session read a folder or work on it, whose path the user has typed.
    AddFolder {
        path: String,
        access: FolderAccess,
        holds: RuleReach,
    },
    /// Write the Session to a new file.
    Export {
        format: ExportFormat,
        file: Option<String>,
    },
    /// Search the whole conversation.
    Find {
        number: u64,
        text: String,
    },
    /// Put a text into the clipboard.
    Copy(String),
    /// Find files of the workspace that match these letters.
    FindFiles(String),
    ListThemes,
    /// The user chose this theme: use it, and report the result.
    SetTheme(String),
    /// Use this theme without a report, because the user only leaves a preview.
    RestoreTheme(String),
    /// Open the draft in the user's own editor.
    Edit,
    /// Open a file of the workspace at a line in the user's own editor.
    EditFile {
        path: String,
        line: u32,
    },
    /// Let the user write a file of an agent's copy in their own editor, from this text.
    MergeByHand {
        path: String,
        text: String,
    },
    Quit,
}

/// Work with the Harness.
#[derive(Debug)]
pub(crate) enum OnHarness {
    /// Read what a layer shows.
    Load(Load),
    /// Attach an image file to the draft. If the file is no image, insert the pasted text instead.
    AttachFile {
        path: String,
        pasted: String,
    },
    /// Attach the image in the clipboard to the draft.
    AttachClipboard,
    /// Close this Session and start a new one.
    OpenNew,
    /// Close this Session and open that one.
    Open(SessionId),
    /// Read what the diff shows.
    ReadDiff(Want),
    /// Compare the files of two conversations, by the Entries that only one of them has.
    LoadComparison {
        left: Vec<u64>,
        right: Vec<u64>,
    },
    LoadModels,
    /// Load what can complete an argument.
    LoadCandidates(Argument),
    /// Read what the Session of the agent with this path has done; an empty path is the user's own.
    ReadPast(Vec<String>),
    /// Show an agent's Session in place of the one on the screen; an empty path leads back to the user's own.
    EnterAgent {
        path: Vec<String>,
        /// The list of agents opens again when the user comes back.
        from_list: bool,
    },
    /// Work on stored Sessions.
    Stored(sessions::Work),
    /// Work out what a run would be, and show it before it begins.
    PlanWorkflow(Box<WorkflowOrder>),
    /// Ask an MCP server for the text of its prompt.
    ReadPrompt {
        name: String,
        args: String,
    },
    /// Read the templates and skills that slash commands can name.
    LoadOffers,
}

impl From<Load> for Effect {
    fn from(load: Load) -> Effect {
        Effect::OnHarness(OnHarness::Load(load))
    }
}

impl From<OnHarness> for Effect {
    fn from(work: OnHarness) -> Effect {
        Effect::OnHarness(work)
    }
}

impl Effect {
    /// Sends a message, with the images that it mentions.
    pub(crate) fn message(input: Input) -> Effect {
        let mentions = match &input {
            Input::Prompt(it) | Input::Steer(it) | Input::FollowUp(it) => mention::images(&it.text),
            _ => Vec::new(),
        };
        if mentions.is_empty() { Effect::Send(input) } else { Effect::Deliver { input, mentions } }
    }

    /// The name of what this asks for, if that can be refused because of an argument.
    pub(crate) fn asks(&self) -> Option<&'static str> {
        match self {
            // A message is not an argument, and its outcome is shown beside the message.
            Effect::Send(Input::Prompt(_) | Input::Steer(_) | Input::FollowUp(_)) => None,
            Effect::Send(input) => Some(input.name()),
            Effect::AddFolder { .. } => Some("add_folder"),
            Effect::OnHarness(OnHarness::AttachFile { .. }) | Effect::MentionFile { .. } => Some("attach"),
            Effect::Export { .. } => Some("export"),
            Effect::OnHarness(OnHarness::Open(_)) => Some("open"),
            Effect::OnHarness(OnHarness::PlanWorkflow(_)) => Some("workflow"),
            Effect::SetTheme(_) => Some("theme"),
            // The Session on the screen is renamed by an Input.
            Effect::OnHarness(OnHarness::Stored(sessions::Work::Rename { .. })) => Some("set"),
            _ => None,
        }
    }
}
