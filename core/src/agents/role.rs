//! Roles: what a child is for, and what it may do at most.

use crate::call::Registry;
use crate::protocol::error::{Code, Error, Result, nearest};
use crate::protocol::event::Mode;

/// What an agent is for, and what it may do at most.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Role {
    /// The name, as the model and the user choose it.
    pub(crate) name: String,
    /// What it is for, in one line.
    pub(crate) description: String,
    /// The most permissive mode that it can have; `None` leaves that to the parent.
    pub(crate) mode: Option<Mode>,
    /// The only tools that it is offered; `None` offers all.
    pub(crate) tools: Option<Vec<String>>,
    /// What it is told about its work.
    pub(crate) body: String,
}

/// What every child is told about how it works for another agent.
const CHILD: &str = "\
You are an agent that another agent started with one task. Do this task and nothing else. \
Your last message is your report: the parent reads only that, at most 4,000 bytes. \
Say what you found or did, name places as path:line, and say what is missing or failed.";

impl Role {
    /// The roles that pixir has by itself.
    pub(crate) fn builtin() -> Vec<Role> {
        let role = |name: &str, description: &str, mode, body: &str| Role {
            name: name.to_owned(),
            description: description.to_owned(),
            mode,
            tools: None,
            body: body.to_owned(),
        };
        vec![
            role("worker", "does one piece of work, as the parent may", None, ""),
            role(
                "explorer",
                "finds out how something works; changes nothing",
                Some(Mode::ReadOnly),
                "Search widely, read what matters, and report facts with their places. Quote no more than is needed.",
            ),
            role(
                "reviewer",
                "looks for faults in a change or a file; changes nothing",
                Some(Mode::ReadOnly),
                "Report each fault with its place, how it shows, and how sure you are. Report no fault that you did not check.",
            ),
        ]
    }

    /// The role of this name.
    ///
    /// # Errors
    /// `NOT_FOUND`, with the nearest name.
    pub(crate) fn find<'a>(roles: &'a [Role], name: &str) -> Result<&'a Role> {
        roles.iter().find(|role| role.name == name).ok_or_else(|| {
            let names = || roles.iter().map(|role| role.name.as_str());
            let all = || format!("one of: {}", names().collect::<Vec<_>>().join(", "));
            let fix = nearest(name, names()).map_or_else(all, str::to_owned);
            Error::new(Code::NotFound, format!("there is no role `{}`", name.escape_debug()), fix).with("input", name)
        })
    }

    /// The tools of the registry that the role leaves.
    pub(crate) fn narrow(&self, registry: &Registry) -> Registry {
        match &self.tools {
            None => registry.clone(),
            Some(tools) => registry.keeping(|name| tools.iter().any(|it| it == name)),
        }
    }

    /// What the child is told before its task.
    pub(crate) fn instructions(&self) -> String {
        if self.body.is_empty() { CHILD.to_owned() } else { format!("{CHILD}\n\n{}", self.body) }
    }
}
