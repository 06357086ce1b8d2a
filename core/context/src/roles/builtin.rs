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
            "Do the whole task and nothing beside it, because others may work in the same files. Check your work with the tests \
             and the checks of the project. Report what you changed, what you ran to check it and what that showed, and what is \
             left to do.",
        ),
        role(
            "explorer",
            "finds out how something works; changes nothing",
            Some(Mode::ReadOnly),
            "Search widely, read what matters, and report facts with their places. Quote no more than the reader needs.",
        ),
        Role {
            isolation: Some(Isolation::Scratch),
            ..role(
                "tester",
                "runs builds and tests in a copy that is thrown away; changes nothing here",
                None,
                "Build the project, run its tests, and try out what the task names. You work in a copy of the workspace, and whatever \
                 you change there is thrown away. Report what you ran, what failed with its output, and what that means.",
            )
        },
        Role {
            schema: Some(findings_schema()),
            ..role(
                "reviewer",
                "looks for faults in a change or a file, and reports findings; changes nothing",
                Some(Mode::ReadOnly),
                "Look for faults. Report each fault with its place, how it shows itself, and how sure you are. Report no fault that you \
                 did not check. That you found no fault is a result too.",
            )
        },
        Role {
            kind: RoleKind::Primary,
            ..role(
                PLAN,
                "plans with you, and changes nothing until you agree",
                Some(Mode::ReadOnly),
                "You are planning. Change nothing: what changes something is refused, also for agents that you start. \
                 Read what you need, and let agents of the role explorer look at large parts. Ask the user where the task \
                 leaves a choice to the user. Write the steps with update_plan, small enough that each can be checked. When \
                 the plan is whole, say in a few sentences what it changes and what is open, and call update_plan with \
                 ready=true: the user then decides whether you begin.",
            )
        },
    ]
}
