//! Runs of workflows: the list of steps, and the command that begins one.

use pixir_core::WorkflowPlan;
use pixir_core::input::WorkflowOrder;
use serde_json::{Map, Value};

use crate::overlay::workflow::WorkflowView;
use crate::state::{Effect, OnHarness, State};
use crate::update::refused;

/// Shows the run of the Session, or the one that its model has begun; with a name, what a run of that workflow would be:
/// `/workflows fix-and-verify fault='the sum is wrong'`.
pub(super) fn open(state: &mut State, args: &str) -> Vec<Effect> {
    let words = match words(args) {
        Ok(words) => words,
        Err(why) => return refused::refuse(state, why),
    };
    let mut words = words.into_iter();
    let Some(name) = words.next() else { return show(state) };
    let mut params = Map::new();
    for word in words {
        let Some((param, value)) = word.split_once('=') else {
            return refused::refuse(state, format!("`{word}` has no `=`: /workflows {name} parameter='value'"));
        };
        params.insert(param.to_owned(), Value::from(value));
    }
    let order = WorkflowOrder { name: Some(name), params, ..WorkflowOrder::default() };
    vec![OnHarness::PlanWorkflow(Box::new(order)).into()]
}

fn show(state: &mut State) -> Vec<Effect> {
    let view = WorkflowView::new(&state.history, &state.session.agents);
    if view.has_run() {
        return state.open(view);
    }
    // The latest run of the model, of those that run if there is one.
    let runs = || state.session.agents.below().filter(|it| it.is_run);
    let of_model = runs().filter(|it| it.status.is_open()).last().or_else(|| runs().last());
    match of_model {
        Some(run) => vec![OnHarness::EnterAgent { path: run.path.clone(), from_list: false }.into()],
        None => state.open(view),
    }
}

/// The agent on the screen is a run of a workflow: its steps are shown.
pub(crate) fn show_run_inside(state: &mut State) -> Vec<Effect> {
    let view = WorkflowView::new(&state.history, &state.session.agents);
    if view.has_run() { state.open(view) } else { Vec::new() }
}

/// A workflow that cannot be run as it is.
#[derive(Debug)]
pub(crate) struct RefusedPlan {
    /// Why, in one line.
    pub(crate) why: String,
    /// Every fault of its file, as a line.
    pub(crate) faults: Vec<String>,
    pub(crate) order: WorkflowOrder,
}

/// What a run would be is known: the user sees it before it begins, or reads all faults of the file.
pub(crate) fn on_planned(
    state: &mut State,
    planned: Result<(WorkflowOrder, WorkflowPlan), RefusedPlan>,
) -> Vec<Effect> {
    match planned {
        Ok((order, plan)) => {
            let view = WorkflowView::planned(order, &plan);
            state.open(view)
        }
        Err(RefusedPlan { why, faults, .. }) if faults.is_empty() => refused::refuse_late(state, "workflow", why),
        Err(RefusedPlan { faults, order, .. }) => {
            let view = WorkflowView::refused(order, faults);
            state.open(view)
        }
    }
}

/// Splits a line as a shell does: blanks separate words, and quotes and backslashes keep them together.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(letters.next()),
            (None, _) if letter.is_whitespace() => all.extend(word.take()),
            (Some(_) | None, _) => word.get_or_insert_default().push(letter),
        }
    }
    match quote {
        Some(open) => Err(format!("a {open} is never closed")),
        None => {
            all.extend(word);
            Ok(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    /// Broken build: a value is cut at its first blank.
    #[test]
    fn a_value_in_quotes_is_one_word() {
        let read = |line: &str| words(line).expect("its quotes are closed");
        assert_eq!(read("fix fault='the sum is wrong' n=3"), ["fix", "fault=the sum is wrong", "n=3"]);
        assert_eq!(read(r#"fix "fault=it's" a\ b=1 c='' "#), ["fix", "fault=it's", "a b=1", "c="]);
        assert!(read("  ").is_empty());
        assert!(words("fix fault='the").is_err());
    }
}
