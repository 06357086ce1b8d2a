//! Commands that print text: whole files, their start or their end.

use std::collections::VecDeque;
use std::io::{BufRead as _, Read as _, Write as _};

use base64::engine::general_purpose::STANDARD;

use super::{Builtin, Fault, Flags, Io, Stdin, bytes, next_line, number, reads};
use crate::parse::Word;
use files::workspace::Inside;
use protocol::error::{Code, Error, Result};

/// The most bytes that `tail` holds.
const MAX_TAIL: usize = 64 << 20;

pub(super) const CAT: Builtin = Builtin {
    name: "cat",
    about: "print text files; see shows images, and -b prints other bytes",
    usage: "[-n] [-b] <path>…",
    subcommands: &[],
    details: "-n  number the lines\n-b  as base64\n-   as a path is stdin",
    example: "cat src/main.rs | grep -n TODO",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: cat,
};

fn cat(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, args, "nb", "", &[("number", 'n'), ("base64", 'b')])?;
    let mut line = 0_u64;
    let mut at_start = true;
    for input in io.inputs(it, &flags.operands)? {
        let Some(mut reader) = io.next_reader(it, input.as_ref())? else { continue };
        if flags.has('b') {
            let mut encoder = base64::write::EncoderWriter::new(&mut io.out, &STANDARD);
            std::io::copy(&mut reader, &mut encoder)?;
            encoder.finish()?;
            drop(encoder);
            io.out.write_all(b"\n")?;
            continue;
        }
        if !flags.has('n') {
            std::io::copy(&mut reader, &mut io.out)?;
            continue;
        }
        reader = io.decoded(input.as_ref(), reader)?;
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            for piece in chunk.split_inclusive(|b| *b == b'\n') {
                if at_start {
                    line += 1;
                    write!(io.out, "{line:>6}\t")?;
                }
                io.out.write_all(piece)?;
                at_start = piece.ends_with(b"\n");
            }
            let used = chunk.len();
            reader.consume(used);
        }
    }
    io.missed()?;
    Ok(0)
}

pub(super) const HEAD: Builtin = Builtin {
    name: "head",
    about: "print the first lines",
    usage: "[-n N|-N|N] [-c BYTES] [path…]",
    subcommands: &[],
    details: "-n N  N lines (default 10); -n -N all but the last N\n-c N  N bytes; 4K, 1M and 2G too",
    example: "head -n 20 README.md",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: head,
};

pub(super) const TAIL: Builtin = Builtin {
    name: "tail",
    about: "print the last lines",
    usage: "[-n N|-n +N|-N|N] [-c BYTES] [path…]",
    subcommands: &[],
    details: "-n N   the last N lines (default 10)\n-n +N  from line N on\n-c N   the last N bytes",
    example: "tail -n 100 build.log",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: tail,
};

/// How much of a text to print. With `rest`, `head` prints all but the last `n` lines, and `tail` everything from line
/// `n` on.
enum Count {
    Lines {
        n: u64,
        rest: bool,
    },
    Bytes(u64),
    /// Everything from this byte on.
    BytesFrom(u64),
}

/// Parses `-n 5`, `-n5`, `-5`, `-c 5`, and a plain `5` if no file has that name. `turned` is the sign that inverts the
/// number: `+` for `tail`, `-` for `head`.
fn count(it: &Builtin, args: &[Word], io: &Io, turned: char) -> Result<(Count, Flags), Fault> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let mut args = args.to_vec();
    let mut is_value = false;
    for word in args.iter_mut().take_while(|word| word.text != "--") {
        // The word after `-n`, `-qn` or `--lines` is its value, even if it looks like a flag.
        let letters = word.text.strip_prefix('-').filter(|it| it.chars().all(|c| c.is_ascii_alphabetic()));
        let takes = letters.is_some_and(|it| it.ends_with(['n', 'c'])) || ["--lines", "--bytes"].contains(&&*word.text);
        if std::mem::replace(&mut is_value, takes) {
            continue;
        }
        if let Some(digits) = word.text.strip_prefix('-').filter(|it| is_number(it)) {
            word.text = format!("-n{digits}");
        } else if let Some(digits) = word.text.strip_prefix('+').filter(|it| turned == '+' && is_number(it)) {
            word.text = format!("-n+{digits}");
        }
    }
    let long = [("lines", 'n'), ("bytes", 'c'), ("quiet", 'q')];
    let mut flags = Flags::parse(it, &args, "qv", "nc", &long)?;
    let last = flags.set.iter().rev().find(|(letter, _)| "nc".contains(*letter)).map(|(letter, _)| *letter);
    if let (Some('c'), Some(text)) = (last, flags.value('c')) {
        let count = match text.strip_prefix('+').filter(|_| turned == '+') {
            Some(from) => Count::BytesFrom(bytes(from, "-c")?),
            None => Count::Bytes(bytes(text, "-c")?),
        };
        return Ok((count, flags));
    }
    if let (Some('n'), Some(text)) = (last, flags.value('n')) {
        let rest = text.starts_with(turned);
        let n = number(text.trim_start_matches(['+', '-']), "-n")?;
        return Ok((Count::Lines { n, rest }, flags));
    }
    // In `head 5`, the number is a count unless a file has that name.
    let first = flags.operands.first().filter(|word| is_number(&word.text)).cloned();
    if let Some(word) = first
        && io.ctx.workspace.locate(&word.text).and_then(|at| io.ctx.workspace.open_file(&at)).is_err()
    {
        flags.operands.remove(0);
        let n = number(&word.text, "the number of lines")?;
        return Ok((Count::Lines { n, rest: false }, flags));
    }
    Ok((Count::Lines { n: 10, rest: false }, flags))
}

/// The title `==> path <==` before each of several files; `-v` forces it and `-q` suppresses it.
struct Titles {
    wanted: bool,
    printed: bool,
}

impl Titles {
    fn of(flags: &Flags, inputs: usize) -> Self {
        Self { wanted: (inputs > 1 || flags.has('v')) && !flags.has('q'), printed: false }
    }

    fn print(&mut self, io: &mut Io, input: Option<&Inside>) -> Result<(), Fault> {
        if let Some(at) = input.filter(|_| self.wanted) {
            let gap = if std::mem::replace(&mut self.printed, true) { "\n" } else { "" };
            writeln!(io.out, "{gap}==> {} <==", at.display())?;
        }
        Ok(())
    }
}

fn head(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (count, flags) = count(it, args, io, '-')?;
    let inputs = io.inputs(it, &flags.operands)?;
    let mut titles = Titles::of(&flags, inputs.len());
    for input in &inputs {
        let Some(mut reader) = io.next_reader(it, input.as_ref())? else { continue };
        titles.print(io, input.as_ref())?;
        if matches!(count, Count::Lines { .. }) {
            reader = io.decoded(input.as_ref(), reader)?;
        }
        match count {
            Count::Bytes(n) | Count::BytesFrom(n) => drop(std::io::copy(&mut reader.take(n), &mut io.out)?),
            Count::Lines { n, rest: false } => {
                let mut left = n;
                while left > 0 {
                    let chunk = reader.fill_buf()?;
                    if chunk.is_empty() {
                        break;
                    }
                    let last = usize::try_from(left - 1).unwrap_or(usize::MAX);
                    let used = memchr::memchr_iter(b'\n', chunk).nth(last).map_or(chunk.len(), |at| at + 1);
                    left -= memchr::memchr_iter(b'\n', &chunk[..used]).count() as u64;
                    io.out.write_all(&chunk[..used])?;
                    reader.consume(used);
                }
            }
            Count::Lines { n, rest: true } => {
                let mut held: VecDeque<Vec<u8>> = VecDeque::new();
                let mut bytes_held = 0;
                let mut line = Vec::new();
                while next_line(&mut *reader, &mut line)? {
                    bytes_held += line.len();
                    held.push_back(std::mem::take(&mut line));
                    if held.len() as u64 > n {
                        let first = held.pop_front().expect("just pushed");
                        bytes_held -= first.len();
                        io.out.write_all(&first)?;
                    }
                    bounded(bytes_held)?;
                }
            }
        }
    }
    io.missed()?;
    Ok(0)
}

fn bounded(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_TAIL {
        return Ok(());
    }
    let message = "those lines are larger than 64 MB";
    Err(Error::new(Code::InvalidArgs, message, "fewer lines, or the program of that name: env tail …").into())
}

fn tail(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let (count, flags) = count(it, args, io, '+')?;
    let inputs = io.inputs(it, &flags.operands)?;
    let mut titles = Titles::of(&flags, inputs.len());
    for input in &inputs {
        let Some(mut reader) = io.next_reader(it, input.as_ref())? else { continue };
        titles.print(io, input.as_ref())?;
        if matches!(count, Count::Lines { .. }) {
            reader = io.decoded(input.as_ref(), reader)?;
        }
        match count {
            Count::Lines { n, rest: true } => {
                let mut skip = n.saturating_sub(1);
                while skip > 0 {
                    let chunk = reader.fill_buf()?;
                    if chunk.is_empty() {
                        break;
                    }
                    let used = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |at| at + 1);
                    skip -= u64::from(chunk[used - 1] == b'\n');
                    reader.consume(used);
                }
                std::io::copy(&mut reader, &mut io.out)?;
            }
            Count::Lines { n, rest: false } => last(&mut reader, io, |held| last_lines(held, n))?,
            Count::BytesFrom(n) => {
                std::io::copy(&mut (&mut reader).take(n.saturating_sub(1)), &mut std::io::sink())?;
                std::io::copy(&mut reader, &mut io.out)?;
            }
            Count::Bytes(n) => {
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                last(&mut reader, io, |held| held.len().saturating_sub(n))?;
            }
        }
    }
    io.missed()?;
    Ok(0)
}

/// The position where the last `n` lines begin.
fn last_lines(held: &[u8], n: u64) -> usize {
    if n == 0 {
        return held.len();
    }
    let body = held.strip_suffix(b"\n").unwrap_or(held);
    let n = usize::try_from(n - 1).unwrap_or(usize::MAX);
    memchr::memrchr_iter(b'\n', body).nth(n).map_or(0, |at| at + 1)
}

/// Prints the end of the input, holding only bytes that may belong to it.
fn last(reader: &mut dyn std::io::BufRead, io: &mut Io, from: impl Fn(&[u8]) -> usize) -> Result<(), Fault> {
    let mut held: Vec<u8> = Vec::new();
    // Cut only when the buffer has doubled, so that each byte is scanned a constant number of times on average.
    let mut next_cut = 1 << 20;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        held.extend_from_slice(chunk);
        let used = chunk.len();
        reader.consume(used);
        if held.len() >= next_cut {
            let at = from(&held);
            held.drain(..at);
            bounded(held.len())?;
            next_cut = (2 * held.len()).max(1 << 20);
        }
    }
    let at = from(&held);
    io.out.write_all(&held[at..])?;
    Ok(())
}

pub(super) const ECHO: Builtin = Builtin {
    name: "echo",
    about: "print text",
    usage: "[-n] [-e] [text…]",
    subcommands: &[],
    details: "-n  without a newline at the end\n-e  \\n, \\t and \\\\ are a newline, a tab and a backslash",
    example: "echo done",
    stdin: Stdin::None,
    expands: false,
    asks_others: false,
    touches: reads,
    run: |_, mut args, io| {
        let (mut bare, mut escapes) = (false, false);
        let is_flag =
            |text: &str| text.len() > 1 && text.starts_with('-') && text[1..].chars().all(|c| "neE".contains(c));
        while let Some(word) = args.first().filter(|word| is_flag(&word.text)) {
            bare |= word.text.contains('n');
            escapes |= word.text.contains('e');
            args = &args[1..];
        }
        let words: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
        let mut text = words.join(" ");
        if escapes {
            let known = text.replace("\\\\", "").split('\\').skip(1).all(|part| part.starts_with(['n', 't']));
            if !known {
                let message = "echo -e supports only \\n, \\t and \\\\";
                return Err(Error::new(Code::Usage, message, "the program printf").into());
            }
            let parts = text.split("\\\\").map(|part| part.replace("\\n", "\n").replace("\\t", "\t"));
            text = parts.collect::<Vec<_>>().join("\\");
        }
        write!(io.out, "{text}{}", if bare { "" } else { "\n" })?;
        Ok(0)
    },
};

pub(super) const TRUE: Builtin = Builtin {
    name: "true",
    about: "succeed",
    usage: "",
    subcommands: &[],
    details: "",
    example: "test -f a.txt || true",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: reads,
    run: |_, _, _| Ok(0),
};

pub(super) const FALSE: Builtin = Builtin {
    name: "false",
    about: "fail",
    usage: "",
    subcommands: &[],
    details: "",
    example: "false || echo failed",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: reads,
    run: |_, _, _| Ok(1),
};
