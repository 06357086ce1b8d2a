//! Who may know whom: checked, so that it stays true.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            all.push((path, text));
        }
    }
    all
}

/// The part of a source that ships.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn the_core_has_no_terminal_no_argument_parser_and_no_theme() {
    let manifest = fs::read_to_string(root().join("core/Cargo.toml")).expect("a manifest");
    for crate_name in ["ratatui", "crossterm", "clap", "syntect", "tui-textarea", "pixir-ui"] {
        assert!(!manifest.contains(crate_name), "core depends on {crate_name}");
    }
}

#[test]
fn the_core_never_prints_and_never_looks_at_the_environment() {
    for (path, text) in sources(&root().join("core/src")) {
        // It is only there for tests.
        if path.ends_with("faults.rs") {
            continue;
        }
        for forbidden in [
            "println!",
            "eprintln!",
            "env::var",
            "env::args",
            "env::current_dir",
            "io::stdout",
            "io::stderr",
            "static mut",
            "OnceLock<Self>",
        ] {
            assert!(!shipped(&text).contains(forbidden), "{} uses {forbidden}", path.display());
        }
    }
}

#[test]
fn the_interface_never_writes_logs_runs_tools_or_builds_requests() {
    for (path, text) in sources(&root().join("ui/src")) {
        for forbidden in [
            "pixir_core::log",
            "pixir_core::prompt",
            "pixir_core::permissions",
            "pixir_core::workspace",
            "::executor",
            "tools::Registry",
            "provider::Request",
            "fs::write",
            "Command::new",
        ] {
            // A clipboard is reached through programs, and an editor is one; nothing else is started here.
            let starts_one = path.ends_with("clipboard.rs") || path.ends_with("editor.rs");
            assert!(
                (starts_one && forbidden == "Command::new") || !shipped(&text).contains(forbidden),
                "{} uses {forbidden}",
                path.display()
            );
        }
    }
}

#[test]
fn lower_rooms_of_the_core_do_not_know_the_higher_ones() {
    let floors: [&[&str]; 4] = [
        &["error", "event", "input"],
        &["blobs", "config", "present", "process", "workspace", "log", "store"],
        &["history", "tree", "changes", "compaction", "restore", "skills"],
        &["turn", "session", "harness", "archive", "diagnose", "inspect"],
    ];
    for (height, floor) in floors.iter().enumerate() {
        let above: Vec<&str> = floors[height + 1..].iter().flat_map(|f| f.iter().copied()).collect();
        for room in *floor {
            let text = fs::read_to_string(root().join(format!("core/src/{room}.rs"))).expect("a room is a file");
            for higher in &above {
                assert!(!shipped(&text).contains(&format!("crate::{higher}::")), "{room} knows {higher}");
            }
        }
    }
}

#[test]
fn every_room_has_its_line_in_the_architecture_document() {
    let document = fs::read_to_string(root().join("docs/architecture.md")).expect("docs/architecture.md");
    for door in ["core/src/lib.rs", "ui/src/lib.rs"] {
        let text = fs::read_to_string(root().join(door)).expect("a door");
        for line in text.lines().filter_map(|l| l.strip_prefix("pub mod ").or_else(|| l.strip_prefix("mod "))) {
            let room = line.split(';').next().expect("a name");
            assert!(
                document.contains(&format!("`{room}`")),
                "docs/architecture.md does not say what {door}'s `{room}` is"
            );
        }
    }
}

#[test]
fn no_file_hides_a_warning_without_a_reason() {
    for folder in ["src", "core/src", "ui/src", "tests"] {
        for (path, text) in sources(&root().join(folder)) {
            if path.ends_with("architecture.rs") {
                continue;
            }
            assert!(!text.contains("#[allow"), "{} uses #[allow]", path.display());
            assert!(!text.contains("thread::sleep") || path.ends_with("process.rs"), "{} sleeps", path.display());
            // A test waits for a state, by the functions of `tests/wait.rs`.
            let is_test = folder == "tests" && !path.ends_with("wait.rs");
            assert!(!is_test || !text.contains("park_timeout"), "{} waits blindly", path.display());
        }
    }
}
