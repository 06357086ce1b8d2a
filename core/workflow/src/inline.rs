//! Steps of other workflows in place of the steps that use them. The steps of `use` get the names `outer/inner`, and a step with
//! the name of the outer one ends when all of them have ended.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Fault;
use super::expression::Expression;
use super::graph::{Each, Graph, ParamValue, RunLimits, Step, Work};
use super::read::shown;
use super::template::{Path, Piece, Template};
use protocol::error::nearest;

/// A flat list of steps, and what the steps of other workflows have of their own.
#[derive(Debug, Default)]
pub(super) struct Flat {
    pub(super) steps: Vec<Step>,
    /// The values of their parameters.
    pub(super) params: Map<String, Value>,
    /// The limits of their workflows, by the step that uses it.
    pub(super) limits: BTreeMap<String, RunLimits>,
}

/// What a parameter of the inner workflow is.
enum Bound {
    /// A value, which is found under this name.
    Value(String),
    Path(Path),
    /// Text made of parts.
    Text(Template),
}

/// Replaces the steps that use other workflows.
pub(super) fn flatten(
    graph: &Graph,
    uses: &BTreeMap<String, Graph>,
    faulty: &BTreeSet<String>,
    faults: &mut Vec<Fault>,
) -> Flat {
    let mut flat = Flat::default();
    for step in &graph.steps {
        match &step.work {
            Work::Workflow { name, params } => match uses.get(name) {
                Some(inner) => put(step, inner, params, &mut flat, faults),
                // Its own faults are named.
                None if faulty.contains(name) => {}
                None => {
                    let near = nearest(name, uses.keys().map(String::as_str));
                    let fix = match near {
                        Some(near) => near.to_owned(),
                        None if uses.is_empty() => "the name of a workflow that is listed here".to_owned(),
                        None => format!("one of: {}", uses.keys().cloned().collect::<Vec<_>>().join(", ")),
                    };
                    let message = format!("there is no workflow `{}`", name.escape_debug());
                    faults.push(Fault::new(step.line_of("use"), format!("steps.{}.use", step.id), message, fix));
                }
            },
            Work::Agent(_) | Work::Command { .. } | Work::Gate { .. } | Work::Join { .. } => {
                flat.steps.push(step.clone());
            }
        }
    }
    flat
}

fn put(outer: &Step, inner: &Graph, given: &[(String, ParamValue)], flat: &mut Flat, faults: &mut Vec<Fault>) {
    let at = format!("steps.{}", outer.id);
    let bound = bind(outer, inner, given, flat, faults);
    for step in &inner.steps {
        if matches!(step.work, Work::Workflow { .. }) {
            let message = format!("`{}` uses another workflow in its step `{}`", inner.name, step.id);
            faults.push(Fault::new(outer.line_of("use"), at, message, "one level: put its steps here"));
            return;
        }
        match renamed(step, outer, &bound) {
            Ok(step) => flat.steps.push(step),
            Err(why) => {
                let message = format!("step `{}` of `{}`: {why}", step.id, inner.name);
                faults.push(Fault::new(outer.line, at.clone(), message, "a parameter that is one value, or one path"));
            }
        }
    }
    flat.limits.insert(outer.id.clone(), inner.limits);
    let output = inner.output.clone().map(|it| of_template(it, &outer.id, &bound));
    let ids = inner.steps.iter().map(|step| format!("{}/{}", outer.id, step.id)).collect();
    flat.steps.push(Step { needs: ids, when: None, work: Work::Join { output }, ..outer.clone() });
}

fn bind(
    outer: &Step,
    inner: &Graph,
    given: &[(String, ParamValue)],
    flat: &mut Flat,
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, Bound> {
    let at = format!("steps.{}.params", outer.id);
    let known = || inner.params.iter().map(|it| it.name.as_str());
    for (name, _) in given.iter().filter(|(name, _)| !known().any(|it| it == name)) {
        let message = format!("`{}` has no parameter `{}`", inner.name, name.escape_debug());
        let fix = match nearest(name, known()) {
            Some(near) => near.to_owned(),
            None => known().collect::<Vec<_>>().join(", "),
        };
        faults.push(Fault::new(
            outer.line_of("params"),
            format!("{at}.{name}"),
            message,
            if fix.is_empty() { "none" } else { &fix },
        ));
    }
    let mut bound = BTreeMap::new();
    for param in &inner.params {
        let own = given.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value);
        let value = match own {
            Some(ParamValue::Template(template)) => {
                let it = match template.sole_path() {
                    Some(path) => Bound::Path(path.clone()),
                    None => Bound::Text(template.clone()),
                };
                bound.insert(param.name.clone(), it);
                continue;
            }
            Some(ParamValue::Value(value)) => value.clone(),
            None => match &param.default {
                Some(value) => value.clone(),
                None if param.is_required => {
                    let message = format!("`{}` needs the parameter `{}`", inner.name, param.name);
                    faults.push(Fault::new(
                        outer.line_of("params"),
                        at.clone(),
                        message,
                        format!("{} = …", param.name),
                    ));
                    continue;
                }
                None => Value::Null,
            },
        };
        if let (Some(_), Err(why)) = (own, param.check(&value)) {
            let fix = format!("a {} instead of {}", param.kind.name(), shown(&value));
            faults.push(Fault::new(outer.line_of("params"), format!("{at}.{}", param.name), why, fix));
        }
        let name = format!("{}/{}", outer.id, param.name);
        flat.params.insert(name.clone(), value);
        bound.insert(param.name.clone(), Bound::Value(name));
    }
    bound
}

fn renamed(step: &Step, outer: &Step, bound: &BTreeMap<String, Bound>) -> Result<Step, String> {
    let id = |inner: &str| format!("{}/{inner}", outer.id);
    let template = |it: &Template| of_template(it.clone(), &outer.id, bound);
    let mut needs: Vec<String> = step.needs.iter().map(|it| id(it)).collect();
    // What begins the inner workflow waits for what the outer step waits for.
    needs.extend(outer.needs.iter().cloned());
    let own = step.when.clone().map(|it| of_expression(it, &outer.id, bound)).transpose()?;
    let when = match (outer.when.clone(), own) {
        (Some(outer), Some(own)) => Some(Expression::And(Box::new(outer), Box::new(own))),
        (outer, own) => outer.or(own),
    };
    let each = match &step.each {
        Some(Each::Follows(it)) => Some(Each::Follows(id(it))),
        Some(Each::List(path)) => match of_path(path, &outer.id, bound) {
            Ok(path) => Some(Each::List(path)),
            Err(_) => return Err("its items come from text made of parts".to_owned()),
        },
        None => None,
    };
    let repeat = match step.repeat.clone() {
        Some(it) => {
            let until = it.until.map(|it| of_expression(it, &outer.id, bound)).transpose()?;
            Some(super::graph::Repeat { until, ..it })
        }
        None => None,
    };
    let work = match &step.work {
        Work::Agent(agent) => Work::Agent(super::graph::Agent { task: template(&agent.task), ..agent.clone() }),
        Work::Command { argv, is_idempotent } => {
            Work::Command { argv: argv.iter().map(template).collect(), is_idempotent: *is_idempotent }
        }
        Work::Gate { ask, choices } => Work::Gate { ask: template(ask), choices: choices.clone() },
        work @ (Work::Workflow { .. } | Work::Join { .. }) => work.clone(),
    };
    let checks = step.checks.iter().map(|words| words.iter().map(template).collect()).collect();
    let line = outer.line_of("use");
    Ok(Step { id: id(&step.id), line, lines: BTreeMap::new(), needs, when, each, repeat, work, checks, ..step.clone() })
}

/// The path in the outer workflow; the text made of parts that it stands for where there is none.
fn of_path<'a>(path: &Path, outer: &str, bound: &'a BTreeMap<String, Bound>) -> Result<Path, &'a Template> {
    let mut segments = path.0.clone();
    match (path.root(), segments.get(1).cloned()) {
        ("steps", Some(id)) => segments[1] = format!("{outer}/{id}"),
        ("params", Some(name)) => match bound.get(&name) {
            Some(Bound::Value(name)) => segments[1].clone_from(name),
            Some(Bound::Path(to)) => {
                segments = to.0.iter().chain(&segments[2..]).cloned().collect();
            }
            Some(Bound::Text(text)) => return Err(text),
            // The check of the inner workflow names it.
            None => {}
        },
        _ => {}
    }
    Ok(Path(segments))
}

fn of_template(template: Template, outer: &str, bound: &BTreeMap<String, Bound>) -> Template {
    let pieces = template.0.into_iter().flat_map(|piece| match piece {
        Piece::Text(text) => vec![Piece::Text(text)],
        Piece::Path(path) => match of_path(&path, outer, bound) {
            Ok(path) => vec![Piece::Path(path)],
            Err(text) => text.0.clone(),
        },
    });
    Template(pieces.collect())
}

fn of_expression(it: Expression, outer: &str, bound: &BTreeMap<String, Bound>) -> Result<Expression, String> {
    it.with_paths(&mut |path| match of_path(&path, outer, bound) {
        Ok(path) => Ok(Expression::Path(path)),
        Err(_) => Err(format!("`{path}` is text made of parts, which a condition cannot read")),
    })
}
