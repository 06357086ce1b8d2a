//! A workflow without faults, and what is known of its steps before they run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Fault;
use super::check::{Check, Sound};
use super::graph::{Each, Graph, RunLimits, Step, Work};
use super::inline::{Flat, flatten};
use super::read::{Reading, read};
use super::source;
use context::library::Library;
use context::roles::Role;
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Isolation, Planned, Resumed};

/// What there is besides the workflow.
#[derive(Debug, Default)]
pub struct Known {
    pub roles: Vec<Role>,
    /// The text of other workflows, by name.
    pub workflows: BTreeMap<String, String>,
    /// Those of them that the user does not trust: a graph that uses one cannot run.
    pub untrusted: BTreeSet<String>,
}

impl Known {
    /// What a workflow finds that is to run: it can use no other one that the user does not trust.
    pub fn to_run(library: &Library) -> Known {
        Known { untrusted: library.workflows().untrusted(), ..Known::to_look(library) }
    }

    /// What a workflow finds that is only looked at.
    pub fn to_look(library: &Library) -> Known {
        Known { roles: library.roles(), workflows: library.workflows().texts(), untrusted: BTreeSet::new() }
    }
}

/// A workflow without faults, with everything that it uses.
#[derive(Debug, Clone)]
pub struct Checked {
    pub graph: Graph,
    /// All steps, also those of other workflows, in the order in which they are started.
    pub steps: Vec<CheckedStep>,
    /// Values of the parameters of other workflows.
    pub inner_params: Map<String, Value>,
    /// Limits of other workflows, by the step that uses it.
    pub(crate) inner_limits: BTreeMap<String, RunLimits>,
    /// The workflow as data.
    pub source: Value,
    /// The workflows that it uses, as data.
    pub uses: Map<String, Value>,
    /// 32 hex digits of the BLAKE3 hash of both, and of the roles of its agents.
    pub hash: String,
}

/// A step with what is known of it before it runs.
#[derive(Debug, Clone)]
pub struct CheckedStep {
    pub step: Step,
    /// Indices of the steps that it waits for.
    pub needs: Vec<usize>,
    /// The step whose items it follows.
    pub follows: Option<usize>,
    /// What its agent is; `None` for other kinds.
    pub agent: Option<AgentTerms>,
    /// How many steps are before it at most: its layer.
    pub layer: usize,
}

/// How the agent of a step works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTerms {
    pub role: String,
    /// The hash of the role's file.
    pub role_digest: Option<String>,
    /// The model that the role names, as `provider/model`.
    pub model: Option<String>,
    /// It changes nothing, by its role or because it declares so.
    pub reads_only: bool,
    pub isolation: Isolation,
}

impl CheckedStep {
    /// The step in whose place it is, for a step of another workflow.
    pub fn outer(&self) -> Option<&str> {
        self.step.id.split_once('/').map(|(outer, _)| outer)
    }
}

impl Checked {
    /// Reads and checks a workflow.
    pub fn read(text: &str, stem: &str, known: &Known) -> std::result::Result<Checked, Vec<Fault>> {
        let Reading { graph, mut faults, mut unread } = read(text, stem);
        let (Some(graph), Ok(source)) = (graph, source::parse(text)) else { return Err(sorted(faults)) };
        let source = source.value();
        let mut used = BTreeMap::new();
        let mut uses = Map::new();
        let mut faulty = BTreeSet::new();
        for step in &graph.steps {
            let Work::Workflow { name, .. } = &step.work else { continue };
            let Some(text) = known.workflows.get(name) else { continue };
            if known.untrusted.contains(name) {
                let message = format!("the workflow `{name}` comes with the workspace, which you do not trust");
                let code = Code::WorkspaceUntrusted.name();
                let at = format!("steps.{}.use", step.id);
                faults.push(Fault { code, ..Fault::new(step.line_of("use"), at, message, "trust the workspace") });
            }
            match read(text, name) {
                Reading { graph: Some(inner), faults, .. } if faults.is_empty() => {
                    let value = source::parse(text).map(|node| node.value()).unwrap_or_default();
                    uses.insert(name.clone(), value);
                    used.insert(name.clone(), inner);
                }
                Reading { faults: inner, .. } => {
                    let at = format!("steps.{}.use", step.id);
                    faults.extend(sorted(inner).into_iter().map(|fault| {
                        let line = if fault.line > 0 { format!("line {}, ", fault.line) } else { String::new() };
                        let message = format!("in `{name}`: {line}{}: {}", fault.at, fault.message);
                        Fault { line: step.line_of("use"), at: at.clone(), message, ..fault }
                    }));
                    faulty.insert(name.clone());
                }
            }
        }
        let is_missing = |step: &&Step| matches!(&step.work, Work::Workflow { name, .. } if !used.contains_key(name));
        unread.extend(graph.steps.iter().filter(is_missing).map(|step| step.id.clone()));
        let Flat { steps, params, limits } = flatten(&graph, &used, &faulty, &mut faults);
        let check = Check { steps: &steps, graph: &graph, inner_params: &params, known, unread: &unread, faults };
        let Sound { needs, agents, layers } = check.whole().map_err(sorted)?;
        let roles: BTreeMap<&str, Option<&str>> =
            agents.iter().flatten().map(|it| (it.role.as_str(), it.role_digest.as_deref())).collect();
        let hash = blake3::hash(json!([source, uses, roles]).to_string().as_bytes()).to_hex()[..32].to_owned();
        let index: BTreeMap<&str, usize> = steps.iter().enumerate().map(|(at, it)| (it.id.as_str(), at)).collect();
        let follows = |step: &Step| match &step.each {
            Some(Each::Follows(id)) => index.get(id.as_str()).copied(),
            Some(Each::List(_)) | None => None,
        };
        let all = steps.iter().zip(needs).zip(agents).enumerate();
        let checked = all.map(|(at, ((step, needs), agent))| CheckedStep {
            follows: follows(step),
            step: step.clone(),
            needs,
            agent,
            layer: layers[at],
        });
        let steps = checked.collect();
        Ok(Checked { steps, graph, inner_params: params, inner_limits: limits, source, uses, hash })
    }

    /// Reads a workflow that a Log has recorded.
    pub fn of_log(planned: &Planned, roles: Vec<Role>) -> std::result::Result<Checked, Vec<Fault>> {
        let workflows = planned.uses.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        Checked::read(&planned.graph.to_string(), &planned.name, &Known { roles, workflows, ..Known::default() })
    }

    /// The values of all parameters: those given, and defaults.
    ///
    /// # Errors
    /// `WORKFLOW_INVALID`, with every fault.
    pub fn params(&self, given: &Map<String, Value>) -> Result<Map<String, Value>> {
        let mut faults = Vec::new();
        let known = || self.graph.params.iter().map(|it| it.name.as_str());
        for name in given.keys().filter(|name| !known().any(|it| it == name.as_str())) {
            let fix = match nearest(name, known()) {
                Some(near) => near.to_owned(),
                None if self.graph.params.is_empty() => "no parameter: it has none".to_owned(),
                None => format!("one of: {}", known().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("the graph has no parameter `{}`", name.escape_debug());
            faults.push(Fault::new(0, format!("params.{name}"), message, fix));
        }
        let mut all = self.inner_params.clone();
        for param in &self.graph.params {
            let value = match (given.get(&param.name), &param.default) {
                (Some(value), _) => param.typed(value),
                (None, Some(value)) => value.clone(),
                (None, None) if param.is_required => {
                    let message = format!("the parameter `{}` is missing", param.name);
                    faults.push(Fault::new(0, format!("params.{}", param.name), message, "a value for it"));
                    continue;
                }
                (None, None) => Value::Null,
            };
            if let (false, Err(why)) = (value.is_null(), param.check(&value)) {
                let fix = format!("a {} that it takes", param.kind.name());
                faults.push(Fault::new(0, format!("params.{}", param.name), why, fix));
            }
            all.insert(param.name.clone(), value);
        }
        if faults.is_empty() { Ok(all) } else { Err(super::invalid(&self.graph.name, &faults)) }
    }

    /// Whether it is still the workflow that the user approved: a workflow or a role that it uses can have changed since.
    ///
    /// # Errors
    /// `PREVIEW_STALE`.
    pub fn is_approved(&self, approved: Option<&str>) -> Result<()> {
        if approved.is_none_or(|hash| hash == self.hash) {
            return Ok(());
        }
        let message = format!(
            "the workflow {} is not the one that was approved: a workflow or a role that it uses has changed since",
            self.graph.name
        );
        Err(Error::new(Code::PreviewStale, message, "run it again, and approve it as it is now"))
    }

    /// Of these values those of parameters that the workflow has.
    pub fn known_params(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let is_known = |name: &String| self.graph.params.iter().any(|it| it.name == *name);
        let known = given.iter().filter(|(name, value)| !value.is_null() && is_known(name));
        known.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether all steps that the user has decided about are there.
    ///
    /// # Errors
    /// As [`Checked::index_of`]; `INVALID_ARGS` for an answer that a gate does not offer.
    pub fn has_steps(&self, decisions: &Resumed) -> Result<()> {
        let Resumed { rerun, skip, done, answers } = decisions;
        let all = rerun.iter().chain(skip).chain(done).chain(answers.keys());
        all.map(|id| self.index_of(id.split('.').next().unwrap_or(id))).try_for_each(|it| it.map(drop))?;
        answers.iter().try_for_each(|(id, answer)| self.takes_answer(id, answer))
    }

    /// Whether this is an answer that the gate offers.
    fn takes_answer(&self, id: &str, answer: &Value) -> Result<()> {
        let Work::Gate { choices, .. } = &self.steps[self.index_of(id)?].step.work else {
            let message = format!("the step `{id}` asks nothing");
            return Err(Error::new(
                Code::InvalidArgs,
                message,
                "decide about it: run it again, skip it, or take it as done",
            ));
        };
        if answer.as_str().is_some_and(|answer| choices.iter().any(|it| it == answer)) {
            return Ok(());
        }
        let message = format!("{} is no answer to `{id}`", super::read::shown(answer));
        Err(Error::new(Code::InvalidArgs, message, format!("one of: {}", choices.join(", "))))
    }

    /// The step with this id.
    ///
    /// # Errors
    /// `NOT_FOUND`, with the nearest.
    pub fn index_of(&self, id: &str) -> Result<usize> {
        self.steps.iter().position(|it| it.step.id == id).ok_or_else(|| {
            let ids = || self.steps.iter().map(|it| it.step.id.as_str());
            let fix = nearest(id, ids()).map_or_else(|| ids().collect::<Vec<_>>().join(", "), str::to_owned);
            let message = format!("{} has no step `{}`", self.graph.name, id.escape_debug());
            Error::new(Code::NotFound, message, fix).with("input", id)
        })
    }

    /// The step whose list this step has the items of: itself, or the first of those that follow each other.
    pub(crate) fn source_of_items(&self, step: usize) -> &CheckedStep {
        let mut at = step;
        while let Some(followed) = self.steps[at].follows {
            at = followed;
        }
        &self.steps[at]
    }

    /// The indices of this step and of all that it waits for.
    pub(crate) fn up_to(&self, step: usize) -> BTreeSet<usize> {
        let mut wanted = BTreeSet::new();
        let mut left = vec![step];
        while let Some(at) = left.pop() {
            if wanted.insert(at) {
                left.extend(&self.steps[at].needs);
            }
        }
        wanted
    }
}

/// By line, then as they were found.
fn sorted(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by_key(|fault| fault.line);
    faults
}
