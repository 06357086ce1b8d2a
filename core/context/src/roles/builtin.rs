//! The roles that pixir has by itself.

use super::{PLAN, Role, RoleKind, findings_schema};
use protocol::event::{Isolation, Mode};

/// All of them.
pub(super) fn all() -> Vec<Role> {
    let role = |name: &str, description: &str, mode, body: &str| Role {
        description: description.to_owned(),
        mode,
        body: body.to_owned(),
        ..Role::plain(name)
    };
    vec![
        role(
            "worker",
            "does one piece of work, as the parent may",
            None,
            "Do all of it, and nothing beside it: others may work in the same files. Check what you did with what the project \
             has for it. Report what you changed, what you ran to check it and with which outcome, and what is left to do.",
        ),
        role(
            "explorer",
            "finds out how something works; changes nothing",
            Some(Mode::ReadOnly),
            "Search widely, read what matters, and report facts with their places. Quote no more than is needed.",
        ),
        Role {
            isolation: Some(Isolation::Scratch),
            ..role(
                "tester",
                "runs builds and tests in a copy that is thrown away; changes nothing here",
                None,
                "Build it, run the tests, and try out what was asked. You work in a copy of the workspace: whatever you change is \
                 thrown away. Report what ran, what failed with its output, and what it means.",
            )
        },
        Role {
            schema: Some(findings_schema()),
            ..role(
                "reviewer",
                "looks for faults in a change or a file, and reports findings; changes nothing",
                Some(Mode::ReadOnly),
                "Look for faults: each with its place, how it shows, and how sure you are. Report no fault that you did not check. No faults are a result too.",
            )
        },
        Role {
            kind: RoleKind::Primary,
            ..role(
                PLAN,
                "plans with you, and changes nothing until you agree",
                Some(Mode::ReadOnly),
                "You are planning. Change nothing: what changes something is refused, also for agents that you start. \
                 Read what you need, and let agents of the role explorer look at large parts. Ask where the task leaves a \
                 choice that is the user's. Write the steps with update_plan, small enough that each can be checked. When \
                 the plan is whole, say in a few sentences what it changes and what is open, and call update_plan with \
                 ready=true: the user then decides whether you begin.",
            )
        },
    ]
}
