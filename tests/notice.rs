//! `NOTICE` contains the texts that the licences of the shipped material require, and is up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use two_face::acknowledgement::{License, listing};

use crate::dependencies::{metadata, root, text};

const HEAD: &str = "\
NOTICE

pixir is licensed under MIT or Apache-2.0 (LICENSE-MIT, LICENSE-APACHE). Its binary contains material of others.
Where a package offers MIT or Apache-2.0, pixir takes it under that licence. This file holds what is licensed otherwise, and the
notices of the bundled syntax definitions.

Written by: PIXIR_NOTICE=write cargo test --test pixir -- notice
";

/// C sources inside a package, with a licence file of their own.
const BUNDLED: [(&str, &str, &str); 2] =
    [("onig_sys", "Oniguruma", "oniguruma/COPYING"), ("zstd-sys", "Zstandard", "zstd/LICENSE")];

/// The licence files of a package with terms beyond MIT or Apache-2.0.
fn licence_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the sources of a dependency").flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
            name.starts_with("LICENSE") && !["APACHE", "MIT"].iter().any(|it| name.contains(it))
        })
        .collect();
    files.sort();
    files
}

/// Whether taking a package under MIT or Apache-2.0 alone meets its licence.
fn is_plain(licence: &str) -> bool {
    let alternatives: Vec<&str> = licence.split(['/', ' ']).filter(|word| !["OR", ""].contains(word)).collect();
    !licence.contains("AND") && alternatives.iter().any(|it| ["MIT", "Apache-2.0"].contains(it))
}

/// Packages that are linked into the binary: reached from it by normal dependencies.
fn linked(metadata: &Value) -> Vec<&Value> {
    let by_id = |list: &'_ Value| -> BTreeMap<String, usize> {
        let all = list.as_array().expect("a list").iter().enumerate();
        all.map(|(at, it)| (text(it, "id").to_owned(), at)).collect()
    };
    let (packages, nodes) = (&metadata["packages"], &metadata["resolve"]["nodes"]);
    let (package_at, node_at) = (by_id(packages), by_id(nodes));
    let mut reached = BTreeSet::new();
    let mut open = vec![text(&metadata["resolve"], "root").to_owned()];
    while let Some(id) = open.pop() {
        if !reached.insert(id.clone()) {
            continue;
        }
        for dependency in nodes[node_at[&id]]["deps"].as_array().expect("dependencies") {
            let kinds = dependency["dep_kinds"].as_array().expect("kinds");
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(dependency, "pkg").to_owned());
            }
        }
    }
    let mut linked: Vec<&Value> = reached.iter().map(|id| &packages[package_at[id]]).collect();
    linked.sort_by_key(|package| text(package, "name"));
    linked
}

fn section(title: &str, body: &str) -> String {
    let body: Vec<&str> = body.lines().map(str::trim_end).collect();
    format!("\n{}\n{title}\n\n{}\n", "-".repeat(78), body.join("\n").trim())
}

/// The notices of syntax definitions; a text that several of them share appears once.
fn syntaxes(licences: &[License]) -> String {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for licence in licences.iter().filter(|it| it.needs_acknowledgement()) {
        by_text.entry(licence.text.clone()).or_default().push(licence.rel_path.display().to_string());
    }
    let mut sections: Vec<(Vec<String>, String)> = by_text
        .into_iter()
        .map(|(text, mut paths)| {
            paths.sort();
            (paths, text)
        })
        .collect();
    sections.sort();
    let written = sections.iter().map(|(paths, text)| section(&format!("Syntax: {}", paths.join(", ")), text));
    written.collect()
}

fn notice() -> String {
    let metadata = metadata();
    let mut out = HEAD.to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut weak = Vec::new();
    for package in linked(&metadata) {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        let folder = Path::new(text(package, "manifest_path")).parent().expect("a folder");
        for (_, title, file) in BUNDLED.iter().filter(|(owner, _, _)| *owner == name) {
            let licence = fs::read_to_string(folder.join(file)).expect("the licence of bundled sources");
            texts.entry(licence).or_default().push(format!("{title} (in {name})"));
        }
        if is_plain(licence) {
            continue;
        }
        if licence == "MPL-2.0" {
            weak.push(format!("{name}: {}", text(package, "repository")));
            continue;
        }
        let files = licence_files(folder);
        assert!(!files.is_empty(), "{name} ({licence}) has no licence file");
        for file in files {
            let licence_text = fs::read_to_string(file).expect("a licence is text");
            texts.entry(licence_text).or_default().push(format!("{name} ({licence})"));
        }
    }
    out += &section(
        "Packages under the Mozilla Public License 2.0, unchanged; their source is at",
        &format!("{}\n\nThe licence: https://www.mozilla.org/MPL/2.0/", weak.join("\n")),
    );
    let mut texts: Vec<(Vec<String>, String)> = texts.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    out.extend(texts.iter().map(|(names, text)| section(&names.join(", "), text)));
    out + &syntaxes(listing().for_syntaxes())
}

#[test]
fn notice_lists_what_the_licences_ask_for() {
    let path = root().join("NOTICE");
    let notice = notice();
    for part in
        ["nucleo-matcher: https://", "webpki-root-certs", "icu_properties_data", "UNICODE LICENSE V3", "Oniguruma"]
    {
        assert!(notice.contains(part), "{part} is missing:\n{notice}");
    }
    if std::env::var_os("PIXIR_NOTICE").is_some_and(|it| it == "write") {
        fs::write(&path, &notice).expect("write");
    }
    let is_current = fs::read_to_string(&path).is_ok_and(|it| it == notice);
    assert!(is_current, "NOTICE is out of date; PIXIR_NOTICE=write cargo test --test pixir -- notice writes it anew");
}

#[test]
fn a_syntax_that_needs_a_notice_and_has_none_is_found() {
    let licences = listing();
    let needed: Vec<&License> = licences.for_syntaxes().iter().filter(|it| it.needs_acknowledgement()).collect();
    assert!(needed.len() > 3, "two-face ships syntaxes that want their notice");
    let whole = syntaxes(licences.for_syntaxes());
    for licence in &needed {
        let others: Vec<License> = licences.for_syntaxes().iter().filter(|it| it != licence).cloned().collect();
        let path = licence.rel_path.display().to_string();
        assert!(whole.contains(&path) && syntaxes(&others) != whole, "{path}");
    }
}

#[test]
fn a_package_under_another_licence_is_found() {
    for plain in ["MIT", "MIT/Apache-2.0", "Unlicense OR MIT", "Apache-2.0 OR ISC OR MIT"] {
        assert!(is_plain(plain), "{plain}");
    }
    for other in ["ISC", "Unicode-3.0", "(MIT OR Apache-2.0) AND Unicode-3.0", "Apache-2.0 AND ISC", "BSD-3-Clause"] {
        assert!(!is_plain(other), "{other}");
    }
}
