//! Settings from environment variables. No other file reads them.

use std::path::{Path, PathBuf};

use pixir_core::Environment;

/// Reads the variables, and finds the state and configuration folders by the XDG rules.
pub(super) fn read() -> Environment {
    let variables: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let mut environment = Environment { environment: variables, ..Environment::default() };
    let folder = |own: &str, xdg: &str, below_home: &str| {
        environment.variable(own).map(PathBuf::from).or_else(|| {
            let base = environment.variable(xdg).map(PathBuf::from);
            Some(base.or_else(|| Some(Path::new(environment.variable("HOME")?).join(below_home)))?.join("pixir"))
        })
    };
    // Without any of them it is empty, and what needs it fails: a folder that all users share is no place for keys.
    let home = folder("PIXIR_HOME", "XDG_STATE_HOME", ".local/state").unwrap_or_default();
    let home = if home.as_os_str().is_empty() { home } else { std::path::absolute(&home).unwrap_or(home) };
    let user_folder = folder("PIXIR_CONFIG_HOME", "XDG_CONFIG_HOME", ".config");
    environment.home = home;
    environment.user_folder = user_folder;
    environment.started_in = std::env::current_dir().ok();
    environment
}
