//! One setting of a configuration file set, with its comments and its order kept.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::document::Document;
use super::path::{get, insert, only_path};
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
        // No file has this value yet.
        Config::checked_or(table.clone(), "give another value").map(|_| table)
    };
    let parsed = format!("v = {value}").parse::<toml::Table>().ok().filter(|it| it.len() == 1);
    match parsed.and_then(|mut it| it.remove("v")).map(made) {
        Some(Ok(table)) => Ok(table),
        Some(Err(e)) => made(value.into()).map_err(|_| e),
        None => made(value.into()),
    }
}

/// Sets one key in the text of a configuration file, and leaves everything else as it is.
///
/// # Errors
/// `CONFIG_INVALID` as [`setting`], or where the key is a section of the file.
pub fn set(text: &str, key: &str, value: &str) -> Result<String> {
    let path = path(key)?;
    let table = setting(key, value)?;
    let value = get(&table, &path).cloned().unwrap_or(toml::Value::Boolean(false));
    let mut wanted: toml::Table = text.parse().map_err(invalid)?;
    insert(&mut wanted, &path, value.clone());
    let changed = document(text)?.with(&path, &value);
    if changed.parse::<toml::Table>().ok().as_ref() != Some(&wanted) {
        return Err(unchangeable(key, "change it in the file yourself"));
    }
    Config::parse(&changed).map(|_| changed)
}

/// Takes one key out of the text of a configuration file, and leaves everything else as it is. A section that has nothing else
/// goes with it.
///
/// # Errors
/// `CONFIG_INVALID` for an unknown key, or where the key is a section of the file.
pub fn unset(text: &str, key: &str) -> Result<String> {
    removed(text, key, |document, path| document.without(path))
}

/// The text without a key or a section.
fn removed(text: &str, key: &str, change: impl FnOnce(&Document, &[String]) -> String) -> Result<String> {
    let path = path(key)?;
    let mut wanted: toml::Table = text.parse().map_err(invalid)?;
    if !remove(&mut wanted, &path) {
        return Ok(text.to_owned());
    }
    let changed = change(&document(text)?, &path);
    let left = changed.parse::<toml::Table>().ok().map(pruned);
    if left != Some(pruned(wanted)) {
        return Err(unchangeable(key, "remove it from the file yourself"));
    }
    Config::parse(&changed).map(|_| changed)
}

fn document(text: &str) -> Result<Document<'_>> {
    Document::parse(text).map_err(invalid)
}

/// The text was changed without a parser, and a parser reads something else in it than was wanted.
fn unchangeable(key: &str, fix: &str) -> Error {
    let message = format!("`{key}` is written in a way that pixir does not change");
    Error::new(Code::ConfigInvalid, message, fix).with("input", key)
}

/// Removes the value at this path. False if there is none.
pub(super) fn remove(table: &mut toml::Table, path: &[String]) -> bool {
    match path {
        [] => false,
        [name] => table.remove(name).is_some(),
        [name, rest @ ..] => {
            table.get_mut(name).and_then(toml::Value::as_table_mut).is_some_and(|below| remove(below, rest))
        }
    }
}

/// The table without sections that have no value.
pub(super) fn pruned(mut table: toml::Table) -> toml::Table {
    fn prune(table: &mut toml::Table) {
        table.iter_mut().filter_map(|(_, value)| value.as_table_mut()).for_each(prune);
        table.retain(|_, value| value.as_table().is_none_or(|it| !it.is_empty()));
    }
    prune(&mut table);
    table
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
    /// As [`unset`], with the path.
    pub fn without_section(file: &Path, key: &str) -> Result<Change> {
        Change::made(file, |before| {
            let after = removed(before, key, |document, path| document.without_section(path))?;
            // The last section takes the gap above it along.
            Ok(after.trim_end().to_owned() + if after.trim().is_empty() { "" } else { "\n" })
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
        assert_eq!(unset("environment = [\n  \"A\",\n]\n", "environment"), "");
        assert!(super::unset("[limits]\nmax_rounds = 7\n", "limits").is_err(), "a section");
        assert!(super::unset("", "effrt").is_ok(), "an unknown key is not there");
    }

    #[test]
    fn a_value_that_does_not_fit_and_a_whole_section_are_refused() {
        assert_eq!(set("", "effrt", "high").expect_err("unknown").remedy.plain(), "did you mean effort?");
        assert!(set("", "limits.max_rounds", "many").is_err());
        assert!(set("", "effort = \"low\" #", "high").is_err());
        assert!(set("[limits]\nmax_rounds = 7\n", "limits", "{ max_rounds = 8 }").is_err(), "a section");
    }
}
