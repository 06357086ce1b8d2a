//! The rules of the Agent Skills format, and what of a file has no effect here.

use std::path::PathBuf;

use serde::Serialize;

use super::fields::Fields;
use super::finding::{Finding, Weight};

/// The longest values that the format allows, characters.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;

/// A `SKILL.md` that was checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validated {
    /// The name that the skill would have.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// Everything that was found, by line.
    pub findings: Vec<Finding>,
}

impl Validated {
    /// Whether the file has the format.
    pub fn is_valid(&self) -> bool {
        self.findings.iter().all(|it| it.weight == Weight::Note)
    }
}

/// Checks the fields against the format. `folder` is the name of the skill's folder, `line_of` tells where a field is.
pub(super) fn check(fields: &Fields, folder: &str, line_of: impl Fn(&str) -> usize, findings: &mut Vec<Finding>) {
    let line = line_of("name");
    match &fields.name {
        None => {
            let fix = format!("add `name: {folder}`");
            findings.push(Finding::fault(line, "there is no `name`; the folder's name is used", fix));
        }
        Some(name) => {
            let fix = "use 1 to 64 of a-z, 0-9 and single hyphens";
            if let Some(why) = fault_of_name(name) {
                findings.push(Finding::fault(line, format!("the name {why}"), fix));
            } else if !name.is_ascii() {
                let message = "the name has letters beyond a-z, which some agents do not take";
                findings.push(Finding::note(line, message, fix));
            }
            if name != folder {
                let fix = "name the folder as the skill, or the skill as its folder";
                findings.push(Finding::fault(line, format!("the name is not that of its folder, `{folder}`"), fix));
            }
        }
    }
    let line = line_of("description");
    match &fields.description {
        None => {
            let fix = "add `description:` with what the skill does and when to use it";
            findings.push(Finding::fault(line, "there is no `description`; the first line of the text is used", fix));
        }
        Some(text) if text.chars().count() > MAX_DESCRIPTION => {
            let message = format!("the description is longer than {MAX_DESCRIPTION} characters");
            findings.push(Finding::fault(line, message, "move details into the text"));
        }
        Some(_) => {}
    }
    if fields.compatibility.as_ref().is_some_and(|text| text.chars().count() > MAX_COMPATIBILITY) {
        let message = format!("`compatibility` is longer than {MAX_COMPATIBILITY} characters");
        findings.push(Finding::fault(line_of("compatibility"), message, "move details into the text"));
    }
}

/// What of a text has no effect here, or is missing.
pub(super) fn check_body(body: &str, first_line: usize, findings: &mut Vec<Finding>) {
    if body.trim().is_empty() {
        findings.push(Finding::fault(first_line, "there is no text after the front matter", "write the instructions"));
    }
    if let Some(at) = body.find("!`") {
        let line = first_line + body[..at].matches('\n').count();
        let fix = "write what the model should run, as an instruction";
        findings.push(Finding::note(line, "a command in !`…` is left as text: pixir runs nothing of a skill", fix));
    }
}

fn fault_of_name(name: &str) -> Option<String> {
    let count = name.chars().count();
    if count > MAX_NAME {
        return Some(format!("has {count} characters"));
    }
    let is_lower = |c: char| c.is_alphanumeric() && c.to_lowercase().eq([c]);
    if let Some(odd) = name.chars().find(|c| *c != '-' && !is_lower(*c)) {
        return Some(format!("holds `{}`", odd.escape_debug()));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Some("begins or ends with a hyphen, or has two in a row".to_owned());
    }
    None
}
