//! The real binary with a scripted model server.

use crate::pty::Terminal;
use crate::server::{Dialect, Server};
use crate::shell::{Ran, Shell};

pub(crate) fn terminal(shell: &Shell, server: &Server, flags: &[&str], size: (u16, u16)) -> Terminal {
    let mut args = server.flags(Dialect::Responses);
    args.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Terminal::start(shell, &args.iter().map(String::as_str).collect::<Vec<_>>(), size.0, size.1)
}

pub(crate) fn start(shell: &Shell, server: &Server, dialect: Dialect, columns: u16, rows: u16) -> Terminal {
    let flags = server.flags(dialect);
    Terminal::start(shell, &flags.iter().map(String::as_str).collect::<Vec<_>>(), columns, rows)
}

pub(crate) fn ask(shell: &Shell, server: &Server, dialect: Dialect, words: &[&str]) -> Ran {
    let mut args: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    args.extend(server.flags(dialect));
    args.extend(["--headless", "--json"].map(str::to_owned));
    shell.run(args)
}
