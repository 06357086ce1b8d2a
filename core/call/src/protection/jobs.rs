//! Protected files around the background jobs of a Session: what is written to them while a job runs is taken back, unless
//! the user keeps it.
//!
//! A job may run for hours, in which the user writes such files too, and the system does not tell who wrote one. So the user
//! is asked first. Where no user can be asked, the files are taken back; their bytes are stored.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::command::Line;
use super::super::gate::{self, Authority};
use super::super::{Call, Context, Gone, Output};
use super::guards::Guards;
use super::{Keeper, Noted, preview, tell};
use files::guard::Taken;
use process::jobs::Jobs;
use protocol::error::Result;
use protocol::event::{JobState, JobStatus};

/// The jobs of a Session that may write to its workspace. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct JobGuards(Arc<Mutex<Vec<JobGuard>>>);

/// A look at the protected files before a job, or when the user was last asked about them.
#[derive(Debug)]
struct JobGuard {
    job: u32,
    guard: Guards,
    /// The look on the disk, for a pixir that is killed.
    _noted: Noted,
}

/// Starts a background job, after a look at the protected files.
///
/// # Errors
/// As [`Jobs::start`].
pub fn start_job(line: Line, jobs: &Arc<Jobs>, shown: &str, ctx: &Context) -> Result<JobState> {
    let line = Line { is_job: true, ..line };
    let watched = line.may_write(ctx).then(|| {
        let guard = Guards::before(ctx, Keeper::Kernel);
        let noted = Noted::of(&guard);
        (guard, noted)
    });
    let started = jobs.start(line.shares(ctx), || line.ready(ctx), shown)?;
    if let Some((guard, noted)) = watched {
        ctx.job_guards.0.lock().push(JobGuard { job: started.id, guard, _noted: noted });
    }
    Ok(started)
}

/// Takes back what was written to protected files while a job ran, unless the user keeps it, and tells so in the result.
///
/// # Errors
/// [`Gone`] when the Session no longer waits for the call.
pub(crate) async fn settle(
    call: &Call,
    output: &mut Output,
    ctx: &Context,
    authority: &dyn Authority,
) -> std::result::Result<(), Gone> {
    // Another call that ends now finds none, and does not ask the same.
    let own = ctx.clone();
    let look = move || own.job_guards.found(&own);
    let Ok(Some(found)) = task::spawn_blocking(look).await else { return Ok(()) };
    let Found { guards, taken, writer } = found;
    let mut waiting = Waiting { guards, ctx };
    if gate::keep(call, &preview(&taken), ctx, &writer, authority).await? {
        for it in &taken {
            output.stderr.push(format!("pixir: the user kept {}\n", it.path).as_bytes());
        }
    } else {
        let (guards, own) = (std::mem::take(&mut waiting.guards), ctx.clone());
        let take = move || {
            let taken = take_back(&guards, &own);
            (guards, taken)
        };
        let Ok((guards, taken)) = task::spawn_blocking(take).await else { return Ok(()) };
        waiting.guards = guards;
        tell(output, &taken, &writer);
    }
    waiting.look_again();
    Ok(())
}

/// Guards that are in use. They return when the question is answered or dropped.
struct Waiting<'a> {
    guards: Vec<JobGuard>,
    ctx: &'a Context,
}

impl Waiting<'_> {
    /// What stands there now has been decided about.
    fn look_again(&mut self) {
        for it in &mut self.guards {
            it.guard.look_again();
            it._noted = Noted::of(&it.guard);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.ctx.job_guards.0.lock().append(&mut self.guards);
    }
}

/// What was written while jobs ran.
struct Found {
    guards: Vec<JobGuard>,
    taken: Vec<Taken>,
    /// Who may have written it, for a sentence.
    writer: String,
}

impl JobGuards {
    /// What was written to protected files while jobs ran; `None` for nothing. The guards of jobs that have ended without
    /// that are dropped. Blocks.
    fn found(&self, ctx: &Context) -> Option<Found> {
        let mut guards = std::mem::take(&mut *self.0.lock());
        if guards.is_empty() {
            return None;
        }
        // The state first: what a job wrote before its end is then found.
        let jobs = ctx.jobs.as_ref().map(|jobs| jobs.list()).unwrap_or_default();
        let runs = |id: u32| jobs.iter().any(|it| it.id == id && it.status == JobStatus::Running);
        let running: BTreeSet<u32> = guards.iter().map(|it| it.job).filter(|id| runs(*id)).collect();
        let mut taken: Vec<Taken> = Vec::new();
        let mut writers = BTreeSet::new();
        guards.retain(|it| {
            let found = it.guard.found();
            let is_clean = found.is_empty();
            if !is_clean {
                writers.insert(it.job);
            }
            for found in found {
                if taken.iter().all(|it| it.path != found.path) {
                    taken.push(found);
                }
            }
            !is_clean || running.contains(&it.job)
        });
        if taken.is_empty() {
            self.0.lock().append(&mut guards);
            return None;
        }
        let ids: Vec<String> = writers.iter().map(|id| format!("job {id}")).collect();
        Some(Found { guards, taken, writer: format!("{}, or another program meanwhile,", ids.join(", ")) })
    }

    /// At the end of a Session, whose jobs have ended: takes back what was written meanwhile where no user could be asked,
    /// and returns what is left or taken. Blocks.
    pub fn close(&self, ctx: &Context, attended: bool) -> Vec<String> {
        let Some(Found { guards, mut taken, writer }) = self.found(ctx) else { return Vec::new() };
        if !attended {
            taken = take_back(&guards, ctx);
            return taken.iter().map(|it| it.told_of(&writer)).collect();
        }
        let left = taken.iter().map(|it| {
            format!("{writer} wrote {}, which is protected and can run code; look at it before you use it", it.path)
        });
        left.collect()
    }
}

fn take_back(guards: &[JobGuard], ctx: &Context) -> Vec<Taken> {
    guards.iter().flat_map(|it| it.guard.take_back(&ctx.blobs)).collect()
}
