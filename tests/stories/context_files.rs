//! AGENTS.md and CLAUDE.md: which are read, what they import, what is sketched by `pixir init`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::driver::{Pixir, calls, says};
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, ran};

/// The context documents of the first request, as source and text.
fn documents(server: &Server) -> Vec<(String, String)> {
    let body = &server.bodies()[0];
    let context = body["input"][0]["content"][0]["text"].as_str().expect("a text").to_owned();
    let parts = context.split("<context source=\"").skip(1);
    parts
        .map(|part| {
            let (source, rest) = part.split_once("\">\n").expect("a source");
            (source.to_owned(), rest.trim_end().trim_end_matches("</context>").trim_end().to_owned())
        })
        .collect()
}

fn sources(documents: &[(String, String)]) -> Vec<&str> {
    documents.iter().map(|(source, _)| source.as_str()).collect()
}

/// Broken build: one that reads the root's file only, or the folders in another order.
#[test]
fn context_files_are_read_from_the_root_down_to_where_pixir_was_started() {
    let shell = Shell::new(&[
        ("AGENTS.md", "root\n"),
        ("CLAUDE.md", "not this one\n"),
        ("sub/CLAUDE.md", "sub\n"),
        ("sub/deep/AGENTS.md", "deep\n"),
        ("other/AGENTS.md", "not below\n"),
    ]);
    let user = shell.workspace().parent().expect("above").join(".config/pixir");
    fs::create_dir_all(&user).expect("mkdir");
    fs::write(user.join("AGENTS.md"), "user @notes.md @../../secret.md\n").expect("write");
    fs::write(user.join("notes.md"), "notes\n").expect("write");
    shell.aside("secret.md", "not this\n");
    // The workspace is not trusted: these are texts for the model, and its skills stay inert.
    shell.write(".pixir/skills/x/SKILL.md", "---\nname: x\ndescription: never seen\n---\nbody\n");
    let server = Server::start(vec![text("Done.")]);
    let root = shell.workspace().display().to_string();
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "--json", "--workspace", &root, "look"].map(str::to_owned));
    let ran = ran(shell.command(args).current_dir(shell.workspace().join("sub/deep")).output().expect("it runs"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let found = documents(&server);
    let (own, notes) = (user.join("AGENTS.md").display().to_string(), user.join("notes.md").display().to_string());
    assert_eq!(sources(&found), ["environment", &own, &notes, "AGENTS.md", "sub/CLAUDE.md", "sub/deep/AGENTS.md"]);
    assert_eq!(found[1].1, "user @notes.md @../../secret.md\n[not imported: ../../secret.md lies outside]");
    assert_eq!((found[3].1.as_str(), found[5].1.as_str()), ("root", "deep"));
    assert!(!server.bodies()[0].to_string().contains("never seen"));
    // The ledger shows each with its bytes.
    let ledger = shell.run(["inspect", "last", "--ledger", "--json"]).document();
    let segments = ledger["segments"].as_array().expect("segments");
    let of =
        |name: &str| segments.iter().find(|it| it["kind"] == "document" && it["name"] == name).map(|it| &it["bytes"]);
    assert_eq!((of("AGENTS.md"), of("sub/CLAUDE.md")), (Some(&json!(4)), Some(&json!(3))));
}

/// Broken build: one that follows a symlink out of the workspace, reads keys, or follows a cycle.
#[test]
fn imports_are_documents_of_the_workspace_and_each_is_read_once() {
    let agents = "See @docs/a.md and @docs/missing.md.\n`@docs/span.md`\n```\n@docs/block.md\n```\nAsk @alice. @.env @link.md @../out.md @types/node\n";
    let shell = Shell::new(&[
        ("AGENTS.md", agents),
        ("docs/a.md", "a imports @b.md and @../AGENTS.md"),
        ("docs/b.md", "b imports @a.md"),
        ("docs/span.md", "span"),
        ("docs/block.md", "block"),
        (".env", "KEY=hidden-value"),
    ]);
    shell.aside("out.md", "hidden-value");
    symlink("../out.md", shell.workspace().join("link.md")).expect("a link");
    let server = Server::start(vec![text("Done.")]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "--json", "look"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let found = documents(&server);
    assert_eq!(sources(&found), ["environment", "AGENTS.md", "docs/a.md", "docs/b.md"]);
    assert_eq!((found[2].1.as_str(), found[3].1.as_str()), ("a imports @b.md and @../AGENTS.md", "b imports @a.md"));
    let notes: Vec<&str> = found[1].1.lines().filter(|line| line.starts_with("[not imported: ")).collect();
    assert_eq!(
        notes,
        [
            "[not imported: docs/missing.md is missing, or leads elsewhere]",
            "[not imported: .env is no document]",
            "[not imported: link.md is missing, or leads elsewhere]",
            "[not imported: ../out.md lies outside]",
        ]
    );
    assert!(!server.bodies()[0].to_string().contains("hidden-value"));
}

/// Broken build: one without a bound for all of them, or for how deep they go.
#[test]
fn context_files_are_cut_to_64_kilobytes_in_all() {
    let long = "x".repeat(30 << 10);
    let chain: Vec<(String, String)> = (0..8).map(|n| (format!("n{n}.md"), format!("@n{}.md", n + 1))).collect();
    let mut files =
        vec![("AGENTS.md", "@l1.md @l2.md @l3.md @n0.md"), ("l1.md", &*long), ("l2.md", &*long), ("l3.md", &*long)];
    files.extend(chain.iter().map(|(name, text)| (&**name, &**text)));
    let shell = Shell::new(&files);
    let server = Server::start(vec![text("Done.")]);
    let mut args = server.flags(Dialect::Responses);
    args.extend(["--headless", "--json", "look"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let found = documents(&server);
    let bytes: usize = found[1..].iter().map(|(_, text)| text.len()).sum();
    assert!(bytes < 65 << 10, "{bytes} bytes");
    assert!(
        found.iter().any(|(source, text)| source == "l3.md" && text.contains("the rest of this file was left out"))
    );
    let names = sources(&found);
    assert!(names.contains(&"n3.md") && !names.contains(&"n4.md"), "{names:?}");
}

const PROJECT: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\n"),
    ("Makefile", "lint:\n\tcargo clippy\n"),
    ("README.md", "# App\n\nCounts words in large files, quickly.\n"),
    ("rustfmt.toml", "max_width = 100\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("src/lib.rs", "\n"),
    ("docs/a.md", "x\n"),
    (".github/workflows/ci.yml", "on: push\n"),
];

const SKETCH: &str = "\
# app

Counts words in large files, quickly.

Written in Rust.

## Commands

- Build: `cargo build` (from `Cargo.toml`)
- Test: `cargo test` (from `Cargo.toml`)
- Lint: `cargo clippy` (from `Cargo.toml`)
- Lint: `make lint` (from `Makefile`)
- Format: `cargo fmt` (from `Cargo.toml`)

## Layout

- `.github/`: 1 file, mostly `.yml`
- `docs/`: 1 file, mostly `.md`
- `src/`: 2 files, mostly `.rs`

## Conventions

- `rustfmt.toml`: formatting of Rust (`max_width = 100`)
- `.github/workflows/`: CI runs `ci.yml`
";

/// Broken build: one that overwrites the file, or writes it in a dry run.
#[test]
fn init_sketches_the_file_and_overwrites_none() {
    let shell = Shell::new(PROJECT);
    let dry = shell.run(["init", "--dry-run", "--json"]).document();
    assert_eq!((&dry["text"], &dry["path"], &dry["dry_run"]), (&json!(SKETCH), &json!("AGENTS.md"), &json!(true)));
    assert!(!shell.workspace().join("AGENTS.md").exists());
    let made = shell.run(["init"]);
    assert_eq!((made.code, made.stdout.trim()), (0, format!("wrote AGENTS.md ({} bytes)", SKETCH.len()).as_str()));
    assert_eq!(shell.read("AGENTS.md"), SKETCH);
    shell.write("AGENTS.md", "mine\n");
    let refused = shell.run(["init", "--json"]);
    let error: Value = refused.error();
    assert_eq!(error["code"], "CONFIRMATION_NEEDED", "{error}");
    assert!(error["remediation"].as_str().expect("a text").contains("pixir init --dry-run"), "{error}");
    assert_eq!((refused.code, shell.read("AGENTS.md").as_str()), (12, "mine\n"));
    assert_eq!(shell.run(["init", "--force"]).code, 0);
    assert_eq!(shell.read("AGENTS.md"), SKETCH);
    let empty = Shell::new(&[]);
    assert!(empty.run(["init", "--dry-run"]).stdout.contains("None were found."));
}

/// Broken build: one in which `/init` writes the file by itself, past approval and undo.
#[tokio::test]
async fn init_in_a_session_lets_the_model_write_with_approval_and_undo() {
    let steps = vec![calls("write", json!({ "path": "AGENTS.md", "content": "# app\n" })), says("Written.")];
    let mut pixir = Pixir::new(steps, PROJECT);
    let screen = pixir.does("/init<Enter>").await;
    assert!(screen.contains("AGENTS.md") && screen.contains("Allow"), "{screen}");
    assert!(!pixir.path("AGENTS.md").exists(), "nothing is written without an approval");
    pixir.does("<A-y>").await;
    assert_eq!(pixir.file("AGENTS.md"), "# app\n");
    let log = pixir.log();
    let prompt = log.iter().find(|it| it["type"] == "user_message").expect("there")["data"]["text"]
        .as_str()
        .expect("a text")
        .to_owned();
    assert!(
        prompt.starts_with("Write AGENTS.md for this repository.") && prompt.contains("- Test: `cargo test`"),
        "{prompt}"
    );
    pixir.does("/undo<Enter>").await;
    pixir.does("<Enter>").await;
    assert!(!pixir.path("AGENTS.md").exists(), "it can be undone");
}
