//! The allowed imports between rooms, checked against the real ones, and rules that hold for all sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms of a package from the top floor down. A room imports from lower floors only, so there are no cycles. Each room
/// of core is a crate, so that the compiler refuses every other import.
const CORE: &[&[&str]] = &[
    &["harness", "maintenance"],
    &["agents"],
    &["session"],
    &["turn"],
    &["run"],
    &["workflow"],
    &["mcp"],
    &["tools"],
    &["call"],
    &["door"],
    &["context"],
    &["provider"],
    &["conversation"],
    &["sandbox"],
    &["permissions", "process", "files", "net"],
    &["config"],
    &["storage"],
    &["task", "text"],
    &["protocol"],
];
const UI: &[&[&str]] = &[
    &["script"],
    &["app"],
    &["update", "view"],
    &["state"],
    &["overlay"],
    &["composer", "transcript"],
    &["render"],
    &["remedy"],
    &["input", "theme"],
    &["terminal"],
];

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
    all.sort();
    all
}

/// The part of a source that ships: without its test module and its comments.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The modules that `text` declares for tests only.
fn test_modules(text: &str) -> BTreeSet<String> {
    let declared = text.split("#[cfg(test)]\n").skip(1);
    let named = declared.filter_map(|rest| {
        let line = rest.lines().next()?.trim();
        let name = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("mod ")?;
        Some(name.split(';').next()?.to_owned()).filter(|name| line.contains(&format!("{name};")))
    });
    named.collect()
}

/// The lowercase names that stand directly after `prefix`, also in a list: `use crate::{a::B, c}` names `a` and `c`.
fn names_after(prefix: &str, text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in text.split(prefix).skip(1) {
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().split(',').collect(),
            None => vec![rest],
        };
        let lowercase = |name: &str| -> String {
            name.trim().chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
        };
        found.extend(names.into_iter().map(lowercase).filter(|name| !name.is_empty()));
    }
    found
}

/// Which rooms each room of a package imports, by the paths that begin with `crate::`.
fn imports(sources: &[(PathBuf, String)], package: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let only_tests: BTreeSet<String> = sources.iter().flat_map(|(_, text)| test_modules(text)).collect();
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources {
        let below = path.strip_prefix(package).expect("a source of the package");
        let parts: Vec<String> =
            below.iter().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned()).collect();
        if parts[0] == "lib" || parts.iter().any(|part| only_tests.contains(part)) {
            continue;
        }
        let imported = graph.entry(parts[0].clone()).or_default();
        for room in names_after("crate::", &shipped(text)) {
            if room != parts[0] {
                imported.insert(room);
            }
        }
    }
    graph
}

/// Every import that does not go down, every room without a floor, and every listed room that does not exist.
fn violations(floors: &[&[&str]], graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let floor = |room: &str| floors.iter().position(|rooms| rooms.contains(&room));
    let mut found = Vec::new();
    for (room, imported) in graph {
        let Some(own) = floor(room) else {
            found.push(format!("`{room}` stands on no floor"));
            continue;
        };
        for other in imported {
            match floor(other) {
                Some(its) if its > own => {}
                Some(_) => found.push(format!("`{room}` imports `{other}`, which is not below it")),
                None => found.push(format!("`{room}` imports `{other}`, which stands on no floor")),
            }
        }
    }
    let gone = floors.iter().flat_map(|rooms| rooms.iter()).filter(|room| !graph.contains_key(**room));
    found.extend(gone.map(|room| format!("`{room}` is on a floor, and there is no such room")));
    found
}

/// The graph as a table for the architecture document.
fn table(floors: &[&[&str]], graph: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = String::from("| room | imports |\n|---|---|\n");
    for room in floors.iter().flat_map(|rooms| rooms.iter()) {
        let imported: Vec<String> = graph[*room].iter().map(|it| format!("`{it}`")).collect();
        writeln!(text, "| `{room}` | {} |", imported.join(" ")).expect("a string takes everything");
    }
    text
}

/// Which rooms the crate of each room of core depends on, from the manifests. The compiler holds a crate to them.
fn crates_of_core() -> BTreeMap<String, BTreeSet<String>> {
    let rooms =
        fs::read_dir(root().join("core")).expect("core").flatten().filter(|it| it.path().join("Cargo.toml").is_file());
    let rooms: Vec<(String, String)> = rooms
        .map(|it| {
            let manifest = fs::read_to_string(it.path().join("Cargo.toml")).expect("a manifest");
            (it.file_name().to_string_lossy().into_owned(), manifest)
        })
        .collect();
    let names: BTreeSet<&str> = rooms.iter().map(|(room, _)| room.as_str()).collect();
    let needs = |manifest: &str| {
        let names_of_lines = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        names_of_lines.filter(|name| names.contains(name)).map(str::to_owned).collect()
    };
    rooms.iter().map(|(room, manifest)| (room.clone(), needs(manifest))).collect()
}

fn imports_of_ui() -> BTreeMap<String, BTreeSet<String>> {
    let folder = root().join("ui/src");
    imports(&sources(&folder), &folder)
}

#[test]
fn imports_go_down_only() {
    assert_eq!(violations(CORE, &crates_of_core()), [""; 0], "core");
    assert_eq!(violations(UI, &imports_of_ui()), [""; 0], "ui");
}

#[test]
fn a_cycle_an_unknown_room_and_a_missing_room_are_refused() {
    let source = |path: &str, text: &str| (PathBuf::from("/p").join(path), text.to_owned());
    let sources = [
        source("high.rs", "use crate::low::Thing;\n#[cfg(test)]\nmod tests {\n    use crate::attic;\n}\n"),
        source("low.rs", "mod inner;\n// use crate::attic;\n"),
        source("low/inner.rs", "use crate::{high::Other, protocol};\n"),
        source("cellar.rs", ""),
    ];
    let graph = imports(&sources, Path::new("/p"));
    let found = violations(&[&["high"], &["low"], &["protocol"]], &graph);
    assert_eq!(
        found,
        [
            "`cellar` stands on no floor",
            "`low` imports `high`, which is not below it",
            "`protocol` is on a floor, and there is no such room",
        ]
    );
}

/// `PIXIR_UPDATE_DOCS=1 cargo test --test pixir -- architecture` writes the tables.
#[test]
fn the_tables_of_the_architecture_document_are_current() {
    let path = root().join("docs/architecture.md");
    let document = fs::read_to_string(&path).expect("docs/architecture.md");
    let mut wanted = document.clone();
    for (package, floors, graph) in [("core", CORE, crates_of_core()), ("ui", UI, imports_of_ui())] {
        let (begin, end) = (format!("<!-- imports of {package} -->\n"), format!("<!-- end of {package} -->"));
        let from = wanted.find(&begin).expect("the mark before the table") + begin.len();
        let to = from + wanted[from..].find(&end).expect("the mark behind the table");
        wanted.replace_range(from..to, &table(floors, &graph));
    }
    if std::env::var_os("PIXIR_UPDATE_DOCS").is_some() {
        fs::write(&path, &wanted).expect("docs/architecture.md can be written");
    }
    assert!(
        document == wanted || std::env::var_os("PIXIR_UPDATE_DOCS").is_some(),
        "the import tables of docs/architecture.md are old: PIXIR_UPDATE_DOCS=1 cargo test --test pixir -- architecture"
    );
}

#[test]
fn the_core_depends_on_no_terminal_no_argument_parser_and_no_theme() {
    let rooms = CORE.iter().flat_map(|rooms| rooms.iter()).map(|room| root().join("core").join(room));
    let manifests =
        rooms.chain([root().join("core")]).map(|it| fs::read_to_string(it.join("Cargo.toml")).expect("a manifest"));
    let manifest: String = manifests.collect();
    for crate_name in ["ratatui", "crossterm", "clap", "syntect", "tui-textarea", "pixir-ui"] {
        assert!(!manifest.contains(crate_name), "core depends on {crate_name}");
    }
}

#[test]
fn the_core_never_prints_and_never_reads_the_environment() {
    for (path, text) in sources(&root().join("core")) {
        if path.ends_with("faults.rs") || path.ends_with("build.rs") {
            continue; // a test module in a file of its own, and what cargo runs before it compiles
        }
        if path.ends_with("sandbox/src/enter.rs") {
            continue; // the launcher is a process of its own, which tells its faults on stderr
        }
        if path.ends_with("net/src/proxy.rs") || path.ends_with("net/src/tls.rs") {
            continue; // the libraries of HTTP read these variables themselves, and what they read is checked and named
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

/// A repository may hold symlinks to anywhere, so its files are opened through `files::workspace` only. Each file here that
/// opens files itself opens no path of the workspace, for the reason beside it.
#[test]
fn files_of_the_workspace_are_opened_through_its_path_layer() {
    const OPENS_OTHER_FILES: &[(&str, &str)] = &[
        ("agents/src/stop_file.rs", "it opens none; the kernel tells what comes into the Session's own folder"),
        ("agents/src/tally.rs", "saved outputs, in the state folder"),
        ("call/src/present/spill.rs", "saved outputs, in the state folder"),
        ("config/src/lib.rs", "the user's configuration"),
        ("config/src/credentials.rs", "the user's keys"),
        ("config/src/edit.rs", "the user's configuration"),
        ("context/src/library.rs", "Logs"),
        ("context/src/finder.rs", "files of the user; `of_workspace` reads those of the workspace"),
        ("context/src/environment.rs", "the machine's name and time zone"),
        ("context/src/git/compare.rs", "the work tree of the repository, compared with its commit"),
        (
            "context/src/git/index.rs",
            "git's index; of tracked files only the status, and the content where its time differs",
        ),
        ("context/src/git/objects.rs", "git's objects"),
        ("context/src/skills/found.rs", "the user's skills; `load_from` reads those of the workspace"),
        ("mcp/src/catalog.rs", "accepted definitions, in the state folder"),
        ("maintenance/src/archive.rs", "Logs and saved outputs"),
        ("permissions/src/readers/arguments.rs", "whether a name leads elsewhere; it reads no file"),
        (
            "permissions/src/readers/place.rs",
            "where names lead; it reads no file, and the kernel confines what runs after it",
        ),
        ("permissions/src/repository.rs", "git's configuration and index; the kernel confines what runs after it"),
        ("permissions/src/repository/leads.rs", "which folders there are; it opens none"),
        ("process/src/group.rs", "/proc"),
        ("process/src/jobs.rs", "saved outputs"),
        ("process/src/ports.rs", "/proc"),
        ("process/src/sweep.rs", "/proc"),
        ("provider/src/choose.rs", "scripts and keys that the user names"),
        ("provider/src/demo.rs", "the sample project of the demo"),
        ("provider/src/record.rs", "the file that the user names with --record"),
        ("run/src/lib.rs", "which file on PATH is a program"),
        ("sandbox/src/executable.rs", "which executable is the launcher; it reads none"),
        ("sandbox/src/abilities.rs", "folders of its own"),
        ("sandbox/src/cover.rs", "folders of the Session, in the state folder"),
        ("sandbox/src/enter.rs", "a file in memory of its own"),
        ("sandbox/src/enter/covers.rs", "folders of the Session, in the state folder"),
        ("sandbox/src/enter/descriptors.rs", "its own descriptors in /proc"),
        ("sandbox/src/enter/landlock.rs", "paths that it confines"),
        ("sandbox/src/enter/namespaces.rs", "mounts and /proc"),
        ("sandbox/src/enter/neighbours.rs", "/proc of the Session's own jobs"),
        ("sandbox/src/probe.rs", "a folder of its own"),
        ("net/src/tls.rs", "certificates that the user and the system name"),
        ("permissions/src/network.rs", "whether names are folders of a repository; it opens none"),
        ("sandbox/src/sockets.rs", "which files are sockets; it opens none"),
        ("sandbox/src/view.rs", "settings of a toolchain in the home folder, for a password"),
        ("session/src/lib.rs", "its own Log"),
        ("harness/src/slow_disk.rs", "tests"),
        ("session/src/fork.rs", "Logs"),
        ("tools/src/grep.rs", "handles that the path layer has opened"),
    ];
    let core = root().join("core");
    for (path, text) in sources(&core) {
        let name = path.strip_prefix(&core).expect("below").display().to_string();
        let is_door = ["files/", "storage/"].iter().any(|it| name.starts_with(it))
            || name.ends_with("tests.rs")
            || name.ends_with("build.rs");
        let opens = ["std::fs", "fs::", "File::open", "OpenOptions"].iter().any(|it| shipped(&text).contains(it));
        if opens && !is_door {
            let listed = OPENS_OTHER_FILES.iter().any(|(file, _)| *file == name);
            assert!(listed, "{name} opens files: use files::workspace, or say here which other files they are");
        }
    }
}

/// What a repository brings along is read through the path layer, also in files that open others by themselves.
#[test]
fn every_reader_of_what_a_workspace_brings_along_goes_through_the_path_layer() {
    let core = root().join("core");
    let readers = [
        ("context/src/finder.rs", "fn of_workspace", "workspace.read_plain"),
        ("context/src/roles/found.rs", "fn of_workspace", "FILES.of_workspace"),
        ("context/src/workflows.rs", "fn of_workspace", "FILES.of_workspace"),
        ("context/src/skills/found.rs", "fn of_workspace", "workspace.list"),
        ("context/src/skills/found.rs", "fn load_from", "workspace.open_file"),
        ("context/src/skills/digest.rs", "fn of_folder", "workspace.list"),
        ("context/src/skills/digest.rs", "fn bounded", "workspace.open_file"),
        ("context/src/templates.rs", "fn of_workspace", "FILES.of_workspace"),
        ("context/src/documents.rs", "impl Reader<'_>", "self.workspace.open_file"),
        ("context/src/project.rs", "pub(crate) fn text", "workspace.open_file"),
        ("context/src/contributions.rs", "fn content", "workspace.read_plain"),
        ("context/src/servers.rs", "fn read(", "workspace.read_plain"),
    ];
    for (file, reader, door) in readers {
        let text = fs::read_to_string(core.join(file)).expect("there");
        let rest = text.split(reader).nth(1).unwrap_or_else(|| panic!("{file} has no `{reader}`"));
        let body = rest.split("\n}\n").next().expect("an end");
        assert!(body.contains(door) && !body.contains("fs::"), "{file}, {reader}: {body}");
    }
    // The binary knows the path of the project's file to show it, and opens it nowhere.
    for (path, text) in sources(&root().join("src")) {
        let text = shipped(&text);
        let reads = ["fs::read", "File::open", "read_to_string("].iter().any(|it| text.contains(it));
        let opens_users = path.ends_with("commands/config.rs") && text.matches("fs::read").count() == 1;
        assert!(
            !reads || opens_users || !(text.contains("project_path") || text.contains("project_config")),
            "{} reads files beside the project's path",
            path.display()
        );
    }
}

#[test]
fn the_presenters_of_programs_and_of_editors_need_no_screen() {
    for room in ["src/headless", "src/acp", "src/serve"] {
        let room = sources(&root().join(room));
        assert!(!room.is_empty());
        for (path, text) in room {
            assert!(!shipped(&text).contains("pixir_ui"), "{} uses the terminal interface", path.display());
        }
    }
}

#[test]
fn the_interface_never_writes_logs_runs_tools_or_builds_requests() {
    for (path, text) in sources(&root().join("ui/src")) {
        let core = names_after("pixir_core::", &shipped(&text));
        for door in ["call", "log", "archive", "credentials", "run", "prompt"] {
            assert!(!core.contains(door), "{} uses pixir_core::{door}", path.display());
        }
        for forbidden in ["provider::Request", "fs::write", "Command::new"] {
            // The clipboard is reached through programs, and the editor is one; nothing else is started here.
            let starts_one = path.ends_with("clipboard.rs") || path.ends_with("editor.rs");
            assert!(
                (starts_one && forbidden == "Command::new") || !shipped(&text).contains(forbidden),
                "{} uses {forbidden}",
                path.display()
            );
        }
    }
}

/// An embedder may use the items that core's `lib.rs` lists; everything else is private.
#[test]
fn core_opens_four_rooms_and_names_everything_else_that_it_shows() {
    let facade = fs::read_to_string(root().join("core/src/lib.rs")).expect("core has a lib.rs");
    let open: Vec<&str> =
        facade.lines().filter_map(|line| line.strip_prefix("pub use ::")?.split_once("; //")).map(|it| it.0).collect();
    assert_eq!(open, ["call", "provider", "run", "text"]);
    assert!(!facade.contains("::*"), "a glob shows more than is named");
}

#[test]
fn only_one_place_allows_or_refuses_a_call() {
    for folder in ["src", "core", "ui/src"] {
        for (path, text) in sources(&root().join(folder)) {
            let asks = shipped(&text).contains("judge(");
            let may = path.ends_with("call/src/gate.rs") || path.ends_with("permissions/src/lib.rs");
            assert!(!asks || may, "{} judges a call beside the gate", path.display());
        }
    }
}

/// Whether a line compares something with a tool's name.
fn matches_a_tool_name(line: &str, names: &[String]) -> bool {
    names.iter().any(|name| {
        let quoted = format!("\"{name}\"");
        let is_arm = line.contains(&format!("{quoted} =>")) || line.contains(&format!("{quoted} |"));
        let is_compared = line.contains("name") && line.contains(&format!("== {quoted}"));
        is_arm || is_compared || (line.contains("matches!(") && line.contains(&quoted))
    })
}

#[test]
fn nobody_but_a_tool_knows_its_name() {
    let registry = pixir_core::builtin_tools([]);
    let names: Vec<String> = registry
        .specs(pixir_core::event::Toolset::Both)
        .iter()
        .map(|spec| spec.name.to_string())
        // These words are also names of other things: a toolset, a verb of the file system.
        .filter(|name| !["run", "read", "write"].contains(&name.as_str()))
        .collect();
    assert!(matches_a_tool_name(r#"matches!(call.name.as_str(), "bash" | "run")"#, &names));
    assert!(matches_a_tool_name(r#"if call.name == "edit" {"#, &names));
    assert!(!matches_a_tool_name(r#"Command::new("bash")"#, &names));
    for folder in ["src", "core", "ui/src"] {
        for (path, text) in sources(&root().join(folder)) {
            let shown = path.display().to_string();
            // A shell command or a command of the run language may have the name of a tool, and files of roles name tools.
            let own = ["core/tools/", "core/run/", "core/shell", "core/permissions/", "core/context/src/roles/"];
            if own.iter().any(|own| shown.contains(own)) {
                continue;
            }
            for line in shipped(&text).lines() {
                assert!(!matches_a_tool_name(line, &names), "{shown} matches a tool's name: {line}");
            }
        }
    }
}

#[test]
fn every_room_has_its_line_in_the_architecture_document() {
    let document = fs::read_to_string(root().join("docs/architecture.md")).expect("docs/architecture.md");
    for (package, floors) in [("core", CORE), ("ui", UI)] {
        for room in floors.iter().flat_map(|rooms| rooms.iter()) {
            assert!(
                document.contains(&format!("- `{room}`:")),
                "docs/architecture.md has no line for `{room}` of {package}"
            );
        }
    }
}

#[test]
fn no_file_hides_a_warning_without_a_reason_and_none_sleeps() {
    for folder in ["src", "core", "ui/src", "tests"] {
        for (path, text) in sources(&root().join(folder)) {
            if path.ends_with("architecture.rs") {
                continue;
            }
            assert!(!text.contains("#[allow"), "{} uses #[allow]", path.display());
            // Processes end when the kernel says so, and a thread rests between the parts of an answer.
            let may_sleep = path.ends_with("group.rs") || path.ends_with("provider/src/rest.rs");
            assert!(!text.contains("thread::sleep") || may_sleep, "{} sleeps", path.display());
            // One place polls; every wait names the state that it waits for.
            let polls = folder == "tests" && !path.ends_with("wait.rs");
            assert!(!polls || !text.contains("park_timeout"), "{} waits without a state", path.display());
        }
    }
}

#[test]
fn one_file_of_the_binary_has_unsafe_code_and_the_other_packages_forbid_it() {
    let with_unsafe = sources(&root().join("src")).into_iter().filter(|(_, text)| text.contains("unsafe_code"));
    let names: Vec<_> = with_unsafe.map(|(path, _)| path.strip_prefix(root()).expect("ours").to_owned()).collect();
    assert_eq!(names, [Path::new("src/start.rs")]);
    let rooms = CORE.iter().flat_map(|rooms| rooms.iter()).map(|room| format!("core/{room}"));
    for package in rooms.chain(["core".to_owned(), "ui".to_owned()]) {
        let library = fs::read_to_string(root().join(&package).join("src/lib.rs")).expect("a library");
        assert!(library.contains("#![forbid(unsafe_code)]"), "{package} allows unsafe code");
    }
}

/// Broken build: one that renames or removes a test that the table names.
#[test]
fn every_complaint_has_tests_that_exist_or_a_reason() {
    let table = fs::read_to_string(root().join("docs/complaints.md")).expect("the table");
    let all: String =
        ["tests", "ui/src", "core"].iter().flat_map(|it| sources(&root().join(it))).map(|(_, text)| text).collect();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")).collect();
    assert_eq!(rows.len(), 68);
    for row in rows {
        let tests = row.rsplit(" | ").next().unwrap_or_default();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')).collect();
        for name in &names {
            assert!(all.contains(&format!("fn {name}(")), "docs/complaints.md names a test that is not there: {name}");
        }
        assert!(!names.is_empty() || tests.contains("none: "), "no test and no reason: {row}");
    }
}

/// Broken build: a slash command or a layer that is added without a story.
#[test]
fn every_slash_command_and_every_layer_is_in_a_story() {
    let sources_of_stories = sources(&root().join("tests/stories"));
    let stories: String = sources_of_stories.iter().map(|(_, text)| text.as_str()).collect();
    let actions = pixir_ui::reference();
    let commands = actions.as_array().expect("a list").iter().filter_map(|it| it["command"].as_str());
    for command in commands {
        let name = command.split(' ').next().unwrap_or(command);
        let is_run = |end: &str| stories.contains(&format!("{name}{end}"));
        assert!(["<Enter>", "\\r", " "].into_iter().any(is_run), "no story runs {name}");
    }
    let folders: BTreeSet<PathBuf> =
        sources_of_stories.iter().filter_map(|(path, _)| Some(path.parent()?.join("snapshots"))).collect();
    let snapshots: String = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|it| fs::read_to_string(it.ok()?.path()).ok())
        .collect();
    // Each of them is a `View`, whose title a screen reader says.
    let layers = sources(&root().join("ui/src/overlay"));
    let title = |text: &str| {
        let body = text.split_once("fn title(&self) -> &'static str {")?.1;
        Some(body.split_once('"')?.1.split_once('"')?.0.to_owned())
    };
    let titles: Vec<String> = layers.iter().filter_map(|(_, text)| title(text)).collect();
    assert!(titles.len() > 20, "the titles were found: {titles:?}");
    // The frames of these have other words: those of what is asked.
    let by_story = [
        ("Prompt template", "a_template_asks_for_the_arguments_that_are_missing"),
        ("Dangerous call", "damage_that_lasts_runs_only_after_a_typed_word_and_an_everyday_call_without"),
        ("Question of the model", "a_form_takes_a_choice_several_marks_and_free_text"),
        ("Models", "the_model_in_use_is_marked_and_chosen_with_its_effort"),
        ("Files to restore", "undo_preview_shows_conflicting_changes"),
    ];
    for title in &titles {
        let story = by_story.iter().find(|(of, _)| of == title).map(|(_, story)| format!("fn {story}("));
        let is_shown = match story {
            Some(story) => stories.contains(&story),
            None => stories.contains(title) || snapshots.contains(title),
        };
        assert!(is_shown, "no story shows {title}");
    }
}
