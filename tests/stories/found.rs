//! Nothing is hidden: names with characters of patterns, ignored files, matches far out in a line, what a path really is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;

use crate::driver::Pixir;
use crate::shell::{Shell, output, tool};

/// Names that frameworks give to files.
const NAMES: [&str; 12] = [
    "app/[id]/page.tsx",
    "app/[...slug]/page.tsx",
    "app/[[...all]]/page.tsx",
    "app/(group)/layout.tsx",
    "app/@modal/(.)photo/[id]/page.tsx",
    "{a}.txt",
    "{a,b}.txt",
    "*.txt",
    "!x.txt",
    "what?.txt",
    "[id.txt",
    "routes/$id.tsx",
];

/// Broken build (ce783d9e): `[id]` is a class of characters for `find` and the `glob` of `grep`, and `!x` excludes in a mention.
#[test]
fn a_file_is_found_by_its_own_name() {
    let files: Vec<(&str, &str)> = NAMES.iter().map(|name| (*name, "needle\n")).collect();
    let shell = Shell::new(&files);
    shell.write("app/i/page.tsx", "needle\n");
    for path in NAMES {
        let name = path.rsplit('/').next().expect("a name");
        for pattern in [path, name] {
            let found = output(&shell, "find", json!({ "pattern": pattern }));
            assert!(found.lines().any(|line| line == path), "find {pattern}: {found}");
            let matched = output(&shell, "grep", json!({ "pattern": "needle", "glob": pattern }));
            assert!(matched.contains(&format!("{path}:1:needle")), "grep {pattern}: {matched}");
        }
        assert!(output(&shell, "read", json!({ "path": path })).contains("needle"), "{path}");
        let below = output(&shell, "grep", json!({ "pattern": "needle", "path": path }));
        assert!(below.contains("1:needle"), "{path}: {below}");
    }
    let both = output(&shell, "find", json!({ "pattern": "app/[id]/*.tsx" }));
    assert!(both.contains("app/[id]/page.tsx") && both.contains("app/i/page.tsx"), "a pattern stays one: {both}");
}

/// The mention of a file whose name begins with `!` or `^` offers it.
///
/// Broken build (ce783d9e): `!x` offers every file but that one.
#[tokio::test]
async fn a_mention_takes_each_letter_for_itself() {
    for name in ["!x.txt", "^top.txt", "[id].txt", "'quoted.txt", "cost$.txt"] {
        let mut pixir = Pixir::new(vec![], &[(name, "words\n"), ("other.txt", "words\n")]);
        let screen = pixir.does(&format!("@{}", name.trim_end_matches(".txt"))).await;
        assert!(screen.contains(name) && !screen.contains("other.txt"), "{name}: {screen}");
    }
}

/// What rules ignore is counted, and can be asked for.
///
/// Broken build (ce783d9e): an ignored file looks absent.
#[test]
fn ignored_files_are_counted_and_can_be_searched() {
    let shell = Shell::new(&[
        (".gitignore", "*.local\nbuild/\nsecret.txt\n"),
        ("a.txt", "needle\n"),
        ("conf.local", "needle\n"),
        ("build/out.txt", "needle\n"),
        ("build/deep/out.txt", "needle\n"),
        ("secret.txt", "needle\n"),
    ]);
    assert!(Command::new("git").args(["init", "-q"]).current_dir(shell.workspace()).status().expect("git").success());
    let cases = [
        ("find", json!({ "pattern": "*.txt" }), "a.txt", "3 ignored files match too; pass ignored: true"),
        ("find", json!({ "pattern": "*.local" }), "no file matches", "1 ignored file matches too"),
        (
            "grep",
            json!({ "pattern": "needle" }),
            "a.txt:1:needle",
            "4 ignored files were not searched; pass ignored: true",
        ),
        (
            "grep",
            json!({ "pattern": "needle", "glob": "*.local" }),
            "no match in 0 files",
            "1 ignored file was not searched",
        ),
        ("grep", json!({ "pattern": "absent", "glob": "out.txt" }), "no match", "2 ignored files were not searched"),
    ];
    for (name, args, has, note) in cases {
        let text = output(&shell, name, args.clone());
        assert!(text.contains(has) && text.contains(note), "{name} {args}: {text}");
    }
    for (name, args) in [
        ("find", json!({ "pattern": "out.txt", "ignored": true })),
        ("grep", json!({ "pattern": "needle", "ignored": true })),
    ] {
        let text = output(&shell, name, args);
        assert!(text.contains("build/deep/out.txt") && !text.contains("ignored file"), "{name}: {text}");
    }
    let plain = Shell::new(&[("a.txt", "needle\n")]);
    assert!(!output(&plain, "grep", json!({ "pattern": "needle" })).contains("ignored"), "nothing is ignored here");
}

/// The match of a long line is shown, with the column by which `read` goes there.
///
/// Broken build (ce783d9e): the first 400 characters of the line, without the match.
#[test]
fn a_match_in_a_long_line_is_shown_with_its_column() {
    let shell = Shell::new(&[]);
    let filler = |n: usize, text: &str| text.repeat(n);
    for (name, before, after) in [
        ("ascii.js", filler(60_000, "x"), filler(60_000, "y")),
        ("wide.js", filler(20_000, "é中"), filler(20_000, "é中")),
        ("start.js", String::new(), filler(60_000, "y")),
        ("end.js", filler(60_000, "x"), String::new()),
        ("twice.js", filler(9_000, "x"), format!("{}needle{}", filler(9_000, "y"), filler(90, "z"))),
    ] {
        shell.write(name, &format!("first\n{before}needle{after}\nlast\n"));
        let text = output(&shell, "grep", json!({ "pattern": "needle", "path": name }));
        let column = before.len() + 1;
        assert!(text.starts_with(&format!("{name}:2:[column {column}")) && text.contains("needle"), "{name}: {text}");
        assert!(text.len() < 2_500, "{name}: {}", text.len());
        let page = output(&shell, "read", json!({ "path": name, "offset": 2, "column": column, "limit": 1 }));
        assert!(page.contains("needle"), "{name}: {}", &page[..page.len().min(200)]);
    }
    assert!(
        output(&shell, "grep", json!({ "pattern": "needle", "path": "twice.js" })).contains("1 more match"),
        "both are counted"
    );
    shell.write("short.txt", "a needle\n");
    assert!(
        output(&shell, "grep", json!({ "pattern": "needle", "path": "short.txt" }))
            .starts_with("short.txt:1:a needle\n")
    );
}

/// An error about a name says what stands there.
///
/// Broken build (ce783d9e): "there is no `link`. Use: link (did you mean that?)".
#[test]
fn an_error_about_a_name_never_suggests_the_same_name() {
    let shell = Shell::new(&[("near.txt", "x\n")]);
    let at = shell.workspace();
    symlink("missing", at.join("broken")).expect("a symlink");
    fs::write(at.join("cafe\u{301}.txt"), "decomposed\n").expect("write");
    fs::write(at.join("Ångström.md"), "composed\n").expect("write");
    fs::write(at.join(OsStr::from_bytes(b"latin\xe9.txt")), "bytes\n").expect("write");
    let cases = [
        ("broken", "is a symlink to `missing`, where nothing is"),
        ("caf\u{e9}.txt", "looks the same and is spelt `cafe\\xcc\\x81.txt`"),
        ("A\u{30a}ngstro\u{308}m.md", "looks the same and is spelt"),
        ("latin\u{fffd}.txt", "looks the same and is spelt `latin\\xe9.txt`"),
        ("neat.txt", "near.txt (did you mean that?)"),
    ];
    for (name, says) in cases {
        let text = output(&shell, "read", json!({ "path": name }));
        assert!(text.contains(says), "{name}: {text}");
        assert!(!text.contains(&format!("{name} (did you mean that?)")), "{name}: {text}");
    }
    // The spelling that it names works in bash.
    let ran = tool(&shell, "bash", &json!({ "command": "cat $'cafe\\xcc\\x81.txt' $'latin\\xe9.txt'" }), &["--write"]);
    assert!(ran.stdout.contains("decomposed") && ran.stdout.contains("bytes"), "{ran:?}");
}
