//! `--input jsonl`: Inputs from stdin, one JSON object a line, each answered by a line of type `response` with its `id`.
//! Events go to stdout as for one Turn, and one result ends the stream.

use std::collections::VecDeque;
use std::io::{BufRead as _, Read as _};
use std::time::Instant;

use pixir_core::event::Status;
use pixir_core::{Accepted, Code, Error, Handle, Input, Live, Result};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Job, TurnReport};
use crate::cli::Signals;
use crate::output::envelope;

/// The longest line, bytes.
const MAX_LINE: u64 = 16 << 20;

/// The answer to an Input, with the `id` that the line had.
struct Answer {
    id: Value,
    outcome: Result<Accepted>,
}

/// Takes Inputs until stdin ends and the Session is idle, or a signal comes. Returns the exit code.
pub(crate) async fn run(handle: &Handle, job: Job<'_>, mut signals: Signals) -> u8 {
    let began = Instant::now();
    let output = job.output;
    let Some(mut watch) = handle.watch().await else {
        output.error(&Error::new(Code::SessionStartFailed, "the session closed before it began", "try again"));
        return 1;
    };
    let mut report = TurnReport { is_host: true, ..TurnReport::new(handle, &job) };
    report.print_past(&mut watch, job.resumed);
    let mut lines = read_lines();
    let mut waiting: VecDeque<(Value, Input)> = VecDeque::new();
    if !job.prompt.trim().is_empty() {
        waiting.push_back((Value::Null, Input::Prompt(job.prompt.clone().into())));
    }
    // One Input at a time, so that their order is kept. An interrupt waits for none.
    let mut asked: JoinSet<Answer> = JoinSet::new();
    let mut interrupts: JoinSet<Answer> = JoinSet::new();
    let mut is_open = true;
    // Asking the Session is expensive, so it is asked only after something that may have been the last.
    let mut may_be_idle = true;
    while !output.is_closed() && report.stopped.is_none() {
        if asked.is_empty()
            && let Some((id, input)) = waiting.pop_front()
        {
            ask(&mut asked, handle, id, input);
        }
        let has_answered = !is_open && asked.is_empty() && interrupts.is_empty();
        if has_answered && std::mem::take(&mut may_be_idle) && is_idle(handle).await {
            break;
        }
        tokio::select! {
            line = lines.recv(), if is_open => match line.map(|line| parse(&line)) {
                None => (is_open, may_be_idle) = (false, true),
                Some(Ok((id, Input::Interrupt))) => ask(&mut interrupts, handle, id, Input::Interrupt),
                Some(Ok(input)) => waiting.push_back(input),
                Some(Err((id, error))) => output.line(&response(&Answer { id, outcome: Err(error) })),
            },
            Some(Ok(answer)) = asked.join_next() => {
                output.line(&response(&answer));
                may_be_idle = true;
            }
            Some(Ok(answer)) = interrupts.join_next() => {
                output.line(&response(&answer));
                may_be_idle = true;
            }
            event = watch.next() => {
                let Some(event) = event else { break };
                report.handle_event(&event);
                may_be_idle |= matches!(event.live(), Some(Live::Status { status: Status::Idle }));
            }
            code = signals.next() => report.stopped = Some(code),
        }
    }
    handle.close().await;
    while let Some(event) = watch.try_next() {
        report.handle_event(&event);
    }
    report.conclude(began)
}

fn ask(asked: &mut JoinSet<Answer>, handle: &Handle, id: Value, input: Input) {
    let handle = handle.clone();
    asked.spawn(async move { Answer { id, outcome: handle.request(input).await } });
}

/// Nothing runs, and nothing waits to run.
async fn is_idle(handle: &Handle) -> bool {
    handle.settle().await;
    let Some(watch) = handle.watch().await else { return true };
    watch.now.status == Status::Idle && watch.now.queue.steer.is_empty() && watch.now.queue.follow_up.is_empty()
}

/// The lines of stdin, read on a thread of its own, because a read cannot be cancelled.
fn read_lines() -> mpsc::Receiver<Vec<u8>> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match stdin.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(len) if len > 0 => {}
                Ok(_) | Err(_) => return,
            }
            let is_blank = line.iter().all(u8::is_ascii_whitespace);
            if !is_blank && sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The `id` of a line and its Input. A line without an `id` is answered with null.
fn parse(line: &[u8]) -> std::result::Result<(Value, Input), (Value, Error)> {
    const FIX: &str = "one JSON object a line, such as {\"id\":1,\"type\":\"prompt\",\"text\":\"go\"}";
    let invalid =
        |id: Value, why: String| (id, Error::new(Code::InvalidArgs, format!("the input is no Input: {why}"), FIX));
    let mut value: Value = serde_json::from_slice(line).map_err(|e| invalid(Value::Null, e.to_string()))?;
    let id = value.as_object_mut().and_then(|fields| fields.remove("id")).unwrap_or_default();
    match serde_json::from_value(value) {
        Ok(input) => Ok((id, input)),
        Err(e) => Err(invalid(id, e.to_string())),
    }
}

fn response(Answer { id, outcome }: &Answer) -> String {
    let answer = match outcome {
        Ok(accepted) => json!({ "type": "response", "id": id, "ok": true, "accepted": accepted }),
        Err(error) => {
            let mut answer = envelope(error);
            answer["type"] = json!("response");
            answer["id"] = id.clone();
            answer
        }
    };
    answer.to_string()
}
