//! A line that can run: what it would do is known before anybody is asked.

use std::time::Duration;

use super::chain::{Ended, How, Take, perform};
use super::{Bound, Effects, Kind, Shared, Step, parse};
use crate::call::Context;
use crate::call::present::Source;
use crate::permissions::Action;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::Plan;

/// A chain that can run: what it would do is known as far as it can be.
pub struct Call {
    bound: Bound,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    planned: Effects,
    /// For a person.
    pub plan: Plan,
    /// What each of its commands touches.
    pub actions: Vec<Action>,
}

impl Call {
    /// Reads the line, and does it dry when it would change anything: what reads does so, what changes says how.
    ///
    /// # Errors
    /// `UNSUPPORTED_SYNTAX`, and what makes a single command impossible.
    pub fn plan(line: &str, stdin: Option<Vec<u8>>, limit: Duration, ctx: &Context) -> Result<Call> {
        let bound = Bound::find(parse(line)?, stdin.is_some(), ctx)?;
        let plan = Plan { would: "run".into(), target: line.trim().to_owned(), ..Plan::default() };
        // A person takes as long as a person takes.
        let asks = bound.steps().any(|step| step.command.words[0].text == "ask");
        let limit = if asks { limit + Duration::from_secs(24 * 3600) } else { limit };
        let actions = bound.actions();
        let mut call = Call { bound, stdin, limit, planned: Effects::default(), plan, actions };
        if call.actions.iter().all(|action| *action == Action::Read) {
            return Ok(call);
        }
        let effects = Shared::default();
        let stdin = call.stdin.clone();
        // What ends the planning does not end what is planned.
        let ctx = &Context { cancel: ctx.cancel.child_token(), ..ctx.clone() };
        let mut unheard = |_: &[u8]| true;
        let dry = perform(&call.bound, stdin, How::Dry, call.limit, ctx, &effects, &mut unheard);
        let ended = tokio::runtime::Handle::current().block_on(dry)?;
        if ended.timed_out {
            let message = format!("reading the input of this line took longer than {} s", call.limit.as_secs());
            return Err(Error::new(Code::Timeout, message, "set a longer timeout, or read less"));
        }
        call.planned = effects.take();
        // Nobody is asked to approve what cannot run: a command that is not called as it must be, a line of which nothing would come.
        let is_one = call.bound.pipelines.len() == 1;
        let in_vain = ended.exit != 0 && !ended.assumed && (is_one || !call.planned.would_do_anything());
        let fault =
            ended.errors.iter().find(|(_, error)| in_vain || [Code::Usage, Code::UnknownFlag].contains(&error.code));
        if let Some((name, error)) = fault {
            return Err(error.clone().with("command", name.clone()));
        }
        if call.planned.plans.is_empty() {
            // As it is now it changes nothing; should that be otherwise when it runs, it still does not.
            call.actions = vec![Action::Read];
        }
        call.plan = told(call.plan, &call.planned, &ended);
        Ok(call)
    }

    /// The file whose bytes it prints, when it is nothing but `cat <path>`.
    pub(crate) fn source(&self) -> Option<Source> {
        let [(_, steps)] = self.bound.pipelines.as_slice() else { return None };
        let [step] = steps.as_slice() else { return None };
        match step.command.words.as_slice() {
            [name, path] if name.text == "cat" && !path.text.starts_with('-') => {
                Some(Source { path: path.text.clone() })
            }
            _ => None,
        }
    }

    /// Some of what it prints is printed by commands of ours: the text of files.
    pub(crate) fn is_of_files(&self) -> bool {
        let ours = |steps: &Vec<Step>| steps.last().is_some_and(|step| !matches!(step.kind, Kind::Program { .. }));
        self.bound.pipelines.iter().any(|(_, steps)| ours(steps))
    }

    /// Layer 1: what it prints, as it is.
    ///
    /// # Errors
    /// What the system says when there are no more pipes or processes.
    pub async fn perform(self, ctx: &Context, take: Take<'_>) -> Result<(Ended, Effects)> {
        let effects = Shared::default();
        effects.lock().planned = self.planned.planned;
        let mut ended = perform(&self.bound, self.stdin, How::Really, self.limit, ctx, &effects, take).await?;
        if ended.timed_out {
            let seconds = self.limit.as_secs();
            let message = format!("stopped after {seconds} s");
            ended.errors.push((
                "run".to_owned(),
                Error::new(Code::Timeout, message, "set a longer timeout if the line needs one"),
            ));
        }
        Ok((ended, effects.take()))
    }
}

/// The plan of a chain: what each command would do, and what is not certain.
fn told(mut plan: Plan, planned: &Effects, ended: &Ended) -> Plan {
    for it in &planned.plans {
        let new: Vec<String> = it.paths.iter().filter(|path| !plan.paths.contains(path)).cloned().collect();
        plan.paths.extend(new);
    }
    let fails =
        ended.errors.iter().map(|(name, error)| format!("in the current state {name} would fail: {}", error.message));
    plan.notes.extend(fails);
    if ended.assumed {
        plan.notes.push("commands after a program or a question are previewed as if it succeeded".into());
    }
    let sizes: Vec<u64> = planned.plans.iter().filter_map(|it| it.bytes).collect();
    plan.bytes = (!sizes.is_empty()).then(|| sizes.iter().sum());
    plan.steps.clone_from(&planned.plans);
    plan
}
