//! Slash commands that files and servers bring along: prompt templates, skills and prompts, by their own names.

use pixir_core::event::Attachment;
use pixir_core::{Input, ServerPrompt, Skill, Template};

use crate::input::action::of_slash;

/// A template, a skill, or a prompt of a server that `/name` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) name: String,
    /// What to type after the name; empty if nothing is known of it.
    pub(crate) hint: String,
    pub(crate) about: String,
    /// The names of its arguments that a form asks for.
    pub(crate) parameters: Vec<String>,
    pub(crate) kind: OfferKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfferKind {
    Template,
    Skill,
    /// A prompt of a server: its text goes into the composer.
    Prompt,
}

impl OfferKind {
    /// What lists call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            OfferKind::Template => "template",
            OfferKind::Skill => "skill",
            OfferKind::Prompt => "prompt",
        }
    }
}

impl Offer {
    /// What can be used, sorted by name. Built-in commands keep their names, and a template keeps its name before a skill.
    pub(crate) fn all(templates: &[Template], skills: &[Skill], prompts: &[ServerPrompt]) -> Vec<Offer> {
        let hint = |hint: &Option<String>| hint.clone().unwrap_or_default();
        let templates = templates.iter().filter(|it| it.is_active()).map(|it| Offer {
            name: it.name.clone(),
            hint: it.argument_hint.clone().unwrap_or_else(|| hint_of(&labels(it))),
            about: it.description.clone(),
            parameters: labels(it),
            kind: OfferKind::Template,
        });
        let skills = skills.iter().filter(|it| it.is_active() && it.fields.user_invocable).map(|it| Offer {
            name: it.name.clone(),
            hint: hint(&it.fields.argument_hint),
            about: it.description.clone(),
            parameters: Vec::new(),
            kind: OfferKind::Skill,
        });
        let prompts = prompts.iter().map(|it| Offer {
            name: it.name.clone(),
            hint: [hint_of(&it.needs), it.optional.iter().map(|it| format!("[{it}]")).collect::<Vec<_>>().join(" ")]
                .join(" ")
                .trim()
                .to_owned(),
            about: it.about.clone(),
            parameters: it.needs.clone(),
            kind: OfferKind::Prompt,
        });
        let mut all: Vec<Offer> = Vec::new();
        for offer in templates.chain(skills).chain(prompts) {
            let is_free = of_slash(&offer.name).is_none() && all.iter().all(|it| it.name != offer.name);
            if is_free && !offer.name.contains([' ', '/']) {
                all.push(offer);
            }
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The Input of `/name args`; `None` where its text goes into the composer.
    pub(crate) fn input(&self, args: &str, attachments: Vec<Attachment>) -> Option<Input> {
        let (name, args) = (self.name.clone(), args.to_owned());
        match self.kind {
            OfferKind::Template => Some(Input::UseTemplate { name, args, attachments }),
            OfferKind::Skill => Some(Input::ActivateSkill { name, args, attachments }),
            OfferKind::Prompt => None,
        }
    }
}

/// The arguments of a template by name. One that has only a number takes its word of the template's hint.
fn labels(template: &Template) -> Vec<String> {
    let hint = template.argument_hint.as_deref().unwrap_or_default();
    let bare = |word: &str| word.trim_matches(['<', '>', '[', ']', '.', '…']).to_owned();
    let words: Vec<String> = hint.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
    let label = |(at, name): (usize, &String)| match words.get(at) {
        Some(word) if name.starts_with('$') => word.clone(),
        Some(_) | None => name.clone(),
    };
    template.parameters.iter().enumerate().map(label).collect()
}

/// `<file> <why>`
fn hint_of(labels: &[String]) -> String {
    labels.iter().map(|it| format!("<{}>", it.trim_start_matches('$'))).collect::<Vec<_>>().join(" ")
}
