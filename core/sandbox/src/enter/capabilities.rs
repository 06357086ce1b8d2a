//! What root may do, and set-user-id programs would.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

use super::{Doing as _, Result};

/// Lets the next program that this process starts keep its capabilities. Root's programs do so anyway.
pub(super) fn hand_on() -> Result<()> {
    let all = capabilities(None).doing("read capabilities")?.permitted;
    let sets = CapabilitySets { effective: all, permitted: all, inheritable: all };
    set_capabilities(None, sets).doing("hand capabilities on")?;
    all.iter().try_for_each(|it| configure_capability_in_ambient_set(it, true)).doing("hand capabilities on")
}

/// Makes sure that neither this process nor any that it starts can change the namespaces or become another user.
pub(super) fn give_up() -> Result<()> {
    for capability in CapabilitySet::all().iter() {
        // One that this kernel does not know cannot be had.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).doing("give up capabilities")?;
    set_no_new_privs(true).doing("give up new privileges")
}
