//! Prompt templates where there is no screen: `/name args` is the message that the template makes.

use pixir_core::error::nearest;
use pixir_core::{Harness, Input};

/// The Input of a prompt: `/name args` uses the prompt template of that name. Any other text is a prompt.
pub(crate) fn input(harness: &Harness, prompt: String) -> Input {
    let (word, args) = prompt.split_once(char::is_whitespace).unwrap_or((&prompt, ""));
    let Some(name) = word.strip_prefix('/').filter(|name| !name.is_empty() && !name.contains('/')) else {
        return Input::Prompt(prompt.into());
    };
    let templates = harness.templates();
    let is_known = templates.iter().any(|it| it.name == name);
    // What nearly is a template's name is a mistake, which the core reports; anything else may be a path.
    if !is_known && nearest(name, templates.iter().map(|it| it.name.as_str())).is_none() {
        return Input::Prompt(prompt.into());
    }
    Input::UseTemplate { name: name.to_owned(), args: args.trim().to_owned(), attachments: Vec::new() }
}
