//! Files that go with the prompt: images as images, text as documents.

use std::io::Read as _;
use std::path::PathBuf;

use pixir_core::text::encoding::Encoding;
use pixir_core::{Code, Error, Harness, Input, Result};

/// The most text of one file, bytes. The model reads longer ones with its tools.
const MOST: u64 = 1 << 20;

/// The Input with the files of `--attach`.
///
/// # Errors
/// `NOT_FOUND`, `READ_FAILED`, or `USAGE` for an Input that takes no files.
pub(super) fn add(harness: &Harness, input: Input, files: &[PathBuf]) -> Result<Input> {
    if files.is_empty() {
        return Ok(input);
    }
    let Input::Prompt(mut message) = input else {
        return Err(Error::new(Code::Usage, "a slash command takes no files", "leave out --attach"));
    };
    for path in files {
        let shown = path.display().to_string();
        let fix = "name an image, or a text file of at most 1 MB; the model can read others by their names";
        let failed = |e: &std::io::Error| {
            let code = if e.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::ReadFailed };
            Error::new(code, format!("attach {shown}: {e}"), fix).with("input", shown.as_str())
        };
        let is_image = path
            .extension()
            .and_then(|it| it.to_str())
            .is_some_and(|it| ["png", "jpg", "jpeg", "gif", "webp"].contains(&it.to_ascii_lowercase().as_str()));
        // Names are those of the folder that the user is in.
        let absolute = std::path::absolute(path).map_err(|e| failed(&e))?;
        if is_image {
            message.attachments.push(harness.attach(&absolute.display().to_string())?);
            continue;
        }
        let mut bytes = Vec::new();
        // Of a pipe or a file of the kernel, only what comes tells the size.
        let file = std::fs::File::open(&absolute).map_err(|e| failed(&e))?;
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(|e| failed(&e))?;
        let is_short = bytes.len() as u64 <= MOST;
        let encoding = Encoding::of(&bytes);
        let text = if encoding.is_utf8() {
            String::from_utf8(bytes).ok()
        } else {
            Some(encoding.decode(&bytes).0.into_owned())
        };
        let text = text.filter(|_| is_short).ok_or_else(|| {
            Error::new(Code::ReadFailed, format!("attach {shown}: it is no image, and no text of at most 1 MB"), fix)
                .with("input", shown.as_str())
        })?;
        let decoded = if encoding.is_utf8() { String::new() } else { format!(" decoded-from=\"{encoding}\"") };
        message.text.push_str(&format!("\n\n<document source=\"{shown}\"{decoded}>\n{}\n</document>", text.trim_end()));
    }
    Ok(Input::Prompt(message))
}
