//! Programs that draw on a terminal and wait for keys. A command has no terminal, so one of them would run into its time limit.

use crate::effects::behind;

/// Programs of one kind.
struct Kind {
    names: &'static [&'static str],
    /// Options with which they need no terminal; one that ends in `*` begins so.
    without: &'static [&'static str],
    /// What a command has in their place, as a clause.
    instead: &'static str,
}

const KINDS: [Kind; 7] = [
    Kind {
        names: &[
            "vi",
            "vim",
            "nvim",
            "view",
            "gvim",
            "rvim",
            "rview",
            "vimdiff",
            "nvimdiff",
            "ex",
            "elvis",
            "vim.basic",
        ],
        without: &[
            "-c",
            "-c*",
            "+*",
            "-S",
            "-s",
            "-e",
            "-E",
            "-es",
            "-Es",
            "-es*",
            "-Es*",
            "--cmd",
            "--headless",
            "-l",
            "--remote*",
        ],
        instead: "change the file with edit, write or apply_patch, or with sed -i",
    },
    Kind {
        names: &[
            "nano", "pico", "micro", "hx", "helix", "kak", "joe", "jed", "ne", "mcedit", "tilde", "mg", "zile", "jmacs",
        ],
        without: &[],
        instead: "change the file with edit, write or apply_patch, or with sed -i",
    },
    Kind {
        names: &["emacs", "xemacs", "emacsclient"],
        without: &["--batch", "-batch", "--script", "-x", "--daemon*", "--eval", "-e", "-n", "--no-wait"],
        instead: "change the file with edit, write or apply_patch, or with emacs --batch",
    },
    Kind {
        names: &["top"],
        without: &["-b*", "-l*", "--batch*", "--batch-mode"],
        instead: "run top -b -n 1, or ps aux",
    },
    Kind {
        names: &[
            "htop", "btop", "bpytop", "bashtop", "btm", "atop", "glances", "nvtop", "iotop", "iftop", "nethogs",
            "powertop", "bmon",
        ],
        without: &["-b*", "-t", "-P*", "--batch", "--stdout*", "--export*", "--csv*", "--html*", "-w", "-r"],
        instead: "run ps aux, free, df or cat /proc/meminfo",
    },
    Kind {
        names: &["watch", "viddy", "hwatch"],
        without: &["-g", "--chgexit"],
        instead: "run the command once, or in a loop with an end",
    },
    Kind {
        names: &[
            "mc",
            "ranger",
            "nnn",
            "lf",
            "vifm",
            "yazi",
            "ncdu",
            "tig",
            "lazygit",
            "gitui",
            "lazydocker",
            "k9s",
            "cfdisk",
            "nmtui",
            "alsamixer",
            "visudo",
            "vipw",
            "vigr",
        ],
        without: &["-c", "-o*", "-0", "-remote*"],
        instead: "run a program that prints and ends",
    },
];

/// What ends any of them at once.
const ENDS: [&str; 4] = ["--version", "--help", "-h", "-V"];

/// The name of a program with these words, and what to do in its place, if it waits for a terminal.
pub(super) fn needs_terminal(words: &[&str]) -> Option<(String, &'static str)> {
    let is_variable = |it: &&&str| {
        it.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    let words = &words[words.iter().take_while(is_variable).count()..];
    let (program, args) = words.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    if ["sudo", "doas", "exec"].contains(&program) {
        let at = args.iter().position(|it| !it.starts_with('-'))?;
        return needs_terminal(&args[at..]);
    }
    let Some(kind) = KINDS.iter().find(|it| it.names.contains(&program)) else {
        return behind(words).and_then(needs_terminal);
    };
    let is = |arg: &str, option: &str| option.strip_suffix('*').map_or(arg == option, |start| arg.starts_with(start));
    let prints = args.iter().any(|arg| ENDS.contains(arg) || kind.without.iter().any(|option| is(arg, option)));
    (!prints).then(|| (program.to_owned(), kind.instead))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: only the first word is judged; a mode without a terminal is taken for an editor.
    #[test]
    fn a_program_that_waits_for_keys_is_known_by_its_words() {
        let needs = |line: &str| needs_terminal(&line.split(' ').collect::<Vec<_>>()).is_some();
        for line in [
            "vim a.txt",
            "vi",
            "/usr/bin/vim a.txt",
            "nvim -R a",
            "sudo vim a",
            "env EDITOR=x vim a",
            "timeout 5 vim a",
            "nano a",
            "emacs -nw a",
            "top",
            "top -d 1",
            "htop",
            "watch ls",
            "watch -n 1 ls",
            "mc",
            "tig",
            "LANG=C vim a",
            "nice vim a",
        ] {
            assert!(needs(line), "{line}");
        }
        for line in [
            "vim -es -c wq a",
            "vim +wq a",
            "ex -s a",
            "nvim --headless +q",
            "vim --version",
            "emacs --batch -l a.el",
            "top -b -n 1",
            "top -bn1",
            "watch --version",
            "less a",
            "more a",
            "tmux new",
            "grep vim a",
            "ncdu -o- /",
            "apt install vim",
            "nano --version",
            "mcfly",
            "ed a",
        ] {
            assert!(!needs(line), "{line}");
        }
    }
}
