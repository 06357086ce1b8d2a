//! Programs that start other programs, or run code, by their arguments.

use super::base;

/// How a program comes to run another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The words behind its options are a command.
    Words,
    /// A word is a line for a shell, or for one of another machine.
    Line,
    /// A word, or a file that a word names, is code.
    Code,
    /// One of its options, or a command of its own language, starts a program.
    Option,
}

/// Programs of one kind, and where their manuals say so.
struct Group {
    by: By,
    programs: &'static str,
    source: &'static str,
}

const fn group(by: By, programs: &'static str, source: &'static str) -> Group {
    Group { by, programs, source }
}

/// A program with a version in its name (`python3.11`, `lua5.4`, `clang++-15`) belongs to the same kind.
const STARTERS: &[Group] = &[
    group(By::Line, "bash sh zsh fish dash ksh mksh ash csh tcsh rbash elvish nu pwsh xonsh yash", "their -c"),
    group(By::Line, "eval trap", "bash(1), builtins: the words are read as input"),
    group(By::Code, "source .", "bash(1), builtins: runs the commands of a file"),
    group(By::Words, "exec command builtin coproc time", "bash(1), builtins and reserved words"),
    group(By::Words, "busybox toybox", "their applets, shells among them"),
    group(By::Words, "sudo doas pkexec setpriv gosu su-exec chpst capsh run0", "their COMMAND"),
    group(By::Line, "su runuser sg newgrp", "su(1), sg(1): -c"),
    group(By::Words, "env nice nohup timeout stdbuf chroot", "coreutils: their COMMAND"),
    group(
        By::Words,
        "ionice chrt taskset setsid setarch linux32 linux64 i386 x86_64 uname26 prlimit choom unshare nsenter uclampset pipesz waitpid",
        "util-linux: their COMMAND",
    ),
    group(By::Words, "flock", "flock(1): its COMMAND, and -c"),
    group(By::Line, "script scriptlive", "script(1): -c"),
    group(
        By::Words,
        "numactl cgexec systemd-run softlimit cpulimit schedtool catchsegv eatmydata faketime datefudge fakeroot fakechroot proot bwrap firejail minijail0 torsocks torify tsocks proxychains proxychains4 xvfb-run dbus-run-session dbus-launch unbuffer dumb-init tini catatonit s6-setuidgid setuidgid envdir",
        "their COMMAND",
    ),
    group(By::Words, "chronic ifne lckdo mispipe zrun", "moreutils: their COMMAND"),
    group(By::Words, "xargs parallel", "their COMMAND"),
    group(By::Option, "find fd fdfind", "find(1): -exec; fd(1): --exec"),
    group(By::Line, "watch entr reflex watchexec nodemon chokidar hyperfine concurrently", "their COMMAND"),
    group(By::Code, "at batch crontab run-parts start-stop-daemon daemonize foreman honcho overmind", "their jobs"),
    group(
        By::Words,
        "strace ltrace perf valgrind rr uftrace heaptrack gdb lldb gdbserver sshpass autossh ssh-agent",
        "their COMMAND",
    ),
    group(By::Words, "ld.so ld-linux ld-linux-x ld-linux-aarch", "ld.so(8): runs its operand"),
    group(By::Line, "ssh mosh rsh dbclient", "ssh(1): its command, ProxyCommand, LocalCommand"),
    group(By::Words, "tmux screen xterm gnome-terminal konsole dtach abduco", "their COMMAND"),
    group(By::Words, "npx pnpx bunx uvx pipx pnpm-dlx cross-env dotenv dotenvx", "their COMMAND"),
    group(By::Words, "nix-shell guix aws-vault chamber op doppler direnv", "their run and exec"),
    group(
        By::Code,
        "python pypy ipython node nodejs deno perl ruby irb php lua luajit tclsh wish expect guile racket sbcl clisp ocaml julia Rscript octave swift scala groovy clojure elixir erl escript iex jshell java kotlin raku ts-node tsx runghc runhaskell ghci osascript",
        "interpreters: -c, -e, or a file",
    ),
    group(By::Code, "awk gawk mawk nawk original-awk", "awk(1): system()"),
    group(By::Option, "sed gsed", "GNU sed: e, w"),
    group(By::Option, "vi vim nvim view ex ed emacs nano", "their -c, !, or --eval"),
    group(By::Option, "m4 dc bc gnuplot", "m4: esyscmd; dc: !; gnuplot: system"),
    group(By::Option, "sqlite3 psql mysql mariadb", "their .shell and \\!"),
    group(By::Option, "tar bsdtar zip cpio rsync scp sftp", "tar: --to-command, -I; zip: -TT; rsync: -e; scp: -S"),
    group(By::Option, "man less more tcpdump openssl", "man: -P; less: !; tcpdump: -z; openssl: -engine"),
];

/// Commands of a program that start others. `docker run` starts them elsewhere, with the files that its options name.
const COMMANDS: &[(&str, &str)] = &[
    ("git", "bisect submodule filter-branch filter-repo rebase difftool mergetool config maintenance hook"),
    ("docker", "run exec compose buildx"),
    ("podman", "run exec compose unshare"),
    ("kubectl", "exec run debug"),
    ("cargo", "watch script miri flamegraph"),
    ("go", "run generate tool"),
    ("npm", "exec x explore init create"),
    ("pnpm", "dlx create"),
    ("yarn", "dlx create node"),
    ("bun", "x create"),
    ("conda", "run"),
    ("mamba", "run"),
    ("micromamba", "run"),
    ("nix", "run shell develop"),
    ("mise", "x"),
    ("asdf", "exec"),
    ("rbenv", "exec"),
    ("pyenv", "exec"),
    ("rustup", "run"),
    ("dotnet", "exec script"),
    ("heroku", "run"),
    ("vagrant", "ssh"),
];

/// Modules of Python that run another module or a file.
const MODULES: [&str; 18] = [
    "pdb",
    "cProfile",
    "profile",
    "trace",
    "timeit",
    "runpy",
    "code",
    "coverage",
    "debugpy",
    "IPython",
    "doctest",
    "memory_profiler",
    "scalene",
    "viztracer",
    "bdb",
    "asyncio",
    "site",
    "idlelib",
];

/// How this program starts others by its arguments; `None` where it is not known to.
pub(super) fn starts_others(program: &str) -> Option<By> {
    let name = base(program);
    let of = |name: &str| {
        let group = STARTERS.iter().find(|group| group.programs.split(' ').any(|it| it == name))?;
        debug_assert!(!group.source.is_empty(), "{name}");
        Some(group.by)
    };
    of(name).or_else(|| of(without_version(name)))
}

/// Whether a command of this program starts others by its arguments.
pub(super) fn command_starts_others(program: &str, command: &str) -> bool {
    let name = base(program);
    COMMANDS.iter().any(|(it, commands)| *it == name && commands.split(' ').any(|it| it == command))
}

/// Whether a module of Python runs what its arguments name.
pub(super) fn module_starts_others(module: &str) -> bool {
    MODULES.contains(&module.split('.').next().unwrap_or(module))
}

/// `python` of `python3.11`, `clang++` of `clang++-15`.
pub(super) fn without_version(name: &str) -> &str {
    match name.find(|c: char| c.is_ascii_digit()) {
        Some(at) if at > 0 => name[..at].trim_end_matches(['-', '_', '.']),
        Some(_) | None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: a name with a version is another program.
    #[test]
    fn a_version_in_its_name_leaves_a_program_what_it_is() {
        for name in ["python3.11", "python3.12-dbg", "/usr/bin/perl5.36.0", "lua5.4", "bash5", "node18", "pypy3"] {
            assert!(starts_others(name).is_some(), "{name}");
        }
        for name in ["base64", "sha256sum", "cargo", "make", "7z", "g++-12", "x86info"] {
            assert_eq!(starts_others(name), None, "{name}");
        }
        assert!(STARTERS.iter().all(|it| !it.source.is_empty()));
    }
}
