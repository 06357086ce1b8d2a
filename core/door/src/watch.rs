//! A watcher's subscription: the past, the present and every event from then on, without a gap between them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use conversation::history::History;
use protocol::event::{Event, Live, LiveEvent};
use protocol::now::Now;

/// A subscription to a Session. Nothing lies between its three parts, and nothing is in two of them.
#[derive(Debug)]
pub struct Watch {
    /// The entries that were recorded before the watch began, folded; they are shared, not copied.
    pub past: History,
    /// What was going on when the watch began: a watcher that joins in mid-Turn sees and can answer everything.
    pub now: Now,
    /// The events from then on.
    pub live: Events,
}

impl Watch {
    pub fn new(past: History, now: Now, outbox: Arc<Outbox>) -> Watch {
        Watch { past, now, live: Events { outbox } }
    }

    /// The next event; `None` when the Session has closed.
    pub async fn next(&mut self) -> Option<Event> {
        self.live.next().await
    }

    /// The next event, if it is already there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.live.try_next()
    }
}

/// The events of a Session. A slow reader gets merged deltas, and every recorded entry.
#[derive(Debug)]
pub struct Events {
    outbox: Arc<Outbox>,
}

impl Events {
    /// The next event; `None` when the Session has closed.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let outbox = Arc::clone(&self.outbox);
            let notified = outbox.notify.notified();
            {
                // Under one lock: the last event may come just before the end.
                let mut state = outbox.lock();
                let event = state.queue.pop_front();
                if event.is_some() || state.closed {
                    return event;
                }
            }
            notified.await;
        }
    }

    /// The next event, if it is already there.
    pub fn try_next(&mut self) -> Option<Event> {
        self.outbox.lock().queue.pop_front()
    }
}

/// The Session's end of a watch.
#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Event>,
    closed: bool,
}

impl Outbox {
    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds an event. A delta is merged with the last event if that is a delta of the same kind, so that the queue of a slow
    /// reader stays short.
    pub fn push(&self, event: Event) {
        let mut state = self.lock();
        match (state.queue.back_mut(), event) {
            (Some(Event::Live(last)), Event::Live(next)) if last.turn == next.turn => {
                if let Some(apart) = merge(&mut last.live, next.live) {
                    state.queue.push_back(Event::Live(LiveEvent { live: apart, ..next }));
                }
            }
            (_, event) => state.queue.push_back(event),
        }
        drop(state);
        self.notify.notify_one();
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.notify.notify_one();
    }
}

/// Merges two deltas of the same kind; gives the second one back if they are not.
fn merge(last: &mut Live, next: Live) -> Option<Live> {
    match (last, next) {
        (Live::TextDelta { text }, Live::TextDelta { text: more })
        | (Live::ReasoningDelta { text }, Live::ReasoningDelta { text: more })
        | (Live::SummaryDelta { text }, Live::SummaryDelta { text: more }) => {
            text.push_str(&more);
            None
        }
        (Live::ToolOutputDelta { call_id, printed }, Live::ToolOutputDelta { call_id: same, printed: more })
            if *call_id == same =>
        {
            printed.push(&more);
            printed.keep_end(MOST);
            None
        }
        // All messages that wait are in it.
        (last @ Live::QueueChanged { .. }, next @ Live::QueueChanged { .. }) => {
            *last = next;
            None
        }
        (_, next) => Some(next),
    }
}

/// Only the end of a flood of output is shown live; the recorded result has all of it.
const MOST: usize = 64 << 10;
