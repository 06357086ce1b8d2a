//! The mode and the rules of a Session, as the Sessions below it see them at each judgement.

use std::sync::Arc;

use parking_lot::Mutex;

use super::gate::Permissions;
use permissions::{Bounds, SetBy};
use protocol::event::{Mode, Rule, Scope, SessionId};

/// What a Session may do now: its own mode and rules, bounded by those of the Sessions above it.
///
/// At each call a child has at most its parent's current permissions, whatever was set when the child began.
#[derive(Debug, Clone, Default)]
pub struct Standing {
    own: Arc<Own>,
    above: Option<Arc<Standing>>,
}

#[derive(Debug, Default)]
struct Own {
    id: Option<SessionId>,
    now: Mutex<Permissions>,
    /// What the role of the Session leaves.
    role: Mutex<Option<Arc<Bounds>>>,
    /// What the call that started the Session leaves.
    call: Option<Arc<Bounds>>,
}

impl Standing {
    /// The standing of the Session that the user talks to.
    pub fn root(id: SessionId) -> Standing {
        Standing { own: Arc::new(Own { id: Some(id), ..Own::default() }), above: None }
    }

    /// The standing of a child with this role. A call that starts a child can leave it less than its role does.
    pub fn below(&self, id: SessionId, role: Bounds, call: Option<Bounds>) -> Standing {
        let (role, call) = (Mutex::new(Some(Arc::new(role))), call.map(Arc::new));
        let own = Own { id: Some(id), role, call, ..Own::default() };
        Standing { own: Arc::new(own), above: Some(Arc::new(self.clone())) }
    }

    /// The role of the Session changed.
    pub fn set_role(&self, role: Option<Bounds>) {
        *self.own.role.lock() = role.map(Arc::new);
    }

    /// The name of the role that the user gave to the Session. Another one's is its own as long as it lives.
    pub fn given_role(&self) -> Option<String> {
        let role = self.role().filter(|_| self.above.is_none());
        role.and_then(|role| match &role.by {
            SetBy::Role(name) => Some(name.clone()),
            SetBy::Call => None,
        })
    }

    fn role(&self) -> Option<Arc<Bounds>> {
        self.own.role.lock().clone()
    }

    /// The Session's own mode and deny rules changed.
    pub fn set(&self, mode: Mode, rules: &[Rule]) {
        *self.own.now.lock() = Permissions { mode, rules: rules.to_vec(), bounds: Vec::new() };
    }

    /// The mode in force: the strictest of its own, its role's and those above.
    pub fn mode(&self) -> Mode {
        let own = self.own.now.lock().mode;
        let ceiling = self.role().and_then(|role| role.mode).into_iter();
        let above = self.above.iter().map(|it| it.mode());
        ceiling.chain(above).fold(own, Mode::stricter)
    }

    /// The mode and the deny rules in force.
    pub fn now(&self) -> Permissions {
        let mut rules = self.own.now.lock().rules.clone();
        let above = self.above.as_ref().map(|it| it.now()).unwrap_or_default();
        rules.extend(above.rules);
        let own = self.role();
        if own.as_ref().is_some_and(|it| it.no_network) {
            rules.push(Rule::Deny(Scope::Network));
        }
        let call = self.own.call.clone();
        let from_above = above.bounds.iter().map(|it| Arc::new(it.below()));
        Permissions { mode: self.mode(), rules, bounds: own.into_iter().chain(call).chain(from_above).collect() }
    }

    /// This Session and those above it. A rule that the user made for one of them holds here too.
    pub fn sessions(&self) -> Vec<SessionId> {
        let above = self.above.iter().flat_map(|it| it.sessions());
        self.own.id.clone().into_iter().chain(above).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event::Scope;

    fn id(n: u32) -> SessionId {
        SessionId::parse(&format!("20261124T000000-{n:06x}")).expect("an id")
    }

    /// Broken builds: `mode` takes the child's own; `now` forgets the rules above.
    #[test]
    fn a_child_never_may_more_than_its_role_its_parent_and_the_root_may_now() {
        for root_mode in Mode::ALL {
            for parent_mode in Mode::ALL {
                for ceiling in [None, Some(Mode::ReadOnly), Some(Mode::Ask), Some(Mode::Auto)] {
                    for own in Mode::ALL {
                        let root = Standing::root(id(1));
                        let parent = root.below(id(2), Bounds::default(), None);
                        let child = parent.below(id(3), Bounds { mode: ceiling, ..Bounds::default() }, None);
                        child.set(own, &[]);
                        // The user changes the modes above after the child began.
                        parent.set(parent_mode, &[Rule::Deny(Scope::Network)]);
                        root.set(root_mode, &[Rule::Deny(Scope::Unknown)]);
                        let least = [Some(root_mode), Some(parent_mode), ceiling, Some(own)];
                        let rank = |mode: Mode| Mode::ALL.iter().position(|it| *it == mode);
                        let least = least.into_iter().flatten().min_by_key(|mode| rank(*mode));
                        assert_eq!(Some(child.mode()), least);
                        assert_eq!(child.now().rules, [Rule::Deny(Scope::Network), Rule::Deny(Scope::Unknown)]);
                    }
                }
            }
        }
        let writes = Bounds { tools: Some(Vec::new()), writes: Some(vec!["docs/**".into()]), ..Bounds::default() };
        let call = Bounds { writes: Some(vec!["docs/a.md".into()]), ..Bounds::default() };
        let child = Standing::root(id(1)).below(id(2), writes, Some(call)).below(id(3), Bounds::default(), None);
        let [own, above, call] = child.now().bounds.try_into().expect("three");
        assert_eq!((&own.writes, &above.tools), (&None, &None), "tools bind one agent alone");
        assert_eq!(above.writes.as_deref(), Some(&["docs/**".to_owned()][..]), "files bind all below");
        assert_eq!(call.writes.as_deref(), Some(&["docs/a.md".to_owned()][..]), "those of a call do too");
        assert_eq!(child.sessions(), [id(3), id(2), id(1)]);
    }
}
