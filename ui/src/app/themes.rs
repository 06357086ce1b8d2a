//! Themes as they are read; and the person's own, as they are written: a theme that is being made is seen at once.

use std::path::Path;

use tokio::sync::mpsc::UnboundedReceiver;

use super::App;
use crate::theme::Theme;
use crate::update::settings;

impl App {
    pub(super) fn load_theme(&self, name: &str) -> pixir_core::Result<Theme> {
        Theme::load(name, self.themes_folder.as_deref(), self.state.depth, self.state.is_light)
    }

    /// The terminal has said what its background is, or the theme's file has changed.
    pub(super) fn reload_theme(&mut self) {
        let wrong = match self.load_theme(&self.state.theme_name) {
            Ok(theme) => {
                settings::wear(&mut self.state, theme);
                // It is right now, whatever was said of it.
                self.state.toast.take_if(|(told, _)| self.wrong_theme.as_ref() == Some(told));
                None
            }
            Err(e) => Some(e.message),
        };
        // The colours stay as they are. It is said once.
        if let Some(why) = wrong.as_ref().filter(|_| self.wrong_theme != wrong) {
            self.state.say(why.as_str());
        }
        self.wrong_theme = wrong;
    }
}

/// Tells whenever something in the folder has changed. Where nothing can be watched, nothing comes: the folder is looked
/// at again when the window gets the focus.
pub(super) fn watch(folder: Option<&Path>) -> UnboundedReceiver<()> {
    let (tell, changed) = tokio::sync::mpsc::unbounded_channel();
    #[cfg(target_os = "linux")]
    if let Some(folder) = folder.filter(|folder| folder.is_dir())
        && let Err(e) = linux::start(folder, tell.clone())
    {
        tracing::warn!("the themes folder is not watched: {e}");
    }
    // Held open, so that waiting for it means waiting, not the end.
    tokio::spawn(async move { tell.closed().await });
    changed
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

    pub(super) fn start(folder: &Path, tell: UnboundedSender<()>) -> io::Result<()> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, folder, WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::DELETE)?;
        let watch = crate::terminal::watched(watch, Interest::READABLE)?;
        tokio::spawn(async move {
            loop {
                let Ok(mut ready) = watch.readable().await else { return };
                let seen = drain(watch.get_ref());
                ready.clear_ready();
                if seen && tell.send(()).is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Whether there was anything.
    fn drain(watch: &OwnedFd) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4 << 10];
        let mut reader = Reader::new(watch, &mut buffer);
        let mut seen = false;
        while reader.next().is_ok() {
            seen = true;
        }
        seen
    }
}
