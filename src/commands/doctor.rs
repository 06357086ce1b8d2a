//! `pixir doctor`: check this machine; each finding has a fix.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use pixir_core::credentials::Vault;
use pixir_core::provider::{PRESETS, Providers};
use pixir_core::{Code, Result, Tier, working_tier};
#[cfg(target_os = "linux")]
use pixir_core::{Lack, lacks};
use pixir_ui::Check;
use serde_json::json;

use crate::cli::{Cli, block_on};
use crate::output::{Output, exit_code};
use crate::remedies;

mod network; // proxies, certificates and the clock
mod terminal; // what the terminal announces and answers

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also ask the selected provider for its models
    #[arg(long)]
    online: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Pass,
    Warn,
    Fail,
}

struct Finding {
    name: &'static str,
    grade: Grade,
    message: String,
    fix: Option<String>,
}

fn pass(name: &'static str, message: impl Into<String>) -> Finding {
    Finding { name, grade: Grade::Pass, message: message.into(), fix: None }
}

fn warn(name: &'static str, message: impl Into<String>, fix: &str) -> Finding {
    Finding { name, grade: Grade::Warn, message: message.into(), fix: Some(fix.into()) }
}

fn fail(name: &'static str, message: impl Into<String>, fix: &str) -> Finding {
    Finding { name, grade: Grade::Fail, message: message.into(), fix: Some(fix.into()) }
}

pub(super) fn run(cli: &Cli, args: &DoctorArgs) -> Result<u8> {
    block_on(async {
        let mut findings = examine(cli, args).await;
        findings.extend(terminal::answered(cli));
        Ok(report(&findings, &cli.output))
    })
}

/// The same checks for the interface.
pub(crate) async fn checks(cli: &Cli) -> Vec<Check> {
    let findings = examine(cli, &DoctorArgs { online: false }).await;
    let check = |it: Finding| Check {
        name: it.name.to_owned(),
        grade: match it.grade {
            Grade::Pass => pixir_ui::Grade::Pass,
            Grade::Warn => pixir_ui::Grade::Warn,
            Grade::Fail => pixir_ui::Grade::Fail,
        },
        message: it.message,
        fix: it.fix,
    };
    findings.into_iter().map(check).collect()
}

async fn examine(cli: &Cli, args: &DoctorArgs) -> Vec<Finding> {
    let providers = cli.providers().await;
    let mut findings = vec![pass(
        "version",
        format!("pixir {} ({} {})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH),
    )];
    findings.push(config(cli));
    findings.push(credentials(cli, providers.as_ref().ok()));
    match &providers {
        Ok(it) if it.provider == "demo" => findings.push(warn(
            "provider",
            format!("demo: {}", it.why),
            "run pixir auth login PROVIDER, start a local server, or pass --base-url",
        )),
        Ok(it) => findings.push(pass(
            "provider",
            format!("{}/{} ({}; {})", it.provider, it.model, it.describe(&it.provider), it.why),
        )),
        Err(e) => findings.push(fail("provider", e.message.clone(), &remedies::word(&e.remedy))),
    }
    findings.extend(network::findings());
    if let (true, Ok(it)) = (args.online, &providers) {
        findings.push(reachable(it).await);
    }
    findings.extend(state_folder(&cli.environment.home));
    findings.push(program("bash", "install bash: the bash tool needs it"));
    let sandbox = sandbox(cli);
    #[cfg(target_os = "linux")]
    let gaps = if sandbox.message.starts_with(Tier::Namespaces.name()) { gaps(cli) } else { Vec::new() };
    #[cfg(not(target_os = "linux"))]
    let gaps = Vec::new();
    findings.push(sandbox);
    findings.extend(gaps);
    findings.extend(terminal::announced(cli));
    findings
}

fn sandbox(cli: &Cli) -> Finding {
    let tier = cli.sandbox(&cli.config().unwrap_or_default()).map(|wish| working_tier(wish, &cli.environment.home));
    match tier {
        Ok(Tier::Namespaces) => pass(
            "sandbox",
            "ns (namespaces): commands see the workspace, the system and toolchains, and have no network",
        ),
        Ok(Tier::Landlock) => warn(
            "sandbox",
            "ll (Landlock and seccomp): commands are confined, but see other processes, can change modes and times of your other files, only read the caches of toolchains, and have no loopback network",
            "allow user namespaces on this machine for the stronger one, ns",
        ),
        Ok(Tier::None) => warn(
            "sandbox",
            "none works here: pixir asks before it runs any command",
            "use a kernel with user namespaces or Landlock (5.13 and later); containers often switch them off",
        ),
        Err(e) => fail("sandbox", e.message, &remedies::word(&e.remedy)),
    }
}

/// What the strongest sandbox does not do on this machine.
#[cfg(target_os = "linux")]
fn gaps(cli: &Cli) -> Vec<Finding> {
    let finding = |it: Lack| match it {
        Lack::Covers => warn(
            "caches",
            "the file system of the state folder takes no covers: what a command writes to the caches of toolchains ends with it, or asks",
            "set PIXIR_HOME to a folder on ext4, xfs or btrfs, with Linux 5.11 or later",
        ),
        Lack::Sockets => warn(
            "sockets",
            "the kernel lists no sockets: commands reach those that programs of this machine have opened in the workspace",
            "use a kernel with CONFIG_UNIX_DIAG",
        ),
    };
    lacks(&cli.environment.home).into_iter().map(finding).collect()
}

fn config(cli: &Cli) -> Finding {
    let Some(path) = cli.config_path() else {
        return warn(
            "config",
            "there is no home folder, so pixir reads no config.toml",
            "set HOME or PIXIR_CONFIG_HOME",
        );
    };
    match cli.config() {
        Ok(_) if path.exists() => pass("config", path.display().to_string()),
        Ok(_) => pass("config", format!("{} does not exist; pixir uses its defaults", path.display())),
        Err(e) => fail("config", e.message, &remedies::word(&e.remedy)),
    }
}

fn credentials(cli: &Cli, selected: Option<&Providers>) -> Finding {
    let vault = Vault::new(&cli.environment);
    let path = vault.path().display();
    if vault.is_open_to_others() {
        return warn("credentials", format!("other users can read {path}"), &format!("chmod 600 {path}"));
    }
    let sources = cli.config().and_then(|config| {
        let providers = Providers::configured(&config, &cli.environment)?;
        let source = |name: &str| Some(providers.endpoint(name)?.credential()?.source().to_string());
        Ok(providers.names().filter_map(|name| Some(format!("{name} from {}", source(name)?))).collect::<Vec<_>>())
    });
    match sources {
        Err(e) => fail("credentials", e.message, &remedies::word(&e.remedy)),
        Ok(sources)
            if sources.is_empty()
                && let Some(it) = selected.filter(|it| it.provider != "demo") =>
        {
            pass("credentials", format!("no key is stored, and {} answers without one", it.provider))
        }
        Ok(sources) if sources.is_empty() => {
            let names: Vec<&str> = PRESETS.iter().filter_map(|it| it.key_variable).collect();
            let fix = "run pixir auth login PROVIDER, or export one of these variables (a local server needs none)";
            warn("credentials", format!("no key is stored, and none of {} is set", names.join(", ")), fix)
        }
        Ok(sources) => pass("credentials", sources.join(", ")),
    }
}

async fn reachable(providers: &Providers) -> Finding {
    let name = &providers.provider;
    let Some(endpoint) = providers.endpoint(name) else {
        return pass("online", format!("{name} is built in"));
    };
    match endpoint.check(Duration::from_secs(10)).await {
        Ok(models) => pass("online", format!("{name} lists {} models", models.len())),
        Err(e) => fail("online", e.message, &remedies::word(&e.remedy)),
    }
}

fn state_folder(home: &Path) -> Vec<Finding> {
    if home.as_os_str().is_empty() {
        let fix = "export PIXIR_HOME=/path/to/a/folder/of/your/own";
        return vec![fail("state", "HOME, XDG_STATE_HOME and PIXIR_HOME are not set", fix)];
    }
    let probe = || -> std::io::Result<(Duration, bool)> {
        fs::create_dir_all(home)?;
        let path = home.join(format!(".doctor-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.write_all(b"probe")?;
        let began = Instant::now();
        file.sync_data()?;
        let took = began.elapsed();
        file.try_lock().map_err(std::io::Error::from)?;
        let second = File::open(&path)?.try_lock().is_err();
        fs::remove_file(&path)?;
        Ok((took, second))
    };
    match probe() {
        Ok((took, excludes)) => {
            let mut findings = vec![pass(
                "state",
                format!("{} is writable; one sync took {:.2} ms", home.display(), took.as_secs_f64() * 1e3),
            )];
            findings.push(if excludes {
                pass("lock", "file locks keep out a second writer")
            } else {
                fail(
                    "lock",
                    "file locks do not keep out a second writer on this file system",
                    "set PIXIR_HOME to a folder on a local disk",
                )
            });
            findings
        }
        Err(e) => vec![fail(
            "state",
            format!("{}: {e}", home.display()),
            "make it writable, or set PIXIR_HOME to a writable folder",
        )],
    }
}

fn program(name: &'static str, fix: &str) -> Finding {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if found { pass(name, "found") } else { fail(name, "not found in PATH", fix) }
}

fn report(findings: &[Finding], output: &Output) -> u8 {
    let failed = findings.iter().any(|f| f.grade == Grade::Fail);
    let name = |grade| match grade {
        Grade::Pass => "pass",
        Grade::Warn => "warn",
        Grade::Fail => "fail",
    };
    if output.is_json() {
        let checks: Vec<_> = findings
            .iter()
            .map(|f| json!({ "name": f.name, "status": name(f.grade), "message": f.message, "fix": f.fix }))
            .collect();
        output.document(json!({ "ok": !failed, "checks": checks }));
    } else {
        for f in findings {
            output.line(&format!("{}  {:<12} {}", name(f.grade), f.name, f.message));
            if let Some(fix) = &f.fix {
                output.line(&format!("      {:<12} fix: {fix}", ""));
            }
        }
    }
    if failed { exit_code(Code::ConfigInvalid) } else { 0 }
}
