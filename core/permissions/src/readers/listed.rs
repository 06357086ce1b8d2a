//! Names of files that one program lists and another one opens: `find src -name '*.rs' | xargs wc -l`.

use std::path::Path;

use super::place::{Found, Ground, Names};
use super::words::Argument;

/// How the reader of a list tells one name from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Split {
    /// At blanks and line ends, and quotes have a meaning.
    Blanks,
    /// At line ends.
    Lines,
    /// At NUL bytes.
    Nul,
}

/// Why words that come from another program are not judged.
pub(super) const NOT_KNOWN_BEFORE: &str = "it opens what another program prints, which is not known before";

/// Proves that a program prints nothing but names of files below folders of the workspace, that no symlink there leads out, and
/// that a reader which splits them so gets the same names.
pub(super) fn check(producer: &[Argument], split: Split, folder: &Path, ground: &Ground<'_>) -> Result<(), String> {
    let not_known = || NOT_KNOWN_BEFORE.to_owned();
    // A name that appears after this judgement, with a blank in it, becomes another path. The kernel refuses that one.
    if split == Split::Blanks && !ground.is_confined {
        return Err("no sandbox works on this machine, and names of files are split at blanks".into());
    }
    let list = List::of(producer).ok_or_else(not_known)?;
    if list.ends_with_nul != (split == Split::Nul) {
        return Err(not_known());
    }
    let names = match split {
        Split::Blanks => Names::Words,
        Split::Lines => Names::Lines,
        Split::Nul => Names::NoFlags,
    };
    for root in list.roots {
        if root.is_empty() || root == "-" || root.starts_with('~') {
            return Err(not_known());
        }
        // The names are printed behind this one, as it is written.
        names.check(root)?;
        match ground.locate(root, folder)? {
            Found::Folder(real) => ground.check_names(&real, names)?,
            Found::File | Found::Missing => {}
        }
    }
    Ok(())
}

/// What a program lists.
#[derive(Debug, PartialEq, Eq)]
struct List<'a> {
    /// Files, and folders that it walks.
    roots: Vec<&'a str>,
    ends_with_nul: bool,
}

/// A program that lists names of files, with the flags under which it prints nothing else.
struct Lister {
    program: &'static str,
    /// Letters that may be bundled after one dash.
    short: &'static str,
    /// Letters that take a value.
    valued: &'static str,
    /// Words after two dashes. One that ends with `=` takes a value.
    long: &'static str,
    /// Flags without which it prints more than names.
    lists: &'static [&'static str],
    /// Flags that end names with NUL.
    nul: &'static [&'static str],
    /// Flags that give the pattern, or need none.
    gives_pattern: &'static [&'static str],
    /// Flags without which it reads no folder.
    walks: &'static [&'static str],
}

const LISTERS: [Lister; 4] = [
    Lister {
        program: "grep",
        short: "rlLiFEGPwxsvIZz",
        valued: "e",
        long: "recursive files-with-matches files-without-match ignore-case fixed-strings extended-regexp basic-regexp perl-regexp word-regexp line-regexp no-messages invert-match include= exclude= exclude-dir= null regexp=",
        lists: &["-l", "-L", "--files-with-matches", "--files-without-match"],
        nul: &["-Z", "--null"],
        gives_pattern: &["-e", "--regexp"],
        walks: &["-r", "--recursive"],
    },
    Lister {
        program: "rg",
        short: "liwxFvsSUPu.0",
        valued: "gtTedMm",
        long: "files files-with-matches files-without-match ignore-case smart-case case-sensitive word-regexp line-regexp fixed-strings invert-match hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent multiline glob= iglob= type= type-not= max-count= max-depth= regexp= no-messages sort= null",
        lists: &["-l", "--files", "--files-with-matches", "--files-without-match"],
        nul: &["-0", "--null"],
        gives_pattern: &["-e", "--regexp", "--files"],
        walks: &[],
    },
    Lister { program: "fd", ..FD },
    Lister { program: "fdfind", ..FD },
];
const FD: Lister = Lister {
    program: "fd",
    short: "HIuisgFp01",
    valued: "tdeES",
    long: "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings full-path print0 type= max-depth= min-depth= exact-depth= extension= exclude= size= changed-within= changed-before= max-results=",
    lists: &[],
    nul: &["-0", "--print0"],
    gives_pattern: &[],
    walks: &[],
};

impl<'a> List<'a> {
    /// `None` where the program prints something else, or it is not known what.
    fn of(words: &'a [Argument]) -> Option<List<'a>> {
        if words.iter().any(|it| it.has_unknown) {
            return None;
        }
        let words: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
        let (program, args) = words.split_first()?;
        if *program == "find" {
            return List::of_find(args);
        }
        let lister = LISTERS.iter().find(|it| it.program == *program)?;
        let mut flags: Vec<String> = Vec::new();
        let mut operands: Vec<&str> = Vec::new();
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            match word.strip_prefix('-') {
                Some("-") => {
                    operands.extend(rest.by_ref());
                }
                Some(flag) if !flag.is_empty() => match flag.strip_prefix('-') {
                    Some(long) => {
                        let (name, value) = long.split_once('=').map_or((long, None), |(name, it)| (name, Some(it)));
                        let listed = lister.long.split(' ').find(|it| it.trim_end_matches('=') == name)?;
                        if listed.ends_with('=') && value.is_none() {
                            rest.next()?;
                        }
                        flags.push(format!("--{name}"));
                    }
                    None => {
                        for (at, letter) in flag.char_indices() {
                            flags.push(format!("-{letter}"));
                            if lister.valued.contains(letter) {
                                if flag[at + letter.len_utf8()..].is_empty() {
                                    rest.next()?;
                                }
                                break;
                            }
                            if !lister.short.contains(letter) {
                                return None;
                            }
                        }
                    }
                },
                Some(_) | None => operands.push(word),
            }
        }
        let has = |names: &[&str]| flags.iter().any(|flag| names.contains(&flag.as_str()));
        let roots = match operands.as_slice() {
            operands if has(lister.gives_pattern) => operands.to_vec(),
            [_, roots @ ..] => roots.to_vec(),
            // `fd` alone lists all.
            [] if lister.lists.is_empty() => Vec::new(),
            [] => return None,
        };
        if !lister.lists.is_empty() && !has(lister.lists) {
            return None;
        }
        if roots.is_empty() && !lister.walks.is_empty() && !has(lister.walks) {
            return None;
        }
        let ends_with_nul = has(lister.nul);
        Some(List { roots: if roots.is_empty() { vec!["."] } else { roots }, ends_with_nul })
    }

    /// The folders stand before the tests. Other actions print something else.
    fn of_find(args: &[&'a str]) -> Option<List<'a>> {
        let tests = args.iter().position(|it| it.starts_with(['-', '(', '!'])).unwrap_or(args.len());
        let (roots, tests) = args.split_at(tests);
        let has = |names: &[&str]| tests.iter().any(|it| names.contains(it));
        let ends_with_nul = has(&["-print0"]);
        if has(&["-printf", "-ls", "-exec", "-execdir"]) || (ends_with_nul && has(&["-print"])) {
            return None;
        }
        Some(List { roots: if roots.is_empty() { vec!["."] } else { roots.to_vec() }, ends_with_nul })
    }
}

/// Whether a program passes some of the lines that it is fed on, whole and unchanged, where another one lists them.
pub(super) fn passes_on(producer: &[Argument], words: &[Argument]) -> bool {
    let lists_lines = List::of(producer).is_some_and(|it| !it.ends_with_nul);
    let texts: Vec<&str> = words.iter().map(|it| it.text.as_str()).collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let passes = match texts.as_slice() {
        ["head" | "tail" | "sort" | "uniq"] | ["sort", "-u" | "-r"] => true,
        ["head" | "tail", "-n", count] => is_number(count),
        ["head" | "tail", flag] => flag.strip_prefix('-').is_some_and(|it| is_number(it.trim_start_matches('n'))),
        ["grep", pattern] | ["grep", "-v" | "-i" | "-E" | "-vE" | "-F", pattern] => !pattern.starts_with('-'),
        _ => false,
    };
    lists_lines && passes
}

/// Whether no name of a file makes a program do anything else, where names stand for these of its words.
pub(super) fn takes_names(words: &[&str], is_name: &[bool]) -> bool {
    let is_plain = |words: &[&str]| words.iter().all(|it| !it.starts_with('-'));
    match words {
        _ if is_name.first().is_none_or(|it| *it) => false,
        ["test" | "[", ..] => true,
        // The format and the script stand before the names.
        ["sed", "-n", script, names @ ..] => !is_name[2] && is_plain(&[script]) && is_plain(names),
        ["printf" | "sed" | "awk" | "jq", script, names @ ..] => !is_name[1] && is_plain(&[script]) && is_plain(names),
        [program, ..] => TAKE_NAMES.contains(program),
        [] => false,
    }
}

/// Programs that take names of files, of which none does anything else for a name that is no flag.
pub(super) const TAKE_NAMES: [&str; 18] = [
    "cat",
    "wc",
    "ls",
    "head",
    "tail",
    "grep",
    "stat",
    "file",
    "du",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "echo",
    "basename",
    "dirname",
    "nl",
    "cksum",
    "rg",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<(Vec<String>, bool)> {
        let words: Vec<Argument> =
            words.iter().map(|it| Argument { text: (*it).to_owned(), is_quoted: false, has_unknown: false }).collect();
        List::of(&words).map(|it| (it.roots.iter().map(|&root| root.to_owned()).collect(), it.ends_with_nul))
    }

    /// Broken build: the value of a flag counts as the folder that is walked.
    #[test]
    fn what_a_program_lists_is_known_by_its_words() {
        let roots = |names: &[&str]| names.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        for (words, names, nul) in [
            (&["find", "-name", "sub"][..], &["."][..], false),
            (&["find", "a", "b", "-type", "f", "-print0"], &["a", "b"], true),
            (&["grep", "-rl", "x"], &["."], false),
            (&["grep", "-lZ", "-e", "x", "a"], &["a"], true),
            (&["grep", "-rl", "--include", "*.rs", "x", "src"], &["src"], false),
            (&["rg", "-l", "x"], &["."], false),
            (&["rg", "--files", "-g", "*.rs", "src"], &["src"], false),
            (&["fd"], &["."], false),
            (&["fd", "-0", "-e", "rs", "x", "src"], &["src"], true),
        ] {
            assert_eq!(of(words), Some((roots(names), nul)), "{words:?}");
        }
        for words in [
            &["find", ".", "-printf", "%f"][..],
            &["find", ".", "-print0", "-print"],
            &["find", ".", "-exec", "cat", "{}", "+"],
            // They read what they are fed, and print `(standard input)`.
            &["grep", "-l", "x"],
            &["grep", "-c", "x", "a"],
            &["grep", "-lH", "--color=always", "x", "a"],
            &["rg", "x"],
            &["rg", "-l", "--stats", "x"],
            &["rg", "--files", "--type-list"],
            &["fd", "-a", "x"],
            &["fd", "--color=always"],
            &["ls"],
        ] {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
