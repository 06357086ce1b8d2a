//! Commands of git that only read, with the options that keep them so.

use super::Operands::{Files, None as Nothing, OneFile, PatternThenFiles, Text, With, Words};
use super::{GIT_GREP, Known, PLAIN, known, with_pattern};

const DIFF: &str = " stat[=] numstat shortstat dirstat[=] summary name-only name-status cached staged color[=] no-color unified[=] word-diff[=] word-diff-regex= color-words[=] minimal patience histogram diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines find-renames[=] find-copies[=] no-renames relative[=] raw patch no-patch full-index abbrev[=] merge-base exit-code quiet check diff-filter= no-index pickaxe-regex pickaxe-all function-context inter-hunk-context= no-prefix compact-summary no-ext-diff no-textconv";
const LOG: &str = " oneline graph all decorate[=] no-decorate branches[=] tags[=] remotes[=] since= until= after= before= author= committer= grep= max-count= skip= no-merges merges reverse format[=] pretty[=] date= first-parent follow abbrev-commit no-abbrev-commit topo-order date-order author-date-order left-right cherry-pick cherry-mark cherry simplify-by-decoration full-history walk-reflogs invert-grep regexp-ignore-case extended-regexp perl-regexp fixed-strings all-match source no-walk[=] children parents boundary ancestry-path count exclude= glob= max-parents[=] min-parents[=] no-notes encoding= relative-date";

macro_rules! joined {
    ($($piece:expr),+) => {{
        const PIECES: &[&str] = &[$($piece),+];
        const LEN: usize = { let (mut len, mut i) = (0, 0); while i < PIECES.len() { len += PIECES[i].len(); i += 1; } len };
        const BYTES: [u8; LEN] = {
            let (mut bytes, mut at, mut i) = ([0; LEN], 0, 0);
            while i < PIECES.len() {
                let (piece, mut j) = (PIECES[i].as_bytes(), 0);
                while j < piece.len() { bytes[at] = piece[j]; at += 1; j += 1; }
                i += 1;
            }
            bytes
        };
        match std::str::from_utf8(&BYTES) { Ok(text) => text, Err(_) => panic!("the pieces are text") }
    }};
}

const DIFF_AND_LOG: &str = joined!(DIFF, LOG);
const LISTS: &str = "list contains no-contains merged no-merged points-at";
/// Of branches, old versions of git take `-l` for something else.
const LISTS_OF_TAGS: &str = "l list contains no-contains merged no-merged points-at";

/// Commands of git. They also need a repository that names no programs.
pub(in crate::readers) const GIT: &[Known] = &[
    known(
        "status",
        PLAIN,
        "sbu::vz",
        "short branch porcelain[=] long verbose untracked-files[=] ignored[=] column[=] no-column no-renames show-stash ahead-behind no-ahead-behind",
        Files,
    ),
    known("diff", PLAIN, "wbuM::C::B::RaDpz0123456789sS:G:U::l:", DIFF, Files),
    known("log", PLAIN, "pwbuM::C::B::RacmtziEFPgs0123456789n:S:G:U::L:l:", DIFF_AND_LOG, Files),
    known("show", PLAIN, "pwbuM::C::B::Racmtzs0123456789n:S:G:U::", DIFF_AND_LOG, Files),
    known(
        "ls-files",
        PLAIN,
        "mdocztsuikvx:",
        "modified others exclude-standard cached deleted stage unmerged ignored full-name error-unmatch eol directory exclude=",
        Files,
    ),
    known(
        "ls-tree",
        PLAIN,
        "rdtlz",
        "name-only name-status full-name full-tree object-only long format= abbrev[=]",
        Files,
    ),
    known("cat-file", PLAIN, "tspe", "", Files),
    known(
        "rev-parse",
        PLAIN,
        "q",
        "show-toplevel abbrev-ref[=] short[=] verify git-dir git-common-dir absolute-git-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository show-prefix show-cdup symbolic-full-name symbolic quiet all branches[=] tags[=] remotes[=] show-superproject-working-tree",
        Files,
    ),
    known("rev-list", PLAIN, "n:0123456789", DIFF_AND_LOG, Files),
    known(
        "blame",
        PLAIN,
        "wcselpfntkM::C::L:",
        "date= porcelain line-porcelain show-email show-name show-number root since= reverse first-parent abbrev[=]",
        Files,
    ),
    known(
        "branch",
        PLAIN,
        "avrl",
        "all remotes list show-current verbose contains[=] no-contains[=] merged[=] no-merged[=] sort= format= points-at= color[=] no-color column[=] no-column ignore-case abbrev[=]",
        With(LISTS),
    ),
    known(
        "tag",
        PLAIN,
        "ln::i",
        "list sort= format= contains[=] no-contains[=] merged[=] no-merged[=] points-at= color[=] column[=] no-column ignore-case",
        With(LISTS_OF_TAGS),
    ),
    known("remote", PLAIN, "v", "verbose", Nothing),
    known("remote get-url", PLAIN, "", "all push", Text),
    known("stash list", PLAIN, "p0123456789n:", DIFF_AND_LOG, Nothing),
    known("stash show", PLAIN, "pu0123456789", DIFF, Files),
    with_pattern(
        known(
            "grep",
            GIT_GREP,
            "niwlLcvEFGPohHIpWqzar0123456789A:B:C:m:e:",
            "line-number ignore-case files-with-matches files-without-match name-only count cached untracked and or not all-match heading break show-function function-context max-depth= fixed-strings extended-regexp perl-regexp basic-regexp word-regexp invert-match only-matching color[=] no-color threads= column max-count= quiet text null context= after-context= before-context=",
            PatternThenFiles,
        ),
        &["-e"],
    ),
    known(
        "describe",
        PLAIN,
        "",
        "tags long all always abbrev[=] match= exclude= contains candidates= first-parent exact-match dirty[=]",
        Files,
    ),
    known("merge-base", PLAIN, "a", "all octopus is-ancestor fork-point independent", Files),
    // A repository with submodules asks anyway.
    known("submodule status", PLAIN, "", "cached recursive quiet", Nothing),
    known("worktree list", PLAIN, "vz", "porcelain verbose", Nothing),
    known("shortlog", PLAIN, "snec0123456789", DIFF_AND_LOG, Files),
    known("reflog", PLAIN, "0123456789n:", DIFF_AND_LOG, Nothing),
    known("reflog show", PLAIN, "0123456789pn:", DIFF_AND_LOG, Files),
    known("show-ref", PLAIN, "dsq", "heads tags head hash[=] abbrev[=] verify branches dereference exists", Files),
    known(
        "for-each-ref",
        PLAIN,
        "",
        "sort= format= count= contains[=] merged[=] no-merged[=] points-at= ignore-case exclude=",
        Files,
    ),
    known("name-rev", PLAIN, "", "name-only tags refs= all always", Files),
    known("symbolic-ref", PLAIN, "q", "short quiet", OneFile),
    known("count-objects", PLAIN, "vH", "verbose human-readable", Nothing),
    known("check-ignore", PLAIN, "vnq", "verbose non-matching no-index quiet", Files),
    known("diff-tree", PLAIN, "rpzt", joined!(" root no-commit-id always", DIFF_AND_LOG), Files),
    known("var", PLAIN, "l", "", Words("GIT_AUTHOR_IDENT GIT_COMMITTER_IDENT GIT_DEFAULT_BRANCH")),
    known(
        "config",
        PLAIN,
        "lz",
        "list show-origin show-scope name-only local global system worktree null get get-all get-regexp bool int",
        With("l list get get-all get-regexp"),
    ),
    known("version", PLAIN, "", "build-options", Nothing),
];
