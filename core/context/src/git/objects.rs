//! Objects of a repository: commits, trees and files, loose or in packs. Formats: gitformat-pack(5).

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use flate2::read::ZlibDecoder;

use permissions::repository::{self, Repository};

/// The longest commit that is read, bytes.
const MAX_COMMIT: u64 = 64 << 10;
/// The longest tree, and the longest file, bytes.
const MAX_TREE: u64 = 4 << 20;
const MAX_BLOB: u64 = 64 << 20;
/// The most packs that are searched.
const MAX_PACKS: usize = 64;
/// The longest chain of deltas.
const MAX_CHAIN: u32 = 60;

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id(pub(super) [u8; 20]);

impl Id {
    /// Reads 40 hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Id> {
        let mut id = [0; 20];
        if text.len() != 40 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (at, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
        }
        Some(Id(id))
    }

    pub(super) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What is read of a commit.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) tree: Id,
    /// The first parent.
    pub(super) parent: Option<Id>,
    /// The first line of the message.
    pub(super) subject: String,
}

/// The objects of a repository.
pub(super) struct Objects {
    folder: PathBuf,
}

/// A pack: where it names its objects, and where it holds them.
struct Pack {
    index: File,
    objects: File,
    count: u32,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Commit,
    Tree,
    Blob,
}

impl Kind {
    /// The number of the type in a pack.
    const fn number(self) -> u8 {
        match self {
            Kind::Commit => 1,
            Kind::Tree => 2,
            Kind::Blob => 3,
        }
    }

    /// How a loose object begins.
    const fn name(self) -> &'static [u8] {
        match self {
            Kind::Commit => b"commit ",
            Kind::Tree => b"tree ",
            Kind::Blob => b"blob ",
        }
    }

    /// The most bytes that are read of one.
    const fn most(self) -> u64 {
        match self {
            Kind::Commit => MAX_COMMIT,
            Kind::Tree => MAX_TREE,
            Kind::Blob => MAX_BLOB,
        }
    }
}

const OFFSET_DELTA: u8 = 6;
const NAME_DELTA: u8 = 7;

impl Objects {
    pub(super) fn of(repository: &Repository) -> Objects {
        Objects { folder: repository.common.join("objects") }
    }

    pub(super) fn commit(&self, id: Id) -> Option<Commit> {
        let bytes = self.object(id, Kind::Commit)?;
        let text = String::from_utf8_lossy(&bytes);
        let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
        let field = |name: &str| head.lines().find_map(|line| Id::parse(line.strip_prefix(name)?));
        let subject = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Some(Commit { tree: field("tree ")?, parent: field("parent "), subject: subject.trim().to_owned() })
    }

    /// The entries of a folder, as git stores them.
    pub(super) fn tree(&self, id: Id) -> Option<Vec<u8>> {
        self.object(id, Kind::Tree)
    }

    /// The bytes of a file.
    pub(super) fn blob(&self, id: Id) -> Option<Vec<u8>> {
        self.object(id, Kind::Blob)
    }

    fn object(&self, id: Id, kind: Kind) -> Option<Vec<u8>> {
        self.loose(id, kind).or_else(|| self.packed(id, kind, 0))
    }

    fn loose(&self, id: Id, kind: Kind) -> Option<Vec<u8>> {
        let hex = id.hex();
        // The header and what zlib adds to text that it cannot shorten.
        let most = kind.most() + kind.most() / 1_000 + 64;
        let packed = repository::bytes(&self.folder.join(&hex[..2]).join(&hex[2..]), most)?;
        let mut bytes = inflate(&packed[..], most)?;
        let start = bytes.iter().position(|byte| *byte == 0)? + 1;
        bytes.starts_with(kind.name()).then(|| bytes.split_off(start))
    }

    fn packed(&self, id: Id, kind: Kind, chain: u32) -> Option<Vec<u8>> {
        let packs = fs::read_dir(self.folder.join("pack")).ok()?.flatten().map(|entry| entry.path());
        let indices = packs.filter(|path| path.extension().is_some_and(|it| it == "idx"));
        indices.take(MAX_PACKS).find_map(|path| {
            let pack = Pack::open(repository::open(&path)?.0, repository::open(&path.with_extension("pack"))?.0)?;
            self.in_pack(&pack, pack.find(id)?, kind, chain)
        })
    }

    /// The object at this offset of a pack.
    fn in_pack(&self, pack: &Pack, offset: u64, of: Kind, chain: u32) -> Option<Vec<u8>> {
        if chain > MAX_CHAIN {
            return None;
        }
        let mut head = [0; 64];
        let len = pack.objects.read_at(&mut head, offset).ok()?;
        let mut head = head[..len].iter().copied();
        let first = head.next()?;
        let (kind, mut size, mut shift) = (first >> 4 & 7, u64::from(first & 15), 4);
        let (mut more, mut used) = (first & 0x80 != 0, 1);
        while more {
            let byte = head.next()?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            (more, shift, used) = (byte & 0x80 != 0, shift + 7, used + 1);
        }
        if size > of.most() {
            return None;
        }
        let base = match kind {
            own if own == of.number() => None,
            OFFSET_DELTA => {
                let mut byte = head.next()?;
                let mut back = u64::from(byte & 0x7f);
                used += 1;
                while byte & 0x80 != 0 {
                    byte = head.next()?;
                    back = back.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
                    used += 1;
                }
                Some(self.in_pack(pack, offset.checked_sub(back).filter(|_| back > 0)?, of, chain + 1)?)
            }
            NAME_DELTA => {
                let mut id = [0; 20];
                for byte in &mut id {
                    *byte = head.next()?;
                }
                used += 20;
                let id = Id(id);
                let here = pack.find(id).and_then(|at| self.in_pack(pack, at, of, chain + 1));
                Some(here.or_else(|| self.loose(id, of)).or_else(|| self.packed(id, of, chain + 1))?)
            }
            _ => return None,
        };
        // A stream never grows by more than its own headers.
        let mut stream = vec![0; usize::try_from(size + size / 1_000).ok()? + 1_024];
        let len = pack.objects.read_at(&mut stream, offset + used).ok()?;
        let bytes = inflate(&stream[..len], size)?;
        match base {
            None => Some(bytes),
            Some(base) => apply(&bytes, &base, of.most()),
        }
    }
}

impl Pack {
    fn open(index: File, objects: File) -> Option<Pack> {
        let mut head = [0; 8];
        index.read_exact_at(&mut head, 0).ok()?;
        // Version 1 has been out of use since 2007.
        (head == [0xff, b't', b'O', b'c', 0, 0, 0, 2]).then_some(())?;
        let count = number(&index, 8 + 255 * 4)?;
        Some(Pack { index, objects, count })
    }

    /// The offset of an object.
    fn find(&self, id: Id) -> Option<u64> {
        let first = u64::from(id.0[0]);
        let mut low = if first == 0 { 0 } else { number(&self.index, 8 + (first - 1) * 4)? };
        let mut high = number(&self.index, 8 + first * 4)?.min(self.count);
        let names = 8 + 256 * 4;
        while low < high {
            let middle = low + (high - low) / 2;
            let mut name = [0; 20];
            self.index.read_exact_at(&mut name, names + u64::from(middle) * 20).ok()?;
            match name.cmp(&id.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle),
            }
        }
        None
    }

    fn offset(&self, at: u32) -> Option<u64> {
        let count = u64::from(self.count);
        let offsets = 8 + 256 * 4 + count * 24;
        let offset = number(&self.index, offsets + u64::from(at) * 4)?;
        if offset & 0x8000_0000 == 0 {
            return Some(u64::from(offset));
        }
        let mut long = [0; 8];
        let longs = offsets + count * 4;
        self.index.read_exact_at(&mut long, longs + u64::from(offset & 0x7fff_ffff) * 8).ok()?;
        Some(u64::from_be_bytes(long))
    }
}

fn number(file: &File, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(u32::from_be_bytes(bytes))
}

/// Inflates a stream to at most so many bytes.
fn inflate(stream: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(stream).take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Applies a delta to its base.
fn apply(delta: &[u8], base: &[u8], most: u64) -> Option<Vec<u8>> {
    let mut delta = delta.iter().copied();
    let mut size = || {
        let (mut size, mut shift) = (0_u64, 0);
        loop {
            let byte = delta.next()?;
            size |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
    };
    let (from, to) = (size()?, size()?);
    if from != base.len() as u64 || to > most {
        return None;
    }
    let mut made = Vec::new();
    while let Some(step) = delta.next() {
        if step & 0x80 == 0 {
            made.extend(delta.by_ref().take(usize::from(step)));
            continue;
        }
        let mut part = |bits: std::ops::Range<u32>| {
            let mut value = 0_usize;
            for (at, bit) in bits.enumerate() {
                if step & 1 << bit != 0 {
                    value |= usize::from(delta.next()?) << (at * 8);
                }
            }
            Some(value)
        };
        let (at, len) = (part(0..4)?, part(4..7)?);
        let len = if len == 0 { 0x10000 } else { len };
        made.extend_from_slice(base.get(at..at.checked_add(len)?)?);
        if made.len() as u64 > to {
            return None;
        }
    }
    (made.len() as u64 == to).then_some(made)
}
