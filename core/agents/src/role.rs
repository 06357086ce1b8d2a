//! The role of a child: the tools that it leaves, and the settings that it chooses.

use std::sync::Arc;

use serde_json::Value;

use super::report::Report;
use call::{Registry, Tool};
use context::roles::{Role, RoleLimits};
use conversation::history::Settings;
use protocol::error::{Code, Error, Result};
use protocol::event::{ContextDocument, Toolset};
use session::Services;

/// The tools of the registry that the role leaves, and the tool by which the child reports.
pub(super) fn narrow(role: &Role, schema: Option<&Value>, registry: &Registry) -> Registry {
    let kept = match &role.tools {
        None => registry.clone(),
        Some(tools) => registry.keeping(|name| tools.iter().any(|it| it == name)),
    };
    match schema {
        None => kept,
        Some(schema) => kept.with(Arc::new(Report(schema.clone())) as Arc<dyn Tool>),
    }
}

/// The settings with which the child begins, where the parent has these.
///
/// # Errors
/// `CONFIG_INVALID` when the role's model is not connected here.
pub(super) fn settings(
    role: &Role,
    schema: Option<&Value>,
    parents: &Settings,
    services: &Services,
) -> Result<Settings> {
    let mut settings = parents.clone();
    if let Some((provider, model)) = role.model.as_deref().and_then(|it| it.split_once('/')) {
        services.providers.now().connect(provider).map_err(|e| {
            let message = format!("the role {} wants {provider}/{model}: {}", role.name, e.message);
            Error::new(Code::ConfigInvalid, message, "take another role, or set the provider up")
        })?;
        (settings.provider, settings.model) = (provider.to_owned(), model.to_owned());
    }
    if role.effort.is_some() {
        settings.effort.clone_from(&role.effort);
    }
    // `run` does what all tools do, so where single ones are chosen it is not offered.
    if role.tools.is_some() || schema.is_some() {
        settings.toolset = Toolset::Typed;
    }
    Ok(settings)
}

/// What the child reads before its task: its role, and the skills that the role names.
///
/// # Errors
/// Those of the activation of a skill.
pub(super) fn documents(role: &Role, schema: Option<&Value>, services: &Services) -> Result<Vec<ContextDocument>> {
    let mut documents =
        vec![ContextDocument { source: format!("role {}", role.name), text: role.instructions(schema.is_some()) }];
    for name in &role.skills {
        let text = services.library.skill_for_role(name)?;
        documents.push(ContextDocument { source: format!("skill {name}"), text });
    }
    Ok(documents)
}

/// The lower of two limits.
pub(super) fn lower<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Limits of the role, lowered by those of an order.
pub(super) fn limits(role: RoleLimits, order: call::agents::OrderLimits) -> RoleLimits {
    RoleLimits {
        rounds: lower(role.rounds, order.rounds),
        tokens: lower(role.tokens, order.tokens),
        seconds: lower(role.seconds, order.seconds),
    }
}

/// The role of a Session that is opened again. One that cannot be used any more leaves nothing but looking.
pub(super) fn of_session(name: &str, services: &Services) -> Arc<Role> {
    let found = Role::for_session(&services.library.roles(), name).cloned();
    Arc::new(found.unwrap_or_else(|_| Role::missing(name)))
}
