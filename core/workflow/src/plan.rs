//! What a run would be, worked out without doing anything: its layers, its instances, and the most that it can cost.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::checked::{Checked, CheckedStep};
use super::graph::{Each, Work};
use super::template::{Scope, Template};
use call::agents::{ModelTerms, Usual};
use text::human::human_count;

/// What a request may exceed a budget by where the window of the model is unknown, tokens.
const WINDOW: u64 = 200_000;

/// A run as it would be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkflowPlan {
    /// The name of the workflow.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// 32 hex digits of the BLAKE3 hash of the graph, and of the workflows and roles that it uses.
    pub hash: String,
    /// Steps that can run at the same time, layer by layer.
    pub layers: Vec<Vec<PlannedStep>>,
    /// The values of its parameters.
    pub params: Map<String, Value>,
    /// The most steps that run at the same time.
    pub concurrency: usize,
    /// The longest time, seconds.
    pub seconds: u64,
    /// The most agents, where every list has its most items.
    pub most_agents: u64,
    /// The most tokens of all agents.
    pub most_tokens: u64,
    /// The limits of the graph for all agents; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_tokens: Option<u64>,
    /// In US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_cost: Option<f64>,
    /// After so many failed steps no other is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_failures: Option<usize>,
    /// The most US dollars of all agents; absent where the price of a model is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_cost: Option<f64>,
}

/// A step as it would be.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PlannedStep {
    /// The step.
    pub id: String,
    /// `agent`, `command`, `gate` or `workflow`.
    pub kind: &'static str,
    /// The steps that it waits for.
    pub needs: Vec<String>,
    /// How many items it has; `None` where the list is not known yet.
    pub instances: Option<usize>,
    /// The most items.
    pub most_instances: usize,
    /// The role of its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// `shared`, `copy` or `scratch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<&'static str>,
    /// It changes nothing.
    pub reads_only: bool,
    /// Globs of the only files that it changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// The command; in the first layer also the task or the question. What is not known yet stands in it as it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub does: Option<String>,
    /// The commands that check it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// It runs only under a condition.
    pub conditional: bool,
}

/// The most characters of a task that a line shows.
const MAX_TASK: usize = 120;
/// The most characters of a command that a line shows: the user approves what runs.
const MAX_COMMAND: usize = 2_000;

impl PlannedStep {
    /// The step as a plan shows it: what it is, what it waits for, and below it what it does, where that is known.
    pub fn lines(&self) -> Vec<String> {
        let items = match self.instances {
            Some(1) => String::new(),
            Some(n) => format!(" × {n}"),
            None => format!(" × ? (at most {})", self.most_instances),
        };
        let mut about = vec![self.kind.to_owned()];
        about.extend(self.role.clone());
        about.extend(self.isolation.map(str::to_owned));
        if self.reads_only {
            about.push("changes nothing".to_owned());
        }
        if !self.writes.is_empty() {
            about.push(format!("writes {}", self.writes.join(" ")));
        }
        if self.conditional {
            about.push("under a condition".to_owned());
        }
        let needs = if self.needs.is_empty() { String::new() } else { format!("  after {}", self.needs.join(", ")) };
        let mut lines = vec![format!("  {}{items}  {}{needs}", self.id, about.join(", "))];
        let most = if self.kind == "command" { MAX_COMMAND } else { MAX_TASK };
        let does = self.does.as_ref().filter(|it| !it.is_empty());
        lines.extend(does.map(|does| format!("      {}", one_line(does, most))));
        lines.extend(self.checks.iter().map(|check| format!("      check: {}", one_line(check, MAX_COMMAND))));
        lines
    }
}

/// A text in one line; what is cut leaves a mark.
fn one_line(text: &str, most: usize) -> String {
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

impl WorkflowPlan {
    /// Works out a run with these parameters.
    pub fn of(checked: &Checked, params: &Map<String, Value>, until: Option<usize>, usual: &Usual) -> WorkflowPlan {
        let wanted = until.map(|step| checked.up_to(step));
        let base = json!({ "params": params, "run": { "name": checked.graph.name, "id": "" }, "steps": {} });
        // A step that follows others has the items of the step with the list.
        let instances = |at: usize| match &checked.source_of_items(at).step.each {
            Some(Each::List(path)) => {
                let list = Scope::of(&base).find(path).and_then(|it| it.as_array().map(Vec::len));
                list.filter(|_| path.root() == "params")
            }
            Some(Each::Follows(_)) | None => Some(1),
        };
        let mut layers: Vec<Vec<PlannedStep>> = Vec::new();
        let (mut agents, mut tokens) = (0_u64, 0_u64);
        // Which model uses how much of what all may use is not known before, so the dearest counts for all.
        let mut dearest: Option<f64> = Some(0.0);
        let mut window = 0;
        for (at, step) in checked.steps.iter().enumerate() {
            if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&at)) {
                continue;
            }
            let instances = instances(at);
            let most = instances.unwrap_or(checked.source_of_items(at).step.max);
            if step.agent.is_some() {
                let attempts = step.step.retry.as_ref().map_or(1, |it| u64::from(it.times) + 1);
                let rounds = step.step.repeat.as_ref().map_or(1, |it| u64::from(it.max));
                let own = (most as u64).saturating_mul(attempts);
                agents = agents.saturating_add(own);
                tokens = tokens.saturating_add(own.saturating_mul(rounds).saturating_mul(usual.tokens));
                let model = step.agent.as_ref().and_then(|it| it.model.as_ref());
                let terms = model.map_or(usual.model, |it| usual.models.get(it).copied().unwrap_or_default());
                let ModelTerms { window: own, price } = terms;
                window = window.max(own.unwrap_or(WINDOW));
                dearest = dearest.zip(price).map(|(a, b)| a.max(b));
            }
            let agent = match &step.step.work {
                Work::Agent(agent) => Some(agent),
                Work::Command { .. } | Work::Gate { .. } | Work::Workflow { .. } | Work::Join { .. } => None,
            };
            let planned = PlannedStep {
                id: step.step.id.clone(),
                kind: step.step.kind(),
                needs: step.needs.iter().map(|need| checked.steps[*need].step.id.clone()).collect(),
                instances,
                most_instances: most,
                role: step.agent.as_ref().map(|it| it.role.clone()),
                isolation: step.agent.as_ref().map(|it| it.isolation.name()),
                reads_only: step.agent.as_ref().is_some_and(|it| it.reads_only),
                writes: agent.and_then(|it| it.writes.clone()).unwrap_or_default(),
                does: does(step, &base, instances),
                checks: step.step.checks.iter().map(|words| command(words, &Scope::of(&base))).collect(),
                conditional: step.step.when.is_some(),
            };
            if layers.len() <= step.layer {
                layers.resize(step.layer + 1, Vec::new());
            }
            layers[step.layer].push(planned);
        }
        let limits = checked.graph.limits;
        // Every agent that runs may exceed a limit by its last request and by the one that sums up.
        let beyond = if agents == 0 { 0 } else { 2 * window * (limits.places() as u64).min(agents) };
        let allowed = limits.tokens.into_iter().chain(usual.max_tokens).min().unwrap_or(u64::MAX);
        let bound = tokens.min(usual.tree_tokens).min(allowed);
        let most_tokens = bound.saturating_add(beyond);
        let most_cost = match (agents, dearest) {
            (0, _) => Some(0.0),
            (_, Some(price)) => {
                let by_tokens = most_tokens as f64 * price;
                let allowed = limits.cost.into_iter().chain(usual.max_cost_usd).reduce(f64::min);
                Some(allowed.map_or(by_tokens, |usd| by_tokens.min(usd + beyond as f64 * price)))
            }
            (_, None) => None,
        };
        WorkflowPlan {
            name: checked.graph.name.clone(),
            description: checked.graph.description.clone(),
            hash: checked.hash.clone(),
            layers: layers.into_iter().filter(|layer| !layer.is_empty()).collect(),
            params: params
                .iter()
                .filter(|(name, _)| !checked.inner_params.contains_key(*name))
                .map(|(a, b)| (a.clone(), b.clone()))
                .collect(),
            concurrency: limits.places(),
            seconds: usual.deadline.map_or(u64::MAX, |it| it.as_secs().max(1)).min(limits.most_seconds()),
            most_agents: agents,
            most_tokens,
            limit_tokens: limits.tokens,
            limit_cost: limits.cost,
            limit_failures: limits.failures,
            most_cost,
        }
    }

    /// The most that a run can use, in one line: `at most: 3 agents, 90k tokens, cost $0.40, 60 min, 8 at a time`.
    pub fn bounds(&self) -> String {
        let cost = match self.most_cost {
            Some(usd) => format!("${usd:.2}"),
            None => "unknown: the price of a model is not known".to_owned(),
        };
        let agents = if self.most_agents == 1 { "1 agent".to_owned() } else { format!("{} agents", self.most_agents) };
        let time = match self.seconds {
            seconds if seconds >= 60 && seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
            seconds => format!("{seconds} s"),
        };
        let tokens = human_count(self.most_tokens);
        let mut text =
            format!("at most: {agents}, {tokens} tokens, cost {cost}, {time}, {} at a time", self.concurrency);
        let limits = [
            self.limit_tokens.map(|it| format!("{} tokens", human_count(it))),
            self.limit_cost.map(|usd| format!("${usd:.2}")),
            self.limit_failures.map(|it| format!("{it} failed steps")),
        ];
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        if !limits.is_empty() {
            // A limit ends the run after the request that reaches it.
            text.push_str(&format!("\nlimits of the graph: {}", limits.join(", ")));
        }
        text
    }

    /// All steps, layer by layer.
    pub fn steps(&self) -> impl Iterator<Item = &PlannedStep> {
        self.layers.iter().flatten()
    }
}

/// What a step does, for its first item where it has items: its command, and in the first layer its task or question.
fn does(step: &CheckedStep, base: &Value, instances: Option<usize>) -> Option<String> {
    let list = match &step.step.each {
        Some(Each::List(path)) => Scope::of(base).find(path),
        Some(Each::Follows(_)) | None => None,
    };
    let item = list.as_ref().and_then(|list| list.as_array()?.first());
    let last = json!({ "output": "", "status": "", "exit_code": 0, "checks": "", "round": 0 });
    let scope = Scope { item, last: Some(&last), ..Scope::of(base) };
    let text = match &step.step.work {
        Work::Command { argv, .. } => command(argv, &scope),
        Work::Agent(agent) if step.layer == 0 => agent.task.text(&scope).ok()?,
        Work::Gate { ask, .. } if step.layer == 0 => ask.text(&scope).ok()?,
        Work::Agent(_) | Work::Gate { .. } | Work::Workflow { .. } | Work::Join { .. } => return None,
    };
    let more =
        instances.filter(|n| *n > 1 && item.is_some()).map_or(String::new(), |n| format!(" (and {} more)", n - 1));
    Some(format!("{text}{more}"))
}

/// A command, with the words that are not known yet as they are written.
fn command(words: &[Template], scope: &Scope<'_>) -> String {
    let words: Vec<String> = words.iter().map(|it| it.text(scope).unwrap_or_else(|_| it.to_string())).collect();
    permissions::shell::quoted(words.iter().map(String::as_str))
}
