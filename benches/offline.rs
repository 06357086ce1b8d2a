//! What commands on a Session at rest take, by how long the Session is: `cargo bench --bench offline`.
//!
//! What a command costs for each entry is the same for each size, and its memory is at most 2.5 times the Log.
//!
//! `cargo bench --bench offline -- write HOME WORKSPACE ENTRIES` only writes such a Session, for another program to read.

#[expect(dead_code, reason = "the bench of growth uses more of it")]
mod conversation;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use conversation::write_log;
use pixir_core::store::Store;
use shell::{Shell, peak};

/// The last size is that of the long run, `PIXIR_LONG=1`: its Log has 560 MB.
const SIZES: [usize; 3] = [10_000, 100_000, 1_000_000];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.as_slice() {
        [write, home, workspace, entries] if write == "write" => {
            let workspace = Path::new(workspace).canonicalize().expect("a folder");
            write_log(&Store::new(Path::new(home)).folder_of(&workspace), &workspace, entries.parse().expect("a size"));
        }
        _ => report(),
    }
}

#[expect(clippy::print_stdout, reason = "a table for the user")]
fn report() {
    println!("| command | entries | Log, MB | ms | for each entry, × the first | peak memory, MB | of the Log |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let is_long = std::env::var_os("PIXIR_LONG").is_some();
    let mut first: BTreeMap<String, f64> = BTreeMap::new();
    for entries in SIZES.into_iter().take(if is_long { 3 } else { 2 }) {
        let shell = Shell::new(&[]);
        let workspace = shell.workspace().canonicalize().expect("a folder");
        let (_, path, _) = write_log(&Store::new(&shell.home()).folder_of(&workspace), &workspace, entries);
        let log = std::fs::metadata(&path).expect("a log").len() as f64 / 1e6;
        let mut row = |name: &str, shell: &Shell, args: &[&str]| {
            let began = Instant::now();
            let (kb, ran) = peak(shell, args);
            let ms = began.elapsed().as_secs_f64() * 1e3;
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            let mb = kb as f64 * 1024.0 / 1e6;
            let each = ms / entries as f64;
            let growth = each / *first.entry(name.to_owned()).or_insert(each);
            println!("| {name} | {entries} | {log:.1} | {ms:.0} | {growth:.2} | {mb:.0} | {:.1} × |", mb / log);
        };
        row("sessions verify", &shell, &["sessions", "verify", "last"]);
        row("sessions export --to md", &shell, &["sessions", "export", "last", "--to", "md", "--output", "a.md"]);
        row("sessions export --to html", &shell, &["sessions", "export", "last", "--to", "html", "--output", "a.html"]);
        row("sessions export --to json", &shell, &["sessions", "export", "last", "--to", "json", "--output", "a.json"]);
        row("inspect", &shell, &["inspect", "last"]);
        row("fork", &shell, &["fork", "last"]);
        let other = Shell::new(&[]);
        std::fs::copy(workspace.join("a.json"), other.workspace().join("a.json")).expect("a copy");
        row("sessions import", &other, &["sessions", "import", "a.json"]);
    }
}
