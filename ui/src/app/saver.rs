//! The interface's own small files, written in the order in which they were handed over, and usually on another thread:
//! a disk that is slow for a moment must not delay a key.

use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;

type Write = Box<dyn FnOnce() + Send>;

/// What is handed over, and whose turn it is to write.
#[derive(Clone, Default)]
pub(super) struct Saver {
    handed_over: Arc<Mutex<Vec<Write>>>,
    writing: Arc<Mutex<()>>,
}

impl Saver {
    pub(super) fn hand_over(&self, write: impl FnOnce() + Send + 'static) {
        self.handed_over.lock().push(Box::new(write));
    }

    /// Writes all that was handed over, after what another thread is writing.
    pub(super) fn write(&self) {
        let _turn = self.writing.lock();
        let writes = mem::take(&mut *self.handed_over.lock());
        writes.into_iter().for_each(|write| write());
    }

    /// Whether something is still being written, or waits for it.
    pub(super) fn is_busy(&self) -> bool {
        self.writing.is_locked() || !self.handed_over.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Broken build: what is handed over last is written at once, and an older draft then replaces it.
    #[test]
    fn a_slow_write_ends_before_the_next_begins_and_handing_over_waits_for_neither() {
        let saver = Saver::default();
        let (written, order) = mpsc::channel();
        let (began, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let first = written.clone();
        saver.hand_over(move || {
            began.send(()).expect("the other thread is there");
            may_go_on.recv().expect("the other thread is there");
            first.send("old").expect("the other thread is there");
        });
        let other = saver.clone();
        let slow = thread::spawn(move || other.write());
        has_begun.recv().expect("the other thread is there");
        // The disk is slow. Nothing of this waits for it.
        saver.hand_over(move || written.send("new").expect("the other thread is there"));
        assert!(saver.is_busy());
        assert!(order.try_recv().is_err(), "the first one is still being written");
        let other = saver.clone();
        let after = thread::spawn(move || other.write());
        go_on.send(()).expect("the other thread is there");
        slow.join().expect("it ends");
        after.join().expect("it ends");
        assert_eq!(order.iter().collect::<Vec<_>>(), ["old", "new"]);
        assert!(!saver.is_busy());
    }
}
