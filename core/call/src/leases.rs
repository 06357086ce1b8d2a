//! Who changes what in a workspace right now: Sessions that share it do not change the same thing at the same time.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use permissions::{Changes, Touch};
use protocol::error::{Code, Error, Result};

/// The longest wait of a model's call for a lease: it can do something else first.
const PATIENCE: Duration = Duration::from_secs(30);

/// The leases on one workspace. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Leases(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    held: Mutex<Vec<Held>>,
    returned: Notify,
}

#[derive(Debug)]
struct Held {
    number: u64,
    holder: Holder,
    what: Vec<What>,
    since: Instant,
}

/// Who takes leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// How others are told who holds a lease: the agent's path, or `the main session`.
    pub name: String,
    /// The calls are the steps of a run of a workflow. Its graph says which of them run together, so they do not exclude each
    /// other, and each waits for a lease of an agent as long as the agent needs.
    pub is_run: bool,
}

impl Holder {
    /// The calls of a model.
    pub fn named(name: impl Into<String>) -> Holder {
        Holder { name: name.into(), is_run: false }
    }

    fn excludes(&self, other: &Holder) -> bool {
        !(self.is_run && self == other)
    }
}

/// How long a lease is waited for.
#[derive(Debug, Clone, Copy)]
pub enum Patience<'a> {
    /// 30 s.
    Short,
    /// Until this is cancelled.
    Until(&'a CancellationToken),
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
pub struct Lease {
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
    /// `LEASE_HELD`, with who holds it, when the patience is over.
    pub async fn take(&self, holder: &Holder, touches: &[Touch], patience: Patience<'_>) -> Result<Option<Lease>> {
        let what: Vec<What> = touches.iter().filter_map(wanted).collect();
        if what.is_empty() {
            return Ok(None);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let returned = self.0.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            let (who, since) = match self.take_now(holder, &what) {
                Ok(lease) => return Ok(Some(lease)),
                Err(in_the_way) => in_the_way,
            };
            let is_over = match patience {
                Patience::Short => tokio::time::timeout_at(deadline, returned).await.is_err(),
                Patience::Until(over) => over.run_until_cancelled(returned).await.is_none(),
            };
            if is_over {
                let message = format!("{who} has been changing it for {} s", since.elapsed().as_secs());
                let fix = "wait for it, or do something else first";
                return Err(Error::new(Code::LeaseHeld, message, fix).with("holder", who));
            }
        }
    }

    /// Takes them if they are free; otherwise tells who holds one of them.
    pub(crate) fn try_take(&self, holder: &Holder, touches: &[Touch]) -> std::result::Result<Option<Lease>, String> {
        let what: Vec<What> = touches.iter().filter_map(wanted).collect();
        if what.is_empty() {
            return Ok(None);
        }
        self.take_now(holder, &what).map(Some).map_err(|(who, _)| who)
    }

    /// Takes them, or tells who is in the way.
    fn take_now(&self, holder: &Holder, what: &[What]) -> std::result::Result<Lease, (String, Instant)> {
        let mut held = self.0.held.lock();
        let in_the_way = held
            .iter()
            .filter(|it| it.holder.excludes(holder))
            .find(|it| it.what.iter().any(|one| what.iter().any(|other| one.meets(other))));
        if let Some(it) = in_the_way {
            return Err((it.holder.name.clone(), it.since));
        }
        let number = held.last().map_or(1, |last| last.number + 1);
        held.push(Held { number, holder: holder.clone(), what: what.to_vec(), since: Instant::now() });
        Ok(Lease { leases: self.clone(), number })
    }
}

fn wanted(touch: &Touch) -> Option<What> {
    match touch.changes() {
        Changes::Nothing => None,
        Changes::File(path) => Some(What::File(path.to_owned())),
        Changes::Anything => Some(What::Anything),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Vec<Touch> {
        vec![Touch::Files { path: Some(path.into()), protected: None }]
    }

    fn agent(number: u32) -> Holder {
        Holder::named(format!("worker-{number}"))
    }

    /// Broken builds: `meets` compares holders; a lease outlives its call.
    #[tokio::test(start_paused = true)]
    async fn one_changes_a_file_at_a_time_and_a_command_changes_anything() {
        let leases = Leases::default();
        let take = |holder: Holder, touches: Vec<Touch>| {
            let leases = leases.clone();
            async move { leases.take(&holder, &touches, Patience::Short).await }
        };
        let first = take(agent(1), file("a")).await.expect("free").expect("a lease");
        let other = take(agent(2), file("b")).await.expect("another file");
        assert!(take(agent(2), vec![Touch::Read]).await.expect("nothing changes").is_none());
        let why = take(agent(2), file("a")).await.expect_err("worker-1 has it");
        assert_eq!((why.code, why.details["holder"].as_str()), (Code::LeaseHeld, Some("worker-1")));
        let command = || vec![Touch::Command("make".into())];
        assert!(take(agent(2), command()).await.is_err());
        drop((first, other));
        let command = take(agent(2), command()).await.expect("free").expect("a lease");
        assert!(take(agent(1), file("c")).await.is_err(), "the command may change c too");
        let (waits, ()) = tokio::join!(take(agent(1), file("c")), async { drop(command) });
        assert!(waits.expect("the command has ended").is_some());
    }

    /// Broken builds: commands of one run exclude each other; a step gives up after the 30 s of a model's call; a run shares its
    /// leases with an agent.
    #[tokio::test(start_paused = true)]
    async fn commands_of_a_run_share_the_workspace_and_wait_for_an_agent_as_long_as_it_needs() {
        let leases = Leases::default();
        let run = Holder { name: "the main session".into(), is_run: true };
        let over = CancellationToken::new();
        let command = [Touch::Command("make".into())];
        let first = leases.take(&run, &command, Patience::Until(&over)).await.expect("free");
        let second = leases.take(&run, &command, Patience::Until(&over)).await.expect("of the same run");
        assert!(leases.take(&agent(1), &file("a"), Patience::Short).await.is_err(), "the run has the workspace");
        drop((first, second));
        let edits = leases.take(&agent(1), &file("a"), Patience::Short).await.expect("free");
        let began = Instant::now();
        let agent_ends = async {
            tokio::time::sleep(PATIENCE * 20).await;
            drop(edits);
        };
        let (waits, ()) = tokio::join!(leases.take(&run, &command, Patience::Until(&over)), agent_ends);
        assert!(waits.expect("the agent has ended").is_some() && began.elapsed() >= PATIENCE * 20);
        let edits = leases.take(&agent(1), &file("a"), Patience::Short).await.expect("free");
        over.cancel();
        let why = leases.take(&run, &command, Patience::Until(&over)).await.expect_err("the run was stopped");
        assert_eq!(why.code, Code::LeaseHeld);
        drop(edits);
    }
}
