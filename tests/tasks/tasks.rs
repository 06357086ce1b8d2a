//! Five tasks in small repositories, each solved by a scripted model in the typed tools and in the run language. They show
//! what a model needs for them: requests, calls, and the bytes that it reads.

mod feature; // a format more, in four files
mod flaky; // a test that fails now and then
mod large_file; // one function among thousands
mod seeded_bug; // one wrong operator
mod server_job; // a server that answers wrongly

use serde_json::Value;

use crate::server::{Dialect, Reply, Server};
use crate::shell::{Shell, entries};

/// A task, and how a model solves it.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) prompt: &'static str,
    files: Vec<(&'static str, String)>,
    /// The rounds of the model with the typed tools, and with the run language.
    rounds: [Vec<Round>; 2],
    /// The most bytes of all its requests together, likewise. Who raises one has read why.
    pub(crate) most: [usize; 2],
    /// Fails unless the task is solved.
    check: fn(&Shell),
}

/// One answer of the model.
struct Round {
    calls: Vec<Call>,
}

/// A call, and what its result must show, since the next answer builds on it.
struct Call {
    tool: &'static str,
    args: Value,
    shows: &'static [&'static str],
}

/// What a model needed for a task.
#[derive(Debug)]
pub(crate) struct Effort {
    pub(crate) requests: usize,
    pub(crate) calls: usize,
    /// Bytes of the first request.
    pub(crate) first: usize,
    /// Bytes of all requests.
    pub(crate) all: usize,
}

/// The toolsets, in the order of [`Task::rounds`].
pub(crate) const TOOLSETS: [&str; 2] = ["typed", "run"];

pub(crate) fn all() -> Vec<Task> {
    vec![seeded_bug::task(), flaky::task(), large_file::task(), feature::task(), server_job::task()]
}

impl Task {
    /// Carries the task out with one toolset.
    ///
    /// # Panics
    /// A result does not show what the model needs, or the task is not solved.
    pub(crate) fn carry_out(&self, which: usize) -> Effort {
        let files: Vec<(&str, &str)> = self.files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let shell = Shell::new(&files);
        let rounds = &self.rounds[which];
        let mut number = 0;
        let mut replies: Vec<Reply> = Vec::new();
        for round in rounds {
            let calls = round.calls.iter().map(|call| {
                number += 1;
                (format!("c{number}"), call.tool.to_owned(), call.args.clone())
            });
            replies.push(Reply::Answer { text: String::new(), calls: calls.collect() });
        }
        replies.push(Reply::Answer { text: "Done.".into(), calls: Vec::new() });
        let server = Server::start(replies);
        let mut args = server.flags(Dialect::Responses);
        args.extend(["--headless", "--json", "--write", "--toolset", TOOLSETS[which], self.prompt].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{} with {}: {}{}", self.name, TOOLSETS[which], ran.stdout, ran.stderr);
        let log = entries(&shell.logs()[0]);
        let results: Vec<&str> = log
            .iter()
            .filter(|entry| entry["type"] == "tool_result")
            .map(|entry| entry["data"]["output"].as_str().expect("text"))
            .collect();
        let wanted: Vec<_> = rounds.iter().flat_map(|round| &round.calls).collect();
        assert_eq!(results.len(), wanted.len(), "{}: each call has a result", self.name);
        for (Call { tool, args, shows }, result) in wanted.into_iter().zip(&results) {
            for text in *shows {
                assert!(result.contains(text), "{}: {tool} {args} does not show `{text}`:\n{result}", self.name);
            }
        }
        (self.check)(&shell);
        let bodies: Vec<usize> = server.bodies().iter().map(|body| body.to_string().len()).collect();
        Effort { requests: bodies.len(), calls: results.len(), first: bodies[0], all: bodies.iter().sum() }
    }
}

/// A round of these calls.
fn round(calls: impl Into<Vec<Call>>) -> Round {
    Round { calls: calls.into() }
}

fn call(tool: &'static str, args: Value, shows: &'static [&'static str]) -> Call {
    Call { tool, args, shows }
}
