//! Text that is piped to pixir: the prompt, or a document beside it.

use std::io::{IsTerminal as _, Read as _};

use pixir_core::text::encoding::Encoding;
use pixir_core::{Code, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};

use crate::cli::Cli;

/// The longest text, bytes.
const MAX: u64 = 10 << 20;
/// How long a pipe may stay silent beside a prompt. A program that starts pixir may leave its own stdin open.
const PATIENCE: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// All of stdin. None on a terminal, where the user would have to type it.
pub(super) fn all(cli: &Cli) -> Result<Option<String>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    stdin.lock().take(MAX + 1).read_to_end(&mut bytes).map_err(|e| {
        Error::new(Code::StdinError, format!("read the prompt from stdin: {e}"), "pass the prompt as an argument")
    })?;
    if bytes.len() as u64 > MAX {
        let fix = "save it to a file and name the file in the prompt";
        return Err(Error::new(Code::StdinError, "the text on stdin is larger than 10 MB", fix));
    }
    let encoding = Encoding::of(&bytes);
    if encoding.is_utf8() {
        return String::from_utf8(bytes).map(Some).map_err(|_| {
            let fix = "convert it to UTF-8, or save it to a file and name the file in the prompt";
            Error::new(Code::StdinError, "the text on stdin has no known encoding", fix)
        });
    }
    cli.output.aside(&format!("note: stdin was decoded from {encoding}"));
    Ok(Some(encoding.decode(&bytes).0.into_owned()))
}

/// What is on stdin beside a prompt. None where there is nothing.
pub(super) fn beside(cli: &Cli) -> Result<Option<String>> {
    let stdin = std::io::stdin();
    let Ok(about) = fstat(&stdin) else { return Ok(None) };
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => {}
        FileType::Fifo | FileType::Socket => {
            let mut one = [PollFd::new(&stdin, PollFlags::IN)];
            if poll(&mut one, Some(&PATIENCE)).is_ok_and(|ready| ready == 0) {
                cli.output
                    .aside("note: stdin is open and silent, so the prompt goes without it; </dev/null avoids the wait");
                return Ok(None);
            }
        }
        FileType::CharacterDevice
        | FileType::Directory
        | FileType::Symlink
        | FileType::BlockDevice
        | FileType::Unknown => return Ok(None),
    }
    Ok(all(cli)?.filter(|text| !text.trim().is_empty()))
}
