//! What the documents say about each other is true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README, how to contribute, and every document below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// The links of a document, and the anchors of its headings, made as forges make them.
fn links_and_anchors(document: &Path) -> (Vec<String>, BTreeSet<String>) {
    let text = fs::read_to_string(document).expect("a document");
    let (mut links, mut anchors, mut heading) = (Vec::new(), BTreeSet::new(), None);
    for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.into_string())
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
                anchors.insert(kept.map(|it| if it == ' ' { '-' } else { it }).collect());
            }
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            _ => {}
        }
    }
    (links, anchors)
}

/// Broken build: a heading of the guide is renamed, and a page still links to the old one.
#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut broken = Vec::new();
    let mut followed = 0;
    for document in documents() {
        for target in links_and_anchors(&document).0 {
            if target.starts_with("https://") {
                continue;
            }
            followed += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let there = document.parent().expect("a folder").join(path);
            let there = if path.is_empty() { document.clone() } else { there };
            let is_whole = there.exists() && (anchor.is_empty() || links_and_anchors(&there).1.contains(anchor));
            if !is_whole {
                broken.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(followed > 50, "{followed} links were found");
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Broken build: the first page of the guide has no link to a new page.
#[test]
fn the_guide_leads_to_each_of_its_pages() {
    let (index, _) = links_and_anchors(&root().join("docs/guide/README.md"));
    let pages = documents().into_iter().filter(|it| it.parent().is_some_and(|it| it.ends_with("guide")));
    let names = pages.filter_map(|it| Some(it.file_name()?.to_str()?.to_owned())).filter(|it| it != "README.md");
    let lost: Vec<String> = names.filter(|it| !index.contains(it)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// Broken build: `.ci/run` calls the tests in another way than those do who read how to.
#[test]
fn the_documents_and_ci_call_the_tests_alike() {
    let read = |name: &str| fs::read_to_string(root().join(name)).expect("it is there");
    let readme = read("README.md");
    let command = readme.lines().find(|line| line.starts_with("cargo test")).expect("the command");
    let in_ci = format!("echo \"== test\" && {command}");
    assert!(read(".ci/run").lines().any(|line| line == in_ci), ".ci/run has no line {in_ci:?}");
    assert!(read("CONTRIBUTING.md").contains(&format!("`{command}`")), "CONTRIBUTING.md has no {command:?}");
}
