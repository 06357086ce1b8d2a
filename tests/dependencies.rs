//! The dependencies of the project: licences, sources, bans, and no unused package.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Licences under which a package may be taken. An expression passes when one of its alternatives consists of these
/// alone.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// Packages that no build may contain, with the reason.
const BANNED: [(&str, &str); 4] = [
    ("openssl", "TLS is rustls with ring, so that the binary needs no library of the system"),
    ("openssl-sys", "the same"),
    ("native-tls", "the same"),
    ("aws-lc-rs", "ring does the same in 2 MB less"),
];

/// Direct dependencies whose name occurs in no source file, with the reason.
const UNNAMED: [(&str, &str, &str); 0] = [];

/// The only registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The metadata of the packages of this build. It needs no network, because cargo has just compiled them.
pub(crate) fn metadata() -> Value {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", HOST]);
    if cfg!(feature = "keyring") {
        cargo.args(["--features", "keyring"]);
    }
    let output = cargo.current_dir(root()).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The platform that CI builds for.
const HOST: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Whether an SPDX expression can be met with allowed licences. `/` is the old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "+WITH+");
    let mut words = spaced.split_whitespace().peekable();
    any(&mut words) == Some(true) && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// None where the expression breaks off.
fn any(words: &mut Words<'_>) -> Option<bool> {
    let mut met = all(words)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= all(words)?;
    }
    Some(met)
}

fn all(words: &mut Words<'_>) -> Option<bool> {
    let mut met = one(words)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= one(words)?;
    }
    Some(met)
}

fn one(words: &mut Words<'_>) -> Option<bool> {
    if words.next_if_eq(&"(").is_some() {
        let met = any(words)?;
        words.next_if_eq(&")")?;
        return Some(met);
    }
    words.next().map(|name| ALLOWED.contains(&name.replace('+', " ").as_str()))
}

/// Packages whose licence is not allowed or not stated.
fn bad_licences(packages: &[Value]) -> Vec<String> {
    let bad = packages.iter().filter(|package| !is_allowed(text(package, "license")));
    bad.map(|package| format!("{}: {}", text(package, "name"), package["license"])).collect()
}

/// Packages of `Cargo.lock` that come from elsewhere than the registry, or are banned. A package without a source is
/// one of ours.
fn bad_packages(lock: &str) -> Vec<String> {
    let mut bad = Vec::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|value| value.trim_matches('"'))
        };
        let name = field("name").unwrap_or_default();
        match field("source") {
            None if name.starts_with("pixir") => {}
            Some(REGISTRY) => {}
            source => bad.push(format!("{name}: from {}", source.unwrap_or("a folder"))),
        }
        bad.extend(BANNED.iter().filter(|(it, _)| *it == name).map(|(_, reason)| format!("{name}: {reason}")));
    }
    bad
}

/// Direct dependencies of a package whose name occurs in none of the sources.
fn unused(package: &Value, sources: &[String], unnamed: &[(&str, &str, &str)]) -> Vec<String> {
    let mut unused = BTreeSet::new();
    for dependency in list(package, "dependencies") {
        let name = dependency["rename"].as_str().unwrap_or(text(dependency, "name"));
        let word = name.replace('-', "_");
        let is_excused = unnamed.iter().any(|(owner, it, _)| *owner == text(package, "name") && *it == name);
        if !is_excused && !sources.iter().any(|source| has_word(source, &word)) {
            unused.insert(format!("{}: {name}", text(package, "name")));
        }
    }
    unused.into_iter().collect()
}

/// Whether this occurs as a whole word outside of comments.
fn has_word(source: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(word).any(|(at, _)| {
        let (before, after) = (&source[..at], &source[at + word.len()..]);
        let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        !before.ends_with(is_part) && !after.starts_with(is_part) && !line.trim_start().starts_with("//")
    })
}

/// Entries of `[workspace.dependencies]` that no package takes.
fn unused_of_workspace(root: &str, members: &[String]) -> Vec<String> {
    let section = root.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" = "));
    let taken = |name: &str| {
        let ways = [format!("\n{name}.workspace = true"), format!("\n{name} = {{ workspace = true")];
        members.iter().any(|manifest| ways.iter().any(|way| manifest.contains(way)))
    };
    names.map(|(name, _)| name.trim().to_owned()).filter(|name| !taken(name)).collect()
}

/// Every Rust source of a package, not of those inside it.
fn sources(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut folders: Vec<PathBuf> = ["src", "tests", "benches", "examples"].map(|name| folder.join(name)).to_vec();
    all.extend(fs::read_to_string(folder.join("build.rs")));
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("dependencies.rs") {
                all.push(fs::read_to_string(&path).expect("a source is text"));
            }
        }
    }
    all
}

const NONE: [String; 0] = [];

/// Broken build: `[profile.release.package.pixir]`. cargo then strips debug information alone, and the program that people
/// install has 14 MB of symbols more.
#[test]
fn the_program_that_people_install_is_stripped() {
    let text = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let manifest: toml::Value = toml::from_str(&text).expect("TOML");
    let release = &manifest["profile"]["release"];
    assert_eq!(release["strip"].as_bool(), Some(true));
    let packages = release["package"].as_table().expect("packages that are optimised for speed");
    for name in ["pixir", "*"] {
        assert!(!packages.contains_key(name), "an override for `{name}` makes cargo forget `strip` there");
    }
}

#[test]
fn every_package_has_an_allowed_licence() {
    assert_eq!(bad_licences(list(&metadata(), "packages")), NONE);
}

#[test]
fn every_package_comes_from_the_registry_and_none_is_banned() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    assert!(lock.matches("[[package]]").count() > 200, "the lock file is read");
    assert_eq!(bad_packages(&lock), NONE);
}

#[test]
fn every_direct_dependency_is_used() {
    let metadata = metadata();
    let ours = list(&metadata, "packages").iter().filter(|package| package["source"].is_null());
    let (mut manifests, mut found) = (Vec::new(), Vec::new());
    for package in ours {
        let manifest = Path::new(text(package, "manifest_path"));
        found.extend(unused(package, &sources(manifest.parent().expect("a folder")), &UNNAMED));
        manifests.push(fs::read_to_string(manifest).expect("a manifest"));
    }
    assert_eq!(found, NONE);
    assert!(manifests.len() >= 3, "every package of the workspace is looked at");
    let root = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    assert_eq!(unused_of_workspace(&root, &manifests), NONE);
}

#[test]
fn a_bad_licence_is_found() {
    for good in
        ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(GPL-3.0 AND MIT) OR ISC", "Apache-2.0 WITH LLVM-exception"]
    {
        assert!(is_allowed(good), "{good}");
    }
    for bad in
        ["", "GPL-3.0", "MIT AND GPL-3.0", "MIT AND (GPL-3.0 OR AGPL-3.0)", "MIT MIT", "MIT OR", "(MIT", "OR MIT"]
    {
        assert!(!is_allowed(bad), "{bad}");
    }
    let packages = [json!({ "name": "a", "license": "MIT" }), json!({ "name": "b" })];
    assert_eq!(bad_licences(&packages), ["b: null"]);
}

#[test]
fn a_bad_source_and_a_banned_package_are_found() {
    let package = |name: &str, source: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n{source}\n");
    let registry = format!("source = \"{REGISTRY}\"\n");
    let lock = [
        package("pixir-core", ""),
        package("serde", &registry),
        package("forked", "source = \"git+https://example.com/forked#abc\""),
        package("vendored", ""),
        package("native-tls", &registry),
    ];
    let bad = bad_packages(&lock.concat());
    let names: Vec<&str> = bad.iter().filter_map(|it| it.split(':').next()).collect();
    assert_eq!(names, ["forked", "vendored", "native-tls"]);
}

#[test]
fn an_unused_dependency_is_found() {
    let dependency = |name: &str, rename: Value| json!({ "name": name, "rename": rename });
    let package = json!({ "name": "p", "dependencies": [
        dependency("left-pad", Value::Null), dependency("serde", Value::Null), dependency("serde_json", Value::Null),
        dependency("long-name", json!("short")), dependency("runtime", Value::Null),
    ]});
    let sources = ["// serde in a comment\nuse serde_json::Value;\nfn f() { short::g(); }".to_owned()];
    let unnamed = [("p", "runtime", "it is only linked")];
    assert_eq!(unused(&package, &sources, &unnamed), ["p: left-pad", "p: serde"]);
    let root = "[workspace.dependencies]\na = \"1\"\n# why\nb = { version = \"1\" } # why\nc = \"1\"\n\n[package]\nd = \"1\"\n";
    let members = ["[dependencies]\na.workspace = true\nb = { workspace = true, optional = true }\n".to_owned()];
    assert_eq!(unused_of_workspace(root, &members), ["c"]);
}
