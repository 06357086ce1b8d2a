//! What commands could destroy.

use super::{Covers, Glob, Pattern, base, grave, lasting, may_run};
use protocol::event::Scope;

/// What the commands that a rule covers could destroy, as a clause.
pub fn danger_of(scope: &Scope) -> Option<String> {
    match scope {
        Scope::Command(line) => danger(line).or_else(|| grave(line).into_iter().next()),
        Scope::Pattern(text) => {
            let pattern = Pattern::parse(text).ok()?;
            let words: Vec<&str> = pattern.words.iter().map_while(Glob::literal).collect();
            let reaches = |danger: &str| {
                let danger: Vec<&str> = danger.split(' ').collect();
                base(words[0]) == danger[0].trim_end_matches('*')
                    && words[1..].iter().zip(&danger[1..]).all(|(word, it)| word == it || it.contains('*'))
            };
            let is_open = words.len() < pattern.words.len();
            let listed = DANGERS.iter().find(|(it, _)| reaches(it)).map(|(_, what)| *what);
            listed.or_else(|| lasting::reached(base(words[0]), &words[1..], is_open)).map(str::to_owned)
        }
        Scope::FileChanges
        | Scope::Files(_)
        | Scope::Reads(_)
        | Scope::Writes(_)
        | Scope::Network
        | Scope::Mcp(_)
        | Scope::Unknown => None,
    }
}

/// What a command could destroy, as a clause; `None` where no part of it is known to.
pub fn danger(line: &str) -> Option<String> {
    DANGERS.iter().find_map(|(pattern, what)| {
        let pattern = Pattern::parse(pattern).ok()?;
        let (first, rest) = pattern.words.split_first()?;
        let loose = |words: &[Option<String>]| {
            let program = words.first().and_then(Option::as_deref).is_some_and(|word| first.matches(base(word)));
            let mut rest_words = words.iter().skip(1).flatten();
            program && rest.iter().all(|want| rest_words.any(|word| want.matches(word)))
        };
        may_run(line, &loose, 0).eq(&Covers::Yes).then(|| (*what).to_owned())
    })
}

/// What the commands of a line delete; `None` where that is not known before it runs.
pub fn deleted(line: &str) -> Option<Vec<String>> {
    let found = std::cell::RefCell::new(Some(Vec::new()));
    let note = |words: &[Option<String>]| {
        let program = words.first().and_then(Option::as_deref).map(base);
        let mut found = found.borrow_mut();
        match (program, found.as_mut()) {
            // What follows is relative to another folder.
            (Some("cd" | "pushd" | "popd"), _) => *found = None,
            (Some("rm" | "rmdir"), Some(all)) => {
                let operands = words[1..].iter().filter(|it| it.as_deref().is_none_or(|it| !it.starts_with('-')));
                let known: Option<Vec<String>> = operands.cloned().collect();
                match known {
                    Some(known) => all.extend(known),
                    None => *found = None,
                }
            }
            _ => {}
        }
        false
    };
    may_run(line, &note, 0);
    found.into_inner().filter(|it| !it.is_empty())
}

/// Commands that people regret, and why. The words may have others between them.
const DANGERS: [(&str, &str); 19] = [
    ("rm -*r*", "it deletes folders"),
    ("rm -*R*", "it deletes folders"),
    ("rm -*f*", "it deletes files without asking"),
    ("git push", "it changes the remote repository"),
    ("git reset --hard", "it throws away uncommitted changes"),
    ("git clean -*", "it deletes files that git does not know"),
    ("git checkout -f", "it throws away uncommitted changes"),
    ("git branch -D", "it deletes a branch"),
    ("dd *", "it can overwrite a disk"),
    ("mkfs*", "it erases a disk"),
    ("shred *", "it destroys files"),
    ("truncate *", "it empties files"),
    ("kubectl delete", "it deletes from a cluster"),
    ("terraform destroy", "it deletes what terraform made"),
    ("terraform apply", "it changes what terraform made"),
    ("docker system prune", "it deletes images and containers"),
    ("find -delete", "it deletes files"),
    ("npm publish", "it publishes a package"),
    ("cargo publish", "it publishes a package"),
];
