//! Loads themes, and watches the user's theme files, so that an edit of the current theme shows at once.

use std::path::Path;

use tokio::sync::mpsc::UnboundedReceiver;

use super::App;
use crate::theme::Theme;
use crate::update::settings;

impl App {
    pub(super) fn load_theme(&self, name: &str) -> pixir_core::Result<Theme> {
        Theme::load(name, self.themes_folder.as_deref(), self.state.look.depth, self.state.look.background)
    }

    /// Loads the theme again, because the terminal has reported its background or the file has changed.
    pub(super) fn reload_theme(&mut self) {
        let error = match self.load_theme(&self.state.look.theme_name) {
            Ok(theme) => {
                settings::set_theme(&mut self.state, theme);
                // The message about an earlier error is out of date.
                self.state.toast.take_if(|(text, _)| self.theme_error.as_ref() == Some(text));
                None
            }
            Err(e) => Some(e.message),
        };
        // The old colours stay. The same error is shown only once.
        if let Some(message) = error.as_ref().filter(|_| self.theme_error != error) {
            self.state.say(message.as_str());
        }
        self.theme_error = error;
    }
}

/// Sends a message whenever a file in the folder changes. Where the folder cannot be watched, no message comes, and the
/// theme is loaded again when the window gets the focus.
pub(super) fn watch(folder: Option<&Path>) -> UnboundedReceiver<()> {
    let (sender, changes) = tokio::sync::mpsc::unbounded_channel();
    #[cfg(target_os = "linux")]
    if let Some(folder) = folder.filter(|folder| folder.is_dir())
        && let Err(e) = linux::start(folder, sender.clone())
    {
        tracing::warn!("cannot watch the themes folder: {e}");
    }
    // An open sender keeps `recv` waiting, where a dropped one would end it at once.
    tokio::spawn(async move { sender.closed().await });
    changes
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::Interest;
    use tokio::sync::mpsc::UnboundedSender;

    pub(super) fn start(folder: &Path, sender: UnboundedSender<()>) -> io::Result<()> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, folder, WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE)?;
        let watch = crate::terminal::watched(watch, Interest::READABLE)?;
        tokio::spawn(async move {
            loop {
                let Ok(mut ready) = watch.readable().await else { return };
                let has_changed = drain(watch.get_ref());
                ready.clear_ready();
                if has_changed && sender.send(()).is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Reads all events; true if there were any.
    fn drain(watch: &OwnedFd) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4 << 10];
        let mut reader = Reader::new(watch, &mut buffer);
        let mut has_any = false;
        while reader.next().is_ok() {
            has_any = true;
        }
        has_any
    }
}
