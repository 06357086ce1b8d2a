//! Commands that count, sort and cut lines.

use std::cmp::Ordering;
use std::io::{BufRead as _, Write as _};

use super::{Builtin, Fault, Flags, Io, Stdin, next_line, number, reads};
use crate::parse::Word;
use protocol::error::{Code, Error, Result};

/// The most bytes that `sort` reads.
const MAX_SORTED: u64 = 64 << 20;

pub(super) const WC: Builtin = Builtin {
    name: "wc",
    about: "count lines, words and bytes (-l -w -c -m)",
    usage: "[-lwcm] [path…]",
    subcommands: &[],
    details: "-l  lines   -w  words   -c  bytes   -m  characters",
    example: "cat src/*.rs | wc -l",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: wc,
};

#[derive(Default, Clone, Copy)]
struct Counts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
}

fn wc(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let long = [("lines", 'l'), ("words", 'w'), ("bytes", 'c'), ("chars", 'm')];
    let flags = Flags::parse(it, args, "lwcm", "", &long)?;
    let wanted: Vec<char> = match "lwmc".chars().filter(|letter| flags.has(*letter)).collect::<Vec<_>>() {
        none if none.is_empty() => vec!['l', 'w', 'c'],
        some => some,
    };
    let inputs = io.inputs(it, &flags.operands)?;
    let mut rows: Vec<(Counts, Option<String>)> = Vec::new();
    let mut total = Counts::default();
    for input in &inputs {
        let mut counts = Counts::default();
        let mut in_word = false;
        let Some(mut reader) = io.next_reader(it, input.as_ref())? else { continue };
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                break;
            }
            counts.bytes += chunk.len() as u64;
            counts.lines += memchr::memchr_iter(b'\n', chunk).count() as u64;
            for byte in chunk {
                let blank = byte.is_ascii_whitespace() || *byte == 0x0b;
                counts.words += u64::from(!blank && !in_word);
                in_word = !blank;
                counts.chars += u64::from(byte & 0b1100_0000 != 0b1000_0000);
            }
            let used = chunk.len();
            reader.consume(used);
        }
        total.lines += counts.lines;
        total.words += counts.words;
        total.chars += counts.chars;
        total.bytes += counts.bytes;
        rows.push((counts, input.as_ref().map(files::workspace::Inside::display)));
    }
    let is_one = inputs.len() == 1;
    if !is_one {
        rows.push((total, Some("total".to_owned())));
    }
    let of = |counts: &Counts, letter: char| match letter {
        'l' => counts.lines,
        'w' => counts.words,
        'm' => counts.chars,
        _ => counts.bytes,
    };
    // As in GNU wc, columns fit the largest number, and stdin, whose size is unknown, gets 7 columns.
    let width = match (is_one, wanted.len(), inputs.first()) {
        (true, 1, _) => 1,
        (_, _, Some(None)) => 7,
        _ => total.bytes.to_string().len(),
    };
    for (counts, name) in rows {
        let columns: Vec<String> = wanted.iter().map(|letter| format!("{:>width$}", of(&counts, *letter))).collect();
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        writeln!(io.out, "{}{name}", columns.join(" "))?;
    }
    io.missed()?;
    Ok(0)
}

pub(super) const SORT: Builtin = Builtin {
    name: "sort",
    about: "sort lines (-r -n -u -f -k -t)",
    usage: "[-rnufb] [-t CHAR] [-k FIELD[,FIELD][nr]]… [path…]",
    subcommands: &[],
    details: "Lines are compared byte by byte, as in the C locale.\n-r  reverse   -n  as numbers   -u  each line once\n-f  ignore case   -b  ignore leading blanks\n-t C  fields are between C   -k 2,2n  by field 2, as a number",
    example: "cat access.log | sort -k 2,2n | head 5",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: sort,
};

#[derive(Clone, Copy, Default)]
struct How {
    reverse: bool,
    numeric: bool,
    fold: bool,
    blanks: bool,
}

struct Key {
    from: usize,
    to: Option<usize>,
    how: How,
}

fn sort(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let long = [
        ("reverse", 'r'),
        ("numeric-sort", 'n'),
        ("unique", 'u'),
        ("ignore-case", 'f'),
        ("ignore-leading-blanks", 'b'),
        ("field-separator", 't'),
        ("key", 'k'),
    ];
    let flags = Flags::parse(it, args, "rnufb", "tk", &long)?;
    let how = How { reverse: flags.has('r'), numeric: flags.has('n'), fold: flags.has('f'), blanks: flags.has('b') };
    let separator = match flags.value('t') {
        None => None,
        Some("\\t") => Some(b'\t'),
        Some(text) if text.len() == 1 => Some(text.as_bytes()[0]),
        Some(_) => return Err(Error::new(Code::Usage, "-t takes one character", "sort -t , -k 2").into()),
    };
    let keys = flags.set.iter().filter(|(letter, _)| *letter == 'k').filter_map(|(_, value)| value.as_deref());
    let keys = keys.map(|text| key(text, how)).collect::<Result<Vec<Key>, Error>>()?;
    let mut bytes = Vec::new();
    for input in io.inputs(it, &flags.operands)? {
        use std::io::Read as _;
        let room = MAX_SORTED.saturating_sub(bytes.len() as u64);
        // A missing input fails the command: a sorted list without it would be wrong.
        let reader = io.reader(input.as_ref())?;
        io.decoded(input.as_ref(), reader)?.take(room + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_SORTED {
            let fix = "the program of that name: env sort …";
            return Err(Error::new(Code::InvalidArgs, "the input is larger than 64 MB", fix).into());
        }
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
    }
    let mut lines: Vec<&[u8]> =
        bytes.split_inclusive(|b| *b == b'\n').map(|l| l.strip_suffix(b"\n").unwrap_or(l)).collect();
    let by_keys = |a: &[u8], b: &[u8]| {
        if keys.is_empty() {
            return compare(a, b, how);
        }
        let fields = |line, key: &Key| field(line, key, separator);
        keys.iter()
            .map(|key| compare(fields(a, key), fields(b, key), key.how))
            .find(|order| *order != Ordering::Equal)
            .unwrap_or(Ordering::Equal)
    };
    // Lines with equal keys are ordered by their whole text.
    let last = |a: &[u8], b: &[u8]| if how.reverse { b.cmp(a) } else { a.cmp(b) };
    let unique = flags.has('u');
    lines.sort_by(|a, b| by_keys(a, b).then_with(|| if unique { Ordering::Equal } else { last(a, b) }));
    if unique {
        lines.dedup_by(|b, a| by_keys(a, b) == Ordering::Equal);
    }
    for line in lines {
        io.out.write_all(line)?;
        io.out.write_all(b"\n")?;
    }
    Ok(0)
}

/// Parses a sort key: `2`, `2,3`, `2,2nr`.
fn key(text: &str, all: How) -> Result<Key, Error> {
    let wrong = || {
        let shown: String = text.escape_debug().take(40).collect();
        Error::new(Code::Usage, format!("`{shown}` is not a sort key"), "-k 2, -k 2,2 or -k 2,2nr").with("input", shown)
    };
    let mut how = How::default();
    let mut is_first = true;
    let mut part = |text: &str| -> Result<usize, Error> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        for letter in text[digits..].chars() {
            match letter {
                'r' => how.reverse = true,
                'n' => how.numeric = true,
                'f' => how.fold = true,
                // `b` after the end field does not skip leading blanks.
                'b' => how.blanks |= is_first,
                _ => return Err(wrong()),
            }
        }
        is_first = false;
        text[..digits].parse().ok().filter(|n| *n > 0).ok_or_else(wrong)
    };
    let (from, to) = match text.split_once(',') {
        Some((from, to)) => (part(from)?, Some(part(to)?)),
        None => (part(text)?, None),
    };
    let own = how.reverse || how.numeric || how.fold || how.blanks;
    Ok(Key { from, to, how: if own { how } else { all } })
}

/// The part of a line that a key selects. Without a separator, a field includes the blanks before it.
fn field<'a>(line: &'a [u8], key: &Key, separator: Option<u8>) -> &'a [u8] {
    let mut ends = Vec::new();
    match separator {
        Some(separator) => ends.extend(memchr::memchr_iter(separator, line)),
        None => {
            let mut in_field = false;
            for (i, byte) in line.iter().enumerate() {
                let blank = matches!(byte, b' ' | b'\t');
                if blank && in_field {
                    ends.push(i);
                }
                in_field = !blank;
            }
        }
    }
    ends.push(line.len());
    let step = usize::from(separator.is_some());
    let start = match key.from {
        1 => 0,
        n => ends.get(n - 2).map_or(line.len(), |end| (end + step).min(line.len())),
    };
    let end = key.to.and_then(|n| ends.get(n - 1).copied()).unwrap_or(line.len());
    &line[start..end.max(start)]
}

fn compare(a: &[u8], b: &[u8], how: How) -> Ordering {
    let trimmed = |it: &'_ [u8]| -> usize { it.len() - it.trim_ascii_start().len() };
    let (a, b) = if how.blanks { (&a[trimmed(a)..], &b[trimmed(b)..]) } else { (a, b) };
    let order = if how.numeric {
        compare_numbers(a, b)
    } else if how.fold {
        a.iter().map(u8::to_ascii_uppercase).cmp(b.iter().map(u8::to_ascii_uppercase))
    } else {
        a.cmp(b)
    };
    if how.reverse { order.reverse() } else { order }
}

/// Compares the numbers at the start of two texts, of any length; a text without one counts as 0.
fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let (a, b) = (Number::of(a), Number::of(b));
    match (a.is_negative, b.is_negative) {
        (false, false) => a.size(&b),
        (true, true) => b.size(&a),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

struct Number<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl Number<'_> {
    fn of(text: &[u8]) -> Number<'_> {
        let text = text.trim_ascii_start();
        let (minus, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
        let (whole, rest) = text.split_at(digits(text));
        let fraction = rest.strip_prefix(b".").map_or(&rest[..0], |rest| &rest[..digits(rest)]);
        let whole = &whole[whole.iter().take_while(|b| **b == b'0').count()..];
        let fraction = &fraction[..fraction.iter().rposition(|b| *b != b'0').map_or(0, |at| at + 1)];
        // -0 equals 0.
        Number { is_negative: minus && !(whole.is_empty() && fraction.is_empty()), whole, fraction }
    }

    fn size(&self, other: &Number<'_>) -> Ordering {
        let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(other.whole));
        whole.then_with(|| self.fraction.cmp(other.fraction))
    }
}

pub(super) const UNIQ: Builtin = Builtin {
    name: "uniq",
    about: "leave out lines that repeat the line before (-c -d -u -i)",
    usage: "[-cdui] [path]",
    subcommands: &[],
    details: "Only adjacent lines are compared, so sort first.\n-c  with their count   -d  only repeated   -u  only not repeated   -i  ignore case",
    example: "cat names.txt | sort | uniq -c",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: uniq,
};

fn uniq(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let long = [("count", 'c'), ("repeated", 'd'), ("unique", 'u'), ("ignore-case", 'i')];
    let flags = Flags::parse(it, args, "cdui", "", &long)?;
    if flags.operands.len() > 1 {
        let message = "uniq takes one path; a second one is not supported as its output";
        return Err(Error::new(Code::Usage, message, "uniq <path> | write <other path>").into());
    }
    let mut last: Option<(Vec<u8>, u64)> = None;
    let same = |a: &[u8], b: &[u8]| if flags.has('i') { a.eq_ignore_ascii_case(b) } else { a == b };
    let told = |io: &mut Io, line: &[u8], n: u64| -> Result<(), Fault> {
        if (flags.has('d') && n < 2) || (flags.has('u') && n > 1) {
            return Ok(());
        }
        if flags.has('c') {
            write!(io.out, "{n:>7} ")?;
        }
        io.out.write_all(line)?;
        io.out.write_all(b"\n")?;
        Ok(())
    };
    for input in io.inputs(it, &flags.operands)? {
        let Some(reader) = io.next_reader(it, input.as_ref())? else { continue };
        let mut reader = io.decoded(input.as_ref(), reader)?;
        let mut line = Vec::new();
        while next_line(&mut *reader, &mut line)? {
            if line.ends_with(b"\n") {
                line.pop();
            }
            match &mut last {
                Some((before, n)) if same(before, &line) => *n += 1,
                _ => {
                    if let Some((before, n)) = last.replace((line.clone(), 1)) {
                        told(io, &before, n)?;
                    }
                }
            }
        }
    }
    if let Some((line, n)) = last {
        told(io, &line, n)?;
    }
    io.missed()?;
    Ok(0)
}

pub(super) const CUT: Builtin = Builtin {
    name: "cut",
    about: "print fields or characters of lines (-d -f -c)",
    usage: "-f LIST [-d CHAR] [-s] | -c LIST | -b LIST [path…]",
    subcommands: &[],
    details: "LIST has the form 1,3-5,7-\n-f  fields, separated by tabs or the character of -d   -s  leave out lines without a separator\n-c  characters   -b  bytes",
    example: "cat names.csv | cut -d , -f 1,3",
    stdin: Stdin::Optional,
    expands: true,
    asks_others: false,
    touches: reads,
    run: cut,
};

fn cut(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let long = [("delimiter", 'd'), ("fields", 'f'), ("characters", 'c'), ("bytes", 'b'), ("only-delimited", 's')];
    let flags = Flags::parse(it, args, "s", "dfcb", &long)?;
    let (letter, list) = match ['f', 'c', 'b'].map(|letter| (letter, flags.value(letter))) {
        [(letter, Some(list)), (_, None), (_, None)]
        | [(_, None), (letter, Some(list)), (_, None)]
        | [(_, None), (_, None), (letter, Some(list))] => (letter, ranges(list)?),
        _ => return Err(it.usage_error().into()),
    };
    let separator = match flags.value('d') {
        None => b'\t',
        Some(text) if text.len() == 1 => text.as_bytes()[0],
        Some(_) => return Err(Error::new(Code::Usage, "-d takes one character", "cut -d , -f 1").into()),
    };
    let picked = |n: usize| list.iter().any(|(from, to)| (*from..=*to).contains(&n));
    for input in io.inputs(it, &flags.operands)? {
        let Some(reader) = io.next_reader(it, input.as_ref())? else { continue };
        let mut reader = io.decoded(input.as_ref(), reader)?;
        let mut line = Vec::new();
        while next_line(&mut *reader, &mut line)? {
            if line.ends_with(b"\n") {
                line.pop();
            }
            let out: Vec<u8> = match letter {
                'f' if memchr::memchr(separator, &line).is_none() => {
                    if flags.has('s') {
                        continue;
                    }
                    line.clone()
                }
                'f' => {
                    let fields = line.split(|b| *b == separator).enumerate().filter(|(i, _)| picked(i + 1));
                    fields.map(|(_, field)| field).collect::<Vec<_>>().join(&separator)
                }
                // `-c` counts characters in valid UTF-8, and bytes in anything else.
                'c' if std::str::from_utf8(&line).is_ok() => {
                    let text = String::from_utf8_lossy(&line);
                    let chars = text.chars().enumerate().filter(|(i, _)| picked(i + 1));
                    chars.map(|(_, c)| c).collect::<String>().into_bytes()
                }
                _ => line.iter().enumerate().filter(|(i, _)| picked(i + 1)).map(|(_, b)| *b).collect(),
            };
            io.out.write_all(&out)?;
            io.out.write_all(b"\n")?;
        }
    }
    io.missed()?;
    Ok(0)
}

/// Parses a list of ranges that start at 1: `1,3-5,7-,-2`.
fn ranges(list: &str) -> Result<Vec<(usize, usize)>, Error> {
    let end = |text: &str| number(text, "a position in the list").map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut all = Vec::new();
    for part in list.split(',') {
        let (from, to) = match part.split_once('-') {
            None => (end(part)?, end(part)?),
            Some(("", to)) => (1, end(to)?),
            Some((from, "")) => (end(from)?, usize::MAX),
            Some((from, to)) => (end(from)?, end(to)?),
        };
        if from == 0 || to < from {
            let message = format!("`{}` is not a range; positions count from 1", part.escape_debug());
            return Err(Error::new(Code::Usage, message, "a list like 1,3-5,7-"));
        }
        all.push((from, to));
    }
    Ok(all)
}
