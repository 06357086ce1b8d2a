//! Copies the JSON Schemas of the reference for `pixir schema`, without blanks. Makes a release binary smaller, and so faster
//! to start: relative relocations are packed, which is about a megabyte, and functions and tables that are the same byte for
//! byte are in it once. The functions that a start runs lie together, where `.ci/layout` has written which these are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the linker is told, as far as it knows it. Only lld folds what is the same.
const WISHES: [&str; 2] = ["-Wl,-z,pack-relative-relocs", "-Wl,--icf=all"];

/// The names of functions, in the order in which they shall lie in the program. Only lld takes such a list.
const LAYOUT: &str = ".ci/layout.txt";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The folder, because the list need not be there.
    println!("cargo::rerun-if-changed=.ci");
    let folder = env::var("OUT_DIR").map(PathBuf::from).expect("cargo sets it");
    for file in ["events.json", "inputs.json", "script.json"] {
        let source = format!("docs/reference/{file}");
        println!("cargo::rerun-if-changed={source}");
        let json = std::fs::read_to_string(source).expect("the reference is there");
        std::fs::write(folder.join(file), without_blanks(&json)).expect("cargo made the folder");
    }
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|it| it == value);
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    // A debug build is linked often and shipped never. What another machine will run cannot be tried here.
    let is_native = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    if is("PROFILE", "release") && is_glibc && is_native {
        for wish in WISHES.into_iter().filter(|wish| is_supported(wish)) {
            println!("cargo::rustc-link-arg-bins={wish}");
        }
        let layout = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join(LAYOUT);
        let order = format!("-Wl,--symbol-ordering-file={},--no-warn-symbol-ordering", layout.display());
        if layout.is_file() && is_supported(&order) {
            println!("cargo::rustc-link-arg-bin=pixir={order}");
        }
    }
}

/// JSON without the blanks between its parts.
fn without_blanks(json: &str) -> String {
    let (mut in_text, mut is_escaped) = (false, false);
    let is_part = |c: &char| {
        let is_quote = *c == '"' && !is_escaped;
        is_escaped = in_text && *c == '\\' && !is_escaped;
        in_text ^= is_quote;
        in_text || !c.is_ascii_whitespace()
    };
    json.chars().filter(is_part).collect()
}

/// Whether a program linked so starts here: the linker must know the option, and glibc packed relocations (2.36 or later).
/// A flag in `.cargo/config.toml` could not ask that, would give way to `RUSTFLAGS`, and would change debug builds too.
fn is_supported(wish: &str) -> bool {
    let var = |name: &str| env::var(name).ok();
    let (Some(rustc), Some(folder)) = (var("RUSTC"), var("OUT_DIR").map(PathBuf::from)) else { return false };
    let (source, probe) = (folder.join("probe.rs"), folder.join("probe"));
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut compile = Command::new(rustc);
    compile.arg(&source).arg("-o").arg(&probe).args(["-C", &format!("link-arg={wish}")]);
    compile.args(var("RUSTC_LINKER").map(|linker| format!("-Clinker={linker}")));
    compile
        .args(var("CARGO_ENCODED_RUSTFLAGS").iter().flat_map(|flags| flags.split('\x1f')).filter(|it| !it.is_empty()));
    let succeeds = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    succeeds(&mut compile) && succeeds(&mut Command::new(probe))
}
