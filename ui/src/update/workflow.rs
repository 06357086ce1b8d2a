//! Runs of workflows: the list of steps, and the command that begins one.

use pixir_core::Input;
use pixir_core::input::WorkflowOrder;
use serde_json::{Map, Value};

use crate::overlay::Overlay;
use crate::overlay::workflow::WorkflowView;
use crate::state::{Effect, State};

/// Shows the run of the Session; with a name, runs that workflow: `/workflows review-diff base=main`.
pub(super) fn open(state: &mut State, args: &str) -> Vec<Effect> {
    let mut words = args.split_whitespace();
    let Some(name) = words.next() else {
        let view = WorkflowView::new(&state.history);
        return state.open(Overlay::Workflow(Box::new(view)));
    };
    let mut params = Map::new();
    for word in words {
        let Some((param, value)) = word.split_once('=') else {
            state.say(format!("`{word}` has no `=`: /workflows {name} parameter=value"));
            return Vec::new();
        };
        params.insert(param.to_owned(), Value::from(value));
    }
    let order = WorkflowOrder { name: Some(name.to_owned()), params, ..WorkflowOrder::default() };
    vec![Effect::Send(Input::RunWorkflow(order))]
}
