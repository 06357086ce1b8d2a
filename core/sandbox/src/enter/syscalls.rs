//! System calls that no program needs, and sockets where there is no network namespace.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};

use super::{Doing as _, Network, Plan, Result};
use protocol::sandbox::Tier;

/// Kernel keyrings, which hold the user's keys; and doors into the kernel that only the system itself uses. io_uring would
/// open sockets that this filter does not see. A socket gives a handle of the process at its other end, and with that handle
/// a command could take the descriptors of a job.
const REFUSED: [i64; 17] = [
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
    libc::SYS_pidfd_getfd,
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
        // The network namespace has only its own loopback. Other families are in no namespace, such as the host of a virtual
        // machine, or are doors into the kernel that no build needs.
        (Tier::Namespaces, Network::Own | Network::Machine) => {
            Some(not_any_of(&[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]))
        }
        // Sockets of services, such as the user's containers, are files that Landlock does not guard.
        (Tier::Landlock | Tier::None, Network::Machine) => {
            Some(not_any_of(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]))
        }
        (Tier::Namespaces, Network::Nothing) | (Tier::Landlock | Tier::None, Network::Nothing | Network::Own) => None,
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
    let works = !plan.view.change.is_empty();
    if works {
        rules.extend(privileged_modes(plan.is_of_group)?);
    }
    if plan.tier != Tier::Namespaces {
        refuse_what_landlock_leaves(plan, &mut rules)?;
    }
    rustix::thread::set_no_new_privs(true).doing("give up new privileges")?;
    if plan.tier != Tier::Namespaces && works {
        apply(attributes()?, libc::EOPNOTSUPP)?;
    }
    if works {
        // Its mode lies in memory, where no filter sees it. Programs take the older call where this one is missing.
        apply(BTreeMap::from([(libc::SYS_openat2, Vec::new())]), libc::ENOSYS)?;
    }
    apply(rules, libc::EPERM)
}

/// Refuses calls to this process and all that it starts, with this error.
fn apply(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<()> {
    let arch = std::env::consts::ARCH.try_into().doing("filter system calls")?;
    let refuse = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).doing("filter system calls")?;
    let program: BpfProgram = filter.try_into().doing("filter system calls")?;
    apply_filter(&program).doing("filter system calls")
}

/// The bits of a mode with which a program runs as the owner of its file, or as its group: for every user of the machine, and
/// outside of the sandbox.
const AS_OWNER: u32 = libc::S_ISUID;
const AS_GROUP: u32 = libc::S_ISGID;
/// Calls that change a mode, with the number of that argument.
const CHANGE_MODES: [(i64, u8); 3] = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2)];
/// Calls that create a file with a mode, with the number of that argument, which counts with one of these flags alone.
const CREATE_FILES: [(i64, u8, Option<u8>); 2] = [(libc::SYS_openat, 3, Some(2)), (libc::SYS_mknodat, 2, None)];
/// The older spellings, where the machine has them.
#[cfg(target_arch = "x86_64")]
const OLD_CHANGE_MODES: [(i64, u8); 1] = [(libc::SYS_chmod, 1)];
#[cfg(target_arch = "x86_64")]
const OLD_CREATE_FILES: [(i64, u8, Option<u8>); 3] =
    [(libc::SYS_open, 2, Some(1)), (libc::SYS_creat, 1, None), (libc::SYS_mknod, 1, None)];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CHANGE_MODES: [(i64, u8); 0] = [];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CREATE_FILES: [(i64, u8, Option<u8>); 0] = [];

/// Every call that gives a file one of those bits. Folders have the one of the group in workspaces that a group shares, and
/// programs that copy a folder there set it again; a filter cannot tell a folder from a file.
fn privileged_modes(is_of_group: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let has = |argument: u8, bits: u32| {
        let bits = u64::from(bits);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
    };
    let both = [AS_OWNER, AS_GROUP];
    let mut all: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut add = |call: i64, conditions: &[(u8, u32)]| {
        let each = conditions.iter().map(|(argument, bits)| has(*argument, *bits));
        let rule = each.collect::<std::result::Result<Vec<_>, _>>().and_then(SeccompRule::new);
        rule.map(|it| all.entry(call).or_default().push(it)).doing("filter modes")
    };
    for (call, mode) in CHANGE_MODES.into_iter().chain(OLD_CHANGE_MODES) {
        for bit in both.iter().filter(|bit| **bit == AS_OWNER || !is_of_group) {
            add(call, &[(mode, *bit)])?;
        }
    }
    // A file without a name, which can get one later.
    let unnamed = (libc::O_TMPFILE & !libc::O_DIRECTORY).unsigned_abs();
    for (call, mode, flags) in CREATE_FILES.into_iter().chain(OLD_CREATE_FILES) {
        for bit in both {
            let Some(flags) = flags else {
                add(call, &[(mode, bit)])?;
                continue;
            };
            // Otherwise that argument may be anything.
            for creates in [libc::O_CREAT.unsigned_abs(), unnamed] {
                add(call, &[(mode, bit), (flags, creates)])?;
            }
        }
    }
    Ok(all)
}

/// The changes of attributes that a program which works is refused as well.
fn attributes() -> Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ATTRIBUTES.into_iter().map(|call| (call, Vec::new())).collect();
    let requests = SET_FLAGS.iter().map(|request| {
        let condition = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, u64::from(*request));
        condition.and_then(|it| SeccompRule::new(vec![it]))
    });
    rules.insert(libc::SYS_ioctl, requests.collect::<std::result::Result<_, _>>().doing("filter attributes")?);
    Ok(rules)
}

/// Changes of files that Landlock does not know: modes, owners, times, attributes. A program that only looks makes none; one
/// that works needs them, in the workspace.
const CHANGES: [i64; 19] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    // Objects of the user's processes that are no files.
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
];
/// How many of them also refuse programs that work: the last ones.
const ALWAYS: usize = 4;
/// The same numbers on every machine; too new for the table.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const FILE_SETATTR: i64 = 469;
/// Those that let others use a file by a list, or change how the kernel treats it. No build needs them; it is told that the
/// file system has no such attributes, as some have not.
const ATTRIBUTES: [i64; 9] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];
/// The requests of `ioctl` that do the same.
const SET_FLAGS: [u32; 2] = [0x4008_6602, 0x401c_5820];
/// The older spellings, where the machine has them.
#[cfg(target_arch = "x86_64")]
const OLD_CHANGES: [i64; 6] =
    [libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CHANGES: [i64; 0] = [];
/// Calls that change another process of the user if the argument with this number is not zero.
const OF_OTHERS: [(i64, u8); 7] = [
    (libc::SYS_prlimit64, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setaffinity, 0),
];

/// Refuses what the namespaces would keep apart, and Landlock does not.
fn refuse_what_landlock_leaves(plan: &Plan, rules: &mut BTreeMap<i64, Vec<SeccompRule>>) -> Result<()> {
    let only_looks = plan.view.change.is_empty();
    let changes = if only_looks { &CHANGES[..] } else { &CHANGES[CHANGES.len() - ALWAYS..] };
    rules.extend(changes.iter().map(|call| (*call, Vec::new())));
    if only_looks {
        rules.extend(OLD_CHANGES.into_iter().map(|call| (call, Vec::new())));
    }
    for (call, argument) in OF_OTHERS {
        let names_one = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)
            .and_then(|it| SeccompRule::new(vec![it]))
            .doing("filter calls about other processes")?;
        rules.insert(call, vec![names_one]);
    }
    Ok(())
}
