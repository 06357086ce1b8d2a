//! Every action of the interface, once: its name, keys, slash command, and when it applies.
//!
//! The key map, palette, help, hints, slash commands and the reference of `pixir schema` are made from this table.
//! `update::perform` carries the actions out.

use std::sync::LazyLock;

use pixir_core::verbs::{self, Verb};

use crate::input::argument::Argument;

/// Where a key binding applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Everywhere, unless an inner scope has the same key.
    Anywhere,
    /// The composer has the focus.
    Composer,
    /// Earlier prompts are searched.
    PastSearch,
    /// An approval is open.
    Approval,
    /// An approval is open and has the focus.
    ApprovalFocus,
    /// The transcript has the focus.
    Transcript,
    /// The side panel has the focus.
    Side,
    /// A replay is shown; it has no composer.
    Replay,
    /// Any overlay is on top, unless an inner scope has the same key.
    Overlay,
    /// The card that saves a rule.
    Rule,
    /// The list of background jobs.
    Jobs,
    /// The MCP servers.
    Servers,
    /// The end of the log file.
    Log,
    /// The help.
    Help,
    /// The stored Sessions.
    Sessions,
    /// The permissions.
    Permissions,
    /// The preview of a restore.
    Restore,
    /// A form with the model's questions.
    Form,
    /// The tree.
    Tree,
    /// The diff.
    Diff,
    /// The files of each Turn.
    Files,
    /// The ways to a model.
    Connect,
    /// Dialogs that save a setting.
    Saving,
    /// The settings.
    Settings,
    /// The models.
    Models,
    /// The skills.
    Skills,
    /// A compaction.
    Compaction,
    /// What fills the context.
    Context,
    /// The agents.
    Agents,
    /// The run of a workflow.
    Workflow,
}

impl Scope {
    /// The word for it in the reference.
    fn name(self) -> &'static str {
        match self {
            Scope::Anywhere => "anywhere",
            Scope::Composer => "composer",
            Scope::PastSearch => "search in earlier prompts",
            Scope::Approval => "while an approval is open",
            Scope::ApprovalFocus => "approval",
            Scope::Transcript => "transcript",
            Scope::Side => "side panel",
            Scope::Replay => "replay",
            Scope::Overlay => "every overlay",
            Scope::Rule => "rule",
            Scope::Jobs => "jobs",
            Scope::Servers => "MCP servers",
            Scope::Log => "log",
            Scope::Help => "help",
            Scope::Sessions => "sessions",
            Scope::Permissions => "permissions",
            Scope::Restore => "restore",
            Scope::Form => "question",
            Scope::Tree => "tree",
            Scope::Diff => "diff",
            Scope::Files => "files",
            Scope::Connect => "connect",
            Scope::Saving => "settings, models and themes",
            Scope::Settings => "settings",
            Scope::Models => "models",
            Scope::Skills => "skills",
            Scope::Compaction => "compaction",
            Scope::Context => "context",
            Scope::Agents => "agents",
            Scope::Workflow => "workflow",
        }
    }

    /// Its heading in the help.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Scope::Anywhere => "Everywhere",
            Scope::Composer => "In the composer",
            Scope::PastSearch => "While earlier prompts are searched",
            Scope::Approval => "While an approval is open",
            Scope::ApprovalFocus => "With the approval in focus (Tab)",
            Scope::Transcript => "With the transcript in focus (Tab)",
            Scope::Side => "With the side panel in focus (Tab)",
            Scope::Replay => "In a replay",
            Scope::Overlay => "In every overlay",
            Scope::Rule => "When a rule is saved",
            Scope::Jobs => "In the background jobs",
            Scope::Servers => "In the MCP servers",
            Scope::Log => "In the log",
            Scope::Help => "In the help",
            Scope::Sessions => "In the sessions",
            Scope::Permissions => "In the permissions",
            Scope::Restore => "In the preview of a restore",
            Scope::Form => "In a question of the model",
            Scope::Tree => "In the tree",
            Scope::Diff => "In the diff",
            Scope::Files => "In the files",
            Scope::Connect => "Where a model is connected",
            Scope::Saving => "In the settings, the models and the themes",
            Scope::Settings => "In the settings",
            Scope::Models => "In the models",
            Scope::Skills => "In the skills",
            Scope::Compaction => "In a compaction",
            Scope::Context => "In the context",
            Scope::Agents => "In the agents",
            Scope::Workflow => "In the workflow",
        }
    }

    /// Every scope, in the order of the help.
    pub(crate) const ALL: [Scope; 30] = [
        Scope::Composer,
        Scope::PastSearch,
        Scope::Anywhere,
        Scope::Approval,
        Scope::ApprovalFocus,
        Scope::Transcript,
        Scope::Side,
        Scope::Replay,
        Scope::Overlay,
        Scope::Tree,
        Scope::Diff,
        Scope::Files,
        Scope::Compaction,
        Scope::Context,
        Scope::Agents,
        Scope::Workflow,
        Scope::Jobs,
        Scope::Servers,
        Scope::Log,
        Scope::Help,
        Scope::Sessions,
        Scope::Permissions,
        Scope::Rule,
        Scope::Restore,
        Scope::Form,
        Scope::Connect,
        Scope::Saving,
        Scope::Settings,
        Scope::Models,
        Scope::Skills,
    ];
}

/// When an action is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Not in a replay.
    Live,
    /// Neither in a replay nor while a Turn runs.
    Idle,
    /// While a Turn runs.
    Running,
}

impl When {
    /// Why the action is not available now.
    pub(crate) fn unavailable(self, session: SessionKind, turn: TurnState) -> Option<&'static str> {
        match (self, session, turn) {
            (When::Live | When::Idle | When::Running, SessionKind::Replay, _) => Some("not in a replay"),
            (When::Idle, SessionKind::Live, TurnState::Running) => Some("when the turn has ended"),
            (When::Running, SessionKind::Live, TurnState::Idle) => Some("no turn is running"),
            (When::Always, ..) | (When::Live | When::Idle | When::Running, SessionKind::Live, _) => None,
        }
    }
}

/// Whether a Turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnState {
    Idle,
    Running,
}

/// The slash command of an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slash {
    pub(crate) name: &'static str,
    pub(crate) args: &'static str,
    /// The Inputs that it becomes.
    pub(crate) does: &'static str,
    /// What can complete its argument.
    pub(crate) argument: Argument,
}

impl Slash {
    /// The command does nothing without an argument.
    pub(crate) fn needs_args(&self) -> bool {
        self.args.starts_with('<')
    }
}

/// What the table says about an action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActionSpec {
    pub(crate) action: Action,
    /// Its name in `[keys]` of the configuration.
    pub(crate) id: &'static str,
    /// Its default keys.
    pub(crate) keys: &'static [&'static str],
    pub(crate) scope: Scope,
    pub(crate) when: When,
    pub(crate) about: &'static str,
    pub(crate) slash: Option<Slash>,
}

impl ActionSpec {
    const fn new(action: Action, id: &'static str, keys: &'static [&'static str], about: &'static str) -> ActionSpec {
        ActionSpec { action, id, keys, scope: Scope::Anywhere, when: When::Always, about, slash: None }
    }

    const fn at(mut self, scope: Scope) -> ActionSpec {
        self.scope = scope;
        self
    }

    const fn live(mut self) -> ActionSpec {
        self.when = When::Live;
        self
    }

    const fn running(mut self) -> ActionSpec {
        self.when = When::Running;
        self
    }

    /// The action is what the interface makes of the verb of its name.
    const fn verb(self) -> ActionSpec {
        ActionSpec { keys: self.keys, action: self.action, ..ActionSpec::of(verbs::named(self.id)) }
    }

    /// A verb that is an Input and nothing else needs no action of its own.
    const fn of(verb: &'static Verb) -> ActionSpec {
        let Verb { name, args, argument, about, does, .. } = *verb;
        let when = match verb.when {
            verbs::When::Always => When::Always,
            verbs::When::Live => When::Live,
            verbs::When::Idle => When::Idle,
        };
        let slash = Some(Slash { name, args, does, argument });
        ActionSpec { when, slash, ..ActionSpec::new(Action::Verb(name), name, &[], about) }
    }

    /// The action is also a slash command of this name.
    const fn slash(mut self, name: &'static str, args: &'static str, does: &'static str) -> ActionSpec {
        self.slash = Some(Slash { name, args, does, argument: Argument::Text });
        self
    }

    /// What completes the argument of its slash command.
    const fn takes(mut self, argument: Argument) -> ActionSpec {
        if let Some(slash) = &mut self.slash {
            slash.argument = argument;
        }
        self
    }

    /// The action can apply at some time in a replay, or in a live Session.
    pub(crate) fn applies(&self, session: SessionKind) -> bool {
        self.when == When::Always || session == SessionKind::Live
    }

    /// The action also works over an overlay, and leaves the overlay as it is.
    pub(crate) fn works_over_overlays(&self) -> bool {
        matches!(self.action, Action::Suspend | Action::Repaint | Action::ToggleHud)
    }

    /// How lists name it.
    pub(crate) fn title(&self) -> String {
        self.slash.map_or_else(|| self.id.to_owned(), |it| format!("/{}", it.name))
    }
}

/// Whether the Session on the screen goes on or is replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SessionKind {
    #[default]
    Live,
    Replay,
}

/// Makes the enums and the table from one list, so that neither can lack an action. The sections say who carries the actions
/// out, and stand in the order of lists.
macro_rules! actions {
    (@ [$($action:ident)*] [$($layer:ident)*] [$($opens:ident)*] [$($table:tt)*]) => {
        /// Something that the user can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Action {
            $($action,)*
            Open(Opens),
            Layer(LayerAction),
            /// An order that is an Input and nothing else, by its name.
            Verb(&'static str),
        }

        /// Opens a layer, which is made of the State and of nothing else.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Opens {
            $($opens,)*
        }

        /// Something that the user can do in a layer, which carries it out itself.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum LayerAction {
            $($layer,)*
        }

        const OWN: &[ActionSpec] = &[$($table)*];
    };
    (@ [$($all:tt)*] $layer:tt $opens:tt [$($table:tt)*]
        Action { $($action:ident: ($($spec:tt)*) $(.$method:ident($($argument:tt)*))*;)* } $($rest:tt)*) => {
        actions!(@ [$($all)* $($action)*] $layer $opens
            [$($table)* $(ActionSpec::new(Action::$action, $($spec)*)$(.$method($($argument)*))*,)*] $($rest)*);
    };
    (@ $all:tt $layer:tt [$($opens:tt)*] [$($table:tt)*]
        Opens { $($action:ident: ($($spec:tt)*) $(.$method:ident($($argument:tt)*))*;)* } $($rest:tt)*) => {
        actions!(@ $all $layer [$($opens)* $($action)*]
            [$($table)* $(ActionSpec::new(Action::Open(Opens::$action), $($spec)*)$(.$method($($argument)*))*,)*] $($rest)*);
    };
    (@ $all:tt [$($layer:tt)*] $opens:tt [$($table:tt)*]
        LayerAction { $($action:ident: ($($spec:tt)*) $(.$method:ident($($argument:tt)*))*;)* } $($rest:tt)*) => {
        actions!(@ $all [$($layer)* $($action)*] $opens
            [$($table)* $(ActionSpec::new(Action::Layer(LayerAction::$action), $($spec)*)$(.$method($($argument)*))*,)*] $($rest)*);
    };
    ($kind:ident { $($section:tt)* } $($rest:tt)*) => {
        actions!(@ [] [] [] [] $kind { $($section)* } $($rest)*);
    };
}

impl From<LayerAction> for Action {
    fn from(action: LayerAction) -> Action {
        Action::Layer(action)
    }
}

/// The whole table. A verb without an action of its own stands before the next verb that has one.
pub(crate) static ACTIONS: LazyLock<Vec<ActionSpec>> = LazyLock::new(|| {
    let mut all = OWN.to_vec();
    let mut next = all.len();
    for verb in verbs::VERBS.iter().rev() {
        match all.iter().position(|spec| spec.slash.is_some_and(|it| it.name == verb.name)) {
            Some(at) => next = at,
            None => all.insert(next, ActionSpec::of(verb)),
        }
    }
    all
});

/// The phrase of an action that is a verb: the verb has it.
const OF_VERB: &str = "";

use Scope::{
    Agents, Approval, ApprovalFocus, Compaction, Composer, Connect, Context, Diff, Files, Form, Help, Jobs, Log,
    Models, Overlay, PastSearch, Permissions, Replay, Restore, Rule, Saving, Servers, Sessions, Settings, Side, Skills,
    Transcript, Tree, Workflow,
};

#[rustfmt::skip]
actions! {
Action {
    // Writing and sending.
    Send: ("send", &["enter"], "send; while a turn runs, steer it").at(Composer);
    SendFollowUp: ("follow-up", &["alt+enter"], "send when the turn has ended").at(Composer);
    NewLine: ("new-line", &["shift+enter", "ctrl+j"], "new line (also \\ before Enter)").at(Composer);
    TakeBack: ("take-back", &["alt+up"], "take back the queued messages").live();
    Escape: ("escape", &["esc"], "close, else interrupt the turn; twice on an empty line: tree");
    StashOrQuit: ("stash-or-quit", &["ctrl+c"], "interrupt the turn, else put the draft aside (Up: back); twice quits");
    QuitWhenEmpty: ("quit-when-empty", &["ctrl+d"], "quit, if the composer is empty").at(Composer);
    Interrupt: ("interrupt", &[], "interrupt the running turn (Esc)").running().slash("interrupt", "", "Interrupt");
    Quit: ("quit", &[], "close pixir; the session is kept").slash("quit", "", "closes the session");
    OpenEditor: ("editor", &["ctrl+g"], "write in your own editor (VISUAL, EDITOR)").at(Composer);
    PasteImage: ("paste-image", &["ctrl+v"], "attach the image in the clipboard").at(Composer);
    SearchPast: ("search-past", &["ctrl+r"], "search the prompts of all sessions").at(Composer);
    OlderPrompt: ("past-older", &["ctrl+r", "up"], "an older prompt that matches").at(PastSearch);
    NewerPrompt: ("past-newer", &["ctrl+s", "down"], "a newer one").at(PastSearch);
    TakePrompt: ("past-take", &["enter", "tab", "left", "right"], "take this prompt, to change or send it").at(PastSearch);
    LeavePast: ("past-leave", &["esc", "ctrl+c", "ctrl+g"], "go back to the draft").at(PastSearch);
    UndoEdit: ("undo-edit", &["ctrl+7", "ctrl+_", "ctrl+-"], "undo the last edit").at(Composer);
    RedoEdit: ("redo-edit", &["alt+-", "alt+_"], "redo the edit").at(Composer);
    KillToEnd: ("kill-to-end", &["ctrl+k"], "cut to the end of the line").at(Composer);
    KillToStart: ("kill-to-start", &["ctrl+u"], "cut to the start of the line").at(Composer);
    KillWordBack: ("kill-word-back", &["ctrl+w"], "cut the previous word (also Alt+Backspace)").at(Composer);
    KillWord: ("kill-word", &["alt+k"], "cut the next word (also Alt+Delete)").at(Composer);
    Yank: ("yank", &["ctrl+y"], "paste the last cut").at(Composer);
    YankPop: ("yank-pop", &["alt+r"], "replace the pasted cut by an earlier one").at(Composer);
    LineStart: ("line-start", &["ctrl+a"], "go to the start of the line").at(Composer);
    LineEnd: ("line-end", &["ctrl+e"], "go to the end of the line").at(Composer);
    WordBack: ("word-back", &["alt+b"], "go back a word").at(Composer);
    WordForward: ("word-forward", &["alt+w"], "go forward a word").at(Composer);
    Suspend: ("suspend", &["ctrl+z"], "suspend pixir; fg returns to it");

    // Deciding about an approval.
    AllowOnce: ("allow-once", &["alt+y"], "allow once").at(Approval);
    AllowAlways: ("allow-always", &["alt+a"], "allow always: choose what the rule covers, and how long").at(Approval);
    Deny: ("deny", &["alt+n"], "deny").at(Approval);
    DenyWithFeedback: ("deny-feedback", &["alt+f"], "deny, and tell the model what to do instead").at(Approval);
    FocusedAllowOnce: ("approval-allow-once", &["y"], "allow once").at(ApprovalFocus);
    FocusedAllowAlways: ("approval-allow-always", &["a"], "allow always: choose what the rule covers, and how long").at(ApprovalFocus);
    FocusedDeny: ("approval-deny", &["n"], "deny").at(ApprovalFocus);
    FocusedDenyWithFeedback: ("approval-deny-feedback", &["f"], "deny, and tell the model what to do instead").at(ApprovalFocus);
    ExpandApproval: ("approval-expand", &["enter"], "show all of it").at(ApprovalFocus);

    // Reading.
    FocusNext: ("focus-next", &["tab"], "next focus: composer, approval, transcript, side panel");
    PageUp: ("page-up", &["pgup"], "scroll back (also the wheel)");
    PageDown: ("page-down", &["pgdn"], "scroll forward");
    ToStart: ("to-start", &["ctrl+home"], "go to the start");
    ToEnd: ("to-end", &["ctrl+end"], "go to the end, and follow it");
    CycleDetails: ("details", &["ctrl+o"], "tool cards: preview, in full, one line");
    CycleThinking: ("thinking", &["alt+t"], "reasoning: one line, its end, in full");
    Find: ("find", &["ctrl+f"], "search the whole conversation").slash("find", "[text]", "searches the screen");
    Repaint: ("repaint", &["ctrl+l"], "repaint the screen");
    ToggleSide: ("side-panel", &["alt+p"], "show or hide the side panel");
    NextCell: ("cell-next", &["j", "down"], "next entry").at(Transcript);
    PreviousCell: ("cell-previous", &["k", "up"], "previous entry").at(Transcript);
    NextPrompt: ("next-prompt", &["}"], "next prompt").at(Transcript);
    PreviousPrompt: ("previous-prompt", &["{"], "previous prompt").at(Transcript);
    NextError: ("next-error", &["] e"], "next error").at(Transcript);
    PreviousError: ("previous-error", &["[ e"], "previous error").at(Transcript);
    NextChange: ("next-diff", &["] d"], "next change").at(Transcript);
    PreviousChange: ("previous-diff", &["[ d"], "previous change").at(Transcript);
    NextCompaction: ("next-compaction", &["] c"], "next compaction").at(Transcript);
    PreviousCompaction: ("previous-compaction", &["[ c"], "previous compaction").at(Transcript);
    FindInTranscript: ("transcript-find", &["/"], "search").at(Transcript);
    NextMatch: ("next-match", &["n"], "next match").at(Transcript);
    PreviousMatch: ("previous-match", &["N"], "previous match").at(Transcript);
    ShowCopyLabels: ("copy-labels", &["y"], "label everything that can be copied").at(Transcript);
    FoldCell: ("fold", &["space"], "show more or less of this entry").at(Transcript);
    OutlineOfTranscript: ("transcript-outline", &["o"], "open the outline").at(Transcript);
    OpenCell: ("open", &["enter"], "show all of this entry, or its changes").at(Transcript);
    TranscriptStart: ("transcript-start", &["g", "home"], "go to the start").at(Transcript);
    TranscriptEnd: ("transcript-end", &["G", "end"], "go to the end, and follow it").at(Transcript);
    NextSideTab: ("side-next", &["right", "l"], "next tab of the side panel").at(Side);
    PreviousSideTab: ("side-previous", &["left", "h"], "previous tab").at(Side);
    WidenSide: ("side-wider", &["<", "+"], "widen the side panel").at(Side);
    NarrowSide: ("side-narrower", &[">", "-"], "narrow the side panel").at(Side);
    OpenSide: ("side-open", &["enter"], "open the diff at the chosen file, or the agents").at(Side);
    ScrollSideDown: ("side-down", &["down", "j"], "next file of the side panel, or scroll it down").at(Side);
    ScrollSideUp: ("side-up", &["up", "k"], "previous file, or scroll it up").at(Side);

    // Replaying a session.
    PlayReplay: ("replay-play", &["space"], "play or pause").at(Replay);
    StepReplay: ("replay-forward", &["right", "l", "enter"], "next entry").at(Replay);
    StepReplayBack: ("replay-back", &["left", "h"], "previous entry").at(Replay);
    NextReplayTurn: ("replay-next-turn", &["}", "down"], "next turn").at(Replay);
    PreviousReplayTurn: ("replay-previous-turn", &["{", "up"], "previous turn").at(Replay);
    ReplayStart: ("replay-start", &["home", "g"], "go to its start").at(Replay);
    ReplayEnd: ("replay-end", &["end", "G"], "go to its end").at(Replay);
    SpeedUpReplay: ("replay-faster", &["+", "="], "twice as fast").at(Replay);
    SlowDownReplay: ("replay-slower", &["-"], "half as fast").at(Replay);
    QuitReplay: ("replay-quit", &["q", "ctrl+d"], "close the replay").at(Replay);
}
LayerAction {
    // Inside of overlays. An overlay names the scopes that it has.
    OverlayUp: ("up", &["up", "k"], "up").at(Overlay);
    OverlayDown: ("down", &["down", "j"], "down").at(Overlay);
    OverlayPageUp: ("overlay-page-up", &["pgup"], "page up").at(Overlay);
    OverlayPageDown: ("overlay-page-down", &["pgdn", "space"], "page down").at(Overlay);
    OverlayStart: ("overlay-start", &["home", "g"], "go to the start").at(Overlay);
    OverlayEnd: ("overlay-end", &["end", "G"], "go to the end").at(Overlay);
    Choose: ("choose", &["enter"], "choose, or apply").at(Overlay);
    CloseOverlay: ("close", &["esc", "q", "ctrl+c"], "close without choosing").at(Overlay);
    OverlayHelp: ("overlay-help", &["?", "f1"], "the keys of this overlay; over a field the one that types no letter").at(Overlay);
    RuleLastsLonger: ("rule-longer", &["right"], "the rule holds longer").at(Rule);
    RuleLastsShorter: ("rule-shorter", &["left"], "the rule holds for a shorter time").at(Rule);
    SwitchRuleEffect: ("rule-effect", &["tab"], "allow always, or deny always").at(Rule);
    SwitchReach: ("sessions-reach", &["tab"], "sessions of this workspace, or of all").at(Sessions);
    OnlyNamed: ("sessions-named", &["alt+n"], "only sessions with a name, only pinned ones, or all").at(Sessions);
    RenameStored: ("sessions-rename", &["ctrl+r"], "rename the session").at(Sessions);
    PinStored: ("sessions-pin", &["alt+p"], "pin the session to the top of the list, or unpin it").at(Sessions);
    DeleteStored: ("sessions-delete", &["ctrl+x", "delete"], "delete the session; asked first").at(Sessions);
    ConfirmDelete: ("sessions-delete-confirm", &["y"], "yes, delete it").at(Sessions);
    UndeleteStored: ("sessions-undelete", &["alt+u"], "restore the session that was deleted last").at(Sessions);
    NextHelpSection: ("help-next-section", &["tab"], "next section").at(Help);
    PreviousHelpSection: ("help-previous-section", &["shift+tab"], "previous section").at(Help);
    CycleLogLevel: ("log-level", &["tab"], "which lines are shown: errors, warnings, all").at(Log);
    SteerAgent: ("agent-steer", &["s"], "tell the agent something; it reads it after its running call").at(Agents);
    StopAgent: ("agent-stop", &["x"], "stop the agent; it can be continued").at(Agents);
    AdoptFiles: ("agent-adopt", &["d"], "decide about the files that the agent changed in its copy").at(Agents);
    ContinueAgent: ("agent-continue", &["r"], "give the agent more to do when its turn has ended").at(Agents);
    FilterAgents: ("agent-filter", &["/"], "filter the agents").at(Agents);
    RerunStep: ("step-rerun", &["r"], "run the step again, whatever is known of it").at(Workflow);
    SkipStep: ("step-skip", &["k"], "leave the step out").at(Workflow);
    TakeStepAsDone: ("step-done", &["d"], "take the step as done, as its files are now").at(Workflow);
    AnswerGate: ("step-answer", &["g"], "give the chosen answer to the step that waits").at(Workflow);
    NextAnswer: ("step-next-answer", &["tab"], "choose the next answer").at(Workflow);
    ResumeRun: ("run-resume", &["c"], "go on with the run").at(Workflow);
    StopRun: ("run-stop", &["x"], "stop the run; what is completed stays completed").at(Workflow);
    StopJob: ("job-stop", &["x"], "stop the job; asked first").at(Jobs);
    AcceptServer: ("mcp-accept", &["a"], "accept the tools of the server as shown").at(Servers);
    RestartServer: ("mcp-restart", &["r"], "start the server, or start it anew").at(Servers);
    StopServer: ("mcp-stop", &["x"], "stop the server; its next call starts it again").at(Servers);
    ConfirmStop: ("job-stop-confirm", &["y"], "yes, stop it").at(Jobs);
    RevokeRule: ("rule-revoke", &["x"], "revoke the rule").at(Permissions);
    ConfirmRevoke: ("rule-revoke-confirm", &["y"], "yes, revoke it").at(Permissions);
    MoveWithoutFiles: ("restore-none", &["n"], "go there, and keep the files as they are").at(Restore);
    KeepFile: ("restore-keep", &["k"], "keep this file as it is").at(Restore);
    MergeFile: ("restore-merge", &["m"], "merge this file with what changed since").at(Restore);
    MergeByHand: ("restore-editor", &["e"], "merge this file by hand in your own editor").at(Restore);
    OverwriteFile: ("restore-overwrite", &["o"], "overwrite what changed since in this file").at(Restore);
    MarkOption: ("question-mark", &["space"], "mark this answer, where several can be chosen").at(Form);
    PasteKey: ("connect-key", &["1"], "paste a key").at(Connect);
    SignIn: ("connect-sign-in", &["2"], "sign in with a browser").at(Connect);
    UseLocalServer: ("connect-local", &["3"], "use a server of this machine").at(Connect);
    WatchDemo: ("connect-demo", &["4"], "watch the demo").at(Connect);
    PreviousQuestion: ("question-back", &["shift+tab", "left"], "go back to the previous question").at(Form);
    EditAgain: ("tree-edit", &["e"], "go to before this prompt, and edit it").at(Tree);
    JumpBack: ("tree-back", &["ctrl+o"], "go back to where the head was before its last move").at(Tree);
    JumpForward: ("tree-forward", &["b", "ctrl+i"], "go forward to where the head came back from; most terminals send Ctrl+I as Tab").at(Tree);
    ForkHere: ("tree-fork", &["f"], "fork the session here").at(Tree);
    LabelNode: ("tree-label", &["l"], "label this turn").at(Tree);
    PinNode: ("tree-pin", &["p"], "pin this turn, so that compactions keep it").at(Tree);
    CycleSummary: ("tree-summary", &["s"], "how the branch that is left is summarized").at(Tree);
    FoldChain: ("tree-fold", &["space"], "unfold a chain of turns, or fold it").at(Tree);
    NextBranch: ("tree-next-branch", &["]"], "next branch of the fork").at(Tree);
    PreviousBranch: ("tree-previous-branch", &["["], "previous branch of the fork").at(Tree);
    FindInTree: ("tree-find", &["/"], "search the text of all turns").at(Tree);
    NextInTree: ("tree-next-match", &["n"], "next match").at(Tree);
    PreviousInTree: ("tree-previous-match", &["N"], "previous match").at(Tree);
    CycleTreeFilter: ("tree-filter", &["o"], "show all turns, prompts, changes, failures, names, the trash").at(Tree);
    ToggleTreePreview: ("tree-preview", &["v"], "show the preview alone").at(Tree);
    MarkNode: ("tree-mark", &["m"], "mark this turn for a comparison").at(Tree);
    CompareNodes: ("tree-compare", &["d"], "compare with the marked turn, or with the head").at(Tree);
    RemoveBranch: ("tree-delete", &["x"], "move this branch to the trash").at(Tree);
    RestoreBranch: ("tree-restore", &["u"], "restore a branch from the trash").at(Tree);
    ToggleForest: ("tree-sessions", &["tab"], "all sessions of the workspace, with their forks").at(Tree);
    SwitchSource: ("diff-source", &["tab"], "compare with something else: call, turn, prompt, branch, git HEAD").at(Diff);
    PreviousSource: ("diff-source-back", &["shift+tab"], "compare with the one before").at(Diff);
    SinceEarlierPrompt: ("diff-earlier-prompt", &["{"], "what changed since an earlier prompt").at(Diff);
    SinceLaterPrompt: ("diff-later-prompt", &["}"], "what changed since a later prompt").at(Diff);
    NextFile: ("diff-next-file", &["]"], "next file").at(Diff);
    PreviousFile: ("diff-previous-file", &["["], "previous file").at(Diff);
    NextHunk: ("diff-next-hunk", &["n"], "next hunk; while searching, next match").at(Diff);
    PreviousHunk: ("diff-previous-hunk", &["p", "N"], "previous hunk, or match").at(Diff);
    ListFiles: ("diff-files", &["f"], "show or hide the list of files").at(Diff);
    FindInDiff: ("diff-find", &["/"], "search in the file").at(Diff);
    FoldFile: ("diff-fold", &["z"], "fold or unfold the file").at(Diff);
    SwitchColumns: ("diff-columns", &["S"], "side by side, or unified").at(Diff);
    WrapLines: ("diff-wrap", &["w"], "wrap long lines, or scroll them").at(Diff);
    ScrollLeft: ("diff-left", &["left", "h"], "scroll long lines back").at(Diff);
    ScrollRight: ("diff-right", &["right", "l"], "scroll long lines").at(Diff);
    KeepHunk: ("diff-keep", &["s"], "mark the hunk as reviewed, or take the mark back").at(Diff);
    RevertHunk: ("diff-revert", &["r"], "revert the hunk; /undo brings it back").at(Diff);
    CommentLine: ("diff-comment", &["c"], "comment on the line").at(Diff);
    RemoveComment: ("diff-comment-remove", &["x"], "remove the comment on the line").at(Diff);
    SendComments: ("diff-send", &["C"], "send all comments as one message (also Enter)").at(Diff);
    CopyHunk: ("diff-copy", &["y"], "copy the hunk as a patch").at(Diff);
    EditLine: ("diff-editor", &["o"], "open the file at this line in your own editor").at(Diff);
    UndoTurnOfFiles: ("files-undo", &["u"], "undo the file changes of this turn; previewed first").at(Files);
    EditChangedFile: ("files-editor", &["o"], "open the file in your own editor").at(Files);
    NextTurnOfFiles: ("files-next-turn", &["]"], "next turn").at(Files);
    PreviousTurnOfFiles: ("files-previous-turn", &["["], "previous turn").at(Files);
    SaveFor: ("save-for", &["ctrl+s", "s"], "save the change for this session, for you, or for the project").at(Saving);
    FilterSettings: ("settings-filter", &["/"], "filter the settings").at(Settings);
    UnsetSetting: ("settings-unset", &["delete", "u"], "unset the value, so that the file below or the default decides").at(Settings);
    MoreEffort: ("effort-more", &["right"], "more effort").at(Models);
    LessEffort: ("effort-less", &["left"], "less effort").at(Models);
    MarkFavourite: ("model-favourite", &["alt+f"], "mark the model as a favourite, or take the mark back").at(Models);
    GiveTask: ("skill-task", &["tab"], "write what the skill is to be used for").at(Skills);
    ReadOn: ("skill-read-on", &["alt+down", "shift+down"], "read on in the text of the skill").at(Skills);
    ReadBack: ("skill-read-back", &["alt+up", "shift+up"], "read back").at(Skills);
    ConnectHere: ("model-connect", &["alt+c"], "connect another model").at(Models);
    MoveSegment: ("compact-move", &["space"], "move the entry: kept, summed up, dropped").at(Compaction);
    EditSummary: ("compact-edit", &["e"], "edit the summary; Esc leaves the field").at(Compaction);
    RewriteSummary: ("compact-rewrite", &["r"], "let the model write the summary again").at(Compaction);
    SwitchPane: ("compact-pane", &["tab"], "lists or summary").at(Compaction);
    PinPart: ("context-pin", &["p"], "pin this part, or unpin it").at(Context);
    DropPart: ("context-drop", &["d"], "drop this part from requests, or send it again").at(Context);
    SortContext: ("context-sort", &["s"], "sort by place or by size").at(Context);
    ScrollPreview: ("context-scroll", &["l", "right"], "scroll the text of this part").at(Context);
    ScrollPreviewBack: ("context-scroll-back", &["h", "left"], "scroll it back").at(Context);
}
Action {
    // Overlays: one line each.
    OpenHelp: ("help", &["f1"], "keys and commands (? on an empty line)").slash("help", "[command]", "opens the help").takes(Argument::Command);
    OpenKeyHelp: ("keys", &[], "every key, where it applies, and its name in [keys]").slash("keys", "", "opens the help");
    OpenPalette: ("palette", &["ctrl+p"], "find an action by name");
    OpenOutline: ("outline", &[], "the conversation, turn by turn").slash("outline", "", "moves the viewport");
    OpenTree: ("tree", &["ctrl+t"], OF_VERB).verb();
    OpenDiff: ("diff", &["alt+d"], "what a call, a turn or the session changed; review, revert, comment").slash("diff", "", "RevertHunk{path, seen, edit}, KeepHunk{path, hunk} or Steer");
}
Opens {
    Files: ("files", &[], "the files that each turn changed and read: diff, editor, undo").slash("files", "", "Undo{turn, dry_run}, then Undo{}");
    Context: ("context", &[], OF_VERB).verb();
}
Action {
    OpenAgents: ("agents", &["alt+g"], OF_VERB).verb();
    OpenWorkflows: ("workflows", &[], OF_VERB).verb();
}
Opens {
    Jobs: ("jobs", &[], OF_VERB).verb();
    Servers: ("mcp", &[], OF_VERB).verb();
    Permissions: ("permissions", &[], OF_VERB).verb();
}
Action {
    TrustWorkspace: ("trust", &[], OF_VERB).verb();
    OpenSettings: ("settings", &["f2"], "every setting: its value, where it comes from, and a change in place").slash("settings", "[filter]", "Set{…}, or saves the configuration");
    OpenConfig: ("config", &[], "the same as /settings").slash("config", "[filter]", "Set{…}, or saves the configuration");
    OpenConnect: ("connect", &[], "connect a model here: a key, a local server, a sign-in").live().slash("connect", "", "stores the key, then Set{provider, model}");
    OpenAuth: ("auth", &[], "the same as /connect").live().slash("auth", "", "stores the key, then Set{provider, model}");
    ToggleHud: ("hud", &["f12"], "show what drawing costs, beside its budget");
    ShowStatus: ("status", &[], "model, mode, sandbox, workspace, session, tokens, files of pixir").slash("status", "", "opens the status");
    RunDoctor: ("doctor", &[], "check this machine: each finding with its fix").slash("doctor", "", "runs the checks of `pixir doctor`");
}
Opens {
    Log: ("log", &[], "the end of pixir's own log file, filtered as you type").slash("log", "[text]", "opens the log");
}
Action {
    ShowPlan: ("plan", &[], OF_VERB).verb();

    // The session.
    NewSession: ("new", &[], "start a new session").live().slash("new", "", "closes this session and starts one");
    ResumeSession: ("resume", &[], "continue another session").live().slash("resume", "[session]", "closes this session and opens that one").takes(Argument::Session);
    ListSessions: ("sessions", &[], "search all sessions: resume, rename, pin, delete").live().slash("sessions", "", "opens the list");
    RenameSession: ("rename", &[], OF_VERB).verb();
    ForkSession: ("fork", &[], OF_VERB).verb();
    Rewind: ("rewind", &[], OF_VERB).verb();
    LabelTurn: ("label", &[], OF_VERB).verb();
    PinTurn: ("pin", &[], OF_VERB).verb();
    UndoTurn: ("undo", &[], OF_VERB).verb();
    RedoTurn: ("redo", &[], OF_VERB).verb();
    CompactHistory: ("compact", &[], OF_VERB).verb();
    ActivateSkill: ("skill", &[], OF_VERB).verb();
    AttachFile: ("attach", &[], "attach an image, or mention a file").live().slash("attach", "<file>", "adds it to your next Prompt{}").takes(Argument::File);
    AddFolder: ("add-dir", &[], OF_VERB).verb();
    ExportSession: ("export", &[], "write this session to a file: Markdown, a page, or JSON").slash("export", "[md|html|json] [file]", "writes a new file").takes(Argument::Words(&["md", "html", "json"]));
    ShowUsage: ("usage", &[], "tokens and cost: this branch, the session, each model and turn").slash("usage", "", "prints it");
    Copy: ("copy", &[], "copy the last answer, or a labelled part").slash("copy", "[answer|code]", "writes the clipboard").takes(Argument::Words(&["answer", "code"]));

    // Settings.
    CycleMode: ("cycle-mode", &["shift+tab"], "next mode: read-only, ask, auto").live();
    SetMode: ("mode", &[], OF_VERB).verb();
    SetModel: ("model", &[], OF_VERB).verb();
    SetEffort: ("effort", &[], OF_VERB).verb();
    SetToolset: ("toolset", &[], OF_VERB).verb();
    SetTheme: ("theme", &[], "choose the colours").slash("theme", "[name]", "changes the screen only").takes(Argument::Theme);
    ToggleMouse: ("mouse", &[], "give clicks and the wheel to pixir, or to the terminal").slash("mouse", "", "changes the screen only");
}
}

/// The action of a slash command.
pub(crate) fn of_slash(name: &str) -> Option<&'static ActionSpec> {
    ACTIONS.iter().find(|spec| spec.slash.is_some_and(|it| it.name == name))
}

/// Everything that the user can do in the interface, for the reference: names, default keys, scopes, commands.
pub fn reference() -> serde_json::Value {
    let actions = ACTIONS.iter().map(|spec| {
        serde_json::json!({
            "name": spec.id,
            "keys": spec.keys,
            "where": spec.scope.name(),
            "about": spec.about,
            "command": spec.slash.map(|it| format!("/{} {}", it.name, it.args).trim_end().to_owned()),
            "does": spec.slash.map(|it| it.does),
        })
    });
    actions.collect()
}
