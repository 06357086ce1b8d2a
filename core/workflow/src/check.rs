//! Whether what a workflow refers to is there: needs, paths, roles, items, files. All faults are found at once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Fault;
use super::checked::{AgentTerms, Known};
use super::graph::{Agent, Each, Graph, Step, Work};
use super::template::Path;
use context::roles::Role;
use protocol::error::{Code, nearest};
use protocol::event::{Isolation, Mode};

mod overlap; // globs that can match the same file

use overlap::overlap;

/// What a path can read of a step.
const FIELDS: [&str; 6] = ["output", "lines", "status", "exit_code", "error", "items"];
/// What a path can read of the round before.
const LAST: [&str; 5] = ["output", "status", "exit_code", "checks", "round"];
/// What a path can read of the run.
const RUN: [&str; 2] = ["name", "id"];

/// The check of a workflow that was read.
pub(super) struct Check<'a> {
    /// All steps, also those of other workflows.
    pub(super) steps: &'a [Step],
    pub(super) graph: &'a Graph,
    pub(super) inner_params: &'a Map<String, Value>,
    pub(super) known: &'a Known,
    /// Steps that are there and cannot be read.
    pub(super) unread: &'a BTreeSet<String>,
    /// What was found while it was read.
    pub(super) faults: Vec<Fault>,
}

/// What is known of the steps of a workflow without faults, in their order.
pub(super) struct Sound {
    /// The indices of the steps that each waits for.
    pub(super) needs: Vec<Vec<usize>>,
    pub(super) agents: Vec<Option<AgentTerms>>,
    pub(super) layers: Vec<usize>,
}

impl Check<'_> {
    /// What is known of the steps, or all faults.
    pub(super) fn whole(mut self) -> Result<Sound, Vec<Fault>> {
        self.unique();
        let needs = self.needs();
        let order = self.order(&needs);
        let before = ancestors(&needs);
        self.paths(&before);
        self.writes(&before);
        let agents = self.steps.iter().map(|step| self.agent(step)).collect();
        self.items();
        match order {
            Some(order) if self.faults.is_empty() => Ok(Sound { layers: layers(&needs, &order), needs, agents }),
            Some(_) | None => Err(self.faults),
        }
    }

    fn unique(&mut self) {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for step in &self.graph.steps {
            if let Some(line) = first.insert(&step.id, step.line) {
                let message = format!("there are two steps `{}`; the first is in line {line}", step.id);
                self.faults.push(Fault::new(step.line, format!("steps.{}", step.id), message, "another id"));
            }
        }
    }

    fn fault(&mut self, step: &Step, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.faults.push(Fault::new(step.line_of(key), format!("steps.{}.{key}", step.id), message, fix));
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.id == id)
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
                        let fix = one_of(
                            &others(self.steps, self.unread, step),
                            id,
                            "leave it out: the file has no other step",
                        );
                        self.fault(
                            step,
                            if step.needs.iter().any(|it| it == id) { "needs" } else { "each" },
                            format!("the graph has no step `{}`", id.escape_debug()),
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

    /// An order in which every step comes after those that it waits for; `None` where steps wait for each other. Every circle is
    /// named: without one need of each circle that was found, the next one is looked for.
    fn order(&mut self, needs: &[Vec<usize>]) -> Option<Vec<usize>> {
        let steps = self.steps;
        let mut cut = needs.to_vec();
        let mut is_sound = true;
        // More circles than steps would be more than a user reads.
        for _ in 0..=steps.len() {
            let Err(circle) = ordered(&cut) else { break };
            is_sound = false;
            let (Some(at), Some(next)) = (circle.first(), circle.get(1).or(circle.first())) else { break };
            let names: Vec<&str> = circle.iter().chain(circle.first()).map(|it| steps[*it].id.as_str()).collect();
            let message = format!("these steps wait for each other: {}", names.join(" → "));
            self.fault(&steps[*at], "needs", message, "take one of the needs away");
            cut[*at].retain(|need| need != next);
        }
        if is_sound { ordered(needs).ok() } else { None }
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
        let one_of = |known: &[&str], wrong: &str| one_of(known, wrong, "leave it out");
        let others = others(self.steps, self.unread, step);
        match path.root() {
            "params" => {
                let known: Vec<&str> = self.graph.params.iter().map(|it| it.name.as_str()).collect();
                let name = second.unwrap_or_default();
                if !known.contains(&name) && !self.inner_params.contains_key(name) {
                    let fix = match known.is_empty() {
                        true => format!("declare it, as [params.{name}]"),
                        false => one_of(&known, name),
                    };
                    push(format!("`{path}`: the graph has no parameter `{name}`"), fix);
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
                        push(format!("`{path}`: the graph has no step `{id}`"), one_of(&others, id));
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

    /// The most items of a step, also of one that follows others.
    fn most_items(&self, id: &str) -> Option<usize> {
        let mut step = &self.steps[self.index(id)?];
        // In a circle no step has a list.
        for _ in self.steps {
            match &step.each {
                Some(Each::List(_)) => return Some(step.max),
                Some(Each::Follows(id)) => step = &self.steps[self.index(id)?],
                None => break,
            }
        }
        None
    }

    /// The items of a step are known before its first item begins, and a step that follows another one has as many as that.
    fn items(&mut self) {
        for step in self.steps {
            match &step.each {
                Some(Each::List(path)) if path.root() == "item" || path.root() == "last" => {
                    let fix = "a list of `params` or `steps`";
                    self.fault(step, "each", "its items cannot come from an item of its own", fix);
                }
                Some(Each::Follows(id)) if step.source.contains_key("max") => {
                    let most = self.most_items(id).unwrap_or(step.max);
                    if step.max < most {
                        let message = format!("it has as many items as `{id}`, which can have {most}");
                        self.fault(step, "max", message, "leave it out, and set `max` of the step that has the list");
                    }
                }
                Some(Each::List(_) | Each::Follows(_)) | None => {}
            }
        }
    }
}

/// The ids of all other steps, in the order of the file, and of those that cannot be read.
fn others<'a>(steps: &'a [Step], unread: &'a BTreeSet<String>, own: &Step) -> Vec<&'a str> {
    let read = steps.iter().map(|it| it.id.as_str()).filter(|id| *id != own.id);
    read.chain(unread.iter().map(String::as_str)).collect()
}

/// What is meant in place of a wrong name: the nearest that is known, or all of them. Where nothing is known, it is `none`.
fn one_of(known: &[&str], wrong: &str, none: &str) -> String {
    match nearest(wrong, known.iter().copied()) {
        Some(near) => near.to_owned(),
        None if known.is_empty() => none.to_owned(),
        None => format!("one of: {}", known.join(", ")),
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

/// An order in which every step comes after those that it waits for, or steps that wait for each other, each for the next one and
/// the last one for the first.
fn ordered(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
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
    let Some(mut at) = (0..left.len()).find(|at| left[*at] > 0) else { return Ok(order) };
    // A step that is left waits for one that is left, so following them comes to one for the second time.
    let mut seen: Vec<usize> = Vec::new();
    while !seen.contains(&at) {
        seen.push(at);
        at = needs[at].iter().copied().find(|need| left[*need] > 0).unwrap_or(at);
    }
    let from = seen.iter().position(|it| *it == at).unwrap_or_default();
    Err(seen.split_off(from))
}

fn layers(needs: &[Vec<usize>], order: &[usize]) -> Vec<usize> {
    let mut layers = vec![0; needs.len()];
    for at in order {
        layers[*at] = needs[*at].iter().map(|need| layers[*need] + 1).max().unwrap_or(0);
    }
    layers
}
