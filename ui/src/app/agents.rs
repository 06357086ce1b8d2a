//! An agent's Session on the screen, in place of the user's own, which stays open behind it.

use pixir_core::event::SessionId;
use pixir_core::{Code, Error, Event, Handle, Harness, Input, Live, Watch};

use super::App;
use super::background::{BackgroundEvent, FailedTask};
use crate::app::saved_draft::SavedDraft;
use crate::overlay::Loaded;
use crate::overlay::always::AlwaysView;
use crate::state::{Effect, Now, OnHarness};
use crate::update::{agents, events, workflow};

/// The user's own Session, while an agent is on the screen.
pub(super) struct Root {
    pub(super) handle: Handle,
    watch: Watch,
    /// What the user was writing and reading there.
    draft: SavedDraft,
    /// The last entry that was on the screen.
    seen: Option<u64>,
    /// The list of agents opens again when the user comes back.
    from_list: bool,
}

/// An agent's Session, or the user's own, is open.
pub(super) struct Entered {
    pub(super) path: Vec<String>,
    pub(super) from_list: bool,
    pub(super) handle: Handle,
    pub(super) watch: Box<Watch>,
    /// The draft that was saved next to the agent's Log.
    pub(super) draft: Option<String>,
}

impl App {
    /// Opens the Session of an agent, or goes back to the user's own.
    pub(super) fn enter_agent(&mut self, harness: Harness, path: Vec<String>, from_list: bool) {
        let Some(root) = self.root.as_ref().map(|it| &it.handle).or(self.handle.as_ref()).cloned() else { return };
        if path == self.state.session.agents.at {
            return;
        }
        let open = self.opens_requested;
        self.spawn_for(FailedTask::Other, async move {
            let opened = if path.is_empty() { Ok(root) } else { root.agent(&path).await };
            let closed = || Error::new(Code::SessionStartFailed, "the agent's session has closed", "try again");
            let outcome = match opened {
                Ok(handle) => match handle.watch().await {
                    Some(watch) => {
                        let draft = harness.place(handle.id()).presenter_state();
                        Ok(Box::new(Entered { path, from_list, handle, watch: Box::new(watch), draft }))
                    }
                    None => Err(closed()),
                },
                Err(error) => Err(error),
            };
            BackgroundEvent::Of(open, Box::new(BackgroundEvent::Entered(outcome)))
        });
    }

    /// Shows the Session that has opened.
    pub(super) async fn on_entered(&mut self, entered: Entered) {
        let Entered { path, from_list, handle, mut watch, draft } = entered;
        self.is_urgent = true;
        self.save_draft();
        let was_at = self.state.session.agents.at.clone();
        let left = self.root.take();
        if let (None, Some(handle), Some(watch)) = (&left, self.handle.take(), self.watch.take()) {
            self.root = Some(Root {
                handle,
                watch,
                draft: SavedDraft::of(&self.state),
                seen: self.state.history.entries().last().map(|it| it.seq),
                from_list,
            });
        }
        let asked = agents::asked(&self.state);
        let tree = std::mem::take(&mut self.state.session.agents);
        self.state.clear_session();
        // The draft of one Session must not be sent to another.
        self.state.composer.set("");
        self.state.session.can_send = true;
        self.state.session.id = Some(handle.id().clone());
        self.state.session.agents = tree.clone().seen_from(&path);
        events::on_opened(&mut self.state, std::mem::take(&mut watch.past));
        if path.is_empty() {
            // What is known of the agents goes further than the Log: which of them ended in the running Turn, and those below.
            self.state.session.agents = tree.clone().seen_from(&path);
        }
        self.state.session.read_only = watch.now.read_only;
        let restored = match &left {
            Some(root) if path.is_empty() => Some(root.draft.clone()),
            _ => draft.and_then(|text| SavedDraft::read(&text)),
        };
        if let Some(draft) = restored.filter(|_| !self.state.session.read_only) {
            draft.put_back(&mut self.state);
        }
        self.saved_draft = SavedDraft::default();
        let mut effects = Vec::new();
        if path.is_empty() {
            effects = events::on_present(&mut self.state, &watch.now);
            // What was printed before stays in the terminal's history.
            if let Some(root) = &left {
                self.state.printing.printed = self.state.transcript.after(root.seen);
                if root.from_list {
                    effects.extend(agents::open_at(&mut self.state, Some(&was_at)));
                }
            }
        } else {
            self.state.printing.printed = None;
            if self.root.is_none() {
                self.root = left;
            }
            // What agents ask and report comes from the user's own Session.
            watch.now.children.clear();
            watch.now.approvals.retain(|it| it.agent.is_none());
            watch.now.forms.retain(|it| it.agent.is_none());
            agents::carry(tree, &path, asked, &mut self.state);
            effects.extend(events::on_present(&mut self.state, &watch.now));
            // The conversation of a run is its steps.
            effects.extend(workflow::show_run_inside(&mut self.state));
        }
        self.state.toast = None;
        self.watch = Some(*watch);
        self.handle = Some(handle);
        self.refresh_window();
        Box::pin(self.perform(effects)).await;
    }

    /// Handles an Event of the user's own Session, while an agent is on the screen.
    pub(super) async fn on_root_event(&mut self, event: Option<Event>) {
        self.state.now = Now::read();
        self.dirty = true;
        match event {
            Some(event) => {
                let effects = agents::on_root_event(&mut self.state, event);
                self.perform(effects).await;
            }
            // Its agents close with it.
            None => self.root = None,
        }
    }

    /// An Event of an agent's Session that the user's own Session repeats.
    pub(super) fn is_repeated(&self, event: &Event) -> bool {
        self.root.is_some()
            && matches!(event, Event::Live(it) if !it.agent_path.is_empty())
            && !matches!(event, Event::Live(it) if matches!(it.live, Live::Refused(_)))
    }

    /// The Session that an Input is for, and the Input itself: paths of agents begin at the user's own Session.
    pub(super) fn addressed(&self, input: Input) -> (Option<&Handle>, Input) {
        let Some(root) = &self.root else { return (self.handle.as_ref(), input) };
        match input {
            Input::ToAgent { path, input } if path.is_empty() => (Some(&root.handle), *input),
            Input::ToAgent { .. } | Input::StopAgents { .. } | Input::Adopt { .. } => (Some(&root.handle), input),
            input => (self.handle.as_ref(), input),
        }
    }

    /// The user's own Session, whatever is on the screen.
    pub(super) fn own_session(&self) -> Option<SessionId> {
        self.root.as_ref().map_or_else(|| self.state.session.id.clone(), |it| Some(it.handle.id().clone()))
    }

    /// Reads what the Session of an agent has done, or the user's own with an empty path.
    pub(super) fn read_past(&mut self, path: Vec<String>) {
        let Some(root) = self.root.as_ref().map(|it| &it.handle).or(self.handle.as_ref()).cloned() else { return };
        let open = self.opens_requested;
        self.spawn_for(FailedTask::Other, async move {
            let opened = if path.is_empty() { Ok(root) } else { root.agent(&path).await };
            let past = match opened {
                Ok(handle) => handle.watch().await.map(|watch| watch.past),
                // Without its past there is nothing to compare a rule with.
                Err(_) => None,
            };
            let past = past.unwrap_or_default();
            let loaded = Loaded::new(move |view: &mut AlwaysView| view.learn(&path, &past));
            BackgroundEvent::Of(open, Box::new(BackgroundEvent::Loaded(loaded)))
        });
    }

    /// Goes back to the user's own Session.
    pub(super) fn leave_agent(&self) -> Effect {
        OnHarness::EnterAgent { path: Vec::new(), from_list: false }.into()
    }
}

/// The next Event of the user's own Session, while an agent is on the screen.
pub(super) async fn next_root_event(root: &mut Option<Root>) -> Option<Event> {
    match root {
        Some(root) => root.watch.next().await,
        None => std::future::pending().await,
    }
}

impl Root {
    pub(super) fn try_next(&mut self) -> Option<Event> {
        self.watch.try_next()
    }
}
