//! What a command had to do without, where that may be why it failed: the network, a variable of the user, a proxy that answers.

use super::Context;
use super::blocked::Ran;
use permissions::repository::Leads;
use permissions::{Touch, needs_network};
use sandbox::Policy;

/// Variables by which programs find what they need, with what they say where one is missing, in lower case.
const SIGNS: [(&str, &str); 38] = [
    ("LD_LIBRARY_PATH", "error while loading shared libraries"),
    ("LD_LIBRARY_PATH", "cannot open shared object file"),
    ("DYLD_LIBRARY_PATH", "library not loaded"),
    ("PERL5LIB", "can't locate"),
    ("RUBYLIB", "cannot load such file"),
    ("CLASSPATH", "could not find or load main class"),
    ("CLASSPATH", "noclassdeffounderror"),
    ("CLASSPATH", "classnotfoundexception"),
    ("LUA_PATH", "module '"),
    ("TCLLIBPATH", "can't find package"),
    ("R_LIBS", "there is no package called"),
    ("MAKEFILES", "no rule to make target"),
    ("SSH_AUTH_SOCK", "permission denied (publickey"),
    ("SSH_AUTH_SOCK", "could not open a connection to your authentication agent"),
    ("DISPLAY", "cannot open display"),
    ("DISPLAY", "can't open display"),
    ("DISPLAY", "no display name"),
    ("WAYLAND_DISPLAY", "failed to connect to wayland"),
    ("DBUS_SESSION_BUS_ADDRESS", "cannot autolaunch d-bus"),
    ("XDG_RUNTIME_DIR", "xdg_runtime_dir"),
    ("AWS_ACCESS_KEY_ID", "unable to locate credentials"),
    ("AWS_PROFILE", "unable to locate credentials"),
    ("AWS_REGION", "you must specify a region"),
    ("AWS_DEFAULT_REGION", "you must specify a region"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "default credentials"),
    ("DOCKER_HOST", "cannot connect to the docker daemon"),
    ("KUBECONFIG", "localhost:8080 was refused"),
    ("GH_TOKEN", "gh auth login"),
    ("GITHUB_TOKEN", "gh auth login"),
    ("PGPASSWORD", "no password supplied"),
    ("PGHOST", "connection to server on socket"),
    ("VAULT_ADDR", "vault_addr"),
    ("HTTPS_PROXY", "could not resolve host"),
    ("https_proxy", "could not resolve host"),
    ("HTTPS_PROXY", "network is unreachable"),
    ("https_proxy", "network is unreachable"),
    ("HTTPS_PROXY", "connection timed out"),
    ("https_proxy", "connection timed out"),
];
/// Variables that name a proxy.
const PROXIES: [&str; 8] =
    ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "FTP_PROXY", "ftp_proxy"];
/// How programs say that a proxy did not serve them, in lower case.
const NO_PROXY_SERVED: [&str; 9] = [
    "could not resolve proxy",
    "couldn't resolve proxy",
    "proxyerror",
    "proxyconnect",
    "proxy connect aborted",
    "cannot connect to proxy",
    "unable to connect to proxy",
    "from proxy after connect",
    "tunneling socket could not be established",
];
/// The shortest name of a variable that is looked for in words: shorter ones are words of many programs.
const SHORTEST: usize = 4;

/// Sentences for the model about a command that ended with this code and printed this at its end.
pub fn notes(ran: &Ran, exit: i32, printed: &str, is_blocked: bool, ctx: &Context) -> String {
    if ctx.policy == Policy::Outside {
        return String::new();
    }
    let lower = printed.to_lowercase();
    let network = network(ran, is_blocked, ctx);
    let variables = variables(ran, exit, printed, &lower, ctx.sandbox.withheld());
    // Without the network no proxy was asked.
    let proxy = if network.is_none() && ctx.policy == Policy::Network { proxy(exit, &lower, ctx) } else { None };
    let repository = repository(ran, exit, &lower, ctx);
    network.into_iter().chain(variables).chain(proxy).chain(repository).map(|note| format!("note: {note}\n")).collect()
}

/// A program that does nothing useful without the network ran without it, and did not say so: `curl -s … | head`.
fn network(ran: &Ran, is_blocked: bool, ctx: &Context) -> Option<String> {
    let has_none = matches!(ctx.policy, Policy::Look | Policy::Work) && ctx.sandbox.confines();
    // Of a shell, what follows its option.
    let line = Touch::Command(ran.command.strip_prefix("-c ").unwrap_or(&ran.command).to_owned());
    (has_none && !is_blocked && needs_network(&line, ctx.readable())).then(|| {
        "the command ran without the network, so it reached no server; the user can give commands the network with the rule \
         `network`"
            .to_owned()
    })
}

/// Git did not find the part of the repository that lies outside the workspace, which commands see only with the user's trust.
fn repository(ran: &Ran, exit: i32, lower: &str, ctx: &Context) -> Option<String> {
    let says = ["not a git repository", "alternate object path", "bad object", "unable to read"];
    let is_git = ran.command.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "git");
    if !is_git || (exit == 0 && !says.iter().any(|it| lower.contains(it))) || ctx.trusted_leads().is_some() {
        return None;
    }
    let leads = Leads::of(ctx.workspace.root());
    let paths: Vec<String> = leads.all().map(|it| it.display().to_string()).collect();
    (!paths.is_empty()).then(|| {
        format!(
            "the repository of this workspace uses {}, outside of it; commands see that once the user trusts the workspace",
            paths.join(", ")
        )
    })
}

/// Variables that the user has and commands do not get, if the command names one, or failed as programs do without it.
fn variables(ran: &Ran, exit: i32, printed: &str, lower: &str, withheld: &[String]) -> Option<String> {
    let is_word = |text: &str, name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.match_indices(name).any(|(at, _)| {
            !text[..at].chars().next_back().is_some_and(is_part)
                && !text[at + name.len()..].chars().next().is_some_and(is_part)
        })
    };
    let sets = |name: &str| {
        let at = format!("{name}=");
        ran.command.split([' ', ';', '&', '|', '\n', '(']).any(|word| word.starts_with(&at))
    };
    let names =
        |name: &str| name.len() >= SHORTEST && (is_word(&ran.command, name) || (exit != 0 && is_word(printed, name)));
    let shows = |name: &str| exit != 0 && SIGNS.iter().any(|(of, sign)| *of == name && lower.contains(sign));
    let mut missed: Vec<&str> = withheld.iter().map(String::as_str).filter(|name| !sets(name)).collect();
    missed.retain(|name| names(name) || shows(name));
    missed.sort_unstable();
    let (all, is, list) = match missed.as_slice() {
        [] => return None,
        [one] => ((*one).to_owned(), "is set for the user, but commands do not get it", format!("\"{one}\"")),
        more => (
            more.join(", "),
            "are set for the user, but commands do not get them",
            more.iter().map(|it| format!("\"{it}\"")).collect::<Vec<_>>().join(", "),
        ),
    };
    Some(format!("{all} {is}; the user can pass on more with `environment = [{list}]` in the user's config.toml"))
}

/// The proxy that the command's variables name, if it did not serve the command.
fn proxy(exit: i32, lower: &str, ctx: &Context) -> Option<String> {
    let named = ctx.environment.iter().find(|(name, value)| PROXIES.contains(&name.as_str()) && !value.is_empty());
    let (name, value) = named?;
    // The model needs no password that is in it.
    let address = value.split("://").last().unwrap_or(value);
    let host = address.rsplit('@').next().unwrap_or(address).trim_end_matches('/').to_lowercase();
    let (machine, port) = host.rsplit_once(':').unwrap_or((&host, ""));
    let names_it = lower.contains(machine)
        && (lower.contains(&format!("port {port}")) || lower.contains(&host) || lower.contains("resolve"));
    let failed = NO_PROXY_SERVED.iter().any(|sign| lower.contains(sign)) || (exit != 0 && names_it);
    failed.then(|| format!("commands use the proxy {host} of the variable {name}, which did not serve this one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Broken builds: a part of a longer name counts; a variable that the command sets counts; a success is taken for a failure.
    #[test]
    fn a_variable_that_commands_do_not_get_is_named_where_it_mattered() {
        let withheld = ["DATABASE_URL", "LD_LIBRARY_PATH", "AWS_PROFILE", "ID", "SSH_AUTH_SOCK"].map(str::to_owned);
        let missed = |command: &str, exit: i32, printed: &str| {
            let ran = Ran { command: command.to_owned(), folder: PathBuf::new() };
            variables(&ran, exit, printed, &printed.to_lowercase(), &withheld)
                .map(|note| note.split([' ', ',']).next().unwrap_or_default().to_owned())
        };
        for (command, exit, printed, wanted) in [
            ("psql $DATABASE_URL", 2, "", Some("DATABASE_URL")),
            ("printenv DATABASE_URL", 1, "", Some("DATABASE_URL")),
            ("echo \"${DATABASE_URL}\" | wc -c", 0, "1", Some("DATABASE_URL")),
            ("npm test", 1, "Error: DATABASE_URL is not set", Some("DATABASE_URL")),
            (
                "./a.out",
                127,
                "./a.out: error while loading shared libraries: libx.so.1: cannot open",
                Some("LD_LIBRARY_PATH"),
            ),
            ("aws s3 ls", 253, "Unable to locate credentials. You can configure", Some("AWS_PROFILE")),
            ("git push", 128, "git@github.com: Permission denied (publickey).", Some("SSH_AUTH_SOCK")),
            ("DATABASE_URL=x psql $DATABASE_URL", 2, "", None),
            ("export DATABASE_URL=x; psql", 2, "", None),
            ("cat MY_DATABASE_URL_NOTES", 1, "", None),
            ("npm test", 0, "DATABASE_URL is not set", None),
            ("echo $ID", 1, "", None),
        ] {
            assert_eq!(missed(command, exit, printed).as_deref(), wanted, "{command}");
        }
    }
}
