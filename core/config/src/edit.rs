//! One setting of a configuration file set, with its comments and its order kept.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::path::{dotted, get, insert, only_path};
use super::{Config, invalid};
use protocol::error::{Code, Error, Result};
use storage::regular;

/// Reads `KEY` and a value from the command line. The value is TOML where that fits, else text.
///
/// # Errors
/// `CONFIG_INVALID` for an unknown key, or a value that the key does not take.
pub fn setting(key: &str, value: &str) -> Result<toml::Table> {
    let path = path(key)?;
    let made = |value: toml::Value| {
        let mut table = toml::Table::new();
        insert(&mut table, &path, value);
        // The value stands in no file yet.
        let elsewhere = |e: Error| match e.remedy == "fix the file".into() {
            true => Error { remedy: "give another value".into(), ..e },
            false => e,
        };
        Config::checked(table.clone()).map(|_| table).map_err(elsewhere)
    };
    let parsed = format!("v = {value}").parse::<toml::Table>().ok().filter(|it| it.len() == 1);
    match parsed.and_then(|mut it| it.remove("v")).map(made) {
        Some(Ok(table)) => Ok(table),
        Some(Err(e)) => made(value.into()).map_err(|_| e),
        None => made(value.into()),
    }
}

/// Sets one key in the text of a configuration file, and leaves every other line as it is.
///
/// # Errors
/// `CONFIG_INVALID` as [`setting`], or where the text cannot be changed line by line.
pub fn set(text: &str, key: &str, value: &str) -> Result<String> {
    let path = path(key)?;
    let table = setting(key, value)?;
    let value = get(&table, &path).cloned().unwrap_or(toml::Value::Boolean(false));
    let mut wanted: toml::Table = text.parse().map_err(invalid)?;
    insert(&mut wanted, &path, value.clone());
    let changed = replaced(text, &path, &value).unwrap_or_else(|| added(text, &path, &value));
    // The lines were changed without a parser, so a parser has the last word.
    if changed.parse::<toml::Table>().ok().as_ref() != Some(&wanted) {
        let message = format!("`{key}` is written in a way that pixir does not change");
        return Err(Error::new(Code::ConfigInvalid, message, "change it in the file yourself").with("input", key));
    }
    Config::parse(&changed).map(|_| changed)
}

/// Takes one key out of the text of a configuration file, and leaves every other line as it is. A section that has nothing else
/// goes with it.
///
/// # Errors
/// `CONFIG_INVALID` for an unknown key, or where the text cannot be changed line by line.
pub fn unset(text: &str, key: &str) -> Result<String> {
    let path = path(key)?;
    let mut wanted: toml::Table = text.parse().map_err(invalid)?;
    if !remove(&mut wanted, &path) {
        return Ok(text.to_owned());
    }
    let changed = without(text, &path);
    let mut left: toml::Table = changed.parse().map_err(invalid)?;
    prune(&mut left);
    prune(&mut wanted);
    if left != wanted {
        let message = format!("`{key}` is written in a way that pixir does not change");
        return Err(Error::new(Code::ConfigInvalid, message, "remove it from the file yourself").with("input", key));
    }
    Config::parse(&changed).map(|_| changed)
}

/// Removes the value at this path. False if there is none.
fn remove(table: &mut toml::Table, path: &[String]) -> bool {
    match path {
        [] => false,
        [name] => table.remove(name).is_some(),
        [name, rest @ ..] => {
            table.get_mut(name).and_then(toml::Value::as_table_mut).is_some_and(|below| remove(below, rest))
        }
    }
}

/// Removes sections without a value.
fn prune(table: &mut toml::Table) {
    table.iter_mut().filter_map(|(_, value)| value.as_table_mut()).for_each(prune);
    table.retain(|_, value| value.as_table().is_none_or(|it| !it.is_empty()));
}

/// The text without the line that has the value at this path, and without its section if that is empty then.
fn without(text: &str, path: &[String]) -> String {
    let mut open: Vec<String> = Vec::new();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut header = None;
    let found = lines.iter().enumerate().position(|(at, line)| {
        if let Some(section) = section(line) {
            (open, header) = (section, Some(at));
            return false;
        }
        let table = line.parse::<toml::Table>().ok().filter(|it| !it.is_empty());
        table.is_some_and(|table| [open.clone(), only_path(&table)].concat() == path)
    });
    let Some(found) = found else { return text.to_owned() };
    lines.remove(found);
    if let Some(header) = header {
        let end = lines[header + 1..].iter().position(|line| line.trim_start().starts_with('['));
        let end = end.map_or(lines.len(), |at| header + 1 + at);
        if lines[header + 1..end].iter().all(|line| line.trim().is_empty()) {
            lines.drain(header..end);
            // The blank line above the section was its own.
            if lines.len() == header && header > 0 && lines[header - 1].trim().is_empty() {
                lines.pop();
            }
        }
    }
    lines.concat()
}

/// A configuration file with one key set, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    file: PathBuf,
    before: String,
    after: String,
}

impl Change {
    /// Sets one key in a copy of a configuration file. A missing file counts as empty.
    ///
    /// # Errors
    /// As [`set`], with the path.
    pub fn of(file: &Path, key: &str, value: &str) -> Result<Change> {
        Change::made(file, |before| set(before, key, value))
    }

    /// Takes one key out of a copy of a configuration file.
    ///
    /// # Errors
    /// As [`unset`], with the path.
    pub fn without(file: &Path, key: &str) -> Result<Change> {
        Change::made(file, |before| unset(before, key))
    }

    /// Adds a section at the end of a copy of a configuration file. A missing file counts as empty.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where the file with it is not valid, with the path.
    pub fn with_section(file: &Path, section: &str) -> Result<Change> {
        Change::made(file, |before| {
            let gap = match before {
                "" => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            let after = format!("{before}{gap}{section}");
            Config::parse(&after).map(|_| after)
        })
    }

    /// Takes a section, and those below it, out of a copy of a configuration file.
    ///
    /// # Errors
    /// `CONFIG_INVALID` where the text cannot be changed line by line, with the path.
    pub fn without_section(file: &Path, key: &str) -> Result<Change> {
        Change::made(file, |before| {
            let path = path(key)?;
            let mut wanted: toml::Table = before.parse().map_err(invalid)?;
            remove(&mut wanted, &path);
            let mut is_its = false;
            let kept = before.split_inclusive('\n').filter(|line| {
                if let Some(open) = section(line) {
                    is_its = open.starts_with(&path);
                }
                !is_its
            });
            let after = kept.collect::<String>();
            let mut left: toml::Table = after.parse().map_err(invalid)?;
            prune(&mut left);
            prune(&mut wanted);
            if left != wanted {
                let message = format!("`{key}` is written in a way that pixir does not change");
                return Err(
                    Error::new(Code::ConfigInvalid, message, "remove it from the file yourself").with("input", key)
                );
            }
            Config::parse(&after).map(|_| after.trim_end().to_owned() + if after.trim().is_empty() { "" } else { "\n" })
        })
    }

    fn made(file: &Path, change: impl FnOnce(&str) -> Result<String>) -> Result<Change> {
        Config::load(file)?;
        let before = match regular::read_to_string(file) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(|e| unwritten(file, &e))?,
        };
        let named = |e: Error| Error { message: format!("{}: {}", file.display(), e.message), ..e };
        let after = change(&before).map_err(named)?;
        Ok(Change { file: file.to_owned(), before, after })
    }

    /// Writes the file, if anything in it changes.
    ///
    /// # Errors
    /// `WRITE_FAILED`.
    pub fn write(&self) -> Result<()> {
        if self.after == self.before {
            return Ok(());
        }
        write(&self.file, &self.after).map_err(|e| unwritten(&self.file, &e))
    }
}

fn unwritten(file: &Path, e: &std::io::Error) -> Error {
    let message = format!("write {}: {e}", file.display());
    Error::new(Code::WriteFailed, message, "make the file and its folder writable")
}

/// Replaces a file as a whole. Where it is a symlink, as with files that are kept in a repository, its target is replaced.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Ok(old) = std::fs::metadata(&path) {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path).map(drop).map_err(|e| e.error)
}

/// The parts of a dotted key.
fn path(key: &str) -> Result<Vec<String>> {
    let unknown = || {
        let message = format!("`{}` is not a key", key.escape_debug());
        Error::new(Code::ConfigInvalid, message, "a name such as effort or limits.max_rounds").with("input", key)
    };
    let table: toml::Table = format!("{key} = false").parse().map_err(|_| unknown())?;
    let path = only_path(&table);
    // Anything else than a key would have made another table.
    let mut same = toml::Table::new();
    insert(&mut same, &path, false.into());
    if same == table && !key.contains('\n') { Ok(path) } else { Err(unknown()) }
}

/// The section that a line opens.
fn section(line: &str) -> Option<Vec<String>> {
    let is_header = line.trim_start().starts_with('[') && !line.trim_start().starts_with("[[");
    let table = is_header.then(|| line.parse::<toml::Table>().ok()).flatten()?;
    Some(only_path(&table))
}

/// The text with the value replaced in the line that has it.
fn replaced(text: &str, path: &[String], value: &toml::Value) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        if let Some(section) = section(line) {
            open = section;
            continue;
        }
        let Ok(table) = line.parse::<toml::Table>() else { continue };
        if table.is_empty() || [open.clone(), only_path(&table)].concat() != path {
            continue;
        }
        let (key, rest) = line.split_once('=')?;
        // The comment is what follows the shortest part of the line that means the same.
        let ends = rest.match_indices('#').map(|(at, _)| at);
        let same =
            |end: &usize| format!("{key}={}", &rest[..*end]).parse::<toml::Table>().ok().as_ref() == Some(&table);
        let comment = ends.into_iter().find(same).map_or("", |end| rest[end..].trim_end());
        let gap = if comment.is_empty() { "" } else { "  " };
        let line = format!("{}= {value}{gap}{comment}\n", with_blank(key));
        let lines = text.split_inclusive('\n').enumerate();
        return Some(lines.map(|(n, old)| if n == at { line.as_str() } else { old }).collect());
    }
    None
}

fn with_blank(key: &str) -> String {
    if key.ends_with(char::is_whitespace) { key.to_owned() } else { format!("{key} ") }
}

/// The text with a new line for the value, in its section.
fn added(text: &str, path: &[String], value: &toml::Value) -> String {
    let Some((name, folder)) = path.split_last() else { return text.to_owned() };
    let line = format!("{} = {value}\n", dotted(std::slice::from_ref(name)));
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|it| !it.ends_with('\n')) {
        last.push('\n');
    }
    let starts: Vec<usize> =
        lines.iter().enumerate().filter(|(_, it)| it.trim_start().starts_with('[')).map(|(at, _)| at).collect();
    let own = if folder.is_empty() {
        Some(0)
    } else {
        starts.iter().find(|at| section(&lines[**at]).as_deref() == Some(folder)).map(|at| at + 1)
    };
    let Some(own) = own else {
        let gap = if lines.is_empty() { "" } else { "\n" };
        lines.push(format!("{gap}[{}]\n{line}", dotted(folder)));
        return lines.concat();
    };
    let end = starts.iter().copied().find(|at| *at >= own).unwrap_or(lines.len());
    let is_last = end == lines.len();
    let mut at = end;
    // The comment above the next section belongs to that section.
    while !is_last && at > own && lines[at - 1].trim_start().starts_with('#') {
        at -= 1;
    }
    while at > own && lines[at - 1].trim().is_empty() {
        at -= 1;
    }
    let gap = if !is_last && !lines[at].trim().is_empty() { "\n" } else { "" };
    lines.insert(at, format!("{line}{gap}"));
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_set_and_everything_else_stays() {
        let text =
            "# mine\nmodel = \"a/b\"  # the usual one\n\n[screen]\nvim = true\n\n# keys\n[keys]\ntree = [\"f5\"]\n";
        let set = |text: &str, key: &str, value: &str| set(text, key, value).expect(key);
        assert_eq!(set(text, "model", "c/d#e"), text.replace("\"a/b\"", "\"c/d#e\""));
        assert_eq!(set(text, "effort", "high"), text.replace("one\n", "one\neffort = \"high\"\n"));
        assert_eq!(set(text, "screen.mouse", "false"), text.replace("true\n", "true\nmouse = false\n"));
        assert_eq!(set(text, "limits.max_rounds", "7"), format!("{text}\n[limits]\nmax_rounds = 7\n"));
        assert_eq!(set("", "theme", "dark"), "theme = \"dark\"\n");
        assert_eq!(set("model = 'a/b'", "theme", "dark"), "model = 'a/b'\ntheme = \"dark\"\n");
        assert_eq!(set("limits.max_rounds = 3\n", "limits.max_rounds", "4"), "limits.max_rounds = 4\n");
    }

    #[test]
    fn a_key_is_unset_and_everything_else_stays() {
        let text =
            "# mine\nmodel = \"a/b\"  # the usual one\n\n[screen]\nvim = true\n\n# keys\n[keys]\ntree = [\"f5\"]\n";
        let unset = |text: &str, key: &str| unset(text, key).expect(key);
        assert_eq!(unset(text, "model"), text.replace("model = \"a/b\"  # the usual one\n", ""));
        assert_eq!(unset(text, "effort"), text, "it is not there");
        assert_eq!(unset(text, "keys.tree"), text.replace("[keys]\ntree = [\"f5\"]\n", ""));
        assert_eq!(unset("theme = \"dark\"\n\n[limits]\nmax_rounds = 7\n", "limits.max_rounds"), "theme = \"dark\"\n");
        assert_eq!(unset("limits.max_rounds = 3\n", "limits.max_rounds"), "");
        assert!(super::unset("environment = [\n  \"A\",\n]\n", "environment").is_err());
        assert!(super::unset("", "effrt").is_ok(), "an unknown key is not there");
    }

    #[test]
    fn a_value_that_does_not_fit_and_a_line_that_cannot_be_changed_are_refused() {
        assert_eq!(set("", "effrt", "high").expect_err("unknown").remedy.plain(), "did you mean effort?");
        assert!(set("", "limits.max_rounds", "many").is_err());
        assert!(set("", "effort = \"low\" #", "high").is_err());
        assert!(set("environment = [\n  \"A\",\n]\n", "environment", "[\"B\"]").is_err());
    }
}
