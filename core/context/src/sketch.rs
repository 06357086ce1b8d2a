//! A first AGENTS.md for a repository, sketched from its files without a model: the same files give the same text.

use std::collections::BTreeMap;

use crate::project::{FoundCommand, Project, is_there, text};
use files::walk;
use files::workspace::Workspace;
use protocol::error::{Code, Error, Result};
use text::clean::without_hidden;

/// The file that is sketched.
pub const FILE: &str = "AGENTS.md";
/// The most files that are counted for the layout.
const MOST_FILES: usize = 20_000;
/// The most folders that the layout names.
const MOST_FOLDERS: usize = 24;

/// Files that state conventions, with what they are about.
const CONVENTIONS: [(&str, &str); 16] = [
    (".editorconfig", "indentation and line ends"),
    ("rustfmt.toml", "formatting of Rust"),
    (".rustfmt.toml", "formatting of Rust"),
    ("clippy.toml", "lints of Rust"),
    ("rust-toolchain.toml", "the version of Rust"),
    (".prettierrc", "formatting of JavaScript"),
    (".eslintrc.json", "lints of JavaScript"),
    ("eslint.config.js", "lints of JavaScript"),
    ("biome.json", "formatting and lints of JavaScript"),
    ("tsconfig.json", "types of TypeScript"),
    ("ruff.toml", "lints of Python"),
    ("mypy.ini", "types of Python"),
    (".golangci.yml", "lints of Go"),
    (".clang-format", "formatting of C and C++"),
    (".pre-commit-config.yaml", "checks before a commit"),
    ("CONTRIBUTING.md", "how to contribute"),
];

/// A sketch of the file that tells agents how to work in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sketch {
    /// The path, relative to the workspace.
    pub path: &'static str,
    /// The text, Markdown.
    pub text: String,
}

/// Sketches the file for a workspace.
pub fn sketch(workspace: &Workspace) -> Sketch {
    let project = Project::of(workspace);
    let name = workspace.root().file_name().map_or_else(|| "this project".into(), |name| name.to_string_lossy());
    let mut text = format!("# {name}\n");
    if let Some(about) = about(workspace) {
        text.push_str(&format!("\n{about}\n"));
    }
    if !project.languages.is_empty() {
        text.push_str(&format!("\nWritten in {}.\n", project.languages.join(", ")));
    }
    text.push_str("\n## Commands\n\n");
    if project.commands.is_empty() {
        text.push_str("None were found. Say here how to build, test and lint.\n");
    }
    for FoundCommand { purpose, command, from } in &project.commands {
        text.push_str(&format!("- {}: `{command}` (from `{from}`)\n", purpose.name()));
    }
    let layout = layout(workspace);
    if !layout.is_empty() {
        text.push_str(&format!("\n## Layout\n\n{layout}"));
    }
    let conventions = conventions(workspace);
    if !conventions.is_empty() {
        text.push_str(&format!("\n## Conventions\n\n{conventions}"));
    }
    Sketch { path: FILE, text }
}

/// Writes a sketch, unless there is a file already.
///
/// # Errors
/// `CONFIRMATION_NEEDED` if there is one and `replaces` is not set; those of the path layer.
pub fn write(workspace: &Workspace, sketch: &Sketch, replaces: bool) -> Result<()> {
    let at = workspace.locate(sketch.path)?;
    if workspace.is_there(&at) && !replaces {
        let message = format!("{} exists already", sketch.path);
        let fix = "compare the file with the sketch, or allow that it is replaced";
        return Err(Error::new(Code::ConfirmationNeeded, message, fix).with("input", sketch.path));
    }
    workspace.replace(&at, sketch.text.as_bytes(), None).map(drop)
}

/// The prompt of `/init`: the model checks the sketch and writes the file with its tools, so that the write is gated and can
/// be undone like any other.
pub fn prompt(workspace: &Workspace) -> String {
    let Sketch { path, text } = sketch(workspace);
    let is_there = is_there(workspace, path);
    let task = if is_there {
        format!("Improve {path} of this repository: keep what it says and is still true, and add what is missing.")
    } else {
        format!("Write {path} for this repository.")
    };
    format!(
        "{task} It tells an agent that knows nothing of the repository how to work in it: commands to build, test and lint, \
         the layout, conventions that the code follows. Keep it short, check each command before you name it, and name \
         nothing that is not there. This sketch was made from file names:\n\n````markdown\n{text}````"
    )
}

/// The first paragraph of the README that is prose.
fn about(workspace: &Workspace) -> Option<String> {
    let readme =
        ["README.md", "README.rst", "README.txt", "README"].into_iter().find_map(|name| text(workspace, name))?;
    let paragraphs = readme.split("\n\n").map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_prose = |it: &String| it.len() > 20 && it.starts_with(|c: char| c.is_alphanumeric() || c == '`' || c == '*');
    let first = paragraphs.into_iter().find(is_prose)?;
    Some(without_hidden(&first).chars().take(300).collect())
}

/// Each folder in the root with the number of its files and their most frequent ending.
fn layout(workspace: &Workspace) -> String {
    let mut folders: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for entry in walk::walk(workspace.root()).flatten().take(MOST_FILES) {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(path) = entry.path().strip_prefix(workspace.root()) else { continue };
        let mut parts = path.components();
        let (Some(folder), Some(_)) = (parts.next(), parts.next()) else { continue };
        let ending = path.extension().map_or_else(String::new, |it| format!(".{}", it.to_string_lossy()));
        let folder = folder.as_os_str().to_string_lossy().into_owned();
        *folders.entry(folder).or_default().entry(ending).or_default() += 1;
    }
    let is_plain = |name: &str| !name.contains(|c: char| c.is_control() || c == '`');
    let lines = folders.iter().filter(|(name, _)| is_plain(name)).take(MOST_FOLDERS).map(|(name, endings)| {
        let files: usize = endings.values().sum();
        let (ending, _) =
            endings.iter().max_by_key(|(ending, count)| (**count, !ending.is_empty())).unwrap_or((name, &0));
        let mostly =
            if ending.is_empty() || !is_plain(ending) { String::new() } else { format!(", mostly `{ending}`") };
        let files = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
        format!("- `{name}/`: {files}{mostly}\n")
    });
    lines.collect()
}

fn conventions(workspace: &Workspace) -> String {
    let mut lines = String::new();
    for (file, about) in CONVENTIONS {
        if !is_there(workspace, file) {
            continue;
        }
        lines.push_str(&format!("- `{file}`: {about}"));
        let settings = text(workspace, file).unwrap_or_default();
        let wanted = ["indent_style", "indent_size", "max_width", "edition", "channel", "line-length", "\"strict\""];
        let found: Vec<String> = settings
            .lines()
            .map(str::trim)
            .filter(|line| wanted.iter().any(|key| line.starts_with(key)) && line.len() < 60 && !line.contains('`'))
            .map(|line| format!("`{}`", line.trim_end_matches(',')))
            .take(4)
            .collect();
        if !found.is_empty() {
            lines.push_str(&format!(" ({})", found.join(", ")));
        }
        lines.push('\n');
    }
    let workflows = workspace.locate(".github/workflows").and_then(|at| workspace.list_raw(&at)).unwrap_or_default();
    let mut names: Vec<String> = workflows.into_iter().map(|(name, _)| name).collect();
    names.retain(|name| (name.ends_with(".yml") || name.ends_with(".yaml")) && !name.contains('`'));
    names.sort();
    if !names.is_empty() {
        let names: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
        lines.push_str(&format!("- `.github/workflows/`: CI runs {}\n", names.join(", ")));
    }
    lines
}
