//! Images for the model: checked, bounded in size and stored as blobs.

use std::fs;
use std::io::Read;
use std::path::Path;

use protocol::error::{Code, Error, Result};
use protocol::event::Attachment;
use protocol::remedy::Remedy;
use storage::blobs::Blobs;
use text::human::human_size;
use text::media::{is_whole_image, media_type, sides};

/// The largest image that is sent, bytes. Base64 adds a third, which reaches the limit of the strictest Provider.
const MAX_IMAGE: u64 = (5 << 20) / 4 * 3;
/// The largest width or height that is sent, pixels.
const MAX_SIDE: u32 = 8_000;

/// Stores an image of `len` bytes as a blob; `shown` is its name for the model and the user.
///
/// # Errors
/// `READ_FAILED` when it is too large or cannot be read or stored, `INVALID_ARGS` when it is not an image.
pub fn keep(blobs: &Blobs, from: impl Read, len: u64, shown: &str) -> Result<Attachment> {
    Ok(keep_measured(blobs, from, len, shown)?.0)
}

/// The same, with the width and height of the image if its header tells them.
///
/// # Errors
/// As [`keep`].
pub fn keep_measured(
    blobs: &Blobs,
    from: impl Read,
    len: u64,
    shown: &str,
) -> Result<(Attachment, Option<(u32, u32)>)> {
    let failed = |why: String, fix: Remedy| Error::new(Code::ReadFailed, why, fix).with("input", shown);
    if len > MAX_IMAGE {
        let why = format!("{shown} is {}; an image can have at most {}", human_size(len), human_size(MAX_IMAGE));
        return Err(failed(why, "make a smaller copy of it".into()));
    }
    let mut bytes = Vec::new();
    from.take(len)
        .read_to_end(&mut bytes)
        .map_err(|e| failed(format!("read `{shown}`: {e}"), "check its permissions".into()))?;
    let Some(media_type) = media_type(&bytes).filter(|_| is_whole_image(&bytes)) else {
        let fix = format!("a complete image; `file {shown}` tells its type");
        return Err(Error::new(
            Code::InvalidArgs,
            format!("{shown} is not a complete PNG, JPEG, GIF or WebP image"),
            fix,
        ));
    };
    let size = sides(&bytes);
    if let Some((width, height)) = size.filter(|(w, h)| *w.max(h) > MAX_SIDE) {
        let why = format!("{shown} is {width}x{height}; an image can have at most {MAX_SIDE} pixels a side");
        return Err(failed(why, "make a smaller copy of it".into()));
    }
    let blob = blobs.put(&bytes).ok().flatten();
    let blob = blob.ok_or_else(|| failed(format!("{shown} cannot be stored"), Remedy::CheckStateFolder))?;
    Ok((Attachment { path: shown.to_owned(), media_type: media_type.to_owned(), blob, bytes: len }, size))
}

/// Stores an image file that the user chose, which may lie outside the workspace.
pub fn keep_file(blobs: &Blobs, path: &Path, shown: &str) -> Result<Attachment> {
    let failed = |e: std::io::Error| {
        Error::new(Code::ReadFailed, format!("read `{shown}`: {e}"), "check its name and permissions")
            .with("input", shown)
    };
    // Opening a pipe or a device would block.
    let found = fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(Error::new(Code::InvalidArgs, format!("`{shown}` is not a file"), "name an image file"));
    }
    keep(blobs, fs::File::open(path).map_err(failed)?, found.len(), shown)
}
