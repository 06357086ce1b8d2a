//! `$PIXIR_HOME/log/pixir.log`: warnings of the program itself, and panics. `PIXIR_LOG` sets the level.
//!
//! Nothing here fails, blocks or prints: without a file that can be written, the messages are lost.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pixir_core::Environment;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// A longer file is set aside when pixir next writes to it, bytes. At most two files exist.
const MOST: u64 = 4 << 20;

pub(super) fn start(environment: &Environment) {
    let filter = environment.variable("PIXIR_LOG").unwrap_or("warn");
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        // The library would print its own errors on stderr, which may be the screen.
        .log_internal_errors(false)
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(LazyFile { path: path(environment), file: OnceLock::new() })
        .finish();
    // It fails if a subscriber is set already, and that one is as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Appends every panic to the file, and prints none: the terminal may show the interface.
///
/// The hook opens the file itself. A panicking thread may hold the locks of the subscriber, or be about to make its file.
pub(super) fn note_panics(environment: &Environment) {
    let path = path(environment);
    std::panic::set_hook(Box::new(move |panic| {
        let text = format!("panic: {panic}\n{}\n", std::backtrace::Backtrace::force_capture());
        // There is no other place for the message.
        let _ = open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    }));
}

pub(super) fn path(environment: &Environment) -> PathBuf {
    environment.home.join("log").join("pixir.log")
}

/// Makes sure that the file can be appended to.
fn open(path: &Path) -> io::Result<File> {
    // Without a state folder there is no file: a relative path would be one of the workspace.
    if !path.is_absolute() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() > MOST) {
        fs::rename(path, path.with_extension("log.old"))?;
    }
    // A FIFO of this name must not block pixir until another program reads it.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// The appender of the file. It never rolls over by the date, which fails at the end of the calendar.
fn appender(path: &Path) -> Option<RollingFileAppender> {
    open(path).ok()?;
    let name = path.file_name()?.to_str()?;
    RollingFileAppender::builder().rotation(Rotation::NEVER).filename_prefix(name).build(path.parent()?).ok()
}

/// Creates the file with the first message, so that an uneventful run leaves none.
struct LazyFile {
    path: PathBuf,
    /// None if it cannot be opened.
    file: OnceLock<Option<RollingFileAppender>>,
}

impl<'a> MakeWriter<'a> for LazyFile {
    type Writer = Lossy<'a>;

    fn make_writer(&'a self) -> Lossy<'a> {
        Lossy(self.file.get_or_init(|| appender(&self.path)).as_ref())
    }
}

/// Writes as much as the disk takes, and reports no error.
struct Lossy<'a>(Option<&'a RollingFileAppender>);

impl Write for Lossy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = self.0 {
            let _ = file.make_writer().write_all(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
