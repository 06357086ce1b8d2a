//! The programs that are known to only read, with the flags that keep them so.

/// What the words of a program without a dash are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files, which must lie in the workspace.
    Files,
    /// At most one file; a second one would be written to.
    OneFile,
    /// Text.
    Text,
    /// Text, and flags are text too.
    Free,
    /// A pattern, then files.
    PatternThenFiles,
    /// A script of sed, then files.
    SedThenFiles,
    /// A program of awk, then files.
    AwkThenFiles,
    /// A filter of jq, then files.
    JqThenFiles,
    /// Words that begin with a plus sign.
    Plus,
    /// Only these words.
    Words(&'static str),
    /// Files and text, if one of these flags is given; otherwise none.
    With(&'static str),
    /// None at all.
    None,
}

/// A program, or a command of git. An option that is not here makes the program unproven.
pub(super) struct Known {
    pub(super) program: &'static str,
    /// Letters that may be bundled after one dash.
    pub(super) short: &'static str,
    /// Letters that take a value: the rest of the word, or the next word.
    pub(super) valued: &'static str,
    /// Words that may follow two dashes. One that ends with `=` takes a value; the others may have one behind `=`.
    pub(super) long: &'static str,
    /// Words that may follow one dash (`find`).
    pub(super) tests: &'static str,
    /// What the other words are.
    pub(super) operands: Operands,
    /// Flags that give the pattern, so that every operand is a file.
    pub(super) gives_pattern: &'static [&'static str],
}

const fn known(
    program: &'static str,
    short: &'static str,
    valued: &'static str,
    long: &'static str,
    operands: Operands,
) -> Known {
    Known { program, short, valued, long, tests: "", operands, gives_pattern: &[] }
}

const fn with_pattern(it: Known, gives_pattern: &'static [&'static str]) -> Known {
    Known { gives_pattern, ..it }
}

use Operands::{
    AwkThenFiles, Files, Free, JqThenFiles, None as Nothing, OneFile, PatternThenFiles, Plus, SedThenFiles, Text, With,
    Words,
};

const CHECKSUM: &str = "binary text tag zero";

/// Neither a flag that writes, runs a program or follows symlinks is here, nor one that names a file of file names.
pub(super) const PROGRAMS: &[Known] = &[
    known(
        "ls",
        "laAhrtSR1dFisnpGgoQqUXkcuxmNBv",
        "I",
        "all almost-all human-readable recursive reverse classify directory color group-directories-first full-time inode size sort= time= time-style= ignore= numeric-uid-gid si file-type no-group",
        Files,
    ),
    known(
        "cat",
        "nbsAETvetu",
        "",
        "number number-nonblank show-all show-ends show-tabs squeeze-blank show-nonprinting",
        Files,
    ),
    known("tac", "", "", "", Files),
    known("rev", "", "", "", Files),
    known("head", "qvz0123456789", "nc", "lines= bytes= quiet silent verbose", Files),
    known("tail", "qvz0123456789", "nc", "lines= bytes= quiet silent verbose", Files),
    known("wc", "lwcmL", "", "lines words bytes chars max-line-length", Files),
    known("stat", "t", "c", "format= printf= terse", Files),
    known(
        "du",
        "shackmbx0",
        "d",
        "summarize human-readable max-depth= apparent-size total all bytes exclude= si one-file-system threshold=",
        Files,
    ),
    known("df", "hTiakPl", "t", "human-readable print-type inodes all total type=", Files),
    known(
        "cut",
        "sz",
        "dfcb",
        "delimiter= fields= characters= bytes= only-delimited complement output-delimiter=",
        Files,
    ),
    known("nl", "p", "bhfnivwsld", "", Files),
    known("paste", "sz", "d", "serial delimiters=", Files),
    known("fold", "bs", "w", "width= spaces bytes", Files),
    known("expand", "i", "t", "tabs= initial", Files),
    known("unexpand", "a", "t", "tabs= all first-only", Files),
    known("tr", "dsctC", "", "delete squeeze-repeats complement truncate-set1", Text),
    with_pattern(
        known(
            "grep",
            "rRnilLvcEFGPwxoqHhsazIbTyUZ0123456789",
            "ABCme",
            "recursive dereference-recursive line-number ignore-case no-ignore-case files-with-matches files-without-match invert-match count extended-regexp fixed-strings basic-regexp perl-regexp word-regexp line-regexp only-matching include= exclude= exclude-dir= max-count= context= after-context= before-context= no-messages quiet silent color colour with-filename no-filename text byte-offset initial-tab null regexp= line-buffered",
            PatternThenFiles,
        ),
        &["-e", "--regexp"],
    ),
    with_pattern(
        known(
            "rg",
            "niwxcloFvsSNHIqUPup0.a",
            "ABCgtTmeEjMdr",
            "files files-with-matches files-without-match ignore-case smart-case case-sensitive word-regexp line-regexp line-number no-line-number count count-matches fixed-strings invert-match only-matching hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent multiline multiline-dotall pcre2 glob= iglob= type= type-not= type-list max-count= max-depth= context= after-context= before-context= regexp= color= heading no-heading with-filename no-filename json stats sort= sortr= trim vimgrep column null pretty passthru max-columns= max-columns-preview replace= threads= text unrestricted quiet crlf no-messages no-config encoding=",
            PatternThenFiles,
        ),
        &["-e", "--regexp", "--files", "--type-list"],
    ),
    known(
        "fd",
        "HIuisgFap01q",
        "tdeEcSj",
        "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path full-path print0 type= max-depth= min-depth= exact-depth= extension= exclude= size= color= changed-within= changed-before= max-results= quiet and=",
        PatternThenFiles,
    ),
    known(
        "fdfind",
        "HIuisgFap01q",
        "tdeEcSj",
        "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path full-path print0 type= max-depth= min-depth= exact-depth= extension= exclude= size= color= changed-within= changed-before= max-results= quiet and=",
        PatternThenFiles,
    ),
    Known {
        tests: "name iname path ipath wholename regex iregex regextype type xtype maxdepth mindepth size mtime mmin atime amin ctime cmin newer empty not o or a and print print0 prune perm user group links true false depth mount xdev quit ls readable writable executable printf daystart samefile inum",
        ..known("find", "", "", "", Files)
    },
    known(
        "tree",
        "adfphsugDiACQNqrtcUvFJ",
        "LPI",
        "dirsfirst noreport gitignore prune du si charset= filelimit= matchdirs ignore-case sort=",
        Files,
    ),
    known(
        "sort",
        "nrufbdgihMVcCsz",
        "ktS",
        "reverse numeric-sort general-numeric-sort unique key= field-separator= human-numeric-sort version-sort ignore-case ignore-leading-blanks stable check parallel= month-sort zero-terminated",
        Files,
    ),
    known(
        "uniq",
        "cdiuDz",
        "fsw",
        "count repeated unique ignore-case all-repeated skip-fields= skip-chars= check-chars= group",
        OneFile,
    ),
    known("comm", "123z", "", "nocheck-order check-order output-delimiter= total", Files),
    known(
        "diff",
        "ruqsNwbBaiyEZtpc0123456789",
        "UCWI",
        "recursive unified brief new-file ignore-all-space ignore-space-change ignore-blank-lines ignore-case side-by-side color suppress-common-lines strip-trailing-cr report-identical-files minimal label= text width= expand-tabs no-dereference",
        Files,
    ),
    known("cmp", "bls", "ni", "print-bytes verbose silent quiet bytes= ignore-initial=", Files),
    with_pattern(
        known(
            "sed",
            "nErsz",
            "e",
            "quiet silent regexp-extended expression= separate null-data sandbox posix",
            SedThenFiles,
        ),
        &["-e", "--expression"],
    ),
    known("awk", "", "Fv", "", AwkThenFiles),
    known("mawk", "", "Fv", "", AwkThenFiles),
    known("gawk", "", "Fv", "", AwkThenFiles),
    known(
        "jq",
        "rcsSenjaRMC",
        "",
        "raw-output compact-output slurp sort-keys exit-status null-input join-output ascii-output raw-input tab monochrome-output color-output",
        JqThenFiles,
    ),
    known("file", "biIhkN0", "F", "brief mime mime-type mime-encoding no-dereference separator=", Files),
    known(
        "realpath",
        "esmqz",
        "",
        "canonicalize-existing canonicalize-missing no-symlinks quiet relative-to= relative-base=",
        Files,
    ),
    known("readlink", "fenmqvz", "", "canonicalize canonicalize-existing canonicalize-missing no-newline", Files),
    known("md5sum", "btz", "", CHECKSUM, Files),
    known("sha1sum", "btz", "", CHECKSUM, Files),
    known("sha224sum", "btz", "", CHECKSUM, Files),
    known("sha256sum", "btz", "", CHECKSUM, Files),
    known("sha384sum", "btz", "", CHECKSUM, Files),
    known("sha512sum", "btz", "", CHECKSUM, Files),
    known("b2sum", "btz", "l", CHECKSUM, Files),
    known("cksum", "", "a", "algorithm=", Files),
    known("sum", "rs", "", "", Files),
    known("base64", "di", "w", "decode ignore-garbage wrap=", OneFile),
    Known { tests: "ps plain", ..known("xxd", "bpiueEa", "cgls", "", OneFile) },
    known("od", "bcdfilosxva", "AtNjSw", "address-radix= format= read-bytes= skip-bytes= output-duplicates", Files),
    known("hexdump", "bcCdovx", "nse", "", Files),
    known("hd", "v", "nse", "", Files),
    known("column", "tx", "sco", "table separator= output-separator= columns=", Files),
    known("nm", "gaACDnpru", "", "extern-only defined-only demangle dynamic undefined-only numeric-sort", Files),
    known(
        "readelf",
        "hlSsdrnVaWe",
        "",
        "all file-header program-headers section-headers symbols dynamic notes wide",
        Files,
    ),
    known("size", "ABtd", "", "", Files),
    known("pwd", "LP", "", "", Nothing),
    known("echo", "", "", "", Free),
    known("printf", "", "", "", Text),
    known("seq", "w", "fs", "equal-width format= separator=", Text),
    known("expr", "", "", "", Text),
    known("date", "uIR", "d", "utc universal iso-8601 rfc-3339= rfc-email date=", Plus),
    known("cal", "my1310", "", "", Text),
    known("whoami", "", "", "", Nothing),
    known("id", "ugnGrz", "", "user group groups name real", Text),
    known("groups", "", "", "", Text),
    known("uname", "asrmnopvi", "", "all kernel-name kernel-release machine operating-system", Nothing),
    known("arch", "", "", "", Nothing),
    known("hostname", "sfi", "", "", Nothing),
    known("nproc", "", "", "all ignore=", Nothing),
    known("uptime", "ps", "", "pretty since", Nothing),
    known("free", "hgmbkt", "", "human giga mega kilo total", Nothing),
    known("lscpu", "", "", "", Nothing),
    known("tty", "s", "", "", Nothing),
    known("locale", "a", "", "all-locales", Text),
    known("getconf", "a", "", "", Text),
    known("env", "0", "", "", Nothing),
    known(
        "printenv",
        "0",
        "",
        "",
        Words(
            "PATH HOME USER LOGNAME SHELL LANG LC_ALL TERM PWD EDITOR PAGER TZ TMPDIR CARGO_HOME RUSTUP_HOME GOPATH GOROOT JAVA_HOME VIRTUAL_ENV NODE_ENV CI",
        ),
    ),
    // A word like `axe` shows the environment of processes, also behind a dash.
    known("ps", "efAlwHjTF", "p", "forest", Words("a u x f w l j ax au aux auxf auxw auxww axf axu axuf aux axjf")),
    known("strings", "aw", "ntes", "all bytes= radix= encoding=", Files),
    known("zcat", "", "", "", Files),
    known("sleep", "", "", "", Text),
    known("true", "", "", "", Free),
    known("false", "", "", "", Free),
    known(":", "", "", "", Free),
    known("basename", "az", "s", "multiple suffix= zero", Text),
    known("dirname", "z", "", "zero", Text),
    known("which", "as", "", "all", Text),
    known("type", "atpPf", "", "", Text),
];

/// What `test` and `[` know. `-v` is not among it: it evaluates an index.
pub(super) const TESTS: &str = "e f d r w x s L h b c p S g u k O G N n z eq ne lt gt le ge nt ot ef a o";

/// Programs that may be asked for their version: none of them looks into the workspace for what to run, except by the files of
/// [`CHOOSES_A_VERSION`]. Poetry is not among them: it loads plugins from `.poetry` first.
pub(super) const TELL_THEIR_VERSION: &str = "cargo rustc rustup rustfmt clippy-driver rust-analyzer node npm npx python python3 pip pip3 go gcc g++ cc clang clang++ ld make cmake ninja git java javac ruby perl php docker kubectl deno bun tsc eslint prettier mypy ruff black bash sh zsh rg fd fdfind jq sed awk gawk grep find sort tree curl wget tar gzip unzip zip ssh openssl sqlite3 psql redis-cli vim nvim emacs tmux less diff patch file xxd uv ffmpeg pandoc gdb valgrind strace terraform helm gh swift ghc zig lua luajit julia R dotnet protoc uname ls cat env pnpm hugo shellcheck";

/// Other words by which they tell it, alone: the dashes, which matter because `node v` runs a file, and the rest.
pub(super) const VERSION_FLAGS: [(&str, &str, &str); 5] = [
    ("-", "v", "node npm npx pnpm ruby perl php docker gcc g++ clang clang++ make tsc helm"),
    ("-", "vV", "rustc cargo"),
    ("-", "version", "java javac"),
    ("--", "list", "cargo"),
    ("", "version", "go helm"),
];

/// Files by which a version manager chooses a toolchain, which may then lie in the workspace.
pub(super) const CHOOSES_A_VERSION: [&str; 9] = [
    "rust-toolchain",
    "rust-toolchain.toml",
    ".python-version",
    ".ruby-version",
    ".node-version",
    ".nvmrc",
    ".tool-versions",
    "package.json",
    "global.json",
];

const DIFF: &str = " stat numstat shortstat dirstat summary name-only name-status cached staged color no-color unified= word-diff word-diff-regex= color-words minimal patience histogram diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines find-renames find-copies no-renames relative raw patch no-patch full-index abbrev merge-base exit-code quiet check diff-filter= no-index pickaxe-regex pickaxe-all function-context inter-hunk-context= no-prefix compact-summary no-ext-diff no-textconv";
const LOG: &str = " oneline graph all decorate no-decorate branches tags remotes since= until= after= before= author= committer= grep= max-count= skip= no-merges merges reverse format= pretty date= first-parent follow abbrev-commit no-abbrev-commit topo-order date-order author-date-order left-right cherry-pick cherry-mark cherry simplify-by-decoration full-history walk-reflogs invert-grep regexp-ignore-case extended-regexp perl-regexp fixed-strings all-match source no-walk children parents boundary ancestry-path count exclude= glob= max-parents= min-parents= no-notes encoding= relative-date";

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
pub(super) const GIT: &[Known] = &[
    known(
        "status",
        "sbuvznoal",
        "",
        "short branch porcelain long verbose untracked-files ignored column no-column no-renames show-stash ahead-behind no-ahead-behind",
        Files,
    ),
    known("diff", "wbUuMCBRaDpz0123456789s%", "SGUl", DIFF, Files),
    known("log", "pwbuMCBRacmtziEFPgs0123456789%", "nSGULl", DIFF_AND_LOG, Files),
    known("show", "pwbuMCBRacmtzs0123456789%", "nSGU", DIFF_AND_LOG, Files),
    known(
        "ls-files",
        "mdocztsuikv",
        "x",
        "modified others exclude-standard cached deleted stage unmerged ignored full-name error-unmatch eol directory exclude=",
        Files,
    ),
    known("ls-tree", "rdtlz", "", "name-only name-status full-name full-tree object-only long format= abbrev", Files),
    known("cat-file", "tspe", "", "", Files),
    known(
        "rev-parse",
        "q",
        "",
        "show-toplevel abbrev-ref short verify git-dir git-common-dir absolute-git-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository show-prefix show-cdup symbolic-full-name symbolic quiet all branches tags remotes show-superproject-working-tree",
        Files,
    ),
    known("rev-list", "n0123456789", "", DIFF_AND_LOG, Files),
    known(
        "blame",
        "wcselpfntkMC0123456789",
        "L",
        "date= porcelain line-porcelain show-email show-name show-number root since= reverse first-parent abbrev",
        Files,
    ),
    known(
        "branch",
        "avrl",
        "",
        "all remotes list show-current verbose contains no-contains merged no-merged sort= format= points-at= color no-color column no-column ignore-case abbrev",
        With(LISTS),
    ),
    known(
        "tag",
        "lni0123456789",
        "",
        "list sort= format= contains no-contains merged no-merged points-at= color column no-column ignore-case",
        With(LISTS_OF_TAGS),
    ),
    known("remote", "v", "", "verbose", Nothing),
    known("remote get-url", "", "", "all push", Text),
    known("stash list", "p0123456789", "n", DIFF_AND_LOG, Nothing),
    known("stash show", "pu0123456789", "", DIFF, Files),
    with_pattern(
        known(
            "grep",
            "niwlLcvEFGPohHIpWqzar0123456789",
            "ABCme",
            "line-number ignore-case files-with-matches files-without-match name-only count cached untracked and or not all-match heading break show-function function-context max-depth= fixed-strings extended-regexp perl-regexp basic-regexp word-regexp invert-match only-matching color no-color threads= column max-count= quiet text null context= after-context= before-context=",
            PatternThenFiles,
        ),
        &["-e"],
    ),
    known(
        "describe",
        "",
        "",
        "tags long all always abbrev match= exclude= contains candidates= first-parent exact-match dirty",
        Files,
    ),
    known("merge-base", "a", "", "all octopus is-ancestor fork-point independent", Files),
    // A repository with submodules asks anyway.
    known("submodule status", "", "", "cached recursive quiet", Nothing),
    known("worktree list", "vz", "", "porcelain verbose", Nothing),
    known("shortlog", "snec0123456789", "", DIFF_AND_LOG, Files),
    known("reflog", "0123456789", "n", DIFF_AND_LOG, Nothing),
    known("reflog show", "0123456789p", "n", DIFF_AND_LOG, Files),
    known("show-ref", "dsq", "", "heads tags head hash abbrev verify branches dereference exists", Files),
    known(
        "for-each-ref",
        "",
        "",
        "sort= format= count= contains merged no-merged points-at= ignore-case exclude=",
        Files,
    ),
    known("name-rev", "", "", "name-only tags refs= all always", Files),
    known("symbolic-ref", "q", "", "short quiet", OneFile),
    known("count-objects", "vH", "", "verbose human-readable", Nothing),
    known("check-ignore", "vnq", "", "verbose non-matching no-index quiet", Files),
    known("diff-tree", "rpzt", "", joined!(" root no-commit-id always", DIFF_AND_LOG), Files),
    known("var", "l", "", "", Words("GIT_AUTHOR_IDENT GIT_COMMITTER_IDENT GIT_DEFAULT_BRANCH")),
    known(
        "config",
        "lz",
        "",
        "list show-origin show-scope name-only local global system worktree null get get-all get-regexp bool int",
        With("l list get get-all get-regexp"),
    ),
    known("version", "", "", "build-options", Nothing),
];
