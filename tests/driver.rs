//! A whole pixir: a scripted model, real tools on real files, keys, a screen.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use pixir_core::event::{AssistantMessage, Mode, SessionId, SessionStarted, UserMessage};
use pixir_core::layers::{Layer, Settings};
use pixir_core::log::Log;
use pixir_core::provider::Providers;
use pixir_core::provider::script::{Script, Scripted, Step};
use pixir_core::{Environment, Harness, Options, SessionDefaults};
use pixir_ui::script::Driver;
use pixir_ui::{ComposerKeys, ComposerOptions, Launch, LookOptions, SavePlace, ScreenOptions, SettingsStore};
use tempfile::TempDir;

/// An answer without a call.
pub(crate) fn says(text: &str) -> Step {
    Step { text: text.to_owned(), ..Step::default() }
}

/// An answer that calls one tool.
pub(crate) fn calls(name: &str, args: serde_json::Value) -> Step {
    also_calls(Step::default(), name, args)
}

/// The same answer with one more call.
pub(crate) fn also_calls(mut step: Step, name: &str, args: serde_json::Value) -> Step {
    step.calls.push(pixir_core::provider::script::ScriptedCall { name: name.to_owned(), args });
    step
}

/// A pixir in a folder of its own.
pub(crate) struct Pixir {
    pub(crate) screen: Driver,
    folder: TempDir,
}

impl Pixir {
    /// In `ask` mode, at 80x24, with these files in its workspace.
    pub(crate) fn new(steps: Vec<Step>, files: &[(&str, &str)]) -> Pixir {
        Pixir::sized(steps, files, 80, 24)
    }

    pub(crate) fn sized(steps: Vec<Step>, files: &[(&str, &str)], columns: u16, rows: u16) -> Pixir {
        Pixir::scripted(Script { steps, ..Script::default() }, files, columns, rows)
    }

    pub(crate) fn scripted(script: Script, files: &[(&str, &str)], columns: u16, rows: u16) -> Pixir {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("app");
        fs::create_dir_all(&workspace).expect("mkdir");
        for (name, text) in files {
            let path = workspace.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        }
        let screen = Driver::new(launch(&folder, script), columns, rows).expect("the theme is there");
        Pixir { screen, folder }
    }

    /// The same, with a workflow of the user.
    pub(crate) fn with_workflow(script: Script, name: &str, text: &str, columns: u16, rows: u16) -> Pixir {
        let folder = tempfile::tempdir().expect("a folder");
        let workflows = folder.path().join("user/workflows");
        fs::create_dir_all(folder.path().join("app")).expect("mkdir");
        fs::create_dir_all(&workflows).expect("mkdir");
        fs::write(workflows.join(format!("{name}.toml")), text).expect("write");
        let screen = Driver::new(launch(&folder, script), columns, rows).expect("the theme is there");
        Pixir { screen, folder }
    }

    /// Reopens the latest Session in the same home and workspace, with a new script.
    pub(crate) async fn again(self, steps: Vec<Step>) -> Pixir {
        self.again_after(|_| (), steps).await
    }

    /// The same, after a change to the Log.
    pub(crate) async fn again_after(self, change: impl FnOnce(&std::path::Path), steps: Vec<Step>) -> Pixir {
        let log = self.log_path();
        self.screen.close().await.expect("a session was open");
        change(&log);
        let mut launch = launch(&self.folder, Script { steps, ..Script::default() });
        launch.open = Box::new(|harness| harness.resume(&harness.latest()?));
        Pixir { screen: Driver::new(launch, 80, 24).expect("the theme is there"), folder: self.folder }
    }

    /// Resumes an existing Session; `write` puts its Log into the folder.
    pub(crate) fn resumed(columns: u16, rows: u16, write: impl FnOnce(&std::path::Path, &std::path::Path)) -> Pixir {
        Pixir::resumed_with(Script::default(), columns, rows, write)
    }

    /// The same, with a script for the Turns that follow.
    pub(crate) fn resumed_with(
        script: Script,
        columns: u16,
        rows: u16,
        write: impl FnOnce(&std::path::Path, &std::path::Path),
    ) -> Pixir {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = folder.path().join("app");
        fs::create_dir_all(&workspace).expect("mkdir");
        let workspace = workspace.canonicalize().expect("it is there");
        let store = pixir_core::store::Store::new(&folder.path().join("home"));
        write(&store.folder_of(&workspace), &workspace);
        let mut launch = launch(&folder, script);
        launch.open = Box::new(|harness| harness.resume(&harness.latest()?));
        Pixir { screen: Driver::new(launch, columns, rows).expect("the theme is there"), folder }
    }

    /// The same home and workspace, with a new session and a new script.
    pub(crate) async fn anew(self, steps: Vec<Step>) -> Pixir {
        self.screen.close().await.expect("a session was open");
        let launch = launch(&self.folder, Script { steps, ..Script::default() });
        Pixir { screen: Driver::new(launch, 100, 30).expect("the theme is there"), folder: self.folder }
    }

    /// The whole interface with configured keys.
    pub(crate) fn with_keys(steps: Vec<Step>, keys: &[(&str, &[&str])]) -> pixir_core::Result<Pixir> {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("app")).expect("mkdir");
        let mut launch = launch(&folder, Script { steps, ..Script::default() });
        let list = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        launch.keys = keys.iter().map(|(verb, keys)| ((*verb).to_owned(), list(keys))).collect();
        Ok(Pixir { screen: Driver::new(launch, 80, 24)?, folder })
    }

    /// The whole interface with vim keys in the composer.
    pub(crate) fn with_vim(steps: Vec<Step>) -> Pixir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("app")).expect("mkdir");
        let mut launch = launch(&folder, Script { steps, ..Script::default() });
        launch.composer.keys = ComposerKeys::Vim;
        Pixir { screen: Driver::new(launch, 80, 24).expect("the theme is there"), folder }
    }

    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| format!("({e})"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("app").join(name)
    }

    /// Presses keys, then waits until the interface is idle.
    pub(crate) async fn does(&mut self, keys: &str) -> String {
        self.screen.until_idle().await;
        self.screen.keys(keys).await;
        self.screen.until_idle().await;
        without_estimate(&self.screen.screen())
    }

    /// The user's configuration file.
    pub(crate) fn settings(&self) -> String {
        fs::read_to_string(self.folder.path().join("config.toml")).unwrap_or_default()
    }

    fn log_path(&self) -> PathBuf {
        let id = self.screen.session().expect("a session is open").to_string();
        let logs = self.folder.path().join("home/sessions");
        let folders = fs::read_dir(logs).expect("there are logs");
        folders
            .map(|f| f.expect("an entry").path().join(format!("{id}.ndjson")))
            .find(|p| p.exists())
            .expect("the log is there")
    }

    /// The lines of the only Session's Log, as JSON.
    pub(crate) fn log(&self) -> Vec<serde_json::Value> {
        fs::read_to_string(self.log_path())
            .expect("read")
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect()
    }

    /// The kinds of the Log's entries.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.log().iter().map(|entry| entry["type"].as_str().expect("a kind").to_owned()).collect()
    }
}

/// A Log with its first Entry, as another process leaves it.
pub(crate) fn log_of(folder: &std::path::Path, workspace: &std::path::Path) -> Log {
    let id = SessionId::now();
    let mut log = Log::create(&folder.join(format!("{id}.ndjson")), id).expect("a log");
    let workspace = workspace.display().to_string();
    let started =
        SessionStarted { workspace, model: "m".into(), provider: "script".into(), ..SessionStarted::default() };
    log.append(None, started.into()).expect("append");
    log
}

/// A prompt and its answer.
pub(crate) fn say(log: &mut Log, turn: u32, question: &str, told: &str) {
    let said = UserMessage { text: question.into(), ..UserMessage::default() };
    log.append(Some(turn), said.into()).expect("append");
    let told = AssistantMessage { text: told.into(), partial: false, phase: None };
    log.append(Some(turn), told.into()).expect("append");
}

/// The screen without the digits of the token estimate, which includes the duration that the model reads.
fn without_estimate(screen: &str) -> String {
    let Some((before, after)) = screen.rsplit_once('~') else { return screen.to_owned() };
    let digits = after.chars().take_while(|c| c.is_ascii_digit() || *c == '.').count();
    if !after[digits..].trim_start_matches('k').starts_with(" tokens") {
        return screen.to_owned();
    }
    format!("{before}~{}{}", "N".repeat(digits), &after[digits..])
}

/// Settings of which only the user's file is there.
struct Files(PathBuf);

impl SettingsStore for Files {
    fn read(&self) -> pixir_core::Result<Settings> {
        let table = pixir_core::Config::load(&self.0)?;
        let from = self.0.display().to_string();
        Settings::merge(&[Layer { source: pixir_core::layers::Source::User, from, table }])
    }

    fn save(&self, key: &str, value: &str, _: SavePlace) -> pixir_core::Result<PathBuf> {
        pixir_core::edit::Change::of(&self.0, key, value)?.write()?;
        Ok(self.0.clone())
    }

    fn unset(&self, key: &str, _: SavePlace) -> pixir_core::Result<PathBuf> {
        pixir_core::edit::Change::without(&self.0, key)?.write()?;
        Ok(self.0.clone())
    }
}

fn launch(folder: &TempDir, script: Script) -> Launch {
    let workspace = folder.path().join("app");
    let environment = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    let user_folder = Some(folder.path().join("user")).filter(|it| it.exists());
    let around = Environment { home: folder.path().join("home"), user_folder, environment, ..Environment::default() };
    let providers = Providers::only("script", "test-model", Arc::new(Scripted::new(script)));
    let options = Options { can_ask: true, ..Options::default() };
    pixir_core::launch_through(env!("CARGO_BIN_EXE_pixir").as_ref());
    let harness = Harness::new(
        &workspace,
        &around,
        Arc::new(providers),
        options,
        SessionDefaults { mode: Mode::Ask, ..SessionDefaults::default() },
    );
    Launch {
        workspace,
        look: LookOptions {
            theme: "dark".into(),
            themes_folder: None,
            depth: pixir_ui::theme::Depth::True,
            background: pixir_ui::theme::Background::Dark,
            notifications: true,
            motion: pixir_ui::Motion::Full,
        },
        screen: ScreenOptions::default(),
        composer: ComposerOptions { keys: ComposerKeys::Standard, editor: "true".into() },
        keys: std::collections::BTreeMap::new(),
        clipboards: pixir_ui::Clipboards::default(),
        start: pixir_ui::Start::default(),
        settings: Arc::new(Files(folder.path().join("config.toml"))),
        connector: None,
        demo: pixir_ui::Demo::default(),
        connect: Arc::new(move || {
            let harness = harness.clone();
            Box::pin(async move { harness })
        }),
        open: Box::new(Harness::start),
        program: pixir_ui::Program::default(),
    }
}

/// The line without the duration of a Turn, if it ends one. Its rule then has one character.
pub(crate) fn timeless_footer(line: &str) -> String {
    let has_rule = line.contains(" ──") || line.contains("m ─") || line.contains("m──");
    let Some(at) = line.find(" call").filter(|_| has_rule && !line.contains('╭')) else {
        return line.to_owned();
    };
    let begin = line[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    let mut rest = line[begin..].to_owned();
    while rest.contains("──") {
        rest = rest.replace("──", "─");
    }
    rest
}

/// The screen with durations replaced by blanks of the same width.
pub(crate) fn timeless(screen: &str) -> String {
    let mut shown = String::new();
    for line in screen.lines() {
        let line = &timeless_footer(line);
        let mut kept = Vec::new();
        for word in line.split(' ') {
            let digits = word.trim_end_matches("ms").trim_end_matches('s');
            let is_time =
                word.ends_with(['s']) && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            // A call that took no time shows no duration.
            kept.push(if is_time { " ".repeat(word.len()) } else { word.to_owned() });
        }
        shown.push_str(kept.join(" ").trim_end());
        shown.push('\n');
    }
    shown
}

pub(crate) fn long_conversation(turns: u32) -> Pixir {
    Pixir::resumed(80, 24, |folder, workspace| {
        let mut log = log_of(folder, workspace);
        for n in 1..=turns {
            say(&mut log, n, &format!("question {n}"), &format!("The answer to {n}. It is long. ").repeat(8));
        }
        log.establish().expect("establish");
    })
}
