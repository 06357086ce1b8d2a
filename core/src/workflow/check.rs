//! Whether what a workflow refers to is there: needs, paths, roles, other workflows. All faults are found at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Fault;
use super::graph::{Agent, Each, Graph, RunLimits, Step, Work};
use super::inline::{Flat, flatten};
use super::read::{Reading, read};
use super::source;
use super::template::Path;
use crate::context::library::Library;
use crate::context::roles::Role;
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::{Isolation, Mode, Planned, Resumed};

/// What a path can read of a step.
const FIELDS: [&str; 6] = ["output", "lines", "status", "exit_code", "error", "items"];
/// What a path can read of the round before.
const LAST: [&str; 5] = ["output", "status", "exit_code", "checks", "round"];
/// What a path can read of the run.
const RUN: [&str; 2] = ["name", "id"];

/// What there is besides the workflow.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) roles: Vec<Role>,
    /// The text of other workflows, by name.
    pub(crate) workflows: BTreeMap<String, String>,
    /// Those of them that the user does not trust: a graph that uses one cannot run.
    pub(crate) untrusted: BTreeSet<String>,
}

impl Known {
    /// What a workflow finds that is to run: it can use no other one that the user does not trust.
    pub(crate) fn to_run(library: &Library) -> Known {
        Known { untrusted: library.workflows().untrusted(), ..Known::to_look(library) }
    }

    /// What a workflow finds that is only looked at.
    pub(crate) fn to_look(library: &Library) -> Known {
        Known { roles: library.roles(), workflows: library.workflows().texts(), untrusted: BTreeSet::new() }
    }
}

/// A workflow without faults, with everything that it uses.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) graph: Graph,
    /// All steps, also those of other workflows, in the order in which they are started.
    pub(crate) steps: Vec<CheckedStep>,
    /// Values of the parameters of other workflows.
    pub(crate) inner_params: Map<String, Value>,
    /// Limits of other workflows, by the step that uses it.
    pub(crate) inner_limits: BTreeMap<String, RunLimits>,
    /// The workflow as data.
    pub(crate) source: Value,
    /// The workflows that it uses, as data.
    pub(crate) uses: Map<String, Value>,
    /// 32 hex digits of the BLAKE3 hash of both, and of the roles of its agents.
    pub(crate) hash: String,
}

/// A step with what is known of it before it runs.
#[derive(Debug, Clone)]
pub(crate) struct CheckedStep {
    pub(crate) step: Step,
    /// Indices of the steps that it waits for.
    pub(crate) needs: Vec<usize>,
    /// The step whose items it follows.
    pub(crate) follows: Option<usize>,
    /// What its agent is; `None` for other kinds.
    pub(crate) agent: Option<AgentTerms>,
    /// How many steps are before it at most: its layer.
    pub(crate) layer: usize,
}

/// How the agent of a step works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentTerms {
    pub(crate) role: String,
    /// The hash of the role's file.
    pub(crate) role_digest: Option<String>,
    /// The model that the role names, as `provider/model`.
    pub(crate) model: Option<String>,
    /// It changes nothing, by its role or because it declares so.
    pub(crate) reads_only: bool,
    pub(crate) isolation: Isolation,
}

impl CheckedStep {
    /// The step in whose place it is, for a step of another workflow.
    pub(crate) fn outer(&self) -> Option<&str> {
        self.step.id.split_once('/').map(|(outer, _)| outer)
    }
}

impl Checked {
    /// Reads and checks a workflow.
    pub(crate) fn read(text: &str, stem: &str, known: &Known) -> std::result::Result<Checked, Vec<Fault>> {
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
        unique(&graph.steps, &mut faults);
        let Flat { steps, params, limits } = flatten(&graph, &used, &faulty, &mut faults);
        let mut check = Check { steps: &steps, graph: &graph, inner_params: &params, known, unread: &unread, faults };
        let needs = check.needs();
        let order = check.order(&needs);
        let before = ancestors(&needs);
        check.paths(&before);
        check.writes(&before);
        let agents: Vec<Option<AgentTerms>> = steps.iter().map(|step| check.agent(step)).collect();
        check.items_come_from_outside(&steps);
        let faults = check.faults;
        let (true, Some(_)) = (faults.is_empty(), &order) else { return Err(sorted(faults)) };
        let roles: BTreeMap<&str, Option<&str>> =
            agents.iter().flatten().map(|it| (it.role.as_str(), it.role_digest.as_deref())).collect();
        let hash = blake3::hash(json!([source, uses, roles]).to_string().as_bytes()).to_hex()[..32].to_owned();
        let layers = layers(&needs, order.as_deref().unwrap_or_default());
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
    pub(crate) fn of_log(planned: &Planned, roles: Vec<Role>) -> std::result::Result<Checked, Vec<Fault>> {
        let workflows = planned.uses.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        Checked::read(&planned.graph.to_string(), &planned.name, &Known { roles, workflows, ..Known::default() })
    }

    /// The values of all parameters: those given, and defaults.
    ///
    /// # Errors
    /// `WORKFLOW_INVALID`, with every fault.
    pub(crate) fn params(&self, given: &Map<String, Value>) -> Result<Map<String, Value>> {
        let mut faults = Vec::new();
        let known = || self.graph.params.iter().map(|it| it.name.as_str());
        for name in given.keys().filter(|name| !known().any(|it| it == name.as_str())) {
            let fix = match nearest(name, known()) {
                Some(near) => near.to_owned(),
                None if self.graph.params.is_empty() => "no parameter: it has none".to_owned(),
                None => format!("one of: {}", known().collect::<Vec<_>>().join(", ")),
            };
            let message = format!("there is no parameter `{}`", name.escape_debug());
            faults.push(Fault::new(0, format!("params.{name}"), message, fix));
        }
        let mut all = self.inner_params.clone();
        for param in &self.graph.params {
            let value = match (given.get(&param.name), &param.default) {
                (Some(value), _) => param.typed(value),
                (None, Some(value)) => value.clone(),
                (None, None) if param.is_required => {
                    let message = format!("the parameter `{}` is missing", param.name);
                    faults.push(Fault::new(param.line, format!("params.{}", param.name), message, "a value for it"));
                    continue;
                }
                (None, None) => Value::Null,
            };
            if let (false, Err(why)) = (value.is_null(), param.check(&value)) {
                let fix = format!("a {} that it takes", param.kind.name());
                faults.push(Fault::new(param.line, format!("params.{}", param.name), why, fix));
            }
            all.insert(param.name.clone(), value);
        }
        if faults.is_empty() { Ok(all) } else { Err(super::invalid(&self.graph.name, &faults)) }
    }

    /// Whether it is still the workflow that the user approved: a workflow or a role that it uses can have changed since.
    ///
    /// # Errors
    /// `PREVIEW_STALE`.
    pub(crate) fn is_approved(&self, approved: Option<&str>) -> Result<()> {
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
    pub(crate) fn known_params(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let is_known = |name: &String| self.graph.params.iter().any(|it| it.name == *name);
        let known = given.iter().filter(|(name, value)| !value.is_null() && is_known(name));
        known.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether all steps that the user has decided about are there.
    ///
    /// # Errors
    /// As [`Checked::index_of`]; `INVALID_ARGS` for an answer that a gate does not offer.
    pub(crate) fn has_steps(&self, decisions: &Resumed) -> Result<()> {
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
    pub(crate) fn index_of(&self, id: &str) -> Result<usize> {
        self.steps.iter().position(|it| it.step.id == id).ok_or_else(|| {
            let ids = || self.steps.iter().map(|it| it.step.id.as_str());
            let fix = nearest(id, ids()).map_or_else(|| ids().collect::<Vec<_>>().join(", "), str::to_owned);
            let message = format!("{} has no step `{}`", self.graph.name, id.escape_debug());
            Error::new(Code::NotFound, message, fix).with("input", id)
        })
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

fn unique(steps: &[Step], faults: &mut Vec<Fault>) {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps {
        if let Some(line) = first.insert(&step.id, step.line) {
            let message = format!("there are two steps `{}`; the first is in line {line}", step.id);
            faults.push(Fault::new(step.line, format!("steps.{}", step.id), message, "another id"));
        }
    }
}

struct Check<'a> {
    steps: &'a [Step],
    graph: &'a Graph,
    inner_params: &'a Map<String, Value>,
    known: &'a Known,
    /// Steps that are there and cannot be read.
    unread: &'a BTreeSet<String>,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, step: &Step, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault::new(step.line_of(key), format!("steps.{}.{key}", step.id), message, fix));
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id)
    }

    fn nearest_step(&self, id: &str) -> String {
        let ids = || self.steps.iter().map(|step| step.id.as_str());
        nearest(id, ids()).map_or_else(|| format!("one of: {}", ids().collect::<Vec<_>>().join(", ")), str::to_owned)
    }

    /// For each step the indices of those that it waits for.
    fn needs(&mut self) -> Vec<Vec<usize>> {
        let mut all = Vec::new();
        for step in self.steps {
            let mut own = Vec::new();
            for id in step.all_needs() {
                match self.index(id) {
                    Some(at) if !own.contains(&at) => own.push(at),
                    Some(_) => {}
                    None if self.unread.contains(id) => {}
                    None => {
                        let fix = self.nearest_step(id);
                        self.fault(
                            step,
                            if step.needs.iter().any(|it| it == id) { "needs" } else { "each" },
                            format!("there is no step `{}`", id.escape_debug()),
                            fix,
                        );
                    }
                }
            }
            if let Some(Each::Follows(id)) = &step.each
                && let Some(followed) = self.index(id)
                && self.steps[followed].each.is_none()
            {
                let message = format!("`{id}` has no items to follow");
                self.fault(step, "each", message, "a step with `each`, or \"{{…}}\" for a list");
            }
            all.push(own);
        }
        all
    }

    /// An order in which every step comes after those that it waits for; `None` where there is a circle.
    fn order(&mut self, needs: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut left: Vec<usize> = needs.iter().map(Vec::len).collect();
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); needs.len()];
        for (at, own) in needs.iter().enumerate() {
            own.iter().for_each(|need| waiting[*need].push(at));
        }
        let mut ready: Vec<usize> = (0..left.len()).filter(|at| left[*at] == 0).collect();
        let mut order = Vec::new();
        while let Some(at) = ready.pop() {
            order.push(at);
            for next in &waiting[at] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        if order.len() == needs.len() {
            return Some(order);
        }
        // Follow needs that are left until one comes again.
        let mut at = (0..left.len()).find(|at| left[*at] > 0)?;
        let mut seen: Vec<usize> = Vec::new();
        while !seen.contains(&at) {
            seen.push(at);
            at = needs[at].iter().copied().find(|need| left[*need] > 0)?;
        }
        let from = seen.iter().position(|it| *it == at)?;
        let mut circle: Vec<&str> = seen[from..].iter().map(|it| self.steps[*it].id.as_str()).collect();
        circle.push(&self.steps[at].id);
        let message = format!("these steps wait for each other: {}", circle.join(" → "));
        let step = &self.steps[at];
        self.fault(step, "needs", message, "take one of the needs away");
        None
    }

    /// Every path leads to something that is there when the step begins.
    fn paths(&mut self, before: &[BTreeSet<usize>]) {
        for (at, step) in self.steps.iter().enumerate() {
            let mut seen = BTreeSet::new();
            // What a step that cannot be read waits for is not known, so all may have ended before.
            let is_blurred = |at: usize| self.steps[at].all_needs().any(|need| self.unread.contains(need));
            let is_known = !before[at].iter().copied().chain([at]).any(is_blurred);
            let before = is_known.then_some(&before[at]);
            for (key, path) in step.paths() {
                if seen.insert(path) {
                    self.path(step, key, before, path);
                }
            }
        }
        let Some(output) = &self.graph.output else { return };
        for path in output.paths() {
            if matches!(path.root(), "item" | "last") {
                let message = format!("`{path}` belongs to a step, not to the run");
                self.faults.push(missing(self.graph.output_line, "output", message, "steps.ID.output"));
            } else {
                self.output_path(path);
            }
        }
    }

    fn output_path(&mut self, path: &Path) {
        let all = Step {
            id: "output".into(),
            line: self.graph.output_line,
            lines: BTreeMap::new(),
            needs: Vec::new(),
            when: None,
            seconds: None,
            work: Work::Join { output: None },
            each: None,
            max: 0,
            checks: Vec::new(),
            retry: None,
            repeat: None,
            on_fail: Default::default(),
            source: Map::new(),
        };
        self.path(&all, "output", None, path);
    }

    /// `before`: the steps that have ended when the path is read; `None` for all.
    fn path(&mut self, step: &Step, key: &str, before: Option<&BTreeSet<usize>>, path: &Path) {
        let is_of_run = key == "output";
        let at = if is_of_run { "output".to_owned() } else { format!("steps.{}.{key}", step.id) };
        let line = step.line_of(key);
        let mut push = |message: String, fix: String| self.faults.push(missing(line, &at, message, fix));
        let second = path.0.get(1).map(String::as_str);
        let one_of = |known: &[&str], wrong: &str| match nearest(wrong, known.iter().copied()) {
            Some(near) => near.to_owned(),
            None => format!("one of: {}", known.join(", ")),
        };
        match path.root() {
            "params" => {
                let known: Vec<&str> = self.graph.params.iter().map(|it| it.name.as_str()).collect();
                let name = second.unwrap_or_default();
                if !known.contains(&name) && !self.inner_params.contains_key(name) {
                    push(format!("`{path}`: there is no parameter `{name}`"), one_of(&known, name));
                }
            }
            "item" if step.each.is_none() => {
                push(format!("`{path}`: the step has no `each`"), "each = \"{{…}}\"".to_owned());
            }
            "last" if step.repeat.is_none() => {
                push(format!("`{path}`: the step has no `repeat`"), "repeat = { max = 3 }".to_owned());
            }
            "item" => {}
            "last" if !second.is_some_and(|it| LAST.contains(&it)) => {
                push(format!("`{path}`: the last round has no such field"), one_of(&LAST, second.unwrap_or_default()));
            }
            "last" => {}
            "run" if !second.is_some_and(|it| RUN.contains(&it)) => {
                push(format!("`{path}`: a run has no such field"), one_of(&RUN, second.unwrap_or_default()));
            }
            "run" => {}
            "steps" => {
                let id = path.step().unwrap_or_default();
                match self.steps.iter().position(|it| it.id == id) {
                    None if self.unread.contains(id) => {}
                    None => {
                        let ids: Vec<&str> = self.steps.iter().map(|it| it.id.as_str()).collect();
                        push(format!("`{path}`: there is no step `{id}`"), one_of(&ids, id));
                    }
                    Some(of) if before.is_some_and(|before| !before.contains(&of)) => {
                        let fix = format!("needs = [\"{id}\"]");
                        push(format!("`{path}`: `{id}` need not have ended when this step begins"), fix);
                    }
                    Some(_) => {
                        let field = path.0.get(2).map(String::as_str).unwrap_or_default();
                        if !FIELDS.contains(&field) {
                            push(format!("`{path}`: a step has no such field"), one_of(&FIELDS, field));
                        }
                    }
                }
            }
            other => {
                let roots = ["params", "steps", "item", "last", "run"];
                push(format!("`{path}`: there is no `{other}`"), one_of(&roots, other));
            }
        }
    }

    /// Two steps that write the same files need an order.
    fn writes(&mut self, before: &[BTreeSet<usize>]) {
        let globs = |step: &Step| match &step.work {
            Work::Agent(Agent { writes: Some(writes), .. }) => writes.clone(),
            _ => Vec::new(),
        };
        for (at, step) in self.steps.iter().enumerate() {
            for (other_at, other) in self.steps.iter().enumerate().skip(at + 1) {
                let is_ordered = before[at].contains(&other_at) || before[other_at].contains(&at);
                let follows = matches!(&other.each, Some(Each::Follows(id)) if *id == step.id);
                let (own, its) = (globs(step), globs(other));
                let both = own.iter().find_map(|a| its.iter().find(|b| overlap(a, b)).map(|b| (a.clone(), b.clone())));
                if let (false, false, Some((a, b))) = (is_ordered, follows, both) {
                    let message = format!("`{}` writes {a}, and `{}` writes {b}, in no order", step.id, other.id);
                    let fix = format!("needs = [\"{}\"] in `{}`, or other files", step.id, other.id);
                    self.fault(other, "writes", message, fix);
                }
            }
        }
    }

    fn agent(&mut self, step: &Step) -> Option<AgentTerms> {
        let Work::Agent(agent) = &step.work else { return None };
        let role = match Role::for_child(&self.known.roles, &agent.role) {
            Ok(role) => role.clone(),
            Err(error) => {
                self.fault(step, "role", error.message, error.remedy.plain());
                return None;
            }
        };
        let reads_only = role.mode == Some(Mode::ReadOnly) || agent.writes.as_ref().is_some_and(Vec::is_empty);
        let isolation = match (agent.isolation, reads_only) {
            (Some(isolation), _) => isolation.max(role.isolation.unwrap_or_default()),
            (None, true) => role.isolation.unwrap_or_default(),
            (None, false) => role.isolation.unwrap_or_default().max(Isolation::Copy),
        };
        Some(AgentTerms { role: role.name, role_digest: role.digest, model: role.model, reads_only, isolation })
    }

    /// The items of a step are known before its first item begins.
    fn items_come_from_outside(&mut self, steps: &[Step]) {
        for step in steps {
            if matches!(&step.each, Some(Each::List(path)) if path.root() == "item" || path.root() == "last") {
                let fix = "a list of `params` or `steps`";
                self.fault(step, "each", "its items cannot come from an item of its own", fix);
            }
        }
    }
}

fn missing(line: usize, at: &str, message: String, fix: impl Into<String>) -> Fault {
    Fault { code: Code::TemplateMissing.name(), ..Fault::new(line, at, message, fix) }
}

/// For each step all that have ended when it begins. In a circle, all steps of it wait for each other.
fn ancestors(needs: &[Vec<usize>]) -> Vec<BTreeSet<usize>> {
    let of = |at: usize| {
        let mut before = BTreeSet::new();
        let mut left = needs[at].clone();
        while let Some(need) = left.pop() {
            if before.insert(need) {
                left.extend(&needs[need]);
            }
        }
        before
    };
    (0..needs.len()).map(of).collect()
}

fn layers(needs: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let mut layers = vec![0; needs.len()];
    for at in order {
        layers[*at] = needs[*at].iter().map(|need| layers[*need] + 1).max().unwrap_or(0);
    }
    layers
}

/// A part of a glob, as far as it matters for what two globs can match together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Letter(char),
    /// One letter, whichever.
    One,
    /// Any text.
    Any,
}

fn parts(glob: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut letters = glob.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => {
                while letters.next_if_eq(&'*').is_some() {}
                // `**/` matches no folder too.
                letters.next_if_eq(&'/');
                all.push(Part::Any);
            }
            '?' => all.push(Part::One),
            '[' => {
                letters.by_ref().find(|it| *it == ']');
                all.push(Part::One);
            }
            '{' => {
                letters.by_ref().find(|it| *it == '}');
                all.push(Part::Any);
            }
            '\\' => all.extend(letters.next().map(Part::Letter)),
            _ => all.push(Part::Letter(letter)),
        }
    }
    all
}

/// Whether two globs can match the same file. Sets of letters and alternatives count as any text, so it errs towards yes.
fn overlap(a: &str, b: &str) -> bool {
    let (a, b) = (parts(a), parts(b));
    // `reached[j]`: the parts of `a` so far and the first `j` parts of `b` can be the same text.
    let mut reached: Vec<bool> = (0..=b.len()).map(|j| b[..j].iter().all(|it| *it == Part::Any)).collect();
    for one in &a {
        let mut next = vec![reached[0] && *one == Part::Any];
        for (j, other) in b.iter().enumerate() {
            next.push(match (one, other) {
                (Part::Any, _) | (_, Part::Any) => reached[j + 1] || next[j],
                (Part::Letter(one), Part::Letter(other)) => reached[j] && one == other,
                (Part::One, _) | (_, Part::One) => reached[j],
            });
        }
        reached = next;
    }
    reached[b.len()]
}
