//! `pixir doctor`: what this machine gives, each line with its fix.

use std::fs::{self, File};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use pixir_core::config::Surroundings;
use pixir_core::credentials::Vault;
use pixir_core::error::Result;
use pixir_core::provider::choose::Providers;
use pixir_core::provider::preset::PRESETS;
use serde_json::json;

use crate::cli;
use crate::output::Output;
use crate::remedies;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grade {
    Pass,
    Warn,
    Fail,
}

struct Finding {
    name: &'static str,
    grade: Grade,
    says: String,
    fix: Option<String>,
}

fn pass(name: &'static str, says: impl Into<String>) -> Finding {
    Finding { name, grade: Grade::Pass, says: says.into(), fix: None }
}

fn warn(name: &'static str, says: impl Into<String>, fix: &str) -> Finding {
    Finding { name, grade: Grade::Warn, says: says.into(), fix: Some(fix.into()) }
}

fn fail(name: &'static str, says: impl Into<String>, fix: &str) -> Finding {
    Finding { name, grade: Grade::Fail, says: says.into(), fix: Some(fix.into()) }
}

/// Checks everything that can be checked without a network, and the Provider when asked to.
pub(crate) async fn run(around: &Surroundings, providers: Result<Providers>, online: bool, output: &Output) -> u8 {
    let mut findings = vec![pass(
        "version",
        format!("pixir {} ({} {})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH),
    )];
    findings.push(config(around));
    findings.push(credentials(around));
    match &providers {
        Ok(it) if it.provider == "demo" => findings.push(warn(
            "provider",
            format!("demo: {}", it.why),
            "pixir auth login PROVIDER, or start a local server, or give --base-url",
        )),
        Ok(it) => findings.push(pass(
            "provider",
            format!("{}/{} ({}; {})", it.provider, it.model, it.describe(&it.provider), it.why),
        )),
        Err(e) => findings.push(fail("provider", e.message.clone(), &remedies::word(&e.remedy))),
    }
    if let (true, Ok(it)) = (online, &providers) {
        findings.push(reachable(it).await);
    }
    findings.extend(state_folder(&around.home));
    findings.push(program("bash", "install bash: the bash tool needs it"));
    findings.push(warn(
        "sandbox",
        "none in this build: allowed commands run with your own rights",
        "keep --mode ask, and read what you allow",
    ));
    findings.extend(terminal(around));
    report(&findings, output)
}

fn config(around: &Surroundings) -> Finding {
    let Some(path) = cli::config_path(around) else {
        return warn("config", "no home folder is known, so no config.toml is read", "set HOME or PIXIR_CONFIG_HOME");
    };
    match cli::config(around) {
        Ok(_) if path.exists() => pass("config", path.display().to_string()),
        Ok(_) => pass("config", format!("{} is not there; defaults are used", path.display())),
        Err(e) => fail("config", e.message, &remedies::word(&e.remedy)),
    }
}

fn credentials(around: &Surroundings) -> Finding {
    let vault = Vault::new(around);
    let path = vault.path().display();
    if vault.is_open_to_others() {
        return warn("credentials", format!("others can read {path}"), &format!("chmod 600 {path}"));
    }
    let found = cli::config(around).and_then(|config| {
        let providers = Providers::configured(&config, around)?;
        let source = |name: &str| Some(providers.endpoint(name)?.credential()?.source().to_string());
        Ok(providers.names().filter_map(|name| Some(format!("{name} from {}", source(name)?))).collect::<Vec<_>>())
    });
    match found {
        Err(e) => fail("credentials", e.message, &remedies::word(&e.remedy)),
        Ok(found) if found.is_empty() => {
            let names: Vec<&str> = PRESETS.iter().filter_map(|it| it.key_variable).collect();
            let fix = "pixir auth login PROVIDER, or export one of them (a local server needs none)";
            warn("credentials", format!("no key is kept, and none of {} is set", names.join(", ")), fix)
        }
        Ok(found) => pass("credentials", found.join(", ")),
    }
}

async fn reachable(providers: &Providers) -> Finding {
    let name = &providers.provider;
    let Some(endpoint) = providers.endpoint(name) else {
        return pass("online", format!("{name} is built in"));
    };
    match endpoint.check(Duration::from_secs(10)).await {
        Ok(models) => pass("online", format!("{name} lists {models} models")),
        Err(e) => fail("online", e.message, &remedies::word(&e.remedy)),
    }
}

fn state_folder(home: &Path) -> Vec<Finding> {
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
                pass("lock", "a second writer is kept out")
            } else {
                fail(
                    "lock",
                    "this file system does not keep a second writer out",
                    "set PIXIR_HOME to a folder on a local disk",
                )
            });
            findings
        }
        Err(e) => vec![fail(
            "state",
            format!("{}: {e}", home.display()),
            "make it writable, or set PIXIR_HOME to a folder that is",
        )],
    }
}

fn program(name: &'static str, fix: &str) -> Finding {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    if found { pass(name, "found") } else { fail(name, "not found in PATH", fix) }
}

fn terminal(around: &Surroundings) -> Vec<Finding> {
    let term = around.variable("TERM").unwrap_or("(not set)");
    if !std::io::stdout().is_terminal() {
        return vec![pass("terminal", format!("stdout is not a terminal (TERM={term}); use --headless"))];
    }
    let mut findings = vec![if term == "dumb" {
        warn("terminal", "TERM=dumb", "use --headless, or a terminal with cursor movement")
    } else {
        pass("terminal", format!("TERM={term}"))
    }];
    let truecolor = around.variable("COLORTERM").is_some_and(|v| v == "truecolor" || v == "24bit");
    findings.push(if truecolor {
        pass("colour", "16 million colours")
    } else {
        warn(
            "colour",
            "COLORTERM does not promise 16 million colours; themes are shown in 256",
            "export COLORTERM=truecolor, if the terminal has them",
        )
    });
    if around.variable("TMUX").is_some() {
        findings.push(pass("tmux", "inside tmux; copying needs: set -g allow-passthrough on"));
    }
    findings
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
            .map(|f| json!({ "name": f.name, "status": name(f.grade), "message": f.says, "fix": f.fix }))
            .collect();
        output.document(&json!({ "schemaVersion": 1, "ok": !failed, "checks": checks }));
    } else {
        for f in findings {
            output.line(&format!("{}  {:<12} {}", name(f.grade), f.name, f.says));
            if let Some(fix) = &f.fix {
                output.line(&format!("      {:<12} fix: {fix}", ""));
            }
        }
    }
    if failed { 10 } else { 0 }
}
