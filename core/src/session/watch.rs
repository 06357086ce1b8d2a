//! What a Presenter hears: everything so far, then every event, without a gap between the two.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::conversation::history::History;
use crate::protocol::event::{Event, Live};

/// A Session's past and its news. A slow reader gets merged deltas, and every recorded entry.
#[derive(Debug)]
pub struct Watch {
    /// What was recorded before the watch began, folded; entries are shared, not copied.
    pub past: History,
    /// Nothing can be recorded in this Session, here.
    pub read_only: bool,
    outbox: Arc<Outbox>,
}

impl Watch {
    pub(crate) fn new(past: History, read_only: bool, outbox: Arc<Outbox>) -> Watch {
        Watch { past, read_only, outbox }
    }

    /// The next event; `None` when the Session has closed.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let outbox = Arc::clone(&self.outbox);
            let notified = outbox.notify.notified();
            {
                // Looked at together: the last event may come just before the end.
                let mut state = outbox.lock();
                let event = state.queue.pop_front();
                if event.is_some() || state.closed {
                    return event;
                }
            }
            notified.await;
        }
    }

    /// The next event that is already there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.outbox.lock().queue.pop_front()
    }
}

/// The Session's end of a [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Event>,
    closed: bool,
}

impl Outbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event; a delta that follows one of its kind joins it, so that what waits stays small.
    pub(crate) fn push(&self, event: Event) {
        let mut state = self.lock();
        match (state.queue.back_mut(), &event) {
            (Some(Event::Live(Live::TextDelta { text })), Event::Live(Live::TextDelta { text: more }))
            | (Some(Event::Live(Live::ReasoningDelta { text })), Event::Live(Live::ReasoningDelta { text: more })) => {
                text.push_str(more)
            }
            (
                Some(Event::Live(Live::ToolOutputDelta { call_id, printed })),
                Event::Live(Live::ToolOutputDelta { call_id: same, printed: more }),
            ) if call_id == same => {
                printed.push(more);
                printed.keep_end(MOST);
            }
            _ => state.queue.push_back(event),
        }
        drop(state);
        self.notify.notify_one();
    }

    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.notify.notify_one();
    }
}

/// Only the end of a flood is worth showing live; the recorded result is whole.
const MOST: usize = 64 << 10;
