//! The blob store: file versions by content, so that changes can be undone.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The largest content that is stored, bytes.
const MAX_BLOB: usize = 64 << 20;

/// A content-addressed store, shared by all Sessions of a home; equal bytes are stored once.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
}

impl Blobs {
    /// Creates a store in this folder. The folder itself is created with the first blob.
    pub fn new(root: PathBuf) -> Blobs {
        Blobs { root }
    }

    /// Stores these bytes and returns their name: the first 32 hex digits of their BLAKE3 hash.
    /// `None` when they are too large.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Option<String>> {
        if bytes.len() > MAX_BLOB {
            return Ok(None);
        }
        let name = name_of(bytes);
        let path = self.path(&name);
        // A fresh modification time protects an existing blob from a concurrent `gc`. A missing or damaged blob is
        // written again.
        let kept = touch(&path)? && self.get(&name).is_ok();
        if !kept {
            let folder = path.parent().expect("a blob lies in a folder");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let temporary = folder.join(format!("{name}.{:x}", uuid::Uuid::now_v7().as_u128()));
            let mut file = fs::File::create_new(&temporary)?;
            io::Write::write_all(&mut file, &zstd::encode_all(bytes, 3)?)?;
            // The old version must be durable before the caller replaces the file itself.
            file.sync_data()?;
            fs::rename(&temporary, &path)?;
            fs::File::open(folder)?.sync_all()?;
        }
        Ok(Some(name))
    }

    /// Reads the blob with this name.
    ///
    /// # Errors
    /// Errors of the file system; `InvalidInput` for text that is not a blob's name, `InvalidData` for a damaged blob.
    pub fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        if !is_name(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a blob"));
        }
        let bytes = zstd::decode_all(fs::File::open(self.path(name))?)?;
        if name_of(&bytes) == name {
            Ok(bytes)
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "the blob's bytes do not match its name"))
        }
    }

    /// Reads at most so many bytes from the start of a blob, and whether that is all of it. They are not checked.
    ///
    /// # Errors
    /// Errors of the file system; `InvalidInput` for text that is not a blob's name.
    pub fn get_start(&self, name: &str, most: usize) -> io::Result<(Vec<u8>, bool)> {
        use io::Read as _;
        if !is_name(name) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a blob"));
        }
        let mut bytes = Vec::new();
        let mut reader = zstd::Decoder::new(fs::File::open(self.path(name))?)?;
        reader.by_ref().take(most as u64).read_to_end(&mut bytes)?;
        let is_whole = bytes.len() < most || reader.read(&mut [0])? == 0;
        Ok((bytes, is_whole))
    }

    /// Creates an unnamed temporary file next to the blobs. It disappears when it is closed.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn nameless_file(&self) -> io::Result<fs::File> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root)?;
        tempfile::tempfile_in(&self.root)
    }

    /// Whether the blob with this name exists and is undamaged.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_ok()
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.root).join(&name[..2]).join(format!("{name}.zst"))
    }
}

fn is_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

fn touch(path: &Path) -> io::Result<bool> {
    match fs::File::open(path).and_then(|file| file.set_modified(std::time::SystemTime::now())) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Returns the name of these bytes, whether they are stored or not.
pub fn name_of(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_got_and_equal_bytes_are_one_blob() {
        let folder = tempfile::tempdir().expect("a folder");
        let blobs = Blobs::new(folder.path().join("blobs"));
        let name = blobs.put(b"hello\r\n\0").expect("put").expect("small enough");
        assert_eq!(blobs.put(b"hello\r\n\0").expect("put"), Some(name.clone()));
        assert_eq!(blobs.get(&name).expect("get"), b"hello\r\n\0");
        assert!(blobs.get("../../../../etc/passwd").is_err());
        fs::write(blobs.path(&name), "").expect("a crash has left it empty");
        assert!(!blobs.has(&name));
        blobs.put(b"hello\r\n\0").expect("put");
        assert!(blobs.has(&name), "it is written again");
    }
}
