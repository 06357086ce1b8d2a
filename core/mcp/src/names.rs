//! Names of the tools of servers, as a model calls them: `SERVER__TOOL`.

use std::collections::BTreeMap;

/// The longest name that every Provider accepts.
const LONGEST: usize = 64;
/// What is left of a name before `_` and eight digits of its hash.
const CUT: usize = 55;

/// The name of each tool of one server, by the server's own names. Names that are too long, or that would be alike, end in a
/// hash, each of them, so that no name depends on the order of the list. Tools that are alike all the same have none: a call
/// could mean either of them.
pub(crate) fn of(server: &str, raw: &[&str]) -> BTreeMap<String, String> {
    let mut plain: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in raw {
        plain.entry(written(server, name)).or_default().push(name);
    }
    let mut names = BTreeMap::new();
    for (shown, raw) in plain {
        let is_fine = raw.len() == 1 && shown.len() <= LONGEST;
        for name in raw {
            names.insert(name.to_owned(), if is_fine { shown.clone() } else { hashed(server, name, &shown) });
        }
    }
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for shown in names.values() {
        *owners.entry(shown.clone()).or_default() += 1;
    }
    names.retain(|_, shown| owners[shown] == 1);
    names
}

fn written(server: &str, raw: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    format!("{server}__{}", raw.chars().map(letter).collect::<String>())
}

fn hashed(server: &str, raw: &str, shown: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(server.as_bytes()).update(raw.as_bytes());
    // All of it is ASCII.
    format!("{}_{}", &shown[..shown.len().min(CUT)], &hash.finalize().to_hex()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: the second of two names alike keeps the plain one; a name is cut without its hash.
    #[test]
    fn every_tool_has_a_name_of_its_own_that_a_provider_accepts() {
        let long = "x".repeat(80);
        let raw = ["git.log", "git/log", "plain", "ünïcode", "", &long];
        let names = of("git", &raw);
        let all: std::collections::BTreeSet<&String> = names.values().collect();
        assert_eq!(all.len(), raw.len(), "{names:?}");
        assert!(
            all.iter().all(|it| it.len() <= 64 && it.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)))
        );
        assert_eq!(names["plain"], "git__plain");
        assert!(names["git.log"].starts_with("git__git_log_") && names["git/log"].starts_with("git__git_log_"));
        assert_eq!((names[&long].len(), &names[&long][..8]), (64, "git__xxx"));
        let taken = names["git.log"].trim_start_matches("git__").to_owned();
        let hostile = of("git", &["git.log", "git/log", "plain", &taken]);
        assert_eq!(hostile.keys().collect::<Vec<_>>(), ["git/log", "plain"], "two tools have one name");
        let reversed: Vec<&str> = raw.iter().rev().copied().collect();
        assert_eq!(of("git", &reversed), names);
    }
}
