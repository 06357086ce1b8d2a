//! A line that can run. Its preview is computed before the user is asked for approval.

use std::time::Duration;

use super::chain::{Ended, How, Take, perform};
use super::{Bound, Effects, Kind, Shared, Step, parse};
use call::Context;
use call::present::Source;
use permissions::Touch;
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;

/// A line that can run, with its preview.
pub struct PreparedLine {
    bound: Bound,
    stdin: Option<Vec<u8>>,
    limit: Duration,
    previewed: Effects,
    /// The preview, for the user.
    pub preview: Preview,
    /// What each command touches.
    pub touches: Vec<Touch>,
}

impl PreparedLine {
    /// Parses the line and computes its preview by a dry run: commands that read run, commands that change something
    /// describe the change.
    ///
    /// # Errors
    /// `UNSUPPORTED_SYNTAX`, or the error of a command that cannot succeed.
    pub fn new(line: &str, stdin: Option<Vec<u8>>, limit: Duration, ctx: &Context) -> Result<PreparedLine> {
        let bound = Bound::find(parse(line)?, stdin.is_some(), ctx)?;
        let preview = Preview { would: "run".into(), target: line.trim().to_owned(), ..Preview::default() };
        // The time that the user needs to answer must not count against the time limit.
        let asks = bound.steps().any(|step| step.command.words[0].text == "ask");
        let limit = if asks { limit + Duration::from_secs(24 * 3600) } else { limit };
        let touches = bound.touches();
        let mut call = PreparedLine { bound, stdin, limit, previewed: Effects::default(), preview, touches };
        if call.touches.iter().all(Touch::only_reads) {
            return Ok(call);
        }
        let effects = Shared::default();
        let stdin = call.stdin.clone();
        // Cancelling the dry run must not cancel the call itself.
        let ctx = &Context { cancel: ctx.cancel.child_token(), ..ctx.clone() };
        let mut unheard = |_: &[u8]| true;
        let dry = perform(&call.bound, stdin, How::Dry, call.limit, ctx, &effects, &mut unheard);
        let ended = task::block_on(&tokio::runtime::Handle::current(), dry)?;
        if ended.timed_out {
            let message = format!("reading the input of this line took longer than {} s", call.limit.as_secs());
            return Err(Error::new(Code::Timeout, message, "a longer timeout, or less input"));
        }
        call.previewed = effects.take();
        // The user is not asked to approve a line that cannot run: one with a usage error, or one that would fail
        // without changing anything.
        let is_one = call.bound.pipelines.len() == 1;
        let in_vain = ended.exit != 0 && !ended.assumed && (is_one || !call.previewed.would_do_anything());
        let fault =
            ended.errors.iter().find(|(_, error)| in_vain || [Code::Usage, Code::UnknownFlag].contains(&error.code));
        if let Some((name, error)) = fault {
            return Err(error.clone().with("command", name.clone()));
        }
        if call.previewed.previews.is_empty() {
            // The preview contains no change, and the real run refuses a change that the preview does not contain.
            // What it reads outside the workspace is judged all the same.
            call.touches.retain(|touch| matches!(touch, Touch::Outside { .. }));
        } else {
            let found = |(n, touch)| call.previewed.touches.get(&n).cloned().unwrap_or_else(|| vec![touch]);
            call.touches = call.touches.into_iter().enumerate().flat_map(found).collect();
        }
        call.preview = told(call.preview, &call.previewed, &ended);
        Ok(call)
    }

    /// The file whose bytes the line prints, if the line is `cat <path>`.
    pub fn source(&self) -> Option<Source> {
        let [(_, steps)] = self.bound.pipelines.as_slice() else { return None };
        let [step] = steps.as_slice() else { return None };
        match step.command.words.as_slice() {
            [name, path] if name.text == "cat" && !path.text.starts_with('-') => {
                Some(Source { path: path.text.clone() })
            }
            _ => None,
        }
    }

    /// Whether a built-in command prints part of the output. That part is text from files.
    pub fn is_of_files(&self) -> bool {
        let ours = |steps: &Vec<Step>| steps.last().is_some_and(|step| !matches!(step.kind, Kind::Program { .. }));
        self.bound.pipelines.iter().any(|(_, steps)| ours(steps))
    }

    /// Runs the line and passes its raw output to `take`.
    ///
    /// # Errors
    /// The system's error when it cannot create a pipe or a process.
    pub async fn perform(self, ctx: &Context, take: Take<'_>) -> Result<(Ended, Effects)> {
        let effects = Shared::default();
        {
            let mut effects = effects.lock();
            (effects.previewed, effects.touches) = (self.previewed.previewed, self.previewed.touches);
        }
        let mut ended = perform(&self.bound, self.stdin, How::Really, self.limit, ctx, &effects, take).await?;
        if ended.timed_out {
            let seconds = self.limit.as_secs();
            let message = format!("stopped after {seconds} s");
            ended
                .errors
                .push(("run".to_owned(), Error::new(Code::Timeout, message, "a longer timeout if the line needs one")));
        }
        Ok((ended, effects.take()))
    }
}

/// The preview of a line: what each command would do, and what is uncertain.
fn told(mut preview: Preview, previewed: &Effects, ended: &Ended) -> Preview {
    for it in &previewed.previews {
        let new: Vec<String> = it.paths.iter().filter(|path| !preview.paths.contains(path)).cloned().collect();
        preview.paths.extend(new);
    }
    let fails =
        ended.errors.iter().map(|(name, error)| format!("in the current state {name} would fail: {}", error.message));
    preview.notes.extend(fails);
    preview.notes.extend(previewed.previews.iter().flat_map(|it| it.notes.clone()));
    if ended.assumed {
        preview.notes.push("commands after a program or a question are previewed as if it succeeded".into());
    }
    let sizes: Vec<u64> = previewed.previews.iter().filter_map(|it| it.bytes).collect();
    preview.bytes = (!sizes.is_empty()).then(|| sizes.iter().sum());
    preview.steps.clone_from(&previewed.previews);
    preview
}
