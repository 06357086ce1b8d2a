use proptest::prelude::*;

use super::*;

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(folder.path().join("src")).expect("mkdir");
    std::fs::create_dir_all(folder.path().join(".git")).expect("mkdir");
    std::fs::write(folder.path().join(".git/config"), "[core]\n\tbare = false\n").expect("write");
    std::os::unix::fs::symlink("/etc", folder.path().join("lnk")).expect("symlink");
    folder
}

#[test]
fn what_people_look_at_all_day_runs_without_a_question() {
    let folder = workspace();
    let root = folder.path().canonicalize().expect("real");
    for command in [
        "ls -la src",
        "cat Cargo.toml",
        "git status",
        "git diff HEAD~1 -- src/main.rs",
        "git show HEAD^",
        "git log --oneline -n 20",
        "grep -rn \"fn main\" src",
        "wc -l src/main.rs",
        "head -n 40 README.md",
        "find . -name \"*.rs\" -type f",
        "ls && pwd",
        "git log --oneline | head",
        "stat Cargo.toml",
        "cat a.txt | grep -i 'needle' | wc -l",
        "echo done; ls",
        "tail -n 5 x.log || true",
        "head -5 a",
        "diff a b",
        "echo \"$HOME\"",
        "ls # a comment",
        "cat <<<x",
        "cat 0<x",
        "ls 2>&1",
        "ls 2>/dev/null",
        "ls >&2",
        "echo \"a$\"",
        "echo \"a\\\"b\"",
        "echo \"!x\"",
        "! ls",
        "time ls",
        "[ -f x ]",
        "if ls; then ls; fi",
        "for a in b; do ls; done",
        "cat a?",
        "ls;",
        "od -w8 -c a",
        "od --width=8 a",
        "date -Iseconds",
        "git status -uno",
        "git diff -U3 -M90%",
        "git log --pretty --format=%h -3",
        "git tag -n2",
        "nm ./@args",
        "zcat a.gz",
        "xxd -c 8 -g1 a",
        "xxd -s -0x10 a",
        "tree -L 2 -I target",
        "awk -F, '{print $2}' a OFS=x",
        "sed 's/[[:space:]]*$//; /[a-z.]*x/p' a",
        "sed -n 's/[^]a]*x/y/p' a",
        "printf '%s\\n' -x",
    ] {
        assert_eq!(prove_read_only(command, &root), Ok(()), "{command}");
    }
}

#[test]
fn whatever_could_do_more_than_read_is_asked_about() {
    let folder = workspace();
    let root = folder.path().canonicalize().expect("real");
    let mut proven = Vec::new();
    for command in [
        "echo x > P",
        "echo x >| P",
        "ls &>P",
        "ls & touch P",
        "ls\ntouch P",
        "ls\rtouch P",
        "ls;touch P",
        "ls|tee P",
        "echo $(touch P)",
        "echo `touch P`",
        "cat <(touch P)",
        "cat <<X\n$(touch P)\nX",
        "{touch,P}",
        "touch${IFS}P",
        "$'\\x74ouch' P",
        "a=touch; $a P",
        "ls # \\\ntouch P",
        "ls() { touch P; }; ls",
        ". ./s",
        "eval 'touch P'",
        "exec touch P",
        "command touch P",
        "env touch P",
        "timeout 5 touch P",
        "xargs touch P",
        "LD_PRELOAD=./e.so ls",
        "./ls",
        "'ls'",
        "find . -exec touch P {} +",
        "find . -delete",
        "find . -fprintf P x",
        "find . '-ex''ec' touch P",
        "sort in -o P",
        "sort -oP in",
        "uniq in P",
        "sed -n 'w P' in",
        "awk 'BEGIN{system(\"touch P\")}'",
        "tar xf a.tar",
        "git -c alias.x='!touch P' x",
        "git log --output=P",
        "git diff --output P",
        "git grep -O'touch P' a",
        "git branch -D x",
        "git config core.hooksPath ./evil",
        "git config edit",
        "git config -z edit",
        "git for-each-ref --sort=signature",
        "git stash",
        "git diff --ext-diff",
        "git diff --textconv",
        "cat /etc/passwd",
        "grep -R x .",
        "grep -eo /etc/passwd",
        "grep -ve -n /etc/passwd",
        "git diff /dev/null /etc/passwd",
        "git diff /etc/passwd /etc/group",
        "git log lnk/x",
        "cat ~root/x",
        "cat a=~/x",
        "cat lnk/passwd",
        "cat ../x",
        "ls /",
        "cat ~/.ssh/id_rsa",
        "grep -r x /etc",
        "grep -f lnk/passwd x",
        "cat 'unclosed",
        "ls |",
        "&& ls",
        "ls ;; ls",
        "cat *",
        "make",
        "python3 -c 'x'",
        "cat \u{202e}x",
        "cat\u{a0}x",
        "ls\u{a0}",
        "\u{3000}ls",
        "ls\u{2003}-l",
        "ls\u{2028}touch P",
        "ls\u{85}touch P",
        "ls \u{feff}",
        "ls\u{200b}",
        "ls\u{b}",
        "ls\u{c}-l",
        "ls\r",
        "ls\r\ntouch P",
        "ls 'a\rb'",
        "ls \"a\nb\"",
        "ls \0x",
        "ls 'a\0b'",
        "ls \\\n-l",
        "ls\\\n",
        "l\\\ns",
        "echo \\ #; touch P",
        "echo a\\\n#; touch P",
        "echo a \\\n#; touch P",
        "echo {}#; touch P",
        "echo ''#; touch P",
        "# a comment",
        "cat <<-X\n\ttouch P\n\tX",
        "cat <<'X' && touch P\nX",
        "ls <>P",
        "ls &>>P",
        "ls {fd}>P",
        "tee >(touch P)",
        "cat =(ls)",
        "ls ${x:-$(touch P)}",
        "echo $[1+1]",
        "echo $$",
        "echo a$",
        "echo $\\\nx",
        "echo $'a'",
        "echo $\"a\"",
        "echo \"`ls`\"",
        "echo !!",
        "coproc ls",
        "{ ls; }",
        "((1))",
        "while ls; do ls; done",
        "case a in a) ls;; esac",
        "function f { ls; }; f",
        "alias ls='touch P'; ls",
        "cat [ab]",
        "cat {a,b}",
        "cat x{1..3}",
        "cat ~",
        "cat x=~",
        "cat x:~/y",
        "cat ^x",
        "a=1",
        "a=1 ls",
        "a+=1 ls",
        "a[0]=1 ls",
        "ls; ;ls",
        "ls | | ls",
        "ls |& cat",
        "ls &&& ls",
        "ls &",
        "ls ||",
        "ls \\",
        "\\ls",
        "\"ls\"",
        "l's'",
        "git 'status'",
        "$(ls",
        "`ls",
        "${ls",
        "cat \"a $(\"",
        "date -s 2020-01-01",
        "tail -f x",
        // Each opens, writes or runs something by a word that another program would take for a name or a value.
        "nm @args",
        "nm -- @args",
        "size -- x @args",
        "readelf -h @args",
        "strings @args",
        "strings -n @args x",
        "less +x",
        "unzip -l '*'",
        "tar -tf host:x",
        "zcat lnk/passwd",
        "od -w /etc/passwd",
        "od --width /etc/passwd",
        "git diff --no-index -U /etc/passwd in",
        "git log --format /etc/passwd",
        "awk '{print}' -F /etc/passwd",
        "awk '{print}' ARGC=5",
        "awk -v ARGV=x '{print}'",
        "xxd -ac in out",
        "xxd in -b",
        "xxd -capitalize in out",
        "sed 's/[/]/g;/w x/p' in",
        "sed '/[/]w x/p' in",
        "sed 's/[^]/]/g;/w x/p' in",
        "sed 's/[\\]/g;/w x/p' in",
        "sed 's/[[:/]/g;/w x/p' in",
        "cat --number=1",
        "tail -cf x",
        "tail -5cf x",
        "date -d 'TZ=\"/etc/passwd\" now'",
    ] {
        if prove_read_only(command, &root).is_ok() {
            proven.push(command);
        }
    }
    assert_eq!(proven, Vec::<&str>::new());
    assert!(prove_read_only(&"ls && ".repeat(9), &root).is_err());
    assert!(prove_read_only(&"a".repeat(3000), &root).is_err());
}

/// Names that another program lists are not judged one by one, so that nothing but a flag may have a meaning.
///
/// Broken build: a program with response files takes names that `find` lists.
#[test]
fn programs_that_take_listed_names_take_them_for_nothing_else() {
    for name in listed::TAKE_NAMES.iter().chain(&arguments::READ_FILES) {
        let known = tables::PROGRAMS.iter().find(|it| it.program == *name).expect(name);
        assert_eq!(known.specials, &[], "{name}");
    }
}

#[test]
fn a_program_without_a_shell_is_judged_by_its_words_as_they_are() {
    let folder = workspace();
    let root = folder.path().canonicalize().expect("real");
    for words in [
        &["cat", "a b", "*", "$HOME", "#", "é"][..],
        // An apostrophe and a leading caret ask on a line of bash; here no shell reads them.
        &["grep", "it's", "src"],
        &["grep", "^fn", "src"],
    ] {
        assert_eq!(prove(words, &root), Ok(()), "{words:?}");
    }
    for words in [
        &[][..],
        &[""],
        &["touch", "P"],
        &["ls "],
        &["cat", "a\nb"],
        &["cat", "../x"],
        &["cat", "lnk/passwd"],
        &["find", ".", "-delete"],
        &["git", "log", "--output=P"],
    ] {
        assert!(prove(words, &root).is_err(), "{words:?}");
    }
    assert!(prove(&["cat", &"a".repeat(2_000)], &root).is_err());
}

#[test]
fn a_repository_that_names_programs_makes_git_ask() {
    let folder = workspace();
    let root = folder.path().canonicalize().expect("real");
    for config in [
        "[core]\n\tworktree = /etc\n",
        "[core] fsmonitor = touch P\n",
        "[CORE]\nAttributesFile=x\n",
        "[include]\npath = x\n",
        "[gpg]\nprogram = touch P\n",
        "[filter \"x\"]\nclean = touch P\n",
        "[merge \"x\"]\ndriver = touch P\n",
        "[remote \"o\"]\nuploadpack = touch P\n",
        "[extensions]\npartialClone = o\n",
        "[core]\nfilemode = true\n[diff \"x\"]\ntextconv = touch P\n",
    ] {
        std::fs::write(root.join(".git/config"), config).expect("write");
        assert!(prove_read_only("git status", &root).is_err(), "{config}");
    }
    let usual = "[core]\n\tbare = false\n# mine\n[remote \"origin\"]\n\turl = git@x:y.git\n\tfetch = +refs/*:refs/*\n[branch \"main\"]\n\tremote = origin\n";
    std::fs::write(root.join(".git/config"), usual).expect("write");
    assert_eq!(prove_read_only("git status", &root), Ok(()));
    std::fs::write(root.join(".git/commondir"), "../evil").expect("write");
    assert!(prove_read_only("git status", &root).is_err());
    std::fs::remove_file(root.join(".git/config")).expect("rm");
    assert!(prove_read_only("git status", &root).is_err());
}

/// Broken build: a key that every second project sets makes git ask.
#[test]
fn the_keys_of_everyday_tools_leave_git_unasked() {
    let folder = workspace();
    let root = folder.path().canonicalize().expect("real");
    for config in [
        "[core]\n\thooksPath = .husky/_\n",
        "[core]\n\tfsmonitor = true\n\tuntrackedCache = true\n\teditor = code --wait\n\tpager = delta\n",
        "[branch \"main\"]\n\tvscode-merge-base = origin/main\n",
        "[remote \"origin\"]\n\tgh-resolved = base\n\tpushurl = git@x:y.git\n",
        "[lfs]\n\turl = https://example.com/lfs\n",
        "[alias]\n\tst = !touch P\n",
        "[color]\n\tui = auto\n[gc]\n\tauto = 0\n[fetch]\n\tprune = true\n[rerere]\n\tenabled = true\n",
        "[commit]\n\tgpgsign = true\n[user]\n\tsigningkey = 0A\n[extensions]\n\tworktreeConfig = true\n",
    ] {
        std::fs::write(root.join(".git/config"), config).expect("write");
        assert_eq!(prove_read_only("git status && git diff && git log", &root), Ok(()), "{config}");
    }
    std::fs::create_dir(root.join(".git/modules")).expect("mkdir");
    assert_eq!(prove_read_only("git status", &root), Ok(()), "an empty folder");
    std::fs::create_dir(root.join(".git/modules/sub")).expect("mkdir");
    assert!(prove_read_only("git status", &root).is_err());
}

/// Blanks that bash does not take for blanks, and what it has a meaning for.
const ATOMS: &[&str] = &[
    "a",
    "in",
    "-",
    "*",
    "?",
    "a*",
    "é",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "'q r'",
    "\"d $ \\ e\"",
    "\\ ",
    "\\(",
    "''",
    "#",
    " # c",
    ";",
    "[",
    "]",
    "!",
    "2>&1",
    "{}",
    "-I{}",
    "{}{a,b}",
    "~",
    "=",
    "$HOME",
    "\u{a0}",
    "\u{85}",
    "\u{1680}",
    "\u{2003}",
    "\u{2007}",
    "\u{2028}",
    "\u{202f}",
    "\u{205f}",
    "\u{3000}",
    "\u{200b}",
    "\u{feff}",
    "\u{b}",
    "\u{c}",
];

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..ProptestConfig::default() })]
    #[test]
    fn the_judged_words_are_those_that_bash_passes(
        before in proptest::sample::select(vec!["", " ", "\t", "\n", "\u{a0}", "\u{2003}", "\r", "\u{3000}"]),
        atoms in proptest::collection::vec(proptest::sample::select(ATOMS), 0..8),
    ) {
        let folder = workspace();
        let root = folder.path().canonicalize().expect("real");
        for name in ["in", "a", "ab"] {
            std::fs::write(root.join(name), "").expect("write");
        }
        std::fs::remove_file(root.join("lnk")).expect("rm");
        let line = format!("{before}printf '%s\\0' {}", atoms.concat());
        let judged = parse(&line, (&root).into());
        let ran = std::process::Command::new("bash")
            .args(["-c", &line])
            .current_dir(&root)
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", "$HOME")
            .output()
            .expect("bash starts");
        if let ([program], Ok(())) = (judged.programs.as_slice(), judged.verdict()) {
            let mut words: Vec<String> = String::from_utf8_lossy(&ran.stdout).split_terminator('\0').map(str::to_owned).collect();
            let mut foreseen = program.words[2..].to_vec();
            if foreseen.is_empty() {
                // The format is printed once, also without a word.
                foreseen.push(String::new());
            }
            // The order of names is that of the user's language.
            words.sort();
            foreseen.sort();
            prop_assert_eq!(foreseen, words, "{:?}", line);
        }
    }
}
