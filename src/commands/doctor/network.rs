//! What lies between pixir and a server: proxies, certificates, and the clock that certificates are judged by.

use std::time::SystemTime;

use pixir_core::{proxy, tls};

use super::{Finding, pass, warn};
use crate::remedies;

pub(super) fn findings() -> Vec<Finding> {
    let built = std::env::current_exe().and_then(|it| it.metadata()).and_then(|it| it.modified()).ok();
    [proxies(), certificates(), clock(built, SystemTime::now())].into_iter().flatten().collect()
}

fn proxies() -> Vec<Finding> {
    let all = proxy::named();
    if all.is_empty() {
        return vec![pass("proxy", "none is set; the environment names one by HTTPS_PROXY or ALL_PROXY")];
    }
    let beside = proxy::exceptions().map_or_else(String::new, |hosts| format!("; NO_PROXY leaves out {hosts}"));
    let finding = |it: proxy::Proxy| match it.address {
        Ok(address) => pass("proxy", format!("{} is {address}{beside}", it.variable)),
        Err(why) => warn(
            "proxy",
            format!("{} {why}", it.variable),
            "write it as http://host:port or socks5h://host:port, or unset it",
        ),
    };
    all.into_iter().map(finding).collect()
}

fn certificates() -> Vec<Finding> {
    let described = |it: tls::Named| {
        let what = match it.authorities {
            Some(1) => "1 authority of".to_owned(),
            Some(n) => format!("{n} authorities of"),
            None => "those in".to_owned(),
        };
        format!("{what} {} ({})", it.path.display(), it.variable)
    };
    vec![match tls::named() {
        Ok(all) if all.is_empty() => pass("certificates", "pixir trusts the authorities of the system"),
        Ok(all) => {
            let all: Vec<String> = all.into_iter().map(described).collect();
            pass("certificates", format!("pixir trusts the authorities of the system, and {}", all.join(", ")))
        }
        Err(e) => super::fail("certificates", e.message, &remedies::word(&e.remedy)),
    }]
}

/// A clock that is behind the program itself is wrong, and with it every certificate that was issued since.
fn clock(built: Option<SystemTime>, now: SystemTime) -> Vec<Finding> {
    let is_behind = built.is_some_and(|built| now < built);
    is_behind
        .then(|| {
            let fix = "set the clock of this machine, or let it follow a time server";
            warn("clock", "the clock of this machine is behind the time at which pixir was installed", fix)
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_behind_the_program_is_wrong() {
        let built = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(clock(Some(built), built - Duration::from_secs(60)).len(), 1);
        assert!(clock(Some(built), built + Duration::from_secs(60)).is_empty() && clock(None, built).is_empty());
    }
}
