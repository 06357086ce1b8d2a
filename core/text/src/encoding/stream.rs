//! Streams as UTF-8: bytes that are decoded as they arrive.

use std::borrow::Cow;
use std::fmt::{self, Debug, Formatter};
use std::io::{self, Read};

use super::Encoding;
use super::detect::{HEAD, WINDOW, first_odd};

/// How many bytes of an output are held until its encoding is clear, from the first one on that is not plain UTF-8.
const HELD: usize = 4 << 10;

/// Decodes a stream once its bytes show which encoding it has. What is UTF-8 or binary passes as it is.
#[derive(Debug)]
pub struct Transcoder {
    source: Source,
    /// The first bytes, which may name the encoding.
    head: Vec<u8>,
    state: State,
}

/// Where a stream comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A program, whose output a user may watch. UTF-8 is never held, and decides.
    Output,
    /// A file. Its encoding is the one of [`Encoding::of`].
    File,
}

#[derive(Debug)]
enum State {
    /// All bytes so far are ASCII, apart from the first bytes of a character of UTF-8 that is not whole yet.
    Ascii {
        torn: Vec<u8>,
        is_start: bool,
    },
    /// Bytes that are not, until there are enough of them to tell what they are.
    Held {
        bytes: Vec<u8>,
        is_start: bool,
    },
    /// UTF-8 or binary, whatever comes.
    Passing,
    Known(Encoding, Decoder),
    /// The same for an output, which several programs may write: a line that is UTF-8 stays as it is.
    Mixed(Encoding, Lines),
}

impl Transcoder {
    pub fn new(source: Source) -> Transcoder {
        let state = State::Ascii { torn: Vec::new(), is_start: true };
        Transcoder { source, head: Vec::new(), state }
    }

    /// A transcoder that passes everything.
    pub fn passing() -> Transcoder {
        Transcoder { state: State::Passing, ..Transcoder::new(Source::File) }
    }

    /// The encoding that the stream is decoded from, where that is not plain UTF-8.
    pub fn encoding(&self) -> Option<Encoding> {
        match &self.state {
            State::Known(encoding, _) | State::Mixed(encoding, _) => Some(*encoding),
            State::Ascii { .. } | State::Held { .. } | State::Passing => None,
        }
    }

    /// Takes the next bytes; returns what is clear so far.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        match &mut self.state {
            State::Passing => Cow::Borrowed(bytes),
            State::Known(_, decoder) => Cow::Owned(decoder.text_of(bytes, false).into_bytes()),
            State::Mixed(_, lines) => Cow::Owned(lines.text_of(bytes, false)),
            State::Held { bytes: held, .. } => {
                held.extend_from_slice(bytes);
                Cow::Owned(self.settled_if_full())
            }
            State::Ascii { torn, is_start } if torn.is_empty() && first_odd(bytes).is_none() => {
                *is_start &= bytes.is_empty();
                Cow::Borrowed(bytes)
            }
            State::Ascii { torn, is_start } => {
                let (all, is_start) = ([torn.as_slice(), bytes].concat(), *is_start);
                Cow::Owned(self.push_odd(all, is_start))
            }
        }
    }

    /// Takes bytes among which is one that is not ASCII.
    fn push_odd(&mut self, mut all: Vec<u8>, is_start: bool) -> Vec<u8> {
        let odd = first_odd(&all).unwrap_or(all.len());
        if self.source == Source::Output && memchr::memchr(0, &all).is_none() {
            match std::str::from_utf8(&all) {
                Ok(_) => {
                    self.state = State::Passing;
                    return all;
                }
                Err(e) if e.error_len().is_none() => {
                    self.state = if e.valid_up_to() > odd {
                        State::Passing
                    } else {
                        State::Ascii { torn: all.split_off(odd), is_start: is_start && odd == 0 }
                    };
                    return all;
                }
                Err(_) => {}
            }
        }
        // What stands before the first odd byte is text in any case; only UTF-16 begins before it.
        let passed = if is_start { 0 } else { odd };
        let bytes = all.split_off(passed);
        self.state = State::Held { bytes, is_start };
        all.extend(self.settled_if_full());
        all
    }

    /// The text of the held bytes, if there are enough of them.
    fn settled_if_full(&mut self) -> Vec<u8> {
        let most = match self.source {
            Source::Output => HELD,
            Source::File => WINDOW,
        };
        match &self.state {
            State::Held { bytes, is_start } => {
                // A file is judged by so many bytes behind its first odd one.
                let before = if *is_start { first_odd(bytes).unwrap_or(0) } else { 0 };
                if bytes.len() < before + most { Vec::new() } else { self.settled(false) }
            }
            State::Ascii { .. } | State::Passing | State::Known(..) | State::Mixed(..) => Vec::new(),
        }
    }

    /// Decides what the held bytes are; returns their text.
    fn settled(&mut self, is_end: bool) -> Vec<u8> {
        let State::Held { bytes, is_start } = &mut self.state else { return Vec::new() };
        let (bytes, is_start) = (std::mem::take(bytes), *is_start);
        self.state = State::Passing;
        let before = if is_start { first_odd(&bytes).unwrap_or(0) } else { 0 };
        let sample = &bytes[..bytes.len().min(before + WINDOW)];
        let encoding = Encoding::of_sample(sample, is_start, is_end && sample.len() == bytes.len(), &self.head);
        if encoding == Encoding::UTF_8 {
            return bytes;
        }
        if self.source == Source::Output && encoding.has_ascii() {
            let mut lines = Lines { decoder: Decoder::new(encoding), held: Vec::new(), is_torn: false };
            let text = lines.text_of(&bytes, false);
            self.state = State::Mixed(encoding, lines);
            return text;
        }
        let mut decoder = Decoder::new(encoding);
        let text = decoder.text_of(&bytes, false);
        self.state = State::Known(encoding, decoder);
        text.into_bytes()
    }

    /// The end of the text.
    pub fn end(&mut self) -> Vec<u8> {
        let mut last = self.settled(true);
        match &mut self.state {
            State::Ascii { torn, .. } => last.append(torn),
            State::Known(_, decoder) => last.extend(decoder.text_of(&[], true).into_bytes()),
            State::Mixed(_, lines) => last.extend(lines.text_of(&[], true)),
            State::Held { .. } | State::Passing => {}
        }
        last
    }
}

/// Reads a file or an output as UTF-8, in bounded memory.
#[derive(Debug)]
pub struct Utf8Reader<R> {
    inner: R,
    transcoder: Transcoder,
    ready: Vec<u8>,
    /// How much of it was read.
    at: usize,
    has_begun: bool,
    has_ended: bool,
}

impl<R: Read> Utf8Reader<R> {
    pub fn new(source: Source, inner: R) -> Utf8Reader<R> {
        let transcoder = Transcoder::new(source);
        Utf8Reader { inner, transcoder, ready: Vec::new(), at: 0, has_begun: false, has_ended: false }
    }

    /// The encoding that was found so far, where that is not plain UTF-8.
    pub fn encoding(&self) -> Option<Encoding> {
        self.transcoder.encoding()
    }

    /// The start of the text, which is read again.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn start(&mut self) -> io::Result<&[u8]> {
        while !self.has_begun || (self.at == self.ready.len() && !self.has_ended) {
            // The first bytes are judged together, however few of them the caller wants.
            let mut first = vec![0; WINDOW];
            let read = self.inner.read(&mut first)?;
            first.truncate(read);
            self.has_begun = true;
            if first.is_empty() {
                self.end();
                break;
            }
            let text = match self.transcoder.push(&first) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            };
            (self.ready, self.at) = (text.unwrap_or(first), 0);
        }
        Ok(&self.ready[self.at..])
    }

    fn end(&mut self) {
        (self.ready, self.at, self.has_ended) = (self.transcoder.end(), 0, true);
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.has_begun {
            self.start()?;
        }
        while self.at == self.ready.len() && !self.has_ended && !out.is_empty() {
            let read = self.inner.read(out)?;
            if read == 0 {
                self.end();
                break;
            }
            match self.transcoder.push(&out[..read]) {
                Cow::Borrowed(_) => return Ok(read),
                Cow::Owned(text) => (self.ready, self.at) = (text, 0),
            }
        }
        let copied = out.len().min(self.ready.len() - self.at);
        out[..copied].copy_from_slice(&self.ready[self.at..self.at + copied]);
        self.at += copied;
        Ok(copied)
    }
}

/// Decodes the lines of an output that are not UTF-8.
#[derive(Debug)]
struct Lines {
    decoder: Decoder,
    /// The last line from its first byte on that is not ASCII, until it is whole.
    held: Vec<u8>,
    /// The start of the last line was too long to wait for its end, and is decoded already.
    is_torn: bool,
}

impl Lines {
    fn text_of(&mut self, bytes: &[u8], is_end: bool) -> Vec<u8> {
        let all = [std::mem::take(&mut self.held).as_slice(), bytes].concat();
        let whole = memchr::memrchr(b'\n', &all).map_or(0, |at| at + 1);
        let (lines, rest) = all.split_at(whole);
        let mut text = Vec::with_capacity(all.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.put(line, &mut text);
            self.is_torn = false;
        }
        let odd = if self.is_torn { 0 } else { first_odd(rest).unwrap_or(rest.len()) };
        text.extend_from_slice(&rest[..odd]);
        let rest = &rest[odd..];
        if is_end {
            self.put(rest, &mut text);
            text.extend(self.decoder.text_of(&[], true).into_bytes());
        } else if self.is_torn || rest.len() >= HELD {
            self.put(rest, &mut text);
            self.is_torn = true;
        } else {
            self.held = rest.to_vec();
        }
        text
    }

    /// A line, or a part of one.
    fn put(&mut self, line: &[u8], text: &mut Vec<u8>) {
        match std::str::from_utf8(line) {
            Ok(_) if !self.is_torn => text.extend_from_slice(line),
            _ => text.extend(self.decoder.text_of(line, false).into_bytes()),
        }
    }
}

/// Decodes bytes of a known encoding; pieces may end within a character.
pub(super) struct Decoder {
    table: encoding_rs::Decoder,
    bom: &'static [u8],
}

impl Debug for Decoder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("encoding", &self.table.encoding().name()).finish()
    }
}

impl Decoder {
    pub(super) fn new(encoding: Encoding) -> Decoder {
        Decoder { bom: encoding.bom(), ..Decoder::of_part(encoding) }
    }

    /// A decoder of bytes that do not begin the file.
    pub(super) fn of_part(encoding: Encoding) -> Decoder {
        let table = encoding.charset.table().unwrap_or(encoding_rs::UTF_8);
        Decoder { table: table.new_decoder_without_bom_handling(), bom: &[] }
    }

    /// The text of the next bytes. After the last ones, what is left of a torn character becomes a replacement.
    pub(super) fn text_of(&mut self, mut bytes: &[u8], is_last: bool) -> String {
        // The mark may arrive in two pieces.
        while let (Some((mark, rest)), Some((first, after))) = (self.bom.split_first(), bytes.split_first()) {
            if mark == first {
                (self.bom, bytes) = (rest, after);
            } else {
                self.bom = &[];
            }
        }
        let most = self.table.max_utf8_buffer_length(bytes.len()).unwrap_or(0);
        let mut text = String::with_capacity(most);
        let _ = self.table.decode_to_string(bytes, &mut text, is_last);
        text
    }
}
