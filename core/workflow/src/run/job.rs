//! What a unit is to do: its words, its checks, and its rounds.

use serde_json::{Value, json};

use super::super::graph::{Repeat, Retry, Step, Work};
use super::super::schedule::Unit;
use super::super::template::Scope;
use protocol::error::{Error, Result};
use protocol::event::{
    Adoption, AgentResult, Ask, DecidedBy, Denial, Held, Isolation, StepEnded, StepOutcome, StepStarted,
};

/// What a unit is to do.
pub(super) struct Job {
    pub(super) unit: Unit,
    pub(super) id: String,
    pub(super) key: String,
    pub(super) item: Option<Value>,
    pub(super) work: Work,
    /// The task, or the words of the command, or the question, with its paths filled.
    pub(super) words: Vec<String>,
    pub(super) checks: Vec<Vec<String>>,
    pub(super) seconds: Option<u64>,
    pub(super) retry: Option<Retry>,
    pub(super) repeat: Option<Rounds>,
    pub(super) attempt: u32,
    pub(super) agent: Option<super::super::checked::AgentTerms>,
    /// Its agent had ended when pixir died.
    pub(super) late: Option<Late>,
    /// Its command has run, and its checks were not allowed then.
    pub(super) unchecked: Option<StepEnded>,
    /// How it ended before, where its files are not as it left them.
    pub(super) before: Option<(StepEnded, Value)>,
    /// Why the user decides about it before it begins: it runs again, counts as done, or is skipped.
    pub(super) doubt: Option<String>,
}

/// A step whose agent had ended when pixir died, and which had no end of its own.
pub(super) struct Late {
    pub(super) started: StepStarted,
    pub(super) result: AgentResult,
    /// What of its copy is in the workspace.
    pub(super) adopted: Option<Adoption>,
}

/// The rounds of a unit that repeats, and what each can refer to.
pub(super) struct Rounds {
    pub(super) repeat: Repeat,
    pub(super) base: Value,
    pub(super) follows: Option<(String, usize)>,
}

impl Job {
    /// What this round is to do, after a round that ended so.
    pub(super) fn round(&self, last: &Value) -> Result<Vec<String>> {
        let Some(rounds) = &self.repeat else { return Ok(self.words.clone()) };
        words(&self.work, &rounds.scope(self.item.as_ref(), last))
    }

    /// Whether the last round was the last one that is needed.
    pub(super) fn is_enough(&self, last: &Value, completed: bool) -> bool {
        match self.repeat.as_ref().map(|rounds| (rounds, &rounds.repeat.until)) {
            Some((rounds, Some(until))) => until.holds(&rounds.scope(self.item.as_ref(), last)),
            Some((_, None)) | None => completed,
        }
    }

    pub(super) fn most_rounds(&self) -> u32 {
        self.repeat.as_ref().map_or(1, |rounds| rounds.repeat.max)
    }

    pub(super) fn started(&self, attempt: u32) -> StepStarted {
        StepStarted {
            id: self.id.clone(),
            key: self.key.clone(),
            item: self.item.clone(),
            attempt,
            ..StepStarted::default()
        }
    }

    pub(super) fn ended(&self, status: StepOutcome, error: Option<&Error>) -> StepEnded {
        StepEnded {
            id: self.id.clone(),
            key: self.key.clone(),
            status,
            error: error.map(Error::body),
            ..StepEnded::default()
        }
    }

    /// It waits for the user.
    pub(super) fn waiting(&self, why: &str, question: String, choices: Vec<String>) -> Held {
        Held { status: StepOutcome::Waiting, ask: Some(Ask { question, choices }), ..self.held("user", why) }
    }

    /// It may not do what it was to do.
    pub(super) fn held(&self, by: &str, why: impl Into<String>) -> Held {
        Held {
            id: self.id.clone(),
            status: StepOutcome::Held,
            by: by.to_owned(),
            why: why.into(),
            key: Some(self.key.clone()),
            ..Held::default()
        }
    }

    /// One of its checks may not run.
    pub(super) fn held_by_check(&self, denial: Denial) -> Held {
        let why = format!("the check `{}`: {}", denial.call, denial.reason);
        Held { denials: vec![denial], ..self.held("permissions", why) }
    }

    /// What its command wrote to protected files was taken back, so it has not done all of its work.
    pub(super) fn put_back(&self, ended: StepEnded, paths: &[String], line: &str) -> Held {
        let (first, more) = (paths.first().map_or("", String::as_str), paths.len().saturating_sub(1));
        let others = if more == 0 { String::new() } else { format!(" and {more} more") };
        let denial = Denial {
            agent: Vec::new(),
            call_id: ended.key.clone(),
            call: line.chars().take(200).collect(),
            by: DecidedBy::NoAsker,
            reason: format!("what it wrote to protected files was put back: {first}{others}"),
            rule: None,
            has_feedback: false,
        };
        let why = denial.reason.clone();
        Held { ended: Some(Box::new(ended)), denials: vec![denial], ..self.held("permissions", why) }
    }

    /// Whether running it twice could do something twice.
    pub(super) fn has_lasting_effects(&self) -> bool {
        match &self.work {
            Work::Command { is_idempotent, .. } => !is_idempotent,
            Work::Agent(_) => self.agent.as_ref().is_some_and(|it| !it.reads_only && it.isolation == Isolation::Shared),
            Work::Gate { .. } | Work::Workflow { .. } | Work::Join { .. } => false,
        }
    }
}

impl Rounds {
    fn scope<'a>(&'a self, item: Option<&'a Value>, last: &'a Value) -> Scope<'a> {
        let follows = self.follows.as_ref().map(|(id, item)| (id.as_str(), *item));
        Scope { base: &self.base, item, last: Some(last), follows }
    }
}

/// What there is before the first round.
pub(super) fn no_round() -> Value {
    json!({ "output": "", "status": "", "exit_code": 0, "checks": "", "round": 0 })
}

pub(super) fn words(work: &Work, scope: &Scope<'_>) -> Result<Vec<String>> {
    match work {
        Work::Agent(agent) => agent.task.prompt(scope).map(|task| vec![task]),
        Work::Command { argv, .. } => argv.iter().map(|word| word.text(scope)).collect(),
        Work::Gate { ask, .. } => ask.text(scope).map(|ask| vec![ask]),
        Work::Workflow { .. } | Work::Join { .. } => Ok(Vec::new()),
    }
}

/// What a step does, as a part of its key: everything that changes its result.
pub(super) fn content(step: &Step, id: &str, words: &[String], checks: &[Vec<String>], item: Option<&Value>) -> Value {
    let own = |key: &str| step.source.get(key).cloned().unwrap_or(Value::Null);
    json!({
        "id": step.id,
        "kind": step.kind(),
        "words": words,
        "checks": checks,
        "item": item,
        "role": own("role"),
        "schema": own("schema"),
        "isolation": own("isolation"),
        "writes": own("writes"),
        "choices": own("choices"),
        "repeat": own("repeat"),
        "join": matches!(step.work, Work::Join { .. }).then_some(id),
    })
}
