//! Who changes what in a workspace right now: Sessions that share it do not change the same thing at the same time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::permissions::Touch;
use crate::protocol::error::{Code, Error, Result};

/// The longest wait for a lease.
const PATIENCE: Duration = Duration::from_secs(30);

/// The leases on one workspace. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leases(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    held: Mutex<Vec<Held>>,
    returned: Notify,
}

#[derive(Debug)]
struct Held {
    number: u64,
    holder: String,
    what: Vec<What>,
    since: Instant,
}

/// What a call may change.
#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// One file, as its tool names it.
    File(String),
    /// Anything in the workspace: it cannot be known before the call has run.
    Anything,
}

impl What {
    fn meets(&self, other: &What) -> bool {
        match (self, other) {
            (What::File(one), What::File(other)) => one == other,
            (What::Anything, _) | (_, What::Anything) => true,
        }
    }
}

/// The right to change something. Dropped with the call.
#[derive(Debug)]
pub(crate) struct Lease {
    leases: Leases,
    number: u64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.leases.0.held.lock().retain(|it| it.number != self.number);
        self.leases.0.returned.notify_waiters();
    }
}

impl Leases {
    /// Takes the leases for what a call touches, all at once; `None` where it changes no file. A call holds them only
    /// while it runs, and asks for no more meanwhile, so two calls never wait for each other.
    ///
    /// # Errors
    /// `LEASE_HELD`, with who holds it, after 30 s.
    pub(crate) async fn take(&self, holder: &str, touches: &[Touch]) -> Result<Option<Lease>> {
        let what: Vec<What> = touches.iter().filter_map(wanted).collect();
        if what.is_empty() {
            return Ok(None);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let returned = self.0.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            let (who, since) = match self.try_take(holder, &what) {
                Ok(lease) => return Ok(Some(lease)),
                Err(in_the_way) => in_the_way,
            };
            if tokio::time::timeout_at(deadline, returned).await.is_err() {
                let message = format!("{who} has been changing it for {} s", since.elapsed().as_secs());
                let fix = "wait for it, or do something else first";
                return Err(Error::new(Code::LeaseHeld, message, fix).with("holder", who));
            }
        }
    }

    /// Takes them, or tells who is in the way.
    fn try_take(&self, holder: &str, what: &[What]) -> std::result::Result<Lease, (String, Instant)> {
        let mut held = self.0.held.lock();
        let in_the_way = held.iter().find(|it| it.what.iter().any(|one| what.iter().any(|other| one.meets(other))));
        if let Some(it) = in_the_way {
            return Err((it.holder.clone(), it.since));
        }
        let number = held.last().map_or(1, |last| last.number + 1);
        held.push(Held { number, holder: holder.to_owned(), what: what.to_vec(), since: Instant::now() });
        Ok(Lease { leases: self.clone(), number })
    }
}

fn wanted(touch: &Touch) -> Option<What> {
    match touch {
        Touch::Read | Touch::Outside { .. } | Touch::Note | Touch::Workflow => None,
        Touch::Files { path: Some(path), .. } => Some(What::File(path.clone())),
        Touch::Files { path: None, .. } | Touch::Command(_) | Touch::Program(_) => Some(What::Anything),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Vec<Touch> {
        vec![Touch::Files { path: Some(path.into()), protected: None }]
    }

    /// Broken builds: `meets` compares holders; a lease outlives its call.
    #[tokio::test(start_paused = true)]
    async fn one_changes_a_file_at_a_time_and_a_command_changes_anything() {
        let leases = Leases::default();
        let first = leases.take("worker-1", &file("a")).await.expect("free").expect("a lease");
        let other = leases.take("worker-2", &file("b")).await.expect("another file");
        assert!(leases.take("worker-2", &[Touch::Read]).await.expect("nothing changes").is_none());
        let why = leases.take("worker-2", &file("a")).await.expect_err("worker-1 has it");
        assert_eq!((why.code, why.details["holder"].as_str()), (Code::LeaseHeld, Some("worker-1")));
        let command = [Touch::Command("make".into())];
        assert!(leases.take("worker-2", &command).await.is_err());
        drop((first, other));
        let command = leases.take("worker-2", &command).await.expect("free").expect("a lease");
        assert!(leases.take("worker-1", &file("c")).await.is_err(), "the command may change c too");
        let wanted = file("c");
        let (waits, ()) = tokio::join!(leases.take("worker-1", &wanted), async { drop(command) });
        assert!(waits.expect("the command has ended").is_some());
    }
}
