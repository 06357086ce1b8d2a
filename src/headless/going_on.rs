//! The command that goes on with a run of a workflow, or with an agent: with what was refused permitted, and limits raised.

use pixir_core::Remedy;
use pixir_core::event::{DecidedBy, Denial, Rule};
use pixir_core::remedy::Limit;
use pixir_core::rules;

use crate::next_actions::quoted;

/// The flags that permit what was refused, each after a space. No flag gives what a role, a task, a rule of the user or the user
/// refused.
pub(super) fn permitting<'a>(refused: impl IntoIterator<Item = &'a Denial>, writes: bool) -> String {
    let (mut mode, mut allowed) = (None, Vec::new());
    for denial in refused {
        match (denial.by, &denial.rule) {
            (DecidedBy::Mode, _) if !writes => mode = Some(" --write"),
            (DecidedBy::NoAsker, Some(Rule::Allow(scope))) => {
                // Rules hold in a mode that asks.
                mode.get_or_insert(if writes { " --write" } else { " --mode ask" });
                let flag = format!(" --allow {}", quoted(&rules::shown(scope)));
                if !allowed.contains(&flag) {
                    allowed.push(flag);
                }
            }
            (_, _) => {}
        }
    }
    format!("{}{}", mode.unwrap_or_default(), allowed.concat())
}

/// The remedy with the command of this run in place of its general words. A limit is raised for the resumed run.
pub(super) fn going_on(remedy: Remedy, resume: &str) -> Remedy {
    let all = |remedies: Vec<Remedy>| remedies.into_iter().map(|it| going_on(it, resume)).collect();
    match remedy {
        Remedy::ResumeRun => Remedy::command(resume),
        Remedy::RaiseLimit { limit: Limit::Cost } => Remedy::command(format!("{resume} --max-cost USD")),
        Remedy::RaiseLimit { limit: Limit::Tokens } => Remedy::command(format!("{resume} --max-tokens N")),
        Remedy::RaiseLimit { limit: Limit::Deadline } => Remedy::command(format!("{resume} --deadline SECONDS")),
        Remedy::RaiseLimit { limit: Limit::Rounds } => Remedy::command(format!("{resume} --max-rounds N")),
        Remedy::AnyOf { remedies } => Remedy::AnyOf { remedies: all(remedies) },
        Remedy::Steps { steps } => Remedy::Steps { steps: all(steps) },
        other => other,
    }
}

/// Whether a remedy is that of a run of a workflow.
pub(super) fn resumes(remedy: &Remedy) -> bool {
    match remedy {
        Remedy::ResumeRun => true,
        Remedy::AnyOf { remedies: all } | Remedy::Steps { steps: all } => all.iter().any(resumes),
        _ => false,
    }
}
