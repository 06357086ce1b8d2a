//! What is known of the programs that only read: how they take words apart, and what a word can be.

use super::options::{Options, Parse};

mod git; // commands of git
mod programs; // programs

pub(super) use git::GIT;
pub(super) use programs::PROGRAMS;

/// What the words of a program are, its options apart.
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
    /// A function of its own judges its words.
    Own,
}

/// What a word of a program can be besides an option, a text, or the file of exactly this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Special {
    /// Any word `@FILE`, the values of options among them, is replaced by the words in that file.
    ResponseFile,
    /// A name that begins with a plus sign is a command.
    Command,
    /// A name with a colon is a file of another machine, which another program fetches.
    Machine,
    /// The program looks for the names of files that match a pattern, without a shell.
    Pattern,
    /// `NAME=VALUE` sets a variable.
    Setting,
    /// Where a name leads nowhere, the program opens the one with one of these endings.
    Ending(&'static [&'static str]),
}

/// How a program takes its words apart, and what they can be. Each entry of the tables has one, so that no program is added
/// without an answer; `stories::hostile_words` compares it with what the installed program does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Convention {
    parse: Parse,
    specials: &'static [Special],
}

/// GNU's `getopt_long`, and those who do the same. Words are what they seem.
const PLAIN: Convention = Convention { parse: Parse::Anywhere, specials: &[] };
/// The same, up to the first operand.
const POSIX: Convention = Convention { parse: Parse::BeforeOperands, specials: &[] };
/// Each word is an operand.
const NO_OPTIONS: Convention = Convention { parse: Parse::Nowhere, specials: &[] };
/// `expandargv` of libiberty reads response files before anything else looks at the words (binutils, `ar(1)`: "@file").
const BINUTILS: Convention = Convention { parse: Parse::Anywhere, specials: &[Special::ResponseFile] };
/// POSIX: an operand `var=value` is an assignment; options end at the program's text.
const AWK: Convention = Convention { parse: Parse::BeforeOperands, specials: &[Special::Setting] };
/// `gzip(1)`: a name without a known ending is tried with each of them.
const GZIP: Convention =
    Convention { parse: Parse::Anywhere, specials: &[Special::Ending(&[".gz", ".z", "-z", ".Z", "-gz", "_z"])] };
/// `tar(1)`: `HOST:FILE` is reached through another program.
const TAR: Convention = Convention { parse: Parse::Nowhere, specials: &[Special::Machine] };
/// `unzip(1)`: the archive may be a pattern, and may lack its ending.
const UNZIP: Convention =
    Convention { parse: Parse::Nowhere, specials: &[Special::Pattern, Special::Ending(&[".zip", ".ZIP"])] };
/// `less(1)`, `more(1)`: `+COMMAND` is run at the start.
const PAGER: Convention = Convention { parse: Parse::Nowhere, specials: &[Special::Command] };
/// xxd reads only the first letters of an option: `-ac 8` is `-a`, and `8` its input. A second operand is its output.
const XXD: Convention = Convention { parse: Parse::Alone("ps plain"), specials: &[] };
/// tree takes a value only from the next word.
const TREE: Convention = Convention { parse: Parse::Apart, specials: &[] };
/// The options of `git grep` end at its pattern.
const GIT_GREP: Convention = Convention { parse: Parse::BeforeOperands, specials: &[] };
/// Tests, whose values are judged as if they were files, and no actions but those that print.
const FIND: Convention = Convention {
    parse: Parse::Tests(
        "name iname path ipath wholename regex iregex regextype type xtype maxdepth mindepth size mtime mmin atime amin ctime cmin newer empty not o or a and print print0 prune perm user group links true false depth mount xdev quit ls readable writable executable printf daystart samefile inum",
    ),
    specials: &[],
};

/// A program, or a command of git. An option that is not here makes the program unproven.
pub(super) struct Known {
    pub(super) program: &'static str,
    pub(super) options: Options,
    pub(super) specials: &'static [Special],
    /// What the other words are.
    pub(super) operands: Operands,
    /// Flags that give the pattern, so that every operand is a file.
    pub(super) gives_pattern: &'static [&'static str],
}

const fn known(
    program: &'static str,
    convention: Convention,
    short: &'static str,
    long: &'static str,
    operands: Operands,
) -> Known {
    let options = Options { short, long, parse: convention.parse };
    Known { program, options, specials: convention.specials, operands, gives_pattern: &[] }
}

const fn with_pattern(it: Known, gives_pattern: &'static [&'static str]) -> Known {
    Known { gives_pattern, ..it }
}

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
pub(super) const CHOOSES_A_VERSION: &[&str] = &[
    "rust-toolchain",
    "rust-toolchain.toml",
    ".python-version",
    ".ruby-version",
    ".node-version",
    ".nvmrc",
    ".tool-versions",
    "package.json",
    "global.json",
    ".go-version",
    ".java-version",
    ".sdkmanrc",
    ".perl-version",
    ".php-version",
    ".lua-version",
    ".swift-version",
    ".zigversion",
    ".bun-version",
    ".dvmrc",
    ".terraform-version",
    ".prototools",
    "mise.toml",
    ".mise.toml",
];
