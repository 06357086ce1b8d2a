//! Settings by their sources: the user's file, the project's, the environment, the command line.

use std::path::PathBuf;

use pixir_core::layers::{Layer, Settings, Source};
use pixir_core::{Code, Config, Error, NotRead, ProjectFile, Remedy, Result, catalogue, edit, project_config};

use super::Cli;

impl Cli {
    /// The user's configuration file, whether or not it exists.
    pub(crate) fn config_path(&self) -> Option<PathBuf> {
        self.environment.user_folder.as_ref().map(|folder| folder.join("config.toml"))
    }

    /// The same, where something is to be written.
    pub(crate) fn user_config(&self) -> Result<PathBuf> {
        self.config_path().ok_or_else(|| {
            let message = "there is no home folder, so there is no config.toml";
            Error::new(Code::ConfigInvalid, message, "set HOME or PIXIR_CONFIG_HOME")
        })
    }

    /// The settings in force, without the flags that a Session records: those of its model, its mode and the like.
    pub(crate) fn settings(&self) -> Result<Settings> {
        Settings::merge(&self.layers()?)
    }

    pub(crate) fn config(&self) -> Result<Config> {
        Ok(self.settings()?.config)
    }

    /// The settings of the user alone.
    pub(crate) fn own_config(&self) -> Result<Config> {
        let layers = self.user_layer()?.into_iter().chain(self.override_layers()?).chain(self.flag_layers()?);
        Ok(Settings::merge(&layers.collect::<Vec<_>>())?.config)
    }

    /// The settings in force with all flags, for a list of them.
    pub(crate) fn all_settings(&self) -> Result<Settings> {
        let mut layers = self.layers()?;
        layers.extend(self.session_flag_layers()?);
        Settings::merge(&layers)
    }

    /// The project's file. The workspace is not touched where the user trusts nothing of it.
    pub(crate) fn project_file(&self) -> Result<ProjectFile> {
        let absent = |_| Ok(ProjectFile::Absent);
        let read = |folder: PathBuf| ProjectFile::read(&folder, &self.store()?, self.options.trust_workspace);
        self.workspace().map_or_else(absent, read)
    }

    /// The path of the project's file, whether or not it exists.
    pub(crate) fn project_path(&self) -> Option<PathBuf> {
        let folder = self.workspace().ok()?;
        Some(project_config(&folder.canonicalize().unwrap_or(folder)))
    }

    /// Says that a project's file is not in force although the user trusted it before.
    pub(crate) fn note_changed_project(&self) {
        if let Ok(ProjectFile::NotRead(why @ (NotRead::Changed | NotRead::Unusable(_)))) = self.project_file() {
            self.output
                .aside(&format!("note: .pixir/config.toml is not in force: {why}; pixir trust --dry-run shows it"));
        }
    }

    /// What `--config` says about this key.
    pub(super) fn override_of(&self, key: &str) -> Option<String> {
        let layers = self.override_layers().ok()?;
        layers.iter().rev().find_map(|it| it.table.get(key)?.as_str().map(str::to_owned))
    }

    fn layers(&self) -> Result<Vec<Layer>> {
        let mut layers: Vec<Layer> = self.user_layer()?.into_iter().collect();
        if let (ProjectFile::Read(table), Some(path)) = (self.project_file()?, self.project_path()) {
            layers.push(Layer { source: Source::Project, from: path.display().to_string(), table });
        }
        for (variable, spec) in catalogue::settings().filter_map(|it| Some((it.variable?, it))) {
            if let Some(value) = self.environment.variable(variable) {
                let named = |e: Error| Error { message: format!("{variable}: {}", e.message), ..e };
                let table = edit::setting(spec.key, value).map_err(named)?;
                layers.push(Layer { source: Source::Environment, from: variable.to_owned(), table });
            }
        }
        layers.extend(self.override_layers()?);
        layers.extend(self.flag_layers()?);
        Ok(layers)
    }

    fn user_layer(&self) -> Result<Option<Layer>> {
        let Some(path) = self.config_path() else { return Ok(None) };
        let table = Config::load(&path)?;
        Ok(Some(Layer { source: Source::User, from: path.display().to_string(), table }))
    }

    fn override_layers(&self) -> Result<Vec<Layer>> {
        let layer = |text: &String| {
            let Some((key, value)) = text.split_once('=') else {
                let message = format!("`--config {}` has no value", text.escape_debug());
                return Err(Error::new(
                    Code::Usage,
                    message,
                    Remedy::flag("--config KEY=VALUE").and_text(", such as --config effort=high"),
                ));
            };
            let table = edit::setting(key.trim(), value.trim())?;
            Ok(Layer { source: Source::Override, from: format!("--config {}", key.trim()), table })
        };
        self.options.overrides.iter().map(layer).collect()
    }

    /// The flags that only set a setting.
    fn flag_layers(&self) -> Result<Vec<Layer>> {
        self.options.settings.given().map(|(flag, key, value)| layer_of_flag(&flag, key, value)).collect()
    }

    /// The flags that a Session records.
    fn session_flag_layers(&self) -> Result<Vec<Layer>> {
        let it = &self.options;
        let mode = if it.write { Some("auto") } else { it.mode.as_deref() };
        let flags = [
            ("--model", "model", it.model.as_deref()),
            ("--effort", "effort", it.effort.as_deref()),
            (if it.write { "--write" } else { "--mode" }, "mode", mode),
            ("--toolset", "toolset", it.toolset.as_deref()),
            ("--sandbox", "sandbox", it.sandbox.as_deref()),
            ("--theme", "theme", it.theme.as_deref()),
        ];
        let given = flags.into_iter().filter_map(|(flag, key, value)| Some((flag, key, value?)));
        given.map(|(flag, key, value)| layer_of_flag(flag, key, value)).collect()
    }
}

fn layer_of_flag(flag: &str, key: &str, value: &str) -> Result<Layer> {
    Ok(Layer { source: Source::Flag, from: flag.to_owned(), table: edit::setting(key, value)? })
}
