//! The TCP ports on which the processes of a job listen, as `/proc` tells it.

/// A job that listens on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listening {
    /// In the network of the machine.
    Machine,
    /// In the network that commands of its Session share, unless they may use the machine's.
    Session,
    /// Something on this machine listens there; whether it is the job cannot be seen.
    Unseen,
}

/// Whether a process of the group that this process leads listens on a port.
#[cfg(not(target_os = "linux"))]
pub(super) fn listening(_leader: u32, port: u16) -> Option<Listening> {
    let limit = std::time::Duration::from_millis(200);
    let reached =
        |address: std::net::IpAddr| std::net::TcpStream::connect_timeout(&(address, port).into(), limit).is_ok();
    let local = [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
    local.into_iter().any(reached).then_some(Listening::Unseen)
}

/// The ports on which processes of the group that this process leads listen; none where that cannot be seen.
#[cfg(not(target_os = "linux"))]
pub(super) fn of_group(_leader: u32) -> Vec<u16> {
    Vec::new()
}

/// The ports on which servers of the machine listen; none where that cannot be seen.
#[cfg(not(target_os = "linux"))]
pub fn of_machine() -> Vec<u16> {
    Vec::new()
}

#[cfg(target_os = "linux")]
pub use linux::of_machine;
#[cfg(target_os = "linux")]
pub(super) use linux::{listening, of_group};

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::PathBuf;

    use super::Listening;

    /// Whether a process of the group that this process leads listens on a port.
    ///
    /// Each process has the table of its network namespace in `/proc`. Other programs share the namespace, so the socket must
    /// be open in a process of the job.
    pub(crate) fn listening(leader: u32, port: u16) -> Option<Listening> {
        let network = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).ok();
        let own = network("self");
        // Listeners by network, because many processes share one.
        let mut known: BTreeMap<Option<PathBuf>, BTreeSet<u64>> = BTreeMap::new();
        let mut is_hidden = false;
        let group = group(leader);
        let confines = |pid: &u32| is_first(*pid) || *pid == leader && group.iter().any(|pid| is_first(*pid));
        for pid in group.iter().copied() {
            let its = network(&pid.to_string());
            let listeners = known.entry(its.clone()).or_insert_with(|| listeners(pid, port));
            if listeners.is_empty() {
                continue;
            }
            match sockets(pid) {
                Some(open) if open.is_disjoint(listeners) => {}
                Some(_) if its.is_some() && its != own => return Some(Listening::Session),
                Some(_) => return Some(Listening::Machine),
                // The processes of the launcher show nothing of themselves, and never listen.
                None => is_hidden |= !confines(&pid),
            }
        }
        is_hidden.then_some(Listening::Unseen)
    }

    /// The ports on which processes of the group that this process leads listen, without those of processes that cannot be seen.
    pub(crate) fn of_group(leader: u32) -> Vec<u16> {
        let mut ports = BTreeSet::new();
        // The tables of a network, because many processes share one.
        let mut known: BTreeMap<Option<PathBuf>, Vec<(u16, u64)>> = BTreeMap::new();
        for pid in group(leader) {
            let Some(open) = sockets(pid).filter(|open| !open.is_empty()) else { continue };
            let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
            let listeners = known.entry(network).or_insert_with(|| all_listeners(pid));
            ports.extend(listeners.iter().filter(|(_, inode)| open.contains(inode)).map(|(port, _)| *port));
        }
        ports.into_iter().collect()
    }

    /// The ports on which servers of the machine listen.
    pub fn of_machine() -> Vec<u16> {
        all_listeners(std::process::id()).into_iter().map(|(port, _)| port).collect()
    }

    /// Whether this is the first process of a process namespace.
    fn is_first(pid: u32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        ids.split_whitespace().skip(1).last() == Some("1")
    }

    /// The process, all that it started, and all of its session.
    fn group(leader: u32) -> BTreeSet<u32> {
        let mut all: Vec<(u32, u32, u32)> = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            // The name stands in parentheses and may hold any byte. Behind it: state, parent, group, session.
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
            let number = |at: usize| fields.get(at).and_then(|it| it.parse().ok()).unwrap_or(0);
            all.push((pid, number(1), number(3)));
        }
        let mut group: BTreeSet<u32> = [leader].into();
        loop {
            let before = group.len();
            let belongs = |(_, parent, session): &&(u32, u32, u32)| group.contains(parent) || *session == leader;
            let more: Vec<u32> = all.iter().filter(belongs).map(|(pid, ..)| *pid).collect();
            group.extend(more);
            if group.len() == before {
                return group;
            }
        }
    }

    /// The inodes of the sockets that listen on a port, in the network of a process.
    fn listeners(pid: u32, port: u16) -> BTreeSet<u64> {
        all_listeners(pid).into_iter().filter(|(at, _)| *at == port).map(|(_, inode)| inode).collect()
    }

    /// The ports and inodes of all sockets that listen, in the network of a process.
    fn all_listeners(pid: u32) -> Vec<(u16, u64)> {
        let tables =
            ["tcp", "tcp6"].into_iter().filter_map(|it| fs::read_to_string(format!("/proc/{pid}/net/{it}")).ok());
        tables.flat_map(|table| table.lines().filter_map(listener).collect::<Vec<_>>()).collect()
    }

    /// The port and the inode in a line of `/proc/net/tcp`, if it is a listening socket.
    fn listener(line: &str) -> Option<(u16, u64)> {
        const LISTENS: &str = "0A";
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let at = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        if *state == LISTENS { Some((at, inode.parse().ok()?)) } else { None }
    }

    /// The inodes of a process's sockets; `None` where they cannot be seen.
    fn sockets(pid: u32) -> Option<BTreeSet<u64>> {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let inode = |link: PathBuf| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
        Some(links.filter_map(inode).collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_port_is_found_only_where_a_process_of_the_group_listens() {
            let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = socket.local_addr().expect("an address").port();
            assert_eq!(listening(std::process::id(), port), Some(Listening::Machine));
            assert!(of_group(std::process::id()).contains(&port));
            drop(socket);
            assert_eq!(listening(std::process::id(), port), None);
        }
    }
}
