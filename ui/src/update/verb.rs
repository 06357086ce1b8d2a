//! Verbs as the Inputs that they become.

use pixir_core::verbs::{self, Order};

use super::refused;
use crate::state::{Effect, State};

/// Sends the Input of a verb, or says why its argument is wrong. What can be previewed is.
pub(super) fn send(state: &mut State, name: &str, order: Order) -> Vec<Effect> {
    let Some(verb) = verbs::find(name) else { return Vec::new() };
    if order.args.is_empty() && verb.needs_args() {
        return refused::refuse(state, format!("/{name} needs {}", verb.args));
    }
    match verb.input(Order { dry_run: true, ..order }) {
        Some(Ok((_, input))) => vec![Effect::Send(input)],
        Some(Err(e)) => {
            let why = refused::because(state, &e);
            refused::refuse(state, why)
        }
        None => Vec::new(),
    }
}
