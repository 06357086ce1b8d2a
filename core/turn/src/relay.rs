//! Sends parts of an answer to the watchers, at most once per frame, however fast the model is.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Reports;
use protocol::event::Live;
use provider::Chunk;

/// Watchers get the parts of a fast answer no more often than this: 30 times a second are enough to read along, and
/// every time wakes them.
const FRAME: Duration = Duration::from_millis(33);
/// The shortest time between two parts of a slow answer.
const SLOW_FRAME: Duration = Duration::from_millis(16);
/// After this silence the parts are sent halfway through the frame: the model pauses. The end of an answer is not waited
/// for at all.
const QUIET: Duration = Duration::from_millis(8);

/// Merges the parts that arrive within one frame, and those that the full channel cannot take yet.
pub struct DeltaCoalescer<'a> {
    reports: &'a Reports,
    waiting: Mutex<Vec<Live>>,
    /// When the last part arrived.
    last_part: Mutex<Instant>,
}

impl<'a> DeltaCoalescer<'a> {
    pub fn new(reports: &'a Reports) -> DeltaCoalescer<'a> {
        DeltaCoalescer { reports, waiting: Mutex::default(), last_part: Mutex::new(Instant::now()) }
    }

    /// Takes a part of the notes for a summary.
    pub fn take_note(&self, chunk: Chunk) {
        // What the model thinks about its notes is not part of them.
        let Chunk::Text(more) = chunk else { return };
        *self.last_part.lock() = Instant::now();
        let mut waiting = self.waiting.lock();
        match waiting.last_mut() {
            Some(Live::SummaryDelta { text }) => text.push_str(&more),
            _ => waiting.push(Live::SummaryDelta { text: more }),
        }
    }

    pub(super) fn take(&self, chunk: Chunk) {
        *self.last_part.lock() = Instant::now();
        let mut waiting = self.waiting.lock();
        match (waiting.last_mut(), chunk) {
            (Some(Live::TextDelta { text }), Chunk::Text(more))
            | (Some(Live::ReasoningDelta { text }), Chunk::Reasoning(more)) => text.push_str(&more),
            (_, Chunk::Text(text)) => waiting.push(Live::TextDelta { text }),
            (_, Chunk::Reasoning(text)) => waiting.push(Live::ReasoningDelta { text }),
            (_, Chunk::Call { index, name, args }) => {
                let more = args.len() as u64;
                let same = waiting.iter_mut().find_map(|live| match live {
                    Live::ToolCallDelta { index: of, bytes, .. } if *of == index => Some(bytes),
                    _ => None,
                });
                match same {
                    Some(bytes) => *bytes += more,
                    None => waiting.push(Live::ToolCallDelta { index, name, bytes: more }),
                }
            }
        }
    }

    /// Sends waiting parts as far as the channel has room. The rest is merged with later parts.
    fn send(&self) {
        let mut waiting = self.waiting.lock();
        while !waiting.is_empty() {
            if let Some(live) = self.reports.try_live(waiting.remove(0)) {
                waiting.insert(0, live);
                return;
            }
        }
    }

    /// Sends the remaining parts, and waits until the channel has room.
    async fn flush(&self) {
        let rest = std::mem::take(&mut *self.waiting.lock());
        for live in rest {
            // A Session that has ended needs no more parts.
            let _ = self.reports.live(live).await;
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// Runs `work`, and sends the parts that it produces. A part after a silence is sent at once, the last one when the
    /// work ends. The timer runs only while parts wait, and at most twice in a frame: each time that it is set wakes the
    /// thread that waits for the next part.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut last = Instant::now() - FRAME;
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        let outcome = poll_fn(|cx| {
            let waited = !self.is_empty();
            if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
                return Poll::Ready(outcome);
            }
            if self.is_empty() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if let Some(due) = self.due(last, now, waited) {
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                if timer.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
            self.send();
            last = Instant::now();
            if !self.is_empty() {
                // The channel is full, so the next try is one frame later.
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(last + FRAME)));
                timer.as_mut().reset(last + FRAME);
                let _ = timer.as_mut().poll(cx);
            }
            Poll::Pending
        })
        .await;
        self.flush().await;
        outcome
    }

    /// When the waiting parts are sent or looked at again; `None` for now. `waited`: some were waiting before this part.
    fn due(&self, last: Instant, now: Instant, waited: bool) -> Option<Instant> {
        let is_quiet = !waited || now >= *self.last_part.lock() + QUIET;
        match now {
            now if now >= last + FRAME || now >= last + SLOW_FRAME && is_quiet => None,
            now if now >= last + SLOW_FRAME => Some(last + FRAME),
            _ => Some(last + SLOW_FRAME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;

    #[tokio::test(start_paused = true)]
    async fn a_fast_model_is_heard_once_a_frame_and_nothing_is_lost() {
        let (reports, mut heard) = Reports::channel();
        let relay = DeltaCoalescer::new(&reports);
        let said = relay
            .during(async {
                for n in 0..1_000 {
                    relay.take(Chunk::Text(format!("{n} ")));
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                (0..1_000).map(|n| format!("{n} ")).collect::<String>()
            })
            .await;
        let (mut text, mut pieces) = (String::new(), 0);
        while let Ok(Report::Live(Live::TextDelta { text: piece })) = heard.try_recv() {
            text.push_str(&piece);
            pieces += 1;
        }
        assert_eq!(text, said);
        assert!((25..=40).contains(&pieces), "{pieces} pieces in a second");
    }

    /// Broken build: the parts of the last frame wait for the next one.
    #[tokio::test(start_paused = true)]
    async fn the_last_parts_before_a_pause_and_at_the_end_do_not_wait_for_a_frame() {
        let (reports, mut heard) = Reports::channel();
        let relay = DeltaCoalescer::new(&reports);
        let heard_all = |heard: &mut tokio::sync::mpsc::Receiver<Report>| {
            let mut text = String::new();
            while let Ok(Report::Live(Live::TextDelta { text: piece })) = heard.try_recv() {
                text.push_str(&piece);
            }
            text
        };
        let mut text = String::new();
        let began = Instant::now();
        relay
            .during(async {
                for n in 0..20 {
                    relay.take(Chunk::Text(format!("{n} ")));
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                tokio::time::sleep(Duration::from_millis(15)).await;
                text.push_str(&heard_all(&mut heard));
                assert!(text.ends_with("19 "), "{text} after a pause of 16 ms");
                relay.take(Chunk::Text("the end".into()));
            })
            .await;
        text.push_str(&heard_all(&mut heard));
        assert!(text.ends_with("the end"), "{text}");
        assert_eq!(began.elapsed(), Duration::from_millis(35), "nothing was waited for");
    }

    /// Broken build: `send` drops what the channel has no room for.
    #[tokio::test(start_paused = true)]
    async fn a_session_that_waits_for_its_disk_loses_no_text() {
        let (reports, mut heard) = Reports::channel();
        let relay = DeltaCoalescer::new(&reports);
        let mut text = String::new();
        let writes = async {
            for n in 0..10_000 {
                relay.take(Chunk::Text(format!("{n} ")));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let session = async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            assert_eq!(heard.len(), heard.max_capacity(), "no more than this ever waits");
            while !text.ends_with(" 9999 ") {
                let Some(Report::Live(Live::TextDelta { text: more })) = heard.recv().await else { panic!("text") };
                text.push_str(&more);
            }
        };
        tokio::join!(relay.during(writes), session);
        assert_eq!(text, (0..10_000).map(|n| format!("{n} ")).collect::<String>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_a_silence_does_not_wait_and_order_is_kept() {
        let (reports, mut heard) = Reports::channel();
        let relay = DeltaCoalescer::new(&reports);
        let began = Instant::now();
        relay
            .during(async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                relay.take(Chunk::Reasoning("hm".into()));
                relay.take(Chunk::Text("a".into()));
                relay.take(Chunk::Call { index: 0, name: "edit".into(), args: "{\"p".into() });
                relay.take(Chunk::Call { index: 0, name: "edit".into(), args: "\":1}".into() });
                tokio::task::yield_now().await;
                assert_eq!(heard.len(), 3, "sent before anything else is waited for");
            })
            .await;
        assert_eq!(began.elapsed(), Duration::from_secs(1));
        let mut kinds = Vec::new();
        while let Ok(Report::Live(live)) = heard.try_recv() {
            kinds.push(live);
        }
        assert!(matches!(&kinds[2], Live::ToolCallDelta { index: 0, bytes: 7, .. }), "{kinds:?}");
        assert!(matches!(&kinds[..2], [Live::ReasoningDelta { .. }, Live::TextDelta { .. }]));
    }
}
