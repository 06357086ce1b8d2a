//! System calls that no program needs, and sockets where there is no network namespace.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

use super::{Doing as _, Plan, Result};
use crate::protocol::sandbox::Tier;

/// Kernel keyrings, which hold the user's keys; and doors into the kernel that only the system itself uses. io_uring would
/// open sockets that this filter does not see.
const REFUSED: [i64; 16] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_open_by_handle_at,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_process_vm_writev,
];

/// Refuses these calls to this process and all that it starts.
pub(super) fn refuse(plan: &Plan) -> Result<()> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let family_is = |family: i32, op: SeccompCmpOp| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, op, u64::from(family.unsigned_abs()))
    };
    let not_any_of = |families: &[i32]| {
        let each: std::result::Result<Vec<_>, _> = families.iter().map(|it| family_is(*it, SeccompCmpOp::Ne)).collect();
        each.and_then(SeccompRule::new)
    };
    let sockets = match (plan.tier, plan.network) {
        // The network namespace has only its own loopback. The host of a virtual machine is in no namespace.
        (Tier::Namespaces, _) => Some(family_is(libc::AF_VSOCK, SeccompCmpOp::Eq).and_then(|it| SeccompRule::new(vec![it]))),
        // Sockets of services, such as the user's containers, are files that Landlock does not guard.
        (_, true) => Some(not_any_of(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])),
        (_, false) => None,
    };
    let sockets = sockets.transpose().doing("filter sockets")?;
    rules.insert(libc::SYS_socket, sockets.into_iter().collect());
    // Input in the name of the user, on a terminal that a program may have.
    let pushes = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::TIOCSTI)
        .and_then(|it| SeccompRule::new(vec![it]))
        .doing("filter terminals")?;
    rules.insert(libc::SYS_ioctl, vec![pushes]);
    if plan.tier != Tier::Namespaces {
        let pairs = not_any_of(&[libc::AF_UNIX]).doing("filter socket pairs")?;
        rules.insert(libc::SYS_socketpair, vec![pairs]);
    }
    let arch = std::env::consts::ARCH.try_into().doing("filter system calls")?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).doing("filter system calls")?;
    let program: BpfProgram = filter.try_into().doing("filter system calls")?;
    rustix::thread::set_no_new_privs(true).doing("give up new privileges")?;
    apply_filter(&program).doing("filter system calls")
}
