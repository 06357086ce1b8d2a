//! `$PIXIR_HOME/log/pixir.log.<date>`: warnings of the program itself. `PIXIR_LOG` sets the level.

use std::path::PathBuf;
use std::sync::OnceLock;

use pixir_core::Environment;
use tracing_appender::rolling::{self, RollingFileAppender, RollingWriter};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

pub(super) fn start(environment: &Environment) {
    let filter = environment.variable("PIXIR_LOG").unwrap_or("warn");
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(LazyFile { folder: environment.home.join("log"), appender: OnceLock::new() })
        .finish();
    // It fails if a subscriber is set already, and that one is as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Creates the file with the first message, so that an uneventful run leaves none.
struct LazyFile {
    folder: PathBuf,
    appender: OnceLock<RollingFileAppender>,
}

impl<'a> MakeWriter<'a> for LazyFile {
    type Writer = RollingWriter<'a>;

    fn make_writer(&'a self) -> RollingWriter<'a> {
        self.appender.get_or_init(|| rolling::daily(&self.folder, "pixir.log")).make_writer()
    }
}
