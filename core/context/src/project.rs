//! What a project is made of and how it is built, judged by the files in its root. Nothing is run.

use std::io::Read as _;

use serde_json::Value;

use files::workspace::Workspace;
use text::encoding;

/// The most of a file that is read, bytes.
const MOST: u64 = 256 << 10;

/// A project, as far as its files tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Project {
    /// The languages, without duplicates.
    pub languages: Vec<&'static str>,
    /// The commands, in the order of their purpose.
    pub commands: Vec<FoundCommand>,
}

/// A command of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundCommand {
    pub purpose: Purpose,
    pub command: String,
    /// The file that tells of it.
    pub from: String,
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Build,
    Test,
    Lint,
    Format,
}

impl Purpose {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Purpose::Build => "Build",
            Purpose::Test => "Test",
            Purpose::Lint => "Lint",
            Purpose::Format => "Format",
        }
    }

    /// The purpose of a script or a target with this name.
    fn of(name: &str) -> Option<Purpose> {
        match name {
            "build" => Some(Purpose::Build),
            "test" | "check" => Some(Purpose::Test),
            "lint" | "typecheck" => Some(Purpose::Lint),
            "format" | "fmt" => Some(Purpose::Format),
            _ => None,
        }
    }
}

use Purpose::{Build, Format, Lint, Test};

/// A file that alone tells the commands of a project: its name, the language, the commands.
type ByFile = (&'static str, &'static str, &'static [(Purpose, &'static str)]);

const BY_FILE: [ByFile; 6] = [
    (
        "Cargo.toml",
        "Rust",
        &[(Build, "cargo build"), (Test, "cargo test"), (Lint, "cargo clippy"), (Format, "cargo fmt")],
    ),
    (
        "go.mod",
        "Go",
        &[(Build, "go build ./..."), (Test, "go test ./..."), (Lint, "go vet ./..."), (Format, "gofmt -w .")],
    ),
    ("pom.xml", "Java", &[(Build, "mvn compile"), (Test, "mvn test")]),
    ("build.gradle", "Java", &[(Build, "./gradlew assemble"), (Test, "./gradlew test")]),
    ("build.gradle.kts", "Kotlin", &[(Build, "./gradlew assemble"), (Test, "./gradlew test")]),
    ("mix.exs", "Elixir", &[(Build, "mix compile"), (Test, "mix test"), (Format, "mix format")]),
];
/// Files that tell a language and no command.
const LANGUAGES: [(&str, &str); 6] = [
    ("tsconfig.json", "TypeScript"),
    ("CMakeLists.txt", "C/C++"),
    ("meson.build", "C/C++"),
    ("Gemfile", "Ruby"),
    ("composer.json", "PHP"),
    ("Package.swift", "Swift"),
];
const PYTHON: [&str; 5] = ["pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"];

impl Project {
    /// Looks at the root of a workspace.
    pub(crate) fn of(workspace: &Workspace) -> Project {
        let mut project = Project::default();
        for (file, language, commands) in BY_FILE {
            if is_there(workspace, file) {
                project.speaks(language);
                commands.iter().for_each(|(purpose, command)| project.runs(*purpose, (*command).to_owned(), file));
            }
        }
        project.look_at_scripts(workspace);
        project.look_at_python(workspace);
        for (file, language) in LANGUAGES {
            if is_there(workspace, file) {
                project.speaks(language);
            }
        }
        for (file, program) in [("Makefile", "make"), ("justfile", "just")] {
            let text = text(workspace, file).unwrap_or_default();
            for target in text.lines().filter_map(target) {
                if let Some(purpose) = Purpose::of(target) {
                    project.runs(purpose, format!("{program} {target}"), file);
                }
            }
        }
        project.commands.sort_by_key(|it| it.purpose);
        project
    }

    /// The commands for a purpose, joined with commas.
    pub(crate) fn commands_for(&self, purpose: Purpose) -> String {
        let commands = self.commands.iter().filter(|it| it.purpose == purpose);
        commands.map(|it| it.command.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn speaks(&mut self, language: &'static str) {
        if !self.languages.contains(&language) {
            self.languages.push(language);
        }
    }

    fn runs(&mut self, purpose: Purpose, command: String, from: &str) {
        if !self.commands.iter().any(|it| it.command == command) {
            self.commands.push(FoundCommand { purpose, command, from: from.to_owned() });
        }
    }

    fn look_at_scripts(&mut self, workspace: &Workspace) {
        const FILE: &str = "package.json";
        let Some(text) = text(workspace, FILE) else { return };
        self.speaks(if is_there(workspace, "tsconfig.json") { "TypeScript" } else { "JavaScript" });
        let locks = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
        let manager = locks.into_iter().find(|(lock, _)| is_there(workspace, lock)).map_or("npm", |(_, name)| name);
        let package: Value = serde_json::from_str(&text).unwrap_or_default();
        for name in ["build", "test", "check", "lint", "typecheck", "format", "fmt"] {
            let (true, Some(purpose)) = (package["scripts"][name].is_string(), Purpose::of(name)) else { continue };
            let command = if name == "test" { format!("{manager} test") } else { format!("{manager} run {name}") };
            self.runs(purpose, command, FILE);
        }
    }

    fn look_at_python(&mut self, workspace: &Workspace) {
        let Some(file) = PYTHON.into_iter().find(|file| is_there(workspace, file)) else { return };
        self.speaks("Python");
        let settings = text(workspace, "pyproject.toml").unwrap_or_default();
        let prefix = if is_there(workspace, "uv.lock") { "uv run " } else { "" };
        let mut found = |purpose, command: &str, from: &str| self.runs(purpose, format!("{prefix}{command}"), from);
        let has_pytest = settings.contains("pytest") || is_there(workspace, "pytest.ini");
        let has_tests = workspace.locate("tests").is_ok_and(|at| workspace.is_folder(&at).unwrap_or(false));
        if has_pytest || has_tests || file == "pyproject.toml" {
            found(Test, "pytest", file);
        }
        if settings.contains("[tool.ruff") || is_there(workspace, "ruff.toml") {
            found(Lint, "ruff check", "pyproject.toml");
            found(Format, "ruff format", "pyproject.toml");
        }
        if settings.contains("[tool.mypy") || is_there(workspace, "mypy.ini") {
            found(Lint, "mypy .", "pyproject.toml");
        }
        if settings.contains("[tool.black") {
            found(Format, "black .", "pyproject.toml");
        }
    }
}

/// The name of the target or recipe that begins on this line.
fn target(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    // `:=` assigns a variable.
    (is_name(name) && !rest.starts_with('=')).then_some(name)
}

pub(crate) fn is_there(workspace: &Workspace, file: &str) -> bool {
    workspace.locate(file).is_ok_and(|at| workspace.is_file(&at))
}

/// The beginning of a file of the workspace.
pub(crate) fn text(workspace: &Workspace, file: &str) -> Option<String> {
    let (file, ..) = workspace.open_file(&workspace.locate(file).ok()?).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(encoding::legible(&bytes).0.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Project {
        let temp = tempfile::tempdir().expect("a folder");
        files.iter().for_each(|(name, text)| std::fs::write(temp.path().join(name), text).expect("write"));
        Project::of(&Workspace::open(temp.path()).expect("a workspace"))
    }

    #[test]
    fn the_commands_are_those_that_the_files_name() {
        let package = r#"{"scripts":{"test":"vitest","lint":"eslint .","deploy":"x"}}"#;
        let project = of(&[("package.json", package), ("yarn.lock", ""), ("tsconfig.json", "{}")]);
        assert_eq!(project.languages, ["TypeScript"]);
        assert_eq!(
            (project.commands_for(Test), project.commands_for(Lint)),
            ("yarn test".into(), "yarn run lint".into())
        );
        // Without a script `npm test` only fails.
        assert_eq!(of(&[("package.json", "{}")]).commands_for(Test), "");
        let makefile = "CC := gcc\n.PHONY: test\ntest: build\n\t./run\nlint:\n\tx\n";
        assert_eq!(of(&[("Makefile", makefile)]).commands_for(Test), "make test");
        let project = of(&[("pyproject.toml", "[tool.ruff]\n"), ("uv.lock", ""), ("Cargo.toml", "")]);
        assert_eq!(project.languages, ["Rust", "Python"]);
        assert_eq!(project.commands_for(Test), "cargo test, uv run pytest");
        assert_eq!(of(&[("README.md", "cargo test")]), Project::default());
    }
}
